// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// measure lets a LatencyTest measure the nodes once more, and waits for its results: the metrics are to have something of it. The story does
// without, as the simulated platform invents the figures.
func (s *stage) measure(ctx context.Context) error {
	test := &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "quiet"}}
	_, err := controllerutil.CreateOrUpdate(ctx, s.client, test, func() error {
		const budget, repetitions = 20 * time.Microsecond, 3
		test.Spec.Kind, test.Spec.Nodes.Profile = v1alpha1.LatencyTestJitter, profileName
		test.Spec.Budget = &v1alpha1.LatencyBudget{MaximumNanoseconds: budget.Nanoseconds()}
		test.Spec.DurationSeconds, test.Spec.Repetitions = 1, repetitions
		test.Spec.Run++
		return nil
	})
	if err != nil {
		return fmt.Errorf("asking for a measurement: %w", err)
	}
	return s.await(ctx, "the nodes are measured", func() bool {
		if err := s.client.Get(ctx, client.ObjectKeyFromObject(test), test); err != nil {
			return false
		}
		counts := test.Status.Nodes
		return test.Status.ObservedGeneration == test.Generation && counts != nil && counts.Selected > 0 && counts.Running+counts.Waiting == 0
	})
}

// await waits until something is there.
func (s *stage) await(ctx context.Context, what string, there func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, actTimeout)
	defer cancel()
	for !there() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, context.Cause(ctx))
		case <-time.After(pace):
		}
	}
	return nil
}
