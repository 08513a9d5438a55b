// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
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

	mutex sync.Mutex
	// failures say which Leases could not be made when that was tried last, by the name of the node.
	failures map[string]error
}

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=lowlatency-operator-agents,resources=leases,verbs=get;list;watch;create

// leaseChecks is what the Leases tell besides which heartbeats are stale.
type leaseChecks struct {
	// again is when the first of the fresh heartbeats becomes stale unless it is renewed; zero means never.
	again time.Duration
	// failure says which Leases could not be read or made. Their heartbeats count as stale.
	failure error
	// unread says that the Lease of the one node that was checked could not be read: nothing is known of its heartbeat.
	unread error
}

// judge replaces LowLatencyNodes, by name, by what counts of them now. It makes no Lease: who looks at all nodes waits for
// none of them. A Lease that is about to be made counts as fresh.
func (h *heartbeats) judge(ctx context.Context, reports map[string]*v1alpha1.LowLatencyNode) leaseChecks {
	var all leaseChecks
	now := h.clock.Now()
	for name, report := range reports {
		lease, err := h.read(ctx, h.client, name)
		if err == nil && lease == nil && report.DeletionTimestamp.IsZero() {
			if err = h.failureOf(name); err == nil {
				lease = heartbeat.First(report, h.namespace, now)
			}
		}
		staleness, one := h.compare(name, lease, now, err)
		reports[name] = staleness.Judge(report)
		all.again = soonest(all.again, one.again)
		all.failure = errors.Join(all.failure, one.failure)
	}
	return all
}

// check reports whether the heartbeat of the agent of a LowLatencyNode is stale by its Lease as the reader shows it, and makes
// the Lease if there is none.
func (h *heartbeats) check(ctx context.Context, reader client.Reader, report *v1alpha1.LowLatencyNode) (heartbeat.Staleness, leaseChecks) {
	now := h.clock.Now()
	lease, err := h.read(ctx, reader, report.Name)
	if err != nil {
		return heartbeat.Staleness{}, leaseChecks{unread: err}
	}
	if lease == nil && report.DeletionTimestamp.IsZero() {
		lease, err = h.begin(ctx, report, now)
	}
	return h.compare(report.Name, lease, now, err)
}

// read reads the Lease of a node; nil when there is none.
func (h *heartbeats) read(ctx context.Context, reader client.Reader, node string) (*coordinationv1.Lease, error) {
	return get(ctx, reader, h.key(node), &coordinationv1.Lease{}, client.UnsafeDisableDeepCopy)
}

// key is that of the Lease of a node.
func (h *heartbeats) key(node string) client.ObjectKey {
	return client.ObjectKey{Namespace: h.namespace, Name: node}
}

// compare reports whether a heartbeat is stale by its Lease, which is nil when there is none.
func (h *heartbeats) compare(node string, lease *coordinationv1.Lease, now time.Time, failure error) (heartbeat.Staleness, leaseChecks) {
	staleness := heartbeat.Check(h.key(node), lease, now)
	if staleness.Exists() {
		return staleness, leaseChecks{failure: failure}
	}
	return staleness, leaseChecks{again: heartbeat.Expiry(lease).Sub(now), failure: failure}
}

// begin makes the Lease of a LowLatencyNode. It may have been made a moment ago, before the cache knew.
func (h *heartbeats) begin(ctx context.Context, report *v1alpha1.LowLatencyNode, now time.Time) (*coordinationv1.Lease, error) {
	lease := heartbeat.First(report, h.namespace, now)
	err := h.client.Create(ctx, lease.DeepCopy())
	if err = client.IgnoreAlreadyExists(err); err != nil {
		err = fmt.Errorf("making Lease %s/%s: %w", lease.Namespace, lease.Name, err)
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if err == nil {
		delete(h.failures, report.Name)
		return lease, nil
	}
	if h.failures == nil {
		h.failures = map[string]error{}
	}
	h.failures[report.Name] = err
	return nil, err
}

// failureOf says why the Lease of a node could not be made; nil when it could, or when nobody has tried yet.
func (h *heartbeats) failureOf(node string) error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.failures[node]
}

// soonest is the shorter of two times to wait, of which zero is never.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// watch adds to a controller the Leases that concern it, by the LowLatencyNode that owns each.
func (h *heartbeats) watch(build *builder.Builder, enqueue func(handler.MapFunc) handler.EventHandler, concerned handler.MapFunc) *builder.Builder {
	return build.Watches(&coordinationv1.Lease{}, enqueue(
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
