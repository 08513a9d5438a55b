// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/installation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes/rollout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/guardedhost"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/ordinaryhost"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

const (
	namespace = "lowlatency-operator-system"
	patience  = 5 * time.Minute
	pause     = 100 * time.Millisecond
)

// foreignChange is what the guard of a node finds when it gives its host back.
const foreignChange = "/etc/sysctl.d/99-lowlatency.conf has another content than the guard has written"

// machine is one host with a guard and an agent that are played: the guard opens what the operator has signed, and goes a phase
// further each time that somebody looks.
type machine struct {
	name    string
	boot    int
	report  *v1alpha1.NodeEnactment
	opened  *instruction.Instruction
	last    int64
	reboots int
	key     ed25519.PublicKey
}

// fleet is a real API server with the operator on it.
type fleet struct {
	t         *testing.T
	client    client.Client
	machines  map[string]*machine
	inventory *v1alpha1.Inventory
	software  *v1alpha1.NodeSoftware
	// fails makes trials fail whose arguments contain it.
	fails string
	// most is the largest number of nodes that were cordoned at one time.
	most int
	// marked is all that others have seen on nodes of their maintenance.
	marked map[string]bool
	stop   context.CancelFunc
	done   *sync.WaitGroup
	env    *apiserver.Environment
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hostOf is what an agent reports of a host of kubeadm on Debian.
func hostOf(t *testing.T) (*v1alpha1.Inventory, *v1alpha1.NodeSoftware) {
	t.Helper()
	dir := t.TempDir()
	_, err := ordinaryhost.Install(dir, hosttree.Xeon(), ordinaryhost.Debian(), "", "")
	check(t, err)
	opened, err := host.Open(dir)
	check(t, err)
	facts, err := opened.ReadWith(t.Context(), host.Request{Software: true})
	check(t, errors.Join(err, opened.Close()))
	hardware, err := topology.FromFacts(facts)
	check(t, err)
	return topology.Inventory(facts, hardware), installation.Of(facts)
}

func newFleet(t *testing.T, names ...string) *fleet {
	t.Helper()
	scheme, err := controllers.Scheme()
	check(t, err)
	env, err := apiserver.Start(apiserver.Options{Platform: apiserver.Kubernetes})
	check(t, err)
	t.Cleanup(func() { check(t, env.Stop()) })
	f := &fleet{t: t, env: env, machines: map[string]*machine{}, marked: map[string]bool{}}
	f.inventory, f.software = hostOf(t)
	f.client, err = client.New(env.Config(), client.Options{Scheme: scheme})
	check(t, err)
	for _, name := range []string{namespace, controllers.DefaultAgentNamespace} {
		check(t, f.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	check(t, f.client.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: controllers.DefaultAgentNamespace, Name: rollout.Account}}))
	for _, name := range names {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"trading": ""}}}
		check(t, f.client.Create(t.Context(), node))
		f.machines[name] = &machine{name: name}
		f.reboot(f.machines[name])
		f.machines[name].reboots = 0
	}
	f.grant()
	f.start()
	t.Cleanup(f.kill)
	return f
}

// start starts the operator as its command does; kill ends it at whatever it is doing.
func (f *fleet) start() {
	f.t.Helper()
	options := controllers.Options{
		Namespace: namespace, Image: "registry.example/lowlatency-operator:v1", Registerer: prometheus.NewRegistry(), Kind: platform.Kubernetes,
	}
	mgr, err := ctrl.NewManager(asOperator(f.env.Config()), controllers.ManagerOptions(ctrl.Options{
		Scheme: f.client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: new(true)},
	}, options))
	check(f.t, err)
	check(f.t, controllers.Setup(mgr, options))
	ctx, cancel := context.WithCancel(context.Background())
	f.stop, f.done = cancel, &sync.WaitGroup{}
	f.done.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			f.t.Error(err)
		}
	})
}

func (f *fleet) kill() {
	f.stop()
	f.done.Wait()
}

// reboot lets a host come up with another boot.
func (f *fleet) reboot(m *machine) {
	f.t.Helper()
	m.boot++
	m.reboots++
	node := &corev1.Node{}
	check(f.t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := f.client.Get(f.t.Context(), client.ObjectKey{Name: m.name}, node); err != nil {
			return err
		}
		node.Status.NodeInfo.BootID = m.bootID()
		if m.boot == 1 {
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		}
		return f.client.Status().Update(f.t.Context(), node)
	}))
}

func (m *machine) bootID() string { return fmt.Sprintf("%s-%d", m.name, m.boot) }

// live lets all machines go a phase further, and notes how many are cordoned.
func (f *fleet) live() {
	f.t.Helper()
	cordoned := 0
	for _, m := range f.machines {
		node := &corev1.Node{}
		check(f.t, f.client.Get(f.t.Context(), client.ObjectKey{Name: m.name}, node))
		if node.Spec.Unschedulable {
			cordoned++
		}
		f.marked[marksOf(node)] = true
		f.guard(m, node)
		f.agent(m)
		check(f.t, guardedhost.RenewLease(f.t.Context(), f.client, m.name))
	}
	f.most = max(f.most, cordoned)
}

// guard goes a phase further.
func (f *fleet) guard(m *machine, node *corev1.Node) {
	f.t.Helper()
	phase := v1alpha1.EnactmentRemoved
	if m.report != nil {
		phase = m.report.Phase
	}
	set := func(phase v1alpha1.EnactmentPhase) { m.report.Phase, m.report.BootID = phase, m.bootID() }
	switch phase {
	case v1alpha1.EnactmentReceived:
		set(v1alpha1.EnactmentArmed)
	case v1alpha1.EnactmentArmed:
		f.reboot(m)
		if m.opened.Action == instruction.Remove && m.name == "n1" {
			m.report.Differences = []string{foreignChange}
		}
		set(v1alpha1.EnactmentVerifying)
	case v1alpha1.EnactmentVerifying:
		f.settle(m, set)
	default:
		f.take(m, node)
	}
}

// settle ends a trial.
func (f *fleet) settle(m *machine, set func(v1alpha1.EnactmentPhase)) {
	f.t.Helper()
	arguments := strings.Join(operation.Arguments(m.opened.Operations), " ")
	switch {
	case m.opened.Action == instruction.Remove:
		m.report, m.last = nil, 0
	case f.fails != "" && strings.Contains(arguments, f.fails):
		f.reboot(m)
		m.report.Reason, m.report.Message = "NotStarted", "the kernel did not come up with the arguments of the trial"
		set(v1alpha1.EnactmentTakenBack)
	default:
		m.report.InForcePlanHash = m.opened.PlanHash
		set(v1alpha1.EnactmentInForce)
	}
}

// take opens the instruction that the pod of the node has.
func (f *fleet) take(m *machine, node *corev1.Node) {
	f.t.Helper()
	of := client.ObjectKey{Namespace: controllers.DefaultAgentNamespace, Name: "enact-" + m.name}
	pod, configMap := &corev1.Pod{}, &corev1.ConfigMap{}
	if f.client.Get(f.t.Context(), of, pod) != nil || f.client.Get(f.t.Context(), of, configMap) != nil {
		return
	}
	key := ed25519.PublicKey(configMap.BinaryData[rollout.PublicKeyEntry])
	if m.key != nil && !m.key.Equal(key) {
		f.t.Errorf("node %s was handed another key", m.name)
	}
	m.key = key
	opened, err := instruction.Open(key, configMap.BinaryData[rollout.InstructionEntry], string(node.UID), m.last)
	if refused, is := errors.AsType[*instruction.RefusedError](err); is {
		if refused.Reason != instruction.ReasonReplayed {
			f.t.Errorf("node %s refuses its instruction: %v", m.name, err)
		}
		return
	}
	check(f.t, err)
	pod.Status.Phase = corev1.PodRunning
	err = f.client.Status().Update(f.t.Context(), pod)
	if apierrors.IsNotFound(err) {
		// It was removed before it has run.
		return
	}
	check(f.t, err)
	before := v1alpha1.NodeEnactment{}
	if m.report != nil {
		before = *m.report
	}
	m.opened, m.last = opened, opened.Number
	m.report = &v1alpha1.NodeEnactment{
		Phase: v1alpha1.EnactmentReceived, Number: opened.Number, PlanHash: opened.PlanHash, InForcePlanHash: before.InForcePlanHash, BootID: m.bootID(),
	}
	if opened.Reboot == instruction.RebootForbidden {
		m.report.Phase, m.report.Reason = v1alpha1.EnactmentRefused, v1alpha1.ReasonRebootForbidden
		return
	}
	if !node.Spec.Unschedulable {
		f.t.Errorf("node %s may reboot and is not cordoned", m.name)
	}
}

// agent writes the status of the LowLatencyNode, as far as there is one.
func (f *fleet) agent(m *machine) {
	f.t.Helper()
	report := &v1alpha1.LowLatencyNode{}
	if f.client.Get(f.t.Context(), client.ObjectKey{Name: m.name}, report) != nil {
		return
	}
	report.Status = v1alpha1.LowLatencyNodeStatus{
		Inventory: f.inventory, Software: f.software, BootID: m.bootID(), Enactment: m.report, VerifiedPlanHash: report.Spec.PlanHash,
	}
	status := metav1.ConditionFalse
	if m.report != nil && m.report.InForcePlanHash == report.Spec.PlanHash && report.Spec.PlanHash != "" {
		status = metav1.ConditionTrue
	}
	for _, kind := range []string{v1alpha1.ConditionApplied, v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned, v1alpha1.ConditionReady} {
		meta.SetStatusCondition(&report.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: v1alpha1.ReasonVerified, Message: "played"})
	}
	if err := f.client.Status().Update(f.t.Context(), report); client.IgnoreNotFound(err) != nil && !isConflict(err) {
		f.t.Fatal(err)
	}
}

func isConflict(err error) bool {
	return strings.Contains(err.Error(), "the object has been modified") || strings.Contains(err.Error(), "Precondition failed")
}

// until lets the machines live until something is so.
func (f *fleet) until(what string, isSo func() string) {
	f.t.Helper()
	missing := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(pause) {
		f.live()
		if missing = isSo(); missing == "" {
			return
		}
	}
	f.t.Fatalf("%s: %s\n%s", what, missing, f.describe())
}

// describe is what somebody wants to know when it went wrong.
func (f *fleet) describe() string {
	var text strings.Builder
	profiles := &v1alpha1.LowLatencyNodeProfileList{}
	if f.client.List(context.Background(), profiles) == nil {
		for i := range profiles.Items {
			for _, c := range profiles.Items[i].Status.Conditions {
				fmt.Fprintf(&text, "%s %s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
			}
		}
	}
	for _, m := range f.machines {
		fmt.Fprintf(&text, "%s: %+v\n", m.name, m.report)
	}
	reports := &v1alpha1.LowLatencyNodeList{}
	if f.client.List(context.Background(), reports) == nil {
		for i := range reports.Items {
			r := &reports.Items[i]
			fmt.Fprintf(&text, "%s: boot %s, plan %s, verified %s, guard %+v\n", r.Name, r.Status.BootID, r.Spec.PlanHash, r.Status.VerifiedPlanHash, r.Status.Enactment)
			for _, c := range r.Status.Conditions {
				fmt.Fprintf(&text, "  %s %s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
			}
		}
	}
	return text.String()
}

// condition is what a condition of the profile says.
func (f *fleet) condition(kind string) metav1.Condition {
	profile := &v1alpha1.LowLatencyNodeProfile{}
	check(f.t, f.client.Get(f.t.Context(), client.ObjectKey{Name: "trading"}, profile))
	if c := meta.FindStatusCondition(profile.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// settled says what is left of the changes: nothing is cordoned, no Lease, instruction or pod is there, and all have the phase.
func (f *fleet) settled(phase v1alpha1.EnactmentPhase) string {
	for _, name := range []string{"n1", "n2"} {
		m := f.machines[name]
		if m.report == nil && phase != v1alpha1.EnactmentRemoved || m.report != nil && m.report.Phase != phase {
			return fmt.Sprintf("%s is %+v", name, m.report)
		}
	}
	return f.leftovers()
}

func (f *fleet) leftovers() string {
	nodes := &corev1.NodeList{}
	check(f.t, f.client.List(f.t.Context(), nodes))
	for i := range nodes.Items {
		if node := &nodes.Items[i]; node.Spec.Unschedulable || node.Annotations[v1alpha1.AnnotationCordoned] != "" {
			return node.Name + " is cordoned"
		} else if marks := marksOf(node); marks != "" && !strings.HasPrefix(marks, string(corev1.NodeMaintenancePlanned)) {
			return node.Name + " has " + marks
		}
	}
	ours := []client.ListOption{client.InNamespace(controllers.DefaultAgentNamespace), client.MatchingLabels{v1alpha1.LabelComponent: v1alpha1.ComponentEnactment}}
	for _, list := range []client.ObjectList{&coordinationv1.LeaseList{}, &corev1.ConfigMapList{}, &corev1.PodList{}} {
		check(f.t, f.client.List(f.t.Context(), list, ours...))
		if left := meta.LenList(list); left > 0 {
			return fmt.Sprintf("%d objects of %T are left", left, list)
		}
	}
	return ""
}

func (f *fleet) reboots() []int { return []int{f.machines["n1"].reboots, f.machines["n2"].reboots} }

// change changes the profile.
func (f *fleet) change(change func(*v1alpha1.LowLatencyNodeProfileSpec)) {
	f.t.Helper()
	// The operator writes its status meanwhile.
	check(f.t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		profile := &v1alpha1.LowLatencyNodeProfile{}
		if err := f.client.Get(f.t.Context(), client.ObjectKey{Name: "trading"}, profile); err != nil {
			return err
		}
		change(&profile.Spec)
		return f.client.Update(f.t.Context(), profile)
	}))
}

// TestRollout brings a profile to two nodes, changes it, breaks it, corrects it and deletes it, on a real API server with the
// operator's own reconcilers. Guards and agents are played.
func TestRollout(t *testing.T) {
	f := newFleet(t, "n1", "n2")
	profile := objects.MakeProfile("trading").Selecting(v1alpha1.Labels{"trading": ""}).Obj()
	f.enforce("restricted")
	check(t, f.client.Create(t.Context(), profile))
	f.notAdmitted()

	f.until("the operator is killed once a node is cordoned", func() string {
		if f.most == 0 {
			return "no node is cordoned"
		}
		return ""
	})
	f.kill()
	f.live()
	f.start()
	f.until("both nodes have the plan", func() string { return f.settled(v1alpha1.EnactmentInForce) })
	if got := f.reboots(); !slices.Equal(got, []int{1, 1}) || f.most != 1 {
		t.Errorf("the nodes have rebooted %v times, %d at once at most", got, f.most)
	}

	f.blockedDrain()
	f.seen()
	f.failure()

	check(t, f.client.Delete(t.Context(), profile))
	f.until("the profile has gone", func() string {
		if f.client.Get(t.Context(), client.ObjectKeyFromObject(profile), &v1alpha1.LowLatencyNodeProfile{}) == nil {
			return "it is there"
		}
		return f.settled(v1alpha1.EnactmentRemoved)
	})
	if f.most != 1 {
		t.Errorf("%d nodes were cordoned at once", f.most)
	}
	f.until("an event of the Node outlives its report", f.announced)
	node := &corev1.Node{}
	check(t, f.client.Get(t.Context(), client.ObjectKey{Name: "n1"}, node))
	for key := range node.Labels {
		if strings.Contains(key, v1alpha1.GroupName) {
			t.Errorf("label %s is left", key)
		}
	}
}

// announced says what is wrong with the events about what others have changed: the one that there is to be names it.
func (f *fleet) announced() string {
	all := &eventsv1.EventList{}
	check(f.t, f.client.List(f.t.Context(), all))
	var told []string
	for i := range all.Items {
		if e := &all.Items[i]; e.Reason == "HostDiffers" {
			told = append(told, fmt.Sprintf("%s %s %s: %s", e.Regarding.Kind, e.Regarding.Name, e.Type, e.Note))
		}
	}
	if want := []string{"Node n1 Warning: " + foreignChange}; !slices.Equal(told, want) {
		return fmt.Sprintf("the events are %q, want %q", told, want)
	}
	return ""
}

// notAdmitted: no node is touched while the pod that hands instructions over is not admitted, and the profile says so.
func (f *fleet) notAdmitted() {
	f.t.Helper()
	f.until("the profile says that the pod is not admitted", func() string {
		c := f.condition(v1alpha1.ConditionDegraded)
		if c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonPlatformFailed || !strings.Contains(c.Message, "PodSecurity") {
			return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
		}
		return f.leftovers()
	})
	if f.most > 0 {
		f.t.Error("a node was cordoned although nothing can be handed to it")
	}
	f.enforce("privileged")
}

// enforce sets the level of Pod Security in the namespace of the agents.
func (f *fleet) enforce(level string) {
	f.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controllers.DefaultAgentNamespace}}
	text := fmt.Sprintf(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":%q}}}`, level)
	check(f.t, f.client.Patch(f.t.Context(), namespace, client.RawPatch(types.MergePatchType, []byte(text))))
}

// seen: others see what the operator does with nodes, and on each only while it does.
func (f *fleet) seen() {
	f.t.Helper()
	const held = "cluster-autoscaler.kubernetes.io/scale-down-disabled=true, held, karpenter.sh/do-not-disrupt=true, remediation.medik8s.io/exclude-from-remediation=true"
	for _, marks := range []string{
		"MaintenancePlanned LowLatencyPlanWaits",
		"DrainInProgress LowLatencyPodsEvicted, MaintenanceInProgress LowLatencyHostChanges, " + held,
		"Drained LowLatencyNodeEmpty, MaintenanceInProgress LowLatencyHostChanges, " + held,
	} {
		if !f.marked[marks] {
			f.t.Errorf("no node was seen with %s, but with %q", marks, slices.Sorted(maps.Keys(f.marked)))
		}
	}
}

// blockedDrain: a disruption budget is honoured and named, and the node goes on when it allows the eviction.
func (f *fleet) blockedDrain() {
	f.t.Helper()
	labels := map[string]string{"app": "feed"}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "feed", Labels: labels,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "feed", UID: "feed", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "n1", AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{Name: "c", Image: "i"}}, TerminationGracePeriodSeconds: new(int64(0))},
	}
	check(f.t, f.client.Create(f.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}}))
	check(f.t, f.client.Create(f.t.Context(), pod))
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	check(f.t, f.client.Status().Update(f.t.Context(), pod))
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "feed"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}
	check(f.t, f.client.Create(f.t.Context(), budget))
	budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1}
	check(f.t, f.client.Status().Update(f.t.Context(), budget))

	f.change(func(spec *v1alpha1.LowLatencyNodeProfileSpec) {
		spec.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{"audit=0"}
	})
	f.until("the pod that blocks is named", func() string {
		if c := f.condition(v1alpha1.ConditionProgressing); !strings.Contains(c.Message, "default/feed") {
			return c.Message
		}
		return ""
	})
	if got := f.reboots(); !slices.Equal(got, []int{1, 1}) {
		f.t.Errorf("the nodes have rebooted %v times although the pod is there", got)
	}
	check(f.t, f.client.Delete(f.t.Context(), budget))
	f.until("both nodes have the second plan", func() string {
		if got := f.reboots(); !slices.Equal(got, []int{2, 2}) {
			return fmt.Sprint("reboots: ", got)
		}
		return f.settled(v1alpha1.EnactmentInForce)
	})
}

// failure: a plan that does not come up is tried on one node, the profile says so, and a corrected one goes on.
func (f *fleet) failure() {
	f.t.Helper()
	f.fails = "nosuch.option=1"
	f.change(func(spec *v1alpha1.LowLatencyNodeProfileSpec) {
		spec.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{v1alpha1.KernelArgument(f.fails)}
	})
	f.until("the profile is degraded", func() string {
		c := f.condition(v1alpha1.ConditionDegraded)
		if c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonEnactmentFailed || !strings.Contains(c.Message, "node n1") {
			return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
		}
		return f.leftovers()
	})
	if second := f.machines["n2"]; second.reboots != 2 || second.report.Phase != v1alpha1.EnactmentInForce {
		f.t.Errorf("the second node was touched: %+v", second.report)
	}
	f.change(func(spec *v1alpha1.LowLatencyNodeProfileSpec) {
		spec.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{"audit=0"}
	})
	f.until("the corrected profile is in force", func() string {
		if c := f.condition(v1alpha1.ConditionReady); c.Status != metav1.ConditionTrue {
			return c.Message
		}
		return f.leftovers()
	})
}
