// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cmdline

import (
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// Flags of isolcpus=.
const (
	flagDomain     = "domain"
	flagManagedIRQ = "managed_irq"
	flagNoise      = "nohz"
)

// Isolation are the CPUs that isolcpus= and nohz_full= keep kinds of work off.
type Isolation struct {
	// Domain are the CPUs without scheduler domain (HK_TYPE_DOMAIN).
	Domain cpus.Set
	// ManagedIRQ are the CPUs that managed interrupts avoid where they can (HK_TYPE_MANAGED_IRQ).
	ManagedIRQ cpus.Set
	// Noise are the CPUs without tick, timers and unbound work (HK_TYPE_KERNEL_NOISE).
	Noise cpus.Set
}

// of returns the CPUs of a flag.
func (i *Isolation) of(flag string) *cpus.Set {
	switch flag {
	case flagDomain:
		return &i.Domain
	case flagManagedIRQ:
		return &i.ManagedIRQ
	default:
		return &i.Noise
	}
}

// Isolation follows housekeeping_setup of kernel/sched/isolation.c: arguments take effect in their order. One that names
// other CPUs for a kind of work than an earlier one is refused as a whole ("nohz_full= must match isolcpus="), and one
// that leaves no possible CPU spares the CPU that the kernel boots on. A list that names a CPU above the possible ones
// has no effect.
func (l Line) Isolation(m Machine) Isolation {
	var kept Isolation
	for _, arg := range l.kernel {
		flags, set, ok := m.isolates(arg)
		if !ok {
			continue
		}
		set = set.Intersection(m.possibleOr(set))
		if !m.Possible.IsEmpty() && m.Possible.IsSubsetOf(set) {
			set = set.Difference(cpus.Of(0))
		}
		refused := slices.ContainsFunc(flags, func(flag string) bool {
			before := kept.of(flag)
			return !before.IsEmpty() && !before.Equal(set)
		})
		if set.IsEmpty() || refused {
			continue
		}
		for _, flag := range flags {
			*kept.of(flag) = set
		}
	}
	return kept
}

func (m Machine) possibleOr(set cpus.Set) cpus.Set {
	if m.Possible.IsEmpty() {
		return set
	}
	return m.Possible
}

// isolates reads isolcpus= and nohz_full=; not ok for other arguments and for those that the kernel does not take.
func (m Machine) isolates(arg Arg) (flags []string, set cpus.Set, ok bool) {
	switch underscored(arg.Name) {
	case "isolcpus":
		return m.isolcpus(arg.Value)
	case "nohz_full":
		set, err := cpus.ParseArgument(arg.Value, m.Possible)
		return []string{flagNoise}, set, err == nil
	default:
		return nil, cpus.Set{}, false
	}
}

// isolcpus reads the value of isolcpus=: flags in any order, each with a comma behind it, then CPUs. Without a flag that
// the kernel knows, domain is meant; a flag with a character that no flag has voids the argument. A leading "all" is
// taken for an unknown flag (housekeeping_isolcpus_setup of kernel/sched/isolation.c). The flags are sorted.
func (m Machine) isolcpus(value string) (flags []string, set cpus.Set, ok bool) {
	for value != "" && isLetter(value[0]) {
		flag, rest, _ := strings.Cut(value, ",")
		switch {
		case flag == flagDomain || flag == flagManagedIRQ || flag == flagNoise:
			flags = append(flags, flag)
		case strings.ContainsFunc(flag, func(r rune) bool { return r != '_' && (r > 'z' || !isLetter(byte(r))) }):
			return nil, cpus.Set{}, false
		}
		value = rest
	}
	if len(flags) == 0 {
		flags = []string{flagDomain}
	}
	slices.Sort(flags)
	set, err := cpus.ParseArgument(value, m.Possible)
	return slices.Compact(flags), set, err == nil
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
