// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package pools_test

import (
	"fmt"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// besideHost compares a pod with the network of its node. No budget of ratios can hold or fail for sure where the host takes processors away, so
// that both sides have been measured over the same way, and the ratio with its interval is there, is what is looked at.
func (s *scene) besideHost(t *testing.T) string {
	test := onSameNode("beside-host", v1alpha1.LatencyTestContainerVersusHost)
	test.Spec.DurationSeconds, test.Spec.Repetitions = 8, 5
	test.Spec.PingPong = &v1alpha1.PingPongTest{Sizes: []int32{64}}
	test.Spec.Budget = &v1alpha1.LatencyBudget{Path: v1alpha1.LatencyPathKernel, Ratios: []v1alpha1.LatencyRatioBound{{Percentile: v1alpha1.P50, MaximumPartsPerThousand: 5000}}}
	s.kubectlApply(t, test)
	defer s.remove(t, test)
	result, tries := s.whenQuiet(t, test)
	s.compared(t, test, result)
	return fmt.Sprintf("%s; Inconclusive before, the machine was busy: %d times", result.Message, tries)
}

// besideKernel compares frames of AF_XDP between two NICs with the kernel's sockets between two pods, for which the pools of frames are there. The NICs
// are emulated, so that how many times as long one takes says nothing.
func (s *scene) besideKernel(t *testing.T) string {
	test := onSameNode("frames-beside-kernel", v1alpha1.LatencyTestStackComparison)
	test.Spec.DurationSeconds, test.Spec.Repetitions = 8, 5
	test.Spec.PingPong = &v1alpha1.PingPongTest{Sizes: []int32{64}}
	test.Spec.StackComparison = &v1alpha1.StackComparison{Base: "kernel", Sides: []v1alpha1.StackSide{
		{Name: "kernel", Path: v1alpha1.LatencyPathKernel},
		{
			Name: "frames", Path: v1alpha1.LatencyPathAccelerated,
			Client: v1alpha1.StackClient{TestEnd: v1alpha1.TestEnd{BypassNICPool: "far-sockets", Address: farAddress}},
			Server: v1alpha1.StackServer{TestEnd: v1alpha1.TestEnd{BypassNICPool: "sockets", Address: nearAddress}},
		},
	}}
	test.Spec.Budget = &v1alpha1.LatencyBudget{Ratios: []v1alpha1.LatencyRatioBound{{Percentile: v1alpha1.P50, MaximumPartsPerThousand: 1000000}}}
	s.kubectlApply(t, test)
	defer s.remove(t, test)
	result, tries := s.whenQuiet(t, test)
	s.compared(t, test, result)
	return fmt.Sprintf("%s; Inconclusive before, the machine was busy: %d times", result.Message, tries)
}

// compared expects a passed comparison of two sides.
func (s *scene) compared(t *testing.T, test *v1alpha1.LatencyTest, result v1alpha1.LatencyTestResult) {
	t.Helper()
	s.passed(t, test, result)
	if comparison := result.Measured.Network.Comparison; comparison == nil || len(comparison.Sides) != 2 {
		t.Fatalf("compared: %+v", comparison)
	}
}
