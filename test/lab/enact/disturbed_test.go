// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package enact

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
)

// disturbance is something that happens to the fleet once, as soon as a machine is in a state.
type disturbance struct {
	what string
	when func(machineState) bool
	do   func(h *host)
}

// disturb does what is due.
func (f *fleet) disturb(states map[string]machineState) {
	f.t.Helper()
	for _, h := range f.hosts {
		for i, d := range f.disturbances {
			if d.do == nil || !d.when(states[h.machine.Name()]) {
				continue
			}
			f.disturbances[i].do = nil
			d.do(h)
			f.row(h.machine.Name(), d.what)
		}
	}
}

// duringTurn are what happens while a node has its turn: the operator is killed at each stage, and the API server is away
// while the node reboots. The last one is due in the turn when the guard says end; "" for a guard that has left, and with it what agents say of it.
func (f *fleet) duringTurn(end v1alpha1.EnactmentPhase) []disturbance {
	phase := func(phase v1alpha1.EnactmentPhase) func(machineState) bool {
		return func(s machineState) bool { return s.turn && s.phase == string(phase) }
	}
	return []disturbance{
		{"the operator is killed: cordoned", func(s machineState) bool { return s.cordoned && s.pod == "" }, f.killOperator},
		{"the operator is killed: the instruction is there", func(s machineState) bool { return s.pod != "" }, f.killOperator},
		{"the API server was away while the machine rebooted", func(s machineState) bool { return s.pod == corev1.PodRunning }, f.serverAway},
		{"the operator is killed: on trial", phase(v1alpha1.EnactmentVerifying), f.killOperator},
		{"the operator is killed: before the cordon is taken back", func(s machineState) bool { return phase(end)(s) && s.cordoned }, f.killOperator},
	}
}

// expectDisturbed asserts that each disturbance has come to pass, and forgets them.
func (f *fleet) expectDisturbed() {
	f.t.Helper()
	for _, d := range f.disturbances {
		if d.do != nil {
			f.t.Errorf("not disturbed: %s", d.what)
		}
	}
	f.disturbances = nil
}

// execute runs a command on a machine that may have rebooted since the last.
func (f *fleet) execute(h *host, command string) string {
	f.t.Helper()
	result, err := h.machine.Execute(f.t.Context(), command)
	if err != nil {
		ctx, cancel := context.WithTimeout(f.t.Context(), 10*time.Minute)
		defer cancel()
		f.must(h.machine.WaitReboot(ctx, "none"))
		result, err = h.machine.Execute(f.t.Context(), command)
		f.must(err)
	}
	return strings.TrimSpace(result.Stdout)
}

// killOperator kills the managers of a machine, which its kubelet starts again: after some failures, only when five minutes are over.
func (f *fleet) killOperator(h *host) {
	f.t.Helper()
	killed := f.execute(h, `for i in $(seq 420); do p=$(pgrep -f '[m]anager --leader-elect') && kill -9 $p && echo $p && break; sleep 1; done`)
	if killed == "" {
		f.t.Errorf("%s: no operator was there to be killed", h.machine.Name())
	}
}

// serverAway kills the API server when the machine begins to reboot, and starts it again when that has rebooted and its kubelet has been
// started without it.
func (f *fleet) serverAway(h *host) {
	f.t.Helper()
	// Asked by the shell, a machine that reboots at this moment would tell its next boot.
	boot := f.seen[h.machine.Name()].bootID
	f.wait("the machine to reboot", func() (bool, string) {
		result, err := h.machine.Execute(f.t.Context(), "systemctl is-system-running")
		return err != nil || strings.Contains(result.Stdout, "stopping"), result.Stdout
	})
	f.must(f.cluster.Outage(f.ctx, func() error {
		if err := h.machine.WaitReboot(f.t.Context(), boot); err != nil {
			return err
		}
		_, err := h.machine.Run(f.t.Context(), `for i in $(seq 120); do systemctl is-active kubelet && exit; sleep 1; done; exit 1`)
		return err
	}))
}

// said waits until a condition of a profile says something that contains all the words, while no machine changes otherwise than it may.
func (f *fleet) said(profile string, words ...string) {
	f.t.Helper()
	f.follow(fmt.Sprintf("profile %s to say %q", profile, words), func(map[string]machineState) bool {
		found := &v1alpha1.LowLatencyNodeProfile{}
		if f.api.Get(f.t.Context(), client.ObjectKey{Name: profile}, found) != nil {
			return false
		}
		for i := range found.Status.Conditions {
			text := found.Status.Conditions[i].Reason + ": " + found.Status.Conditions[i].Message
			if containsAll(text, words) {
				f.row("all", "profile "+profile+" says: "+text)
				return true
			}
		}
		return false
	})
}

func containsAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// edit changes the profile.
func (f *fleet) edit(change func(*v1alpha1.LowLatencyNodeProfileSpec)) {
	f.t.Helper()
	f.wait("the profile to be changed", func() (bool, string) {
		profile := &v1alpha1.LowLatencyNodeProfile{}
		err := f.api.Get(f.t.Context(), client.ObjectKey{Name: "lab"}, profile)
		if err == nil {
			change(&profile.Spec)
			err = f.api.Update(f.t.Context(), profile)
		}
		return err == nil, fmt.Sprint(err)
	})
}

// inForce waits until the profile as it is now is in force on all machines.
func (f *fleet) inForce() {
	f.t.Helper()
	f.follow("the plan to be in force on all machines", func(states map[string]machineState) bool {
		profile := &v1alpha1.LowLatencyNodeProfile{}
		err := f.api.Get(f.t.Context(), client.ObjectKey{Name: "lab"}, profile)
		if err != nil || profile.Status.ObservedGeneration != profile.Generation || len(profile.Status.Shapes) != 1 {
			return false
		}
		return f.all(func(s machineState) bool { return isWithPlan(s) && s.plan == profile.Status.Shapes[0].Hash })(states)
	})
}

// rest looks for some time, in which no machine may begin to change.
func (f *fleet) rest(long time.Duration) {
	f.t.Helper()
	end := time.Now().Add(long)
	f.follow("nothing", func(states map[string]machineState) bool {
		for name, state := range states {
			if state.isChanged() {
				f.t.Errorf("%s is being changed: %s", name, state)
			}
		}
		return time.Now().After(end)
	})
}

// expectCounts asserts what has happened to the only machine since the last time.
func (f *fleet) expectCounts(want counts) {
	f.t.Helper()
	name := f.hosts[0].machine.Name()
	if diff := cmp.Diff(want, f.counted[name], cmp.AllowUnexported(counts{})); diff != "" {
		f.t.Errorf("%s (-want +got):\n%s", name, diff)
	}
	f.row(name, fmt.Sprintf("reboots %d, cordons %d, taints %d", f.counted[name].reboots, f.counted[name].cordons, f.counted[name].taints))
	f.counted[name] = counts{}
}

// kured is the lock of kured, held or free, under a name and in a namespace of the cluster's owner. No pod of it runs.
func (f *fleet) kured(lock string) {
	f.t.Helper()
	labels := map[string]string{"app": "kured"}
	f.apply(&appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "reboots", Annotations: map[string]string{"weave.works/kured-node-lock": lock}},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				NodeSelector: map[string]string{"nowhere": ""}, Containers: []corev1.Container{{Name: "main", Image: workloadImage}},
			}},
		},
	})
}

// apply makes an object, or puts it in the place of the one that is there.
func (f *fleet) apply(object client.Object) {
	f.t.Helper()
	there, isObject := object.DeepCopyObject().(client.Object)
	if isObject && f.api.Get(f.t.Context(), client.ObjectKeyFromObject(object), there) == nil {
		object.SetResourceVersion(there.GetResourceVersion())
		f.must(f.api.Update(f.t.Context(), object))
		return
	}
	f.create(object)
}

// steady is a pod that no eviction takes away.
func (f *fleet) steady() {
	f.t.Helper()
	labels := map[string]string{"app": "steady"}
	f.create(&appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "steady"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: new(int64(5)), AutomountServiceAccountToken: new(false),
				Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				Containers:  []corev1.Container{{Name: "main", Image: workloadImage, Args: []string{"-hugepages=0"}}},
			}},
		},
	})
	f.wait("the steady pod to run", func() (bool, string) {
		running := f.steadyContainer()
		return running != "", running
	})
}

// steadyContainer identifies its running container; "" for none.
func (f *fleet) steadyContainer() string {
	var pods corev1.PodList
	err := f.api.List(f.t.Context(), &pods, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{"app": "steady"})
	if err != nil || len(pods.Items) != 1 || len(pods.Items[0].Status.ContainerStatuses) != 1 || pods.Items[0].Status.ContainerStatuses[0].State.Running == nil {
		return ""
	}
	status := &pods.Items[0].Status.ContainerStatuses[0]
	return fmt.Sprintf("%s, started %d times again", status.ContainerID, status.RestartCount)
}

// TestDisturbed brings a profile to one machine while everything gets in the way that may: it takes longer, and nothing else is
// different. Then it changes the profile in ways that need no reboot, one of which the kubelet refuses, and takes it back.
func TestDisturbed(t *testing.T) {
	f := newFleet(t, "worker-0")
	h := f.hosts[0]
	f.workload()
	f.steady()
	before, line := h.manifest(), h.run("cat /proc/cmdline")
	budget := f.budget()
	f.kured(`{"nodeID": "worker-9", "created": "2026-01-01T00:00:00Z", "TTL": 0}`)
	f.rest(time.Second)

	profile := f.profile()
	f.prove("a lock of kured: named, and nothing begins", func() {
		f.create(profile)
		f.said("lab", "kured holds its lock for node worker-9")
		f.rest(40 * time.Second)
	})
	f.prove("a disruption budget blocks: the pod is named, and the operator is killed meanwhile", func() {
		f.kured("")
		f.said("lab", "default/workload", "disruption budget")
		f.killOperator(h)
		f.said("lab", "default/workload", "disruption budget")
		f.must(f.api.Delete(f.t.Context(), budget))
		f.row("all", "the budget is deleted")
	})
	f.prove("enacted with the operator killed at each stage and the API server away during the reboot", func() {
		f.disturbances = f.duringTurn(v1alpha1.EnactmentInForce)
		f.inForce()
		f.reconnect()
		f.expectPlan(h, planned())
		f.expectCounts(counts{reboots: 1, cordons: 1, taints: 1})
		f.expectDisturbed()
	})
	f.prove("a second profile for the same node: named, and nothing happens to the node", func() { f.secondProfile() })
	f.prove("a kubelet configuration that the kubelet refuses: put back in two minutes, without a reboot, pods run on", func() { f.refusedKubelet(h) })
	f.prove("a sysctl alone: no reboot, no cordon, no other start of the kubelet", func() { f.liveChange(h) })
	f.prove("hugepages: no reboot, and the memory manager counts them", func() { f.moreHugepages(h) })
	f.prove("given back with the operator killed at each stage and the API server away during the reboot; as before", func() {
		f.disturbances = f.duringTurn("")
		f.must(f.api.Delete(f.t.Context(), profile))
		f.gone(profile)
		f.reconnect()
		f.expectBack(h, before, line)
		// Between its reboot and the first look of its agent nobody knows what the node has.
		f.expectCounts(counts{reboots: 1, cordons: 1, taints: min(f.counted[h.machine.Name()].taints, 1)})
		f.expectDisturbed()
		f.workloadRuns()
	})
}

// budget forbids that the workload goes.
func (f *fleet) budget() *policyv1.PodDisruptionBudget {
	f.t.Helper()
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "workload"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "workload"}},
		},
	}
	f.create(budget)
	return budget
}

func (f *fleet) secondProfile() {
	second := f.profile()
	second.Name = "second"
	f.create(second)
	f.said("second", v1alpha1.ReasonProfilesOverlap, "worker-0")
	f.rest(40 * time.Second)
	f.must(f.api.Delete(f.t.Context(), second))
	f.wait("the second profile to be gone", func() (bool, string) {
		err := f.api.Get(f.t.Context(), client.ObjectKeyFromObject(second), second)
		return err != nil && client.IgnoreNotFound(err) == nil, fmt.Sprint(err)
	})
	f.rest(20 * time.Second)
	f.expectCounts(counts{})
}

// refusedKubelet gives the kubelet a value that only the kubelet itself knows to be wrong.
func (f *fleet) refusedKubelet(h *host) {
	steady, since := f.steadyContainer(), h.run("date +%s")
	f.edit(func(spec *v1alpha1.LowLatencyNodeProfileSpec) {
		spec.Kubelet.AdditionalConfiguration = "registryPullQPS: -1\n"
	})
	f.said("lab", v1alpha1.ReasonEnactmentFailed, string(instruction.ReasonKubeletUnhealthy))
	f.follow("the machine to be available", f.all(func(s machineState) bool { return !s.isOut() }))
	starts := strings.Fields(h.run(`journalctl -u 'lowlatency-guard*' -o short-unix --since @` + since + ` | awk '/The kubelet is started again/ {print int($1)}'`))
	if len(starts) != 2 {
		f.t.Fatalf("the kubelet was started at %v, want with the new and with the old configuration", starts)
	}
	f.row(h.machine.Name(), "the kubelet was started with what it refuses and with what it had at "+strings.Join(starts, " and "))
	if took := integer(f.t, starts[1]) - integer(f.t, starts[0]); took > 130 {
		f.t.Errorf("put back after %d s, want two minutes at most", took)
	}
	if now := f.steadyContainer(); now != steady || steady == "" {
		f.t.Errorf("the pod that stays was %q, and is %q", steady, now)
	}
	f.expectPlan(h, planned())
	f.expectCounts(counts{cordons: 1})
}

// liveChange has the correction of the profile change a parameter of the running kernel besides.
func (f *fleet) liveChange(h *host) {
	steady, kubelet := f.steadyContainer(), h.run("systemctl show -P InvocationID kubelet")
	f.edit(func(spec *v1alpha1.LowLatencyNodeProfileSpec) {
		spec.Kubelet.AdditionalConfiguration = ""
		spec.System.KernelParameters = []v1alpha1.KernelParameter{{Name: "fs.inotify.max_user_instances", Value: "777"}}
	})
	f.inForce()
	if value := h.run("cat /proc/sys/fs/inotify/max_user_instances"); value != "777" {
		f.t.Errorf("fs.inotify.max_user_instances is %q", value)
	}
	if now := h.run("systemctl show -P InvocationID kubelet"); now != kubelet {
		f.t.Error("the kubelet was started again")
	}
	if now := f.steadyContainer(); now != steady {
		f.t.Errorf("the pod that stays was %q, and is %q", steady, now)
	}
	f.expectPlan(h, planned())
	f.expectCounts(counts{})
}

func (f *fleet) moreHugepages(h *host) {
	steady := f.steadyContainer()
	f.edit(func(spec *v1alpha1.LowLatencyNodeProfileSpec) { spec.Memory.Hugepages[0].Count = 24 })
	f.inForce()
	facts := planned()
	for i := range facts {
		if facts[i].name == "hugepages on NUMA node 0" {
			facts[i].want = "24"
		}
	}
	f.expectPlan(h, facts)
	f.wait("the kubelet to count the hugepages", func() (bool, string) {
		node := &corev1.Node{}
		err := f.api.Get(f.t.Context(), client.ObjectKey{Name: h.machine.Name()}, node)
		pages := node.Status.Allocatable["hugepages-2Mi"]
		return pages.Value() == (24+32)<<21, fmt.Sprint(err, pages.String())
	})
	state := h.run(`grep -o '"hugepages-2Mi":{[^}]*}' /var/lib/kubelet/memory_manager_state | tr '\n' ' '`)
	if !strings.Contains(state, fmt.Sprintf(`"total":%d,`, 24<<21)) {
		f.t.Errorf("the memory manager remembers %s", state)
	}
	if now := f.steadyContainer(); now != steady {
		f.t.Errorf("the pod that stays was %q, and is %q", steady, now)
	}
	f.expectCounts(counts{cordons: 1})
}

// integer reads a number.
func integer(t *testing.T, text string) int {
	t.Helper()
	var value int
	if _, err := fmt.Sscan(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}
