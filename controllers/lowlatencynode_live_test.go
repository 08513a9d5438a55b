// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

// sight is what one reader shows of a node.
type sight struct {
	boot string
	// reportBoot and statuses are what the agent has reported; gone means that its LowLatencyNode does not exist.
	reportBoot, statuses string
	gone                 bool
	// former means that it is about the machine that the node has replaced.
	former bool
	// silent is since when the heartbeat was not renewed; mute that the API server does not tell.
	silent time.Duration
	mute   bool
}

// objects are those that a reader shows.
func (s sight) objects(now time.Time) []client.Object {
	node := objects.MakeNode("n", "role", "trading")
	node.Status.NodeInfo.BootID = s.boot
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	profile := objects.MakeProfile("trading").Gated().Obj()
	report := objects.MakeReport("n", "trading").Verified("h", s.statuses).Obj()
	report.Status.BootID = s.reportBoot
	if s.former {
		report.OwnerReferences[0].UID = "uid-of-the-former-machine"
	}
	lease := heartbeat.First(report, "agents", now.Add(-s.silent))
	if s.gone {
		return []client.Object{node, profile, lease}
	}
	return []client.Object{node, profile, report, lease}
}

// TestGateClosesOnWhatIsLive lets the cache be late in one way or another: the gate of a node that works stays open, and the
// gate of one that does not is closed.
func TestGateClosesOnWhatIsLive(t *testing.T) {
	proven := sight{boot: "b2", reportBoot: "b2", statuses: "TTT"}
	cases := map[string]struct {
		cached, live sight
		want         bool
	}{
		"the cache knows all":                    {proven, proven, false},
		"the cache has not seen the proof":       {sight{boot: "b2", reportBoot: "b1", statuses: "TTT"}, proven, false},
		"the cache has seen an old failure":      {sight{boot: "b2", reportBoot: "b2", statuses: "TFT"}, proven, false},
		"the cache has not seen the report":      {sight{boot: "b2", statuses: "TTT", gone: true}, proven, false},
		"the cache has not seen a heartbeat":     {sight{boot: "b2", reportBoot: "b2", statuses: "TTT", silent: time.Hour}, proven, false},
		"the node fails":                         {sight{boot: "b2", reportBoot: "b2", statuses: "TFT"}, sight{boot: "b2", reportBoot: "b2", statuses: "TFT"}, true},
		"the node fails otherwise by now":        {sight{boot: "b2", reportBoot: "b2", statuses: "TFT"}, sight{boot: "b2", reportBoot: "b2", statuses: "TTF"}, true},
		"the node has rebooted, and proves less": {sight{boot: "b2", reportBoot: "b1", statuses: "TTT"}, sight{boot: "b2", reportBoot: "b1", statuses: "TTT"}, true},
		"nobody knows whether the agent is dead": {sight{boot: "b2", reportBoot: "b1", statuses: "TTT"}, sight{boot: "b2", reportBoot: "b2", statuses: "TTT", mute: true}, false},
		"another machine has taken its place":    {sight{statuses: "TTT", former: true}, sight{statuses: "TTT", former: true}, true},
		"the cache shows a former machine":       {sight{statuses: "TTT", former: true}, proven, false},
		"the agent is dead": {
			sight{boot: "b2", reportBoot: "b2", statuses: "TTT", silent: time.Hour}, sight{boot: "b2", reportBoot: "b2", statuses: "TTT", silent: time.Hour}, true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isClosedBy(t, tc.cached, tc.live); got != tc.want {
				t.Errorf("the node has the taint: %t, want %t", got, tc.want)
			}
		})
	}
}

// isClosedBy reconciles a node without the taint once, and reports whether it has the taint afterwards.
func isClosedBy(t *testing.T, cached, live sight) bool {
	t.Helper()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	now := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	build := func(s sight) client.WithWatch {
		return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&corev1.Node{}, &v1alpha1.LowLatencyNode{}, &coordinationv1.Lease{}).
			WithObjects(s.objects(now.Now())...).Build()
	}
	cache := build(cached)
	reader := interceptor.NewClient(build(live), interceptor.Funcs{
		Get: func(ctx context.Context, next client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, isLease := object.(*coordinationv1.Lease); isLease && live.mute {
				return apierrors.NewInternalError(errors.New("no"))
			}
			return next.Get(ctx, key, object, options...)
		},
	})
	reconciler := &NodeReconciler{
		client: cache, platform: platform.None{}, live: reader, recorder: events.NewFakeRecorder(16), clock: now,
		heartbeats: &heartbeats{client: cache, namespace: "agents", clock: now},
	}
	if _, err := reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "n"}}); (err != nil) != live.mute {
		t.Fatalf("reconciling ended with %v", err)
	}
	node := &corev1.Node{}
	if err := cache.Get(t.Context(), client.ObjectKey{Name: "n"}, node); err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == v1alpha1.TaintUnverified })
}
