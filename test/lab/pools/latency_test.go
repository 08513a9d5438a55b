// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package pools_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

const (
	// longest is an interruption that no machine of the lab has without a neighbour: the host of a busy lab takes a processor away for
	// a second at most.
	longest = 5 * time.Second
	// comparisonLimit bounds a measurement: one that compares starts two pods for each side of each of its repetitions.
	comparisonLimit = time.Hour
	// busyTries is how often a machine may be too busy to be measured, after which it is measured again at once.
	busyTries = 8
	// neighbour is how long the neighbour keeps the CPUs for itself each time, of which an emulated one needs seconds to start, and pause is how
	// long it lets them go in between.
	neighbour, pause = 15 * time.Second, 5 * time.Second
)

// TestLatencyTests shows LatencyTests on the real kubelet of a node whose NICs are not handed out.
func TestLatencyTests(t *testing.T) {
	s := newScene(t)
	if !s.raise(t) {
		return
	}
	// Each step but the first removes its test: whenever the node changes, all that are there are measured again before the next one.
	s.step(t, "LatencyTest: jitter of CPUs that its pod has for itself", s.jitter)
	s.step(t, "LatencyTest: a neighbour turns the verdict, and is named", s.neighbour)
	s.step(t, "LatencyTest: an interrupt is moved to the measured CPU, and is named", s.interrupted)
	s.step(t, "LatencyTest: the node's gate closes for a failure, and opens for a pass", s.closes)
	s.step(t, "LatencyTest: another command line makes the pass stale; measured again, the gate opens", s.otherCommandLine)
	s.step(t, "LatencyTest: messages between pods on two NUMA nodes", s.messages)
	s.step(t, "LatencyTest: messages at two rates", s.rates)
	s.step(t, "LatencyTest: the highest stable load", s.load)
	s.step(t, "LatencyTest: messages as frames of AF_XDP between two NICs", s.frames)
	s.step(t, "LatencyTest: deleted while it measures, it leaves nothing", s.deleted)
	s.step(t, "LatencyTest: a pod beside its host", s.besideHost)
	s.step(t, "LatencyTest: frames of AF_XDP beside the kernel's sockets", s.besideKernel)
	s.step(t, "LatencyTest: no test has made its node fail", s.undisturbed)
	s.step(t, "LatencyTest: another kernel makes the pass stale; measured again, the gate opens", s.otherKernel)
}

// latencyTest is a test of the node, without its kind.
func latencyTest(name string) *v1alpha1.LatencyTest {
	return &v1alpha1.LatencyTest{
		ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: name},
		Spec:       v1alpha1.LatencyTestSpec{Nodes: v1alpha1.LatencyTestNodes{Profile: "lab"}},
	}
}

// outcome waits until the node has a result of a run, and nothing more is to be measured.
func (s *scene) outcome(t *testing.T, test *v1alpha1.LatencyTest, run int32) v1alpha1.LatencyTestResult {
	t.Helper()
	var result v1alpha1.LatencyTestResult
	s.wait(t, fmt.Sprintf("run %d of LatencyTest %s", run, test.Name), func(ctx context.Context) (bool, string) {
		if err := s.api.Get(ctx, client.ObjectKeyFromObject(test), test); err != nil || len(test.Status.Results) != 1 {
			return false, fmt.Sprint(test.Status, err)
		}
		result = test.Status.Results[0]
		seen := fmt.Sprintf("%s %s %s: %s", result.Activity, result.Outcome, result.Reason, result.Message)
		measured := result.Measured != nil && result.Measured.Run == run
		return result.Activity == v1alpha1.LatencyIdle && measured && test.Status.ObservedGeneration == test.Generation, seen
	})
	return result
}

// expect compares a result with what it is to be.
func expect(t *testing.T, result v1alpha1.LatencyTestResult, want v1alpha1.LatencyOutcome) {
	t.Helper()
	if diff := cmp.Diff(want, result.Outcome); diff != "" {
		t.Fatalf("outcome (-want +got):\n%s%s: %s", diff, result.Reason, result.Message)
	}
}

// isolated are the CPUs of a list in the kernel's format, which must be isolated ones.
func (s *scene) isolated(t *testing.T, list string) cpus.Set {
	t.Helper()
	all, err := cpus.Parse(s.run(t, "cat /sys/devices/system/cpu/isolated"))
	must(t, err)
	set, err := cpus.Parse(list)
	must(t, err)
	if set.IsEmpty() || !set.IsSubsetOf(all) {
		t.Errorf("CPUs %s were measured, and %s are isolated", list, all)
	}
	return set
}

// report is what the command line says of a test, and with which code it ends.
func (s *scene) report(t *testing.T, test string) (string, int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(s.built, "kubectl-lowlatency"),
		"test", "report", test, "--namespace", agentNamespace, "--kubeconfig", s.admin)
	out, _ := command.CombinedOutput()
	return string(out), command.ProcessState.ExitCode()
}

// passed expects that a node passed, and that the report of the command line says so.
func (s *scene) passed(t *testing.T, test *v1alpha1.LatencyTest, result v1alpha1.LatencyTestResult) {
	t.Helper()
	expect(t, result, v1alpha1.LatencyPassed)
	if text, code := s.report(t, test.Name); code != 0 || !strings.Contains(text, string(v1alpha1.LatencyPassed)) {
		t.Errorf("the report ends with %d:\n%s", code, text)
	}
}

func (s *scene) jitter(t *testing.T) string {
	test := latencyTest("quiet")
	test.Spec.Kind, test.Spec.DurationSeconds, test.Spec.Repetitions = v1alpha1.LatencyTestJitter, 10, 2
	test.Spec.Budget = &v1alpha1.LatencyBudget{MaximumNanoseconds: longest.Nanoseconds()}
	s.kubectlApply(t, test)
	result := s.outcome(t, test, 0)
	s.passed(t, test, result)
	measured := result.Measured
	s.isolated(t, measured.CPUs)
	if kernel := s.run(t, "uname -r"); measured.Fingerprint.Kernel != kernel || len(measured.RepetitionMaximumsNanoseconds) != 2 {
		t.Errorf("%d repetitions with kernel %s, want 2 with %s", len(measured.RepetitionMaximumsNanoseconds), measured.Fingerprint.Kernel, kernel)
	}
	return fmt.Sprintf("Passed: CPU %s, %d interruptions, longest %s", measured.CPUs, measured.Interruptions, time.Duration(measured.MaximumNanoseconds))
}

// hog waits on the machine for a process that measures, and then keeps each of its CPUs for itself, with real-time priority, again and again until
// that process has ended: the first time may be over before it measures, for the hog keeps it from starting, and in the pauses it comes on. The
// API server would tell too late: under emulation it hears of a pod's start when much of a measurement is over. A hog looks at the clock itself:
// its time begins when it has the CPU, however long it takes to come there. It asks the kernel for nothing meanwhile: a kernel with PREEMPT_RT sleeps where
// it waits for a spinlock, and would give the CPU to the probe. Which CPUs are those of the pod says its control group: the process
// has divided them among its threads. Since Linux 6.12 the fair server (kernel/sched/deadline.c) gives ordinary threads 50 ms of each second
// besides, for which no interruption would be long.
const hog = `until pid=$(pgrep -o -f '[p]robe latencytest'); do sleep 0.2; done
cat /sys/fs/cgroup$(cut -d: -f3 /proc/$pid/cgroup)/cpuset.cpus.effective >/run/neighbour
mask=$(taskset -c $(cat /run/neighbour) awk '/^Cpus_allowed:/ {print $2}' /proc/self/status)
own=$(for cpu in $(seq 0 7); do [ $((0x$mask >> cpu & 1)) = 0 ] || echo $cpu; done)
for cpu in $own; do
  fair=/sys/kernel/debug/sched/fair_server/cpu$cpu/runtime
  [ ! -e $fair ] || { cat $fair >/run/fair-$cpu; echo 0 >$fair; }
done
while [ -d /proc/$pid ]; do
  for cpu in $own; do chrt -f 50 taskset -c $cpu perl -e '$end = time + %.0f; 1 while time < $end' & done
  wait
  sleep %.0f
done
for cpu in $own; do
  [ ! -e /run/fair-$cpu ] || cat /run/fair-$cpu >/sys/kernel/debug/sched/fair_server/cpu$cpu/runtime
done
`

// neighbour lets a real-time program take the CPUs of the measuring pod away.
func (s *scene) neighbour(t *testing.T) string {
	result, own := s.besideNeighbour(t, 1)
	if result.Reason != v1alpha1.TestMaximumExceeded || len(result.Measured.Causes) == 0 {
		t.Errorf("%s without a cause: %s", result.Reason, result.Message)
	}
	if text, code := s.report(t, "quiet"); code != 1 {
		t.Errorf("the report ends with %d:\n%s", code, text)
	}
	return fmt.Sprintf("Failed on CPU %s: %s", own, result.Message)
}

// besideNeighbour measures jitter again beside the neighbour, which has ended when it returns, and expects that the node fails. It returns the CPUs, too. Nothing is
// measured when it begins: the neighbour would wait for the end of that.
func (s *scene) besideNeighbour(t *testing.T, run int32) (v1alpha1.LatencyTestResult, cpus.Set) {
	t.Helper()
	s.wait(t, "nothing more to be measured by LatencyTest quiet", func(ctx context.Context) (bool, string) {
		quiet := latencyTest("quiet")
		if err := s.api.Get(ctx, client.ObjectKeyFromObject(quiet), quiet); err != nil || len(quiet.Status.Results) != 1 {
			return false, fmt.Sprint(quiet.Status, err)
		}
		result := &quiet.Status.Results[0]
		return result.Activity == v1alpha1.LatencyIdle && result.Freshness == v1alpha1.LatencyFresh, fmt.Sprint(result.Activity, " ", result.Freshness)
	})
	must(t, s.machine.WriteFile(t.Context(), "/run/hog", fmt.Sprintf(hog, neighbour.Seconds(), pause.Seconds()), 0o600))
	s.run(t, "rm -f /run/neighbour; systemd-run --quiet --unit=neighbour sh /run/hog")
	test := latencyTest("quiet")
	must(t, s.api.Patch(t.Context(), test, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"spec":{"run":%d,"durationSeconds":60,"repetitions":1}}`, run))))
	result := s.outcome(t, test, run)
	own := s.isolated(t, s.run(t, "cat /run/neighbour"))
	expect(t, result, v1alpha1.LatencyFailed)
	s.run(t, "until ! systemctl is-active --quiet neighbour; do sleep 1; done")
	return result, own
}

// messages measures between two pods of the node. Each asks for two CPUs, and a NUMA node has three for pods. Both ends sleep while they wait:
// two emulated processors that spin take the host from each other.
func (s *scene) messages(t *testing.T) string {
	test := latencyTest("way")
	test.Spec.Kind, test.Spec.DurationSeconds = v1alpha1.LatencyTestPingPong, 20
	test.Spec.Traffic = &v1alpha1.TestTraffic{Transport: v1alpha1.TransportUDP, Waiting: v1alpha1.WaitingBlock, Server: v1alpha1.TestServer{Placement: v1alpha1.ServerOnSameNode}}
	test.Spec.PingPong = &v1alpha1.PingPongTest{Sizes: []int32{64, 1472}}
	test.Spec.Budget = &v1alpha1.LatencyBudget{MaximumNanoseconds: longest.Nanoseconds(), Path: v1alpha1.LatencyPathKernel}
	places := s.watchPlaces(t)
	s.kubectlApply(t, test)
	defer s.remove(t, test)
	result, tries := s.whenQuiet(t, test)
	s.passed(t, test, result)
	client, seen := s.isolated(t, result.Measured.CPUs), places(t)
	network := result.Measured.Network
	if network == nil || network.Path != v1alpha1.LatencyPathKernel || len(network.Sizes) != 2 {
		t.Fatalf("over the network: %+v", network)
	}
	return fmt.Sprintf("Passed: client on CPU %s, pods on %s, %s, %d messages of 64 bytes, P50 %s; Inconclusive before, the machine was busy: %d times", client,
		seen, network.Path, network.Sizes[0].Samples, time.Duration(network.Sizes[0].Percentiles[0].Nanoseconds), tries)
}

// rates lets messages leave on a schedule between two pods of the node, as few as an emulated processor manages.
func (s *scene) rates(t *testing.T) string {
	test := latencyTest("way-at-rates")
	test.Spec.Kind, test.Spec.DurationSeconds = v1alpha1.LatencyTestRateSweep, 60
	test.Spec.Traffic = &v1alpha1.TestTraffic{Transport: v1alpha1.TransportUDP, Waiting: v1alpha1.WaitingBlock, Server: v1alpha1.TestServer{Placement: v1alpha1.ServerOnSameNode}}
	test.Spec.RateSweep = &v1alpha1.RateSweepTest{MessagesPerSecond: []int32{20, 50}, AnswersPerRate: 1000}
	test.Spec.Budget = &v1alpha1.LatencyBudget{MaximumNanoseconds: longest.Nanoseconds(), Path: v1alpha1.LatencyPathKernel}
	s.kubectlApply(t, test)
	defer s.remove(t, test)
	result, tries := s.whenQuiet(t, test)
	s.passed(t, test, result)
	network := result.Measured.Network
	if network == nil || len(network.Rates) != 2 {
		t.Fatalf("over the network: %+v", network)
	}
	last := network.Rates[1]
	return fmt.Sprintf("Passed: %d of %d messages lost at %d a second, %d late; Inconclusive before, the machine was busy: %d times",
		last.Lost, last.Sent, last.MessagesPerSecond, last.Late, tries)
}

// whenQuiet measures until the machine is not too busy to measure, as it is when its host takes processors away. It returns how often it was.
func (s *scene) whenQuiet(t *testing.T, test *v1alpha1.LatencyTest) (result v1alpha1.LatencyTestResult, tries int32) {
	t.Helper()
	for ; ; tries++ {
		s.waitFor(t, comparisonLimit, fmt.Sprintf("run %d of LatencyTest %s", tries, test.Name), func(ctx context.Context) (bool, string) {
			if err := s.api.Get(ctx, client.ObjectKeyFromObject(test), test); err != nil || len(test.Status.Results) != 1 {
				return false, fmt.Sprint(test.Status, err)
			}
			result = test.Status.Results[0]
			isTried := result.Attempts > 0 || result.Measured != nil && result.Measured.Run == tries
			return result.Activity == v1alpha1.LatencyIdle && isTried && test.Status.ObservedGeneration == test.Generation,
				fmt.Sprintf("%s %s %s: %s", result.Activity, result.Outcome, result.Reason, result.Message)
		})
		if result.Outcome != v1alpha1.LatencyInconclusive || result.Reason != v1alpha1.TestMachineBusy || tries == busyTries {
			return result, tries
		}
		must(t, s.api.Patch(t.Context(), test, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"run":%d}}`, tries+1))))
	}
}

// gate waits until the node says this of its readiness, for one of the reasons where there are any, and has the taint of the gate or not. It returns what the
// node says.
func (s *scene) gate(t *testing.T, status corev1.ConditionStatus, reasons ...string) string {
	t.Helper()
	said := ""
	s.wait(t, fmt.Sprintf("%s of the node to be %s, %s", v1alpha1.NodeConditionReady, status, strings.Join(reasons, " or ")), func(ctx context.Context) (bool, string) {
		node := &corev1.Node{}
		if err := s.api.Get(ctx, client.ObjectKey{Name: nodeName}, node); err != nil {
			return false, err.Error()
		}
		tainted := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == v1alpha1.TaintUnverified })
		for _, c := range node.Status.Conditions {
			if c.Type == v1alpha1.NodeConditionReady {
				said = fmt.Sprintf("%s %s, tainted %t: %s", c.Status, c.Reason, tainted, c.Message)
				return c.Status == status && (len(reasons) == 0 || slices.Contains(reasons, c.Reason)) && tainted == (status != corev1.ConditionTrue), said
			}
		}
		return false, "no condition yet"
	})
	return said
}

// closes lets the profile ask for the test of jitter. Its pass is stale then, since the taint of the gate is part of the plan, so that the node is measured first.
// Then it fails beside the neighbour, and is measured once more without.
func (s *scene) closes(t *testing.T) string {
	s.gate(t, corev1.ConditionTrue)
	must(t, s.api.Patch(t.Context(), readProfile(t), client.RawPatch("application/merge-patch+json", fmt.Appendf(nil,
		`{"spec":{"verification":{"gate":"Taint","qualification":{"tests":[{"namespace":%q,"name":"quiet"}]}}}}`, agentNamespace))))
	// Either the agent has not verified the new plan yet, or the node has not been measured: which of the two is over first is open.
	waits := s.gate(t, corev1.ConditionUnknown)
	first := s.gate(t, corev1.ConditionTrue)
	s.besideNeighbour(t, 2)
	closed := s.gate(t, corev1.ConditionFalse, v1alpha1.ReasonQualificationFailed)
	test := latencyTest("quiet")
	must(t, s.api.Patch(t.Context(), test, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"run":3}}`))))
	expect(t, s.outcome(t, test, 3), v1alpha1.LatencyPassed)
	return waits + "; then " + first + "; then " + closed + "; then " + s.gate(t, corev1.ConditionTrue)
}

// agentLook is longer than the agent takes to look at the counters again.
const agentLook = 45 * time.Second

// undisturbed expects that the node has not failed since it was booted last, and that its gate is open: tests have run on it, and what they do on CPUs of their own is
// no fault of the node.
func (s *scene) undisturbed(t *testing.T) string {
	time.Sleep(agentLook)
	node := &v1alpha1.LowLatencyNode{}
	must(t, s.api.Get(t.Context(), client.ObjectKey{Name: nodeName}, node))
	boot, failures := s.run(t, "cat /proc/sys/kernel/random/boot_id"), 0
	for i := range node.Status.Transitions {
		if one := &node.Status.Transitions[i]; one.BootID == boot && one.To == metav1.ConditionFalse {
			failures++
			t.Errorf("at %s %s became False: %s", one.Time.Format(time.TimeOnly), one.Condition, one.Message)
		}
	}
	return fmt.Sprintf("of %d transitions that are recorded, %d are to a failure since the boot; %s", len(node.Status.Transitions), failures, s.gate(t, corev1.ConditionTrue))
}

// changedWord is a word of the command line that the kernel does not know.
const changedWord = "lab.changed=1"

// otherCommandLine boots the node with a word more on its command line.
func (s *scene) otherCommandLine(t *testing.T) string {
	before := s.reboots(t, lab.Boot{Kernel: kernel, Arguments: append(slices.Clone(s.arguments), changedWord)})
	after, seen := s.stale(t)
	if after.CommandLineHash == before.CommandLineHash || after.Kernel != before.Kernel {
		t.Errorf("the gate opened for a measurement of %+v, and before the reboot the node was %+v", after, before)
	}
	return seen
}

// otherKernel boots the node with the same command line and an older kernel with PREEMPT_RT, which lets nobody
// map sockets of AF_XDP that others made: their pools go first.
func (s *scene) otherKernel(t *testing.T) string {
	for _, name := range []string{"sockets", "far-sockets"} {
		s.remove(t, &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	s.keepsServices(t)
	before := s.reboots(t, lab.Boot{Kernel: lab.RealTime, Arguments: append(slices.Clone(s.arguments), changedWord)})
	after, seen := s.stale(t)
	if release := s.run(t, "uname -r"); after.Kernel == before.Kernel || after.Kernel != release {
		t.Errorf("the gate opened for a measurement of kernel %s, and the node runs %s, before the reboot %s", after.Kernel, release, before.Kernel)
	}
	return seen
}

// reboots boots the node otherwise, and returns the fingerprint of what was measured before.
func (s *scene) reboots(t *testing.T, boot lab.Boot) v1alpha1.LatencyFingerprint {
	t.Helper()
	before := s.fingerprint(t)
	s.forgetsAtBoot(t)
	must(t, s.machine.Reboot(s.ctx, boot))
	return before
}

// stale waits until the gate of the node has closed and opened, and returns the fingerprint of what was measured.
func (s *scene) stale(t *testing.T) (after v1alpha1.LatencyFingerprint, seen string) {
	t.Helper()
	closed := s.gate(t, corev1.ConditionUnknown, v1alpha1.ReasonQualificationStale, v1alpha1.ReasonAwaitingQualification)
	open := s.gate(t, corev1.ConditionTrue)
	return s.fingerprint(t), closed + "; then " + open
}

// fingerprint is that of the node when the test of jitter was measured last.
func (s *scene) fingerprint(t *testing.T) v1alpha1.LatencyFingerprint {
	t.Helper()
	test := latencyTest("quiet")
	must(t, s.api.Get(t.Context(), client.ObjectKeyFromObject(test), test))
	return test.Status.Results[0].Measured.Fingerprint
}

// forgetsAtBoot lets the kubelet forget at each boot which CPUs and how much memory it has given to pods, as that of OpenShift does and as plans bring it to
// ordinary hosts. It does not start where that differs from the host, as with a kernel of another size, or where it was stopped while it took CPUs back.
func (s *scene) forgetsAtBoot(t *testing.T) {
	t.Helper()
	const lines = "r! /var/lib/kubelet/cpu_manager_state\nr! /var/lib/kubelet/memory_manager_state\n"
	must(t, s.machine.WriteFile(t.Context(), "/etc/tmpfiles.d/lab-kubelet.conf", lines, 0o644))
}

// keepsServices gives the control groups of process 1 and of services the housekeeping CPUs at each boot. A kernel before 6.2 forgets systemd.cpu_affinity= when the
// kubelet turns cpusets on; a plan for an ordinary host brings this unit (internal/platform/kubernetes, writeAffinity), which is not among the files here.
func (s *scene) keepsServices(t *testing.T) {
	t.Helper()
	var unit strings.Builder
	unit.WriteString("[Unit]\nBefore=kubelet.service\n\n[Service]\nType=oneshot\nRemainAfterExit=true\n")
	for _, group := range []string{"system.slice", "user.slice", "init.scope"} {
		fmt.Fprintf(&unit, "ExecStart=/usr/bin/systemctl set-property --runtime %s AllowedCPUs=%s\n", group, s.housekeeping)
	}
	unit.WriteString("\n[Install]\nWantedBy=multi-user.target\n")
	must(t, s.machine.Configure(t.Context(), lab.Configuration{
		Units: []lab.Unit{{Name: "lowlatency-cpu-affinity.service", Content: unit.String(), Enabled: true}},
	}))
}

// deleted deletes a test while both of its pods run, and looks for what is left of it: in the cluster, and of its programs on the node.
func (s *scene) deleted(t *testing.T) string {
	test := onSameNode("deleted", v1alpha1.LatencyTestPingPong)
	test.Spec.DurationSeconds = 600
	s.kubectlApply(t, test)
	pods, jobs := &corev1.PodList{}, &batchv1.JobList{}
	ofTest := client.MatchingLabels{v1alpha1.LabelLatencyTest: test.Name}
	s.wait(t, "both pods of the test to run", func(ctx context.Context) (bool, string) {
		err := s.api.List(ctx, pods, client.InNamespace(agentNamespace), ofTest)
		running := 0
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				running++
			}
		}
		return running == 2, fmt.Sprintf("%d pods, %d run: %v", len(pods.Items), running, err)
	})
	must(t, s.api.Delete(t.Context(), test))
	s.wait(t, "nothing to be left of the test", func(ctx context.Context) (bool, string) {
		podsErr := s.api.List(ctx, pods, client.InNamespace(agentNamespace), ofTest)
		jobsErr := s.api.List(ctx, jobs, client.InNamespace(agentNamespace), ofTest)
		err := s.api.Get(ctx, client.ObjectKeyFromObject(test), test)
		return apierrors.IsNotFound(err) && podsErr == nil && jobsErr == nil && len(pods.Items)+len(jobs.Items) == 0,
			fmt.Sprintf("%d pods, %d Jobs; the test: %v", len(pods.Items), len(jobs.Items), err)
	})
	if left := s.run(t, "pgrep -fa '[l]atencytest|[l]owlatency-traffic' || true"); left != "" {
		t.Errorf("on the node this still runs:\n%s", left)
	}
	return "neither the test nor its 2 Jobs and 2 pods are there, and none of their programs runs on the node"
}
