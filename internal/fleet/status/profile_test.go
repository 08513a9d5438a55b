// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

func TestStatusCounts(t *testing.T) {
	disputed := verifiedMember("n5", "h", "TTT")
	disputed.Planned, disputed.OtherProfiles = nil, []string{"other"}
	s := summarize(objects.MakeProfile("trading").Obj(), inForce(),
		verifiedMember("n1", "h", "TTT"), verifiedMember("n2", "h", "TFT"), verifiedMember("n3", "h", "FUU"),
		fleet.Member{Node: objects.MakeNode("n4")}, disputed, pendingMember("n6", "old", "h"))
	want := &v1alpha1.NodeCounts{Matched: 6, Planned: 4, Applied: 2, Pending: 1, DeJittered: 3, NUMAAligned: 4}
	if diff := cmp.Diff(want, s.counts()); diff != "" {
		t.Errorf("counts mismatch (-want +got):\n%s", diff)
	}
}

func TestStatusShapes(t *testing.T) {
	big := makePlanned("b")
	big.Plan = &plan.NodePlan{
		CPUs: plan.CPUPlan{Housekeeping: cpus.Of(0, 1), Isolated: cpus.Of(2, 3), Derivation: &plan.Derivation{
			Asked: 1, Housekeeping: 2, Isolated: 2, Reason: v1alpha1.PartitionWholeL3Domains,
		}},
		KernelArguments: []plan.Argument{{Text: "nohz=on"}, {Text: "isolcpus=2-3"}},
	}
	members := []fleet.Member{
		verifiedMember("n1", "a", "TTT"), verifiedMember("n2", "b", "TTT"), verifiedMember("n3", "b", "FTT"), pendingMember("n4", "a", "b"),
	}
	members[1].Planned, members[2].Planned, members[3].Planned = big, big, big
	s := summarize(objects.MakeProfile("trading").Obj(), fleet.Outcome{GroupOf: map[string]string{"a": "pool-a", "b": "pool-b"}}, members...)
	want := []v1alpha1.ShapeStatus{
		{Hash: "b", Pool: "pool-b", Nodes: 3, Pending: 1, KernelArguments: "nohz=on isolcpus=2-3", Housekeeping: "0-1", Isolated: "2-3", Reboot: v1alpha1.RebootRequired,
			Partition: &v1alpha1.ShapePartition{AskedCores: 1, HousekeepingCores: 2, IsolatedCores: 2, Reason: v1alpha1.PartitionWholeL3Domains}},
		{Hash: "a", Pool: "pool-a", Nodes: 1, KernelArguments: "nohz=on", Reboot: v1alpha1.RebootNotRequired},
	}
	if diff := cmp.Diff(want, s.shapeStatuses()); diff != "" {
		t.Errorf("shapes mismatch (-want +got):\n%s", diff)
	}
}

func TestReboots(t *testing.T) {
	before := func(commandLine string) fleet.Member {
		m := verifiedMember("n", "old", "TTT")
		m.Planned = makePlanned("h")
		m.Report.Status.Inventory.KernelCommandLine = commandLine
		return m
	}
	failed := func(reason, commandLine string) fleet.Member {
		m := before(commandLine)
		m.Report.Status.VerifiedPlanHash = "h"
		applied := &m.Report.Status.Conditions[0]
		applied.Status, applied.Reason = metav1.ConditionFalse, reason
		return m
	}
	handedBack := func(reason, commandLine string, reboot v1alpha1.RebootRequirement) fleet.Member {
		m := failed(reason, commandLine)
		m.Report.Status.Findings = []v1alpha1.Finding{{Check: "kubelet.cpu-manager", Outcome: v1alpha1.OutcomeFailed, Reboot: reboot}}
		return m
	}
	unsure := func(reason, commandLine string) fleet.Member {
		m := failed(reason, commandLine)
		m.Report.Status.Conditions[0].Status = metav1.ConditionUnknown
		return m
	}
	cases := map[string]struct {
		members []fleet.Member
		want    v1alpha1.RebootRequirement
	}{
		"not looked at, another spelling":        {[]fleet.Member{before("quiet nohz=1")}, v1alpha1.RebootUnknown},
		"not looked at, overridden":              {[]fleet.Member{before("nohz=on nohz=off")}, v1alpha1.RebootRequired},
		"not looked at, contradicted":            {[]fleet.Member{before("nohz=on nosmt")}, v1alpha1.RebootRequired},
		"failed, a reboot brings it":             {[]fleet.Member{failed(v1alpha1.ReasonRebootPending, "nohz=on")}, v1alpha1.RebootRequired},
		"taken back, a reboot brings it":         {[]fleet.Member{handedBack(v1alpha1.ReasonTakenBack, "nohz=on", v1alpha1.RebootRequired)}, v1alpha1.RebootRequired},
		"refused, a reboot brings it":            {[]fleet.Member{handedBack(v1alpha1.ReasonRefused, "nohz=on", v1alpha1.RebootRequired)}, v1alpha1.RebootRequired},
		"taken back, and no reboot brings it":    {[]fleet.Member{handedBack(v1alpha1.ReasonTakenBack, "nohz=on", v1alpha1.RebootNotRequired)}, v1alpha1.RebootNotRequired},
		"failed, the arguments are there":        {[]fleet.Member{failed(v1alpha1.ReasonChecksFailed, "nohz=on")}, v1alpha1.RebootNotRequired},
		"failed, the arguments are not":          {[]fleet.Member{failed(v1alpha1.ReasonChecksFailed, "quiet")}, v1alpha1.RebootRequired},
		"failed, nothing is reported":            {[]fleet.Member{failed(v1alpha1.ReasonChecksFailed, "")}, v1alpha1.RebootRequired},
		"cannot tell, the arguments are there":   {[]fleet.Member{unsure(v1alpha1.ReasonChecksUnknown, "nohz=on")}, v1alpha1.RebootUnknown},
		"cannot tell, the arguments are not":     {[]fleet.Member{unsure(v1alpha1.ReasonChecksUnknown, "quiet")}, v1alpha1.RebootRequired},
		"cannot tell, once a reboot was due":     {[]fleet.Member{unsure(v1alpha1.ReasonRebootPending, "nohz=on")}, v1alpha1.RebootUnknown},
		"applied everywhere":                     {[]fleet.Member{verifiedMember("n", "h", "TTT")}, v1alpha1.RebootNotRequired},
		"applied on one of two":                  {[]fleet.Member{verifiedMember("n", "h", "TTT"), verifiedMember("m", "h", "FTT")}, v1alpha1.RebootRequired},
		"not looked at, an argument is missing":  {[]fleet.Member{before("quiet")}, v1alpha1.RebootRequired},
		"not looked at, all arguments are there": {[]fleet.Member{before("quiet nohz=on")}, v1alpha1.RebootUnknown},
		"not looked at, command line unknown":    {[]fleet.Member{before("")}, v1alpha1.RebootUnknown},
		"applied and unknown":                    {[]fleet.Member{verifiedMember("n", "h", "TTT"), before("")}, v1alpha1.RebootUnknown},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := summarize(objects.MakeProfile("p").Obj(), inForce(), tc.members...).reboots()["h"]; got != tc.want {
				t.Errorf("reboot is %s, want %s", got, tc.want)
			}
		})
	}
}

// TestEqualStatusesOfTwoReadingsAreTheSame: a status that was computed again, or read from the API server, is no change.
func TestEqualStatusesOfTwoReadingsAreTheSame(t *testing.T) {
	one := v1alpha1.LowLatencyNodeProfileStatus{
		ObservedGeneration: 3, Nodes: &v1alpha1.NodeCounts{Matched: 2}, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady}},
		Effective: []v1alpha1.EffectiveSetting{{Field: "spec.cpus.tick", Value: "Stopped"}},
		Shapes:    []v1alpha1.ShapeStatus{{Hash: "a", Partition: &v1alpha1.ShapePartition{AskedCores: 2}}},
		Findings:  []v1alpha1.ProfileFinding{{Check: "plan.shared-cache", Objects: &v1alpha1.FindingObjects{CPUs: "0-3", NUMANodes: []int32{0}}}},
	}
	if !SameProfile(&one, one.DeepCopy()) {
		t.Error("a copy is another status")
	}
	for name, change := range map[string]func(*v1alpha1.LowLatencyNodeProfileStatus){
		"generation":      func(s *v1alpha1.LowLatencyNodeProfileStatus) { s.ObservedGeneration++ },
		"count":           func(s *v1alpha1.LowLatencyNodeProfileStatus) { s.Nodes.Applied++ },
		"nodes":           func(s *v1alpha1.LowLatencyNodeProfileStatus) { s.Nodes = nil },
		"condition":       func(s *v1alpha1.LowLatencyNodeProfileStatus) { s.Conditions[0].Message = "other" },
		"effective value": func(s *v1alpha1.LowLatencyNodeProfileStatus) { s.Effective[0].Value = "other" },
		"shape":           func(s *v1alpha1.LowLatencyNodeProfileStatus) { s.Shapes[0].Nodes++ },
		"finding":         func(s *v1alpha1.LowLatencyNodeProfileStatus) { s.Findings[0].Message = "other" },
		"partition":       func(s *v1alpha1.LowLatencyNodeProfileStatus) { s.Shapes[0].Partition.HousekeepingCores = 3 },
		"objects":         func(s *v1alpha1.LowLatencyNodeProfileStatus) { s.Findings[0].Objects.CPUs = "0-4" },
	} {
		other := one.DeepCopy()
		if change(other); SameProfile(&one, other) {
			t.Errorf("another %s is the same status", name)
		}
	}
}

func TestStatusKeepsTransitionTimes(t *testing.T) {
	first, later := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	profile := objects.MakeProfile("trading").Obj()
	before := summarize(profile, inForce(), verifiedMember("n1", "h", "TTT")).status(&v1alpha1.LowLatencyNodeProfileStatus{}, first)
	again := summarize(profile, inForce(), verifiedMember("n1", "h", "TTT")).status(&before, later)
	if !SameProfile(&before, &again) {
		t.Errorf("the status changed although the world did not:\n%s", cmp.Diff(before, again))
	}
	broken := summarize(profile, inForce(), verifiedMember("n1", "h", "TFT")).status(&before, later)
	if SameProfile(&before, &broken) {
		t.Error("the status did not change although the world did")
	}
	times := map[string]metav1.Time{
		v1alpha1.ConditionReady: later, v1alpha1.ConditionDegraded: later, v1alpha1.ConditionDeJittered: later,
		v1alpha1.ConditionProgressing: first, v1alpha1.ConditionNUMAAligned: first,
	}
	for kind, want := range times {
		if got := meta.FindStatusCondition(broken.Conditions, kind); !got.LastTransitionTime.Equal(&want) || got.ObservedGeneration != 1 {
			t.Errorf("%s is %+v, want a transition at %s", kind, got, want)
		}
	}
	if !slices.IsSortedFunc(broken.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) }) {
		t.Errorf("conditions are not in order: %+v", broken.Conditions)
	}
}

func TestStatusDropsStalled(t *testing.T) {
	now := metav1.NewTime(time.Unix(1000, 0))
	profile := objects.MakeProfile("trading").Obj()
	impossible := fleet.Member{Node: objects.MakeNode("n1"), Report: objects.MakeReport("n1", "trading").Verified("h", "TTT").Obj(), Planned: impossiblePlan()}
	stalled := summarize(profile, inForce(), impossible).status(&v1alpha1.LowLatencyNodeProfileStatus{}, now)
	if meta.FindStatusCondition(stalled.Conditions, v1alpha1.ConditionStalled) == nil {
		t.Fatal("the profile is not stalled")
	}
	mended := summarize(profile, inForce(), verifiedMember("n1", "h", "TTT")).status(&stalled, now)
	if meta.FindStatusCondition(mended.Conditions, v1alpha1.ConditionStalled) != nil {
		t.Error("the profile is still stalled")
	}
}

func TestStatusOfADeletionKeepsTheRest(t *testing.T) {
	previous := v1alpha1.LowLatencyNodeProfileStatus{Nodes: &v1alpha1.NodeCounts{Matched: 3}, Shapes: []v1alpha1.ShapeStatus{{Hash: "h"}}}
	s := newReturnSummary(objects.MakeProfile("trading").Obj(), fleet.Remainder{Waiting: "x"}, time.Unix(0, 0))
	next := s.status(&previous, metav1.Now())
	if next.Nodes != previous.Nodes || len(next.Shapes) != 1 {
		t.Errorf("status is %+v, want that before the deletion", next)
	}
}

// onCPU6 are the objects of an interrupt on CPU 6.
func onCPU6() *v1alpha1.FindingObjects {
	return &v1alpha1.FindingObjects{
		CPUs: "6", Interrupts: []v1alpha1.Interrupt{{ID: "142"}}, Counts: v1alpha1.ObjectCounts{CPUs: 1, Interrupts: 1},
	}
}

func TestFindings(t *testing.T) {
	critical := func(name string) fleet.Member {
		m := verifiedMember(name, "h", "TFT")
		m.Report.Status.Findings = []v1alpha1.Finding{
			{Check: "irq.affinity", Severity: v1alpha1.SeverityCritical, Outcome: v1alpha1.OutcomeFailed, Message: "IRQ 142 may run on isolated CPU 6", Objects: onCPU6()},
			{Check: "power.turbo", Severity: v1alpha1.SeverityLow, Outcome: v1alpha1.OutcomeUnknown, Message: "not told"},
			{Check: "memory.ksm", Severity: v1alpha1.SeverityMedium, Outcome: v1alpha1.OutcomeWaived, Message: "waived"},
		}
		m.Planned.Findings = []plan.Finding{{Rule: "plan.nic-locality", Severity: v1alpha1.SeverityMedium, Field: "spec.network", Message: "NIC is far.", Objects: finding.OfNICs("0000:3b:00.0")}}
		return m
	}
	stale := critical("n4")
	stale.Report.Status.VerifiedPlanHash = "old"
	stale.Report.Status.Enactment = &v1alpha1.NodeEnactment{Differences: []string{"/etc/x is absent"}}
	impossible := fleet.Member{Node: objects.MakeNode("n5"), Report: objects.MakeReport("n5", "trading").Verified("h", "TTT").Obj(), Planned: impossiblePlan()}
	disputed := fleet.Member{Node: objects.MakeNode("n6"), OtherProfiles: []string{"other"}}
	s := summarize(objects.MakeProfile("trading").Obj(), poolsOf(fleet.PhaseFailed, "pool trading-1 reports NodeDegraded"),
		critical("n1"), critical("n2"), stale, impossible, disputed)
	want := []v1alpha1.ProfileFinding{
		{Node: "n1", Check: "irq.affinity", Severity: v1alpha1.SeverityCritical, Message: "IRQ 142 may run on isolated CPU 6 (and 1 more)", Objects: onCPU6()},
		{Node: "n5", Check: "plan.cpus-exist", Severity: v1alpha1.SeverityCritical, Message: "spec.cpus on node n5: CPU 99 does not exist. Name one that does."},
		{Check: checkPlatform, Severity: v1alpha1.SeverityCritical, Message: "pool trading-1 reports NodeDegraded"},
		{Node: "n6", Check: checkOverlap, Severity: v1alpha1.SeverityCritical, Message: "node n6 is selected by profile other, too, and is left as it is: narrow spec.nodeSelector of one of them"},
		{Node: "n4", Check: checkForeign, Severity: v1alpha1.SeverityHigh, Message: "/etc/x is absent"},
		{Node: "n1", Check: "plan.nic-locality", Severity: v1alpha1.SeverityMedium, Message: "spec.network on node n1: NIC is far. (and 2 more)", Objects: finding.OfNICs("0000:3b:00.0").Status()},
		{Node: "n5", Check: "plan.turbo", Severity: v1alpha1.SeverityLow, Message: "spec.power.turbo on node n5: doubtful."},
	}
	if diff := cmp.Diff(want, s.findings()); diff != "" {
		t.Errorf("findings mismatch (-want +got):\n%s", diff)
	}
}

func TestFindingsAreBounded(t *testing.T) {
	members := make([]fleet.Member, 0, 100)
	for i := range 100 {
		m := verifiedMember(fmt.Sprintf("n%03d", i), "h", "TFT")
		m.Report.Status.Findings = []v1alpha1.Finding{{
			Check: "irq.affinity", Severity: v1alpha1.SeverityCritical, Outcome: v1alpha1.OutcomeFailed,
			Message: strings.Repeat("é", 600) + m.Name(),
		}}
		members = append(members, m)
	}
	findings := summarize(objects.MakeProfile("trading").Obj(), inForce(), members...).findings()
	if len(findings) != v1alpha1.MaxProfileFindings || findings[0].Node != "n000" {
		t.Fatalf("there are %d findings, the first on %s", len(findings), findings[0].Node)
	}
	for _, finding := range findings {
		if len(finding.Message) > v1alpha1.MaxFindingMessageLength || !utf8.ValidString(finding.Message) {
			t.Errorf("message has %d bytes, valid %v", len(finding.Message), utf8.ValidString(finding.Message))
		}
	}
}

func TestArchitecture(t *testing.T) {
	of := func(names ...string) []fleet.Shape {
		shapes := make([]fleet.Shape, 0, len(names))
		for _, name := range names {
			shapes = append(shapes, fleet.Shape{Plan: &plan.NodePlan{Architecture: name}})
		}
		return shapes
	}
	cases := map[string]struct {
		shapes []fleet.Shape
		want   string
	}{
		"none": {of(), ""}, "one": {of("arm64"), "arm64"}, "equal": {of("amd64", "amd64"), "amd64"}, "different": {of("amd64", "arm64"), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := architecture(tc.shapes); got != tc.want {
				t.Errorf("architecture() = %q, want %q", got, tc.want)
			}
		})
	}
}
