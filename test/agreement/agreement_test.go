// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package agreement_test asks everything that compares a node with its plan about one node, in many spellings of what the
// node runs: plan --against running, status.shapes[].reboot, the checks and repair.
package agreement_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/status"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/repair"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/tunedhost"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// newHost is a machine of 16 CPUs and its plan, with arguments and parameters that have many spellings.
func newHost(t *testing.T) *tunedhost.Host {
	t.Helper()
	profile := tunedhost.Profile()
	profile.Spec.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{"audit=0", "psi=0", "nopti", "mem=100G", "mitigations=off",
		"console=ttyS0", "sysctl.vm.max_map_count=262144"}
	profile.Spec.AcceptedRisks = []v1alpha1.AcceptedRisk{{Setting: "mem=100G", Reason: "sizes have many spellings"}}
	profile.Spec.System.KernelParameters = []v1alpha1.KernelParameter{
		{Name: "kernel.watchdog_cpumask", Value: "0,1"}, {Name: "net.ipv4.tcp_rmem", Value: "4096 131072 6291456"},
		{Name: "net.ipv4.ip_local_reserved_ports", Value: "8080,9000-9001"}, {Name: "vm.dirty_bytes", Value: "0x400000"},
	}
	h, err := tunedhost.New(t.Context(), t.TempDir(), tunedhost.Small(hosttree.Xeon()), profile)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// answers is what everybody says about one node.
type answers struct {
	changes plan.Changes
	report  verify.Report
	writes  []repair.Write
	// reboot is what the status says after the agent has looked, early what it said before.
	reboot, early v1alpha1.RebootRequirement
}

// ask reads the host and asks everybody.
func ask(t *testing.T, h *tunedhost.Host, planned *plan.NodePlan) answers {
	t.Helper()
	facts, err := h.Read(t.Context(), verify.SettingPaths(planned)...)
	if err != nil {
		t.Fatal(err)
	}
	found, err := topology.FromFacts(facts)
	if err != nil {
		t.Fatal(err)
	}
	in := verify.Input{Plan: planned, Facts: facts}
	report := verify.Evaluate(in)
	member := &fleet.Member{
		Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}},
		Report: &v1alpha1.LowLatencyNode{Status: v1alpha1.LowLatencyNodeStatus{
			Inventory: topology.Inventory(facts, found), Conditions: report.Conditions(1),
		}},
		Planned: &fleet.Planned{Plan: planned, Hash: "hash"},
	}
	early := status.Reboot(member)
	member.Report.Status.VerifiedPlanHash = "hash"
	return answers{
		changes: plan.DiffRunning(facts, planned), report: report, writes: repair.Plan(in, report), reboot: status.Reboot(member), early: early,
	}
}

func (a answers) failed(check v1alpha1.CheckID) bool {
	return slices.ContainsFunc(a.report.Results, func(r verify.Result) bool { return r.Check.ID == check && r.Outcome == v1alpha1.OutcomeFailed })
}

func (a answers) applied() metav1.ConditionStatus { return a.report.Conditions(1)[0].Status }

// changesOf are the changes of a kind as texts.
func (a answers) changesOf(prefix string) []string {
	var texts []string
	for _, c := range a.changes.Items {
		if strings.HasPrefix(c.What, prefix) {
			texts = append(texts, c.What+": "+c.From+" -> "+c.To)
		}
	}
	return texts
}

// expectSame wants everybody to find the node as planned.
func (a answers) expectSame(t *testing.T) {
	t.Helper()
	if changes := a.changesOf(""); len(changes) > 0 {
		t.Errorf("plan --against running: %v", changes)
	}
	for _, check := range []v1alpha1.CheckID{"kernel.command-line", "kernel.sysctls", "kernel.sysfs"} {
		if a.failed(check) {
			t.Errorf("%s failed", check)
		}
	}
	if a.applied() != metav1.ConditionTrue {
		t.Errorf("Applied is %+v", a.report.Conditions(1)[0])
	}
	if len(a.writes) > 0 {
		t.Errorf("repair writes %+v", a.writes)
	}
	if a.reboot != v1alpha1.RebootNotRequired || a.early != v1alpha1.RebootUnknown {
		t.Errorf("the status says %s, and %s before the agent has looked", a.reboot, a.early)
	}
}

// expectOtherArguments wants everybody to ask for a reboot.
func (a answers) expectOtherArguments(t *testing.T) {
	t.Helper()
	if len(a.changesOf("kernel argument ")) == 0 || a.changes.Reboot() != v1alpha1.RebootRequired {
		t.Errorf("plan --against running: %v, reboot %s", a.changesOf(""), a.changes.Reboot())
	}
	if !a.failed("kernel.command-line") || a.applied() != metav1.ConditionFalse {
		t.Errorf("kernel.command-line failed: %t; Applied is %s", a.failed("kernel.command-line"), a.applied())
	}
	if a.reboot != v1alpha1.RebootRequired || a.early != v1alpha1.RebootRequired {
		t.Errorf("the status says %s, and %s before the agent has looked", a.reboot, a.early)
	}
	for _, write := range a.writes {
		if write.Check == "kernel.command-line" {
			t.Errorf("repair writes %+v", write)
		}
	}
}

// expectOtherSetting wants everybody to find one file otherwise, and nobody to ask for a reboot.
func (a answers) expectOtherSetting(t *testing.T, path string, repaired bool) {
	t.Helper()
	if changes := a.changesOf(""); len(changes) != 1 || a.changes.Reboot() != v1alpha1.RebootNotRequired {
		t.Errorf("plan --against running: %v, reboot %s", changes, a.changes.Reboot())
	}
	if !slices.ContainsFunc(a.report.Results, func(r verify.Result) bool { return r.Outcome == v1alpha1.OutcomeFailed }) {
		t.Error("no check failed")
	}
	written := len(a.writes) == 1 && a.writes[0].Path == path
	if written != repaired || len(a.writes) > 1 {
		t.Errorf("repair writes %+v", a.writes)
	}
	if a.reboot != v1alpha1.RebootNotRequired || a.early != v1alpha1.RebootUnknown {
		t.Errorf("the status says %s, and %s before the agent has looked", a.reboot, a.early)
	}
}

// replaced is the planned command line with something else in the place of one argument, or of several.
func replaced(t *testing.T, planned *plan.NodePlan, from, to string) []plan.Argument {
	t.Helper()
	text := " " + planned.ArgumentText() + " "
	if !strings.Contains(text, " "+from+" ") {
		t.Fatalf("the plan has no %q: %s", from, text)
	}
	return []plan.Argument{{Text: strings.TrimSpace(strings.Replace(text, " "+from+" ", " "+to+" ", 1))}}
}

// spelling is a part of the planned command line, and what stands in its place.
type spelling struct{ from, to string }

// sameArguments mean the same to the kernel. {I} and {H} are the isolated and the housekeeping CPUs, {LAST} the isolated
// ones with N for the last CPU, {SINGLE} the isolated ones one by one, and {FEWER} those without the first.
func sameArguments() map[string]spelling {
	return map[string]spelling{
		"as planned":                   {"nohz=on", "nohz=on"},
		"a list in single CPUs":        {"nohz_full={I}", "nohz_full={SINGLE}"},
		"a list up to the last CPU":    {"nohz_full={I}", "nohz_full={LAST}"},
		"a list with empty elements":   {"rcu_nocbs={I}", "rcu_nocbs=,{I},"},
		"dashes in a name":             {"rcu_nocbs={I}", "rcu-nocbs={I}"},
		"quotes around a value":        {"nohz_full={I}", `nohz_full="{I}"`},
		"quotes around an argument":    {"nohz_full={I}", `"nohz_full={I}"`},
		"flags in another order":       {"isolcpus=domain,managed_irq,{I}", "isolcpus=managed_irq,domain,{I}"},
		"flags in two arguments":       {"isolcpus=domain,managed_irq,{I}", "isolcpus=domain,{I} isolcpus=managed_irq,{I}"},
		"the first isolcpus stands":    {"isolcpus=domain,managed_irq,{I}", "isolcpus=domain,managed_irq,{I} isolcpus=domain,3"},
		"the first nohz_full stands":   {"nohz_full={I}", "nohz_full={I} nohz_full=3"},
		"an unknown flag of isolcpus":  {"isolcpus=domain,managed_irq,{I}", "isolcpus=kthread,domain,managed_irq,{I}"},
		"a switch as a number":         {"nohz=on", "nohz=1"},
		"a switch as a letter":         {"nohz=on", "nohz=Y"},
		"a switch that is off":         {"psi=0", "psi=off"},
		"a hexadecimal number":         {"skew_tick=1", "skew_tick=0x1"},
		"a number with zeros":          {"rcupdate.rcu_normal_after_boot=1", "rcupdate.rcu_normal_after_boot=01"},
		"the last one counts":          {"nohz=on", "nohz=off nohz=on"},
		"a size in megabytes":          {"default_hugepagesz=1G", "default_hugepagesz=1024M"},
		"a size in kilobytes":          {"hugepagesz=2M", "hugepagesz=2048k"},
		"a large size":                 {"mem=100G", "mem=102400M"},
		"pass-through by name":         {"iommu=pt", "iommu.passthrough=1"},
		"pass-through by a word":       {"iommu=pt", "iommu.passthrough=on"},
		"pass-through among others":    {"iommu=pt", "iommu=merge,pt"},
		"audit in a word":              {"audit=0", "audit=off"},
		"page tables by value":         {"nopti", "pti=off"},
		"the boot CPU is added":        {"irqaffinity={H}", "irqaffinity={H},0"},
		"spaces in a list of systemd":  {"systemd.cpu_affinity={H}", `systemd.cpu_affinity="{SPACED}"`},
		"slashes in a parameter":       {"sysctl.vm.max_map_count=262144", "sysctl/vm/max_map_count=262144"},
		"one of several consoles":      {"console=ttyS0", "console=ttyS0 console=tty0"},
		"another order of arguments":   {"nohz=on nohz_full={I}", "nohz_full={I} nohz=on"},
		"both watchdogs in one word":   {"nmi_watchdog=0 nosoftlockup", "nowatchdog"},
		"one watchdog for two":         {"nosoftlockup", "nowatchdog"},
		"callbacks by the tick":        {"rcu_nocbs={I}", ""},
		"another flag of the clock":    {"tsc=reliable", "tsc=reliable tsc=nowatchdog"},
		"scalable mode of the IOMMU":   {"intel_iommu=on", "intel_iommu=on,sm_on"},
		"limits of a frequency driver": {"intel_pstate=active", "intel_pstate=active intel_pstate=per_cpu_perf_limits"},
		"more that the plan ignores":   {"audit=0", "audit=0 quiet splash"},
		"hugepages counted once":       {"hugepages=16", "hugepages=16 hugepages=99"},
		"arguments of the init system": {"sysctl.vm.max_map_count=262144", "sysctl.vm.max_map_count=262144 -- nosmt=x"},
	}
}

// otherArguments mean something else.
func otherArguments() map[string]spelling {
	return map[string]spelling{
		"an argument is missing":            {"nosoftlockup", ""},
		"another switch":                    {"nohz=on", "nohz=off"},
		"no switch":                         {"nohz=on", "nohz=enabled"},
		"one CPU is missing":                {"nohz_full={I}", "nohz_full={FEWER}"},
		"one CPU too many":                  {"nohz_full={I}", "nohz_full={I},1000"},
		"a flag is missing":                 {"isolcpus=domain,managed_irq,{I}", "isolcpus=domain,{I}"},
		"a flag with a dash":                {"isolcpus=domain,managed_irq,{I}", "isolcpus=domain,managed-irq,{I}"},
		"another isolcpus before":           {"isolcpus=domain,managed_irq,{I}", "isolcpus=domain,3 isolcpus=domain,managed_irq,{I}"},
		"all as isolcpus":                   {"isolcpus=domain,managed_irq,{I}", "isolcpus=all"},
		"the last one does not count":       {"nohz=on", "nohz=on nohz=off"},
		"systemd does not know N":           {"systemd.cpu_affinity={H}", "systemd.cpu_affinity=0-N"},
		"another number":                    {"skew_tick=1", "skew_tick=11"},
		"another size":                      {"default_hugepagesz=1G", "default_hugepagesz=2M"},
		"other hugepages":                   {"hugepages=16", "hugepages=15"},
		"pass-through taken back":           {"iommu=pt", "iommu=pt iommu.passthrough=0"},
		"mitigations one by one":            {"mitigations=off", "nospectre_v2 mds=off"},
		"capitals in a name":                {"nohz=on", "NOHZ=on"},
		"one watchdog of two":               {"nmi_watchdog=0", "nmi_watchdog=1"},
		"the IOMMU switched off again":      {"intel_iommu=on", "intel_iommu=on,off"},
		"another mode of a driver":          {"intel_pstate=active", "intel_pstate=active intel_pstate=passive"},
		"an argument that contradicts":      {"audit=0", "audit=0 nosmt"},
		"an argument that limits CPUs":      {"audit=0", "audit=0 nr_cpus=99"},
		"for the init process":              {"mitigations=off", "-- mitigations=off"},
		"a value that becomes a flag alone": {"audit=0", "audit"},
	}
}

// TestArguments boots a machine with another spelling of its arguments.
func TestArguments(t *testing.T) {
	h := newHost(t)
	isolated, housekeeping := h.Plan.CPUs.Isolated, h.Plan.CPUs.Housekeeping
	single := make([]string, 0, isolated.Len())
	for _, id := range isolated.IDs() {
		single = append(single, strconv.Itoa(id))
	}
	spaced := make([]string, 0, housekeeping.Len())
	for _, id := range housekeeping.IDs() {
		spaced = append(spaced, strconv.Itoa(id))
	}
	fill := strings.NewReplacer("{I}", isolated.String(), "{H}", housekeeping.String(), "{SINGLE}", strings.Join(single, ","),
		"{LAST}", strings.TrimSuffix(isolated.String(), single[len(single)-1])+"N", "{FEWER}", strings.Join(single[1:], ","),
		"{SPACED}", strings.Join(spaced, " "))
	boot := func(t *testing.T, as spelling) answers {
		t.Helper()
		booted, other := *h, *h.Plan
		other.KernelArguments = replaced(t, h.Plan, fill.Replace(as.from), fill.Replace(as.to))
		booted.Plan = &other
		if err := booted.Apply(); err != nil {
			t.Fatal(err)
		}
		return ask(t, &booted, h.Plan)
	}
	for name, as := range sameArguments() {
		t.Run(name, func(t *testing.T) { boot(t, as).expectSame(t) })
	}
	for name, as := range otherArguments() {
		t.Run(name, func(t *testing.T) { boot(t, as).expectOtherArguments(t) })
	}
}

// TestSettings writes another spelling of a planned value to a file of a tuned machine. {M} is the mask of the housekeeping
// CPUs.
func TestSettings(t *testing.T) {
	h := newHost(t)
	if err := h.Apply(); err != nil {
		t.Fatal(err)
	}
	const (
		pages     = "/sys/kernel/mm/transparent_hugepage/enabled"
		workqueue = "/sys/devices/virtual/workqueue/cpumask"
		watchdog  = "/proc/sys/kernel/watchdog_cpumask"
		buffers   = "/proc/sys/net/ipv4/tcp_rmem"
		ports     = "/proc/sys/net/ipv4/ip_local_reserved_ports"
		dirty     = "/proc/sys/vm/dirty_bytes"
		interval  = "/proc/sys/vm/stat_interval"
		timeout   = "/proc/sys/kernel/hung_task_timeout_secs"
		merging   = "/sys/kernel/mm/ksm/run"
	)
	cases := map[string]struct {
		path, value string
		same        bool
		// repaired reports whether repair may write the file.
		repaired bool
	}{
		"a line break":                {interval, "10\n", true, false},
		"a number of another base":    {interval, "0xa", true, false},
		"a planned number of base 16": {dirty, "4194304", true, false},
		"a choice of three":           {pages, "never", true, false},
		"a mask with zeros":           {workqueue, "0000{M}", true, false},
		"a mask in two groups":        {workqueue, "00000000,0000{M}", true, false},
		"a list":                      {watchdog, "0-1", true, false},
		"tabs":                        {buffers, "4096\t131072\t6291456", true, false},
		"ports in another order":      {ports, "9000,9001,8080", true, false},

		"another number":     {interval, "1", false, true},
		"a number in base 8": {interval, "010", false, true},
		"another timeout":    {timeout, "6000", false, true},
		"another choice":     {pages, "madvise", false, true},
		"a mask of all CPUs": {workqueue, "ffff", false, true},
		"another buffer":     {buffers, "4096 131072", false, false},
		"other ports":        {ports, "8080", false, false},
		"merging runs":       {merging, "1", false, true},
		"nothing":            {timeout, "", false, true},
	}
	mask := h.Plan.CPUs.Housekeeping.Mask()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			planned := h.Plan
			if err := h.Write(tc.path, strings.ReplaceAll(tc.value, "{M}", mask)); err != nil {
				t.Fatal(err)
			}
			found := ask(t, h, planned)
			restore(t, h, tc.path)
			if tc.same {
				found.expectSame(t)
				return
			}
			found.expectOtherSetting(t, tc.path, tc.repaired)
		})
	}
	ask(t, h, h.Plan).expectSame(t)
}

// restore writes the planned value of a file.
func restore(t *testing.T, h *tunedhost.Host, path string) {
	t.Helper()
	for _, s := range h.Plan.Sysfs {
		if s.Name == path {
			if err := h.Write(path, s.Value); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, s := range h.Plan.Sysctls {
		if host.SysctlPath(s.Name) == path {
			if err := h.Write(path, s.Value); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestMissingHugepages: pages of two mebibytes can be reserved while the kernel runs, and everybody says so.
func TestMissingHugepages(t *testing.T) {
	h := newHost(t)
	if err := h.Apply(); err != nil {
		t.Fatal(err)
	}
	for _, pages := range h.Plan.Hugepages {
		if pages.Method != plan.ByUnit {
			continue
		}
		file := fmt.Sprintf("/sys/devices/system/node/node%d/hugepages/hugepages-%dkB/nr_hugepages", *pages.NUMANode, pages.SizeKibibytes)
		if err := h.Write(file, "1"); err != nil {
			t.Fatal(err)
		}
	}
	found := ask(t, h, h.Plan)
	if changes := found.changesOf("hugepages of 2Mi"); len(changes) == 0 || found.changes.Reboot() != v1alpha1.RebootNotRequired {
		t.Errorf("plan --against running: %v, reboot %s", found.changesOf(""), found.changes.Reboot())
	}
	if applied := found.report.Conditions(1)[0]; applied.Status != metav1.ConditionFalse || applied.Reason != v1alpha1.ReasonChecksFailed {
		t.Errorf("Applied is %+v", applied)
	}
	if found.reboot != v1alpha1.RebootNotRequired || found.early != v1alpha1.RebootUnknown {
		t.Errorf("the status says %s, and %s before the agent has looked", found.reboot, found.early)
	}
}
