// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// wholeNode are the checks that may fail about the node as a whole: about its kernel, its command line, its clock, its
// kubelet, its network stack, its firmware. All others name CPUs, interrupts, NICs, NUMA nodes, processes, containers or files.
func wholeNode() []v1alpha1.CheckID {
	return []v1alpha1.CheckID{
		"kernel.command-line", "kernel.type", "kernel.page-size", "kernel.tainted", "cpu.partition", "clock.tsc", "power.idle-states",
		"power.uncore", "net.drops", "numa.nodes", "memory.hugepages-numa", "system.services", "firmware.smi", "firmware.fingerprint",
		"kubelet.cpu-manager", "kubelet.topology-manager", "kubelet.memory-manager",
	}
}

// TestEveryFaultHasObjects goes through the table of faults of every check: what the sentence names, the objects hold.
func TestEveryFaultHasObjects(t *testing.T) {
	for id, cases := range allCases() {
		for name, tc := range cases {
			if tc.want != fails {
				continue
			}
			t.Run(string(id)+"/"+name, func(t *testing.T) {
				f := sound()
				tc.change(f)
				if tc.once {
					f.before = nil
				}
				result, _ := find(f.evaluate(), id)
				for _, missing := range unnamed(result) {
					t.Errorf("the objects lack %s, which the sentence names: %s", missing, result.Message)
				}
				if result.Objects.IsEmpty() && !slices.Contains(wholeNode(), id) {
					t.Errorf("no object, and the check is not about the whole node: %s", result.Message)
				}
			})
		}
	}
}

// unnamed is what a sentence names and the objects do not hold. Only this test reads sentences.
func unnamed(result Result) []string {
	var missing []string
	for _, match := range regexp.MustCompile(`(housekeeping |shared with |its )?\bCPUs? ([0-9][0-9,-]*[0-9]|[0-9])`).FindAllStringSubmatch(result.Message, -1) {
		if set := list(match[2]); (match[1] == "" || match[1] == "its ") && !set.IsSubsetOf(result.Objects.CPUs) {
			missing = append(missing, "CPUs "+set.Difference(result.Objects.CPUs).String())
		}
	}
	for _, match := range regexp.MustCompile(`\bIRQ ([0-9]+)`).FindAllStringSubmatch(result.Message, -1) {
		if !slices.ContainsFunc(result.Objects.Interrupts, func(i v1alpha1.Interrupt) bool { return i.ID == match[1] }) {
			missing = append(missing, "interrupt "+match[1])
		}
	}
	for _, match := range regexp.MustCompile(`\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]`).FindAllString(result.Message, -1) {
		if !slices.Contains(result.Objects.NICs, match) {
			missing = append(missing, "NIC "+match)
		}
	}
	for _, match := range regexp.MustCompile(`process ([0-9]+)\)|kernel thread \S+ \(([0-9]+)\)`).FindAllStringSubmatch(result.Message, -1) {
		pid, _ := strconv.Atoi(match[1] + match[2])
		if !slices.ContainsFunc(result.Objects.Processes, func(p v1alpha1.Process) bool { return int(p.PID) == pid }) {
			missing = append(missing, fmt.Sprintf("process %d", pid))
		}
	}
	return append(missing, unnamedPlaces(result)...)
}

// unnamedPlaces are NUMA nodes, containers and files.
func unnamedPlaces(result Result) []string {
	var missing []string
	if regexp.MustCompile(`NUMA node [0-9]`).MatchString(result.Message) && len(result.Objects.NUMANodes) == 0 {
		missing = append(missing, "a NUMA node")
	}
	if regexp.MustCompile(`\bcontainer \S`).MatchString(result.Message) && len(result.Objects.Containers) == 0 {
		missing = append(missing, "a container")
	}
	for _, match := range regexp.MustCompile(`^/(?:proc|sys)/\S+`).FindAllString(result.Message, -1) {
		if !slices.Contains(result.Objects.Files, match) {
			missing = append(missing, "file "+match)
		}
	}
	return missing
}

// TestObjectsBeyondTheSentence has more disturbed CPUs than a sentence names.
func TestObjectsBeyondTheSentence(t *testing.T) {
	f := sound()
	isolated := f.plan.CPUs.Isolated
	want := make([]v1alpha1.Interrupt, 0, 40)
	for i := range 40 {
		on := isolated.IDs()[i%isolated.Len()]
		f.facts.Interrupts.Routes = append(f.facts.Interrupts.Routes, host.InterruptRoute{
			Number: 200 + i, Affinity: known(cpus.Of(on)), EffectiveAffinity: known(cpus.Of(on)), Actions: []string{"sfc-" + strconv.Itoa(i)},
		})
		f.facts.Interrupts.Lines.Value = append(f.facts.Interrupts.Lines.Value, host.InterruptLine{Name: strconv.Itoa(200 + i)})
		want = append(want, v1alpha1.Interrupt{ID: strconv.Itoa(200 + i), Handlers: "sfc-" + strconv.Itoa(i)})
	}
	f.facts.NICs[0].Interrupts = append(f.facts.NICs[0].Interrupts, 207)
	report := f.evaluate()
	result, _ := find(report, "irq.effective-affinity")
	if !strings.HasSuffix(result.Message, "; and 35 more") {
		t.Errorf("the sentence names all: %s", result.Message)
	}
	if diff := cmp.Diff(finding.Objects{CPUs: isolated, Interrupts: want, NICs: []string{"0000:3b:00.0"}}, result.Objects); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	for _, reported := range finding.Statuses(report.Findings()) {
		if reported.Check == "irq.effective-affinity" && (reported.Objects.CPUs != isolated.String() || reported.Objects.Counts.Interrupts != 40 ||
			len(reported.Objects.Interrupts) != v1alpha1.MaxFindingInterrupts) {
			t.Errorf("the status has %+v", reported.Objects)
		}
	}
}
