// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
)

// profileWorld is what a profile is decided from, and what was made for it, read once from the cache. Everything in it
// but the profile is shared with the cache: not to be changed.
type profileWorld struct {
	fleet.ProfileWorld
	// leases is what the Leases of the agents tell besides.
	leases leaseChecks
	// former are the LowLatencyNodes of machines that others have replaced, by name.
	former map[string]*v1alpha1.LowLatencyNode
	// plans are the names of the ConfigMaps that hold plans of the profile.
	plans map[string]bool
	// tests are those of spec.verification.qualification that exist.
	tests []v1alpha1.LatencyTest
}

func (r *ProfileReconciler) gather(ctx context.Context, profile *v1alpha1.LowLatencyNodeProfile) (*profileWorld, error) {
	w := &profileWorld{ProfileWorld: fleet.ProfileWorld{Profile: profile}}
	for _, read := range []func(context.Context, *profileWorld) error{
		r.gatherProfiles, r.gatherPools, r.gatherNodes, r.gatherReports, r.gatherPlans, r.gatherTests,
	} {
		if err := read(ctx, w); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (r *ProfileReconciler) gatherProfiles(ctx context.Context, w *profileWorld) error {
	profiles, err := livingProfiles(ctx, r.client)
	w.Others = slices.DeleteFunc(profiles, func(other *v1alpha1.LowLatencyNodeProfile) bool { return other.UID == w.Profile.UID })
	return err
}

func (r *ProfileReconciler) gatherPools(ctx context.Context, w *profileWorld) error {
	var err error
	if w.Pools, err = livingPools(ctx, r.client); err != nil {
		return err
	}
	w.Incumbents, err = incumbentPools(ctx, r.client, w.Pools)
	return err
}

func (r *ProfileReconciler) gatherNodes(ctx context.Context, w *profileWorld) error {
	nodes, err := listNodes(ctx, r.client)
	w.Nodes = make(map[string]*corev1.Node, len(nodes))
	for i := range nodes {
		w.Nodes[nodes[i].Name] = &nodes[i]
	}
	return err
}

// gatherReports reads the LowLatencyNodes of the profile, and those of nodes that it is about to take over.
func (r *ProfileReconciler) gatherReports(ctx context.Context, w *profileWorld) error {
	var reports v1alpha1.LowLatencyNodeList
	err := r.client.List(ctx, &reports, client.MatchingFields{indexProfile: w.Profile.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing LowLatencyNodes: %w", err)
	}
	w.Reports = make(map[string]*v1alpha1.LowLatencyNode, len(reports.Items))
	for i := range reports.Items {
		w.Reports[reports.Items[i].Name] = &reports.Items[i]
	}
	for name, node := range w.Nodes {
		if w.Reports[name] != nil || !fleet.Selects(w.Profile.Spec.NodeSelector, node) {
			continue
		}
		report, err := get(ctx, r.client, client.ObjectKey{Name: name}, &v1alpha1.LowLatencyNode{}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return err
		}
		if report != nil {
			w.Reports[name] = report
		}
	}
	w.former = takeFormer(w.Reports, w.Nodes)
	if w.Profile.DeletionTimestamp.IsZero() {
		w.leases = r.heartbeats.judge(ctx, w.Reports)
	}
	return nil
}

// takeFormer takes the LowLatencyNodes of machines that others have replaced out of those that count.
func takeFormer(reports map[string]*v1alpha1.LowLatencyNode, nodes map[string]*corev1.Node) map[string]*v1alpha1.LowLatencyNode {
	former := map[string]*v1alpha1.LowLatencyNode{}
	for name, report := range reports {
		if node := nodes[name]; node != nil && !fleet.IsOfMachine(report, node) {
			former[name] = report
			delete(reports, name)
		}
	}
	return former
}

func (r *ProfileReconciler) gatherTests(ctx context.Context, w *profileWorld) error {
	wanted := w.Profile.Spec.Verification.Qualification
	if wanted == nil {
		return nil
	}
	var err error
	w.tests, err = readTests(ctx, r.client, wanted.Tests)
	return err
}

func (r *ProfileReconciler) gatherPlans(ctx context.Context, w *profileWorld) error {
	var plans metav1.PartialObjectMetadataList
	plans.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	err := r.client.List(ctx, &plans, client.InNamespace(r.namespace),
		client.MatchingLabels{v1alpha1.LabelProfile: w.Profile.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the ConfigMaps of plans: %w", err)
	}
	w.plans = make(map[string]bool, len(plans.Items))
	for i := range plans.Items {
		w.plans[plans.Items[i].Name] = true
	}
	return nil
}
