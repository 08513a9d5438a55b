// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// machine is a host tree and the plan that was made for it.
type machine struct {
	t    *testing.T
	dir  string
	base hosttree.Machine
	plan *plan.NodePlan
}

// solarflare is the profile of a trading host whose NICs are Solarflare's.
func solarflare() *v1alpha1.LowLatencyNodeProfile {
	return &v1alpha1.LowLatencyNodeProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "trading"},
		Spec: v1alpha1.LowLatencyNodeProfileSpec{
			Memory: v1alpha1.MemorySpec{
				DefaultHugepageSize: "1Gi",
				Hugepages: []v1alpha1.HugepageReservation{
					{Size: "1Gi", Count: 16}, {Size: "2Mi", Count: 400, Placement: v1alpha1.HugepagesBypassNICLocal},
				},
			},
			Network: v1alpha1.NetworkSpec{Devices: []v1alpha1.NICSelector{{VendorID: "0x1924"}}},
			Power:   v1alpha1.PowerSpec{Preset: v1alpha1.PowerMaximumDeterminism},
		},
	}
}

// small takes most cores away from a machine and leaves its shape.
func small(base hosttree.Machine) hosttree.Machine {
	base.CoresPerNUMANode = max(2, 8/(base.Packages*base.NUMANodesPerPackage))
	base.CoresPerL3 = min(base.CoresPerL3, base.CoresPerNUMANode/2)
	return base
}

// newMachine writes the tree of a machine that nothing has tuned, and plans it.
func newMachine(t *testing.T, base hosttree.Machine, profile *v1alpha1.LowLatencyNodeProfile) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir(), base: base}
	m.must(base.Write(m.dir))
	found, err := topology.FromFacts(m.read())
	m.must(err)
	planned, findings := plan.New(plan.Input{Profile: profile, Node: base.Hostname, Topology: found})
	if planned == nil {
		t.Fatalf("no plan: %+v", findings)
	}
	m.plan = planned
	return m
}

func (m *machine) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) read() *host.Facts {
	m.t.Helper()
	opened, err := host.Open(m.dir)
	m.must(err)
	defer func() { m.must(opened.Close()) }()
	var extra []string
	if m.plan != nil {
		extra = SettingPaths(m.plan)
	}
	facts, err := opened.ReadWith(m.t.Context(), extra)
	m.must(err)
	return facts
}

// watch reads the host twice with some time in between.
func (m *machine) watch() Report {
	m.t.Helper()
	before := m.read()
	m.must(hosttree.Tick(m.dir, time.Minute))
	return Evaluate(Input{Plan: m.plan, Facts: m.read(), Before: before})
}

// apply does what a platform does to bring the plan to the host.
func (m *machine) apply() {
	m.t.Helper()
	for _, file := range m.plan.Files {
		m.write(file.Path, file.Content)
	}
	for _, unit := range m.plan.Units {
		for name, content := range unit.DropIns {
			m.write("/etc/systemd/system/"+unit.Name+".d/"+name, content)
		}
	}
	config, err := json.Marshal(m.plan.Kubelet)
	m.must(err)
	m.write("/etc/kubernetes/kubelet.conf", `{"kind":"KubeletConfiguration",`+string(config[1:]))
	var commandLine strings.Builder
	commandLine.WriteString(m.base.BaseCommandLine())
	for _, argument := range m.plan.KernelArguments {
		commandLine.WriteString(" " + argument.Text)
	}
	m.must(hosttree.Boot(m.dir, hosttree.BootOptions{CommandLine: commandLine.String(), KernelType: m.plan.Kernel.Type}))
	for _, pages := range m.plan.Hugepages {
		if pages.Method == plan.ByUnit {
			m.write(fmt.Sprintf("/sys/devices/system/node/node%d/hugepages/hugepages-%dkB/nr_hugepages", *pages.NUMANode, pages.SizeKibibytes),
				strconv.FormatInt(pages.Count, 10))
		}
	}
	for _, sysctl := range m.plan.Sysctls {
		m.write(host.SysctlPath(sysctl.Name), sysctl.Value)
	}
	for _, setting := range m.plan.Sysfs {
		m.write(setting.Name, setting.Value)
	}
	m.writeEach("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", "performance")
	m.writeEach("/sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference", "performance")
	online := m.read().CPUs.Online.Value
	m.write("/var/lib/kubelet/cpu_manager_state", fmt.Sprintf(`{"policyName":"static","defaultCpuSet":"%s"}`, online))
	m.write("/var/lib/kubelet/memory_manager_state", `{"policyName":"Static"}`)
}

func (m *machine) write(path, value string) {
	m.t.Helper()
	m.must(os.MkdirAll(filepath.Dir(filepath.Join(m.dir, path)), 0o755))
	m.must(hosttree.WriteSetting(m.dir, path, value))
}

func (m *machine) writeEach(pattern, value string) {
	m.t.Helper()
	matches, err := filepath.Glob(filepath.Join(m.dir, pattern))
	m.must(err)
	for _, match := range matches {
		m.write(strings.TrimPrefix(match, m.dir), value)
	}
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
	for _, base := range []hosttree.Machine{small(hosttree.Xeon()), small(hosttree.EPYC()), small(hosttree.Arm())} {
		t.Run(base.Hostname, func(t *testing.T) {
			m := newMachine(t, base, solarflare())
			want := []string{"Applied False RebootPending", "DeJittered False ChecksFailed", "NUMAAligned False ChecksFailed", "Ready False RebootPending"}
			if diff := cmp.Diff(want, statuses(m.watch())); diff != "" {
				t.Errorf("untuned: %s", diff)
			}

			m.apply()
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
	m := newMachine(t, small(hosttree.Xeon()), solarflare())
	m.apply()
	nic := m.base.NICs[slices.IndexFunc(m.base.NICs, func(n hosttree.NIC) bool { return n.Vendor == "0x1924" })]
	irq, err := hosttree.FindIRQ(m.dir, nic.Name)
	m.must(err)
	isolated := m.plan.CPUs.Isolated.First()
	before := m.read()
	m.must(hosttree.MoveIRQ(m.dir, irq, cpus.Of(isolated)))
	m.must(hosttree.Tick(m.dir, time.Minute))
	report := Evaluate(Input{Plan: m.plan, Facts: m.read(), Before: before})

	message := meta.FindStatusCondition(report.Conditions(1), v1alpha1.ConditionDeJittered).Message
	for _, part := range []string{
		fmt.Sprintf("irq.effective-affinity: IRQ %d (%s-0) is delivered to isolated CPU %d; wanted %s", irq, nic.Name, isolated, m.plan.CPUs.Housekeeping),
		fmt.Sprintf("irq.delivered: IRQ %d (%s-0) came thousands of times on isolated CPU %d since the last reading", irq, nic.Name, isolated),
	} {
		if !strings.Contains(message, part) {
			t.Errorf("%q does not say %q", message, part)
		}
	}
	want := []string{"Applied True Verified", "DeJittered False ChecksFailed", "NUMAAligned True Verified", "Ready False ChecksFailed"}
	if diff := cmp.Diff(want, statuses(report)); diff != "" {
		t.Error(diff)
	}

	m.must(hosttree.MoveIRQ(m.dir, irq, cpus.Of(m.plan.CPUs.Housekeeping.First())))
	if findings := describeFindings(m.watch()); len(findings) > 0 && !strings.HasPrefix(findings[0], "High") {
		t.Errorf("moved back: %s", strings.Join(findings, "\n"))
	}
}

// Where the plan relies on PM QoS, and its limit of all CPUs cannot be read, what the CPUs did decides.
func TestLatencyLimit(t *testing.T) {
	profile := solarflare()
	profile.Spec.Power.Preset = v1alpha1.PowerLowLatency
	m := newMachine(t, small(hosttree.Xeon()), profile)
	m.apply()

	once := Evaluate(Input{Plan: m.plan, Facts: m.read()})
	if result, _ := find(once, "power.idle-states"); result.Outcome != v1alpha1.OutcomeUnknown {
		t.Errorf("read once: idle states are %s (%s), want Unknown", result.Outcome, result.Message)
	}
	isolated := cpuNames(m.plan.CPUs.Isolated)
	want := []string{"Critical Failed power.idle-entries: " + isolated + ": idle state C6, which takes 170 µs to leave, was entered since the last reading"}
	if diff := cmp.Diff(want, describeFindings(m.watch())); diff != "" {
		t.Errorf("without a limit: %s", diff)
	}

	for _, id := range m.plan.CPUs.Isolated.IDs() {
		m.write(latencyLimitPath(id), "1")
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
