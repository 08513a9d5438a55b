// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
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

// parameter is one parameter of a command line in a form that can be compared: hugepage counts carry
// their size in the name, CPU lists are normalised.
type parameter struct {
	name, value string
	hasValue    bool
}

func (p parameter) String() string {
	if !p.hasValue {
		return p.name
	}
	return p.name + "=" + p.value
}

// parameters turns arguments into comparable parameters. The argument "hugepages" counts pages of the
// size that the "hugepagesz" before it names (Documentation/admin-guide/mm/hugetlbpage.rst), so the two
// belong together.
func parameters(args []cmdline.Arg, possible cpus.Set) []parameter {
	found := make([]parameter, 0, len(args))
	size := ""
	for _, arg := range args {
		p := parameter{name: strings.ReplaceAll(arg.Name, "-", "_"), value: arg.Value, hasValue: arg.HasValue}
		switch {
		case p.name == "hugepagesz":
			size = p.value
		case p.name == "hugepages" && size != "":
			p.name = "hugepagesz=" + size + " hugepages"
		case p.name == "isolcpus":
			p.value = normalIsolcpus(p.value, possible)
		case slices.Contains(cpuListParameters(), p.name):
			p.value = normalCPUs(p.value, possible)
		}
		found = append(found, p)
	}
	return found
}

// cpuListParameters are parameters whose value is a CPU list, for which "0,1,2" is the same as "0-2".
func cpuListParameters() []string {
	return []string{"nohz_full", "rcu_nocbs", "irqaffinity", "systemd.cpu_affinity", "kthread_cpus"}
}

// additiveParameters may be repeated with different values, each of which takes effect.
func additiveParameters() []string { return []string{"hugepagesz", "mce", "console", "earlycon"} }

// normalCPUs writes a CPU list in its shortest form; a text that is none stays as it is.
func normalCPUs(list string, possible cpus.Set) string {
	if set, ok := parseCPUArgument(list, possible); ok {
		return set.String()
	}
	return list
}

// normalIsolcpus sorts the flags of isolcpus= and writes its list in its shortest form.
func normalIsolcpus(value string, possible cpus.Set) string {
	flags, list := splitIsolcpus(value)
	names := make([]string, 0, len(flags)+1)
	for flag := range flags {
		names = append(names, flag)
	}
	slices.Sort(names)
	return strings.Join(append(names, normalCPUs(list, possible)), ",")
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

// commandLineIsPlanned names every planned argument that is missing, has another value, or is
// overridden by a later one.
func commandLineIsPlanned(s *state) verdict {
	return judge(s.running, s.planText(), func(line cmdline.Line) verdict {
		possible := s.possibleCPUs()
		wanted := parameters(s.planned.Args(), possible)
		running := parameters(line.Args(), possible)
		var faults []verdict
		for _, want := range wanted {
			if v, ok := compareParameter(want, wanted, running); !ok {
				faults = append(faults, v)
			}
		}
		if len(faults) > 0 {
			return worst(faults...)
		}
		return passed(fmt.Sprintf("all %d planned arguments", len(wanted)))
	})
}

func (s *state) planText() string {
	texts := make([]string, 0, len(s.plan.KernelArguments))
	for _, argument := range s.plan.KernelArguments {
		texts = append(texts, argument.Text)
	}
	return strings.Join(texts, " ")
}

// compareParameter looks for one planned parameter on the running command line.
func compareParameter(want parameter, wanted, running []parameter) (verdict, bool) {
	same := withName(running, want.name)
	if len(same) == 0 {
		return failed(fmt.Sprintf("the kernel was booted without %s", want), "no "+want.name, want.String()), false
	}
	if !slices.Contains(same, want) {
		found := joinParameters(same)
		return failed(fmt.Sprintf("the kernel was booted with %s, wanted %s", found, want), found, want.String()), false
	}
	last := same[len(same)-1]
	if slices.Contains(additiveParameters(), want.name) || slices.Contains(withName(wanted, want.name), last) {
		return verdict{}, true
	}
	return failed(fmt.Sprintf("%s is overridden by a later %s", want, last), joinParameters(same), want.String()), false
}

func withName(list []parameter, name string) []parameter {
	var same []parameter
	for _, p := range list {
		if p.name == name {
			same = append(same, p)
		}
	}
	return same
}

func joinParameters(list []parameter) string {
	texts := make([]string, 0, len(list))
	for _, p := range list {
		texts = append(texts, p.String())
	}
	return strings.Join(slices.Compact(texts), " and ")
}
