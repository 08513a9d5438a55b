// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"crypto/rand"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes/signingkey"
)

// trusting is a guard whose node has what it is to have, and that reports a key.
func trusting(key instruction.Key) *v1alpha1.LowLatencyNode {
	return reportOf(&v1alpha1.NodeEnactment{
		Phase: v1alpha1.EnactmentInForce, Number: 7, PlanHash: "aaaaaaaa", InForcePlanHash: "aaaaaaaa",
		Key: &v1alpha1.EnactmentKey{ID: key.ID(), Serial: key.Serial},
	})
}

// TestAnotherKey: somebody has put another key in the place of the one before. The guard is told by a pod without an instruction, the node is not
// cordoned, and what was made for it goes once the guard reports the key.
func TestAnotherKey(t *testing.T) {
	first, err := signingkey.New(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	next, err := first.Next(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ready := nodeWith(governed(), false)
	s := newStage(t, interceptor.Funcs{}, next.Secret(operators), ready, trusting(first.Last))
	s.roll()
	if got := s.there(); got != "instruction, pod" {
		t.Fatalf("there is %q", got)
	}
	s.tellsOf(first, next)
	// An operator that was killed goes on, and the guard answers.
	s.roll()
	report := &v1alpha1.LowLatencyNode{}
	if err := s.Live.Get(t.Context(), client.ObjectKey{Name: "n1"}, report); err != nil {
		t.Fatal(err)
	}
	report.Status.Enactment = trusting(next.Last).Status.Enactment
	if err := s.Client.Update(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.roll()
	}
	if got := s.there(); got != "" {
		t.Errorf("there is still %q", got)
	}
}

// tellsOf fails unless the pod and its ConfigMap lead a guard from one key to another, and nowhere else.
func (s *stage) tellsOf(first, next *signingkey.Key) {
	t := s.t
	t.Helper()
	of := client.ObjectKey{Namespace: agents, Name: "enact-n1"}
	configMap, pod := &corev1.ConfigMap{}, &corev1.Pod{}
	for _, object := range []client.Object{configMap, pod} {
		if err := s.Live.Get(t.Context(), of, object); err != nil {
			t.Fatal(err)
		}
	}
	chain, err := instruction.ParseChain(configMap.BinaryData[KeyChainEntry])
	if err != nil {
		t.Fatal(err)
	}
	if got, err := chain.Follow(first.Last, configMap.BinaryData[PublicKeyEntry]); err != nil || got.ID() != next.Last.ID() {
		t.Errorf("Follow() = %v, %v", got, err)
	}
	args := strings.Join(pod.Spec.Containers[0].Args, " ")
	if strings.Contains(args, "--instruction=") || !strings.Contains(args, "--key-chain=/instruction/key-chain") {
		t.Errorf("the pod is started with %s", args)
	}
}

// TestALostKey: no other is made while a guard trusts one, and nothing is begun.
func TestALostKey(t *testing.T) {
	lost, err := signingkey.New(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, interceptor.Funcs{}, nodeWith(governed(), false), trusting(lost.Last))
	outcome, err := s.Roll(t.Context(), s.look("n1"))
	if err != nil || len(outcome.Conflicts) != 1 || outcome.Conflicts[0].Reason != v1alpha1.ReasonHostRefused || !strings.Contains(outcome.Conflicts[0].Message, "--lost") {
		t.Errorf("Roll() = %+v, %v", outcome, err)
	}
	if got := s.there(); got != "" {
		t.Errorf("there is %q", got)
	}
	var secrets corev1.SecretList
	if err := s.Live.List(t.Context(), &secrets); err != nil || len(secrets.Items) > 0 {
		t.Errorf("there are %d Secrets, %v", len(secrets.Items), err)
	}
}
