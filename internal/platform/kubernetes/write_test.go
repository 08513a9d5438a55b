// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubernetes

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/rendering"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

const configurationHead = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// goldenPlan is one of the planner's own golden plans.
func goldenPlan(t testing.TB) *plan.NodePlan {
	t.Helper()
	found := objects.GoldenPlans(t, filepath.Join("..", "..", "plan", "testdata"))["xeon-trading"]
	if found == nil {
		t.Fatal("no golden plan")
	}
	return found
}

// kubeadm is a host of kubeadm on Debian, with containerd and without TuneD.
func kubeadm() *host.Facts {
	f := &host.Facts{}
	f.Kernel.CommandLine = host.Known("BOOT_IMAGE=/vmlinuz root=UUID=1 ro quiet", "/proc/cmdline")
	f.Kernel.Release = host.Known("6.1.0-38-amd64", "/proc/sys/kernel/osrelease")
	f.Kernel.RealTime = host.Known(false, "/sys/kernel/realtime")
	f.Kernel.PageSizeBytes = host.Known(int64(4096), "/proc/self/smaps")
	f.Software = host.Software{
		OpenShift: host.Known(false, ""), BootLoader: host.Known(host.GRUB, "/boot/grub/grub.cfg"), KubeletUnit: host.Known("kubelet.service", ""),
		KubeletConfigArguments: host.Known("--config=/var/lib/kubelet/config.yaml", ""),
		ContainerRuntime:       host.Known(host.Containerd, ""), TuneDProfiles: host.Known("", "/usr/sbin/tuned"),
	}
	f.Kubelet.File = host.Known(configurationHead+"cgroupDriver: systemd\n", "/var/lib/kubelet/config.yaml")
	f.Kubelet.Flags = host.Known([]string{"--config=/var/lib/kubelet/config.yaml"}, "/proc/1/cmdline")
	f.Kubelet.DropInFolder = host.Known("", "/proc/1/cmdline")
	f.Kubelet.DropIns = host.Known[[]host.KubeletDropIn](nil, "")
	return f
}

// withFolder gives the kubelet a folder with a file in it.
func withFolder(f *host.Facts, folder, name, content string) *host.Facts {
	f.Kubelet.DropInFolder = host.Known(folder, "")
	f.Kubelet.DropIns = host.Known([]host.KubeletDropIn{{Path: folder + "/" + name, Content: host.Known(configurationHead+content, "")}}, folder)
	return f
}

// rocky has CRI-O, TuneD in its newer layout, and a kubelet with a folder of its own.
func rocky() *host.Facts {
	f := withFolder(kubeadm(), "/etc/kubernetes/kubelet.conf.d", "10-site.conf", "registryBurst: 77\ncpuManagerPolicyOptions: {distribute-cpus-across-numa: \"true\"}\n")
	f.Software.BootLoader = host.Known(host.GRUBWithEntries, "/boot/loader/entries")
	f.Software.ContainerRuntime, f.Software.TuneDProfiles = host.Known(host.CRIO, ""), host.Known("/etc/tuned/profiles", "")
	return f
}

func k3s() *host.Facts {
	f := withFolder(kubeadm(), "/var/lib/rancher/k3s/agent/etc/kubelet.conf.d", "00-k3s-defaults.conf", "cgroupDriver: systemd\n")
	f.Kubelet.File, f.Kubelet.Flags = host.Absent[string]("", "no such file"), host.Absent[[]string]("", "no process")
	f.Software.KubeletUnit, f.Software.KubeletConfigArguments = host.Known("k3s-agent.service", ""), host.Fact[string]{}
	return f
}

// rke2 is a server of RKE2: its kubelet is a process of its own without a file, and reads the folder only. The defaults are those that
// pkg/daemons/agent of K3s writes, and the flag is what a server of RKE2 1.34 shows; what else it shows bears on no field of a plan.
func rke2(more ...host.KubeletDropIn) *host.Facts {
	const folder = "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d"
	f := withFolder(kubeadm(), folder, "00-rke2-defaults.conf", "cgroupDriver: systemd\ncpuManagerReconcilePeriod: 10s\nfailSwapOn: false\n"+
		"evictionHard: {imagefs.available: 5%, nodefs.available: 5%}\nevictionMinimumReclaim: {imagefs.available: 10%, nodefs.available: 10%}\n"+
		"healthzBindAddress: 127.0.0.1\nstaticPodPath: /var/lib/rancher/rke2/agent/pod-manifests\n")
	f.Kubelet.File, f.Kubelet.Flags = host.Absent[string]("", "no such file"), host.Known([]string{"--config-dir=" + folder}, "/proc/2057/cmdline")
	f.Software.KubeletUnit, f.Software.KubeletConfigArguments = host.Known("rke2-server.service", ""), host.Fact[string]{}
	for _, file := range more {
		f.Kubelet.DropIns.Value = append(f.Kubelet.DropIns.Value, host.KubeletDropIn{Path: folder + "/" + file.Path, Content: file.Content})
	}
	return f
}

func rancherFile(name, content string) host.KubeletDropIn {
	return host.KubeletDropIn{Path: name, Content: host.Known(configurationHead+content, "")}
}

// TestRancher: K3s and RKE2 merge their defaults first, then what kubelet-arg gave as config and config-dir, which they copy, and then by name:
// ours wins over all of these, and is refused behind a file or a flag that says otherwise.
func TestRancher(t *testing.T) {
	given := []host.KubeletDropIn{
		rancherFile("10-cli-config.conf", "podPidsLimit: 7\nsystemReserved: {memory: 2Gi}\n"),
		rancherFile("20-cli-config-dir/99-last.conf", "podPidsLimit: 9\ncpuManagerPolicy: none\n"),
	}
	usual := rke2()
	usual.Kubelet.Flags.Value = append(usual.Kubelet.Flags.Value, "--root-dir=/var/lib/kubelet")
	flagged := rke2()
	flagged.Kubelet.Flags.Value = append(flagged.Kubelet.Flags.Value, "--kube-reserved=memory=1Gi")
	configured := func(facts *host.Facts, arguments ...string) *host.Facts {
		facts.Software.RancherArguments = host.Known(arguments, "/etc/rancher")
		return facts
	}
	hidden := rke2()
	hidden.Kubelet.DropIns = host.Absent[[]host.KubeletDropIn]("a hidden folder", "outside of the mounts")
	for name, tc := range map[string]struct {
		facts *host.Facts
		// merged are fields of what comes of it, refused and told are parts of findings.
		merged        map[string]any
		refused, told string
	}{
		"defaults alone":          {rke2(), map[string]any{"cpuManagerPolicy": "static", "failSwapOn": false, "cgroupDriver": "systemd"}, "", ""},
		"what kubelet-arg gave":   {rke2(given...), map[string]any{"cpuManagerPolicy": "static", "podPidsLimit": 9.0}, "", ""},
		"a file behind ours":      {rke2(rancherFile("99-site.conf", "cpuManagerPolicy: none\n")), nil, "sets cpuManagerPolicy otherwise", ""},
		"a flag of kubelet-arg":   {flagged, nil, "--kube-reserved=memory=1Gi, which has more weight", ""},
		"a folder that is hidden": {hidden, nil, "a hidden folder (outside of the mounts) cannot be read", "was not checked"},
		"its usual root":          {usual, map[string]any{"cpuManagerPolicy": "static"}, "", ""},
		"data elsewhere":          {configured(k3s(), "--data-dir=/data/k3s"), nil, "k3s was started with data-dir /data/k3s", ""},
		"a flag in a file":        {configured(rke2(), "--kubelet-arg=kube-reserved=memory=1Gi"), nil, "take it out of kubelet-arg, in /etc/rancher/rke2/config.yaml", ""},
		"files without arguments": {configured(rke2()), map[string]any{"cpuManagerPolicy": "static"}, "", ""},
		"flags that are hidden":   {k3s(), map[string]any{"cpuManagerPolicy": "static"}, "", "cannot be seen"},
	} {
		t.Run(name, func(t *testing.T) {
			written, err := Write(goldenPlan(t), tc.facts)
			if err != nil {
				t.Fatal(err)
			}
			told, isRefused := toldBy(written)
			if isRefused != (tc.refused != "") || !strings.Contains(told, tc.refused) || !strings.Contains(told, tc.told) {
				t.Errorf("refused %t, findings:\n%s", isRefused, told)
			}
			holdFields(t, written.KubeletConfiguration, tc.merged)
		})
	}
}

// toldBy are the messages of what was found, and whether nothing is written because of it.
func toldBy(written Writing) (told string, isRefused bool) {
	messages := make([]string, 0, len(written.Findings))
	for _, f := range written.Findings {
		messages = append(messages, f.Message)
		isRefused = isRefused || f.Severity == v1alpha1.SeverityCritical
	}
	return strings.Join(messages, "\n"), isRefused
}

// holdFields fails unless a configuration has fields with their values.
func holdFields(t *testing.T, configuration string, fields map[string]any) {
	t.Helper()
	merged := map[string]any{}
	if err := json.Unmarshal([]byte(configuration), &merged); err != nil && len(fields) > 0 {
		t.Fatal(err)
	}
	for field, want := range fields {
		if merged[field] != want {
			t.Errorf("%s is %v, want %v", field, merged[field], want)
		}
	}
}

// TestUnreadKubeletIsShown: what would be written on a host of which nobody could read the kubelet's configuration is printed with what was
// not checked, and no guard gets it; where something else stands in the way, too, nothing is printed.
func TestUnreadKubeletIsShown(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*host.Facts)
		isShown bool
	}{
		"unread": {func(*host.Facts) {}, true},
		"unread, and a flag": {func(f *host.Facts) {
			f.Kubelet.Flags = host.Known([]string{"--kube-reserved=memory=1Gi"}, "")
		}, false},
		"no configuration": {func(f *host.Facts) { f.Kubelet.File = host.Known("a: [", "") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			facts, p := kubeadm(), goldenPlan(t)
			facts.Kubelet.File = host.Absent[string]("/var/lib/kubelet/config.yaml", "permission denied")
			tc.change(facts)
			bundles, err := Render(rendering.Request{
				Shapes: []fleet.Shape{{Hash: p.Hash(), Plan: p, Nodes: []string{"a"}}}, Namespace: "lowlatency", Facts: map[string]*host.Facts{"a": facts},
			})
			if err != nil {
				t.Fatal(err)
			}
			got := bundles[0]
			if len(got.Operations) > 0 || got.Host.Refused == tc.isShown || len(got.Host.Files) > 0 != tc.isShown || len(got.Host.KernelArguments) > 0 != tc.isShown {
				t.Errorf("%d operations, refused: %t, %d files, %v", len(got.Operations), got.Host.Refused, len(got.Host.Files), got.Host.Findings)
			}
			if isTold := strings.Contains(strings.Join(got.Host.Findings, "\n"), "Critical: the kubelet: "); !isTold {
				t.Errorf("findings: %v", got.Host.Findings)
			}
		})
	}
}

// TestGolden compares every byte of what would be written with a file that a person has read.
func TestGolden(t *testing.T) {
	for name, facts := range map[string]*host.Facts{"kubeadm": kubeadm(), "rocky": rocky(), "k3s": k3s()} {
		t.Run(name, func(t *testing.T) {
			p := goldenPlan(t)
			bundles, err := Render(rendering.Request{
				Shapes: []fleet.Shape{{Hash: p.Hash(), Plan: p, Nodes: []string{"a", "b"}}}, Namespace: "lowlatency",
				Facts: map[string]*host.Facts{"a": facts, "b": facts},
			})
			if err != nil || len(bundles) != 1 {
				t.Fatalf("%d bundles, %v", len(bundles), err)
			}
			text, err := yaml.Marshal(bundles[0].Host)
			if err != nil {
				t.Fatal(err)
			}
			golden.Assert(t, string(text), name+".yaml")
			kinds := []string{"ConfigMap"}
			if name == "rocky" {
				kinds = append(kinds, "RuntimeClass")
			}
			got := make([]string, 0, len(bundles[0].Objects))
			for _, object := range bundles[0].Objects {
				got = append(got, object.GetKind())
			}
			if diff := cmp.Diff(kinds, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

// refusal is a change of a host and its plan with which nothing is written, and what is said then.
type refusal struct {
	change func(*host.Facts, *plan.NodePlan)
	want   string
}

// kubeletRefusals are those of the files of a kubelet.
func kubeletRefusals() map[string]refusal {
	return map[string]refusal{
		"a kubelet whose file nobody can read": {
			func(f *host.Facts, _ *plan.NodePlan) {
				f.Kubelet.File = host.Absent[string]("/var/lib/kubelet/config.yaml", "permission denied")
			}, "/var/lib/kubelet/config.yaml (permission denied) cannot be read",
		},
		"a kubelet with one file that nobody can read": {
			func(f *host.Facts, _ *plan.NodePlan) {
				withFolder(f, "/etc/kubernetes/kubelet.conf.d", "10-site.conf", "")
				f.Kubelet.DropIns.Value[0].Content = host.Absent[string]("", "is a folder")
			}, "/etc/kubernetes/kubelet.conf.d/10-site.conf (is a folder) cannot be read",
		},
		"a file that is none": {
			func(f *host.Facts, _ *plan.NodePlan) { f.Kubelet.File.Value = "a: [" }, "a file of its configuration is not a KubeletConfiguration",
		},
		"a control group of another file": {
			func(f *host.Facts, _ *plan.NodePlan) { f.Kubelet.File.Value += "kubeReservedCgroup: /kube.slice\n" },
			`kubeReservedCgroup is "/kube.slice", which the kubelet refuses beside reservedSystemCPUs`,
		},
		"a control group of the system": {
			func(f *host.Facts, _ *plan.NodePlan) {
				withFolder(f, "/etc/kubernetes/kubelet.conf.d", "10-site.conf", "systemReservedCgroup: /system.slice\nenforceNodeAllocatable: [pods, system-reserved]\n")
			}, `systemReservedCgroup is "/system.slice", which`,
		},
		"a reservation that is enforced": {
			func(f *host.Facts, _ *plan.NodePlan) {
				f.Kubelet.File.Value += "enforceNodeAllocatable: [pods, kube-reserved-compressible]\n"
			}, "enforceNodeAllocatable has kube-reserved-compressible, which needs kubeReservedCgroup",
		},
		"a gate that is off": {
			func(f *host.Facts, _ *plan.NodePlan) {
				f.Kubelet.File.Value += "featureGates: {CPUManagerPolicyOptions: false}\n"
			}, "needs the feature gate CPUManagerPolicyOptions, which is off",
		},
	}
}

// TestRefusals: nothing is written on a host that could not be brought back, or would not come up.
func TestRefusals(t *testing.T) {
	cases := map[string]refusal{
		"a kernel that is not real-time": {func(_ *host.Facts, p *plan.NodePlan) { p.Kernel.Type = v1alpha1.KernelRealTime }, "needs a real-time kernel"},
		"small pages":                    {func(_ *host.Facts, p *plan.NodePlan) { p.Kernel.PageSize = v1alpha1.PageSize64Ki }, "needs a kernel with 64 KiB pages"},
		"arguments of somebody else": {
			func(f *host.Facts, _ *plan.NodePlan) {
				f.Kernel.CommandLine = host.Known("root=UUID=1 isolcpus=4-7", "/proc/cmdline")
			}, "it already has isolcpus=4-7",
		},
		"a kubelet that nobody can give a folder": {
			func(f *host.Facts, _ *plan.NodePlan) { f.Software.KubeletConfigArguments = host.Fact[string]{} }, "its service is not kubeadm's",
		},
		"an old K3s": {
			func(f *host.Facts, _ *plan.NodePlan) { f.Software.KubeletUnit = host.Known("k3s.service", "") }, "k3s.service has no folder",
		},
		"a folder elsewhere": {
			func(f *host.Facts, _ *plan.NodePlan) { f.Kubelet.DropInFolder = host.Known("/opt/kubelet", "") }, "none of the folders",
		},
		"a flag": {
			func(f *host.Facts, _ *plan.NodePlan) {
				f.Kubelet.Flags = host.Known([]string{"--kube-reserved=memory=1Gi"}, "")
			}, "--kube-reserved=memory=1Gi, which has more weight",
		},
		"a state elsewhere": {
			func(f *host.Facts, _ *plan.NodePlan) {
				f.Kubelet.Flags = host.Known([]string{"--root-dir=/data/kubelet"}, "")
			}, "--root-dir=/data/kubelet, and what it remembers there, such as cpu_manager_state, is removed in /var/lib/kubelet only",
		},
		"a file behind ours": {
			func(f *host.Facts, _ *plan.NodePlan) {
				withFolder(f, "/etc/kubernetes/kubelet.conf.d", "99-site.conf", "systemReserved: {memory: 2Gi}\n")
			}, "systemReserved otherwise",
		},
		"memory that does not add up": {
			func(f *host.Facts, _ *plan.NodePlan) {
				withFolder(f, "/etc/kubernetes/kubelet.conf.d", "99-site.conf", "systemReserved: {memory: 2Gi}\n")
			}, "adds up to",
		},
	}
	maps.Copy(cases, kubeletRefusals())
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			facts, p := kubeadm(), goldenPlan(t)
			tc.change(facts, p)
			got, err := Write(p, facts)
			if err != nil {
				t.Fatal(err)
			}
			if !got.Refused() || len(got.Operations) > 0 {
				t.Errorf("refused: %t, with %d operations", got.Refused(), len(got.Operations))
			}
			if !slices.ContainsFunc(got.Findings, func(f plan.Finding) bool {
				return f.Severity == v1alpha1.SeverityCritical && strings.Contains(f.Message, tc.want)
			}) {
				t.Errorf("no critical finding says %q: %+v", tc.want, got.Findings)
			}
		})
	}
}

// TestProtectedKernel: a kubelet with protectKernelDefaults does not start where the plan sets what it wants to find otherwise. Our own argument for the
// way back is what it wants to find.
func TestProtectedKernel(t *testing.T) {
	argument := func(text string) func(*plan.NodePlan) {
		return func(p *plan.NodePlan) { p.KernelArguments = append(p.KernelArguments, plan.Argument{Text: text}) }
	}
	setting := func(name, value string) func(*plan.NodePlan) {
		return func(p *plan.NodePlan) { p.Sysctls = append(p.Sysctls, plan.Setting{Name: name, Value: value}) }
	}
	nothing := func(*plan.NodePlan) {}
	for name, tc := range map[string]struct {
		file, flag string
		change     func(*plan.NodePlan)
		says       string
	}{
		"nothing of the kind":             {"protectKernelDefaults: true\n", "", nothing, ""},
		"the same":                        {"protectKernelDefaults: true\n", "", setting("vm.overcommit_memory", "1"), ""},
		"another value of the user":       {"protectKernelDefaults: true\n", "", setting("vm.overcommit_memory", "2"), "the plan has vm.overcommit_memory=2, and a kubelet with protectKernelDefaults starts with vm.overcommit_memory=1 only"},
		"the same in another notation":    {"protectKernelDefaults: true\n", "", setting("vm.overcommit_memory", "0x1"), ""},
		"the same argument, written so":   {"protectKernelDefaults: true\n", "", argument("panic=0xa"), ""},
		"one that it does not look at":    {"protectKernelDefaults: true\n", "", setting("net.ipv4.tcp_fastopen", "3"), ""},
		"an argument of the user":         {"protectKernelDefaults: true\n", "", argument("panic=30"), "the plan has panic=30, and a kubelet with protectKernelDefaults starts with panic=10 only"},
		"a kubelet that sets them itself": {"", "", setting("vm.overcommit_memory", "2"), ""},
		"a flag":                          {"", "--protect-kernel-defaults", argument("panic=30"), "the plan has panic=30"},
		"a flag that takes it back":       {"protectKernelDefaults: true\n", "--protect-kernel-defaults=false", argument("panic=30"), ""},
		"a flag alone":                    {"", "--protect-kernel-defaults=true", nothing, ""},
		"one that was told to":            {"protectKernelDefaults: false\n", "", argument("panic=30"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			facts, p := kubeadm(), goldenPlan(t)
			facts.Kubelet.File.Value += tc.file
			facts.Kubelet.Flags.Value = append(facts.Kubelet.Flags.Value, host.KubeletFlags("kubelet\x00"+tc.flag+"\x00--v=2\x00")...)
			tc.change(p)
			written, err := Write(p, facts)
			if err != nil {
				t.Fatal(err)
			}
			told, isRefused := toldBy(written)
			if isRefused != (tc.says != "") || !strings.Contains(told, tc.says) {
				t.Errorf("refused: %t, findings:\n%s", isRefused, told)
			}
		})
	}
	own := operation.AddKernelArguments("nohz=on").Arguments
	if !slices.Contains(own, panicParameter+protectedParameters()[kernelPanic]) {
		t.Errorf("our own arguments %q keep such a kubelet from starting", own)
	}
}

// TestFindings say what a host cannot have, and do not keep it from the rest.
func TestFindings(t *testing.T) {
	cases := map[string]struct {
		change func(*host.Facts, *plan.NodePlan)
		want   string
	}{
		"interrupts that follow pods": {func(_ *host.Facts, p *plan.NodePlan) {
			p.ContainerRuntime.PodRequests = append(p.ContainerRuntime.PodRequests, plan.RequestInterrupts)
		}, "does not take interrupts off"},
		"isolation that follows pods": {func(_ *host.Facts, p *plan.NodePlan) { p.CPUs.Isolation = v1alpha1.IsolationPerPod }, "nothing isolates them"},
		"queues without TuneD":        {func(_ *host.Facts, p *plan.NodePlan) { p.Network.Queues = 2 }, "set by TuneD"},
		"no runtime":                  {func(f *host.Facts, _ *plan.NodePlan) { f.Software.ContainerRuntime.Known = false }, "none is known by its service"},
		"a boot loader without trial": {func(f *host.Facts, _ *plan.NodePlan) {
			f.Software.BootLoader = host.Known(host.Extlinux, "")
		}, "extlinux cannot try"},
		"deployments without a trial": {func(f *host.Facts, _ *plan.NodePlan) {
			f.Software.BootLoader = host.Known(host.OSTree, "")
		}, "OSTree cannot try"},
		"an unknown boot loader": {func(f *host.Facts, _ *plan.NodePlan) { f.Software.BootLoader.Known = false }, "not known by its files"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			facts, p := kubeadm(), goldenPlan(t)
			tc.change(facts, p)
			got, err := Write(p, facts)
			if err != nil || got.Refused() {
				t.Fatalf("%v, %+v", err, got.Findings)
			}
			if !slices.ContainsFunc(got.Findings, func(f plan.Finding) bool { return strings.Contains(f.Message, tc.want) }) {
				t.Errorf("no finding says %q: %+v", tc.want, got.Findings)
			}
		})
	}
}

// withoutKubelet takes the kubelet off a host.
func withoutKubelet(f *host.Facts) *host.Facts {
	f.Software.KubeletUnit, f.Software.KubeletConfigArguments = host.Absent[string]("", "none"), host.Absent[string]("", "none")
	f.Kubelet = host.Kubelet{}
	return f
}

// TestHostWithoutKubelet: a plain server gets the rest of its plan; a kubelet of which nobody has reported anything is no such server.
func TestHostWithoutKubelet(t *testing.T) {
	facts := withoutKubelet(kubeadm())
	if unreported, err := Write(goldenPlan(t), facts); err != nil || !unreported.Refused() {
		t.Errorf("%v, refused: %t, want a refusal of a host that was not read whole", err, unreported.Refused())
	}
	facts.Software.NoKubelet = host.Known(true, "")
	got, err := Write(goldenPlan(t), facts)
	if err != nil || got.Refused() || len(got.Operations) == 0 {
		t.Fatalf("%v, %d operations, %+v", err, len(got.Operations), got.Findings)
	}
	expectNothingOfKubelet(t, got.Operations)
	if !slices.ContainsFunc(got.Findings, func(f plan.Finding) bool {
		return f.Severity == v1alpha1.SeverityLow && strings.Contains(f.Message, "no kubelet: its part is left out")
	}) {
		t.Errorf("no finding says that the kubelet's part is left out: %+v", got.Findings)
	}
}

// notAfter are the services of kubelets that may start before a unit or drop-in which is to come before one of them.
func notAfter(content string) []string {
	_, before, found := strings.Cut(content, "\nBefore=")
	before, _, _ = strings.Cut(before, "\n")
	if !found || !slices.Contains(strings.Fields(before), kubeletService) {
		return nil
	}
	return slices.DeleteFunc(host.KubeletUnits(), func(unit string) bool { return slices.Contains(strings.Fields(before), unit) })
}

// expectNothingOfKubelet: nothing is a kubelet's, and nothing waits for one. In the lab, no hugepages were reserved, because units waited for a
// kubelet to require them.
func expectNothingOfKubelet(t *testing.T, operations []operation.Operation) {
	t.Helper()
	started := false
	for i := range operations {
		o := &operations[i]
		if isKubelets(o) {
			t.Errorf("%s %s%s is the kubelet's", o.Kind, o.Name, o.Path)
		}
		if missing := notAfter(o.Content); len(missing) > 0 {
			t.Errorf("%s is ordered before %s and not before %q:\n%s", o.Name, kubeletService, missing, o.Content)
		}
		if strings.Contains(o.Content, "RequiredBy="+kubeletService) {
			t.Errorf("%s is started by nobody:\n%s", o.Name, o.Content)
		}
		started = started || strings.Contains(o.Name, "hugepages") && strings.Contains(o.Content, "WantedBy=multi-user.target")
	}
	if !started {
		t.Error("the boot does not start the unit that reserves hugepages")
	}
}

func isKubelets(o *operation.Operation) bool {
	return o.Kind == operation.KubeletDropIn || o.Kind == operation.StateFile || o.Path == stateCleanup || o.Name == kubeletService
}

// TestWayBackByHand: the guard tries arguments where nobody but a person brings the host back only when the plan says so.
func TestWayBackByHand(t *testing.T) {
	p := goldenPlan(t)
	for _, fallback := range []operation.Fallback{"", operation.ByHandAccepted} {
		p.Kernel.BootFallback = v1alpha1.BootFallback(fallback)
		got, err := Write(p, kubeadm())
		if err != nil {
			t.Fatal(err)
		}
		if is := operation.FallbackOf(got.Operations); is != fallback {
			t.Errorf("the plan says %q and the operation %q", fallback, is)
		}
	}
}

// TestOurOwnArgumentsAreNoConflict: behind our marker, what the line has is ours.
func TestOurOwnArgumentsAreNoConflict(t *testing.T) {
	facts, p := kubeadm(), goldenPlan(t)
	facts.Kernel.CommandLine = host.Known("root=UUID=1 isolcpus=4-7 "+operation.Marker([]string{"isolcpus=4-7"}), "/proc/cmdline")
	got, err := Write(p, facts)
	if err != nil || got.Refused() {
		t.Errorf("%v, %+v", err, got.Findings)
	}
}

// TestOptionsOfOthersAreRemoved: the kubelet merges maps by name, and an option that the plan does not have would stay.
func TestOptionsOfOthersAreRemoved(t *testing.T) {
	got, err := Write(goldenPlan(t), rocky())
	if err != nil {
		t.Fatal(err)
	}
	var merged struct {
		RegistryBurst           int
		CPUManagerPolicyOptions map[string]string
	}
	if err := yaml.Unmarshal([]byte(got.KubeletConfiguration), &merged); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"full-pcpus-only": "true"}, merged.CPUManagerPolicyOptions); diff != "" || merged.RegistryBurst != 77 {
		t.Errorf("registryBurst %d, options (-want +got):\n%s", merged.RegistryBurst, diff)
	}
}

// TestWhatIsWrittenDependsOnTheHost: hosts of one plan with different software are written apart.
func TestWhatIsWrittenDependsOnTheHost(t *testing.T) {
	p := goldenPlan(t)
	request := rendering.Request{
		Shapes: []fleet.Shape{{Hash: p.Hash(), Plan: p, Nodes: []string{"a", "b", "c"}}}, Namespace: "lowlatency",
		Facts: map[string]*host.Facts{"a": kubeadm(), "b": rocky(), "c": kubeadm()},
	}
	bundles, err := Render(request)
	if err != nil {
		t.Fatal(err)
	}
	got := make([][]string, 0, len(bundles))
	for _, bundle := range bundles {
		got = append(got, bundle.Nodes)
	}
	if diff := cmp.Diff([][]string{{"a", "c"}, {"b"}}, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	delete(request.Facts, "c")
	if _, err := Render(request); err == nil || !strings.Contains(err.Error(), "node c depends on its software") {
		t.Errorf("error of a node of which an inventory alone is known: %v", err)
	}
}
