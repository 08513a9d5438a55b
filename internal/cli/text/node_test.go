// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/golden"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodereport"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

func now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// crowded has 512 CPUs: eight NUMA nodes of four L3 caches of eight cores with two threads, half of node 7 off.
func crowded() *topology.Topology {
	const cores, nodes = 256, 8
	t := &topology.Topology{Model: "Processor", Packages: make([]cpus.Set, 2), Offline: cpus.Of(504, 505, 506, 507)}
	local := make([]cpus.Set, nodes)
	for id := range cores {
		core := cpus.Of(id, id+cores)
		node := id * nodes / cores
		t.Cores = append(t.Cores, topology.Core{CPUs: core, NUMANode: node, Package: node / 4, L3: id / 8})
		local[node] = local[node].Union(core)
		t.Packages[node/4] = t.Packages[node/4].Union(core)
		t.Online = t.Online.Union(core).Difference(t.Offline)
	}
	for id, set := range local {
		t.NUMANodes = append(t.NUMANodes, topology.NUMANode{ID: id, CPUs: set.Intersection(t.Online), MemoryBytes: new(int64(1 << 36))})
	}
	return t
}

// nodeView is a machine with a plan, findings, owners, drift, transitions and a pool.
func nodeView(top *topology.Topology) *view.Node {
	p := &plan.NodePlan{Profile: "trading", Hugepages: []plan.HugepagePlan{{SizeKibibytes: 2048, Count: 600, NUMANode: new(0)}}}
	for _, node := range top.NUMANodes {
		first := top.CoresOf(node.ID)[0].CPUs
		p.CPUs.Housekeeping = p.CPUs.Housekeeping.Union(first)
		p.CPUs.Isolated = p.CPUs.Isolated.Union(node.CPUs.Difference(first))
	}
	object := &v1alpha1.LowLatencyNode{}
	object.Status.Checks = &v1alpha1.CheckCounts{Passed: 40, Failed: 3, Unknown: 1}
	object.Status.Conditions = []metav1.Condition{
		{Type: "DeJittered", Status: metav1.ConditionFalse, Reason: "ChecksFailed", Message: "irq.effective-affinity", LastTransitionTime: metav1.NewTime(now().Add(-5 * time.Hour))},
		{Type: "Ready", Status: metav1.ConditionUnknown, Reason: "ChecksUnknown"},
	}
	failed := func(check v1alpha1.CheckID, severity v1alpha1.Severity, message string, about finding.Objects) v1alpha1.Finding {
		return v1alpha1.Finding{Check: check, Outcome: v1alpha1.OutcomeFailed, Severity: severity, Message: message, Objects: about.Status()}
	}
	object.Status.Findings = []v1alpha1.Finding{
		failed("irq.effective-affinity", v1alpha1.SeverityCritical, "IRQ 49 (ens2f0-0) is delivered to isolated CPU 5; wanted 0",
			finding.Objects{CPUs: cpus.Of(5), NICs: []string{"0000:af:00.0"}, Interrupts: []v1alpha1.Interrupt{{ID: "49"}}}),
		failed("cpu.isolated", v1alpha1.SeverityHigh, "isolated CPUs "+p.CPUs.Isolated.String()+" are in the scheduler's domains", finding.OfCPUs(p.CPUs.Isolated)),
		failed("kernel.type", v1alpha1.SeverityLow, "the kernel is another", finding.Objects{}),
		{Check: "clock.source", Outcome: v1alpha1.OutcomeUnknown, Severity: v1alpha1.SeverityCritical, Message: "cannot be read"},
	}
	object.Status.Findings[0].Decides = []string{"DeJittered"}
	for i := range 15 {
		object.Status.Findings = append(object.Status.Findings, failed(v1alpha1.CheckID(fmt.Sprintf("test.%d", i)), v1alpha1.SeverityMedium, "CPU 3 is slow", finding.OfCPUs(cpus.Of(3))))
	}
	object.Status.Drift = []v1alpha1.CheckDrift{{Check: "irq.effective-affinity", Drifted: 4, Repaired: 2, Message: "IRQ 49 moved to CPU 5", Unrepaired: []string{"IRQ 49 is managed"}}}
	object.Status.Enactment = &v1alpha1.NodeEnactment{Differences: []string{"/etc/sysctl.d/99-lowlatency.conf is absent, and the guard has made it a file of 9 bytes with mode 0644, owner 0:0"}}
	object.Status.Transitions = []v1alpha1.NodeTransition{{Time: metav1.NewTime(now()), Condition: "DeJittered", From: "True", To: "False", Reason: "ChecksFailed", Check: "irq.effective-affinity", Message: "IRQ 49"}}
	pool := view.Pool{Pool: "x2", Stack: v1alpha1.StackType("Onload"), Nodes: []view.PoolNode{{Node: "n", NICs: []view.PoolNIC{
		{PCIAddress: "0000:af:00.0", Health: v1alpha1.NICHealthy, Units: 2, Users: []view.PoolUser{{Namespace: "n", Pod: "p", Container: "c", Alignment: v1alpha1.AlignmentAligned}}},
	}}}}
	v := view.OfStatus(view.NodeInput{
		Name: "trading-1", Profile: "trading", Topology: top, Plan: p, Pools: []view.Pool{pool},
		Containers: []nodereport.Container{{Namespace: new("n"), Pod: new("p"), Container: "c", CPUs: cpus.Of(2, 6), NUMANodes: []int{0, 1}}},
	}, object)
	v.Problems = append(v.Problems, "something is not known")
	return &v
}

func TestNode(t *testing.T) {
	golden.Assert(t, Node(nodeView(server(t)), now(), NewPalette(false), 110), "node.txt")
	golden.Assert(t, Node(nodeView(server(t)), now(), NewPalette(true), 90), "node-coloured.txt")
	golden.Assert(t, Node(nodeView(crowded()), now(), NewPalette(false), 120), "node-crowded.txt")
}

// TestNodesFit draws machines of all sizes and measures the lines of the drawing.
func TestNodesFit(t *testing.T) {
	for _, columns := range []int{80, 100, 120} {
		for _, top := range []*topology.Topology{server(t), crowded()} {
			for number, line := range strings.Split(Node(nodeView(top), now(), NewPalette(true), columns), "\n") {
				if strings.ContainsAny(line, "│╭╰!") && width(line) > columns {
					t.Errorf("with %d columns, line %d has %d: %s", columns, number+1, width(line), line)
				}
			}
		}
	}
}

// TestNoCPUIsLost counts the letters of a machine whose CPUs have no numbers.
func TestNoCPUIsLost(t *testing.T) {
	d := newNodeDrawing(nodeView(crowded()), NewPalette(false), 120)
	letters := map[string]int{}
	d.letter = func(cpu int) string {
		r, _ := roleAt(d.roles, cpu)
		letters[r.letter]++
		return r.letter
	}
	d.boxes()
	if sum := letters["H"] + letters["I"] + letters["P"] + letters["o"]; sum != 512 || letters["o"] != 4 || letters["P"] != 2 || letters["H"] != 16 {
		t.Errorf("got %v", letters)
	}
}

func TestAge(t *testing.T) {
	for want, passed := range map[string]time.Duration{"0s": -time.Second, "119s": 119 * time.Second, "3m": 200 * time.Second, "47h": 47 * time.Hour, "2d": 48 * time.Hour} {
		if got := age(new(now().Add(-passed)), now()); got != want {
			t.Errorf("after %s: %s, want %s", passed, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for want, ids := range map[string][]int{"3": {3}, "3-5": {3, 4, 5}, "0…38": {0, 2, 38}} {
		if got := span(ids); got != want {
			t.Errorf("%v: %s, want %s", ids, got, want)
		}
	}
}

func TestNodeWithoutAPlan(t *testing.T) {
	v := view.OfHost(view.NodeInput{
		Name: "a", Profile: "p", Topology: tangled(t), PlanFindings: []plan.Finding{{Rule: "plan.cpus-exist", Severity: v1alpha1.SeverityCritical, Message: "no such CPU"}},
	}, nil)
	got := Node(&v, now(), NewPalette(false), 100)
	for _, want := range []string{"the profile p does not fit this host", "Critical · plan.cpus-exist", "in no set of the plan"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}
