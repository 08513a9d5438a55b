// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cgroup

import (
	"strings"
	"testing"
)

const (
	uid      = "6f1e9a52-0c3b-4d8e-9f00-1234567890ab"
	slice    = "6f1e9a52_0c3b_4d8e_9f00_1234567890ab"
	static   = "0123456789abcdef0123456789abcdef"
	contents = "4a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"
)

func TestPath(t *testing.T) {
	cases := map[string]struct{ text, want, unit, pod string }{
		"a service under version 2":      {"0::/system.slice/tuned.service\n", "/system.slice/tuned.service", "tuned.service", ""},
		"process 1":                      {"0::/init.scope\n", "/init.scope", "init.scope", ""},
		"the root group":                 {"0::/\n", "/", "", ""},
		"CRI-O with the systemd driver":  {"0::/kubepods.slice/kubepods-pod" + slice + ".slice/crio-" + contents + ".scope/container\n", "", "crio-" + contents + ".scope", uid},
		"containerd, burstable":          {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + slice + ".slice/cri-containerd-" + contents + ".scope\n", "", "cri-containerd-" + contents + ".scope", uid},
		"containerd, cgroupfs driver":    {"0::/kubepods/pod" + uid + "/" + contents + "\n", "", contents, uid},
		"best effort, cgroupfs":          {"0::/kubepods/besteffort/pod" + uid + "/crio-" + contents + "\n", "", "crio-" + contents, uid},
		"drivers that differ":            {"0::/system.slice/containerd.service/kubepods-besteffort-pod" + slice + ".slice:cri-containerd:" + contents + "\n", "", "containerd.service", uid},
		"a kubelet below another group":  {"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + slice + ".slice/cri-containerd-" + contents + ".scope\n", "", "cri-containerd-" + contents + ".scope", uid},
		"a static pod":                   {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + static + ".slice/crio-" + contents + ".scope\n", "", "crio-" + contents + ".scope", static},
		"from a namespace, systemd":      {"0::/../../../kubepods-pod" + slice + ".slice/crio-" + contents + ".scope\n", "", "crio-" + contents + ".scope", uid},
		"from a namespace, cgroupfs":     {"0::/../../../pod" + uid + "/" + contents + "\n", "", contents, uid},
		"from a namespace, a service":    {"0::/../../../../system.slice/chronyd.service\n", "", "chronyd.service", ""},
		"a deleted group":                {"0::/kubepods/pod" + uid + "/" + contents + " (deleted)\n", "", contents + " (deleted)", uid},
		"version 1, a pod":               {"12:cpuset:/kubepods.slice/kubepods-pod" + slice + ".slice/crio-" + contents + ".scope\n1:name=systemd:/kubepods.slice/kubepods-pod" + slice + ".slice/crio-" + contents + ".scope\n0::/\n", "/kubepods.slice/kubepods-pod" + slice + ".slice/crio-" + contents + ".scope", "crio-" + contents + ".scope", uid},
		"version 1, a pod by one line":   {"12:cpuset:/kubepods/pod" + uid + "/" + contents + "\n1:name=systemd:/system.slice/containerd.service\n", "/kubepods/pod" + uid + "/" + contents, contents, uid},
		"version 1, a service":           {"12:cpuset:/\n5:cpu,cpuacct:/system.slice\n1:name=systemd:/system.slice/irqbalance.service\n0::/\n", "/system.slice/irqbalance.service", "irqbalance.service", ""},
		"a path with colons":             {"0::/system.slice/a:b.service\n", "/system.slice/a:b.service", "a:b.service", ""},
		"podman's pods are no kubelet's": {"0::/machine.slice/machine-libpod_pod_" + contents + ".slice/libpod-" + contents + ".scope\n", "", "libpod-" + contents + ".scope", ""},
		"a service with a pod's name":    {"0::/system.slice/my-pod" + uid + ".service\n", "", "my-pod" + uid + ".service", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Path(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want != "" && got != tc.want {
				t.Errorf("path %q, want %q", got, tc.want)
			}
			if unit := Unit(got); unit != tc.unit {
				t.Errorf("unit %q, want %q", unit, tc.unit)
			}
			if pod := Pod(got); pod != tc.pod {
				t.Errorf("pod %q, want %q", pod, tc.pod)
			}
		})
	}
}

func TestPathOfNothing(t *testing.T) {
	for _, text := range []string{"", "\n", "0::", "nonsense", "0::relative"} {
		if got, err := Path(text); err == nil {
			t.Errorf("%q gives %q", text, got)
		}
	}
}

func FuzzPath(f *testing.F) {
	f.Add("0::/kubepods/pod" + uid + "/" + contents)
	f.Add("12:cpuset:/\n1:name=systemd:/system.slice/a.service\n0::/\n")
	f.Fuzz(func(t *testing.T, text string) {
		path, err := Path(text)
		if err != nil {
			return
		}
		if !strings.HasPrefix(path, "/") || !strings.Contains(text, path) {
			t.Errorf("%q gives %q", text, path)
		}
		if pod := Pod(path); len(pod) != 0 && len(pod) != 32 && len(pod) != 36 {
			t.Errorf("%q gives pod %q", text, pod)
		}
	})
}
