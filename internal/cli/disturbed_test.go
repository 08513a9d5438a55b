// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// disturbed is a host of 64 CPUs that was booted as planned, after which interrupts were moved to isolated CPUs, one to
// each of so many; 0 is all of them.
func disturbed(t *testing.T, count int) (dir, file string, on cpus.Set) {
	t.Helper()
	machine := hosttree.Xeon()
	for i := range machine.NICs {
		machine.NICs[i].Queues = 32
	}
	dir, file = tree(t, machine), write(t, "profile.yaml", profileHead)
	var plans []view.Plan
	if err := json.Unmarshal([]byte(run(t, "", "plan", "-f", file, "--root", dir, "-o", "json").out), &plans); err != nil {
		t.Fatal(err)
	}
	line := machine.BaseCommandLine() + " " + strings.Join(plans[0].KernelArguments, " ")
	if err := hosttree.Boot(dir, hosttree.BootOptions{CommandLine: line}); err != nil {
		t.Fatal(err)
	}
	isolated := plans[0].Isolated.IDs()
	if count == 0 {
		count = len(isolated)
	}
	for _, nic := range machine.NICs {
		irq, err := hosttree.FindIRQ(dir, nic.Name)
		if err != nil {
			t.Fatal(err)
		}
		for queue := 0; queue < nic.Queues && on.Len() < count; queue++ {
			cpu := cpus.Of(isolated[on.Len()])
			if err := hosttree.MoveIRQ(dir, irq+queue, cpu); err != nil {
				t.Fatal(err)
			}
			on = on.Union(cpu)
		}
	}
	if on.Len() != count {
		t.Fatalf("interrupts were moved to %d CPUs, not %d", on.Len(), count)
	}
	return dir, file, on
}

// TestEveryDisturbedCPUIsMarked has more disturbed CPUs than a sentence names: some, and all isolated ones.
func TestEveryDisturbedCPUIsMarked(t *testing.T) {
	for name, count := range map[string]int{"some": 23, "every isolated CPU": 0} {
		t.Run(name, func(t *testing.T) {
			dir, file, on := disturbed(t, count)
			node := func(format string) string {
				return run(t, "", "node", "-f", file, "--root", dir, "--host-ip", nobody, "--color", "always", "-o", format).out
			}
			if got := markedInText(node("text")); !got.Equal(on) {
				t.Errorf("the text marks CPUs %s, disturbed are %s", got, on)
			}
			for _, format := range []string{"svg", "html"} {
				if got := markedInPicture(t, node(format)); !got.Equal(on) {
					t.Errorf("-o %s marks CPUs %s, disturbed are %s", format, got, on)
				}
			}
			var drawn view.Node
			if err := json.Unmarshal([]byte(node("json")), &drawn); err != nil {
				t.Fatal(err)
			}
			holdsAll(t, drawn.AllFindings(), on)
			var checks []view.Check
			if err := json.Unmarshal([]byte(run(t, "", "check", "-f", file, "--root", dir, "--host-ip", nobody, "-o", "json").out), &checks); err != nil {
				t.Fatal(err)
			}
			holdsAll(t, checks[0].Findings, on)
		})
	}
}

// markedInText are the CPUs whose numbers have the colour of failures in the boxes of the NUMA nodes.
func markedInText(drawing string) cpus.Set {
	var ids []int
	for line := range strings.Lines(drawing) {
		for id := range 64 {
			if strings.Contains(line, "│") && strings.Contains(line, text.NewPalette(true).Bad(strconv.Itoa(id))) {
				ids = append(ids, id)
			}
		}
	}
	return cpus.Of(ids...)
}

// markedInPicture are the CPUs whose tiles name the check. As many tiles have a frame.
func markedInPicture(t *testing.T, picture string) cpus.Set {
	t.Helper()
	matches := regexp.MustCompile(`<title>CPU ([0-9]+) [^<]*irq\.effective-affinity: Failed`).FindAllStringSubmatch(picture, -1)
	ids := make([]int, 0, len(matches))
	for _, match := range matches {
		id, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if frames := strings.Count(picture, `<rect class="hit"`); frames != len(ids) {
		t.Errorf("%d tiles have a frame, and %d name the check", frames, len(ids))
	}
	return cpus.Of(ids...)
}

// holdsAll wants the finding to have all CPUs and all interrupts, while its sentence counts those beyond the first few.
func holdsAll(t *testing.T, findings []finding.Finding, on cpus.Set) {
	t.Helper()
	for _, f := range findings {
		if f.Check != "irq.effective-affinity" {
			continue
		}
		if !f.Objects.CPUs.Equal(on) || len(f.Objects.Interrupts) != on.Len() || int(f.Objects.Counts().CPUs) != on.Len() {
			t.Errorf("JSON has CPUs %s and %d interrupts, disturbed are %s", f.Objects.CPUs, len(f.Objects.Interrupts), on)
		}
		if !strings.HasSuffix(f.Message, fmt.Sprintf("; and %d more", on.Len()-5)) {
			t.Errorf("the sentence is %s", f.Message)
		}
		return
	}
	t.Error("irq.effective-affinity did not fail")
}
