// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/tunedhost"
)

// machine is a simulated host with a plan.
type machine struct {
	*tunedhost.Host
	t *testing.T
}

func newMachine(t *testing.T, base hosttree.Machine, profile *v1alpha1.LowLatencyNodeProfile) machine {
	t.Helper()
	h, err := tunedhost.New(t.Context(), t.TempDir(), tunedhost.Small(base), profile)
	if err != nil {
		t.Fatal(err)
	}
	return machine{h, t}
}

func (m machine) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m machine) read() *host.Facts {
	m.t.Helper()
	facts, err := m.Read(m.t.Context(), SettingPaths(m.Plan)...)
	m.must(err)
	return facts
}

// watch reads the host twice with some time in between.
func (m machine) watch() Report {
	m.t.Helper()
	before := m.read()
	m.must(hosttree.Tick(m.Dir, time.Minute))
	return Evaluate(Input{Plan: m.Plan, Facts: m.read(), Before: before})
}

func describeFindings(report Report) []string {
	findings := report.Findings()
	texts := make([]string, 0, len(findings))
	for _, finding := range findings {
		texts = append(texts, fmt.Sprintf("%s %s %s: %s", finding.Severity, finding.Outcome, finding.Check, finding.Message))
	}
	return texts
}

func statuses(report Report) []string {
	texts := make([]string, 0, 4)
	for _, condition := range report.Conditions(1) {
		texts = append(texts, fmt.Sprintf("%s %s %s", condition.Type, condition.Status, condition.Reason))
	}
	return texts
}

// The whole way: an untuned machine, the same machine with its plan, and what an operator would do wrong.
func TestMachines(t *testing.T) {
	for _, base := range []hosttree.Machine{hosttree.Xeon(), hosttree.EPYC(), hosttree.Arm()} {
		t.Run(base.Hostname, func(t *testing.T) {
			m := newMachine(t, base, tunedhost.Profile())
			want := []string{"Applied False RebootPending", "DeJittered False ChecksFailed", "NUMAAligned False ChecksFailed", "Ready False RebootPending"}
			if diff := cmp.Diff(want, statuses(m.watch())); diff != "" {
				t.Errorf("untuned: %s", diff)
			}

			m.must(m.Apply())
			report := m.watch()
			want = []string{"Applied True Verified", "DeJittered True Verified", "NUMAAligned True Verified", "Ready True Verified"}
			if diff := cmp.Diff(want, statuses(report)); diff != "" {
				t.Errorf("with its plan: %s\n%s", diff, strings.Join(describeFindings(report), "\n"))
			}
			if diff := cmp.Diff([]string{}, describeFindings(report)); diff != "" {
				t.Errorf("findings: %s", diff)
			}
		})
	}
}

func TestMovedInterrupt(t *testing.T) {
	m := newMachine(t, hosttree.Xeon(), tunedhost.Profile())
	m.must(m.Apply())
	nic := m.BypassNIC()
	irq, err := hosttree.FindIRQ(m.Dir, nic)
	m.must(err)
	isolated := m.Plan.CPUs.Isolated.First()
	before := m.read()
	m.must(hosttree.MoveIRQ(m.Dir, irq, cpus.Of(isolated)))
	m.must(hosttree.Tick(m.Dir, time.Minute))
	report := Evaluate(Input{Plan: m.Plan, Facts: m.read(), Before: before})

	message := meta.FindStatusCondition(report.Conditions(1), v1alpha1.ConditionDeJittered).Message
	for _, part := range []string{
		fmt.Sprintf("irq.effective-affinity: IRQ %d (%s-0) is delivered to isolated CPU %d; wanted %s", irq, nic, isolated, m.Plan.CPUs.Housekeeping),
		fmt.Sprintf("irq.delivered: IRQ %d (%s-0) came thousands of times on isolated CPU %d since the last reading", irq, nic, isolated),
	} {
		if !strings.Contains(message, part) {
			t.Errorf("%q does not say %q", message, part)
		}
	}
	want := []string{"Applied True Verified", "DeJittered False ChecksFailed", "NUMAAligned True Verified", "Ready False ChecksFailed"}
	if diff := cmp.Diff(want, statuses(report)); diff != "" {
		t.Error(diff)
	}

	m.must(hosttree.MoveIRQ(m.Dir, irq, cpus.Of(m.Plan.CPUs.Housekeeping.First())))
	if findings := describeFindings(m.watch()); len(findings) > 0 && !strings.HasPrefix(findings[0], "High") {
		t.Errorf("moved back: %s", strings.Join(findings, "\n"))
	}
}

// Where the plan relies on PM QoS, and its limit of all CPUs cannot be read, what the CPUs did decides.
func TestLatencyLimit(t *testing.T) {
	profile := tunedhost.Profile()
	profile.Spec.Power.Preset = v1alpha1.PowerLowLatency
	m := newMachine(t, hosttree.Xeon(), profile)
	m.must(m.Apply())

	once := Evaluate(Input{Plan: m.Plan, Facts: m.read()})
	if result, _ := find(once, "power.idle-states"); result.Outcome != v1alpha1.OutcomeUnknown {
		t.Errorf("read once: idle states are %s (%s), want Unknown", result.Outcome, result.Message)
	}
	isolated := m.Plan.CPUs.Isolated.Name()
	want := []string{"Critical Failed power.idle-entries: " + isolated + ": idle state C6, which takes 170 µs to leave, was entered since the last reading"}
	if diff := cmp.Diff(want, describeFindings(m.watch())); diff != "" {
		t.Errorf("without a limit: %s", diff)
	}

	for _, id := range m.Plan.CPUs.Isolated.IDs() {
		m.must(m.Write(latencyLimitPath(id), "1"))
	}
	if diff := cmp.Diff([]string{}, describeFindings(m.watch())); diff != "" {
		t.Errorf("with a limit: %s", diff)
	}
}

// Every setting that a check owns by name must be one that host reads of every host.
func TestHostReadsTheSettingsOfTheChecks(t *testing.T) {
	read := host.SettingPaths()
	for _, check := range Catalogue() {
		for _, path := range check.owns {
			if !strings.Contains(path, "*") && !slices.Contains(read, path) && path != "/sys/devices/virtual/workqueue/writeback/cpumask" {
				t.Errorf("check %s owns %s, which host does not read", check.ID, path)
			}
		}
	}
}
