// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"cmp"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodereport"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// twoNodes has CPUs 0-3 on NUMA node 0 and 4-7 on 1, of which 7 is off, and a NIC on each.
func twoNodes() *topology.Topology {
	t := &topology.Topology{
		Online: cpus.Of(0, 1, 2, 3, 4, 5, 6), Offline: cpus.Of(7),
		NUMANodes: []topology.NUMANode{
			{ID: 0, CPUs: cpus.Of(0, 1, 2, 3), Hugepages: []topology.HugepagePool{{SizeKibibytes: 2048, Total: 4, Free: 1}}},
			{ID: 1, CPUs: cpus.Of(4, 5, 6), HugepageSizes: []int64{2048}},
		},
		NICs: []topology.NIC{{PCIAddress: "0000:3b:00.0", Name: "ens1", NUMANode: new(0)}, {PCIAddress: "0000:af:00.0", Name: "e", NUMANode: new(1)}},
	}
	for id := range 8 {
		t.Cores = append(t.Cores, topology.Core{CPUs: cpus.Of(id), NUMANode: id / 4})
	}
	return t
}

func TestPlaceOf(t *testing.T) {
	everyIsolated := finding.OfCPUs(cpus.Of(2, 3, 4, 5, 6))
	unknown, waived := v1alpha1.OutcomeUnknown, v1alpha1.OutcomeWaived
	cases := map[string]struct {
		objects finding.Objects
		outcome v1alpha1.Outcome
		want    Place
	}{
		"a CPU and the NIC of an interrupt": {
			finding.Objects{CPUs: cpus.Of(5), NICs: []string{"0000:3b:00.0"}, NUMANodes: []int32{0}, Interrupts: []v1alpha1.Interrupt{{ID: "142"}}}, "",
			Place{CPUs: cpus.Of(5), NICs: []string{"0000:3b:00.0"}},
		},
		"every isolated CPU": {everyIsolated, "", Place{CPUs: everyIsolated.CPUs, EveryIsolated: true}},
		"every isolated CPU and more": {
			finding.OfCPUs(cpus.Of(1, 2, 3, 4, 5, 6)), "", Place{CPUs: cpus.Of(1, 2, 3, 4, 5, 6), EveryIsolated: true},
		},
		"interrupts on every isolated CPU": {
			finding.Union(everyIsolated, finding.Objects{Interrupts: []v1alpha1.Interrupt{{ID: "8"}}}), "", Place{CPUs: everyIsolated.CPUs},
		},
		"processes on every isolated CPU": {
			finding.Union(everyIsolated, finding.Objects{Processes: []v1alpha1.Process{{PID: 8}}}), "", Place{CPUs: everyIsolated.CPUs},
		},
		"interrupts that a status does not list": {
			finding.Union(everyIsolated, finding.Objects{Unlisted: v1alpha1.ObjectCounts{Interrupts: 7}}), "", Place{CPUs: everyIsolated.CPUs},
		},
		"a NUMA node":                      {finding.OfNUMANodes(1, 9), "", Place{NUMANodes: []int{1}}},
		"what does not exist":              {finding.Objects{CPUs: cpus.Of(3, 99), NICs: []string{"0000:99:00.0"}}, "", Place{CPUs: cpus.Of(3)}},
		"the whole machine":                {finding.OfFiles("/proc/sys/kernel/numa_balancing"), "", Place{}},
		"what is unknown is nowhere":       {everyIsolated, unknown, Place{}},
		"what is waived is not to be seen": {everyIsolated, waived, Place{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			outcome := cmp.Or(tc.outcome, v1alpha1.OutcomeFailed)
			got := placeOf(finding.Finding{Outcome: outcome, Objects: tc.objects}, twoNodes(), everyIsolated.CPUs)
			tc.want.NICs, tc.want.NUMANodes = append([]string{}, tc.want.NICs...), append([]int{}, tc.want.NUMANodes...)
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFindingsAreSortedByPlace(t *testing.T) {
	top := twoNodes()
	object := &v1alpha1.LowLatencyNode{}
	for check, objects := range map[v1alpha1.CheckID]finding.Objects{
		"a": finding.OfCPUs(cpus.Of(1)), "b": finding.OfCPUs(cpus.Of(2, 3, 4)), "c": finding.OfCPUs(cpus.Of(2, 3, 4, 5, 6)), "d": finding.OfNUMANodes(1), "e": {},
	} {
		object.Status.Findings = append(object.Status.Findings, v1alpha1.Finding{Check: check, Outcome: v1alpha1.OutcomeFailed, Objects: objects.Status()})
	}
	node := OfStatus(NodeInput{Topology: top, Plan: &plan.NodePlan{CPUs: plan.CPUPlan{Isolated: cpus.Of(2, 3, 4, 5, 6)}}}, object)
	at := map[int]map[v1alpha1.CheckID]string{0: {}, 1: {}}
	for i := range top.NUMANodes {
		for _, finding := range node.FindingsAt(&top.NUMANodes[i]) {
			at[i][finding.Check] = node.LabelAt(&top.NUMANodes[i], finding)
		}
	}
	want := map[int]map[v1alpha1.CheckID]string{0: {"a": "CPU 1", "b": "CPUs 2-3"}, 1: {"b": "CPU 4", "d": "NUMA node 1"}}
	if diff := gocmp.Diff(want, at); diff != "" {
		t.Error(diff)
	}
	wide := []WideFindings{{"every isolated CPU", []v1alpha1.CheckID{"c"}}, {"the whole node", []v1alpha1.CheckID{"e"}}}
	if diff := gocmp.Diff(wide, node.WideFindings()); diff != "" {
		t.Error(diff)
	}
	if !node.Names(4) || node.Names(5) || node.PlanHash == nil && node.Status() != metav1.ConditionFalse {
		t.Error("the wrong CPUs are named")
	}
}

func TestRoles(t *testing.T) {
	p := &plan.NodePlan{CPUs: plan.CPUPlan{
		Housekeeping: cpus.Of(0, 1, 7), Shared: cpus.Of(1), Isolated: cpus.Of(2, 3, 4), DataPlane: cpus.Of(4),
	}}
	want := []Role{
		{RoleHousekeeping, cpus.Of(0)}, {RoleShared, cpus.Of(1)}, {RoleIsolated, cpus.Of(2, 3)}, {RoleDataPlane, cpus.Of(4)},
		{RoleOffline, cpus.Of(7)}, {RoleNone, cpus.Of(5, 6)},
	}
	if diff := gocmp.Diff(want, roles(p, twoNodes())); diff != "" {
		t.Error(diff)
	}
	unplanned := []Role{{RoleOffline, cpus.Of(7)}, {RoleNone, cpus.Of(0, 1, 2, 3, 4, 5, 6)}}
	if diff := gocmp.Diff(unplanned, roles(nil, twoNodes())); diff != "" {
		t.Error(diff)
	}
	node := Node{Roles: want, Containers: []nodereport.Container{{Container: "c", CPUs: cpus.Of(2, 5)}}}
	for cpu, role := range map[int]RoleName{0: RoleHousekeeping, 2: RoleOwned, 3: RoleIsolated, 5: RoleOwned, 9: RoleNone} {
		if got := node.DrawnRole(cpu); got != role {
			t.Errorf("CPU %d is drawn as %s, want %s", cpu, got, role)
		}
	}
	if last := node.DrawnRoles()[len(want)]; last.Role != RoleOwned || last.CPUs.String() != "2,5" {
		t.Errorf("the last role is %+v", last)
	}
	for _, role := range append(node.DrawnRoles(), Role{Role: RoleNone}) {
		if role.Role.Letter() == "" || role.Role.Words() == "" {
			t.Errorf("role %s has no letter or no words", role.Role)
		}
	}
}

func TestOwnersOfACPU(t *testing.T) {
	node := Node{Containers: []nodereport.Container{
		{Namespace: new("n"), Pod: new("late"), Container: "c", CPUs: cpus.Of(4, 5)}, {Namespace: new("n"), Pod: new("early"), Container: "c", CPUs: cpus.Of(2)},
	}}
	if diff := gocmp.Diff([]string{"n/late/c"}, node.OwnersOf(5)); diff != "" || node.OwnersOf(0) != nil {
		t.Error(diff)
	}
}

// withReport is the view of a node with a report about plan p.
func withReport(object *v1alpha1.LowLatencyNode, problem string) Node {
	full := &nodereport.Report{
		PlanHash: "p", Time: time.Date(2026, 11, 21, 9, 0, 0, 0, time.FixedZone("", 3600)), Owners: nodereport.Owners{ContainersProblem: problem},
		Results: []nodereport.CheckResult{
			{Finding: finding.Finding{Check: "a", Severity: v1alpha1.SeverityLow, Outcome: v1alpha1.OutcomePassed}},
			{Finding: finding.Finding{Check: "b", Severity: v1alpha1.SeverityLow, Outcome: v1alpha1.OutcomeUnknown}},
			{Finding: finding.Finding{Check: "c", Severity: v1alpha1.SeverityCritical, Outcome: v1alpha1.OutcomeFailed, Objects: finding.OfCPUs(cpus.Of(5))}},
		},
		Skipped: []nodereport.SkippedCheck{{Check: "d", Reason: "read once"}},
	}
	node := OfStatus(NodeInput{Topology: twoNodes()}, object)
	node.AddReport(full, object)
	return node
}

func TestAddReport(t *testing.T) {
	object := &v1alpha1.LowLatencyNode{}
	object.Status.VerifiedPlanHash, object.Status.Checks = "p", &v1alpha1.CheckCounts{Passed: 9}
	node := withReport(object, "")
	checks := make([]v1alpha1.CheckID, 0, len(node.Findings))
	for _, finding := range node.Findings {
		checks = append(checks, finding.Check)
	}
	got := []any{node.Passed, checks, node.Names(5), node.Skipped, *node.Counts, node.Problems, node.ReportTime.Format(time.RFC3339)}
	want := []any{
		[]v1alpha1.CheckID{"a"}, []v1alpha1.CheckID{"c", "b"}, true, []Skip{{"d", "read once"}},
		v1alpha1.CheckCounts{Passed: 1, Failed: 1, Unknown: 1}, []string{}, "2026-11-21T08:00:00Z",
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestAddReportOfAnotherTime has a host that could not be read since, so that the status is about no plan.
func TestAddReportOfAnotherTime(t *testing.T) {
	object := &v1alpha1.LowLatencyNode{}
	object.Status.Checks = &v1alpha1.CheckCounts{Passed: 9}
	node := withReport(object, "no kubelet")
	want := []string{"no kubelet", "the full report of the agent is about plan p: the checks that passed are not shown"}
	if diff := gocmp.Diff(want, node.Problems); diff != "" {
		t.Error(diff)
	}
	if node.Passed != nil || node.Skipped != nil || len(node.Findings) != 0 || node.Counts.Passed != 9 {
		t.Errorf("passed %v, skipped %v, findings %v, counts %+v", node.Passed, node.Skipped, node.Findings, node.Counts)
	}
}

func TestSharesOfABar(t *testing.T) {
	cases := map[string]struct {
		promised, total, free *int64
		want                  Shares
		words                 string
	}{
		"half used":         {new(int64(8)), new(int64(8)), new(int64(4)), Shares{Used: 5, Free: 5}, "4 of 8 in use · planned 8"},
		"all free":          {new(int64(3)), new(int64(3)), new(int64(3)), Shares{Free: 10}, "0 of 3 in use · planned 3"},
		"some missing":      {new(int64(10)), new(int64(4)), new(int64(1)), Shares{Used: 3, Free: 1, Missing: 6}, "3 of 4 in use · planned 10"},
		"hardly one free":   {nil, new(int64(1000)), new(int64(1)), Shares{Used: 9, Free: 1}, "999 of 1000 in use"},
		"none of many":      {new(int64(9)), new(int64(0)), new(int64(0)), Shares{Missing: 10}, "0 of 0 in use · planned 9"},
		"free and missing":  {new(int64(3)), new(int64(1)), new(int64(1)), Shares{Free: 3, Missing: 7}, "0 of 1 in use · planned 3"},
		"mostly free":       {new(int64(3)), new(int64(2)), new(int64(2)), Shares{Free: 7, Missing: 3}, "0 of 2 in use · planned 3"},
		"nothing at all":    {nil, new(int64(0)), new(int64(0)), Shares{}, "none"},
		"nothing is known":  {nil, nil, nil, Shares{Unknown: 10}, "not reported"},
		"the plan is known": {new(int64(4)), nil, nil, Shares{Unknown: 10}, "planned 4 · not reported"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			state := HugepageState{SizeKibibytes: 2048, Promised: tc.promised, Total: tc.total, Free: tc.free}
			if diff := gocmp.Diff(tc.want, state.Shares(10)); diff != "" {
				t.Error(diff)
			}
			if got := state.Words(); got != tc.words {
				t.Errorf("got %q, want %q", got, tc.words)
			}
		})
	}
}

func TestOfStatus(t *testing.T) {
	object := &v1alpha1.LowLatencyNode{Spec: v1alpha1.LowLatencyNodeSpec{PlanHash: "h"}}
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	object.Status.Conditions = []metav1.Condition{{Type: "Ready", LastTransitionTime: metav1.NewTime(since)}, {Type: "Applied"}}
	object.Status.Drift = []v1alpha1.CheckDrift{{Check: "a"}}
	object.Status.Transitions = []v1alpha1.NodeTransition{{Time: metav1.NewTime(since)}, {Time: metav1.NewTime(since.Add(time.Hour)), Condition: "late"}}
	got := OfStatus(NodeInput{Name: "n", Profile: "p", Topology: twoNodes()}, object)
	if *got.PlanHash != "h" || got.Status() != metav1.ConditionUnknown || got.Passed != nil || got.Counts != nil {
		t.Errorf("got %+v", got)
	}
	if !got.Conditions[0].LastTransition.Equal(since) || got.Conditions[1].LastTransition != nil || got.Transitions[0].Condition != "late" || len(got.Drift) != 1 {
		t.Errorf("got %+v, %+v and %+v", got.Conditions, got.Transitions, got.Drift)
	}
}

func TestHugepagesWithoutAPlan(t *testing.T) {
	got := OfStatus(NodeInput{Topology: twoNodes()}, &v1alpha1.LowLatencyNode{})
	// Nothing is known of the plan, so that a pool of which nothing is known says nothing.
	if pools := append(got.HugepagesAt(0), got.HugepagesAt(1)...); len(pools) != 1 || pools[0].Promised != nil || *pools[0].Total != 4 || got.HugepagesAt(9) != nil {
		t.Errorf("got %+v", pools)
	}
}

func TestDocumentation(t *testing.T) {
	if want := "https://github.com/lowlatency-dev/lowlatency-operator/blob/main/docs/checks.md#cpu.nohz-full"; documentation("cpu.nohz-full") != want {
		t.Error(documentation("cpu.nohz-full"))
	}
}

func TestPoolWithHolders(t *testing.T) {
	pool := Pool{Nodes: []PoolNode{{Node: "a", NICs: []PoolNIC{
		{PCIAddress: "1", Health: v1alpha1.NICHealthy, Units: 3, NUMANode: new(0), Edits: &PoolEdits{}}, {PCIAddress: "2", EditsProblem: new("p")},
	}}}}
	holders := []allocation.Holder{{PCIAddress: "1", Container: allocation.Container{Namespace: "n", Pod: "p", Name: "c"}, Alignment: v1alpha1.AlignmentSplit, Message: "m"}}
	got := pool.WithHolders(holders, true)
	want := []PoolUser{{Namespace: "n", Pod: "p", Container: "c", Alignment: v1alpha1.AlignmentSplit, Message: new("m")}}
	if diff := gocmp.Diff(want, got.Nodes[0].NICs[0].Users); diff != "" || *got.Nodes[0].NUMANodes[0].Free != 2 || got.Nodes[0].NICs[0].Edits != nil || got.Nodes[0].NICs[1].EditsProblem != nil {
		t.Errorf("got %+v: %s", got, diff)
	}
	node := Node{Pools: []Pool{got}}
	if uses := node.UsesOf("1"); len(uses) != 1 || uses[0].Words() != ", 1 of 3 used" {
		t.Errorf("got %+v", uses)
	}
	if unknown := pool.WithHolders(nil, false); unknown.Nodes[0].NICs[0].Users != nil || (NICUse{NIC: unknown.Nodes[0].NICs[0]}).Words() != "" {
		t.Errorf("got %+v", unknown)
	}
	if pool.Nodes[0].NICs[0].Edits == nil {
		t.Error("the pool itself was changed")
	}
}
