// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"slices"
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

// argumentCPUs are the CPUs that an argument names; a value that the kernel does not take names none.
func argumentCPUs(line cmdline.Line, name string, possible cpus.Set) cpus.Set {
	value, _ := line.Get(name)
	set, err := cpus.ParseArgument(value, possible)
	if err != nil {
		return cpus.Set{}
	}
	return set
}

// argumentText says with which arguments of a name the kernel was booted, or that it was without.
func argumentText(line cmdline.Line, name string) string {
	given := line.All(name)
	texts := make([]string, 0, len(given))
	for _, arg := range given {
		texts = append(texts, arg.Text())
	}
	if len(texts) == 0 {
		return "without " + name + "="
	}
	return "with " + strings.Join(texts, " ")
}

// machine is what the meaning of a command line depends on.
func (s *state) machine() cmdline.Machine { return plan.MachineOf(s.facts, s.plan) }

// commandLineIsPlanned names every planned argument that is missing or has another value, and every
// argument that contradicts the plan.
func commandLineIsPlanned(s *state) verdict {
	planned := s.plan.ArgumentText()
	return judge(s.running, planned, func(running cmdline.Line) verdict {
		var missing, faults, observed []string
		for _, change := range plan.ArgumentChanges(running, s.machine(), s.plan) {
			from, to := argumentTexts(change)
			if from == "" {
				missing = append(missing, to)
				continue
			}
			observed = append(observed, from)
			faults = append(faults, booted(from, to))
		}
		if len(missing) > 0 {
			faults = append([]string{"the kernel was booted without " + strings.Join(missing, " ") + behindHyphens(running, missing)}, faults...)
		}
		if len(faults) > 0 {
			return failed(strings.Join(faults, "; "), strings.Join(observed, " "), planned)
		}
		return passed(fmt.Sprintf("all %d planned arguments", len(s.plan.KernelArguments)))
	})
}

// behindHyphens explains why arguments that are seen in /proc/cmdline are missing.
func behindHyphens(running cmdline.Line, missing []string) string {
	for _, arg := range running.InitArgs() {
		if slices.Contains(missing, arg.Text()) {
			return ": what stands behind \"--\" is for process 1"
		}
	}
	return ""
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
	return fmt.Sprintf("the kernel was booted with %s%s, wanted %s", from, givenTwice(from), to)
}

// givenTwice explains an argument that is given more than once, of which the kernel passes over what does not fit the first
// (housekeeping_setup of kernel/sched/isolation.c).
func givenTwice(given string) string {
	arguments := strings.Fields(given)
	if len(arguments) < 2 || hasOtherName(arguments[1:], arguments[0]) {
		return ""
	}
	return " (of which the first counts where they differ)"
}

// hasOtherName reports whether one of the arguments has another name than a given one.
func hasOtherName(arguments []string, than string) bool {
	name, _, _ := strings.Cut(than, "=")
	return slices.ContainsFunc(arguments, func(argument string) bool { return !strings.HasPrefix(argument, name+"=") })
}
