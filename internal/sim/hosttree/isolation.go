// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// isolationFlag is a kind of work that isolcpus= and nohz_full= keep off CPUs.
type isolationFlag string

const (
	// flagDomain removes CPUs from the scheduler's domains (HK_TYPE_DOMAIN).
	flagDomain isolationFlag = "domain"
	// flagManagedIRQ keeps managed interrupts off them where possible (HK_TYPE_MANAGED_IRQ).
	flagManagedIRQ isolationFlag = "managed_irq"
	// flagNoise stops their tick, timers and unbound work (HK_TYPE_KERNEL_NOISE).
	flagNoise isolationFlag = "nohz"
)

// isolation holds the CPUs that each kind of work is kept off.
type isolation map[isolationFlag]cpus.Set

// isolate follows kernel/sched/isolation.c: arguments take effect in their order; one that repeats a kind
// of work with other CPUs is refused as a whole ("nohz_full= must match isolcpus="); one that would
// leave no present CPU spares the boot CPU.
func isolate(line cmdline.Line, possible cpus.Set) isolation {
	kept := isolation{}
	for _, arg := range line.Args() {
		switch arg.Name {
		case "isolcpus":
			if flags, list, ok := isolcpusFlags(arg.Value); ok {
				kept.add(flags, list, possible)
			}
		case "nohz_full":
			kept.add([]isolationFlag{flagNoise}, arg.Value, possible)
		}
	}
	return kept
}

// isolcpusFlags splits the flags off a list of CPUs. Without flags, domain is meant. Unknown flags are
// skipped, and one with a character that no flag has voids the argument.
func isolcpusFlags(value string) (flags []isolationFlag, list string, ok bool) {
	for value != "" && isLetter(rune(value[0])) {
		flag, rest, _ := strings.Cut(value, ",")
		if strings.ContainsFunc(flag, func(r rune) bool { return !isLetter(r) && r != '_' }) {
			return nil, "", false
		}
		switch isolationFlag(flag) {
		case flagDomain, flagManagedIRQ, flagNoise:
			flags = append(flags, isolationFlag(flag))
		}
		value = rest
	}
	if len(flags) == 0 {
		flags = []isolationFlag{flagDomain}
	}
	return flags, value, true
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

func (i isolation) add(flags []isolationFlag, list string, possible cpus.Set) {
	away, err := cpus.Parse(list)
	if err != nil {
		return
	}
	away = away.Intersection(possible)
	if possible.IsSubsetOf(away) {
		away = away.Difference(cpus.Of(0))
	}
	if away.IsEmpty() {
		return
	}
	for _, flag := range flags {
		if before, set := i[flag]; set && !before.Equal(away) {
			return
		}
	}
	for _, flag := range flags {
		i[flag] = away
	}
}
