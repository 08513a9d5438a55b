// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cdi_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/cdi"
)

func TestKind(t *testing.T) {
	cases := map[string]struct{ resource, want string }{
		"as it is":        {"lowlatency.dev/x2", "lowlatency.dev/x2"},
		"name of a digit": {"lowlatency.dev/25g", "lowlatency.dev/nic-25g"},
		"domain, too":     {"3com.com/25g", "nic-3com.com/nic-25g"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := cdi.Kind(tc.resource); got != tc.want {
				t.Errorf("kind is %s, want %s", got, tc.want)
			}
		})
	}
}

// TestEncode: the version is the lowest that has what is used, as the specification of CDI lists it.
func TestEncode(t *testing.T) {
	edits := cdi.Edits(bypass.Edits{
		DeviceNodes: []bypass.DeviceNode{{Path: "/dev/vfio/12", Permissions: "rw"}},
		Mounts:      []bypass.Mount{{HostPath: "/opt/onload", ContainerPath: "/opt/onload"}},
	})
	spec := func(annotations map[string]string) *specs.Spec {
		return &specs.Spec{Kind: "lowlatency.dev/x2", Annotations: annotations, Devices: []specs.Device{{Name: "a", ContainerEdits: edits}}}
	}
	content, err := cdi.Encode(spec(nil), "lowlatency.dev/x2")
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "cdiVersion": "0.3.0",
  "kind": "lowlatency.dev/x2",
  "devices": [
    {
      "name": "a",
      "containerEdits": {
        "deviceNodes": [
          {
            "path": "/dev/vfio/12",
            "permissions": "rw"
          }
        ],
        "mounts": [
          {
            "hostPath": "/opt/onload",
            "containerPath": "/opt/onload",
            "options": [
              "ro",
              "nosuid",
              "nodev",
              "bind"
            ]
          }
        ]
      }
    }
  ],
  "containerEdits": {}
}
`
	if diff := cmp.Diff(want, string(content)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	content, err = cdi.Encode(spec(map[string]string{"lowlatency.dev/claim": "shop/a"}), "claim shop/a")
	if err != nil || !strings.Contains(string(content), `"cdiVersion": "0.6.0"`) {
		t.Errorf("with annotations, which came with 0.6.0: %v\n%s", err, content)
	}
	if _, err := cdi.Encode(&specs.Spec{Kind: "no kind"}, "claim shop/a"); err != nil && !strings.Contains(err.Error(), "claim shop/a") {
		t.Errorf("error is %v, want one that says of what", err)
	}
}

// TestReplace: readers see the old file or the new one, whoever they are, and nothing else is left in the folder.
func TestReplace(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "cdi")
	path := filepath.Join(folder, "a.json")
	for _, content := range []string{"one", "two"} {
		if err := cdi.Replace(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Errorf("content is %q, %v; want %q", got, err, content)
		}
	}
	found, err := os.ReadDir(folder)
	if err != nil || len(found) != 1 {
		t.Errorf("the folder holds %v, %v; want a.json alone", found, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode is %v, %v; want one that every runtime can read", info.Mode(), err)
	}
	if err := cdi.Remove(path); err != nil {
		t.Error(err)
	}
	if err := cdi.Remove(path); err != nil {
		t.Errorf("removing what is not there: %v", err)
	}
}

func TestFailures(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(file, "a.json")
	occupied := t.TempDir()
	if err := os.MkdirAll(filepath.Join(occupied, "a.json", "more"), 0o755); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		err  error
		want string
	}{
		"the folder is a file":               {cdi.Replace(below, nil), file},
		"a folder is in the way":             {cdi.Replace(filepath.Join(occupied, "a.json"), nil), "a.json"},
		"what is to be removed is a folder":  {cdi.Remove(filepath.Join(occupied, "a.json")), "a.json"},
		"what is to be removed is in a file": {cdi.Remove(below), below},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.err == nil || !strings.Contains(tc.err.Error(), tc.want) {
				t.Errorf("error is %v, want one that names %s", tc.err, tc.want)
			}
		})
	}
	left, err := os.ReadDir(occupied)
	if err != nil || len(left) != 1 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}
