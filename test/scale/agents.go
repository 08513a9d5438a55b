// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crcluster "sigs.k8s.io/controller-runtime/pkg/cluster"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// agents plays the agents of all nodes in this process: each reports the hardware of its node once it is sent there, says
// whether the node runs the plan that is in force on it, and renews its heartbeat. Each writes as a real
// one does, and when.
type agents struct {
	// cached reads from memory, and writes to the API server.
	cached      client.Client
	inventories []*v1alpha1.Inventory
	hosts       *hosts
	// renewal is how often each of them renews its heartbeat.
	renewal time.Duration
	queue   workqueue.TypedRateLimitingInterface[string]

	mutex sync.Mutex
	// broken are the nodes on which a check fails.
	broken map[string]bool
	// beats are when each node's heartbeat is due.
	beats map[string]time.Time
}

// maximumRenewals is how many heartbeats are renewed in a second, by all agents together. Agents of a large fleet are told
// to renew theirs more seldom than in production, because the API server that takes them shares its processors with the
// manager.
const maximumRenewals = 40

func newAgents(cached crcluster.Cluster, hosts *hosts, nodes int, inventories []*v1alpha1.Inventory) *agents {
	return &agents{
		cached: cached.GetClient(), hosts: hosts, renewal: max(heartbeat.Renewal, time.Duration(nodes)*time.Second/maximumRenewals), inventories: inventories, broken: map[string]bool{}, beats: map[string]time.Time{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
}

// run works until the context ends.
func (a *agents) run(ctx context.Context, cached crcluster.Cluster) error {
	for _, object := range []client.Object{&v1alpha1.LowLatencyNode{}, &corev1.Node{}} {
		informer, err := cached.GetCache().GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("watching what agents watch: %w", err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: a.enqueue, UpdateFunc: func(_, after any) { a.enqueue(after) },
		}); err != nil {
			return fmt.Errorf("watching what agents watch: %w", err)
		}
	}
	var working sync.WaitGroup
	for range writers {
		working.Go(func() { a.work(ctx) })
	}
	working.Go(func() { a.beat(ctx) })
	<-ctx.Done()
	a.queue.ShutDown()
	working.Wait()
	return nil
}

func (a *agents) enqueue(object any) {
	if named, ok := object.(client.Object); ok {
		a.queue.Add(named.GetName())
	}
}

func (a *agents) work(ctx context.Context) {
	for {
		name, ended := a.queue.Get()
		if ended {
			return
		}
		if err := a.look(ctx, name); err != nil && ctx.Err() == nil {
			if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				fmt.Fprintf(os.Stderr, "the agent of node %s: %v\n", name, err)
			}
			a.queue.AddRateLimited(name)
		}
		a.queue.Done(name)
	}
}

// look lets the agent of a node look at its host once.
func (a *agents) look(ctx context.Context, name string) error {
	node, report := &corev1.Node{}, &v1alpha1.LowLatencyNode{}
	key := client.ObjectKey{Name: name}
	if err := a.cached.Get(ctx, key, node, client.UnsafeDisableDeepCopy); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := a.cached.Get(ctx, key, report); err != nil {
		return client.IgnoreNotFound(err)
	}
	if node.Labels[v1alpha1.LabelProfile] == "" {
		return nil
	}
	a.renew(ctx, name)
	before := report.DeepCopy()
	a.observe(node, report)
	if equality.Semantic.DeepEqual(before.Status, report.Status) {
		return nil
	}
	return a.cached.Status().Patch(ctx, report, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// observe writes down what the agent sees.
func (a *agents) observe(node *corev1.Node, report *v1alpha1.LowLatencyNode) {
	status := &report.Status
	status.BootID = node.Status.NodeInfo.BootID
	if status.Inventory == nil {
		status.Inventory = a.inventoryOf(node.Name)
	}
	if status.VerifiedPlanHash = report.Spec.PlanHash; report.Spec.PlanHash == "" {
		return
	}
	applied := a.hosts.planOf(node.Name) == report.Spec.PlanHash
	a.mutex.Lock()
	broken := a.broken[node.Name]
	a.mutex.Unlock()
	status.ObservedGeneration, status.Checks = report.Generation, &v1alpha1.CheckCounts{Passed: 96, Unknown: 4}
	status.Findings = findings(broken)
	for _, kind := range []string{v1alpha1.ConditionApplied, v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned, v1alpha1.ConditionReady} {
		meta.SetStatusCondition(&status.Conditions, condition(kind, applied, broken))
	}
}

func condition(kind string, applied, broken bool) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonVerified, Message: "the kernel's state satisfies the plan"}
	switch {
	case !applied:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonRebootPending, "the running kernel has another command line"
	case broken && (kind == v1alpha1.ConditionDeJittered || kind == v1alpha1.ConditionReady):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonChecksFailed, "IRQ 142 runs on isolated CPU 5"
	}
	return c
}

// findings are as many as healthy machines have: what their firmware does not tell.
func findings(broken bool) []v1alpha1.Finding {
	var all []v1alpha1.Finding
	if broken {
		all = append(all, v1alpha1.Finding{
			Check: "irq.affinity", Severity: v1alpha1.SeverityCritical, Outcome: v1alpha1.OutcomeFailed, Message: "IRQ 142 runs on isolated CPU 5",
		})
	}
	for _, check := range []v1alpha1.CheckID{"power.turbo", "power.cstates", "kernel.smi", "memory.scrub"} {
		all = append(all, v1alpha1.Finding{
			Check: check, Severity: v1alpha1.SeverityLow, Outcome: v1alpha1.OutcomeUnknown,
			Message: "the firmware of this machine does not say, and the kernel has no driver that does",
			Fix:     "look at the settings of the firmware and waive the check in spec.verification.waivedChecks",
		})
	}
	return all
}

// inventoryOf is that of one of the kinds of hardware. Machines of one model differ a little in the memory that their
// firmware leaves, and in the file system that they boot from.
func (a *agents) inventoryOf(name string) *v1alpha1.Inventory {
	number := numberOf(name)
	inventory := a.inventories[number%len(a.inventories)].DeepCopy()
	inventory.Hash = fmt.Sprintf("%s-%d", inventory.Hash, number)
	inventory.KernelCommandLine += fmt.Sprintf(" root=UUID=0b3f2a52-4e0c-4f4b-9d69-%012d", number)
	for i := range inventory.NUMANodes {
		if memory := inventory.NUMANodes[i].MemoryBytes; memory != nil {
			*memory -= int64(number%64) << 12
		}
	}
	return inventory
}

// setBroken makes a check fail on a node, or pass again.
func (a *agents) setBroken(name string, broken bool) {
	a.mutex.Lock()
	a.broken[name] = broken
	a.mutex.Unlock()
	a.queue.Add(name)
}

// renew renews the heartbeat of a node if that is due. An agent looks at its host at once when it begins, and renews after
// that.
func (a *agents) renew(ctx context.Context, name string) {
	now := time.Now()
	a.mutex.Lock()
	due, known := a.beats[name]
	switch {
	case !known:
		a.beats[name] = now.Add(time.Duration(numberOf(name)) * time.Second / maximumRenewals)
	case now.After(due):
		a.beats[name] = now.Add(a.renewal)
	}
	a.mutex.Unlock()
	if !known || now.Before(due) {
		return
	}
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = controllers.DefaultAgentNamespace, name
	after := lease.DeepCopy()
	after.Spec = heartbeat.Renewed("agent-of-"+name, now, a.renewal)
	// The operator may not have made it yet.
	if err := client.IgnoreNotFound(a.cached.Patch(ctx, after, client.MergeFrom(lease))); err != nil && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "renewing the heartbeat of node %s: %v\n", name, err)
	}
}

// beat wakes the agents whose heartbeats are due.
func (a *agents) beat(ctx context.Context) {
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			for _, name := range a.due(now) {
				a.queue.Add(name)
			}
		}
	}
}

func (a *agents) due(now time.Time) []string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var names []string
	for name, due := range a.beats {
		if now.After(due) {
			names = append(names, name)
		}
	}
	return names
}

// machines are five kinds of hardware whose plans differ.
func machines() []hosttree.Machine {
	interleaved := hosttree.Xeon()
	interleaved.Numbering = hosttree.NumberingInterleaved
	small := hosttree.EPYC()
	small.CoresPerNUMANode /= 2
	return []hosttree.Machine{hosttree.Xeon(), hosttree.EPYC(), hosttree.Arm(), interleaved, small}
}

// inventories are what the agents of these machines report.
func inventories(ctx context.Context) ([]*v1alpha1.Inventory, error) {
	var all []*v1alpha1.Inventory
	for _, machine := range machines() {
		inventory, err := inventoryOf(ctx, machine)
		if err != nil {
			return nil, fmt.Errorf("building a machine: %w", err)
		}
		all = append(all, inventory)
	}
	return all, nil
}

func inventoryOf(ctx context.Context, machine hosttree.Machine) (inventory *v1alpha1.Inventory, err error) {
	root, err := os.MkdirTemp("", "lowlatency-scale-host-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	if err := machine.Write(root); err != nil {
		return nil, err
	}
	opened, err := host.Open(root)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	facts, err := opened.Read(ctx)
	if err != nil {
		return nil, err
	}
	hardware, err := topology.FromFacts(facts)
	if err != nil {
		return nil, err
	}
	return topology.Inventory(facts, hardware), nil
}
