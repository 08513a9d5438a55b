// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// profileWorld is what a profile is decided from, read once from the cache. Everything in it but the profile
// is shared with the cache: not to be changed.
type profileWorld struct {
	profile *v1alpha1.LowLatencyNodeProfile
	// others are the other profiles that are not being deleted.
	others []*v1alpha1.LowLatencyNodeProfile
	// pools are the BypassNICPools that are not being deleted.
	pools []*v1alpha1.BypassNICPool
	// nodes are all nodes of the cluster by name.
	nodes map[string]*corev1.Node
	// reports are the LowLatencyNodes by name: those of the profile, and those of the nodes that it selects. Of what silent
	// agents have said there is what counts.
	reports map[string]*v1alpha1.LowLatencyNode
	// beat is what the Leases of the agents tell besides.
	beat heard
	// plans are the names of the ConfigMaps that hold plans of the profile.
	plans map[string]bool
}

func (r *ProfileReconciler) gather(ctx context.Context, profile *v1alpha1.LowLatencyNodeProfile) (*profileWorld, error) {
	w := &profileWorld{profile: profile}
	for _, read := range []func(context.Context, *profileWorld) error{
		r.gatherProfiles, r.gatherPools, r.gatherNodes, r.gatherReports, r.gatherPlans,
	} {
		if err := read(ctx, w); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (r *ProfileReconciler) gatherProfiles(ctx context.Context, w *profileWorld) error {
	var profiles v1alpha1.LowLatencyNodeProfileList
	if err := r.client.List(ctx, &profiles, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing LowLatencyNodeProfiles: %w", err)
	}
	for i := range profiles.Items {
		other := &profiles.Items[i]
		if other.UID != w.profile.UID && other.DeletionTimestamp.IsZero() {
			w.others = append(w.others, other)
		}
	}
	return nil
}

func (r *ProfileReconciler) gatherPools(ctx context.Context, w *profileWorld) error {
	pools, err := livingPools(ctx, r.client)
	w.pools = pools
	return err
}

func (r *ProfileReconciler) gatherNodes(ctx context.Context, w *profileWorld) error {
	var nodes corev1.NodeList
	if err := r.client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Nodes: %w", err)
	}
	w.nodes = make(map[string]*corev1.Node, len(nodes.Items))
	for i := range nodes.Items {
		w.nodes[nodes.Items[i].Name] = &nodes.Items[i]
	}
	return nil
}

// gatherReports reads the LowLatencyNodes of the profile, and those of nodes that it is about to take over.
func (r *ProfileReconciler) gatherReports(ctx context.Context, w *profileWorld) error {
	var reports v1alpha1.LowLatencyNodeList
	err := r.client.List(ctx, &reports, client.MatchingFields{indexProfile: w.profile.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing LowLatencyNodes: %w", err)
	}
	w.reports = make(map[string]*v1alpha1.LowLatencyNode, len(reports.Items))
	for i := range reports.Items {
		w.reports[reports.Items[i].Name] = &reports.Items[i]
	}
	for name, node := range w.nodes {
		if w.reports[name] != nil || !selectsNode(w.profile, node) {
			continue
		}
		var report v1alpha1.LowLatencyNode
		err := r.client.Get(ctx, client.ObjectKey{Name: name}, &report, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading LowLatencyNode %q: %w", name, err)
		}
		if !apierrors.IsNotFound(err) {
			w.reports[name] = &report
		}
	}
	if w.profile.DeletionTimestamp.IsZero() {
		w.beat = r.beats.judge(ctx, w.reports)
	}
	return nil
}

func (r *ProfileReconciler) gatherPlans(ctx context.Context, w *profileWorld) error {
	var plans metav1.PartialObjectMetadataList
	plans.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	err := r.client.List(ctx, &plans, client.InNamespace(r.namespace),
		client.MatchingLabels{v1alpha1.LabelProfile: w.profile.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the ConfigMaps of plans: %w", err)
	}
	w.plans = make(map[string]bool, len(plans.Items))
	for i := range plans.Items {
		w.plans[plans.Items[i].Name] = true
	}
	return nil
}

// selectsNode tells whether the profile's selector matches the node.
func selectsNode(profile *v1alpha1.LowLatencyNodeProfile, node *corev1.Node) bool {
	return matches(profile.Spec.NodeSelector, node)
}

// matches tells whether the node has all labels of the selector. One without labels selects nothing.
func matches(selector v1alpha1.NodeSelector, node *corev1.Node) bool {
	for key, value := range selector.MatchLabels {
		if found, ok := node.Labels[key]; !ok || found != string(value) {
			return false
		}
	}
	return len(selector.MatchLabels) > 0
}
