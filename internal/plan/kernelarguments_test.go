// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// set reads a CPU list that is known to be good.
func set(list string) cpus.Set {
	parsed, err := cpus.Parse(list)
	if err != nil {
		panic(err)
	}
	return parsed
}

func TestKernelArgumentsOfADefaultProfile(t *testing.T) {
	cases := map[string]struct {
		machine *topology.Topology
		want    string
	}{
		"Intel": {xeon(), `skew_tick=1 nohz=on nohz_full=1-19,21-39,41-59,61-79 rcu_nocbs=1-19,21-39,41-59,61-79
			isolcpus=domain,managed_irq,1-19,21-39,41-59,61-79 systemd.cpu_affinity=0,20,40,60 irqaffinity=0,20,40,60
			tsc=reliable nmi_watchdog=0 nosoftlockup rcupdate.rcu_normal_after_boot=1
			rcutree.nohz_full_patience_delay=1000 transparent_hugepage=never intel_iommu=on iommu=pt intel_pstate=active`},
		"AMD": {large(), `skew_tick=1 nohz=on nohz_full=8-127,136-255,264-383,392-511
			rcu_nocbs=8-127,136-255,264-383,392-511 isolcpus=domain,managed_irq,8-127,136-255,264-383,392-511
			systemd.cpu_affinity=0-7,128-135,256-263,384-391 irqaffinity=0-7,128-135,256-263,384-391 tsc=reliable
			nmi_watchdog=0 nosoftlockup rcupdate.rcu_normal_after_boot=1 rcutree.nohz_full_patience_delay=1000
			transparent_hugepage=never iommu=pt amd_pstate=guided`},
		"arm64": {arm(), `skew_tick=1 nohz=on nohz_full=1-63,65-127 rcu_nocbs=1-63,65-127
			isolcpus=domain,managed_irq,1-63,65-127 systemd.cpu_affinity=0,64 irqaffinity=0,64 nmi_watchdog=0 nosoftlockup
			rcupdate.rcu_normal_after_boot=1 rcutree.nohz_full_patience_delay=1000 transparent_hugepage=never`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := planOf(t, tc.machine)
			if diff := cmp.Diff(strings.Fields(tc.want), arguments(plan)); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			for _, a := range plan.KernelArguments {
				if a.Origin.Source == "" || a.Origin.Detail == "" {
					t.Errorf("%s has no origin", a.Text)
				}
			}
		})
	}
}

// TestKernelArgumentsOfSettings says which arguments a setting adds to those of the default profile, and
// which it takes away.
func TestKernelArgumentsOfSettings(t *testing.T) {
	const isolated = "1-63,65-127"
	cases := map[string]struct {
		machine *topology.Topology
		change  change
		want    string
	}{
		"periodic tick": {arm(), func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.CPUs.Tick = v1alpha1.TickPeriodic },
			"-nohz=on -nohz_full=" + isolated + " -rcutree.nohz_full_patience_delay=1000"},
		"isolation per pod": {arm(), func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.CPUs.Isolation = v1alpha1.IsolationPerPod },
			"-isolcpus=domain,managed_irq," + isolated + " +isolcpus=managed_irq," + isolated},
		"interrupts per pod": {arm(), func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Interrupts.Placement = v1alpha1.InterruptsPerPod
		}, "-irqaffinity=0,64"},
		"multithreading": {arm(), smtDisabled, "+nosmt"},
		"everything kept": {xeon(), func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Kernel = v1alpha1.KernelSpec{Watchdogs: v1alpha1.ActivityKept, Clocksource: v1alpha1.ClocksourceKept,
				IOMMU: v1alpha1.IOMMUKept}
			s.Memory.TransparentHugepages = v1alpha1.ActivityKept
			s.Power.Preset = v1alpha1.PowerKept
		}, "-tsc=reliable -nmi_watchdog=0 -nosoftlockup -transparent_hugepage=never -intel_iommu=on -iommu=pt -intel_pstate=active"},
		"machine checks ignored": {xeon(), machineChecks(v1alpha1.MachineChecksCorrectedErrorsIgnored), "+mce=ignore_ce"},
		"machine checks off":     {xeon(), machineChecks(v1alpha1.MachineChecksOff), "+mce=off"},
		"machine checks on arm":  {arm(), machineChecks(v1alpha1.MachineChecksOff), ""},
		"real-time kernel": {xeon(), func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Kernel.Type = v1alpha1.KernelRealTime },
			"-transparent_hugepage=never +rcutree.kthread_prio=11"},
		"Intel polling":        {xeon(), preset(v1alpha1.PowerMaximumDeterminism), "+processor.max_cstate=1 +intel_idle.max_cstate=0 +idle=poll"},
		"Intel shallow":        {xeon(), preset(v1alpha1.PowerHighPerformance), "+processor.max_cstate=1 +intel_idle.max_cstate=0"},
		"Intel per pod":        {xeon(), preset(v1alpha1.PowerPerPod), "-intel_pstate=active +intel_pstate=passive"},
		"Intel IOMMU off":      {xeon(), iommu(v1alpha1.IOMMUDisabled), "-intel_iommu=on -iommu=pt +intel_iommu=off"},
		"Intel IOMMU used":     {xeon(), iommu(v1alpha1.IOMMUTranslated), "-iommu=pt +iommu.passthrough=0"},
		"Intel driver off":     {xeon(), driver(v1alpha1.FrequencyDriverDisabled), "-intel_pstate=active +intel_pstate=disable"},
		"Intel cannot guide":   {xeon(), driver(v1alpha1.FrequencyDriverGuided), "-intel_pstate=active"},
		"AMD polling":          {epyc(), preset(v1alpha1.PowerMaximumDeterminism), "+processor.max_cstate=1 +idle=poll"},
		"AMD active":           {epyc(), driver(v1alpha1.FrequencyDriverActive), "-amd_pstate=guided +amd_pstate=active"},
		"AMD IOMMU off":        {epyc(), iommu(v1alpha1.IOMMUDisabled), "-iommu=pt +amd_iommu=off"},
		"AMD IOMMU used":       {epyc(), iommu(v1alpha1.IOMMUTranslated), "-iommu=pt +iommu.passthrough=0"},
		"arm polling":          {arm(), preset(v1alpha1.PowerMaximumDeterminism), "+nohlt"},
		"arm shallow":          {arm(), preset(v1alpha1.PowerHighPerformance), "+cpuidle.off=1"},
		"arm IOMMU bypassed":   {arm(), iommu(v1alpha1.IOMMUPassthrough), "+iommu.passthrough=1"},
		"arm IOMMU used":       {arm(), iommu(v1alpha1.IOMMUTranslated), "+iommu.passthrough=0"},
		"arm cannot do so":     {arm(), iommu(v1alpha1.IOMMUDisabled), ""},
		"hugepages by default": {xeon(), gigabytePages, "+default_hugepagesz=1G"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plain := arguments(planOf(t, tc.machine))
			changed := arguments(planOf(t, tc.machine, tc.change))
			if diff := cmp.Diff(strings.Fields(tc.want), difference(plain, changed)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// difference lists what was removed, then what was added; never nil.
func difference(before, after []string) []string {
	changes := []string{}
	for _, text := range before {
		if !slices.Contains(after, text) {
			changes = append(changes, "-"+text)
		}
	}
	for _, text := range after {
		if !slices.Contains(before, text) {
			changes = append(changes, "+"+text)
		}
	}
	return changes
}

func machineChecks(mode v1alpha1.MachineChecks) change {
	return func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Kernel.MachineChecks = mode }
}

func preset(p v1alpha1.PowerPreset) change {
	return func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Power.Preset = p }
}

func driver(mode v1alpha1.FrequencyDriverMode) change {
	return func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Power.FrequencyDriver = mode }
}

func iommu(mode v1alpha1.IOMMUMode) change {
	return func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Kernel.IOMMU = mode }
}

func gigabytePages(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Memory.DefaultHugepageSize = "1Gi" }

func extra(arguments ...v1alpha1.KernelArgument) change {
	return func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Kernel.AdditionalArguments = arguments }
}

func TestAdditionalArguments(t *testing.T) {
	const critical = "plan.kernel-arguments Critical spec.kernel.additionalArguments"
	cases := map[string]struct {
		given        []v1alpha1.KernelArgument
		want         []string
		wantFindings []string
	}{
		"appended in order":       {given: []v1alpha1.KernelArgument{"psi=0", "audit=0"}, want: []string{"+psi=0", "+audit=0"}},
		"a computed one merges":   {given: []v1alpha1.KernelArgument{"nohz=on", "audit=0"}, want: []string{"+audit=0"}},
		"twice the same":          {given: []v1alpha1.KernelArgument{"audit=0", "audit=0"}, want: []string{"+audit=0"}},
		"the same CPUs":           {given: []v1alpha1.KernelArgument{"isolcpus=managed_irq,domain,1,2,3"}, want: []string{}},
		"console repeats":         {given: []v1alpha1.KernelArgument{"console=tty0", "console=ttyS0,115200n8"}, want: []string{"+console=tty0", "+console=ttyS0,115200n8"}},
		"hugepages of its own":    {given: []v1alpha1.KernelArgument{"hugepagesz=1G", "hugepages=4", "hugepagesz=2M", "hugepages=4"}, want: []string{"+hugepagesz=1G", "+hugepages=4", "+hugepagesz=2M", "+hugepages=4"}},
		"another value":           {given: []v1alpha1.KernelArgument{"audit=0", "nohz=off"}, wantFindings: []string{critical + "[1]"}},
		"another spelling":        {given: []v1alpha1.KernelArgument{"skew-tick=0"}, wantFindings: []string{critical + "[0]"}},
		"other CPUs":              {given: []v1alpha1.KernelArgument{"isolcpus=1-2"}, wantFindings: []string{critical + "[0]"}},
		"two values":              {given: []v1alpha1.KernelArgument{"audit=0", "audit=1"}, wantFindings: []string{critical + "[1]"}},
		"behind the plan's back":  {given: []v1alpha1.KernelArgument{"nosmt"}, wantFindings: []string{critical + "[0]"}},
		"fewer CPUs":              {given: []v1alpha1.KernelArgument{"maxcpus=2"}, wantFindings: []string{critical + "[0]"}},
		"quotes":                  {given: []v1alpha1.KernelArgument{`a="b c"`}, wantFindings: []string{"plan.unsafe-text Critical spec.kernel.additionalArguments[0]"}},
		"a line break":            {given: []v1alpha1.KernelArgument{"a\nb"}, wantFindings: []string{"plan.unsafe-text Critical spec.kernel.additionalArguments[0]"}},
		"too long for the kernel": {given: longArguments(), wantFindings: []string{"plan.command-line-length Critical spec.kernel.additionalArguments"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			machine := small(4, 1)
			if diff := cmp.Diff(tc.wantFindings, findingsOf(machine, extra(tc.given...))); diff != "" {
				t.Fatalf("findings (-want +got):\n%s", diff)
			}
			if tc.wantFindings != nil {
				return
			}
			all, plain := arguments(planOf(t, machine, extra(tc.given...))), arguments(planOf(t, machine))
			got := []string{}
			for _, text := range all[len(plain):] {
				got = append(got, "+"+text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("appended (-want +got):\n%s", diff)
			}
		})
	}
}

func longArguments() []v1alpha1.KernelArgument {
	many := make([]v1alpha1.KernelArgument, 20)
	for i := range many {
		many[i] = v1alpha1.KernelArgument("a" + strings.Repeat("b", i) + "=" + strings.Repeat("x", 100))
	}
	return many
}

func TestConflictNamesBothArguments(t *testing.T) {
	_, findings := New(Input{Profile: profileWith(extra("intel_iommu=off")), Topology: xeon()})
	want := "spec.kernel.additionalArguments[0] on node node-1: intel_iommu=off cannot stand beside intel_iommu=on, " +
		"which comes from spec.kernel.iommu. Remove it, or change spec.kernel.iommu."
	if len(findings) != 1 || findings[0].Sentence("node-1") != want {
		t.Errorf("findings %s, want %s", describe(findings), want)
	}
}

func TestHugepageArgumentsBesidePlannedOnes(t *testing.T) {
	want := []string{"plan.kernel-arguments Critical spec.kernel.additionalArguments[0]",
		"plan.kernel-arguments Critical spec.kernel.additionalArguments[1]"}
	got := findingsOf(xeon(), extra("hugepagesz=1G", "hugepages=4"),
		hugepages(v1alpha1.HugepageReservation{Size: "1Gi", Count: 4}))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}
