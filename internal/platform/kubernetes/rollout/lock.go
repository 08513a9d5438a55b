// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/enactment"
)

const (
	// kuredReboots is on a Node that kured reboots, where it annotates nodes (kubereboot/kured, cmd/kured).
	kuredReboots = "weave.works/kured-reboot-in-progress"
	// kuredLock is on the DaemonSet of kured (pkg/daemonsetlock), whose name and namespace are options of it (--ds-name, --ds-namespace).
	kuredLock = "weave.works/kured-node-lock"
	// medik8sNamespace is where operators of medik8s keep a Lease for each node that they work on.
	medik8sNamespace = "medik8s-leases"
	medik8sPrefix    = "node-"
	// upgradeNode is on the pods of Jobs of the system-upgrade-controller.
	upgradeNode = "upgrade.cattle.io/node"
)

// foreignTaint is a taint by which somebody else says what is done with a node.
type foreignTaint struct {
	// key of the taint; one that ends with a slash begins the keys of several.
	key string
	// says what it means.
	says string
}

// foreignTaints are those of Karpenter (pkg/apis/v1/taints.go), the Cluster Autoscaler (utils/taints), medik8s
// (common/pkg/taints and its operators), Cluster API (api/core, common_types.go) and Kubernetes.
func foreignTaints() []foreignTaint {
	return []foreignTaint{
		{"karpenter.sh/disrupted", "Karpenter takes it away"},
		{"karpenter.sh/disruption", "Karpenter takes it away"},
		{"karpenter.sh/rebooting", "Karpenter reboots it"},
		{"karpenter.sh/unregistered", "Karpenter has not registered it yet"},
		{"ToBeDeletedByClusterAutoscaler", "the Cluster Autoscaler takes it away"},
		{"medik8s.io/", "medik8s works on it"},
		{"node.cluster.x-k8s.io/outdated-revision", "Cluster API is about to replace it"},
		{"node.cluster.x-k8s.io/uninitialized", "Cluster API has not initialized it yet"},
		{corev1.TaintNodeOutOfService, "somebody has declared it out of service"},
	}
}

func (f foreignTaint) is(key string) bool {
	return key == f.key || strings.HasSuffix(f.key, "/") && strings.HasPrefix(key, f.key)
}

// lockOf says by the Node alone who else works on it.
func lockOf(node *corev1.Node) string {
	if node.Annotations[kuredReboots] != "" {
		return "kured is rebooting it"
	}
	for _, taint := range node.Spec.Taints {
		if at := slices.IndexFunc(foreignTaints(), func(f foreignTaint) bool { return f.is(taint.Key) }); at >= 0 {
			return fmt.Sprintf("%s: it has the taint %s", foreignTaints()[at].says, taint.Key)
		}
	}
	if node.DeletionTimestamp != nil {
		return "it is being deleted"
	}
	if c := enactment.ForeignMaintenance(node.Status.Conditions); c != nil {
		return fmt.Sprintf("somebody else works on it: its condition %s is True with the reason %q", c.Type, c.Reason)
	}
	return ""
}

// findLock looks, before a turn begins, whether somebody else has locked the node; before anything else is done on it, whether somebody has begun to
// work on this one meanwhile, whom a cordon does not keep away; and before it is let go, whether its machine is taken away. It notes the first lock that it
// finds, and reports whether there is one: then it is to be decided again.
func (p *Platform) findLock(ctx context.Context, w *world, d *enactment.Decision) (bool, error) {
	for _, step := range d.Steps {
		at := slices.IndexFunc(w.nodes, func(n enactment.Node) bool { return n.Name == step.Node })
		n := &w.nodes[at]
		if n.Lock != "" {
			continue
		}
		var err error
		n.Lock, err = p.lockBefore(ctx, step.Verb, n, w.known[step.Node])
		if n.Lock != "" || err != nil {
			return n.Lock != "", err
		}
	}
	return false, nil
}

// lockBefore says who else works on a node, as far as that matters before a step.
func (p *Platform) lockBefore(ctx context.Context, verb enactment.Verb, n *enactment.Node, node *corev1.Node) (string, error) {
	switch verb {
	case enactment.TakeTurn:
		if n.IsOurCordon || n.IsHeld || n.Issued != nil {
			return "", nil
		}
		return p.lockElsewhere(ctx, node)
	case enactment.Cordon, enactment.Evict, enactment.Instruct:
		return p.lockOnNode(ctx, node)
	case enactment.Uncordon:
		return p.lockOfMachine(ctx, node)
	case enactment.HandOver, enactment.Withdraw, enactment.EndTurn, enactment.TellKey, enactment.Claim:
	}
	return "", nil
}

// lockElsewhere says by other objects who else works on a node.
func (p *Platform) lockElsewhere(ctx context.Context, node *corev1.Node) (string, error) {
	return firstLock(ctx, node, p.lockOfKured, p.lockOnNode)
}

// lockOnNode is lockElsewhere without the lock of kured, which is one for all nodes.
func (p *Platform) lockOnNode(ctx context.Context, node *corev1.Node) (string, error) {
	return firstLock(ctx, node, p.lockOfMachine, p.lockOfMedik8s, p.lockOfUpgrades)
}

func firstLock(ctx context.Context, node *corev1.Node, looks ...func(context.Context, *corev1.Node) (string, error)) (string, error) {
	for _, look := range looks {
		if lock, err := look(ctx, node); lock != "" || err != nil {
			return lock, err
		}
	}
	return "", nil
}

func (p *Platform) lockOfKured(ctx context.Context, _ *corev1.Node) (string, error) {
	daemonSets := &metav1.PartialObjectMetadataList{}
	daemonSets.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DaemonSetList"))
	if err := p.Live.List(ctx, daemonSets); err != nil {
		return "", fmt.Errorf("looking for the lock of kured: %w", err)
	}
	for i := range daemonSets.Items {
		if lock := readKuredLock(daemonSets.Items[i].Annotations[kuredLock], p.Clock.Now()); lock != "" {
			return lock, nil
		}
	}
	return "", nil
}

// kuredHolder is who holds kured's lock.
type kuredHolder struct {
	NodeID  string    `json:"nodeID"`
	Created time.Time `json:"created"`
	// TTL in nanoseconds; 0 for ever.
	TTL time.Duration `json:"TTL"`
}

func (h kuredHolder) isHeld(now time.Time) bool {
	return h.NodeID != "" && (h.TTL == 0 || h.Created.Add(h.TTL).After(now))
}

// readKuredLock says for which node kured holds its lock. It has one form for one holder and another for several.
func readKuredLock(text string, now time.Time) string {
	if text == "" {
		return ""
	}
	var lock struct {
		kuredHolder

		Locks []kuredHolder `json:"locks"`
	}
	if err := json.Unmarshal([]byte(text), &lock); err != nil {
		return "nobody can tell who holds the lock of kured: its annotation is no JSON"
	}
	for _, holder := range append(lock.Locks, lock.kuredHolder) {
		if holder.isHeld(now) {
			return "kured holds its lock for node " + holder.NodeID
		}
	}
	return ""
}

func (p *Platform) lockOfMedik8s(ctx context.Context, node *corev1.Node) (string, error) {
	lease := &coordinationv1.Lease{}
	err := p.Live.Get(ctx, client.ObjectKey{Namespace: medik8sNamespace, Name: medik8sPrefix + node.Name}, lease)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading the Lease of medik8s: %w", err)
	}
	if !isHeld(lease, p.Clock.Now()) {
		return "", nil
	}
	return fmt.Sprintf("%s holds Lease %s/%s", *lease.Spec.HolderIdentity, lease.Namespace, lease.Name), nil
}

// isHeld reports whether a Lease has a holder and has not ended.
func isHeld(lease *coordinationv1.Lease, now time.Time) bool {
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" {
		return false
	}
	if spec.LeaseDurationSeconds == nil || spec.RenewTime == nil {
		return true
	}
	return spec.RenewTime.Add(time.Duration(*spec.LeaseDurationSeconds) * time.Second).After(now)
}

func (p *Platform) lockOfUpgrades(ctx context.Context, node *corev1.Node) (string, error) {
	var pods corev1.PodList
	if err := p.Live.List(ctx, &pods, client.MatchingLabels{upgradeNode: node.Name}); err != nil {
		return "", fmt.Errorf("listing the pods of the system-upgrade-controller: %w", err)
	}
	for i := range pods.Items {
		if phase := pods.Items[i].Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			return fmt.Sprintf("the system-upgrade-controller works on it with pod %s/%s", pods.Items[i].Namespace, pods.Items[i].Name), nil
		}
	}
	return "", nil
}
