// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/gate"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

// NodeReconciler carries what an agent reports over to its Node: the conditions, and the taint of a profile
// whose gate is Taint. It removes the LowLatencyNode of a node that no profile selects any more.
type NodeReconciler struct {
	client   client.Client
	platform platform.Platform
	// live reads from the API server, past the cache.
	live       client.Reader
	recorder   events.EventRecorder
	clock      clock.PassiveClock
	heartbeats *heartbeats
}

var _ reconcile.Reconciler = (*NodeReconciler)(nil)

// +kubebuilder:rbac:groups="",resources=nodes/status,verbs=patch
// +kubebuilder:rbac:groups=lowlatency.dev,resources=lowlatencynodes/status,verbs=patch

// Reconcile carries one agent's report over to its Node.
func (r *NodeReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	again, err := r.reconcile(ctx, request.Name)
	return withoutConflict(ctx, ctrl.Result{RequeueAfter: again}, err)
}

// reconcile returns when to look again although nothing happens; zero means never.
func (r *NodeReconciler) reconcile(ctx context.Context, name string) (time.Duration, error) {
	world, err := r.gather(ctx, name)
	if err != nil {
		return 0, err
	}
	if err := r.prune(ctx, world); err != nil || world.Node == nil {
		return 0, err
	}
	world.ForgetFormerMachine()
	if world.IsStray() {
		return 0, platform.LabelNode(ctx, r.client, world.Node, "", "")
	}
	decision, leases, err := r.decide(ctx, world)
	if err != nil || world.Node == nil {
		return 0, err
	}
	// The taint first: it is what keeps pods away.
	err = errors.Join(r.mark(ctx, world, decision), r.mirror(ctx, world, decision), r.correct(ctx, world), leases.failure)
	if err != nil || decision == nil {
		return leases.again, err
	}
	return soonest(world.Passing(decision, r.clock.Now()), soonest(decision.RetryAfter, leases.again)), nil
}

// decide decides by what the cache shows, and once more by what the API server shows before the gate closes. The world is what
// the decision is from; its Node is nil when it has gone.
func (r *NodeReconciler) decide(ctx context.Context, w *gate.World) (*gate.Decision, leaseChecks, error) {
	leases := r.checkHeartbeat(ctx, w, r.client)
	if leases.unread != nil {
		return nil, leases, leases.unread
	}
	decision := w.Decide(r.clock.Now())
	if !w.Closes(decision) {
		return decision, leases, nil
	}
	if err := r.refresh(ctx, w); err != nil || w.Node == nil {
		return nil, leases, err
	}
	leases = r.checkHeartbeat(ctx, w, r.live)
	return w.Decide(r.clock.Now()), leases, leases.unread
}

func (r *NodeReconciler) gather(ctx context.Context, name string) (*gate.World, error) {
	w := &gate.World{}
	var err error
	if w.Node, w.Report, err = readNode(ctx, r.client, name); err != nil {
		return nil, err
	}
	r.askPlatform(w)
	if w.Profiles, err = listProfiles(ctx, r.client); err != nil {
		return nil, err
	}
	if w.Pools, err = livingPools(ctx, r.client); err != nil {
		return nil, err
	}
	w.Tests, err = readTests(ctx, r.client, w.WantedTests())
	return w, err
}

// askPlatform notes whether the platform is to change the Node.
func (r *NodeReconciler) askPlatform(w *gate.World) {
	w.Configured = w.Node != nil && r.platform.IsConfigured(w.Node, w.Report)
}

// refresh reads the node past the cache. The Node and its LowLatencyNode come to the cache by watches of their own, either of
// which may be late or broken: seen together, a node that reboots and proves its plan may look as if it had not proven it.
// That must not close the gate of a node that works. Closing is rare, so the two reads cost little.
func (r *NodeReconciler) refresh(ctx context.Context, w *gate.World) error {
	var err error
	w.Node, w.Report, err = readNode(ctx, r.live, w.Node.Name)
	w.Current = nil
	r.askPlatform(w)
	w.ForgetFormerMachine()
	if err != nil {
		return err
	}
	w.Tests, err = readTests(ctx, r.live, w.WantedTests())
	return err
}

// readNode reads a Node and its LowLatencyNode; each is nil when it does not exist.
func readNode(ctx context.Context, reader client.Reader, name string) (*corev1.Node, *v1alpha1.LowLatencyNode, error) {
	key := client.ObjectKey{Name: name}
	node, err := get(ctx, reader, key, &corev1.Node{})
	if err != nil {
		return nil, nil, err
	}
	report, err := get(ctx, reader, key, &v1alpha1.LowLatencyNode{})
	return node, report, err
}

// prune deletes the LowLatencyNode of a node that no profile selects any more.
func (r *NodeReconciler) prune(ctx context.Context, w *gate.World) error {
	if w.Report == nil || !w.Report.DeletionTimestamp.IsZero() || !w.IsAbandoned() {
		return nil
	}
	if err := deleteReport(ctx, r.client, w.Report); err != nil {
		return err
	}
	w.Report = nil
	return nil
}

// deleteReport deletes a LowLatencyNode unless it is another one by now.
func deleteReport(ctx context.Context, writer client.Client, report *v1alpha1.LowLatencyNode) error {
	if err := writer.Delete(ctx, report, client.Preconditions{UID: &report.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting LowLatencyNode %s: %w", report.Name, err)
	}
	return nil
}

// checkHeartbeat finds out what of the report counts now, by the Lease as the reader shows it.
func (r *NodeReconciler) checkHeartbeat(ctx context.Context, w *gate.World, reader client.Reader) leaseChecks {
	if w.Report == nil {
		return leaseChecks{}
	}
	staleness, leases := r.heartbeats.check(ctx, reader, w.Report)
	w.Current = staleness.Judge(w.Report)
	return leases
}
