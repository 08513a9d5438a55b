// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// runningLine reads the command line of the running kernel; one that cannot be read is absent.
func runningLine(facts *host.Facts) host.Fact[cmdline.Line] {
	return parseSetting(facts.Kernel.CommandLine, cmdline.Parse)
}

// plannedLine is the planned part of the command line.
func plannedLine(p *plan.NodePlan) cmdline.Line {
	texts := make([]string, 0, len(p.KernelArguments))
	for _, argument := range p.KernelArguments {
		texts = append(texts, argument.Text)
	}
	line, err := cmdline.Parse(strings.Join(texts, " "))
	if err != nil {
		return cmdline.Line{}
	}
	return line
}

// normalCPUs writes a CPU list in its shortest form; a text that is none stays as it is.
func normalCPUs(list string, possible cpus.Set) string {
	if set, ok := parseCPUArgument(list, possible); ok {
		return set.String()
	}
	return list
}

// splitIsolcpus divides "managed_irq,domain,2-3" into flags and list. A list without a flag means
// domain (Documentation/admin-guide/kernel-parameters.txt).
func splitIsolcpus(value string) (flags map[string]bool, list string) {
	flags = map[string]bool{}
	list = value
	for {
		word, rest, more := strings.Cut(list, ",")
		if !slices.Contains([]string{"nohz", "domain", "managed_irq"}, word) {
			break
		}
		flags[word] = true
		list = rest
		if !more {
			break
		}
	}
	if len(flags) == 0 && value != "" {
		flags["domain"] = true
	}
	return flags, list
}

// parseCPUArgument reads a CPU list of the command line, where the kernel also takes "all" and "N" for
// the last CPU (lib/bitmap-str.c, bitmap_parselist).
func parseCPUArgument(list string, possible cpus.Set) (cpus.Set, bool) {
	if strings.EqualFold(list, "all") {
		return possible, !possible.IsEmpty()
	}
	if strings.Contains(list, "N") && !possible.IsEmpty() {
		list = strings.ReplaceAll(list, "N", strconv.Itoa(possible.Last()))
	}
	set, err := cpus.Parse(list)
	return set, err == nil
}

// cpuListOf reads a CPU list of the command line; a text that is none holds no CPU.
func cpuListOf(list string, possible cpus.Set) cpus.Set {
	set, ok := parseCPUArgument(list, possible)
	if !ok {
		return cpus.Set{}
	}
	return set
}

// argumentCPUs are the CPUs that an argument names.
func argumentCPUs(line cmdline.Line, name string, possible cpus.Set) cpus.Set {
	value, _ := line.Get(name)
	return cpuListOf(value, possible)
}

// possibleCPUs are the CPUs that "all" and "N" on a command line speak of.
func (s *state) possibleCPUs() cpus.Set {
	if possible, ok := s.facts.CPUs.Possible.Get(); ok {
		return possible
	}
	return s.facts.CPUs.Present.Value
}

// commandLineIsPlanned names every planned argument that is missing or has another value, and every
// argument that contradicts the plan.
func commandLineIsPlanned(s *state) verdict {
	return judge(s.running, s.planText(), func(cmdline.Line) verdict {
		var missing, faults, observed []string
		for _, change := range plan.ArgumentChanges(s.facts, s.plan) {
			from, to := argumentTexts(change)
			if from == "" {
				missing = append(missing, to)
				continue
			}
			observed = append(observed, from)
			faults = append(faults, booted(from, to))
		}
		if len(missing) > 0 {
			faults = append([]string{"the kernel was booted without " + strings.Join(missing, " ")}, faults...)
		}
		if len(faults) > 0 {
			return failed(strings.Join(faults, "; "), strings.Join(observed, " "), s.planText())
		}
		return passed(fmt.Sprintf("all %d planned arguments", len(s.plan.KernelArguments)))
	})
}

// argumentTexts are the argument of the running kernel and the planned one; "" when there is none. A
// number of hugepages says nothing without its size.
func argumentTexts(change plan.Change) (from, to string) {
	from, to = change.From, change.To
	if _, size, sized := strings.Cut(change.What, " of "); sized {
		prefix := "hugepagesz=" + size + " "
		from, to = prefixed(prefix, from), prefixed(prefix, to)
	}
	return from, to
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func booted(from, to string) string {
	if to == "" {
		return fmt.Sprintf("the kernel was booted with %s, which the plan does without", from)
	}
	return fmt.Sprintf("the kernel was booted with %s, wanted %s", from, to)
}

func (s *state) planText() string {
	texts := make([]string, 0, len(s.plan.KernelArguments))
	for _, argument := range s.plan.KernelArguments {
		texts = append(texts, argument.Text)
	}
	return strings.Join(texts, " ")
}
