// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/status"
)

// What the operator was doing, for the action of an event.
const (
	actionRoll   = "Roll"
	actionVerify = "Verify"
	actionGate   = "Gate"
	actionServe  = "Serve"
)

// announce writes events about an object. The related object may be nil.
func announce(recorder events.EventRecorder, object, related runtime.Object, action string, announcements ...fleet.Announcement) {
	for _, about := range announcements {
		recorder.Eventf(object, related, about.Kind, about.Reason, action, "%s", about.Message)
	}
}

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
			announce(recorder, after, nil, actionVerify, status.DriftAnnouncements(before.Status.Drift, after.Status.Drift)...)
		},
	}
}
