// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestImportOfFoldersAndLists takes the PerformanceProfiles of a folder, and of a list as kubectl get prints it.
func TestImportOfFoldersAndLists(t *testing.T) {
	const source = `apiVersion: performance.openshift.io/v2
kind: PerformanceProfile
metadata: {name: cnf}
spec:
  cpu: {reserved: 0-1, isolated: 2-3}
  nodeSelector: {node-role.kubernetes.io/cnf: ""}
`
	want := run(t, source, "import", "-f", "-")
	folder := t.TempDir()
	for name, text := range map[string]string{"a.yaml": source, "pod.yaml": "apiVersion: v1\nkind: Pod\n", "README.md": "none"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := run(t, "", "import", "-f", folder); got != want || got.code != ExitOK {
		t.Errorf("from a folder: %+v, want %+v", got, want)
	}
	list := "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(source), "\n", "\n  ") + "\n"
	if got := run(t, list, "import", "-f", "-"); got != want {
		t.Errorf("from a list: %+v, want %+v", got, want)
	}
}

func TestImportOfNothing(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "pod.yaml"), []byte("apiVersion: v1\nkind: Pod\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	empty := write(t, "empty.yaml", "# nothing\n")
	cases := map[string]struct{ in, file, want string }{
		"an empty file":      {"", empty, "error: " + empty + " holds no object\n"},
		"no file":            {"", "/does/not/exist", "error: open /does/not/exist: no such file or directory\n"},
		"a folder of others": {"", folder, "error: folder " + folder + " holds no PerformanceProfile\n"},
		"an empty list":      {"apiVersion: v1\nkind: List\nitems: []\n", "-", "error: -: the list is empty: there is no PerformanceProfile in it\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := run(t, tc.in, "import", "-f", tc.file); got.code != ExitUsage || got.err != tc.want {
				t.Errorf("%+v, want %q", got, tc.want)
			}
		})
	}
}
