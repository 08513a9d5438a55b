// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// changesOf writes changes as "what: from -> to (reboot)".
func changesOf(c Changes) []string {
	return list(c.Items, func(c Change) string {
		return fmt.Sprintf("%s: %s -> %s (%s)", c.What, c.From, c.To, c.Reboot)
	})
}

func TestDiff(t *testing.T) {
	cases := map[string]struct {
		from, to   []change
		want       []string
		wantReboot v1alpha1.RebootRequirement
	}{
		"nothing": {wantReboot: v1alpha1.RebootNotRequired},
		"a kernel parameter": {
			to:         []change{parameter("net.core.busy_poll", "50")},
			want:       []string{"sysctl net.core.busy_poll:  -> 50 (NotRequired)"},
			wantReboot: v1alpha1.RebootNotRequired,
		},
		"a kernel argument goes, another changes": {
			from:       []change{extra("audit=0", "mitigations=off")},
			to:         []change{extra("mitigations=auto")},
			want:       []string{"kernel argument mitigations: mitigations=off -> mitigations=auto (Required)", "kernel argument audit: audit=0 ->  (Required)"},
			wantReboot: v1alpha1.RebootRequired,
		},
		"another notation of the same CPUs": {
			from: []change{extra("kthread_cpus=0,1")}, to: []change{extra("kthread_cpus=0-1")},
			wantReboot: v1alpha1.RebootNotRequired,
		},
		"the order of arguments": {
			from: []change{extra("audit=0", "psi=0")}, to: []change{extra("psi=0", "audit=0")},
			wantReboot: v1alpha1.RebootNotRequired,
		},
		"the real-time kernel": {
			to: []change{func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Kernel.Type = v1alpha1.KernelRealTime }},
			want: []string{"kernel type: Default -> RealTime (Required)",
				"kernel argument rcutree.kthread_prio:  -> rcutree.kthread_prio=11 (Required)",
				"kernel argument transparent_hugepage: transparent_hugepage=never ->  (Required)",
				"sysctl kernel.numa_balancing: 0 ->  (NotRequired)",
				"file /sys/kernel/mm/transparent_hugepage/enabled: never ->  (NotRequired)"},
			wantReboot: v1alpha1.RebootRequired,
		},
		"more hugepages": {
			from: []change{hugepages(v1alpha1.HugepageReservation{Size: "1Gi", Count: 2}, v1alpha1.HugepageReservation{Size: "2Mi", Count: 4})},
			to:   []change{hugepages(v1alpha1.HugepageReservation{Size: "1Gi", Count: 3}, v1alpha1.HugepageReservation{Size: "2Mi", Count: 4})},
			want: []string{"kernel argument hugepages of 1G: hugepages=2 -> hugepages=3 (Required)"}, wantReboot: v1alpha1.RebootRequired,
		},
		"the kubelet": {
			to:         []change{configuration("maxPods: 100")},
			want:       []string{"kubelet setting maxPods:  -> 100 (NotRequired)"},
			wantReboot: v1alpha1.RebootNotRequired,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			changes := Diff(planOf(t, small(4, 1), tc.from...), planOf(t, small(4, 1), tc.to...))
			if diff := cmp.Diff(tc.want, changesOf(changes)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if got := changes.Reboot(); got != tc.wantReboot {
				t.Errorf("reboot %s, want %s", got, tc.wantReboot)
			}
			for _, c := range changes.Items {
				if c.Why == "" {
					t.Errorf("%s does not say why", c.What)
				}
			}
		})
	}
}

// What each kind of thing in a plan takes to come into force, one at a time.
func TestDiffOfEveryPart(t *testing.T) {
	base := func() *NodePlan {
		p := planOf(t, xeon(), rich)
		p.ContainerRuntime.PodRequests = []PodRequest{RequestCPUQuota}
		return p
	}
	cases := map[string]struct {
		change func(*NodePlan)
		want   string
	}{
		"kernel":         {func(p *NodePlan) { p.Kernel.Type = "x" }, "kernel type (Required): another kernel has to be booted"},
		"page size":      {func(p *NodePlan) { p.Kernel.PageSize = "x" }, "kernel page size (Required): another kernel has to be booted"},
		"housekeeping":   {func(p *NodePlan) { p.CPUs.Housekeeping = set("7") }, "housekeeping CPUs (Required): " + whyCommandLine},
		"isolated":       {func(p *NodePlan) { p.CPUs.Isolated = set("7") }, "isolated CPUs (Required): " + whyCommandLine},
		"shared":         {func(p *NodePlan) { p.CPUs.Shared = set("7") }, "shared CPUs (NotRequired): " + whyRuntime},
		"data plane":     {func(p *NodePlan) { p.CPUs.DataPlane = set("7") }, "data plane CPUs (NotRequired): " + whyKubelet},
		"offline":        {func(p *NodePlan) { p.CPUs.Offline = set("7") }, "offline CPUs (NotRequired): " + whyHotplug},
		"interrupts":     {func(p *NodePlan) { p.Interrupts.Placement = "x" }, "interrupt placement (NotRequired): " + whyAtOnce},
		"affinity":       {func(p *NodePlan) { p.Interrupts.DefaultAffinity = set("7") }, "default interrupt affinity (NotRequired): " + whyAtOnce},
		"irqbalance":     {func(p *NodePlan) { p.Interrupts.Banned = set("7") }, "irqbalance (NotRequired): " + whyAtOnce},
		"idle states":    {func(p *NodePlan) { p.Power.IdleStates = "x" }, "idle states (NotRequired): " + whyAtOnce},
		"governor":       {func(p *NodePlan) { p.Power.Governor = "x" }, "governor (NotRequired): " + whyAtOnce},
		"queues":         {func(p *NodePlan) { p.Network.Queues = 7 }, "NIC queues (NotRequired): " + whyAtOnce},
		"steering":       {func(p *NodePlan) { p.Network.Steering = "x" }, "receive packet steering (NotRequired): " + whyAtOnce},
		"sysctl":         {func(p *NodePlan) { p.Sysctls[0].Value = "x" }, "sysctl " + base().Sysctls[0].Name + " (NotRequired): " + whyAtOnce},
		"sysfs":          {func(p *NodePlan) { p.Sysfs[0].Value = "x" }, "file " + base().Sysfs[0].Name + " (NotRequired): " + whyAtOnce},
		"kubelet":        {func(p *NodePlan) { p.Kubelet.MemoryManagerPolicy = "x" }, "kubelet setting memoryManagerPolicy (NotRequired): " + whyKubelet},
		"infrastructure": {func(p *NodePlan) { p.ContainerRuntime.InfrastructureCPUs = set("7") }, "container runtime: CPUs of infrastructure containers (NotRequired): " + whyRuntime},
		"platform's pods": {func(p *NodePlan) { p.ContainerRuntime.WorkloadPartitioning = v1alpha1.WorkloadPartitioningEnabled },
			"container runtime: CPUs of the platform's pods (NotRequired): " + whyRuntime},
		"exec":           {func(p *NodePlan) { p.ContainerRuntime.ExecPlacement = "x" }, "container runtime: placement of exec processes (NotRequired): " + whyRuntime},
		"pod requests":   {func(p *NodePlan) { p.ContainerRuntime.PodRequests = nil }, "container runtime: requests of pods (NotRequired): " + whyRuntime},
		"file":           {func(p *NodePlan) { p.Files[0].Content += "x" }, "file " + base().Files[0].Path + " (NotRequired): " + whyAtOnce},
		"mode of a file": {func(p *NodePlan) { p.Files[0].Mode++ }, "file " + base().Files[0].Path + " (NotRequired): " + whyAtOnce},
		"unit":           {func(p *NodePlan) { p.Units[0].Masked = !p.Units[0].Masked }, "unit " + base().Units[0].Name + " (NotRequired): " + whyUnit},
		"module":         {func(p *NodePlan) { p.UnloadModules = p.UnloadModules[:1] }, "kernel module ip_tables (NotRequired): " + whyAtOnce},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			changed := base()
			tc.change(changed)
			got := list(Diff(base(), changed).Items, func(c Change) string { return fmt.Sprintf("%s (%s): %s", c.What, c.Reboot, c.Why) })
			if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDescribeUnit(t *testing.T) {
	for want, unit := range map[string]Unit{
		"":                        {},
		"masked":                  {Masked: true},
		"enabled":                 {Enabled: true},
		"enabled, " + digest("x"): {Enabled: true, Content: "x"},
		"a.conf " + digest("1") + ", b.conf " + digest("2"): {DropIns: map[string]string{"b.conf": "2", "a.conf": "1"}},
	} {
		if got := describeUnit(unit); got != want {
			t.Errorf("%+v is %q, want %q", unit, got, want)
		}
	}
}

func TestDiffOfHugepagesOnNUMANodes(t *testing.T) {
	pages := func(size v1alpha1.HugepageSize, count int32) change {
		return hugepages(v1alpha1.HugepageReservation{Size: size, Count: count, NUMANode: new(int32(1))})
	}
	for size, want := range map[v1alpha1.HugepageSize]v1alpha1.RebootRequirement{
		"2Mi": v1alpha1.RebootNotRequired, "1Gi": v1alpha1.RebootRequired,
	} {
		changes := Diff(planOf(t, xeon(), pages(size, 4)), planOf(t, xeon(), pages(size, 5)))
		if got := changes.Reboot(); got != want || !strings.Contains(strings.Join(changesOf(changes), "\n"), "NUMA node 1: 4 -> 5") {
			t.Errorf("%s: reboot %s, want %s: %v", size, got, want, changesOf(changes))
		}
	}
}

func TestDiffWithoutAPlan(t *testing.T) {
	plan := planOf(t, xeon(), rich)
	added, removed := Diff(nil, plan), Diff(plan, nil)
	if len(added.Items) != len(removed.Items) || added.Reboot() != v1alpha1.RebootRequired {
		t.Errorf("%d items are added, %d removed; reboot %s", len(added.Items), len(removed.Items), added.Reboot())
	}
	for _, c := range added.Items {
		if c.From != "" {
			t.Errorf("%s comes from %q", c.What, c.From)
		}
	}
	if len(Diff(nil, nil).Items)+len(DiffRunning(nil, nil).Items) != 0 {
		t.Error("no plans differ")
	}
}

// hostWith are the facts of a host that runs a plan for small(4, 1).
func hostWith(plan *NodePlan) *host.Facts {
	facts := &host.Facts{
		Kernel: host.Kernel{
			RealTime:      host.Known(false, "/sys/kernel/realtime"),
			CommandLine:   host.Known("root=/dev/sda1 skew_tick=1 "+strings.Join(arguments(plan), " ")+" quiet", "/proc/cmdline"),
			PageSizeBytes: host.Known(int64(4096), "/proc/self/smaps"),
		},
		CPUs:       host.CPUs{Online: host.Known(set("0-3"), "online"), List: []host.CPU{{}, {}}},
		Interrupts: host.Interrupts{DefaultAffinity: host.Known(set("0"), "/proc/irq/default_smp_affinity")},
		Settings:   map[string]host.Fact[string]{},
		Kubelet: host.Kubelet{Config: host.Known(`
cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: "true"}
cpuManagerReconcilePeriod: 5s
evictionHard: {imagefs.available: 15%, imagefs.inodesFree: 5%, memory.available: 100Mi, nodefs.available: 10%, nodefs.inodesFree: 5%}
kubeReserved: {memory: 500Mi}
memoryManagerPolicy: Static
reservedMemory: [{numaNode: 0, limits: {memory: 1100Mi}}]
reservedSystemCPUs: "0-0"
systemReserved: {memory: 500Mi}
topologyManagerPolicy: single-numa-node
topologyManagerScope: pod
`, "/etc/kubernetes/kubelet.conf")},
	}
	facts.CPUs.List[0].Frequency.Governor = host.Known("performance", "scaling_governor")
	for _, s := range plan.Sysctls {
		facts.Settings["/proc/sys/"+strings.ReplaceAll(s.Name, ".", "/")] = host.Known(s.Value, "")
	}
	for _, s := range plan.Sysfs {
		facts.Settings[s.Name] = host.Known(s.Value, "")
	}
	facts.Settings["/sys/kernel/mm/transparent_hugepage/enabled"] = host.Known("always madvise [never]", "")
	facts.Settings["/sys/devices/virtual/workqueue/cpumask"] = host.Known("00000001", "")
	return facts
}

// argumentChanges are those of the command line alone.
func argumentChanges(facts *host.Facts, plan *NodePlan) []Change {
	line, _ := runningLine(facts)
	return ArgumentChanges(line, MachineOf(facts, plan), plan)
}

func TestDiffRunning(t *testing.T) {
	const isolated = "1-3"
	cases := map[string]struct {
		profile    []change
		facts      func(*host.Facts)
		want       []string
		wantReboot v1alpha1.RebootRequirement
	}{
		"in force": {facts: func(*host.Facts) {}, wantReboot: v1alpha1.RebootNotRequired},
		"in another notation": {facts: func(f *host.Facts) {
			f.Kernel.CommandLine.Value = strings.ReplaceAll(strings.ReplaceAll(f.Kernel.CommandLine.Value, isolated, "1,2,3"),
				"isolcpus=domain,managed_irq", "isolcpus=managed_irq,domain")
		}, wantReboot: v1alpha1.RebootNotRequired},
		"the last of two counts": {facts: func(f *host.Facts) {
			f.Kernel.CommandLine.Value = "nohz=off " + f.Kernel.CommandLine.Value
		}, wantReboot: v1alpha1.RebootNotRequired},
		"a missing and another argument": {facts: func(f *host.Facts) {
			f.Kernel.CommandLine.Value = strings.NewReplacer("nosoftlockup", "", "nohz_full=1-3", "nohz_full=2-3").Replace(f.Kernel.CommandLine.Value)
		}, want: []string{"kernel argument nohz_full: nohz_full=2-3 -> nohz_full=1-3 (Required)",
			"kernel argument nosoftlockup:  -> nosoftlockup (Required)"}, wantReboot: v1alpha1.RebootRequired},
		"an argument that the plan does without": {facts: func(f *host.Facts) {
			f.Kernel.CommandLine.Value += " nosmt idle=poll"
		}, want: []string{"kernel argument nosmt: nosmt ->  (Required)", "kernel argument idle: idle=poll ->  (Required)"},
			wantReboot: v1alpha1.RebootRequired},
		"another kernel": {facts: func(f *host.Facts) { f.Kernel.RealTime.Value = true },
			want: []string{"kernel type: RealTime -> Default (Required)"}, wantReboot: v1alpha1.RebootRequired},
		"an unknown kernel": {facts: func(f *host.Facts) { f.Kernel.RealTime = host.Absent[bool]("/proc/version", "no such file") },
			want: []string{"kernel type: unknown -> Default (Unknown)"}, wantReboot: v1alpha1.RebootUnknown},
		"settings": {facts: func(f *host.Facts) {
			f.Settings["/proc/sys/vm/swappiness"] = host.Known("60", "")
			f.Settings["/sys/kernel/mm/transparent_hugepage/enabled"] = host.Known("[always] madvise never", "")
			f.Interrupts.DefaultAffinity.Value = set("0-3")
			f.CPUs.List[1].Frequency.Governor = host.Known("powersave", "")
			delete(f.Settings, "/proc/sys/vm/stat_interval")
		}, want: []string{"default interrupt affinity: 0-3 -> 0 (NotRequired)",
			"governor: performance, powersave -> Performance (NotRequired)",
			"sysctl vm.swappiness: 60 -> 10 (NotRequired)",
			"file /sys/kernel/mm/transparent_hugepage/enabled: always -> never (NotRequired)",
			"sysctl vm.stat_interval: unknown -> 10 (NotRequired)"},
			wantReboot: v1alpha1.RebootNotRequired},
		"the kubelet": {facts: func(f *host.Facts) {
			f.Kubelet.Config.Value = strings.ReplaceAll(f.Kubelet.Config.Value, "topologyManagerScope: pod", "")
		}, want: []string{"kubelet setting topologyManagerScope:  -> pod (NotRequired)"}, wantReboot: v1alpha1.RebootNotRequired},
		"CPUs that are to go offline": {
			profile:    []change{explicit(v1alpha1.ExplicitCPUs{Housekeeping: "0", Isolated: "1-2", Offline: "3"})},
			facts:      func(*host.Facts) {},
			want:       []string{"offline CPUs:  -> 3 (NotRequired)"},
			wantReboot: v1alpha1.RebootNotRequired,
		},
		"CPUs that are offline": {
			profile:    []change{explicit(v1alpha1.ExplicitCPUs{Housekeeping: "0", Isolated: "1-2", Offline: "3"})},
			facts:      func(f *host.Facts) { f.CPUs.Online.Value = set("0-2") },
			wantReboot: v1alpha1.RebootNotRequired,
		},
		"consoles": {
			profile: []change{extra("console=tty0", "console=ttyS0")},
			facts: func(f *host.Facts) {
				f.Kernel.CommandLine.Value = strings.ReplaceAll(f.Kernel.CommandLine.Value, "console=tty0", "console=hvc0")
			},
			want:       []string{"kernel argument console: console=hvc0 console=ttyS0 -> console=tty0 console=ttyS0 (Required)"},
			wantReboot: v1alpha1.RebootRequired,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := planOf(t, small(4, 1), tc.profile...)
			facts := hostWith(plan)
			tc.facts(facts)
			changes := DiffRunning(facts, plan)
			if diff := cmp.Diff(tc.want, changesOf(changes)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if got := changes.Reboot(); got != tc.wantReboot {
				t.Errorf("reboot %s, want %s", got, tc.wantReboot)
			}
			ofArguments := slices.DeleteFunc(slices.Clone(tc.want), func(what string) bool { return !strings.HasPrefix(what, kindArgument) })
			if diff := cmp.Diff(ofArguments, changesOf(Changes{Items: argumentChanges(facts, plan)}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("changes of arguments (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDiffRunningWithoutFacts(t *testing.T) {
	changes := DiffRunning(nil, planOf(t, xeon(), hugepages(v1alpha1.HugepageReservation{Size: "2Mi", Count: 4, NUMANode: new(int32(1))})))
	if changes.Reboot() != v1alpha1.RebootUnknown {
		t.Errorf("reboot %s, want Unknown", changes.Reboot())
	}
	for _, c := range changes.Items {
		if c.From != "unknown" || c.Reboot == v1alpha1.RebootRequired || !strings.HasPrefix(c.Why, "the host does not report it: ") {
			t.Errorf("%+v, want an unknown value", c)
		}
	}
}

// TestUnknownValuesAreGrouped: a snapshot without a whole folder is not reported file by file.
func TestUnknownValuesAreGrouped(t *testing.T) {
	plan := planOf(t, small(4, 1))
	facts := hostWith(plan)
	facts.Settings = nil
	facts.Kernel.CommandLine = host.Absent[string]("/proc/cmdline", "no such file")
	got := map[string]string{}
	for _, c := range DiffRunning(facts, plan).Items {
		got[c.What] = c.To + " (" + string(c.Reboot) + ") " + c.Why
	}
	want := map[string]string{
		"kernel arguments": strings.Join(arguments(plan), ", ") + " (Unknown) the host does not report it: /proc/cmdline: no such file",
		"sysctls": joined(plan.Sysctls, func(s Setting) string { return s.Name + "=" + s.Value }) +
			" (NotRequired) the host does not report it: not read",
		"files": joined(plan.Sysfs, func(s Setting) string { return s.Name + "=" + s.Value }) +
			" (NotRequired) the host does not report it: not read",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestDiffRunningHugepages(t *testing.T) {
	plan := planOf(t, xeon(), hugepages(v1alpha1.HugepageReservation{Size: "2Mi", Count: 400, NUMANode: new(int32(1))}))
	for total, want := range map[int64][]string{400: nil, 12: {"hugepages of 2Mi on NUMA node 1: 12 -> 400 (NotRequired)"}} {
		facts := &host.Facts{NUMANodes: []host.NUMANode{{ID: 0}, {ID: 1, Hugepages: []host.HugepagePool{
			{SizeKibibytes: 2048, Total: host.Known(total, "nr_hugepages")}}}}}
		var got []string
		for _, c := range changesOf(DiffRunning(facts, plan)) {
			if strings.HasPrefix(c, "hugepages of") {
				got = append(got, c)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("with %d pages (-want +got):\n%s", total, diff)
		}
	}
}

func TestUnreadableFacts(t *testing.T) {
	plan := planOf(t, small(4, 1))
	facts := hostWith(plan)
	facts.Kernel.CommandLine.Value = "a\x00b"
	facts.Kubelet.Config.Value = "{"
	for _, c := range DiffRunning(facts, plan).Items {
		if c.From != "unknown" {
			t.Errorf("%+v, want an unknown value", c)
		}
	}
	if got := DiffRunning(facts, plan).Reboot(); got != v1alpha1.RebootUnknown {
		t.Errorf("reboot %s, want Unknown", got)
	}
}
