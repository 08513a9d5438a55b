// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package heartbeat decides whether what an agent has said about its node still counts.
//
// An agent writes the status of its LowLatencyNode only when the world changes, so a status that stays as it is looks
// alike whether the agent finds the host unchanged every half minute, or died a week ago. What tells the two apart is a
// Lease for each node, as kubelets have them: the operator makes it with the LowLatencyNode, which owns it, and the agent
// renews it after each look at the host that succeeded. An agent that dies, hangs in a read or cannot reach the API
// server renews nothing.
//
// A stale heartbeat takes away what was proven, and nothing else: a condition that is True becomes Unknown, and a NIC that is
// Healthy too. What is False or Unknown stays so, as nothing has mended it.
package heartbeat

import (
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// DefaultNamespace is the namespace of the agents, and of their Leases, as config/agent makes it.
const DefaultNamespace = "lowlatency-operator-agents"

const (
	// Renewal is the least time between two renewals. Agents look at their host as often, if nothing else is said.
	Renewal = 30 * time.Second
	// Lifetime is for how long a renewal counts, at least: an agent may fail to renew three times, as when the API
	// server starts again.
	Lifetime = 2 * time.Minute
	// FirstTimeout is for how long a Lease counts that no agent has renewed yet. It covers the update of a large fleet from
	// agents that know no Lease.
	FirstTimeout = 15 * time.Minute

	// MaximumLifetime is for how long a renewal counts at most, whatever the Lease says. An admission policy keeps agents from
	// asking for more.
	MaximumLifetime = renewals * seldom

	// seldom bounds the interval that a lifetime is made for: the proof of an agent that looks less often is none.
	seldom = time.Hour
	// renewals is how many looks at the host fit into the lifetime of a renewal.
	renewals = 4
)

// First is the Lease of a LowLatencyNode as the operator makes it, before an agent has renewed it: nobody holds it.
// It goes with the LowLatencyNode.
func First(report *v1alpha1.LowLatencyNode, namespace string, now time.Time) *coordinationv1.Lease {
	renewed := metav1.NewMicroTime(now)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: report.Name,
			Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ProjectName, v1alpha1.LabelComponent: v1alpha1.ComponentHeartbeat},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "LowLatencyNode", Name: report.Name, UID: report.UID,
			}},
		},
		Spec: coordinationv1.LeaseSpec{RenewTime: &renewed, LeaseDurationSeconds: seconds(FirstTimeout)},
	}
}

// Renewed is the spec by which an agent that looks at its host every interval renews its Lease. The holder names the
// agent.
func Renewed(holder string, now time.Time, interval time.Duration) coordinationv1.LeaseSpec {
	renewed := metav1.NewMicroTime(now)
	return coordinationv1.LeaseSpec{
		HolderIdentity: &holder, RenewTime: &renewed, LeaseDurationSeconds: seconds(max(Lifetime, renewals*min(interval, seldom))),
	}
}

func seconds(d time.Duration) *int32 { return new(int32(d / time.Second)) }

// LastOf is when an agent has renewed the Lease last; zero when none has.
func LastOf(lease *coordinationv1.Lease) time.Time {
	if lease == nil || lease.Spec.HolderIdentity == nil || lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Time
}

// Expiry is when the Lease ends unless it is renewed: the moment at which to look at it again. It is zero when there is
// no Lease, and its creation when it was never renewed.
func Expiry(lease *coordinationv1.Lease) time.Time {
	if lease == nil {
		return time.Time{}
	}
	return begin(lease).Add(duration(lease))
}

// begin is when the lifetime of a Lease begins.
func begin(lease *coordinationv1.Lease) time.Time {
	if lease.Spec.RenewTime == nil {
		return lease.CreationTimestamp.Time
	}
	return lease.Spec.RenewTime.Time
}

func duration(lease *coordinationv1.Lease) time.Duration {
	if lease.Spec.LeaseDurationSeconds == nil {
		return 0
	}
	return min(time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second, MaximumLifetime)
}

// Staleness says that the heartbeat of an agent is stale. The zero value is that of a fresh one.
type Staleness struct {
	// Since is when what the agent has said ceased to count.
	Since time.Time
	// Text is one sentence: since when, which node, what to do. It stays the same for as long as the heartbeat is stale.
	Text string
}

// Exists reports whether the heartbeat is stale.
func (s Staleness) Exists() bool { return s.Text != "" }

// Check reports whether the heartbeat of an agent is stale. The key names its Lease, whose name is that of the node; lease is nil when
// there is none.
func Check(key types.NamespacedName, lease *coordinationv1.Lease, now time.Time) Staleness {
	look := fmt.Sprintf("look at its pod and log (kubectl -n %s get pods -o wide --field-selector spec.nodeName=%s)", key.Namespace, key.Name)
	switch expiry := Expiry(lease); {
	case lease == nil:
		return Staleness{Text: fmt.Sprintf("nothing shows whether the agent on node %s still looks at the host, because Lease %s does not exist: "+
			"the log of the operator says why it could not make it", key.Name, key)}
	case begin(lease).After(now.Add(duration(lease))):
		// By its own clock alone, the agent would seem alive for as long after its death.
		return Staleness{Since: lease.CreationTimestamp.Time, Text: fmt.Sprintf("the agent on node %s renews Lease %s with a time in the future, "+
			"so that nothing shows whether it still looks at the host: set the clock of the node", key.Name, key)}
	case now.Before(expiry):
		return Staleness{}
	case LastOf(lease).IsZero():
		return Staleness{Since: expiry, Text: fmt.Sprintf("no agent on node %s has renewed Lease %s since the operator made it at %s: %s",
			key.Name, key, stamp(begin(lease)), look)}
	default:
		return Staleness{Since: expiry, Text: fmt.Sprintf("the agent on node %s has not looked at the host since %s, when it renewed Lease %s last: %s",
			key.Name, stamp(begin(lease)), key, look)}
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Judge returns the LowLatencyNode with what counts of its status. With a fresh heartbeat that is the object itself; else it is
// a copy in which what was proven is Unknown, conditions for the reason HeartbeatStale, and every other message ends with
// that sentence. The transitions begin with those that staleness has caused, as the agent would have recorded them. What
// is not changed is shared with the object. A nil object stays nil.
func (s Staleness) Judge(report *v1alpha1.LowLatencyNode) *v1alpha1.LowLatencyNode {
	if report == nil || !s.Exists() {
		return report
	}
	judged := *report
	judged.Status.Conditions = slices.Clone(report.Status.Conditions)
	judged.Status.BypassNICs = slices.Clone(report.Status.BypassNICs)
	var lost []v1alpha1.NodeTransition
	for i := range judged.Status.Conditions {
		condition := &judged.Status.Conditions[i]
		if condition.Status != metav1.ConditionTrue {
			condition.Message += "; besides, " + s.Text
			continue
		}
		condition.Status, condition.Reason, condition.Message = metav1.ConditionUnknown, v1alpha1.ReasonHeartbeatStale, s.Text
		condition.LastTransitionTime = metav1.NewTime(s.Since)
		if condition.Type != v1alpha1.ConditionReady {
			lost = append(lost, s.transition(report, condition.Type))
		}
	}
	judged.Status.Transitions = slices.Concat(lost, report.Status.Transitions)
	for i := range judged.Status.BypassNICs {
		if nic := &judged.Status.BypassNICs[i]; nic.Health == v1alpha1.NICHealthy {
			nic.Health, nic.Reasons = v1alpha1.NICUnknown, []string{s.Text}
		}
	}
	return &judged
}

func (s Staleness) transition(report *v1alpha1.LowLatencyNode, condition string) v1alpha1.NodeTransition {
	return v1alpha1.NodeTransition{
		Time: metav1.NewTime(s.Since), Condition: condition, From: metav1.ConditionTrue, To: metav1.ConditionUnknown,
		Reason: v1alpha1.ReasonHeartbeatStale, PlanHash: report.Status.VerifiedPlanHash, BootID: report.Status.BootID, Message: s.Text,
	}
}

// Changes reports whether a heartbeat may have become stale, or fresh again, by a change of its Lease, other than by the
// passing of time: then what was decided at the former expiry has to be decided again. A Lease that is renewed in time
// changes nothing.
func Changes(before, after *coordinationv1.Lease, now time.Time) bool {
	key := types.NamespacedName{Namespace: after.Namespace, Name: after.Name}
	return Check(key, before, now).Exists() || Check(key, after, now).Exists() || Expiry(after).Before(Expiry(before))
}
