// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// maximumNote is the limit of the events API for a note.
const maximumNote = 1024

// What the operator was doing, for the action of an event.
const (
	actionRoll   = "Roll"
	actionVerify = "Verify"
	actionGate   = "Gate"
	actionServe  = "Serve"
)

// announcement is an event about a condition that has become another.
type announcement struct {
	// kind is corev1.EventTypeNormal or corev1.EventTypeWarning.
	kind   string
	reason string
}

// announceConditions tells of the conditions of a profile or pool that have changed with the status that was
// written.
func announceConditions(recorder events.EventRecorder, object runtime.Object, before, after []metav1.Condition, action string) {
	for i := range after {
		condition := &after[i]
		if about, worth := profileAnnouncement(meta.FindStatusCondition(before, condition.Type), condition); worth {
			recorder.Eventf(object, nil, about.kind, about.reason, action, "%s", shorten.Sentence(condition.Message, maximumNote))
		}
	}
}

// profileAnnouncement decides which transitions of a profile or pool are worth an event: that all nodes became
// verified, that something broke, broke in another way or was mended, that a rollout began. Progressing stays
// True from the wait for an inventory to the rollout, so a new reason counts as a transition.
func profileAnnouncement(before, after *metav1.Condition) (announcement, bool) {
	if after.Status != metav1.ConditionTrue {
		mended := after.Type == v1alpha1.ConditionDegraded && before != nil && before.Status == metav1.ConditionTrue
		return announcement{corev1.EventTypeNormal, "Recovered"}, mended
	}
	if before != nil && before.Status == after.Status && before.Reason == after.Reason {
		return announcement{}, false
	}
	kind, worth := map[string]string{
		v1alpha1.ConditionReady:       corev1.EventTypeNormal,
		v1alpha1.ConditionProgressing: corev1.EventTypeNormal,
		v1alpha1.ConditionDegraded:    corev1.EventTypeWarning,
	}[after.Type]
	return announcement{kind, after.Reason}, worth
}
