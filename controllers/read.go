// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
)

// get reads an object into an empty one; it returns nil when the object does not exist.
func get[T client.Object](ctx context.Context, reader client.Reader, key client.ObjectKey, into T, options ...client.GetOption) (T, error) {
	var none T
	err := reader.Get(ctx, key, into, options...)
	switch {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		_, kind, _ := strings.Cut(fmt.Sprintf("%T", into), ".")
		return none, fmt.Errorf("reading %s %s: %w", kind, key, err)
	}
	return into, nil
}

// What the functions below return is shared with the cache: not to be changed.

// listNodes are all nodes.
func listNodes(ctx context.Context, reader client.Reader) ([]corev1.Node, error) {
	var nodes corev1.NodeList
	if err := reader.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Nodes: %w", err)
	}
	return nodes.Items, nil
}

// listReports are all LowLatencyNodes.
func listReports(ctx context.Context, reader client.Reader) ([]v1alpha1.LowLatencyNode, error) {
	var reports v1alpha1.LowLatencyNodeList
	if err := reader.List(ctx, &reports, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing LowLatencyNodes: %w", err)
	}
	return reports.Items, nil
}

// readTests are the LatencyTests of the given names that exist.
func readTests(ctx context.Context, reader client.Reader, references []v1alpha1.LatencyTestReference) ([]v1alpha1.LatencyTest, error) {
	tests := make([]v1alpha1.LatencyTest, 0, len(references))
	for _, reference := range references {
		key := client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name}
		test, err := get(ctx, reader, key, &v1alpha1.LatencyTest{}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, err
		}
		if test != nil {
			tests = append(tests, *test)
		}
	}
	return tests, nil
}

// listProfiles are all profiles.
func listProfiles(ctx context.Context, reader client.Reader) ([]v1alpha1.LowLatencyNodeProfile, error) {
	var profiles v1alpha1.LowLatencyNodeProfileList
	if err := reader.List(ctx, &profiles, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing LowLatencyNodeProfiles: %w", err)
	}
	return profiles.Items, nil
}

// livingProfiles are the profiles that are not being deleted.
func livingProfiles(ctx context.Context, reader client.Reader) ([]*v1alpha1.LowLatencyNodeProfile, error) {
	all, err := listProfiles(ctx, reader)
	profiles := make([]*v1alpha1.LowLatencyNodeProfile, 0, len(all))
	for i := range all {
		if all[i].DeletionTimestamp.IsZero() {
			profiles = append(profiles, &all[i])
		}
	}
	return profiles, err
}

// livingPools are the BypassNICPools that are not being deleted, in ascending order of their names.
func livingPools(ctx context.Context, reader client.Reader) ([]*v1alpha1.BypassNICPool, error) {
	var list v1alpha1.BypassNICPoolList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing BypassNICPools: %w", err)
	}
	pools := make([]*v1alpha1.BypassNICPool, 0, len(list.Items))
	for i := range list.Items {
		if pool := &list.Items[i]; pool.DeletionTimestamp.IsZero() {
			pools = append(pools, pool)
		}
	}
	slices.SortFunc(pools, func(a, b *v1alpha1.BypassNICPool) int { return cmp.Compare(a.Name, b.Name) })
	return pools, nil
}

// incumbentPools are those of the pools that have NICs of any node. It reads all LowLatencyNodes only where it matters: where
// two of the pools have the same resource name, and where there are more than one node can have; else it returns nil.
func incumbentPools(ctx context.Context, reader client.Reader, pools []*v1alpha1.BypassNICPool) (bypass.Incumbents, error) {
	if !bypass.NeedIncumbents(pools) {
		return nil, nil
	}
	var list v1alpha1.LowLatencyNodeList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing LowLatencyNodes: %w", err)
	}
	nodes := make([]*v1alpha1.LowLatencyNode, 0, len(list.Items))
	for i := range list.Items {
		nodes = append(nodes, &list.Items[i])
	}
	return bypass.IncumbentsOf(nodes...), nil
}
