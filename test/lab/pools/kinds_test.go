// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package pools_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

const (
	// farNIC is a NIC like socketsNIC on the other NUMA node.
	farNIC = "0000:22:00.0"
	// nearAddress and farAddress are those of frames on the two NICs.
	nearAddress, farAddress = "10.9.1.2/24", "10.9.1.1/24"
	// housekeeper is the CPU of the NUMA node of socketsNIC that is not isolated.
	housekeeper = "4"
	// floodWait is how long the flood has until interrupts are seen to come to the measured CPU.
	floodWait = time.Minute
)

// flood keeps a NIC receiving frames that nobody wants, each of which comes with an interrupt. The kernel's own generator sends them, 200 us
// apart, for a shell sends too few to take much time away. It sleeps in a pause that is longer than 100 us, and spins in a shorter one
// (net/core/pktgen.c, spin), so that nothing else would run where it sends. It stops for good where its interface has no carrier. Its module has a thread on each
// CPU, isolated or not, that wakes ten times a second (pktgen_thread_worker), for as long as it is loaded.
const flood = `set -e
ip link set %[1]s up; ip link set %[2]s up
until [ "$(cat /sys/class/net/%[1]s/carrier /sys/class/net/%[2]s/carrier | tr -d '\n')" = 11 ]; do sleep 0.2; done
modprobe pktgen
cd /proc/net/pktgen
echo rem_device_all >kpktgend_0
echo add_device %[1]s >kpktgend_0
for word in "count 0" "delay 200000" "pkt_size 60" "dst 10.9.0.2" "dst_mac $(cat /sys/class/net/%[2]s/address)"; do echo "$word" >%[1]s; done
echo start >pgctrl
`

// interrupted measures the CPU first, and then with the interrupts of a flooded NIC on it. How much time an emulated processor loses anyway is
// known after the first time only, and the budget follows from it.
func (s *scene) interrupted(t *testing.T) string {
	test := latencyTest("interrupted")
	test.Spec.Kind, test.Spec.DurationSeconds, test.Spec.Repetitions = v1alpha1.LatencyTestJitter, 20, 1
	test.Spec.Budget = &v1alpha1.LatencyBudget{StolenPartsPerMillion: 1000000}
	s.kubectlApply(t, test)
	defer s.remove(t, test)
	quiet := s.outcome(t, test, 0)
	expect(t, quiet, v1alpha1.LatencyPassed)
	own := s.isolated(t, quiet.Measured.CPUs)
	from, to := s.interfaceOf(t, sender), s.interfaceOf(t, socketsNIC)
	must(t, s.machine.WriteFile(t.Context(), "/run/flood", fmt.Sprintf(flood, from, to), 0o600))
	s.run(t, "systemd-run --quiet --unit=flood bash /run/flood")
	numbers := strings.Fields(s.run(t, "cd /sys/bus/pci/devices/"+socketsNIC+"/msi_irqs && echo *"))
	// What stays on the CPU would close the gate, and disturb all that is measured later. Interrupts move when they come, and away from a CPU when they may not
	// stay there.
	atRest := func() {
		defer s.run(t, "systemctl stop flood; until modprobe -r pktgen; do sleep 1; done")
		s.moveInterrupts(t, numbers, housekeeper)
	}
	defer func() {
		if t.Failed() {
			atRest()
		}
	}()
	s.moveInterrupts(t, numbers, own.String())
	bound := int64(quiet.Measured.StolenPartsPerMillion)*5/4 + 10000
	must(t, s.api.Patch(t.Context(), test, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"spec":{"run":1,"budget":{"stolenPartsPerMillion":%d}}}`, min(bound, 1000000)))))
	loud := s.outcome(t, test, 1)
	expect(t, loud, v1alpha1.LatencyFailed)
	if causes := strings.Join(loud.Measured.Causes, ", "); loud.Reason != v1alpha1.TestStolenTimeExceeded || !strings.Contains(causes, "virtio") {
		t.Errorf("%s; causes %q do not name the interrupt of the virtio NIC: %s", loud.Reason, causes, loud.Message)
	}
	atRest()
	must(t, s.api.Patch(t.Context(), test, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"run":2}}`))))
	s.passed(t, test, s.outcome(t, test, 2))
	return fmt.Sprintf("CPU %s loses %d parts per million; with it Failed: %s; moved away, Passed", own, quiet.Measured.StolenPartsPerMillion, loud.Message)
}

// moveInterrupts moves interrupts to CPUs, and waits until one of them has been handled there. Some of a NIC move only when they come, and some never come.
func (s *scene) moveInterrupts(t *testing.T, numbers []string, list string) {
	t.Helper()
	s.run(t, fmt.Sprintf(`for irq in %s; do echo %s >/proc/irq/$irq/smp_affinity_list; done
for i in $(seq %.0f); do for irq in %[1]s; do [ "$(cat /proc/irq/$irq/effective_affinity_list)" != %[2]s ] || exit 0; done; sleep 1; done
case %[2]s in *[-,]*) exit 0;; esac; exit 1`, strings.Join(numbers, " "), list, floodWait.Seconds()))
}

// watchPlaces notes on the machine on which CPUs pods of measurements are, until it is asked: the client's are in the status of the test, and those of a
// server on the same node are the kubelet's choice, which nobody else knows.
func (s *scene) watchPlaces(t *testing.T) func(t *testing.T) string {
	t.Helper()
	must(t, s.machine.WriteFile(t.Context(), "/run/places.sh", `while :; do
  for pid in $(pgrep -f '[l]atencytest'); do
    group=$(cut -d: -f3 /proc/$pid/cgroup 2>/dev/null); case $group in *kubepods*) cat /sys/fs/cgroup$group/cpuset.cpus.effective;; esac
  done 2>/dev/null >>/run/places
  sleep 1
done
`, 0o600))
	s.run(t, "rm -f /run/places; systemd-run --quiet --unit=places sh /run/places.sh")
	return func(t *testing.T) string {
		t.Helper()
		s.run(t, "systemctl stop places")
		var nodes []string
		for list := range strings.Lines(s.run(t, "sort -u /run/places")) {
			nodes = append(nodes, s.nodeOf(t, strings.TrimSpace(list)))
		}
		slices.Sort(nodes)
		if nodes = slices.Compact(nodes); len(nodes) != 2 {
			t.Errorf("pods ran on NUMA nodes %s, want two", nodes)
		}
		return "NUMA nodes " + strings.Join(nodes, " and ")
	}
}

// nodeOf is the NUMA node of CPUs, which must have one alone.
func (s *scene) nodeOf(t *testing.T, list string) string {
	t.Helper()
	set := s.isolated(t, list)
	for _, node := range []string{"0", "1"} {
		all, err := cpus.Parse(s.run(t, "cat /sys/devices/system/node/node"+node+"/cpulist"))
		must(t, err)
		if set.IsSubsetOf(all) {
			return node
		}
	}
	t.Errorf("CPUs %s are on two NUMA nodes", list)
	return "?"
}

// onSameNode is a test of messages between two pods of the node, whose ends sleep while they wait.
func onSameNode(name string, kind v1alpha1.LatencyTestKind) *v1alpha1.LatencyTest {
	test := latencyTest(name)
	test.Spec.Kind = kind
	test.Spec.Traffic = &v1alpha1.TestTraffic{Transport: v1alpha1.TransportUDP, Waiting: v1alpha1.WaitingBlock, Server: v1alpha1.TestServer{Placement: v1alpha1.ServerOnSameNode}}
	return test
}

// load searches for the highest rate, between rates that an emulated processor manages, with trials of seconds.
func (s *scene) load(t *testing.T) string {
	test := onSameNode("load", v1alpha1.LatencyTestLoadSearch)
	test.Spec.LoadSearch = &v1alpha1.LoadSearchTest{
		LowestMessagesPerSecond: 10, FirstMessagesPerSecond: 20, HighestMessagesPerSecond: 20000, GranularityPartsPerThousand: 500,
		LossPartsPerMillion: new(int32(10000)), ProbesPerSecond: 20, SniffSeconds: 2, TrialSeconds: 12, ConfirmSeconds: 12, Retries: new(int32(1)),
	}
	test.Spec.Budget = &v1alpha1.LatencyBudget{MinimumMessagesPerSecond: 10, Path: v1alpha1.LatencyPathKernel}
	s.kubectlApply(t, test)
	defer s.remove(t, test)
	result, tries := s.whenQuiet(t, test)
	s.passed(t, test, result)
	load := result.Measured.Network.Load
	if load == nil || load.BestPassPerSecond < 10 {
		t.Fatalf("the search found %+v", load)
	}
	return fmt.Sprintf("%s; Inconclusive before, the machine was busy: %d times", result.Message, tries)
}

// frames measures between two pods, each with a socket of AF_XDP on a NIC of its own and with no capability. The kernel counts none of the messages. How long one
// takes is no part of the budget, for one that is lost takes longer than any: an emulated NIC loses frames whose receiver does not run.
func (s *scene) frames(t *testing.T) string {
	for nic, name := range map[string]string{socketsNIC: "sockets", farNIC: "far-sockets"} {
		s.run(t, "ip link set "+s.interfaceOf(t, nic)+" up")
		pool := &v1alpha1.BypassNICPool{}
		must(t, yaml.UnmarshalStrict(readFile(t, "sockets.yaml"), pool))
		pool.Name, pool.Spec.ResourceName, pool.Spec.NICs[0].PCIAddresses = name, "lowlatency.dev/"+name, []v1alpha1.PCIAddress{v1alpha1.PCIAddress(nic)}
		s.kubectlApply(t, pool)
		s.waitAllocatable(t, "lowlatency.dev/"+name, 1)
	}
	test := onSameNode("frames", v1alpha1.LatencyTestPingPong)
	test.Spec.DurationSeconds = 20
	test.Spec.PingPong = &v1alpha1.PingPongTest{Sizes: []int32{64, 1024}}
	test.Spec.Traffic.Client = &v1alpha1.TestEnd{BypassNICPool: "far-sockets", Address: farAddress}
	test.Spec.Traffic.Server.TestEnd = v1alpha1.TestEnd{BypassNICPool: "sockets", Address: nearAddress}
	test.Spec.Budget = &v1alpha1.LatencyBudget{Path: v1alpha1.LatencyPathAccelerated}
	s.kubectlApply(t, test)
	defer s.remove(t, test)
	result, tries := s.whenQuiet(t, test)
	s.passed(t, test, result)
	network := result.Measured.Network
	return fmt.Sprintf("Passed: %s; %s; %d messages of 64 bytes; Inconclusive before, the machine was busy: %d times", network.Path, network.PathMessage, network.Sizes[0].Samples, tries)
}
