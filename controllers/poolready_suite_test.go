// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers_test

import (
	"context"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

func describePoolReadiness(s *suite) {
	Describe("the condition Ready of a BypassNICPool", func() {
		It("becomes True once, after the reboots that give the nodes what the pool asks for", s.isReadyAfterReboots)
	})
}

// poolLog notes each status of Ready and Degraded of a pool, in order.
type poolLog struct {
	mutex           sync.Mutex
	ready, degraded []metav1.ConditionStatus
	// early are the nodes that had not rebooted when Ready became True first.
	early []string
}

// watchPool notes what becomes of a pool from its creation on.
func (s *suite) watchPool(name string, nodes ...string) *poolLog {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.Background())
	log := &poolLog{}
	stream, err := s.client.Watch(ctx, &v1alpha1.BypassNICPoolList{}, &client.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name)})
	Expect(err).NotTo(HaveOccurred())
	var running sync.WaitGroup
	running.Go(func() {
		for event := range stream.ResultChan() {
			if pool, ok := event.Object.(*v1alpha1.BypassNICPool); ok {
				log.note(s, pool, nodes)
			}
		}
	})
	DeferCleanup(func() {
		stop()
		stream.Stop()
		running.Wait()
	})
	return log
}

func (l *poolLog) note(s *suite, pool *v1alpha1.BypassNICPool, nodes []string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	statuses := func(known []metav1.ConditionStatus, kind string) []metav1.ConditionStatus {
		if found := meta.FindStatusCondition(pool.Status.Conditions, kind); found != nil {
			known = append(known, found.Status)
		}
		return slices.Compact(known)
	}
	wasReady := slices.Contains(l.ready, metav1.ConditionTrue)
	l.ready, l.degraded = statuses(l.ready, v1alpha1.ConditionReady), statuses(l.degraded, v1alpha1.ConditionDegraded)
	if wasReady || !slices.Contains(l.ready, metav1.ConditionTrue) {
		return
	}
	for _, node := range nodes {
		if s.reboots.of(node) == 0 {
			l.early = append(l.early, node)
		}
	}
}

func (l *poolLog) seen() (ready, degraded []metav1.ConditionStatus, early []string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return slices.Clone(l.ready), slices.Clone(l.degraded), slices.Clone(l.early)
}

func (s *suite) isReadyAfterReboots(ctx SpecContext) {
	s.addNodes(ctx, "trading", "xeon-1", "xeon-2")
	s.addProfile(ctx, "trading", "trading", oneAtATime)
	s.expectReady(ctx, "trading")
	s.reboots.reset()
	log := s.watchPool("x2", "xeon-1", "xeon-2")
	s.addPool(ctx, "x2", "trading", withHugepages)
	s.eventuallyServed(ctx, func(g Gomega) {
		s.expectOfPool(ctx, g, "x2", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNICsHealthy)
		s.expectOfPool(ctx, g, "x2", v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
		ready, _, _ := log.seen()
		g.Expect(ready).To(ContainElement(metav1.ConditionTrue))
	})
	ready, degraded, early := log.seen()
	Expect(ready).To(Equal([]metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionTrue}))
	Expect(degraded).To(Equal([]metav1.ConditionStatus{metav1.ConditionFalse}))
	Expect(early).To(BeEmpty(), "nodes that had their reboot still to come")
	s.expectReboots("xeon-1", "xeon-2")
}
