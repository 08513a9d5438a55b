// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package mistakes

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// Annotations by which the machine-config operator and its daemon agree about a node.
const (
	currentConfig = "machineconfiguration.openshift.io/currentConfig"
	desiredConfig = "machineconfiguration.openshift.io/desiredConfig"
	stateOfNode   = "machineconfiguration.openshift.io/state"
)

// event is one write to an object, as etcd has ordered it.
type event struct {
	revision int64
	at       time.Time
	object   client.Object
	deleted  bool
}

// observer records every write to Nodes, LowLatencyNodes, profiles and pools. Their resource versions are revisions of
// one etcd, so the writes have one order, whichever watch tells of them first.
type observer struct {
	mutex  sync.Mutex
	events []event
	// seen are the revisions of the objects that have been told of.
	seen map[string]int64
	// latest is when anything was written last.
	latest time.Time
	// known are the objects as they were before the events.
	known *picture
	// lies are the moments in which something said Ready for a spec that the hosts did not show.
	lies []string
	// ledger tells what the manager had read when it wrote, and news what it had been told.
	ledger *ledger
	news   *news
}

func newObserver() *observer {
	return &observer{known: newPicture(), seen: map[string]int64{}, ledger: newLedger(), news: newNews()}
}

// watch begins to observe.
func (o *observer) watch(w *world) {
	for _, list := range []func() client.ObjectList{
		func() client.ObjectList { return &corev1.NodeList{} },
		func() client.ObjectList { return &v1alpha1.LowLatencyNodeList{} },
		func() client.ObjectList { return &v1alpha1.LowLatencyNodeProfileList{} },
		func() client.ObjectList { return &v1alpha1.BypassNICPoolList{} },
	} {
		go o.follow(w, list)
	}
}

// follow watches one kind until the world ends. A watch that the server ends is begun again.
func (o *observer) follow(w *world, list func() client.ObjectList) {
	for w.ctx.Err() == nil {
		stream, err := w.Client.Watch(w.ctx, list())
		if err != nil {
			time.Sleep(pace)
			continue
		}
		for e := range stream.ResultChan() {
			o.record(w.ctx, w, e)
		}
	}
}

func (o *observer) record(ctx context.Context, w *world, e watch.Event) {
	object, ok := e.Object.(client.Object)
	if !ok || ctx.Err() != nil {
		return
	}
	revision, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return
	}
	written := writtenStatus{nameOf(object), revision}
	for o.news.isUnderway(written.object) && ctx.Err() == nil {
		// The watch tells of a write before its answer has come.
		time.Sleep(pace / 10)
	}
	lie := w.lieOf(object, func(selector v1alpha1.NodeSelector, node *corev1.Node) bool {
		return o.wasSelected(selector, node, revision) && o.news.hadHeard(written, selector, node)
	})
	if lie != "" && !w.isCurrent(object) {
		// The watch is late, and the hosts may be on the way to something else by now.
		lie = ""
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	now := time.Now()
	o.latest = now
	o.seen[nameOf(object)] = revision
	o.events = append(o.events, event{revision: revision, at: now, object: object, deleted: e.Type == watch.Deleted})
	if lie != "" {
		o.lies = append(o.lies, lie)
	}
}

// wasSelected reports whether a selector has matched a Node as it was at a revision. A status that was written before a user
// gave a node its label, or about the machine that another has replaced since, says nothing about the node that is there now.
func (o *observer) wasSelected(selector v1alpha1.NodeSelector, now *corev1.Node, revision int64) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	node, latest := o.known.nodes[now.Name], int64(0)
	for i := range o.events {
		e := &o.events[i]
		if found, ok := e.object.(*corev1.Node); ok && found.Name == now.Name && e.revision <= revision && e.revision > latest {
			node, latest = found, e.revision
			if e.deleted {
				node = nil
			}
		}
	}
	if node == nil || node.UID != now.UID {
		return false
	}
	return hasLabels(node.Labels, selector)
}

// hasLabels reports whether labels are those of a selector.
func hasLabels(labels map[string]string, selector v1alpha1.NodeSelector) bool {
	for key, value := range selector.MatchLabels {
		if found, labelled := labels[key]; !labelled || found != string(value) {
			return false
		}
	}
	return true
}

// quietSince is for how long nothing was written.
func (o *observer) quietSince() time.Duration {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return time.Since(o.latest)
}

// nameOf tells objects of all kinds apart.
func nameOf(object client.Object) string { return fmt.Sprintf("%T %s", object, object.GetName()) }

// hasSeen reports whether the watches have told of the objects as they are. On a busy machine they are late.
func (o *observer) hasSeen(s *situation) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for _, object := range s.objects() {
		revision, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
		if err != nil || o.seen[nameOf(object)] < revision {
			return false
		}
	}
	return true
}

// begin forgets what was recorded, and takes the objects as they are now as the beginning.
func (o *observer) begin() {
	o.account()
}

// account sums up what has happened since the last call.
func (o *observer) account() *account {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	sorted := slices.Clone(o.events)
	slices.SortStableFunc(sorted, func(a, b event) int { return cmp.Compare(a.revision, b.revision) })
	sum := newAccount(o.known, o.ledger, o.lies)
	for i := range sorted {
		sum.add(&sorted[i])
	}
	sum.close()
	o.known, o.events, o.lies = sum.now, nil, nil
	return sum
}

// picture is what was known at one moment.
type picture struct {
	nodes   map[string]*corev1.Node
	reports map[string]*v1alpha1.LowLatencyNode
	pools   map[string]*v1alpha1.BypassNICPool
	// proven is the plan that each node has proven since its last reboot; "" while it has not proven any.
	proven map[string]string
	// provenSince are the revisions of the reports with which nodes began to prove their plans, without a break since.
	provenSince map[string]int64
	// boots are the boots that nodes have left: what is reported of them proves nothing any more.
	boots map[string]string
}

func newPicture() *picture {
	return &picture{
		nodes: map[string]*corev1.Node{}, reports: map[string]*v1alpha1.LowLatencyNode{},
		pools: map[string]*v1alpha1.BypassNICPool{}, proven: map[string]string{}, provenSince: map[string]int64{}, boots: map[string]string{},
	}
}

func (p *picture) clone() *picture {
	return &picture{
		nodes: maps.Clone(p.nodes), reports: maps.Clone(p.reports), pools: maps.Clone(p.pools),
		proven: maps.Clone(p.proven), provenSince: maps.Clone(p.provenSince), boots: maps.Clone(p.boots),
	}
}

// taint is one time that the taint was put on a node.
type taint struct {
	node     string
	revision int64
	// why is what the operator has noted on the Node after it, and what it had noted before as long as it has not.
	why         string
	isExplained bool
	// doubt is what speaks against it; "" when a check of the plan in force has failed, or nothing was proven yet.
	doubt string
	// isPending tells that the node was judged by a plan that it had not proven yet, and planHash by which.
	isPending bool
	planHash  string
	// isInstant tells that the node began to prove its plan after the manager had read its report for the last time before
	// it wrote; isLifted that the taint was taken away again.
	isInstant, isLifted bool
}

// account is what has happened between two moments.
type account struct {
	before, now *picture
	reboots     map[string]int
	// rebootedAt is the revision of the last reboot.
	rebootedAt map[string]int64
	taints     []taint
	// lost are the NICs that were healthy before and not all the time since, as "pool node address".
	lost   map[string]bool
	lies   []string
	ledger *ledger
}

func newAccount(before *picture, ledger *ledger, lies []string) *account {
	return &account{
		before: before, now: before.clone(), reboots: map[string]int{}, rebootedAt: map[string]int64{}, lost: map[string]bool{},
		lies: lies, ledger: ledger,
	}
}

// add takes one write into account.
func (a *account) add(e *event) {
	name := e.object.GetName()
	switch object := e.object.(type) {
	case *corev1.Node:
		a.addNode(e, object)
	case *v1alpha1.LowLatencyNode:
		a.addReport(e, object)
	case *v1alpha1.BypassNICPool:
		a.now.pools[name] = object
		if e.deleted {
			delete(a.now.pools, name)
		}
	}
}

// addReport notes since when a node proves which plan.
func (a *account) addReport(e *event, report *v1alpha1.LowLatencyNode) {
	name := report.Name
	if e.deleted {
		delete(a.now.reports, name)
		delete(a.now.proven, name)
		delete(a.now.provenSince, name)
		return
	}
	a.now.reports[name] = report
	if hash := report.Spec.PlanHash; hash == report.Status.VerifiedPlanHash && isProven(report) && report.Status.BootID != a.now.boots[name] {
		if a.now.provenSince[name] == 0 || a.now.proven[name] != hash {
			a.now.provenSince[name] = e.revision
		}
		a.now.proven[name] = hash
	} else if !isProven(report) {
		delete(a.now.provenSince, name)
	}
	a.compareNICs(report)
}

// addNode counts a reboot and a taint.
func (a *account) addNode(e *event, node *corev1.Node) {
	before := a.now.nodes[node.Name]
	a.now.nodes[node.Name] = node
	if e.deleted {
		delete(a.now.nodes, node.Name)
		delete(a.now.proven, node.Name)
		delete(a.now.provenSince, node.Name)
		return
	}
	switch {
	case isTainted(node) && !isTainted(before):
		a.taints = append(a.taints, a.judge(e.revision, before, node))
	case isTainted(before) && !isTainted(node):
		a.lift(node.Name)
	default:
		a.explain(node)
	}
	if before != nil && before.Annotations[stateOfNode] != "Working" && node.Annotations[stateOfNode] == "Working" {
		a.reboots[node.Name]++
		a.rebootedAt[node.Name] = e.revision
		delete(a.now.proven, node.Name)
		delete(a.now.provenSince, node.Name)
		if report := a.now.reports[node.Name]; report != nil {
			a.now.boots[node.Name] = report.Status.BootID
		}
	}
}

// lift notes that the taints of a node were taken away.
func (a *account) lift(node string) {
	for i := range a.taints {
		if a.taints[i].node == node {
			a.taints[i].isLifted = true
		}
	}
}

// explain notes why a node has its taint: the condition that says so is written after the taint.
func (a *account) explain(node *corev1.Node) {
	for i := range a.taints {
		t := &a.taints[i]
		if why := reasonOf(node); t.node == node.Name && !t.isExplained && !t.isLifted && why != t.why {
			t.why, t.isExplained = why, true
		}
	}
}

// reasonOf is what the operator has noted on a Node about its gate.
func reasonOf(node *corev1.Node) string {
	ready := nodeReady(node)
	return ready.Reason + ": " + ready.Message
}

// isInstant reports whether the manager, when it put a taint on a node, had just read a report from before the node began to
// prove its plan.
func (a *account) isInstant(before *corev1.Node) bool {
	if before == nil {
		return false
	}
	read, found := a.ledger.readFor(taintedNode{before.Name, before.ResourceVersion})
	return found && read < a.now.provenSince[before.Name]
}

// judge says what speaks against a taint at this moment.
func (a *account) judge(revision int64, before, node *corev1.Node) taint {
	found := taint{node: node.Name, revision: revision, isInstant: a.isInstant(before)}
	found.why = reasonOf(node)
	report, proven := a.now.reports[node.Name], a.now.proven[node.Name]
	switch {
	case report == nil || proven == "" || node.Annotations[stateOfNode] == "Working":
	case nodeReady(node).Reason == v1alpha1.ReasonSettling && hasFailed(report):
	case report.Spec.PlanHash != proven || report.Status.VerifiedPlanHash != proven:
		found.isPending, found.planHash = true, report.Spec.PlanHash
		found.doubt = "the node has proven plan " + proven + " and is judged by plan " + report.Spec.PlanHash + " although nothing was brought to it"
	case isProven(report) && !a.isStarting(node, report):
		found.doubt = "the node proves its plan"
	}
	return found
}

// isStarting reports whether the kubelet of a node has not advertised all units of its pools since its boot. A node may prove its plan
// before that; it may not have pods before. The Node is as the manager has read it: it writes taints with its resourceVersion.
func (a *account) isStarting(node *corev1.Node, report *v1alpha1.LowLatencyNode) bool {
	if node.Annotations[v1alpha1.AnnotationStarted] == node.Status.NodeInfo.BootID {
		return false
	}
	return slices.ContainsFunc(report.Spec.BypassPools, func(name string) bool {
		pool, units := a.now.pools[name], int64(0)
		for i := range report.Status.BypassNICs {
			if nic := &report.Status.BypassNICs[i]; nic.Pool == name && nic.Health == v1alpha1.NICHealthy {
				units += int64(nic.Units)
			}
		}
		return pool != nil && node.Status.Allocatable.Name(corev1.ResourceName(pool.Spec.ResourceName), resource.DecimalSI).Value() < units
	})
}

// close looks back. What a node proves without another reboot had been brought to it before: a manager that learned late that
// the node was told to change may have judged it by its former plan until after the reboot, and a plan may need none. A taint
// that no manager could have known to be wrong is excused once it is corrected.
func (a *account) close() {
	for i := range a.taints {
		t := &a.taints[i]
		node := a.now.nodes[t.node]
		if t.isInstant && (t.isLifted || !a.isWrong(node)) {
			t.doubt = ""
		}
		if !t.isPending || node == nil {
			continue
		}
		if a.rebootedAt[t.node] < t.revision && a.now.proven[t.node] == t.planHash {
			t.doubt = ""
		}
	}
}

// isWrong reports whether a node has the taint although it proves its plan. After a failure it settles for a while.
func (a *account) isWrong(node *corev1.Node) bool {
	return isTainted(node) && a.now.provenSince[node.Name] != 0 && nodeReady(node).Reason != v1alpha1.ReasonSettling
}

// compareNICs notes those of the NICs that were healthy at the beginning which are not now, in pools that are still the same.
func (a *account) compareNICs(report *v1alpha1.LowLatencyNode) {
	if len(report.Status.Conditions) == 0 {
		// It was made again, and its agent has not said anything yet.
		return
	}
	for _, key := range healthyNICs(a.before.reports[report.Name]) {
		before, now := a.before.pools[key.pool], a.now.pools[key.pool]
		if before == nil || now == nil || before.Generation != now.Generation || before.UID != now.UID {
			continue
		}
		if !slices.Contains(healthyNICs(report), key) {
			a.lost[key.pool+" "+report.Name+" "+key.address] = true
		}
	}
}

// nicKey is a NIC of a pool.
type nicKey struct{ pool, address string }

// healthyNICs are those that a node reports.
func healthyNICs(report *v1alpha1.LowLatencyNode) []nicKey {
	if report == nil {
		return nil
	}
	var keys []nicKey
	for i := range report.Status.BypassNICs {
		if nic := &report.Status.BypassNICs[i]; nic.Health == v1alpha1.NICHealthy {
			keys = append(keys, nicKey{nic.Pool, nic.PCIAddress})
		}
	}
	return keys
}

// isProven reports whether the agent says that the node proves its plan.
func isProven(report *v1alpha1.LowLatencyNode) bool {
	for _, kind := range []string{v1alpha1.ConditionApplied, v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned} {
		if !meta.IsStatusConditionTrue(report.Status.Conditions, kind) {
			return false
		}
	}
	return true
}

// hasFailed reports whether the agent has recorded that a check failed while a plan was in force. What fails on the way to a
// plan keeps no gate closed after it.
func hasFailed(report *v1alpha1.LowLatencyNode) bool {
	applied := metav1.ConditionUnknown
	// The latest is the first.
	for _, t := range slices.Backward(report.Status.Transitions) {
		if t.Condition == v1alpha1.ConditionApplied {
			applied = t.To
		} else if applied == metav1.ConditionTrue && t.To == metav1.ConditionFalse && t.Reason == v1alpha1.ReasonChecksFailed {
			return true
		}
	}
	return false
}

func isTainted(node *corev1.Node) bool {
	return node != nil && slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.TaintUnverified })
}

// isReady reports whether conditions say Ready for the generation.
func isReady(conditions []metav1.Condition, generation int64) bool {
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == generation
}
