// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/drain"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/enactment"
	"github.com/lowlatency-dev/lowlatency-operator/internal/manifest"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes"
)

// NodeAnnotations are the annotations of a Node by which it is decided.
func NodeAnnotations() []string {
	return append(kubernetes.NodeAnnotations(),
		v1alpha1.AnnotationCordoned, v1alpha1.AnnotationHeld, v1alpha1.AnnotationRetry, kuredReboots, karpenterHold, autoscalerHold,
		nodeMachine, nodeMachineNamespace,
	)
}

// metadata is that of an object about a node, which goes with the Node.
func (p *Platform) metadata(w *world, node *corev1.Node) metav1.ObjectMeta {
	object := metadataOf(node, p.AgentNamespace)
	object.Labels[v1alpha1.LabelProfile] = w.limits.Profile
	return object
}

func metadataOf(node *corev1.Node, namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: objectName(node.Name), Labels: manifest.Labels(v1alpha1.ComponentEnactment),
		Annotations: map[string]string{v1alpha1.AnnotationNode: node.Name},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Node", Name: node.Name, UID: node.UID,
		}},
	}
}

// takeTurn notes on the node that the operator has something there, so that nobody forgets it before it was given back, keeps others
// from replacing it, and notes then that the node is being changed. A turn in which nothing could be handed over is not begun; one that
// is begun goes on.
func (p *Platform) takeTurn(ctx context.Context, w *world, node *corev1.Node) error {
	p.setDrain(node.Name, nil)
	isBegun := w.issued[node.Name] != nil || node.Annotations[v1alpha1.AnnotationCordoned] != "" || node.Annotations[v1alpha1.AnnotationHeld] != ""
	if !isBegun {
		if err := p.tryHandOver(ctx, w, node); err != nil {
			return err
		}
	}
	if err := p.hold(ctx, w, node); err != nil {
		return err
	}
	holder := v1alpha1.ProjectName
	lease := &coordinationv1.Lease{
		ObjectMeta: p.metadata(w, node),
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: new(metav1.NewMicroTime(p.Clock.Now()))},
	}
	if err := p.Client.Create(ctx, lease); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating Lease %s: %w", lease.Name, err)
	}
	return nil
}

// hold writes to the node, at once, whose it is and that others are to leave it alone.
func (p *Platform) hold(ctx context.Context, w *world, node *corev1.Node) error {
	if fleet.IsUntouched(node) {
		return platform.LabelNode(ctx, p.Client, node, node.Labels[v1alpha1.LabelProfile], w.limits.Profile, hold)
	}
	return p.patchNode(ctx, node, hold)
}

func (p *Platform) endTurn(ctx context.Context, node *corev1.Node) error {
	p.setDrain(node.Name, nil)
	return p.remove(ctx, &coordinationv1.Lease{ObjectMeta: p.named(node)})
}

func (p *Platform) named(node *corev1.Node) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: p.AgentNamespace, Name: objectName(node.Name)}
}

// remove deletes an object that may be gone already.
func (p *Platform) remove(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	if err := p.Client.Delete(ctx, object, options...); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %T %s: %w", object, object.GetName(), err)
	}
	return nil
}

// cordon keeps new pods off, and writes in the same request that it was the operator. It fails when the node has changed since it
// was read: a cordon of somebody else is never taken for ours. What an eviction has left before says nothing about a node to which
// pods could come meanwhile.
func (p *Platform) cordon(ctx context.Context, node *corev1.Node) error {
	p.setDrain(node.Name, nil)
	return p.patchNode(ctx, node, func(next *corev1.Node) {
		if next.Annotations == nil {
			next.Annotations = map[string]string{}
		}
		next.Annotations[v1alpha1.AnnotationCordoned] = p.Clock.Now().UTC().Format(time.RFC3339)
		next.Spec.Unschedulable = true
	})
}

// uncordon lets pods come again where the operator has kept them off, and others replace the node where it has kept them from that.
func (p *Platform) uncordon(ctx context.Context, node *corev1.Node) error {
	p.setDrain(node.Name, nil)
	return p.patchNode(ctx, node, func(next *corev1.Node) {
		giveUp(next)
		if _, ours := next.Annotations[v1alpha1.AnnotationCordoned]; ours {
			delete(next.Annotations, v1alpha1.AnnotationCordoned)
			next.Spec.Unschedulable = false
		}
	})
}

func (p *Platform) patchNode(ctx context.Context, node *corev1.Node, change func(*corev1.Node)) error {
	next := node.DeepCopy()
	change(next)
	if equality.Semantic.DeepEqual(node, next) {
		return nil
	}
	if err := platform.PatchNode(ctx, p.Client, node, next, true); err != nil {
		return fmt.Errorf("writing Node %s: %w", node.Name, err)
	}
	return nil
}

// evict asks each pod of the node once to go, as kubectl drain does, and notes which are left. Disruption budgets are
// honoured. Pods of DaemonSets and static pods stay; a pod that nobody would make again is not evicted, and named.
func (p *Platform) evict(ctx context.Context, node *corev1.Node) error {
	helper := &drain.Helper{
		Ctx: ctx, Client: p.Evictions, GracePeriodSeconds: -1, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
		AdditionalFilters: []drain.PodFilter{p.skipManager}, Out: io.Discard, ErrOut: io.Discard,
	}
	pods, problems := helper.GetPodsForDeletion(node.Name)
	found := &enactment.Drain{}
	for _, problem := range problems {
		found.Blocked = append(found.Blocked, problem.Error())
	}
	if pods != nil {
		for _, pod := range pods.Pods() {
			evictPod(helper, pod, found)
		}
	}
	slices.Sort(found.Left)
	slices.Sort(found.Blocked)
	p.setDrain(node.Name, found)
	return nil
}

// managerLabel is on the pods of the operator (config/manager).
const (
	managerLabel = "control-plane"
	managerValue = "controller-manager"
)

// skipManager leaves the operator where it is: on the only node of a cluster it would not come back to end the turn. It starts
// again with the host.
func (p *Platform) skipManager(pod corev1.Pod) drain.PodDeleteStatus {
	if pod.Namespace == p.Namespace && pod.Labels[managerLabel] == managerValue {
		return drain.MakePodDeleteStatusSkip()
	}
	return drain.MakePodDeleteStatusOkay()
}

func evictPod(helper *drain.Helper, pod corev1.Pod, found *enactment.Drain) {
	name := pod.Namespace + "/" + pod.Name
	if pod.DeletionTimestamp != nil {
		found.Left = append(found.Left, name)
		return
	}
	err := helper.EvictPod(pod, policyv1.SchemeGroupVersion)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		found.Blocked = append(found.Blocked, name+": "+err.Error())
	default:
		found.Left = append(found.Left, name)
	}
}
