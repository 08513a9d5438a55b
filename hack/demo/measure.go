// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// measure lets LatencyTests measure the nodes once more, and waits for their results: the metrics are to have something of them. The story does
// without, as the simulated platform invents the figures.
func (s *stage) measure(ctx context.Context) error {
	tests := []*v1alpha1.LatencyTest{s.test("quiet"), s.test("way"), s.test("load")}
	for _, test := range tests {
		wanted := test.Spec
		_, err := controllerutil.CreateOrPatch(ctx, s.client, test, func() error {
			run := test.Spec.Run
			test.Spec = *wanted.DeepCopy()
			test.Spec.Run = run + 1
			return nil
		})
		if err != nil {
			return fmt.Errorf("asking for a measurement: %w", err)
		}
	}
	return s.await(ctx, "the nodes are measured", func() bool {
		return !slices.ContainsFunc(tests, func(test *v1alpha1.LatencyTest) bool { return !s.isMeasured(ctx, test) })
	})
}

// test is the LatencyTest with a name: of jitter, of messages that leave on a schedule between two pods of each node, or the search for the
// highest rate that these carry.
func (s *stage) test(name string) *v1alpha1.LatencyTest {
	const budget, slow, rate, repetitions = 20 * time.Microsecond, 100 * time.Microsecond, 10_000, 3
	test := &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	test.Spec.Nodes.Profile, test.Spec.Repetitions = profileName, repetitions
	if name == "quiet" {
		test.Spec.Kind, test.Spec.DurationSeconds = v1alpha1.LatencyTestJitter, 1
		test.Spec.Budget = &v1alpha1.LatencyBudget{MaximumNanoseconds: budget.Nanoseconds()}
		return test
	}
	test.Spec.Traffic = &v1alpha1.TestTraffic{
		Transport: v1alpha1.TransportUDP, Waiting: v1alpha1.WaitingSpin, Server: v1alpha1.TestServer{Placement: v1alpha1.ServerOnSameNode},
	}
	if name == "load" {
		test.Spec.Kind = v1alpha1.LatencyTestLoadSearch
		test.Spec.Budget = &v1alpha1.LatencyBudget{MinimumMessagesPerSecond: rate}
		return test
	}
	test.Spec.Kind, test.Spec.DurationSeconds = v1alpha1.LatencyTestRateSweep, 1
	test.Spec.RateSweep = &v1alpha1.RateSweepTest{MessagesPerSecond: []int32{rate}}
	test.Spec.Budget = &v1alpha1.LatencyBudget{Percentiles: []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P99, Nanoseconds: slow.Nanoseconds()}}}
	return test
}

// isMeasured reports whether nothing more of a test is to be measured.
func (s *stage) isMeasured(ctx context.Context, test *v1alpha1.LatencyTest) bool {
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(test), test); err != nil {
		return false
	}
	counts := test.Status.Nodes
	return test.Status.ObservedGeneration == test.Generation && counts != nil && counts.Selected > 0 && counts.Running+counts.Waiting == 0
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
