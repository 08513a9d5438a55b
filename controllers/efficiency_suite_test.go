// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

func describeEfficiency(s *suite) {
	Describe("the load on the API server", func() {
		BeforeEach(func(ctx SpecContext) {
			s.addNodes(ctx, "trading", "xeon-1", "xeon-2", "xeon-3", "epyc-1", "epyc-2", "epyc-3")
			s.addProfile(ctx, "trading", "trading")
			s.expectReady(ctx, "trading")
			s.expectQuiet()
		})

		It("is nothing while nothing changes", func() {
			s.requests.reset()
			Consistently(s.requests.snapshot, 5*time.Second, time.Second).Should(BeEmpty())
		})

		It("is no write when the operator starts again", func() {
			ctx, stop := context.WithCancel(context.Background())
			var processes sync.WaitGroup
			requests := newRequestCounter()
			s.startManager(ctx, &processes, requests)
			Eventually(requests.watches("/apis/machineconfiguration.openshift.io/v1/machineconfigpools"), waitTimeout, pause).Should(BeTrue(), "it has started")
			Consistently(func() []string { return writes(requests.snapshot()) }, 5*time.Second, time.Second).Should(BeEmpty())
			stop()
			processes.Wait()
		})

		It("is some writes and no read for the status of one node", func(ctx SpecContext) {
			s.requests.reset()
			s.find(ctx, "xeon-2", strayInterrupt)
			s.expectCondition(ctx, "trading", v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonChecksFailed)
			s.expectQuiet()
			Expect(s.requests.snapshot()).To(Equal(map[string]int{
				"PATCH /api/v1/nodes/xeon-2/status":                                         1,
				"PATCH /apis/lowlatency.dev/v1alpha1/lowlatencynodeprofiles/trading/status": 1,
			}))
		})

		It("is one write for each plan, and for each node one that says what is pending and one in its turn, when the profile changes", func(ctx SpecContext) {
			s.requests.reset()
			s.changeProfile(ctx, "trading", func(p *v1alpha1.LowLatencyNodeProfile) {
				p.Spec.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{"audit=0"}
			})
			s.expectReady(ctx, "trading")
			s.expectQuiet()
			for request, count := range s.requests.snapshot() {
				method, path, _ := strings.Cut(request, " ")
				if method == http.MethodGet {
					Expect(path).To(ContainSubstring("/machineconfigs/"), "only rendered configurations are read")
				}
				if strings.Contains(path, "/configmaps/") {
					Expect(count).To(Equal(1), request)
				}
				if strings.Contains(path, "/lowlatencynodes/") {
					Expect(count).To(BeNumerically("<=", 2), request)
				}
				Expect(path).NotTo(MatchRegexp("/nodes/[^/]+$"), "no node is labelled again")
			}
		})
	})
}

// fleetSize is how many nodes the fleet has on which requests are counted. test/scale measures with thousands.
const fleetSize = 50

// describeFleet counts what a fleet costs.
func describeFleet(s *suite) {
	It("a fleet costs few requests for each node, and what moves it is written first", func(ctx SpecContext) {
		names := make([]string, 0, fleetSize)
		for i := range fleetSize {
			names = append(names, fmt.Sprintf("%s-of-fleet-%02d", []string{"xeon", "epyc"}[i%2], i))
		}
		s.addNodes(ctx, "trading", names...)
		s.addProfile(ctx, "trading", "trading", func(p *v1alpha1.LowLatencyNodeProfile) { p.Spec.Pools.MaximumUnavailableNodes = fleetSize })
		s.requests.reset()
		s.expectReady(ctx, "trading")
		s.expectQuiet()
		// Two of its LowLatencyNode, two of labels, each perhaps refused once, and two of conditions.
		expectPerNode(s.requests.inOrder(), names, 8)

		By("changing the profile")
		s.requests.reset()
		s.changeProfile(ctx, "trading", func(p *v1alpha1.LowLatencyNodeProfile) {
			p.Spec.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{"audit=0"}
		})
		s.expectReady(ctx, "trading")
		s.expectQuiet()
		requests := s.requests.inOrder()
		// Two of its LowLatencyNode; conditions when the plan is in force, and once or twice when it is proven: an agent that is
		// late proves alignment before it has the second reading that isolation needs.
		expectPerNode(requests, names, 5)
		expectObjectsFirst(requests)

		By("telling once what all nodes go through")
		for _, name := range names {
			Expect(s.events(ctx, name)).To(BeEmpty())
		}
		s.eventually(ctx, func(g Gomega) { g.Expect(s.events(ctx, "trading")).To(ContainElements("Verified", "RollingOut")) })

		By("doing nothing when nothing changes")
		s.expectQuiet()
		s.requests.reset()
		Consistently(s.requests.inOrder, 3*time.Second, time.Second).Should(BeEmpty())
	})
}

// expectPerNode expects at most so many writes about each node, and none about a part of them that was not needed.
func expectPerNode(requests, names []string, most int) {
	GinkgoHelper()
	for _, name := range names {
		var about []string
		for _, request := range requests {
			path, isStatus := strings.CutSuffix(request, "/status")
			if strings.HasSuffix(path, "/"+name) {
				about = append(about, fmt.Sprint(path, isStatus))
			}
		}
		Expect(len(about)).To(And(BeNumerically(">", 0), BeNumerically("<=", most)), "%s: %v", name, about)
	}
}

// expectObjectsFirst expects the objects of the platform to be written before the first node.
func expectObjectsFirst(requests []string) {
	GinkgoHelper()
	node := slices.IndexFunc(requests, func(request string) bool {
		return strings.HasPrefix(request, "PATCH /apis/lowlatency.dev/v1alpha1/lowlatencynodes/")
	})
	Expect(node).To(BeNumerically(">", 0))
	written := map[string]bool{}
	for i, request := range requests {
		if strings.HasPrefix(request, "PATCH ") && (strings.Contains(request, "/machineconfigs/") || strings.Contains(request, "/kubeletconfigs/")) {
			written[request] = true
			Expect(i).To(BeNumerically("<", node), "%s comes after a node", request)
		}
	}
	Expect(written).NotTo(BeEmpty())
}

// writes are the requests that change something.
func writes(requests map[string]int) []string {
	var found []string
	for request := range requests {
		if !strings.HasPrefix(request, http.MethodGet+" ") {
			found = append(found, request)
		}
	}
	return found
}

// expectQuiet waits until the operator has made no request for a second.
func (s *suite) expectQuiet() {
	GinkgoHelper()
	before := map[string]int{"not": 1}
	Eventually(func(g Gomega) {
		now := s.requests.snapshot()
		last := before
		before = now
		g.Expect(now).To(Equal(last))
	}, waitTimeout, time.Second).Should(Succeed())
}
