// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package status

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/states"
)

// poolsOf makes the outcome of one pool that carries plan h.
func poolsOf(phase fleet.Phase, message string) fleet.Outcome {
	return fleet.Outcome{
		GroupOf: map[string]string{"h": "trading-1"},
		Groups:  []fleet.Group{{Name: "trading-1", Phase: phase, Message: message}},
	}
}

func inForce() fleet.Outcome { return poolsOf(fleet.PhaseInForce, "") }

func conflicting(reason, node, message string) fleet.Outcome {
	return fleet.Outcome{
		GroupOf:   map[string]string{},
		Conflicts: []fleet.Conflict{{Reason: reason, Node: node, Message: message}},
	}
}

// summarize makes the summary of a profile with these members.
func summarize(profile *v1alpha1.LowLatencyNodeProfile, outcome fleet.Outcome, members ...fleet.Member) *summary {
	d := &fleet.ProfileDecision{Members: members, Intent: &fleet.Intent{
		Profile: profile, Shapes: fleet.ShapesOf(members), ReadOnly: profile.Spec.Rollout.State == v1alpha1.RolloutPaused,
	}}
	return newSummary(d, outcome)
}

// conditionCase is a line of the truth table: the statuses are those of Ready, Progressing, Degraded,
// DeJittered and NUMAAligned, each T, F or U, and S when Stalled is there.
type conditionCase struct {
	profile *objects.Profile
	outcome fleet.Outcome
	members []fleet.Member
	want    string
	// wantReasons are the reasons of Ready, Progressing, Degraded, DeJittered and NUMAAligned.
	wantReasons string
	// wantMessages are parts of the messages of the conditions.
	wantMessages map[string]string
}

func runConditions(t *testing.T, cases map[string]conditionCase) {
	recorded := states.Recorder{}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.profile == nil {
				tc.profile = objects.MakeProfile("trading")
			}
			s := summarize(tc.profile.Obj(), tc.outcome, tc.members...)
			expectConditions(t, s, tc.want, tc.wantReasons, tc.wantMessages)
			recorded.Record(name, s.conditions())
		})
	}
	recorded.Assert(t, "LowLatencyNodeProfile")
}

func expectConditions(t *testing.T, s *summary, want, wantReasons string, wantMessages map[string]string) {
	t.Helper()
	conditions := s.conditions()
	statuses, reasons := printConditions(t, conditions)
	if statuses != want {
		t.Errorf("conditions are %s, want %s: %+v", statuses, want, conditions)
	}
	if reasons != wantReasons {
		t.Errorf("reasons are %q, want %q", reasons, wantReasons)
	}
	for kind, part := range wantMessages {
		condition := meta.FindStatusCondition(conditions, kind)
		if condition == nil || !strings.Contains(condition.Message, part) {
			t.Errorf("condition %s is %+v, want %q in its message", kind, condition, part)
		}
	}
}

// printConditions prints conditions as the truth table does.
func printConditions(t *testing.T, conditions []metav1.Condition) (statuses, reasons string) {
	t.Helper()
	var letters strings.Builder
	words := make([]string, 0, len(conditions))
	for _, kind := range []string{
		v1alpha1.ConditionReady, v1alpha1.ConditionProgressing, v1alpha1.ConditionDegraded,
		v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned,
	} {
		condition := meta.FindStatusCondition(conditions, kind)
		if condition == nil || condition.Message == "" {
			t.Fatalf("condition %s is %+v", kind, condition)
		}
		letters.WriteByte(condition.Status[0])
		words = append(words, condition.Reason)
	}
	if meta.FindStatusCondition(conditions, v1alpha1.ConditionStalled) != nil {
		letters.WriteByte('S')
	}
	return letters.String(), strings.Join(words, "/")
}

func TestConditionsOfARollout(t *testing.T) {
	fresh := fleet.Member{Node: objects.MakeNode("n2")}
	planned := fleet.Member{Node: objects.MakeNode("n1"), Report: objects.MakeReport("n1", "trading").Verified("old", "TTT").Obj(), Planned: makePlanned("h")}
	turned, failing := planned, fleet.Member{Node: planned.Node, Report: objects.MakeReport("n1", "trading").Verified("old", "TFT").Obj(), Planned: planned.Planned}
	turned.Turned = true
	rebooting := fleet.Member{Node: objects.MakeNode("n1"), Report: objects.MakeReport("n1", "trading").Verified("h", "FFU").Obj(), Planned: makePlanned("h")}
	rebooting.Report.Status.Conditions[0].Reason = v1alpha1.ReasonRebootPending
	runConditions(t, map[string]conditionCase{
		"no node": {
			want: "TFFUU", wantReasons: "NoNodes/NoNodes/AsExpected/NoNodes/NoNodes",
			wantMessages: map[string]string{"Ready": "spec.nodeSelector selects no node"},
		},
		"an agent has not reported": {
			members: []fleet.Member{verifiedMember("n1", "h", "TTT"), fresh}, outcome: inForce(),
			want: "FTFUU", wantReasons: "AwaitingInventory/AwaitingInventory/AsExpected/AwaitingInventory/AwaitingInventory",
			wantMessages: map[string]string{
				"Progressing": "the agents of nodes n2 have not reported an inventory yet",
				"DeJittered":  "node n2: the agent has not reported an inventory yet",
			},
		},
		"the pool is being written": {
			members: []fleet.Member{planned}, outcome: poolsOf(fleet.PhaseWriting, "pool trading-1 is being written"),
			want: "FTFTT", wantReasons: "RollingOut/RollingOut/AsExpected/Verified/Verified",
			wantMessages: map[string]string{"Ready": "pool trading-1 is being written"},
		},
		"a node waits for its turn": {
			members: []fleet.Member{planned, verifiedMember("n2", "h", "TTT")}, outcome: inForce(),
			want: "FTFTT", wantReasons: "RollingOut/RollingOut/AsExpected/Verified/Verified",
			wantMessages: map[string]string{"Ready": "node n1 keeps plan old until its turn for plan h comes"},
		},
		"a node that waits for its turn contradicts the plan that it has": {
			members: []fleet.Member{failing}, outcome: poolsOf(fleet.PhaseRolling, "0 of 1 nodes"),
			want: "FTTFT", wantReasons: "ChecksFailed/RollingOut/ChecksFailed/ChecksFailed/Verified",
		},
		"nodes reboot": {
			members: []fleet.Member{rebooting, verifiedMember("n2", "h", "TTT")}, outcome: poolsOf(fleet.PhaseRolling, "1 of 2 nodes"),
			want: "FTFFU", wantReasons: "RollingOut/RollingOut/AsExpected/ChecksFailed/ChecksUnknown",
			wantMessages: map[string]string{"Progressing": "1 of 2 nodes"},
		},
		"the pool is done and an agent has not looked again": {
			members: []fleet.Member{turned}, outcome: inForce(),
			want: "FTFUU", wantReasons: "AwaitingVerification/AwaitingVerification/AsExpected/AwaitingVerification/AwaitingVerification",
		},
		"the pool is done and a node has not rebooted": {
			members: []fleet.Member{rebooting}, outcome: inForce(),
			want: "FTFFU", wantReasons: "RebootPending/RebootPending/AsExpected/ChecksFailed/ChecksUnknown",
			wantMessages: map[string]string{"Ready": "node n1: Applied is disproven by IRQ 142"},
		},
		"all nodes are verified": {
			members: []fleet.Member{verifiedMember("n1", "h", "TTT"), verifiedMember("n2", "h", "TTT")}, outcome: inForce(),
			want: "TFFTT", wantReasons: "Verified/RolloutComplete/AsExpected/Verified/Verified",
			wantMessages: map[string]string{"Ready": "all 2 nodes are verified for the current plan"},
		},
		"no platform changes nodes": {
			members: []fleet.Member{rebooting}, outcome: fleet.Outcome{},
			want: "FTFFU", wantReasons: "RebootPending/RebootPending/AsExpected/ChecksFailed/ChecksUnknown",
		},
	})
}

func TestConditionsOfChecks(t *testing.T) {
	runConditions(t, map[string]conditionCase{
		"a node is not de-jittered": {
			members: []fleet.Member{verifiedMember("n1", "h", "TTT"), verifiedMember("n2", "h", "TFT"), verifiedMember("n3", "h", "TFT")}, outcome: inForce(),
			want: "FFTFT", wantReasons: "ChecksFailed/RolloutComplete/ChecksFailed/ChecksFailed/Verified",
			wantMessages: map[string]string{
				"Degraded":   "node n2: DeJittered is disproven by IRQ 142 (and 1 more)",
				"DeJittered": "node n2: DeJittered is disproven by IRQ 142 (and 1 more)",
			},
		},
		"a node is not NUMA-aligned": {
			members: []fleet.Member{verifiedMember("n1", "h", "TTF")}, outcome: inForce(),
			want: "FFTTF", wantReasons: "ChecksFailed/RolloutComplete/ChecksFailed/Verified/ChecksFailed",
		},
		"the facts of a check are missing": {
			members: []fleet.Member{verifiedMember("n1", "h", "TUT"), verifiedMember("n2", "h", "TTT")}, outcome: inForce(),
			want: "UFFUT", wantReasons: "ChecksUnknown/RolloutComplete/AsExpected/ChecksUnknown/Verified",
			wantMessages: map[string]string{"Ready": "node n1: DeJittered has no facts"},
		},
		"one node fails and another is unknown": {
			members: []fleet.Member{verifiedMember("n1", "h", "TUT"), verifiedMember("n2", "h", "TFT")}, outcome: inForce(),
			want: "FFTFT", wantReasons: "ChecksFailed/RolloutComplete/ChecksFailed/ChecksFailed/Verified",
		},
	})
}

// TestConditionsOfQualification: what tests say of nodes that prove their plan decides Ready, and Degraded when one has failed.
func TestConditionsOfQualification(t *testing.T) {
	unmet := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Status: status, Reason: reason, Message: "LatencyTest a/b says " + reason}
	}
	cases := map[string]struct {
		unqualified   map[string]metav1.Condition
		statuses      string
		want, reasons string
		message       string
	}{
		"waits": {
			map[string]metav1.Condition{"n2": unmet(metav1.ConditionUnknown, v1alpha1.ReasonAwaitingQualification)}, "TTT",
			"UFFTT", "AwaitingQualification/RolloutComplete/AsExpected/Verified/Verified", "node n2: LatencyTest a/b says AwaitingQualification",
		},
		"stale on both": {
			map[string]metav1.Condition{"n1": unmet(metav1.ConditionUnknown, v1alpha1.ReasonQualificationStale), "n2": unmet(metav1.ConditionUnknown, v1alpha1.ReasonQualificationStale)}, "TTT",
			"UFFTT", "QualificationStale/RolloutComplete/AsExpected/Verified/Verified", "node n1: LatencyTest a/b says QualificationStale (and 1 more)",
		},
		"failed": {
			map[string]metav1.Condition{"n1": unmet(metav1.ConditionUnknown, v1alpha1.ReasonAwaitingQualification), "n2": unmet(metav1.ConditionFalse, v1alpha1.ReasonQualificationFailed)}, "TTT",
			"FFTTT", "QualificationFailed/RolloutComplete/QualificationFailed/Verified/Verified", "node n2: LatencyTest a/b says QualificationFailed",
		},
		"a check fails, too": {
			map[string]metav1.Condition{"n2": unmet(metav1.ConditionFalse, v1alpha1.ReasonQualificationFailed)}, "TFT",
			"FFTFT", "ChecksFailed/RolloutComplete/ChecksFailed/ChecksFailed/Verified", "IRQ 142 (and 1 more)",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			members := []fleet.Member{verifiedMember("n1", "h", tc.statuses), verifiedMember("n2", "h", "TTT")}
			d := &fleet.ProfileDecision{
				Members: members, Unqualified: tc.unqualified,
				Intent: &fleet.Intent{Profile: objects.MakeProfile("trading").Obj(), Shapes: fleet.ShapesOf(members)},
			}
			expectConditions(t, newSummary(d, inForce()), tc.want, tc.reasons, map[string]string{v1alpha1.ConditionReady: tc.message})
		})
	}
}

// TestIdleTestsAreFindings: they keep nothing from being Ready.
func TestIdleTestsAreFindings(t *testing.T) {
	members := []fleet.Member{verifiedMember("n1", "h", "TTT")}
	d := &fleet.ProfileDecision{
		Members: members, IdleTests: []string{"tests/way"},
		Intent: &fleet.Intent{Profile: objects.MakeProfile("trading").Obj(), Shapes: fleet.ShapesOf(members)},
	}
	s := newSummary(d, inForce())
	expectConditions(t, s, "TFFTT", "Verified/RolloutComplete/AsExpected/Verified/Verified", nil)
	want := []v1alpha1.ProfileFinding{{Check: "profile.qualification", Severity: v1alpha1.SeverityMedium, Message: "LatencyTest tests/way, which spec.verification.qualification names, " +
		"selects none of the nodes of the profile, so that none needs it: correct its spec.nodes, or name another"}}
	if diff := cmp.Diff(want, s.findings()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReadyNeedsBothProofs: what is not known of one of them makes Ready Unknown.
func TestReadyNeedsBothProofs(t *testing.T) {
	for statuses, want := range map[string]struct{ conditions, reasons string }{
		"TTT": {"TFFTT", "Verified/RolloutComplete/AsExpected/Verified/Verified"},
		"TUT": {"UFFUT", "ChecksUnknown/RolloutComplete/AsExpected/ChecksUnknown/Verified"},
		"TTU": {"UFFTU", "ChecksUnknown/RolloutComplete/AsExpected/Verified/ChecksUnknown"},
	} {
		t.Run(statuses, func(t *testing.T) {
			s := summarize(objects.MakeProfile("trading").Obj(), inForce(), verifiedMember("n1", "h", statuses))
			expectConditions(t, s, want.conditions, want.reasons, nil)
		})
	}
}

// withStaleHeartbeat is a member whose agent does not renew its Lease any more.
func withStaleHeartbeat(m fleet.Member) fleet.Member {
	m.Report = heartbeat.Staleness{Since: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Text: "the agent on node " + m.Name() + " has gone"}.Judge(m.Report)
	return m
}

func TestConditionsOfStaleHeartbeats(t *testing.T) {
	rebooting := verifiedMember("n1", "h", "FUU")
	rebooting.Report.Status.Conditions[0].Reason = v1alpha1.ReasonRebootPending
	unproven := verifiedMember("n1", "h", "TTT")
	unproven.Report.Status.VerifiedPlanHash = "old"
	runConditions(t, map[string]conditionCase{
		"what was proven is unknown": {
			members: []fleet.Member{verifiedMember("n1", "h", "TTT"), withStaleHeartbeat(verifiedMember("n2", "h", "TTT"))}, outcome: inForce(),
			want: "UFFUU", wantReasons: "HeartbeatStale/RolloutComplete/AsExpected/HeartbeatStale/HeartbeatStale",
			wantMessages: map[string]string{"Ready": "node n2: the agent on node n2 has gone", "Progressing": "all 2 nodes have their plan"},
		},
		"while the profile is paused": {
			profile: objects.MakeProfile("trading").Paused(), members: []fleet.Member{withStaleHeartbeat(verifiedMember("n1", "h", "TTT"))},
			want: "UFFUU", wantReasons: "HeartbeatStale/Paused/AsExpected/HeartbeatStale/HeartbeatStale",
			wantMessages: map[string]string{"Progressing": "0 nodes wait for their plan"},
		},
		"what failed is not mended": {
			members: []fleet.Member{withStaleHeartbeat(verifiedMember("n1", "h", "TFT"))}, outcome: inForce(),
			want: "FFTFU", wantReasons: "ChecksFailed/RolloutComplete/ChecksFailed/ChecksFailed/HeartbeatStale",
			wantMessages: map[string]string{"Degraded": "node n1: DeJittered is disproven by IRQ 142; besides, the agent on node n1 has gone"},
		},
		"a node that reboots is on its way": {
			members: []fleet.Member{withStaleHeartbeat(rebooting)}, outcome: inForce(),
			want: "FTFUU", wantReasons: "RebootPending/RebootPending/AsExpected/ChecksUnknown/ChecksUnknown",
		},
		"what was said of another plan counts for nothing anyway": {
			members: []fleet.Member{withStaleHeartbeat(unproven)}, outcome: inForce(),
			want: "FTFUU", wantReasons: "AwaitingVerification/AwaitingVerification/AsExpected/AwaitingVerification/AwaitingVerification",
		},
	})
}

func TestCountsOfStaleHeartbeats(t *testing.T) {
	s := summarize(objects.MakeProfile("trading").Obj(), inForce(), verifiedMember("n1", "h", "TTT"), withStaleHeartbeat(verifiedMember("n2", "h", "TTT")))
	want := v1alpha1.NodeCounts{Matched: 2, Planned: 2, Applied: 1, DeJittered: 1, NUMAAligned: 1}
	if got := *s.counts(); got != want {
		t.Errorf("counts() = %+v, want %+v", got, want)
	}
}

func TestConditionsOfProblems(t *testing.T) {
	disputed := verifiedMember("n1", "h", "TTT")
	disputed.Planned, disputed.OtherProfiles = nil, []string{"other"}
	unplanned := fleet.Member{Node: objects.MakeNode("n1"), OtherProfiles: []string{"other"}}
	failing := fleet.Member{Node: objects.MakeNode("n1"), Report: objects.MakeReport("n1", "trading").Verified("h", "TFT").Obj(), Planned: impossiblePlan()}
	without := fleet.Member{Node: objects.MakeNode("n1"), Report: objects.MakeReport("n1", "trading").Verified("h", "TTT").Obj(), Planned: impossiblePlan()}
	waiting := fleet.Member{Node: objects.MakeNode("n2"), Report: objects.MakeReport("n2", "trading").Verified("old", "TTT").Obj(), Planned: makePlanned("h")}
	runConditions(t, map[string]conditionCase{
		"two profiles select a node": {
			members: []fleet.Member{disputed}, outcome: fleet.Outcome{},
			want: "FFTTTS", wantReasons: "ProfilesOverlap/ProfilesOverlap/ProfilesOverlap/Verified/Verified",
			wantMessages: map[string]string{"Degraded": "node n1 is selected by profile other, too", "Stalled": "node n1 is selected"},
		},
		"two profiles select a node while others roll": {
			members: []fleet.Member{disputed, waiting}, outcome: poolsOf(fleet.PhaseRolling, "0 of 1 nodes"),
			want: "FTTTT", wantReasons: "ProfilesOverlap/RollingOut/ProfilesOverlap/Verified/Verified",
		},
		"two profiles select a node that has no plan": {
			members: []fleet.Member{unplanned},
			want:    "FFTUUS", wantReasons: "ProfilesOverlap/ProfilesOverlap/ProfilesOverlap/ProfilesOverlap/ProfilesOverlap",
		},
		"the profile cannot be met on a node that contradicts the plan that it has": {
			members: []fleet.Member{failing}, outcome: inForce(),
			want: "FFTFTS", wantReasons: "PlanImpossible/PlanImpossible/PlanImpossible/ChecksFailed/Verified",
			wantMessages: map[string]string{"Degraded": "Name one that does. (and 1 more)"},
		},
		"the profile cannot be met on a node that has no plan": {
			members: []fleet.Member{{Node: objects.MakeNode("n1"), Report: &v1alpha1.LowLatencyNode{Status: disputed.Report.Status}, Planned: impossiblePlan()}},
			want:    "FFTUUS", wantReasons: "PlanImpossible/PlanImpossible/PlanImpossible/AwaitingPlan/AwaitingPlan",
		},
		"the profile cannot be met on a node": {
			members: []fleet.Member{without, verifiedMember("n2", "h", "TTT")}, outcome: inForce(),
			want: "FFTTTS", wantReasons: "PlanImpossible/PlanImpossible/PlanImpossible/Verified/Verified",
			wantMessages: map[string]string{"Degraded": "spec.cpus on node n1: CPU 99 does not exist. Name one that does."},
		},
		"a pool is held because of such a node": {
			members: []fleet.Member{without, waiting}, outcome: poolsOf(fleet.PhaseHeld, "pool trading-1 is left as it is"),
			want: "FFTTTS", wantReasons: "PlanImpossible/PlanImpossible/PlanImpossible/Verified/Verified",
		},
		"a pool is held because of a node that leaves": {
			members: []fleet.Member{waiting}, outcome: poolsOf(fleet.PhaseHeld, "pool trading-1 is left as it is"),
			want: "FTFTT", wantReasons: "RollingOut/RollingOut/AsExpected/Verified/Verified",
		},
		"a PerformanceProfile governs the machine config pool": {
			members: []fleet.Member{waiting}, outcome: conflicting(v1alpha1.ReasonPerformanceProfileConflict, "", "PerformanceProfile cnf governs"),
			want:        "FFTTTS",
			wantReasons: "PerformanceProfileConflict/PerformanceProfileConflict/PerformanceProfileConflict/Verified/Verified",
		},
		"another profile has the RuntimeClass": {
			members: []fleet.Member{waiting}, outcome: conflicting(v1alpha1.ReasonRuntimeClassConflict, "", "RuntimeClass performance-cnf is that of profile first"),
			want:        "FFTTTS",
			wantReasons: "RuntimeClassConflict/RuntimeClassConflict/RuntimeClassConflict/Verified/Verified",
		},
		"a node is in another pool and the rest is fine": {
			members: []fleet.Member{verifiedMember("n1", "h", "TTT"), waiting},
			outcome: func() fleet.Outcome {
				o := inForce()
				o.Conflicts = conflicting(v1alpha1.ReasonMachineConfigPoolConflict, "n2", "node n2 is in MachineConfigPool infra").Conflicts
				return o
			}(),
			want: "FFTTTS", wantReasons: "MachineConfigPoolConflict/MachineConfigPoolConflict/MachineConfigPoolConflict/Verified/Verified",
		},
		"the most severe problem speaks": {
			members: []fleet.Member{disputed, without, verifiedMember("n3", "h", "TFT")}, outcome: poolsOf(fleet.PhaseFailed, "failed"),
			want: "FFTFTS", wantReasons: "ProfilesOverlap/ProfilesOverlap/ProfilesOverlap/ChecksFailed/Verified",
			wantMessages: map[string]string{"Degraded": "is left as it is: narrow spec.nodeSelector of one of them (and 3 more)"},
		},
	})
}

func TestConditionsOfPlatformFailures(t *testing.T) {
	waiting := fleet.Member{Node: objects.MakeNode("n2"), Report: objects.MakeReport("n2", "trading").Verified("old", "TTT").Obj(), Planned: makePlanned("h")}
	runConditions(t, map[string]conditionCase{
		"the platform renders nothing": {
			members: []fleet.Member{waiting},
			outcome: func() fleet.Outcome {
				o := poolsOf(fleet.PhaseFailed, "pool trading-1 is paused since noon")
				o.Groups[0].Reason = v1alpha1.ReasonRenderingLate
				return o
			}(),
			want: "FFTTT", wantReasons: "RenderingLate/RenderingLate/RenderingLate/Verified/Verified",
			wantMessages: map[string]string{"Degraded": "pool trading-1 is paused since noon"},
		},
		"the platform fails": {
			members: []fleet.Member{waiting}, outcome: poolsOf(fleet.PhaseFailed, "pool trading-1 reports NodeDegraded"),
			want: "FFTTT", wantReasons: "PlatformFailed/PlatformFailed/PlatformFailed/Verified/Verified",
			wantMessages: map[string]string{"Degraded": "pool trading-1 reports NodeDegraded"},
		},
	})
}

func TestConditionsOfPauses(t *testing.T) {
	waiting := fleet.Member{Node: objects.MakeNode("n2"), Report: objects.MakeReport("n2", "trading").Verified("old", "TTT").Obj(), Planned: makePlanned("h")}
	runConditions(t, map[string]conditionCase{
		"the profile is paused before the rollout": {
			profile: objects.MakeProfile("trading").Paused(), members: []fleet.Member{verifiedMember("n1", "h", "TTT"), waiting},
			outcome: poolsOf(fleet.PhaseWriting, "to be written"),
			want:    "FFFTT", wantReasons: "Paused/Paused/AsExpected/Verified/Verified",
			wantMessages: map[string]string{"Progressing": "nothing is written to the platform, 1 nodes wait for their plan"},
		},
		"the profile is paused before an agent has reported": {
			profile: objects.MakeProfile("trading").Paused(), members: []fleet.Member{{Node: objects.MakeNode("n1")}},
			want: "FFFUU", wantReasons: "Paused/Paused/AsExpected/AwaitingInventory/AwaitingInventory",
		},
		"the profile is paused after the rollout": {
			profile: objects.MakeProfile("trading").Paused(), members: []fleet.Member{verifiedMember("n1", "h", "TTT")}, outcome: inForce(),
			want: "TFFTT", wantReasons: "Verified/Paused/AsExpected/Verified/Verified",
		},
		"the pool is paused by its administrator": {
			members: []fleet.Member{waiting}, outcome: poolsOf(fleet.PhaseStopped, "MachineConfigPool trading-1 is paused by its administrator"),
			want: "FFFTT", wantReasons: "Paused/Paused/AsExpected/Verified/Verified",
			wantMessages: map[string]string{"Ready": "MachineConfigPool trading-1 is paused by its administrator"},
		},
	})
}

func TestConditionsOfADeletion(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	rest := fleet.Remainder{Nodes: []string{"n1", "n2"}, Objects: []string{"MachineConfigPool x"}, Waiting: "nodes n1, n2 are leaving"}
	deleting := func(since time.Duration) *summary {
		profile := objects.MakeProfile("trading").Obj()
		profile.DeletionTimestamp = &metav1.Time{Time: now.Add(-since)}
		return newReturnSummary(profile, rest, now)
	}
	expectConditions(t, deleting(time.Minute), "FTFUU", "Deleting/Deleting/AsExpected/Deleting/Deleting", map[string]string{
		"Progressing": "2 nodes and 1 objects are left to give back: nodes n1, n2 are leaving",
	})
	expectConditions(t, deleting(90*time.Minute), "FTFUU", "Deleting/Deleting/AsExpected/Deleting/Deleting", nil)
	expectConditions(t, deleting(91*time.Minute), "FTTUU", "Deleting/Deleting/Deleting/Deleting/Deleting", map[string]string{
		"Degraded": "giving the nodes back takes longer than it should: nodes n1, n2 are leaving",
	})
}

func TestConditionsOfARelease(t *testing.T) {
	kept := verifiedMember("n2", "h", "TTT")
	kept.Planned = nil
	of := func(release fleet.Release, kept []fleet.Member, outcome fleet.Outcome, members ...fleet.Member) *summary {
		return newSummary(&fleet.ProfileDecision{
			Members: members, Kept: kept, Release: release,
			Intent: &fleet.Intent{Profile: objects.MakeProfile("trading").Obj(), Shapes: fleet.ShapesOf(members)},
		}, outcome)
	}
	held := fleet.Release{Nodes: []string{"n2", "n3"}, Governed: 3, Limit: 1}
	expectConditions(t, of(held, []fleet.Member{kept}, inForce(), verifiedMember("n1", "h", "TTT")),
		"FFTTTS", "ReleaseHeld/ReleaseHeld/ReleaseHeld/Verified/Verified", map[string]string{
			"Degraded": "2 of the 3 nodes that the profile governs are no longer selected (n2, n3), and 1 may leave at once: none is released",
			"Stalled":  "or set spec.rollout.maximumReleasedNodes to 2 to let them go",
		})
	expectConditions(t, of(held, []fleet.Member{kept}, fleet.Outcome{}), "FFTTTS", "ReleaseHeld/ReleaseHeld/ReleaseHeld/Verified/Verified", nil)
	leaving := fleet.Release{Nodes: []string{"n2"}, Governed: 2, Limit: 1}
	expectConditions(t, of(leaving, nil, inForce(), verifiedMember("n1", "h", "TTT")),
		"FTFTT", "Releasing/Releasing/AsExpected/Verified/Verified", map[string]string{
			"Progressing": "1 nodes that spec.nodeSelector no longer selects are being released: n2",
		})
	returning := inForce()
	returning.Returning = []string{"n3"}
	expectConditions(t, of(fleet.Release{}, nil, returning), "FTFUU", "Releasing/Releasing/AsExpected/NoNodes/NoNodes", nil)
}
