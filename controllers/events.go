// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	eventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/status"
)

// What the operator was doing, for the action of an event.
const (
	actionRoll    = "Roll"
	actionVerify  = "Verify"
	actionEnact   = "Enact"
	actionGate    = "Gate"
	actionServe   = "Serve"
	actionMeasure = "Measure"
)

const (
	// eventsPerSecond and eventBurst bound the requests about events. What is told of thousands of nodes at once waits, and is
	// given up in the end; the status has all of it.
	eventsPerSecond = 20
	eventBurst      = 200
)

// newRecorder returns a recorder whose events go out by a client of their own: they wait for none of the writes that move the
// fleet, and hold none of them up. It ends with the manager.
func newRecorder(mgr ctrl.Manager) (events.EventRecorder, error) {
	client, err := eventsv1.NewForConfig(eventConnection(mgr.GetConfig()))
	if err != nil {
		return nil, fmt.Errorf("creating the client of events: %w", err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client})
	recording, stop := context.WithCancel(context.Background())
	if err := broadcaster.StartRecordingToSinkWithContext(recording); err != nil {
		stop()
		return nil, fmt.Errorf("recording events: %w", err)
	}
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		defer stop()
		<-ctx.Done()
		broadcaster.Shutdown()
		return nil
	}))
	if err != nil {
		stop()
		return nil, fmt.Errorf("recording events: %w", err)
	}
	return broadcaster.NewRecorder(mgr.GetScheme(), v1alpha1.ProjectName), nil
}

// eventConnection is how events reach the API server: as all else, but over a connection of their own, since client-go shares
// none between configurations that dial by themselves, and at most so many in a second.
func eventConnection(connection *rest.Config) *rest.Config {
	own := rest.CopyConfig(connection)
	own.QPS, own.Burst, own.RateLimiter = eventsPerSecond, eventBurst, nil
	if own.Dial == nil {
		const dialTimeout, keepAlive = 30 * time.Second, 30 * time.Second
		own.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext
	}
	return own
}

// announce writes events about an object. The related object may be nil.
func announce(recorder events.EventRecorder, object, related runtime.Object, action string, announcements ...fleet.Announcement) {
	for _, about := range announcements {
		recorder.Eventf(object, related, about.Kind, about.Reason, action, "%s", about.Message)
	}
}

// announceReports tells, for each report that an agent has written, of the drift that the one before did not count, and of what others
// have changed on the host since. That is an event of the Node: the report goes with the plan. It asks for no reconciling. The operator tells
// it and not the agent, which so needs no right to write events.
func announceReports(recorder events.EventRecorder) handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, update event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			before, ok := update.ObjectOld.(*v1alpha1.LowLatencyNode)
			after, also := update.ObjectNew.(*v1alpha1.LowLatencyNode)
			if !ok || !also || before.UID != after.UID {
				return
			}
			announce(recorder, after, nil, actionVerify, status.DriftAnnouncements(before.Status.Drift, after.Status.Drift)...)
			announce(recorder, nodeOf(after), after, actionEnact, status.DifferenceAnnouncements(before.Status.Enactment, after.Status.Enactment)...)
		},
	}
}

// nodeOf is the Node that a report is about, as events name it.
func nodeOf(report *v1alpha1.LowLatencyNode) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: report.Name}}
	for _, owner := range report.OwnerReferences {
		if owner.Kind == "Node" {
			node.UID = owner.UID
		}
	}
	return node
}
