// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// afterwards is a node whose guard is done and which is still cordoned. Ready is what its kubelet has said last.
func afterwards() []client.Object {
	node := nodeWith(nil, true)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return []client.Object{node, reportOf(nil), turn()}
}

// waiting is what the operator says that it waits for.
func (s *stage) waiting() string {
	s.t.Helper()
	rest, err := s.Return(s.t.Context(), s.look())
	if err != nil {
		s.t.Fatal(err)
	}
	return rest.Waiting
}

// staysCordoned fails unless the node is kept cordoned for several looks, for a reason.
func (s *stage) staysCordoned(reason string) {
	s.t.Helper()
	for range 3 {
		if says := s.waiting(); !strings.Contains(says, reason) {
			s.t.Errorf("the operator says %q, want %q", says, reason)
		}
		if got := s.there(); got != "turn, cordon" {
			s.t.Fatalf("there is %q, want turn, cordon", got)
		}
	}
}

// TestRenewal: the condition Ready of a kubelet that was started anew may be an old one. Pods come again once its Lease moves.
func TestRenewal(t *testing.T) {
	t.Run("the Lease stands still", func(t *testing.T) {
		s := newStage(t, interceptor.Funcs{}, afterwards()...)
		s.staysCordoned("there is no Lease kube-node-lease/n1")
		s.renew()
		s.staysCordoned("has not renewed Lease kube-node-lease/n1 yet")
		s.renew()
		for _, want := range []string{"turn", ""} {
			s.waiting()
			if got := s.there(); got != want {
				t.Fatalf("there is %q, want %q", got, want)
			}
		}
		s.waiting()
		if len(s.renewals) > 0 {
			t.Errorf("%d renewals of nodes without a turn are remembered", len(s.renewals))
		}
	})
	t.Run("the Lease cannot be read", func(t *testing.T) {
		forbidden := interceptor.Funcs{Get: func(ctx context.Context, reader client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if key.Namespace == corev1.NamespaceNodeLease {
				return errors.New("forbidden")
			}
			return reader.Get(ctx, key, object, options...)
		}}
		s := newStage(t, forbidden, afterwards()...)
		s.staysCordoned("reading Lease kube-node-lease/n1: forbidden")
	})
	t.Run("the operator was started again", func(t *testing.T) {
		s := newStage(t, interceptor.Funcs{}, afterwards()...)
		s.renew()
		s.staysCordoned("has not renewed")
		s.renew()
		clear(s.renewals)
		s.staysCordoned("has not renewed")
	})
}

// TestRenewalOfEachRest: a Lease that has moved before the guard was done proves nothing.
func TestRenewalOfEachRest(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, afterwards()...)
	before, after := rest{number: 7}, rest{number: 8}
	for i, look := range []struct {
		of    rest
		lives bool
	}{{before, false}, {before, true}, {after, false}, {after, true}} {
		s.renew()
		if says := s.unrenewed(t.Context(), "n1", look.of); (says == "") != look.lives {
			t.Errorf("look %d: %q", i, says)
		}
	}
}

// TestNoLeaseIsReadWithoutATurn: kubelets of nodes that are left alone, or work on an instruction, are not asked after.
func TestNoLeaseIsReadWithoutATurn(t *testing.T) {
	for name, objects := range map[string][]client.Object{
		"no turn": {nodeWith(governed(), false), reportOf(nil)}, "at work": {nodeWith(governed(), true), reportOf(nil), turn(), instructed(), podIn(corev1.PodRunning)},
	} {
		t.Run(name, func(t *testing.T) {
			counted := interceptor.Funcs{Get: func(ctx context.Context, reader client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				if key.Namespace == corev1.NamespaceNodeLease {
					t.Error("the Lease was read")
				}
				return reader.Get(ctx, key, object, options...)
			}}
			s := newStage(t, counted, objects...)
			if _, err := s.Roll(t.Context(), s.look()); err != nil {
				t.Error(err)
			}
		})
	}
}
