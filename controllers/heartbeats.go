// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
)

// heartbeats are the Leases by which agents show that they look at their nodes. The operator makes the Lease of each
// LowLatencyNode, so that an agent needs no right to create any, and so that what is decided depends on what is recorded
// alone, also where an agent has never run.
type heartbeats struct {
	client client.Client
	// namespace is that of the agents.
	namespace string
	clock     clock.PassiveClock
}

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=lowlatency-operator-agents,resources=leases,verbs=get;list;watch;create

// leaseChecks is what the Leases tell besides which heartbeats are stale.
type leaseChecks struct {
	// again is when the first of the fresh heartbeats becomes stale unless it is renewed; zero means never.
	again time.Duration
	// failure says which Leases could not be read or made. Their heartbeats count as stale.
	failure error
}

// judge replaces LowLatencyNodes, by name, by what counts of them now.
func (h *heartbeats) judge(ctx context.Context, reports map[string]*v1alpha1.LowLatencyNode) leaseChecks {
	var all leaseChecks
	for name, report := range reports {
		staleness, one := h.check(ctx, report)
		reports[name] = staleness.Judge(report)
		all.again = soonest(all.again, one.again)
		all.failure = errors.Join(all.failure, one.failure)
	}
	return all
}

// check reports whether the heartbeat of the agent of a LowLatencyNode is stale, and makes the Lease if there is none.
func (h *heartbeats) check(ctx context.Context, report *v1alpha1.LowLatencyNode) (heartbeat.Staleness, leaseChecks) {
	key, now := client.ObjectKey{Namespace: h.namespace, Name: report.Name}, h.clock.Now()
	lease, err := get(ctx, h.client, key, &coordinationv1.Lease{}, client.UnsafeDisableDeepCopy)
	if err == nil && lease == nil && report.DeletionTimestamp.IsZero() {
		lease, err = h.begin(ctx, report, now)
	}
	staleness := heartbeat.Check(key, lease, now)
	if staleness.Exists() {
		return staleness, leaseChecks{failure: err}
	}
	return staleness, leaseChecks{again: heartbeat.Expiry(lease).Sub(now), failure: err}
}

// begin makes the Lease of a LowLatencyNode. Another reconciler may have made it a moment ago, before the cache knew.
func (h *heartbeats) begin(ctx context.Context, report *v1alpha1.LowLatencyNode, now time.Time) (*coordinationv1.Lease, error) {
	lease := heartbeat.First(report, h.namespace, now)
	if err := h.client.Create(ctx, lease.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("making Lease %s/%s: %w", lease.Namespace, lease.Name, err)
	}
	return lease, nil
}

// soonest is the shorter of two times to wait, of which zero is never.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// watch adds to a controller the Leases that concern it, by the LowLatencyNode that owns each.
func (h *heartbeats) watch(build *builder.Builder, concerned handler.MapFunc) *builder.Builder {
	return build.Watches(&coordinationv1.Lease{}, handler.EnqueueRequestsFromMapFunc(
		func(ctx context.Context, object client.Object) []reconcile.Request {
			if object.GetNamespace() != h.namespace {
				return nil
			}
			key := client.ObjectKey{Name: object.GetName()}
			report, err := get(ctx, h.client, key, &v1alpha1.LowLatencyNode{}, client.UnsafeDisableDeepCopy)
			if err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "Failed to read a LowLatencyNode for an event of its Lease")
			}
			if report == nil {
				return nil
			}
			return concerned(ctx, report)
		}), updated(func(before, after *coordinationv1.Lease) bool {
		// Agents renew theirs all the time.
		return heartbeat.Changes(before, after, h.clock.Now())
	}))
}

// reportOf is the LowLatencyNode itself.
func reportOf(_ context.Context, object client.Object) []reconcile.Request {
	return []reconcile.Request{requestFor(object.GetName())}
}
