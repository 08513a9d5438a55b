// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package gate

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// mirrored is a condition of a LowLatencyNode that its Node shows, too.
type mirrored struct {
	condition string
	onNode    corev1.NodeConditionType
	// proven and disproven are the reasons of the events about it.
	proven, disproven string
}

func mirroredConditions() []mirrored {
	return []mirrored{
		{v1alpha1.ConditionDeJittered, v1alpha1.NodeConditionDeJittered, "DeJittered", "NotDeJittered"},
		{v1alpha1.ConditionNUMAAligned, v1alpha1.NodeConditionNUMAAligned, "NUMAAligned", "NotNUMAAligned"},
	}
}

// EventReasons are the reasons of the events about nodes.
func EventReasons() []string {
	mirrored := mirroredConditions()
	reasons := make([]string, 0, 2+3*len(mirrored))
	reasons = append(reasons, "GateClosed", "GateOpened")
	for _, m := range mirrored {
		reasons = append(reasons, m.proven, m.disproven, m.proven+"Unknown")
	}
	return reasons
}

// NodeConditions are the conditions that the Node is to show: none without a LowLatencyNode. A condition whose status is
// what it was keeps the time of its last transition. They are nil, and false, when the Node shows them, when nothing is known
// yet, or when the Node is passing.
func (w *World) NodeConditions(d *Decision, now time.Time) ([]corev1.NodeCondition, bool) {
	want := w.nodeConditions(d)
	if sameConditions(w.Node.Status.Conditions, want) || w.hasNothingToTell(d, want) || w.Passing(d, now) > 0 {
		return nil, false
	}
	return withTransitions(w.Node.Status.Conditions, want, metav1.NewTime(now)), true
}

// hasNothingToTell reports whether a Node that has joined shows no condition because none is known yet. A node that pods are
// kept off shows why.
func (w *World) hasNothingToTell(d *Decision, want []corev1.NodeCondition) bool {
	tainted, _ := w.isTainted(d)
	return !tainted && len(OwnConditions(w.Node.Status.Conditions)) == 0 &&
		!slices.ContainsFunc(want, func(c corev1.NodeCondition) bool {
			return c.Status != corev1.ConditionUnknown || !isOrdinary(c.Reason)
		})
}

// PassingTime is for how long a Node need not show the next of the states through which every node goes on its way to a plan:
// longer than a reboot takes.
const PassingTime = 10 * time.Minute

// Passing is for how much longer a Node keeps the conditions that it shows, although others are true: while it is not proven,
// as before, and only for another of the reasons for which every node is not; zero when what is true is to be shown. Each
// node of a fleet would cost several writes for what lasts seconds, and its LowLatencyNode says it anyway. A node that pods
// are kept off shows why.
func (w *World) Passing(d *Decision, now time.Time) time.Duration {
	want := w.nodeConditions(d)
	tainted, _ := w.isTainted(d)
	if tainted || len(want) == 0 || len(OwnConditions(w.Node.Status.Conditions)) > len(want) {
		return 0
	}
	since := w.Report.CreationTimestamp.Time
	for i := range want {
		shown := findCondition(w.Node.Status.Conditions, want[i].Type)
		if !isPassing(shown, &want[i]) {
			return 0
		}
		if shown != nil && shown.LastTransitionTime.After(since) {
			since = shown.LastTransitionTime.Time
		}
	}
	return max(since.Add(PassingTime).Sub(now), 0)
}

// isPassing reports whether a Node need not show at once that a condition has become another. It is nil when the Node does not
// show it yet.
func isPassing(shown, next *corev1.NodeCondition) bool {
	isOnTheWay := func(c *corev1.NodeCondition) bool { return c.Status != corev1.ConditionTrue && isOrdinary(c.Reason) }
	switch {
	case shown == nil:
		return isOnTheWay(next)
	case shown.Status == next.Status && shown.Reason == next.Reason && shown.Message == next.Message:
		return true
	default:
		return isOnTheWay(shown) && isOnTheWay(next)
	}
}

func (w *World) nodeConditions(d *Decision) []corev1.NodeCondition {
	if w.Report == nil {
		return nil
	}
	var conditions []corev1.NodeCondition
	for _, m := range mirroredConditions() {
		condition := w.condition(m.condition)
		conditions = append(conditions, nodeCondition(m.onNode, condition.Status, condition.Reason, condition.Message))
	}
	if d != nil {
		conditions = append(conditions, nodeCondition(v1alpha1.NodeConditionReady, d.Status, d.Reason, d.Message))
	}
	return conditions
}

func nodeCondition(kind corev1.NodeConditionType, status metav1.ConditionStatus, reason, message string) corev1.NodeCondition {
	return corev1.NodeCondition{
		Type: kind, Status: corev1.ConditionStatus(status), Reason: reason,
		Message: shorten.Sentence(message, v1alpha1.MaxConditionMessageLength),
	}
}

// OwnConditions are those of a Node's conditions that the operator writes.
func OwnConditions(conditions []corev1.NodeCondition) []corev1.NodeCondition {
	var own []corev1.NodeCondition
	for _, kind := range []corev1.NodeConditionType{
		v1alpha1.NodeConditionDeJittered, v1alpha1.NodeConditionNUMAAligned, v1alpha1.NodeConditionReady,
	} {
		if condition := findCondition(conditions, kind); condition != nil {
			own = append(own, *condition)
		}
	}
	return own
}

func findCondition(conditions []corev1.NodeCondition, kind corev1.NodeConditionType) *corev1.NodeCondition {
	at := slices.IndexFunc(conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
	if at < 0 {
		return nil
	}
	return &conditions[at]
}

// sameConditions compares what conditions of ours say; times do not count.
func sameConditions(have, want []corev1.NodeCondition) bool {
	return slices.EqualFunc(OwnConditions(have), want, func(a, b corev1.NodeCondition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
	})
}

// ConditionsMoved reports whether what the operator has written into the conditions of a Node has become another.
func ConditionsMoved(before, after *corev1.Node) bool {
	return !sameConditions(before.Status.Conditions, OwnConditions(after.Status.Conditions))
}

// withTransitions keeps the time of the last transition where the status is what it was.
func withTransitions(have, want []corev1.NodeCondition, now metav1.Time) []corev1.NodeCondition {
	timed := slices.Clone(want)
	for i := range timed {
		timed[i].LastTransitionTime = now
		if old := findCondition(have, timed[i].Type); old != nil && old.Status == timed[i].Status && !old.LastTransitionTime.IsZero() {
			timed[i].LastTransitionTime = old.LastTransitionTime
		}
	}
	return timed
}

// Announcements are the events about conditions of a Node whose status has become another.
func Announcements(before, after []corev1.NodeCondition) []fleet.Announcement {
	var all []fleet.Announcement
	for _, m := range mirroredConditions() {
		next := findCondition(after, m.onNode)
		if next == nil {
			continue
		}
		if about, worth := m.announcement(findCondition(before, m.onNode), next); worth {
			all = append(all, about)
		}
	}
	return all
}

// announcement tells of what somebody has to know about this one node. What every node goes through, when it joins, gets
// another plan or reboots into it, is told by the profile once for all of them.
func (m *mirrored) announcement(before, after *corev1.NodeCondition) (fleet.Announcement, bool) {
	switch {
	case before != nil && before.Status == after.Status:
		return fleet.Announcement{}, false
	case after.Status == corev1.ConditionTrue:
		return fleet.Announce(corev1.EventTypeNormal, m.proven, after.Message), before != nil && !isOrdinary(before.Reason)
	case isOrdinary(after.Reason):
		return fleet.Announcement{}, false
	case after.Status == corev1.ConditionFalse:
		return fleet.Announce(corev1.EventTypeWarning, m.disproven, after.Message), true
	default:
		return fleet.Announce(corev1.EventTypeNormal, m.proven+"Unknown", after.Message), before != nil
	}
}

// isOrdinary reports whether a condition is not True for a reason that every node goes through.
func isOrdinary(reason string) bool {
	switch reason {
	case v1alpha1.ReasonAwaitingInventory, v1alpha1.ReasonAwaitingPlan, v1alpha1.ReasonAwaitingVerification,
		v1alpha1.ReasonRebootPending, v1alpha1.ReasonAwaitingPlugins, v1alpha1.ReasonNodeNotReady, v1alpha1.ReasonAwaitingQualification:
		return true
	default:
		return false
	}
}
