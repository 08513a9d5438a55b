// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"cmp"
	"fmt"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// level says how much a verdict matters, in ascending order.
type level int

const (
	levelPassed level = iota
	// levelNoted is said and forbids nothing.
	levelNoted
	// levelUnknown means that the host does not give the fact.
	levelUnknown
	// levelFailed means that the stack would not work now.
	levelFailed
	// levelRefused means that the NIC must not be handed out.
	levelRefused
)

// verdict is what one rule makes of a NIC. Only a passed one has no reason.
type verdict struct {
	level  level
	reason string
}

func passed() verdict { return verdict{} }

func noted(format string, a ...any) verdict {
	return verdict{levelNoted, sentence(format, a...)}
}

func unknown(format string, a ...any) verdict {
	return verdict{levelUnknown, sentence(format, a...)}
}

func failed(format string, a ...any) verdict {
	return verdict{levelFailed, sentence(format, a...)}
}

func refused(format string, a ...any) verdict {
	return verdict{levelRefused, sentence(format, a...)}
}

func sentence(format string, a ...any) string {
	return shorten.Sentence(fmt.Sprintf(format, a...), v1alpha1.MaxNICReasonLength)
}

// absent returns the verdict about a fact that the host does not give, and passed for one that it gives. What is
// the fact in words, without is what cannot be said without it, and remedy a clause that says what to do.
func absent[T any](fact host.Fact[T], what, without, remedy string) verdict {
	if fact.Known {
		return passed()
	}
	return unknown("%s cannot be read from %s (%s), so %s; %s.",
		what, cmp.Or(fact.Source, "the node"), cmp.Or(fact.Reason, "not read"), without, remedy)
}

// candidate is a NIC that is judged.
type candidate struct {
	in    Input
	stack Stack
	needs needs
	nic   host.NIC
	// creator is the NIC on which the pool creates this virtual function; nil for others.
	creator *host.NIC
	// claim is what the pool has of the node's NICs.
	claim *Claim
	// model of the NIC; the zero model when its identifiers are not known.
	model Model
	// modelKnown means that the PCI identifiers are known ones.
	modelKnown bool
}

func newCandidate(in Input, nic host.NIC, creator *host.NIC) *candidate {
	stack := stackOf(&in.Pool.Spec)
	c := &candidate{in: in, stack: stack, needs: stack.needs(&in.Pool.Spec.Stack), nic: nic, creator: creator}
	c.model, c.modelKnown = ModelOf(nic.Vendor.Value, nic.Device.Value)
	return c
}

func (c *candidate) bypass() *host.Bypass { return &c.in.Facts.Bypass }

// name of the NIC for sentences.
func (c *candidate) name() string { return nameOfNIC(c.nic) }

func nameOfNIC(nic host.NIC) string {
	if name, known := nic.Name.Get(); known {
		return fmt.Sprintf("%s (%s)", name, nic.PCIAddress)
	}
	return nic.PCIAddress
}

// isLoaded reports whether the modules of the stack are not known to be missing. Rules about what only a loaded
// module shows leave the sentence to the rule about modules.
func (c *candidate) isLoaded() bool { return c.modules().level != levelFailed }

// judge returns the verdicts of all rules, the most severe first; those that passed are left out.
func (c *candidate) judge() []verdict {
	var verdicts []verdict
	for _, rule := range c.rules() {
		verdicts = append(verdicts, rule(c))
	}
	for _, bad := range c.badSettings() {
		verdicts = append(verdicts, noted("%s", bad))
	}
	verdicts = slices.DeleteFunc(verdicts, func(v verdict) bool { return v.level == levelPassed })
	slices.SortStableFunc(verdicts, func(a, b verdict) int { return cmp.Compare(b.level, a.level) })
	return verdicts
}

// badSettings are sentences about what the pool would set and the stack would not take.
func (c *candidate) badSettings() []string {
	if c.stack.badSettings == nil {
		return nil
	}
	return c.stack.badSettings(&c.in.Pool.Spec.Stack)
}

// healthOf is the health that the most severe verdict gives.
func healthOf(verdicts []verdict) v1alpha1.NICHealth {
	if len(verdicts) == 0 {
		return v1alpha1.NICHealthy
	}
	switch verdicts[0].level {
	case levelRefused:
		return v1alpha1.NICIneligible
	case levelFailed:
		return v1alpha1.NICUnhealthy
	case levelUnknown:
		return v1alpha1.NICUnknown
	default:
		return v1alpha1.NICHealthy
	}
}

// rules in the order in which equally severe sentences are told: what forbids the NIC comes first. A NIC that is to
// have virtual functions need not be what only they must be.
func (c *candidate) rules() []rule {
	rules := []rule{(*candidate).management, (*candidate).claimedByOthers}
	if c.stack.supported != nil {
		rules = append(rules, c.stack.supported)
	}
	if c.isCreator() {
		return append(rules, (*candidate).virtualFunctions)
	}
	return slices.Concat(rules, c.stack.eligible, c.stack.rules)
}
