// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package gate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
)

// Marked is the node with our taint put on or taken away, and with the note for which boot its device plugins have
// advertised, as a decision says; it is the node itself when nothing changes. The announcement says that the taint moved,
// and is nil when it did not, or as it does on every node.
func (w *World) Marked(d *Decision) (*corev1.Node, *fleet.Announcement) {
	tainted, why := w.isTainted(d)
	next := w.Node.DeepCopy()
	next.Spec.Taints = taintsWith(w.Node.Spec.Taints, tainted)
	w.noteStart(next, d)
	w.noteOpen(next, d)
	moved := !slices.Equal(next.Spec.Taints, w.Node.Spec.Taints)
	if !moved && SameNotes(w.Node, next) {
		return w.Node, nil
	}
	if !moved || w.movesOrdinarily(d, tainted) {
		return next, nil
	}
	about := fleet.Announce(corev1.EventTypeNormal, "GateOpened", why)
	if tainted {
		about = fleet.Announce(corev1.EventTypeWarning, "GateClosed",
			"pods without a toleration of "+v1alpha1.TaintUnverified+" are kept away, those that run are left alone: "+why)
	}
	return next, &about
}

// Closes reports whether a decision is to put our taint on a node that has none.
func (w *World) Closes(d *Decision) bool {
	tainted, _ := w.isTainted(d)
	return tainted && !slices.ContainsFunc(w.Node.Spec.Taints, isOurTaint)
}

// movesOrdinarily reports whether the taint comes or goes as it does on every node that joins, gets another plan or reboots.
func (w *World) movesOrdinarily(d *Decision, tainted bool) bool {
	if d == nil {
		return false
	}
	if tainted {
		return isOrdinary(d.Reason) || d.IsStarting()
	}
	closed := findCondition(w.Node.Status.Conditions, v1alpha1.NodeConditionReady)
	return d.IsOpen() && closed != nil && isOrdinary(closed.Reason)
}

// isTainted reports whether pods are to be kept off the node, and why.
func (w *World) isTainted(d *Decision) (bool, string) {
	switch {
	case d == nil:
		return false, "no profile governs the node"
	case w.isGateTaint() && w.isGivenBack():
		return false, "the profile is being deleted, and the node has its plan no more"
	case w.isGateTaint():
		return !d.IsOpen(), d.Message
	case d.IsStarting() && w.startsTainted():
		return true, d.Waiting
	case w.startsTainted():
		return false, "the device plugins of the node advertise"
	default:
		return false, "spec.verification.gate is not Taint"
	}
}

// noteStart notes on the node for which boot its device plugins have advertised.
func (w *World) noteStart(node *corev1.Node, d *Decision) {
	if d == nil || d.IsStarting() {
		delete(node.Annotations, v1alpha1.AnnotationStarted)
		return
	}
	if w.Report == nil {
		return
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	startup := w.startup()
	node.Annotations[v1alpha1.AnnotationStarted] = startup.Mark()
}

// noteOpen notes on the node in which boot its gate has been open, where pods are kept off while it is not, or tests are asked for.
// What a test says against the node takes the note away.
func (w *World) noteOpen(node *corev1.Node, d *Decision) {
	switch {
	case d == nil || d.Reason == v1alpha1.ReasonQualificationFailed || d.Reason == v1alpha1.ReasonQualificationStale ||
		d.Disproven && fleet.HasInventory(w.Report):
		delete(node.Annotations, v1alpha1.AnnotationQualified)
	case d.IsOpen() && node.Status.NodeInfo.BootID != "" && (w.isGateTaint() || len(w.WantedTests()) > 0):
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		node.Annotations[v1alpha1.AnnotationQualified] = node.Status.NodeInfo.BootID
	}
}

// Notes are the annotations by which the gate remembers what it has seen of a node.
func Notes() []string { return []string{v1alpha1.AnnotationStarted, v1alpha1.AnnotationQualified} }

// SameNotes reports whether the notes of the gate on a node have not changed.
func SameNotes(before, after *corev1.Node) bool {
	return !slices.ContainsFunc(Notes(), func(key string) bool { return before.Annotations[key] != after.Annotations[key] })
}

// NoteJoining notes on a node that joins a profile, and that no pool serves, that it waits for no device plugin in this boot. The
// write that gives it the label of the profile can so carry what would else be one more write.
func NoteJoining(node *corev1.Node) {
	startup := Startup{Boot: node.Status.NodeInfo.BootID, Ready: fleet.NodeReadiness(node)}
	if _, starting := startup.waiting(); starting {
		return
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[v1alpha1.AnnotationStarted] = startup.Mark()
}

// taintsWith are the taints of a node with ours put on or taken away.
func taintsWith(taints []corev1.Taint, tainted bool) []corev1.Taint {
	ours := corev1.Taint{Key: v1alpha1.TaintUnverified, Effect: corev1.TaintEffectNoSchedule}
	if tainted && slices.Contains(taints, ours) {
		return taints
	}
	rest := slices.DeleteFunc(slices.Clone(taints), isOurTaint)
	if tainted {
		return append(rest, ours)
	}
	return rest
}

func isOurTaint(taint corev1.Taint) bool { return taint.Key == v1alpha1.TaintUnverified }

// HasMarks reports whether the node has a taint, a note or conditions of ours.
func HasMarks(node *corev1.Node) bool {
	return !SameNotes(node, &corev1.Node{}) || slices.ContainsFunc(node.Spec.Taints, isOurTaint) || len(OwnConditions(node.Status.Conditions)) > 0
}
