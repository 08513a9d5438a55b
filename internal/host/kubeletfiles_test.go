// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const configurationHead = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// writeTree puts files into a folder that is a complete copy of a host.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["/"+indexFile], files["/sys/kernel/x"] = `{"complete": true}`, ""
	for name, content := range files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// kubeadmHost is a host whose kubelet merges two files over its configuration. Its command line names more than is anybody's
// business.
func kubeadmHost() map[string]string {
	return map[string]string{
		"/etc/os-release": "ID=debian\nHOME_URL=x\n", "/boot/grub/grub.cfg": "secret", "/usr/sbin/tuned": "x", "/etc/tuned/profiles/a/tuned.conf": "",
		"/etc/systemd/system/multi-user.target.wants/tuned.service": "",
		"/proc/1/comm": "systemd\n", "/proc/77/comm": "kubelet\n",
		"/proc/77/cmdline": "/usr/bin/kubelet\x00--node-ip=10.1.2.3\x00--config\x00/var/lib/kubelet/config.yaml\x00--config-dir=/var/lib/kubelet/kubelet.conf.d\x00--root-dir\x00/data/kubelet\x00--kube-reserved=cpu=1\x00",

		"/var/lib/kubelet/config.yaml":                     configurationHead + "maxPods: 10\nevictionHard: {memory.available: 100Mi, pid.available: 5%}\n",
		"/var/lib/kubelet/kubelet.conf.d/20-more/a.conf":   configurationHead + "maxPods: 30\nevictionHard: {pid.available: null}\n",
		"/var/lib/kubelet/kubelet.conf.d/10-first.conf":    configurationHead + "maxPods: 20\npodPidsLimit: 7\n",
		"/var/lib/kubelet/kubelet.conf.d/99-not-read.yaml": configurationHead + "maxPods: 99\n",

		"/sys/fs/cgroup/system.slice/kubelet.service/cgroup.procs": "77\n", "/sys/fs/cgroup/system.slice/crio.service/cgroup.procs": "",
		"/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf": "[Service]\nEnvironment=\"SECRET=x\"\nEnvironment=\"KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml\"\n",
	}
}

// TestTuneDThatIsNotEnabled: systemd does not start it, so that no profile of it would be in force. A recording that does not say counts as enabled.
func TestTuneDThatIsNotEnabled(t *testing.T) {
	const wanted = "/etc/systemd/system/multi-user.target.wants/tuned.service"
	for name, tc := range map[string]struct {
		index, link, want string
	}{
		// Debian's link leads to a folder that agents do not see.
		"enabled":             {`{"complete": true}`, "/lib/systemd/system/tuned.service", "/etc/tuned/profiles"},
		"not enabled":         {`{"complete": true}`, "", ""},
		"known to be missing": {`{"missing": ["` + wanted + `"]}`, "", ""},
		"not recorded":        {`{}`, "", "/etc/tuned/profiles"},
	} {
		t.Run(name, func(t *testing.T) {
			files := kubeadmHost()
			delete(files, wanted)
			files["/etc/systemd/system/another.service"] = ""
			dir := writeTree(t, files)
			if tc.link != "" {
				must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, wanted)), 0o755))
				must(t, os.Symlink(tc.link, filepath.Join(dir, wanted)))
			}
			must(t, os.WriteFile(filepath.Join(dir, indexFile), []byte(tc.index), 0o600))
			opened, err := Open(dir)
			must(t, err)
			defer func() { _ = opened.Close() }()
			facts, err := opened.ReadInstallation(t.Context())
			must(t, err)
			if got, known := facts.Software.TuneDProfiles.Get(); !known || got != tc.want {
				t.Errorf("TuneDProfiles = %q, %v, want %q", got, known, tc.want)
			}
		})
	}
}

// TestNoKubelet: a host has none when nothing of one is there, and what cannot be looked for may be there.
func TestNoKubelet(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		want Fact[bool]
	}{
		"nothing of one":         {"/etc/hostname", Known(true, systemSlice)},
		"MicroK8s":               {"/var/snap/microk8s/current/args/kubelet", Known(false, "/var/snap/microk8s")},
		"k0s that does not run":  {"/var/lib/k0s/bin/kubelet", Known(false, "/var/lib/k0s")},
		"the state of one":       {"/var/lib/kubelet/config.yaml", Known(false, "/var/lib/kubelet")},
		"a service that is idle": {"/usr/lib/systemd/system/kubelet.service", Known(false, systemSlice)},
		"a process":              {"/proc/77/cmdline", Known(false, systemSlice)},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{tc.file: "x\n"}
			if name == "a process" {
				files = map[string]string{"/proc/77/comm": "kubelet\n", tc.file: "/opt/kubelet\x00--config=/etc/k.yaml\x00"}
			}
			opened, err := Open(writeTree(t, files))
			must(t, err)
			defer func() { _ = opened.Close() }()
			facts, err := opened.ReadInstallation(t.Context())
			must(t, err)
			if diff := cmp.Diff(tc.want, facts.Software.NoKubelet); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestInstallation reads what decides how a plan is written, from a host and from its snapshot alike.
func TestInstallation(t *testing.T) {
	dir := writeTree(t, kubeadmHost())
	opened, err := Open(dir)
	must(t, err)
	defer func() { _ = opened.Close() }()
	var packed bytes.Buffer
	must(t, opened.Snapshot(t.Context(), &packed))
	for _, secret := range []string{"10.1.2.3", "SECRET", "HOME_URL", "secret"} {
		if tree, err := readArchive(bytes.NewReader(packed.Bytes()), defaultArchiveLimits()); err != nil || holdsText(tree, secret) {
			t.Errorf("the snapshot holds %q, %v", secret, err)
		}
	}
	file := filepath.Join(t.TempDir(), "a.tar.gz")
	must(t, os.WriteFile(file, packed.Bytes(), 0o600))
	for _, root := range []string{dir, file} {
		of, err := Open(root)
		must(t, err)
		facts, err := of.ReadInstallation(t.Context())
		must(t, err)
		must(t, of.Close())
		want := Software{
			OpenShift: Known(false, osReleaseFile), BootLoader: Known(GRUB, "/boot/grub/grub.cfg"),
			KubeletUnit: Known("kubelet.service", systemSlice+"kubelet.service"), NoKubelet: Known(false, systemSlice),
			KubeletConfigArguments: Known("--config=/var/lib/kubelet/config.yaml", "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"),
			RancherArguments:       Absent[[]string](systemSlice+"kubelet.service", "no service of K3s or RKE2 runs"),
			ContainerRuntime:       Known(CRIO, systemSlice+"crio.service"), TuneDProfiles: Known("/etc/tuned/profiles", "/etc/tuned/profiles"),
		}
		if diff := cmp.Diff(want, facts.Software); diff != "" {
			t.Errorf("%s (-want +got):\n%s", root, diff)
		}
		merged := `{"apiVersion":"kubelet.config.k8s.io/v1beta1","evictionHard":{"memory.available":"100Mi"},"kind":"KubeletConfiguration","maxPods":30,"podPidsLimit":7}`
		if facts.Kubelet.Config.Value != merged {
			t.Errorf("%s: the kubelet has %+v, want %s", root, facts.Kubelet.Config, merged)
		}
		flags := []string{"--config=/var/lib/kubelet/config.yaml", "--config-dir=/var/lib/kubelet/kubelet.conf.d", "--root-dir=/data/kubelet", "--kube-reserved=cpu=1"}
		if diff := cmp.Diff(flags, facts.Kubelet.Flags.Value); diff != "" {
			t.Errorf("%s: flags (-want +got):\n%s", root, diff)
		}
	}
}

func holdsText(tree *memoryTree, text string) bool {
	for _, n := range tree.nodes {
		if strings.Contains(n.content, text) {
			return true
		}
	}
	return false
}

// TestUnreadableDropIn: what a drop-in says is not known, so neither is what the kubelet makes of it.
func TestUnreadableDropIn(t *testing.T) {
	for name, change := range map[string]func(map[string]string){
		"no configuration": func(files map[string]string) {
			files["/var/lib/kubelet/kubelet.conf.d/10-first.conf"] = "maxPods: 20\n"
		},
		"no file": func(files map[string]string) { delete(files, "/var/lib/kubelet/config.yaml") },
	} {
		t.Run(name, func(t *testing.T) {
			files := kubeadmHost()
			change(files)
			opened, err := Open(writeTree(t, files))
			must(t, err)
			defer func() { _ = opened.Close() }()
			facts, err := opened.Read(t.Context())
			must(t, err)
			if facts.Kubelet.Config.Known || facts.Kubelet.Config.Reason == "" {
				t.Errorf("the kubelet has %+v", facts.Kubelet.Config)
			}
		})
	}
}

// FuzzKubeletFiles reads any command line, drop-in and configuration: what is kept is read again as it was.
func FuzzKubeletFiles(f *testing.F) {
	f.Add("kubelet\x00--config\x00/a\x00--config-dir=/b\x00--node-ip=1", "[Service]\nEnvironment=\"KUBELET_CONFIG_ARGS=--config=/a\"\n", configurationHead, "a: {b: null}")
	f.Add("--config\x00", "Environment=KUBELET_CONFIG_ARGS=", "[1]", "{}")
	f.Fuzz(func(t *testing.T, line, dropIn, base, patch string) {
		kept := essentialFlags(strings.Split(line, "\x00"))
		if diff := cmp.Diff(kept, essentialFlags(kept)); diff != "" {
			t.Errorf("flags are read differently again:\n%s", diff)
		}
		if again := essentialDropIn(essentialDropIn(dropIn)); again != essentialDropIn(dropIn) {
			t.Errorf("the drop-in %q becomes %q and then %q", dropIn, essentialDropIn(dropIn), again)
		}
		merged, err := MergeKubeletConfigurations(base, patch)
		if err != nil {
			return
		}
		if again, err := MergeKubeletConfigurations(merged, patch); err != nil || again != merged && !strings.Contains(base+patch, OmittedFields) {
			t.Errorf("merging the same again gives %s, %v, not %s", again, err, merged)
		}
	})
}
