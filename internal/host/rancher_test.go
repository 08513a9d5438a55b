// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRancherArguments reads what K3s gives its kubelet, from a host and from its snapshot alike; the snapshot has no secret.
func TestRancherArguments(t *testing.T) {
	const folder = "/etc/rancher/k3s/config.yaml"
	for name, tc := range map[string]struct {
		files map[string]string
		want  Fact[[]string]
	}{
		"no file": {nil, Known[[]string](nil, folder)},
		"one file": {
			map[string]string{folder: "token: sesame\nnode-ip: 10.1.2.3\ndata-dir: /data/k3s\nkubelet-arg: [kube-reserved=memory=1Gi, node-labels=sesame]\n"},
			Known([]string{"--data-dir=/data/k3s", "--kubelet-arg=kube-reserved=memory=1Gi"}, folder),
		},
		"a later file has more weight": {
			map[string]string{
				folder: "d: /a\nkubelet-arg: cpu-manager-policy=none\n", folder + ".d/20.yaml": "kubelet-arg+: [config=/b]\n", folder + ".d/10.yml": "data-dir: /c\nkubelet-arg: [root-dir=/d]\n",
				folder + ".d/30.txt": "data-dir: /e\n",
			},
			Known([]string{"--data-dir=/c", "--kubelet-arg=root-dir=/d", "--kubelet-arg=config=/b"}, folder),
		},
		"a later file takes away": {map[string]string{folder: "kubelet-arg: [root-dir=/d]\n", folder + ".d/10.yaml": "kubelet-arg: []\n"}, Known[[]string](nil, folder)},
		"a folder alone":          {map[string]string{folder + ".d/a.yaml": "data-dir: /c\n"}, Known([]string{"--data-dir=/c"}, folder)},
		"numbers and words":       {map[string]string{folder: "kubelet-arg: [3, system-reserved=x, {a: b}]\n"}, Known([]string{"--kubelet-arg=system-reserved=x"}, folder)},
		"both names of one":       {map[string]string{folder: "data-dir: /b\nd: /a\n"}, Known([]string{"--data-dir=/a", "--data-dir=/b"}, folder)},
		"an empty file":           {map[string]string{folder: "\n"}, Known[[]string](nil, folder)},
		"no table":                {map[string]string{folder: "sesame\n"}, Absent[[]string](folder, "no table of arguments in YAML")},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"/sys/fs/cgroup/system.slice/k3s-agent.service/cgroup.procs": "77\n"}
			maps.Copy(files, tc.files)
			dir := writeTree(t, files)
			opened, err := Open(dir)
			must(t, err)
			defer func() { _ = opened.Close() }()
			var packed bytes.Buffer
			must(t, opened.Snapshot(t.Context(), &packed))
			if tree, err := readArchive(bytes.NewReader(packed.Bytes()), defaultArchiveLimits()); err != nil || holdsText(tree, "sesame") || holdsText(tree, "10.1.2.3") {
				t.Errorf("the snapshot holds a secret, %v", err)
			}
			archive := filepath.Join(t.TempDir(), "a.tar.gz")
			must(t, os.WriteFile(archive, packed.Bytes(), 0o600))
			for _, root := range []string{dir, archive} {
				of, err := Open(root)
				must(t, err)
				facts, err := of.ReadInstallation(t.Context())
				must(t, err)
				must(t, of.Close())
				if diff := cmp.Diff(tc.want, facts.Software.RancherArguments); diff != "" {
					t.Errorf("%s (-want +got):\n%s", root, diff)
				}
			}
		})
	}
}

// TestRancherPrograms: which service runs whose kubelet.
func TestRancherPrograms(t *testing.T) {
	for unit, want := range map[string]string{
		"k3s.service": "k3s", "k3s-agent.service": "k3s", "rke2-server.service": "rke2", "rke2-agent.service": "rke2", "kubelet.service": "", "": "",
	} {
		if got := RancherProgram(unit); got != want {
			t.Errorf("%s: %q, want %q", unit, got, want)
		}
	}
}

// FuzzRancherArguments reads any configuration: what is kept is read again as it was.
func FuzzRancherArguments(f *testing.F) {
	f.Add("data-dir: /a\nkubelet-arg: [config=/b, 3]\nkubelet-arg+: x\n")
	f.Add("[1]")
	f.Add("d: {a: b}\ndata-dir: null\n")
	f.Fuzz(func(t *testing.T, text string) {
		kept := essentialRancher(text)
		if again := essentialRancher(kept); again != kept {
			t.Errorf("%q becomes %q and then %q", text, kept, again)
		}
	})
}
