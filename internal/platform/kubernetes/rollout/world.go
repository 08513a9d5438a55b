// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/enactment"
	"github.com/lowlatency-dev/lowlatency-operator/internal/installation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes/signingkey"
)

// world is what is decided from.
type world struct {
	intent *fleet.Intent
	limits enactment.Limits
	nodes  []enactment.Node
	// known are the Nodes by name, and reports their LowLatencyNodes as far as they are of the same machine.
	known   map[string]*corev1.Node
	reports map[string]*v1alpha1.LowLatencyNode
	// wanted is what is to become of the nodes of the profile, and plans are those that it makes, by hash.
	wanted map[string]*enactment.Wanted
	plans  map[string]*plan.NodePlan
	// turns and issued are the Leases and ConfigMaps of nodes.
	turns  map[string]*coordinationv1.Lease
	issued map[string]*corev1.ConfigMap
	// pods hand the instructions over.
	pods map[string]*corev1.Pod
	// unrenewed says of nodes whose turn may end why nothing tells that their kubelets live.
	unrenewed map[string]string
	// key signs instructions; nil where there is none, or where it cannot be read because of keyError.
	key      *signingkey.Key
	keyError error
}

// gather reads what is known now. Turns and instructions come from the API server, because two decisions from an old view could
// take two nodes down.
func (p *Platform) gather(ctx context.Context, intent *fleet.Intent, wanted map[string]*enactment.Wanted, plans map[string]*plan.NodePlan) (*world, error) {
	w := &world{
		intent: intent, known: intent.Nodes, wanted: wanted, plans: plans, reports: map[string]*v1alpha1.LowLatencyNode{},
		turns: map[string]*coordinationv1.Lease{}, issued: map[string]*corev1.ConfigMap{}, pods: map[string]*corev1.Pod{}, unrenewed: map[string]string{},
		limits: enactment.Limits{
			Profile: intent.Profile.Name, MaximumUnavailable: int(intent.Profile.Spec.Pools.MaximumUnavailableNodes), MayBegin: !intent.ReadOnly,
		},
	}
	var reports v1alpha1.LowLatencyNodeList
	if err := p.Cache.List(ctx, &reports, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing LowLatencyNodes: %w", err)
	}
	for i := range reports.Items {
		if node := w.known[reports.Items[i].Name]; node != nil && fleet.IsOfMachine(&reports.Items[i], node) {
			w.reports[node.Name] = &reports.Items[i]
		}
	}
	if err := p.gatherTurns(ctx, w); err != nil {
		return nil, err
	}
	p.gatherRenewals(ctx, w)
	p.gatherKey(ctx, w)
	for _, node := range w.known {
		if isControlPlane(node) || node.Labels[v1alpha1.LabelProfile] != "" || w.turns[node.Name] != nil {
			w.nodes = append(w.nodes, p.nodeOf(w, node))
		}
	}
	return w, nil
}

// gatherTurns reads what the operator has written down about nodes. What is about a machine that was replaced counts no more; it
// goes with the Node that owns it.
func (p *Platform) gatherTurns(ctx context.Context, w *world) error {
	ours := []client.ListOption{client.InNamespace(p.AgentNamespace), client.MatchingLabels{v1alpha1.LabelComponent: v1alpha1.ComponentEnactment}}
	var leases coordinationv1.LeaseList
	if err := p.Live.List(ctx, &leases, ours...); err != nil {
		return fmt.Errorf("listing the Leases of nodes that are changed: %w", err)
	}
	for i := range leases.Items {
		if name := w.nodeOf(&leases.Items[i]); name != "" {
			w.turns[name] = &leases.Items[i]
		}
	}
	var instructions corev1.ConfigMapList
	if err := p.Live.List(ctx, &instructions, ours...); err != nil {
		return fmt.Errorf("listing the ConfigMaps of instructions: %w", err)
	}
	for i := range instructions.Items {
		if name := w.nodeOf(&instructions.Items[i]); name != "" {
			w.issued[name] = &instructions.Items[i]
		}
	}
	return p.gatherPods(ctx, w)
}

// gatherPods reads the pods that hand instructions over.
func (p *Platform) gatherPods(ctx context.Context, w *world) error {
	for name := range w.issued {
		pod := &corev1.Pod{}
		err := p.Live.Get(ctx, client.ObjectKey{Namespace: p.AgentNamespace, Name: objectName(name)}, pod)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("reading Pod %s: %w", objectName(name), err)
		default:
			w.pods[name] = pod
		}
	}
	return nil
}

// nodeOf is the name of the node that an object is about; "" when that is another machine by now.
func (w *world) nodeOf(object client.Object) string {
	name := object.GetAnnotations()[v1alpha1.AnnotationNode]
	node := w.known[name]
	for _, owner := range object.GetOwnerReferences() {
		if node != nil && owner.Kind == "Node" && owner.UID == node.UID {
			return name
		}
	}
	return ""
}

func isControlPlane(node *corev1.Node) bool {
	_, controlPlane := node.Labels["node-role.kubernetes.io/control-plane"]
	_, master := node.Labels["node-role.kubernetes.io/master"]
	return controlPlane || master
}

// profileOf is the profile that looks after a node: the one that governs it, or the one that has begun its turn where somebody has
// taken our labels off since.
func (w *world) profileOf(node *corev1.Node) string {
	if profile := node.Labels[v1alpha1.LabelProfile]; profile != "" || w.turns[node.Name] == nil {
		return profile
	}
	return w.turns[node.Name].Labels[v1alpha1.LabelProfile]
}

// nodeOf is what is known of a node.
func (p *Platform) nodeOf(w *world, node *corev1.Node) enactment.Node {
	ready := fleet.NodeReadiness(node)
	report := w.reports[node.Name]
	n := enactment.Node{
		Name: node.Name, Profile: w.profileOf(node), IsControlPlane: isControlPlane(node),
		// Simulated kubelets say nothing.
		IsReady:     ready == "" || ready == corev1.ConditionTrue,
		IsReporting: fleet.HasInventory(report) && report.Status.Software != nil && fleet.IsOfBoot(report, node),
		IsCordoned:  node.Spec.Unschedulable, IsOurCordon: node.Annotations[v1alpha1.AnnotationCordoned] != "",
		IsHeld: node.Annotations[v1alpha1.AnnotationHeld] != "", IsChanged: !fleet.IsUntouched(node),
		IsUnheard: !fleet.IsUntouched(node) && !fleet.HasInventory(report),
		IsGated:   slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.TaintUnverified }),
		Retry:     numberOf(node.Annotations[v1alpha1.AnnotationRetry]), Wanted: w.wanted[node.Name],
		Turn: turnOf(w.turns[node.Name]), Issued: issuedOf(w.issued[node.Name], w.pods[node.Name]), Drain: p.drainOf(node.Name), Lock: lockOf(node),
	}
	if n.IsReady {
		n.Unrenewed = w.unrenewed[node.Name]
		n.IsReady = n.Unrenewed == ""
	}
	if report == nil {
		return n
	}
	n.Reported = report.Status.Enactment
	p.keyOf(w, &n)
	if n.Wanted != nil && n.Wanted.Action == enactment.Enact {
		n.IsApplied = isApplied(node, report, n.Wanted.PlanHash)
		n.Wanted.Refused = p.refusal(w, node, report, n.Wanted.PlanHash)
	}
	return n
}

// isApplied reports whether the agent has found a plan on the running node.
func isApplied(node *corev1.Node, report *v1alpha1.LowLatencyNode, hash string) bool {
	return fleet.IsOfBoot(report, node) && report.Status.VerifiedPlanHash == hash &&
		meta.IsStatusConditionTrue(report.Status.Conditions, v1alpha1.ConditionApplied)
}

func turnOf(lease *coordinationv1.Lease) *enactment.Turn {
	if lease == nil {
		return nil
	}
	turn := &enactment.Turn{Since: lease.CreationTimestamp.Time}
	if lease.Spec.AcquireTime != nil {
		turn.Since = lease.Spec.AcquireTime.Time
	}
	return turn
}

func issuedOf(configMap *corev1.ConfigMap, pod *corev1.Pod) *enactment.Issued {
	if configMap == nil {
		return nil
	}
	delivered, trouble := handedOver(pod, configMap)
	return &enactment.Issued{
		Number: numberOf(configMap.Annotations[v1alpha1.AnnotationNumber]), Action: enactment.Action(configMap.Annotations[v1alpha1.AnnotationAction]),
		PlanHash: configMap.Annotations[v1alpha1.AnnotationPlanHash],
		Reboots:  configMap.Annotations[v1alpha1.AnnotationReboot] == rebootAllowed, Since: configMap.CreationTimestamp.Time,
		Delivered: delivered, Trouble: trouble,
	}
}

// numberOf reads the number of an instruction; 0 for what is none.
func numberOf(text string) int64 {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// refusal says why a plan cannot be written on a host; "" when it can, and while nothing is known of the host.
func (p *Platform) refusal(w *world, node *corev1.Node, report *v1alpha1.LowLatencyNode, hash string) string {
	if !fleet.HasInventory(report) || report.Status.Software == nil || w.inForce(report.Name) == hash {
		return ""
	}
	if why := kubernetes.CheckNodeArguments(node.Annotations); why != "" {
		return why
	}
	written, err := p.writing(w.plans[hash], hash, report)
	if err != nil {
		return err.Error()
	}
	for _, finding := range written.Findings {
		if finding.Severity == v1alpha1.SeverityCritical {
			return fmt.Sprintf("%s: %s %s", finding.Field, finding.Message, finding.Remedy)
		}
	}
	return ""
}

// writing spells a plan for a host. Equal hosts are spelled for once.
func (p *Platform) writing(planned *plan.NodePlan, hash string, report *v1alpha1.LowLatencyNode) (kubernetes.Writing, error) {
	text, err := json.Marshal(report.Status.Software)
	if err != nil {
		return kubernetes.Writing{}, fmt.Errorf("printing the software of node %s: %w", report.Name, err)
	}
	digest := sha256.Sum256(text)
	key := hash + " " + report.Status.Inventory.Hash + " " + hex.EncodeToString(digest[:])
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if known, found := p.writings[key]; found {
		return known, nil
	}
	facts, err := installation.Facts(report.Status.Inventory, report.Status.Software)
	if err != nil {
		return kubernetes.Writing{}, fmt.Errorf("reading the software of node %s: %w", report.Name, err)
	}
	written, err := kubernetes.Write(planned, facts)
	if err != nil {
		return kubernetes.Writing{}, err
	}
	// Hosts that differ are few, and what is forgotten is spelled again.
	const remembered = 64
	if len(p.writings) >= remembered {
		clear(p.writings)
	}
	p.writings[key] = written
	return written, nil
}

func (p *Platform) drainOf(node string) *enactment.Drain {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.drains[node]
}

func (p *Platform) setDrain(node string, drain *enactment.Drain) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if drain == nil {
		delete(p.drains, node)
		return
	}
	p.drains[node] = drain
}
