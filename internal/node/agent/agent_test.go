// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/agent"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodereport"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/repair"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/tunedhost"
)

// patience is how long a busy machine may take for what is awaited.
const patience = 90 * time.Second

var _ = Describe("An agent", Ordered, ContinueOnFailure, func() {
	var (
		api    *cluster
		host   *tunedhost.Host
		clock  *clocktesting.FakeClock
		worker *agent.Agent
		writes int
	)

	BeforeAll(func(ctx SpecContext) {
		api = startCluster(ctx)
		DeferCleanup(func() { Expect(api.environment.Stop()).To(Succeed()) })
	})

	BeforeEach(func(ctx SpecContext) {
		var err error
		host, err = tunedhost.New(ctx, GinkgoT().TempDir(), tunedhost.Small(hosttree.Xeon()), tunedhost.Profile())
		Expect(err).NotTo(HaveOccurred())
		clock = clocktesting.NewFakeClock(time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC))
		writes = 0
		counting := watching{watch: api.agent.WatchLowLatencyNode, intercepted: intercepted{
			Client: api.agent,
			apply: func(ctx context.Context, node *unstructured.Unstructured) error {
				writes++
				return api.agent.ApplyStatus(ctx, node)
			},
		}}
		worker = &agent.Agent{
			Client: counting, NodeName: nodeName, Namespace: namespace, Root: host.Dir, Clock: clock,
			Interval: time.Minute, Window: 10 * time.Second,
		}
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(api.admin.Delete(ctx, &v1alpha1.LowLatencyNode{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}))).To(Succeed())
			Expect(api.admin.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(namespace))).To(Succeed())
		})
	})

	node := func(ctx context.Context) *v1alpha1.LowLatencyNode {
		GinkgoHelper()
		found := &v1alpha1.LowLatencyNode{}
		Expect(api.admin.Get(ctx, client.ObjectKey{Name: nodeName}, found)).To(Succeed())
		return found
	}
	create := func(ctx context.Context) {
		GinkgoHelper()
		Expect(api.admin.Create(ctx, &v1alpha1.LowLatencyNode{
			ObjectMeta: metav1.ObjectMeta{Name: nodeName}, Spec: v1alpha1.LowLatencyNodeSpec{Profile: "trading"},
		})).To(Succeed())
	}
	// publish stores a plan as the operator does, and names it in the node's spec.
	publish := func(ctx context.Context, text string) {
		GinkgoHelper()
		name := "trading-" + host.Plan.Hash()
		Expect(api.admin.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Data: map[string]string{v1alpha1.PlanKey: text},
		})).To(Succeed())
		found := node(ctx)
		found.Spec.PlanHash, found.Spec.PlanConfigMap = host.Plan.Hash(), name
		Expect(api.admin.Update(ctx, found)).To(Succeed())
	}
	planText := func() string {
		GinkgoHelper()
		text, err := json.Marshal(host.Plan)
		Expect(err).NotTo(HaveOccurred())
		return string(text)
	}
	// pass lets some time go by and passes over the host.
	pass := func(ctx context.Context) *v1alpha1.LowLatencyNode {
		GinkgoHelper()
		clock.Step(time.Minute)
		Expect(worker.Once(ctx)).To(Succeed())
		return node(ctx)
	}
	condition := func(found *v1alpha1.LowLatencyNode, conditionType string) string {
		c := meta.FindStatusCondition(found.Status.Conditions, conditionType)
		if c == nil {
			return "absent"
		}
		return fmt.Sprintf("%s %s", c.Status, c.Reason)
	}
	message := func(found *v1alpha1.LowLatencyNode, conditionType string) string {
		return meta.FindStatusCondition(found.Status.Conditions, conditionType).Message
	}

	It("waits for its LowLatencyNode and does not create it", func(ctx SpecContext) {
		Expect(worker.Once(ctx)).To(Succeed())
		Expect(worker.Once(ctx)).To(Succeed())
		err := api.admin.Get(ctx, client.ObjectKey{Name: nodeName}, &v1alpha1.LowLatencyNode{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "got %v", err)
	})

	It("reports the inventory of a node without a plan", func(ctx SpecContext) {
		create(ctx)
		found := pass(ctx)
		Expect(found.Status.Inventory).NotTo(BeNil())
		Expect(found.Status.Inventory.OnlineCPUs).To(Equal("0-15"))
		Expect(found.Status.Inventory.NUMANodes).To(HaveLen(2))
		Expect(found.Status.Checks).To(BeNil())
		Expect(found.Status.VerifiedPlanHash).To(BeEmpty())
		for _, conditionType := range []string{"Applied", "DeJittered", "NUMAAligned", "Ready"} {
			Expect(condition(found, conditionType)).To(Equal("Unknown AwaitingPlan"))
		}
		pass(ctx)
		Expect(writes).To(Equal(1), "an idle node was written")
	})

	It("writes its own status and nothing else", func(ctx SpecContext) {
		create(ctx)
		found := pass(ctx)
		owned := 0
		for _, entry := range found.ManagedFields {
			if entry.Manager != v1alpha1.AgentFieldManager {
				continue
			}
			owned++
			Expect(entry.Subresource).To(Equal("status"))
			Expect(entry.FieldsV1.GetRawString()).To(HavePrefix(`{"f:status":`))
		}
		Expect(owned).To(Equal(1))
		Expect(found.Generation).To(Equal(int64(1)))
	})

	It("says which reboot a plan waits for, and turns green when the host has it", func(ctx SpecContext) {
		create(ctx)
		publish(ctx, planText())
		found := pass(ctx)
		Expect(found.Status.VerifiedPlanHash).To(Equal(host.Plan.Hash()))
		Expect(found.Status.ObservedGeneration).To(Equal(found.Generation))
		Expect(condition(found, "Applied")).To(Equal("False RebootPending"))
		Expect(message(found, "Applied")).To(MatchRegexp("the kernel was booted without .* nohz_full="))
		Expect(found.Status.Checks.Failed).To(BeNumerically(">", 5))
		Expect(found.Status.Findings[0].Severity).To(Equal(v1alpha1.SeverityCritical))
		since := meta.FindStatusCondition(found.Status.Conditions, "Ready").LastTransitionTime

		Expect(meta.FindStatusCondition(pass(ctx).Status.Conditions, "Ready").LastTransitionTime).To(Equal(since))

		Expect(host.Apply()).To(Succeed())
		pass(ctx)
		found = pass(ctx)
		Expect(found.Status.Findings).To(BeEmpty())
		for _, conditionType := range []string{"Applied", "DeJittered", "NUMAAligned", "Ready"} {
			Expect(condition(found, conditionType)).To(Equal("True Verified"))
		}
		Expect(meta.FindStatusCondition(found.Status.Conditions, "Ready").LastTransitionTime.After(since.Time)).To(BeTrue())

		By("writing nothing while nothing changes")
		before := writes
		for range 3 {
			Expect(pass(ctx).ResourceVersion).To(Equal(found.ResourceVersion))
		}
		Expect(writes).To(Equal(before), "an idle node was written")
	})

	It("does not blame a host for what happened before it had the plan", func(ctx SpecContext) {
		Expect(host.Apply()).To(Succeed())
		create(ctx)
		pass(ctx)
		irq, err := hosttree.FindIRQ(host.Dir, host.BypassNIC())
		Expect(err).NotTo(HaveOccurred())
		Expect(hosttree.MoveIRQ(host.Dir, irq, cpus.Of(host.Plan.CPUs.Isolated.First()))).To(Succeed())
		Expect(hosttree.Tick(host.Dir, time.Minute)).To(Succeed())
		Expect(hosttree.MoveIRQ(host.Dir, irq, cpus.Of(host.Plan.CPUs.Housekeeping.Last()))).To(Succeed())
		publish(ctx, planText())
		Expect(condition(pass(ctx), "DeJittered")).To(Equal("True Verified"))
		Expect(condition(pass(ctx), "DeJittered")).To(Equal("True Verified"))
	})

	It("does not write to an object that took the place of the one it read", func(ctx SpecContext) {
		create(ctx)
		worker.Client = intercepted{
			Client: api.agent,
			get: func(ctx context.Context, name string) (*v1alpha1.LowLatencyNode, error) {
				found, err := api.agent.LowLatencyNode(ctx, name)
				Expect(api.admin.Delete(ctx, node(ctx))).To(Succeed())
				create(ctx)
				return found, err
			},
		}
		err := worker.Once(ctx)
		Expect(apierrors.IsConflict(err)).To(BeTrue(), "got %v", err)
		Expect(node(ctx).Status.Conditions).To(BeEmpty())
	})

	It("names an interrupt that was moved, and forgives it when it is moved back", func(ctx SpecContext) {
		create(ctx)
		publish(ctx, planText())
		Expect(host.Apply()).To(Succeed())
		Expect(condition(pass(ctx), "DeJittered")).To(Equal("True Verified"))

		irq, err := hosttree.FindIRQ(host.Dir, host.BypassNIC())
		Expect(err).NotTo(HaveOccurred())
		isolated := host.Plan.CPUs.Isolated.First()
		Expect(hosttree.MoveIRQ(host.Dir, irq, cpus.Of(isolated))).To(Succeed())
		Expect(hosttree.Tick(host.Dir, time.Minute)).To(Succeed())
		found := pass(ctx)
		Expect(condition(found, "DeJittered")).To(Equal("False ChecksFailed"))
		Expect(message(found, "DeJittered")).To(ContainSubstring("IRQ %d (%s-0) is delivered to isolated CPU %d", irq, host.BypassNIC(), isolated))
		Expect(message(found, "DeJittered")).To(ContainSubstring("irq.delivered"))
		Expect(condition(found, "Applied")).To(Equal("True Verified"))

		Expect(hosttree.MoveIRQ(host.Dir, irq, cpus.Of(host.Plan.CPUs.Housekeeping.Last()))).To(Succeed())
		Expect(hosttree.Tick(host.Dir, time.Minute)).To(Succeed())
		Expect(condition(pass(ctx), "DeJittered")).To(Equal("True Verified"))
	})

	DescribeTable("waits for a plan that it cannot read",
		func(ctx SpecContext, text func() string, want string) {
			create(ctx)
			publish(ctx, text())
			found := pass(ctx)
			Expect(condition(found, "Ready")).To(Equal("Unknown AwaitingPlan"))
			Expect(message(found, "Ready")).To(ContainSubstring(want))
			Expect(found.Status.Inventory).NotTo(BeNil())
			Expect(found.Status.VerifiedPlanHash).To(BeEmpty())
		},
		Entry("no JSON", func() string { return "{" }, "plan.json"),
		Entry("another plan", func() string { return "{}" }, "it holds plan "),
	)

	It("waits for a ConfigMap that is not there yet, and takes it when it is", func(ctx SpecContext) {
		create(ctx)
		publish(ctx, planText())
		stored := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: namespace, Name: node(ctx).Spec.PlanConfigMap}
		Expect(api.admin.Get(ctx, key, stored)).To(Succeed())
		Expect(api.admin.Delete(ctx, stored)).To(Succeed())
		found := pass(ctx)
		Expect(condition(found, "Ready")).To(Equal("Unknown AwaitingPlan"))
		Expect(message(found, "Ready")).To(Equal("ConfigMap " + key.String() + " does not exist"))

		stored.ResourceVersion, stored.UID = "", ""
		Expect(api.admin.Create(ctx, stored)).To(Succeed())
		Expect(pass(ctx).Status.VerifiedPlanHash).To(Equal(host.Plan.Hash()))

		By("not asking for the ConfigMap again while the plan stays the same")
		Expect(api.admin.Delete(ctx, stored)).To(Succeed())
		Expect(pass(ctx).Status.VerifiedPlanHash).To(Equal(host.Plan.Hash()))
	})

	It("says which ConfigMap lacks the plan", func(ctx SpecContext) {
		create(ctx)
		publish(ctx, planText())
		stored := &corev1.ConfigMap{}
		Expect(api.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: node(ctx).Spec.PlanConfigMap}, stored)).To(Succeed())
		stored.Data = nil
		Expect(api.admin.Update(ctx, stored)).To(Succeed())
		Expect(message(pass(ctx), "Ready")).To(ContainSubstring("it has no key plan.json"))
	})

	It("names the file that it cannot read, and recovers", func(ctx SpecContext) {
		create(ctx)
		publish(ctx, planText())
		Expect(host.Apply()).To(Succeed())
		inventory := pass(ctx).Status.Inventory
		online := filepath.Join(host.Dir, "sys/devices/system/cpu/online")
		sound, err := os.ReadFile(online)
		Expect(err).NotTo(HaveOccurred())

		Expect(os.WriteFile(online, []byte("both\n"), 0o600)).To(Succeed())
		found := pass(ctx)
		Expect(condition(found, "Ready")).To(Equal("Unknown ChecksUnknown"))
		Expect(message(found, "Ready")).To(ContainSubstring("/sys/devices/system/cpu/online"))
		Expect(found.Status.Inventory).To(Equal(inventory), "the hardware has not gone away")
		Expect(found.Status.VerifiedPlanHash).To(BeEmpty())

		Expect(os.WriteFile(online, sound, 0o600)).To(Succeed())
		Expect(condition(pass(ctx), "Ready")).To(Equal("True Verified"))
	})

	It("names a host that contradicts itself", func(ctx SpecContext) {
		create(ctx)
		Expect(os.WriteFile(filepath.Join(host.Dir, "sys/devices/system/node/node1/cpulist"), []byte("0-15\n"), 0o600)).To(Succeed())
		found := pass(ctx)
		Expect(condition(found, "Ready")).To(Equal("Unknown ChecksUnknown"))
		Expect(message(found, "Ready")).To(HavePrefix("understanding the host: "))
	})

	It("survives a root that is not mounted", func(ctx SpecContext) {
		create(ctx)
		worker.Root = filepath.Join(host.Dir, "missing")
		Expect(message(pass(ctx), "Ready")).To(ContainSubstring(worker.Root))
	})

	It("keeps its threads to the housekeeping CPUs of the plan", func(ctx SpecContext) {
		var kept []string
		worker.KeepTo = func(set cpus.Set) error {
			kept = append(kept, set.String())
			return errors.New("the container may not")
		}
		create(ctx)
		publish(ctx, planText())
		pass(ctx)
		Expect(condition(pass(ctx), "Applied")).To(Equal("False RebootPending"), "the failure to pin must not stop the agent")
		Expect(kept).To(Equal([]string{host.Plan.CPUs.Housekeeping.String()}))
	})

	It("reports an API server that refuses", func(ctx SpecContext) {
		create(ctx)
		worker.NodeName = "worker-2"
		err := worker.Once(ctx)
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "got %v", err)
		Expect(err).To(MatchError(ContainSubstring(`reading LowLatencyNode "worker-2"`)))
	})

	It("does not write for a pass that was interrupted", func(ctx SpecContext) {
		create(ctx)
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		Expect(worker.Once(canceled)).To(MatchError(context.Canceled))
		Expect(node(ctx).Status.Conditions).To(BeEmpty())
	})

	It("reacts to a new plan at once and stops when it is told to", func(ctx SpecContext) {
		worker.Clock, worker.Interval, worker.Window = nil, time.Hour, time.Hour
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- worker.Run(running) }()

		create(ctx)
		Eventually(ctx, func() string { return condition(node(ctx), "Ready") }).WithTimeout(patience).Should(Equal("Unknown AwaitingPlan"))

		By("starting over with an object that was deleted and created again")
		Expect(api.admin.Delete(ctx, node(ctx))).To(Succeed())
		create(ctx)
		Eventually(ctx, func() string { return condition(node(ctx), "Ready") }).WithTimeout(patience).Should(Equal("Unknown AwaitingPlan"))

		publish(ctx, planText())
		Eventually(ctx, func() string { return condition(node(ctx), "Applied") }).WithTimeout(patience).Should(Equal("False RebootPending"))

		stop()
		Eventually(ctx, ended).WithTimeout(patience).Should(Receive(Succeed()))
	})

	It("tries again soon after a pass that failed", func(ctx SpecContext) {
		failures := 0
		worker.Window = time.Minute
		worker.Client = watching{
			intercepted: intercepted{
				Client: api.agent,
				get: func(ctx context.Context, name string) (*v1alpha1.LowLatencyNode, error) {
					if failures++; failures == 1 {
						return nil, errors.New("the API server is away")
					}
					return api.agent.LowLatencyNode(ctx, name)
				},
			},
			watch: func(context.Context, string) (watch.Interface, error) {
				return nil, errors.New("the API server is away")
			},
		}
		create(ctx)
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- worker.Run(running) }()
		Eventually(ctx, clock.HasWaiters).Should(BeTrue())
		Expect(condition(node(ctx), "Ready")).To(Equal("absent"))
		Eventually(ctx, func() string {
			clock.Step(time.Second)
			return condition(node(ctx), "Ready")
		}).WithTimeout(patience).WithPolling(500 * time.Millisecond).Should(Equal("Unknown AwaitingPlan"))
		stop()
		Eventually(ctx, ended).WithTimeout(patience).Should(Receive(Succeed()))
	})

	It("passes over the host at every interval without a watch, and settles once", func(ctx SpecContext) {
		var settled atomic.Int32
		worker.Client = struct{ agent.Client }{api.agent}
		worker.Settled = func() error {
			settled.Add(1)
			return errors.New("nothing to give back")
		}
		create(ctx)
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- worker.Run(running) }()
		Eventually(ctx, func() string { return condition(node(ctx), "Ready") }).WithTimeout(patience).Should(Equal("Unknown AwaitingPlan"))
		Expect(settled.Load()).To(BeZero(), "settled before there were two readings")
		publish(ctx, planText())
		Eventually(ctx, func() string {
			clock.Step(10 * time.Second)
			return condition(node(ctx), "Applied")
		}).WithTimeout(patience).Should(Equal("False RebootPending"))
		Eventually(ctx, func() int32 {
			clock.Step(10 * time.Second)
			return settled.Load()
		}).WithTimeout(patience).Should(BeEquivalentTo(1))
		stop()
		Eventually(ctx, ended).WithTimeout(patience).Should(Receive(Succeed()))
		Expect(settled.Load()).To(BeEquivalentTo(1))
	})

	It("writes once in ten passes over a host on which nothing changes", func(ctx SpecContext) {
		Expect(host.Apply()).To(Succeed())
		create(ctx)
		publish(ctx, planText())
		Expect(condition(pass(ctx), "Ready")).To(Equal("True Verified"))
		pass(ctx)
		before := writes
		for range 10 {
			Expect(hosttree.Tick(host.Dir, time.Minute)).To(Succeed())
			pass(ctx)
		}
		Expect(writes-before).To(BeZero(), "an idle node was written")
		Expect(writes).To(BeNumerically("<=", 2))
	})

	// drifts are those of a check in short.
	drifts := func(found *v1alpha1.LowLatencyNode, check v1alpha1.CheckID) string {
		for _, d := range found.Status.Drift {
			if d.Check == check {
				return fmt.Sprintf("drifted %d repaired %d %s", d.Drifted, d.Repaired, strings.Join(d.Unrepaired, "; "))
			}
		}
		return "none"
	}
	const ksm = "/sys/kernel/mm/ksm/run"

	It("reports drift with its object, and leaves the host alone unless the profile asks for repair", func(ctx SpecContext) {
		Expect(host.Apply()).To(Succeed())
		worker.Repairer = onTree{host.Dir}
		create(ctx)
		publish(ctx, planText())
		pass(ctx)
		Expect(host.Write(ksm, "1")).To(Succeed())
		found := pass(ctx)
		Expect(drifts(found, "memory.ksm")).To(Equal("drifted 1 repaired 0 "))
		Expect(found.Status.Drift[0].Message).To(ContainSubstring(ksm))
		Expect(drifts(pass(ctx), "memory.ksm")).To(Equal("drifted 1 repaired 0 "))
		Expect(mergingOf(host.Dir)).To(Equal("1"))

		By("another agent that goes on counting where this one ended")
		worker = &agent.Agent{Client: worker.Client, NodeName: nodeName, Namespace: namespace, Root: host.Dir, Clock: clock, Window: 10 * time.Second}
		Expect(drifts(pass(ctx), "memory.ksm")).To(Equal("drifted 1 repaired 0 "))
		Expect(host.Write(ksm, "2")).To(Succeed())
		pass(ctx)
		Expect(host.Write(ksm, "1")).To(Succeed())
		Expect(drifts(pass(ctx), "memory.ksm")).To(Equal("drifted 2 repaired 0 "))
	})

	Context("with repair", func() {
		BeforeEach(func(ctx SpecContext) {
			host.Plan.Verification.Repair = v1alpha1.RepairRuntime
			Expect(host.Apply()).To(Succeed())
			worker.Repairer = onTree{host.Dir}
			worker.Reports = &agent.ReportServer{}
			create(ctx)
			publish(ctx, planText())
			Expect(condition(pass(ctx), "Ready")).To(Equal("True Verified"))
		})

		It("puts back an interrupt and a setting, and counts what helped", func(ctx SpecContext) {
			irq, err := hosttree.FindIRQ(host.Dir, host.BypassNIC())
			Expect(err).NotTo(HaveOccurred())
			Expect(hosttree.MoveIRQ(host.Dir, irq, cpus.Of(host.Plan.CPUs.Isolated.First()))).To(Succeed())
			Expect(host.Write(ksm, "1")).To(Succeed())
			found := pass(ctx)
			Expect(condition(found, "DeJittered")).To(Equal("False ChecksFailed"))
			Expect(drifts(found, "irq.effective-affinity")).To(Equal("drifted 1 repaired 0 "))
			Expect(mergingOf(host.Dir)).To(Equal("2"))

			found = pass(ctx)
			Expect(condition(found, "DeJittered")).To(Equal("True Verified"))
			Expect(drifts(found, "irq.effective-affinity")).To(Equal("drifted 1 repaired 1 "))
			Expect(drifts(found, "memory.ksm")).To(Equal("drifted 1 repaired 1 "))

			By("serving what it wrote")
			answer := httptest.NewRecorder()
			worker.Reports.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, nodereport.Path, http.NoBody))
			var report nodereport.Report
			Expect(json.Unmarshal(answer.Body.Bytes(), &report)).To(Succeed())
			Expect(report.Repairs).To(HaveLen(2))
			Expect(report.Repairs[0].Old + " " + report.Repairs[1].Old).To(ContainSubstring(strconv.Itoa(host.Plan.CPUs.Isolated.First())))
			Expect(report.Drift).To(HaveLen(2))
			Expect(report.Results).To(HaveLen(int(found.Status.Checks.Passed)))
			Expect(report.ContainersProblem).To(BeEmpty())
			Expect(report.Containers).NotTo(BeNil())
			Expect(report.Hugepages).NotTo(BeEmpty())
		})

		It("stops fighting a program that changes a setting again and again", func(ctx SpecContext) {
			for range 3 {
				Expect(host.Write(ksm, "1")).To(Succeed())
				pass(ctx)
				Expect(mergingOf(host.Dir)).To(Equal("2"))
				pass(ctx)
			}
			Expect(host.Write(ksm, "1")).To(Succeed())
			found := pass(ctx)
			Expect(drifts(found, "memory.ksm")).To(HavePrefix("drifted 4 repaired 3 "+ksm), "a file that is contested")
			Expect(drifts(found, "memory.ksm")).To(ContainSubstring("find the program that changes it"))
			Expect(mergingOf(host.Dir)).To(Equal("1"))
			before := writes
			pass(ctx)
			Expect(writes).To(Equal(before), "a fight that is over was written again")
		})

		It("says why it cannot write", func(ctx SpecContext) {
			worker.Repairer = refusing{}
			Expect(host.Write(ksm, "1")).To(Succeed())
			Expect(drifts(pass(ctx), "memory.ksm")).To(Equal("drifted 1 repaired 0 " + ksm + ": read-only file system"))
			worker.Repairer = nil
			Expect(drifts(pass(ctx), "memory.ksm")).To(ContainSubstring("deploy config/agent-repair"))
		})
	})

	It("looks at the counters between two passes, and at everything when they tell something new", func(ctx SpecContext) {
		Expect(host.Apply()).To(Succeed())
		worker.Client = struct{ agent.Client }{worker.Client}
		worker.Interval, worker.FullInterval = 30*time.Second, 24*time.Hour
		create(ctx)
		publish(ctx, planText())
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- worker.Run(running) }()
		// turn lets the agent look again.
		turn := func() {
			Eventually(ctx, clock.HasWaiters).Should(BeTrue())
			clock.Step(40 * time.Second)
			Eventually(ctx, clock.HasWaiters).Should(BeTrue())
		}
		for range 3 {
			turn()
		}
		Expect(condition(node(ctx), "Ready")).To(Equal("True Verified"))

		By("not seeing what no counter tells")
		Expect(host.Write(ksm, "1")).To(Succeed())
		turn()
		turn()
		Expect(drifts(node(ctx), "memory.ksm")).To(Equal("none"))

		By("seeing all of it once an interrupt comes on an isolated CPU")
		irq, err := hosttree.FindIRQ(host.Dir, host.BypassNIC())
		Expect(err).NotTo(HaveOccurred())
		Expect(hosttree.MoveIRQ(host.Dir, irq, cpus.Of(host.Plan.CPUs.Isolated.First()))).To(Succeed())
		Expect(hosttree.Tick(host.Dir, time.Minute)).To(Succeed())
		turn()
		Eventually(ctx, func() string { return drifts(node(ctx), "memory.ksm") }).Should(HavePrefix("drifted 1"))
		Expect(drifts(node(ctx), "irq.delivered")).To(HavePrefix("drifted 1"))
		stop()
		Eventually(ctx, ended).WithTimeout(patience).Should(Receive(Succeed()))
	})

	Context("with a Lease", func() {
		key := client.ObjectKey{Namespace: agentNamespace, Name: nodeName}
		// renewal is when the Lease was renewed last; zero when it never was.
		renewal := func(ctx context.Context) time.Time {
			GinkgoHelper()
			lease := &coordinationv1.Lease{}
			Expect(api.admin.Get(ctx, key, lease)).To(Succeed())
			return heartbeat.LastOf(lease).UTC()
		}

		BeforeEach(func(ctx SpecContext) {
			Expect(host.Apply()).To(Succeed())
			worker.Heartbeat = agent.Heartbeat{Namespace: agentNamespace, Holder: "agent-x7k2p/" + nodeName}
			create(ctx)
			publish(ctx, planText())
			Expect(api.admin.Create(ctx, heartbeat.First(node(ctx), agentNamespace, clock.Now()))).To(Succeed())
			DeferCleanup(func(ctx SpecContext) {
				Expect(api.admin.DeleteAllOf(ctx, &coordinationv1.Lease{}, client.InNamespace(agentNamespace))).To(Succeed())
			})
		})

		It("renews it after each look, and writes nothing else", func(ctx SpecContext) {
			pass(ctx)
			found := pass(ctx)
			Expect(condition(found, "Ready")).To(Equal("True Verified"))
			Expect(renewal(ctx)).To(Equal(clock.Now()))
			Expect(pass(ctx).ResourceVersion).To(Equal(found.ResourceVersion))
			Expect(renewal(ctx)).To(Equal(clock.Now()))
			lease := &coordinationv1.Lease{}
			Expect(api.admin.Get(ctx, key, lease)).To(Succeed())
			Expect(*lease.Spec.HolderIdentity).To(Equal("agent-x7k2p/worker-1"))
			Expect(*lease.Spec.LeaseDurationSeconds).To(BeEquivalentTo(240), "four looks")
			Expect(lease.OwnerReferences).To(HaveLen(1))

			By("not renewing it for looks that follow one another closely")
			last := renewal(ctx)
			clock.Step(time.Second)
			Expect(worker.Once(ctx)).To(Succeed())
			Expect(renewal(ctx)).To(Equal(last))
		})

		It("renews it after looks at the counters, too", func(ctx SpecContext) {
			worker.Client = struct{ agent.Client }{worker.Client}
			worker.Interval, worker.FullInterval = 30*time.Second, 24*time.Hour
			running, stop := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() { ended <- worker.Run(running) }()
			for range 5 {
				Eventually(ctx, clock.HasWaiters).Should(BeTrue())
				clock.Step(40 * time.Second)
				Eventually(ctx, clock.HasWaiters).Should(BeTrue())
				Expect(renewal(ctx)).To(Equal(clock.Now()))
			}
			stop()
			Eventually(ctx, ended).WithTimeout(patience).Should(Receive(Succeed()))
		})

		It("does not renew it after a look that fails", func(ctx SpecContext) {
			pass(ctx)
			last := renewal(ctx)
			root := worker.Root
			worker.Root = filepath.Join(root, "absent")
			Expect(condition(pass(ctx), "DeJittered")).To(Equal("Unknown ChecksUnknown"))
			Expect(renewal(ctx)).To(Equal(last), "the host could not be read")

			worker.Root = root
			inner := worker.Client
			worker.Client = intercepted{Client: api.agent, apply: func(context.Context, *unstructured.Unstructured) error {
				return errors.New("the API server is gone")
			}}
			clock.Step(time.Minute)
			Expect(worker.Once(ctx)).NotTo(Succeed())
			Expect(renewal(ctx)).To(Equal(last), "what was seen is not in the status")

			worker.Client = inner
			pass(ctx)
			Expect(renewal(ctx)).To(Equal(clock.Now()))
		})

		It("waits for a Lease that is not there, and tries again after an error", func(ctx SpecContext) {
			Expect(api.admin.DeleteAllOf(ctx, &coordinationv1.Lease{}, client.InNamespace(agentNamespace))).To(Succeed())
			pass(ctx)
			Expect(apierrors.IsNotFound(api.admin.Get(ctx, key, &coordinationv1.Lease{}))).To(BeTrue(), "agents make no Lease")
			Expect(api.admin.Create(ctx, heartbeat.First(node(ctx), agentNamespace, clock.Now()))).To(Succeed())
			inner := worker.Client
			worker.Client = intercepted{Client: api.agent, patch: func() error { return errors.New("the API server is gone") }}
			pass(ctx)
			Expect(renewal(ctx)).To(BeZero())
			worker.Client = inner
			pass(ctx)
			Expect(renewal(ctx)).To(Equal(clock.Now()))
		})
	})

	It("looks at everything when the host announces a change", func(ctx SpecContext) {
		Expect(host.Apply()).To(Succeed())
		worker.Client = struct{ agent.Client }{worker.Client}
		worker.Clock, worker.Interval, worker.FullInterval, worker.Window = nil, time.Hour, time.Hour, time.Millisecond
		create(ctx)
		publish(ctx, planText())
		running, stop := context.WithCancel(ctx)
		var err error
		worker.Announcements, err = agent.Watch(running, host.Dir)
		Expect(err).NotTo(HaveOccurred())
		ended := make(chan error, 1)
		go func() { ended <- worker.Run(running) }()
		Eventually(ctx, func() string { return condition(node(ctx), "Ready") }).WithTimeout(patience).Should(Equal("True Verified"))
		Expect(host.Write(ksm, "1")).To(Succeed())
		state := filepath.Join(host.Dir, "var/lib/kubelet/cpu_manager_state")
		text, err := os.ReadFile(state)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(state, text, 0o600)).To(Succeed())
		Eventually(ctx, func() string { return drifts(node(ctx), "memory.ksm") }).WithTimeout(patience).Should(HavePrefix("drifted 1"))
		stop()
		Eventually(ctx, ended).WithTimeout(patience).Should(Receive(Succeed()))
	})
})

// onTree writes as a running kernel would take it.
type onTree struct{ dir string }

func (t onTree) Put(write repair.Write) error {
	return hosttree.WriteSetting(t.dir, write.Path, write.New)
}

// refusing is a host that is mounted read-only.
type refusing struct{}

func (refusing) Put(repair.Write) error { return errors.New("read-only file system") }

// mergingOf reports whether a tree merges equal pages.
func mergingOf(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "sys/kernel/mm/ksm/run"))
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(string(text))
}
