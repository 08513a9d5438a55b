// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// driftAnnouncement is an event about what has changed on a node under an unchanged plan.
type driftAnnouncement struct{ kind, reason, message string }

// announceDrift tells, for each report that an agent has written, of the drift that the one before did not count. It
// asks for no reconciling. The operator tells it and not the agent, which so needs no right to write events.
func announceDrift(recorder events.EventRecorder) handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, update event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			before, ok := update.ObjectOld.(*v1alpha1.LowLatencyNode)
			after, also := update.ObjectNew.(*v1alpha1.LowLatencyNode)
			if !ok || !also || before.UID != after.UID {
				return
			}
			for _, about := range driftAnnouncements(before.Status.Drift, after.Status.Drift) {
				recorder.Eventf(after, nil, about.kind, about.reason, actionVerify, "%s", shorten.Sentence(about.message, maximumNote))
			}
		},
	}
}

// driftAnnouncements compares what two reports of a node count: checks that failed after they had passed, files that
// were put back, and files that are newly given up.
func driftAnnouncements(before, after []v1alpha1.CheckDrift) []driftAnnouncement {
	known := make(map[v1alpha1.CheckID]v1alpha1.CheckDrift, len(before))
	for _, drift := range before {
		known[drift.Check] = drift
	}
	var announcements []driftAnnouncement
	for _, drift := range after {
		earlier := known[drift.Check]
		if drift.Drifted > earlier.Drifted {
			announcements = append(announcements, driftAnnouncement{corev1.EventTypeWarning, "Drifted", string(drift.Check) + ": " + drift.Message})
		}
		if files := drift.Repaired - earlier.Repaired; files > 0 {
			announcements = append(announcements, driftAnnouncement{corev1.EventTypeNormal, "Repaired",
				fmt.Sprintf("%s: the agent put back %d of its files, after: %s", drift.Check, files, drift.Message)})
		}
		if len(drift.Unrepaired) > 0 && len(earlier.Unrepaired) == 0 {
			announcements = append(announcements, driftAnnouncement{corev1.EventTypeWarning, "Unrepaired",
				string(drift.Check) + ": " + strings.Join(drift.Unrepaired, "; ")})
		}
	}
	return announcements
}
