// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/apply"
	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

const (
	// DefaultInterval between two looks at the counters: reading /proc/interrupts costs in proportion to CPUs times
	// interrupts, so more often than every half minute is not worth it.
	DefaultInterval = 30 * time.Second
	// DefaultFullInterval between two passes over the whole host. Changes that are announced do not wait for it.
	DefaultFullInterval = 2 * time.Minute
	// DefaultWindow is the least time between two readings whose counters are compared.
	DefaultWindow = 10 * time.Second

	// retryInterval is how long the agent waits after a pass that failed.
	retryInterval = 5 * time.Second
	// settlingTime is how long the agent waits before it looks at what it has written, and at what has announced a
	// change: changes come in crowds.
	settlingTime = time.Second
	// intervalJitter spreads the passes of a fleet that was started at one moment.
	intervalJitter = 0.1
)

// Client is what an agent asks of an API server. Errors are those of k8s.io/apimachinery/pkg/api/errors.
type Client interface {
	// LowLatencyNode reads the object of a node.
	LowLatencyNode(ctx context.Context, name string) (*v1alpha1.LowLatencyNode, error)
	// ApplyStatus applies the status of a LowLatencyNode, unless it has another resource version by now.
	ApplyStatus(ctx context.Context, node *unstructured.Unstructured) error
	// ConfigMap reads a ConfigMap.
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	// PatchLease changes a Lease by a JSON merge patch.
	PatchLease(ctx context.Context, namespace, name string, patch []byte) error
}

// Watcher is a Client that reports changes of the object of a node, and begins with the object as it is.
type Watcher interface {
	WatchLowLatencyNode(ctx context.Context, name string) (watch.Interface, error)
}

// Agent keeps the status of one LowLatencyNode true. Its methods must not be called concurrently.
type Agent struct {
	// Client writes the status, and reads the LowLatencyNode and the ConfigMap of its plan. If it is a
	// Watcher, the agent reacts to a new plan at once, else at its next pass. A nodeclient.Client is both.
	Client Client
	// NodeName is the name of the Node and of its LowLatencyNode.
	NodeName string
	// Namespace holds the ConfigMaps of plans.
	Namespace string
	// Root is where the host's root file system is found, such as /host.
	Root string
	// HostAddresses are the addresses by which the cluster knows the node; a NIC that carries them is never given
	// away.
	HostAddresses []netip.Addr
	// PodResources is the socket of the kubelet's PodResources service; "" means podresources.Socket below Root.
	PodResources string
	// Clock tells the time; nil means the real one.
	Clock clock.Clock
	// Interval between two looks at the counters; zero means DefaultInterval.
	Interval time.Duration
	// FullInterval between two passes over the whole host; zero means DefaultFullInterval.
	FullInterval time.Duration
	// NICInterval between two looks at the NICs of pools; zero means DefaultNICInterval.
	NICInterval time.Duration
	// Window is the least time between two readings whose counters are compared; zero means
	// DefaultWindow.
	Window time.Duration
	// KeepTo keeps the threads of this process to the housekeeping CPUs of a plan; nil leaves them where
	// they are. affinity.KeepTo does it.
	KeepTo func(housekeeping cpus.Set) error
	// Repairer puts back what has drifted where the profile asks for it; nil where the agent may only read the host.
	Repairer Repairer
	// Guard reads what the guard of the host below a root says; nil where nobody asks for it. guard.ReadReport does it.
	Guard func(root string) (*instruction.Report, error)
	// Announcements tell that something on the host may have changed, and make the agent look at all of it at once;
	// nil for none. Watch makes them.
	Announcements <-chan struct{}
	// Heartbeat is where the agent shows that it looks at the host; the zero value is nowhere.
	Heartbeat Heartbeat
	// Reports gets what each pass over the whole host has found; nil for nobody.
	Reports *ReportServer
	// Settled is called once, after the first pass over the whole host that had an earlier one to compare with: from then
	// on the agent does nothing that it has not done before. Its error is logged. Nil for nothing.
	Settled func() error

	plan    plannedState
	history history
	pools   []poolState
	nics    nicState
	kubelet answer
	root    openedRoot
	drift   driftState
	latest  latestPass
	// enacted is what the guard said at the latest pass.
	enacted *v1alpha1.NodeEnactment
	// heartbeat is the latest renewal.
	heartbeat heartbeatState
	// poolsAreBehind tells that a pool was planned with a spec that its ConfigMap does not have yet.
	poolsAreBehind bool
	// missing tells that the absence of the LowLatencyNode has been logged.
	missing bool
}

// latestPass is the latest pass over the whole host that could be verified; zero when there is none.
type latestPass struct {
	at time.Time
	// in is what the report was made of.
	in     verify.Input
	report *verify.Report
}

// Run looks at the host's counters every Interval, and at the whole host every FullInterval and at once when the
// spec of its LowLatencyNode changes, when the counters tell something new and when the host announces a change,
// until the context ends. A pass that fails is logged and tried again. It returns nil when the context ends.
func (a *Agent) Run(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	if watcher, ok := a.Client.(Watcher); ok {
		go a.watch(ctx, watcher, changed)
	}
	full := true
	for ctx.Err() == nil {
		timer := a.clock().NewTimer(a.pass(ctx, full))
		full = a.await(ctx, timer, changed)
		timer.Stop()
	}
	return a.root.close()
}

// settle waits until a crowd of changes is over.
func (a *Agent) settle(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-a.clock().After(settlingTime):
	}
}

// pass looks at the host once and returns how long to wait for the next time. It looks at the whole host if it is
// told to, if that is due, or if the counters tell something new.
func (a *Agent) pass(ctx context.Context, full bool) time.Duration {
	if !full && !a.fullIsDue() && !a.enactmentMoved(ctx) && a.countersTellNothingNew(ctx) {
		a.sendHeartbeat(ctx)
		return wait.Jitter(a.interval(), intervalJitter)
	}
	err := a.Once(ctx)
	switch {
	case err == nil:
		a.settled(ctx)
		return a.nextPass()
	case apierrors.IsConflict(err):
		a.log(ctx).V(1).Info("The LowLatencyNode changed during a pass over the host")
	case ctx.Err() == nil:
		a.log(ctx).Error(err, "Pass over the host failed")
	}
	a.latest = latestPass{}
	return min(retryInterval, a.interval())
}

// settled calls Settled when it is time for it.
func (a *Agent) settled(ctx context.Context) {
	if a.Settled == nil || a.history.tooShort() {
		return
	}
	if err := a.Settled(); err != nil {
		a.log(ctx).Info("Failed to give back the memory that only starting needed", "reason", err.Error())
	}
	a.Settled = nil
}

// fullIsDue reports whether the whole host must be looked at.
func (a *Agent) fullIsDue() bool {
	return a.latest.report == nil || a.poolsAreBehind || a.drift.written || a.history.tooShort() ||
		a.clock().Since(a.latest.at) >= orDefault(a.FullInterval, DefaultFullInterval)
}

// countersTellNothingNew reads the counters, and compares the outcomes of the checks about them with those of the
// latest pass over the whole host. Where they cannot be read, that pass is to say why.
func (a *Agent) countersTellNothingNew(ctx context.Context) bool {
	opened, err := a.root.open(a.Root)
	if err != nil {
		return false
	}
	in := a.latest.in
	in.Facts, err = opened.ReadActivity(ctx, in.Facts, in.Plan.CPUs.Isolated)
	if err != nil {
		return false
	}
	in.Before, in.Meanwhile = a.history.before(reading{at: a.clock().Now(), facts: in.Facts}, a.window())
	found := verify.EvaluateActivity(in)
	return !slices.ContainsFunc(found, func(result verify.Result) bool {
		return !slices.ContainsFunc(a.latest.report.Results, func(known verify.Result) bool {
			return known.Check.ID == result.Check.ID && known.Outcome == result.Outcome
		})
	})
}

// nextPass is how long to wait for the next look: not longer than the window while no earlier reading is there to
// compare with, and not long after something was written.
func (a *Agent) nextPass() time.Duration {
	switch {
	case a.drift.written:
		return settlingTime
	case a.poolsAreBehind:
		return min(retryInterval, a.interval())
	case a.history.tooShort():
		return wait.Jitter(min(a.interval(), a.window()), intervalJitter)
	}
	return wait.Jitter(a.interval(), intervalJitter)
}

// Once reads the host, evaluates the plan, writes the status if it changed, and renews the Lease. Without a LowLatencyNode
// it does nothing and waits for the operator to create it. A host that cannot be read is no error: the
// status says which file it was, and the Lease is left to end.
func (a *Agent) Once(ctx context.Context) error {
	node, err := a.Client.LowLatencyNode(ctx, a.NodeName)
	if apierrors.IsNotFound(err) {
		a.awaitNode(ctx)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading LowLatencyNode %q: %w", a.NodeName, err)
	}
	a.missing = false
	if err := a.updatePlan(ctx, node.Spec); err != nil {
		return err
	}
	if err := a.updatePools(ctx, node.Spec.BypassPools); err != nil {
		return err
	}
	a.poolsAreBehind = a.isBehind(node.Spec.PlannedPools)
	seen := a.observe(ctx, node)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("reading the host: %w", err)
	}
	seen.Generation, seen.Now = node.Generation, metav1.NewTime(a.clock().Now())
	a.enacted = a.enactment(ctx, node.Status.Enactment)
	seen.Enactment = a.enacted
	status := Observe(node.Status, seen)
	if !equality.Semantic.DeepEqual(node.Status, status) {
		if err := a.write(ctx, node.ResourceVersion, status); err != nil {
			return err
		}
	}
	if seen.Inventory != nil {
		a.sendHeartbeat(ctx)
	}
	if seen.Report == nil {
		return nil
	}
	a.drift.counts = nil
	if a.Reports != nil {
		a.Reports.Set(a.report(seen, status.Drift))
	}
	return nil
}

// awaitNode says once that there is no LowLatencyNode yet.
func (a *Agent) awaitNode(ctx context.Context) {
	if !a.missing {
		a.log(ctx).Info("Waiting for the LowLatencyNode: no profile selects this node yet")
		a.missing = true
	}
}

// write applies the status, and nothing else, of the agent's own LowLatencyNode. The resource version keeps
// it from writing about one plan, or one object, onto another: both may have been replaced in between.
func (a *Agent) write(ctx context.Context, resourceVersion string, status v1alpha1.LowLatencyNodeStatus) error {
	object, err := apply.Status(v1alpha1.GroupVersion.WithKind("LowLatencyNode"), &metav1.ObjectMeta{Name: a.NodeName}, &status)
	if err != nil {
		return err
	}
	object.SetResourceVersion(resourceVersion)
	if err := a.Client.ApplyStatus(ctx, object); err != nil {
		return fmt.Errorf("applying the status of LowLatencyNode %q: %w", a.NodeName, err)
	}
	return nil
}

func (a *Agent) log(ctx context.Context) logr.Logger {
	return log.FromContext(ctx).WithName("agent").WithValues("node", a.NodeName)
}

func (a *Agent) clock() clock.Clock {
	if a.Clock == nil {
		return clock.RealClock{}
	}
	return a.Clock
}

func (a *Agent) interval() time.Duration { return orDefault(a.Interval, DefaultInterval) }

func (a *Agent) window() time.Duration { return orDefault(a.Window, DefaultWindow) }

func orDefault(value, standard time.Duration) time.Duration {
	if value <= 0 {
		return standard
	}
	return value
}
