// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package heartbeat

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/gate"
)

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func key() types.NamespacedName { return types.NamespacedName{Namespace: "agents", Name: "n1"} }

// renewed is a Lease that an agent with the usual interval has renewed some time before noon.
func renewed(ago time.Duration) *coordinationv1.Lease {
	lease := First(reportOf(), "agents", noon().Add(-time.Hour))
	lease.CreationTimestamp = metav1.NewTime(noon().Add(-time.Hour))
	lease.Spec = Renewed("agent-x7k2p/n1", noon().Add(-ago), Renewal)
	return lease
}

// made is a Lease that the operator has made some time before noon, and that no agent has renewed.
func made(ago time.Duration) *coordinationv1.Lease {
	lease := First(reportOf(), "agents", noon().Add(-ago))
	lease.CreationTimestamp = metav1.NewTime(noon().Add(-ago))
	return lease
}

func changed(lease *coordinationv1.Lease, change func(*coordinationv1.LeaseSpec)) *coordinationv1.Lease {
	change(&lease.Spec)
	return lease
}

// reportOf is a node that its agent has verified in boot b1 for plan h.
func reportOf() *v1alpha1.LowLatencyNode {
	report := &v1alpha1.LowLatencyNode{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid-n1"}}
	report.Spec.PlanHash, report.Status.VerifiedPlanHash, report.Status.BootID = "h", "h", "b1"
	for _, kind := range []string{v1alpha1.ConditionApplied, v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned, v1alpha1.ConditionReady} {
		report.Status.Conditions = append(report.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonVerified, Message: "proven",
		})
		if kind != v1alpha1.ConditionReady {
			report.Status.Transitions = append(report.Status.Transitions, v1alpha1.NodeTransition{
				Time: metav1.NewTime(noon().Add(-24 * time.Hour)), Condition: kind, From: metav1.ConditionUnknown, To: metav1.ConditionTrue,
				Reason: v1alpha1.ReasonVerified, PlanHash: "h", BootID: "b1",
			})
		}
	}
	report.Status.BypassNICs = []v1alpha1.NodeBypassNIC{
		{PCIAddress: "0000:af:00.0", Health: v1alpha1.NICHealthy, Reasons: []string{"The link is slow."}},
		{PCIAddress: "0000:af:00.1", Health: v1alpha1.NICUnhealthy, Reasons: []string{"There is no link."}},
	}
	return report
}

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		lease      *coordinationv1.Lease
		wantSince  time.Time
		wantText   string
		wantExpiry time.Time
		wantLast   time.Time
	}{
		"renewed a moment ago": {lease: renewed(time.Second), wantExpiry: noon().Add(119 * time.Second), wantLast: noon().Add(-time.Second)},
		"renewed just in time": {lease: renewed(Lifetime - time.Second), wantExpiry: noon().Add(time.Second), wantLast: noon().Add(time.Second - Lifetime)},
		"not renewed in time": {
			lease: renewed(Lifetime), wantSince: noon(), wantExpiry: noon(), wantLast: noon().Add(-Lifetime),
			wantText: "the agent on node n1 has not looked at the host since 2026-11-21T11:58:00Z, when it renewed Lease agents/n1 last: " +
				"look at its pod and log (kubectl -n agents get pods -o wide --field-selector spec.nodeName=n1)",
		},
		"not renewed for long": {
			lease: renewed(time.Hour), wantSince: noon().Add(-58 * time.Minute), wantExpiry: noon().Add(-58 * time.Minute), wantLast: noon().Add(-time.Hour),
			wantText: "has not looked at the host since 2026-11-21T11:00:00Z",
		},
		"an agent that looks seldom": {
			lease:      changed(renewed(0), func(s *coordinationv1.LeaseSpec) { *s = Renewed("a", noon().Add(-9*time.Minute), 5*time.Minute) }),
			wantExpiry: noon().Add(11 * time.Minute), wantLast: noon().Add(-9 * time.Minute),
		},
		"an agent is awaited": {lease: made(FirstTimeout - time.Second), wantExpiry: noon().Add(time.Second)},
		"no agent has come": {
			lease: made(FirstTimeout), wantSince: noon(), wantExpiry: noon(),
			wantText: "no agent on node n1 has renewed Lease agents/n1 since the operator made it at 2026-11-21T11:45:00Z: look at its pod",
		},
		"no Lease": {wantText: "because Lease agents/n1 does not exist: the log of the operator"},
		"a clock a little ahead": {
			lease: renewed(-time.Minute), wantExpiry: noon().Add(3 * time.Minute), wantLast: noon().Add(time.Minute),
		},
		"a clock far ahead": {
			lease: renewed(-time.Hour), wantSince: noon().Add(-time.Hour), wantExpiry: noon().Add(62 * time.Minute), wantLast: noon().Add(time.Hour),
			wantText: "the agent on node n1 renews Lease agents/n1 with a time in the future, so that nothing shows",
		},
		"a Lease for a year": {
			lease:     changed(renewed(5*time.Hour), func(s *coordinationv1.LeaseSpec) { s.LeaseDurationSeconds = new(int32(31536000)) }),
			wantSince: noon().Add(-time.Hour), wantExpiry: noon().Add(-time.Hour), wantLast: noon().Add(-5 * time.Hour),
			wantText: "the agent on node n1 has not looked at the host since",
		},
		"a Lease that says nothing": {
			lease:     changed(renewed(0), func(s *coordinationv1.LeaseSpec) { *s = coordinationv1.LeaseSpec{} }),
			wantSince: noon().Add(-time.Hour), wantExpiry: noon().Add(-time.Hour), wantText: "no agent on node n1",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Check(key(), tc.lease, noon())
			if got.Exists() != (tc.wantText != "") || !strings.Contains(got.Text, tc.wantText) {
				t.Errorf("the staleness is %q, want %q", got.Text, tc.wantText)
			}
			if !got.Since.Equal(tc.wantSince) {
				t.Errorf("stale since %v, want %v", got.Since, tc.wantSince)
			}
			if expiry := Expiry(tc.lease); !expiry.Equal(tc.wantExpiry) {
				t.Errorf("Expiry() = %v, want %v", expiry, tc.wantExpiry)
			}
			if last := LastOf(tc.lease); !last.Equal(tc.wantLast) {
				t.Errorf("LastOf() = %v, want %v", last, tc.wantLast)
			}
		})
	}
}

func TestStalenessSaysTheSameWhileItLasts(t *testing.T) {
	for name, lease := range map[string]*coordinationv1.Lease{"stale": renewed(time.Hour), "ahead": renewed(-24 * time.Hour), "awaited": made(time.Hour), "none": nil} {
		first, later := Check(key(), lease, noon()), Check(key(), lease, noon().Add(7*time.Minute))
		if diff := cmp.Diff(first, later); diff != "" {
			t.Errorf("%s: the words change with time alone: %s", name, diff)
		}
	}
}

func TestJudge(t *testing.T) {
	stale := Check(key(), renewed(3*time.Minute), noon())
	report := reportOf()
	report.Status.Conditions[1] = metav1.Condition{Type: v1alpha1.ConditionDeJittered, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonChecksFailed, Message: "IRQ 142"}
	before := report.DeepCopy()
	judged := stale.Judge(report)

	if diff := cmp.Diff(before, report); diff != "" {
		t.Errorf("the object was changed: %s", diff)
	}
	got := make([]string, 0, len(judged.Status.Conditions))
	for _, c := range judged.Status.Conditions {
		got = append(got, c.Type+" "+string(c.Status)+" "+c.Reason+": "+c.Message)
	}
	unknown := " Unknown HeartbeatStale: " + stale.Text
	want := []string{"Applied" + unknown, "DeJittered False ChecksFailed: IRQ 142; besides, " + stale.Text, "NUMAAligned" + unknown, "Ready" + unknown}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	wantNICs := []v1alpha1.NodeBypassNIC{
		{PCIAddress: "0000:af:00.0", Health: v1alpha1.NICUnknown, Reasons: []string{stale.Text}}, report.Status.BypassNICs[1],
	}
	if diff := cmp.Diff(wantNICs, judged.Status.BypassNICs); diff != "" {
		t.Errorf("NICs (-want +got):\n%s", diff)
	}
	lost := func(kind string) v1alpha1.NodeTransition {
		return v1alpha1.NodeTransition{
			Time: metav1.NewTime(noon().Add(-time.Minute)), Condition: kind, From: metav1.ConditionTrue, To: metav1.ConditionUnknown,
			Reason: v1alpha1.ReasonHeartbeatStale, PlanHash: "h", BootID: "b1", Message: stale.Text,
		}
	}
	wantTransitions := append([]v1alpha1.NodeTransition{lost(v1alpha1.ConditionApplied), lost(v1alpha1.ConditionNUMAAligned)}, report.Status.Transitions...)
	if diff := cmp.Diff(wantTransitions, judged.Status.Transitions); diff != "" {
		t.Errorf("transitions (-want +got):\n%s", diff)
	}
	if (Staleness{}).Judge(report) != report || stale.Judge(nil) != nil {
		t.Error("with a fresh heartbeat, or without an object, something was made anew")
	}
}

// TestGate plays a node whose agent dies, by the rules of the gate as they are: an established pass is trusted for the
// grace, then the gate closes, and it opens at once when its heartbeat is fresh again.
func TestGate(t *testing.T) {
	at := func(ago time.Duration, change func(*v1alpha1.LowLatencyNode)) gate.Decision {
		report := reportOf()
		change(report)
		judged := Check(key(), renewed(ago), noon()).Judge(report)
		return gate.Decide(gate.Input{
			Conditions: judged.Status.Conditions[:3], Transitions: judged.Status.Transitions, PlanHash: "h",
			Startup: gate.Startup{Ready: "True", Boot: "b1", Started: "b1"}, Now: noon(),
		})
	}
	cases := map[string]struct {
		ago        time.Duration
		change     func(*v1alpha1.LowLatencyNode)
		want       metav1.ConditionStatus
		wantReason string
		wantRetry  time.Duration
	}{
		"fresh":          {ago: time.Minute, want: metav1.ConditionTrue, wantReason: v1alpha1.ReasonVerified},
		"stale, trusted": {ago: 3 * time.Minute, want: metav1.ConditionTrue, wantReason: v1alpha1.ReasonVerified, wantRetry: time.Minute},
		"stale, no longer trusted": {ago: Lifetime + gate.UnknownGrace, want: metav1.ConditionUnknown,
			wantReason: v1alpha1.ReasonHeartbeatStale},
		"stale, and had failed": {ago: 3 * time.Minute, want: metav1.ConditionFalse, wantReason: v1alpha1.ReasonChecksFailed,
			change: func(r *v1alpha1.LowLatencyNode) {
				r.Status.Conditions[1].Status, r.Status.Conditions[1].Reason = metav1.ConditionFalse, v1alpha1.ReasonChecksFailed
			}},
		"stale, and had never proven this plan": {ago: 3 * time.Minute, want: metav1.ConditionUnknown, wantReason: v1alpha1.ReasonHeartbeatStale,
			change: func(r *v1alpha1.LowLatencyNode) { r.Status.Transitions = nil }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.change == nil {
				tc.change = func(*v1alpha1.LowLatencyNode) {}
			}
			got := at(tc.ago, tc.change)
			if got.Status != tc.want || got.Reason != tc.wantReason || got.RetryAfter != tc.wantRetry {
				t.Errorf("Decide() = %+v, want %s %s, again after %v", got, tc.want, tc.wantReason, tc.wantRetry)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	cases := map[string]struct {
		before, after *coordinationv1.Lease
		want          bool
	}{
		"renewed in time":                   {renewed(30 * time.Second), renewed(0), false},
		"the first renewal, for less time":  {made(time.Minute), renewed(0), true},
		"renewed too late":                  {renewed(time.Hour), renewed(0), true},
		"renewed, but with a former time":   {renewed(30 * time.Second), renewed(time.Minute), true},
		"renewed, but long ago":             {renewed(30 * time.Second), renewed(time.Hour), true},
		"renewed with a time in the future": {renewed(30 * time.Second), renewed(-time.Hour), true},
		"the clock is set":                  {renewed(-time.Hour), renewed(0), true},
	}
	for name, tc := range cases {
		if got := Changes(tc.before, tc.after, noon()); got != tc.want {
			t.Errorf("%s: Changes() = %v, want %v", name, got, tc.want)
		}
	}
}

func TestFirst(t *testing.T) {
	lease := First(reportOf(), "agents", noon())
	if lease.Namespace != "agents" || lease.Name != "n1" || lease.Spec.HolderIdentity != nil {
		t.Errorf("the Lease is %+v", lease)
	}
	want := []metav1.OwnerReference{{APIVersion: "lowlatency.dev/v1alpha1", Kind: "LowLatencyNode", Name: "n1", UID: "uid-n1"}}
	if diff := cmp.Diff(want, lease.OwnerReferences); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

func TestRenewedIsBounded(t *testing.T) {
	for interval, want := range map[time.Duration]int32{0: 120, 30 * time.Second: 120, time.Minute: 240, 1 << 61: 14400} {
		if got := *Renewed("a", noon(), interval).LeaseDurationSeconds; got != want {
			t.Errorf("with an interval of %v the Lease lasts %d s, want %d", interval, got, want)
		}
	}
}
