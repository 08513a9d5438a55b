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
	stack stack
	nic   host.NIC
	// creator is the NIC on which the pool creates this virtual function; nil for others.
	creator *host.NIC
	// claim is what the pool has of the node's NICs.
	claim *Claim
	// model of the NIC; the zero model when its identifiers are not known.
	model Model
	// modelKnown tells that the PCI identifiers are known ones.
	modelKnown bool
}

func newCandidate(in Input, nic host.NIC, creator *host.NIC) *candidate {
	c := &candidate{in: in, stack: stackOf(&in.Pool.Spec), nic: nic, creator: creator}
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

// isLoaded tells whether the modules of the stack are not known to be missing. Rules about what only a loaded
// module shows leave the sentence to the rule about modules.
func (c *candidate) isLoaded() bool { return c.modules().level != levelFailed }

// judge returns the verdicts of all rules, the gravest first; those that passed are left out.
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
	var bad []string
	if o := c.in.Pool.Spec.Stack.Onload; o != nil {
		_, bad = goodOptions(o.Options)
	}
	if t := c.in.Pool.Spec.Stack.TCPDirect; t != nil {
		_, bad = goodAttributes(t.Attributes)
	}
	return bad
}

// healthOf is the health that the gravest verdict gives.
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

// rules in the order in which equally grave sentences are told. A NIC that is to have virtual functions need not be
// what only they must be.
func (c *candidate) rules() []func(*candidate) verdict {
	if c.isCreator() {
		return []func(*candidate) verdict{
			(*candidate).management, (*candidate).claimedByOthers, (*candidate).supported, (*candidate).virtualFunctions,
		}
	}
	return []func(*candidate) verdict{
		// What forbids the NIC.
		(*candidate).management, (*candidate).claimedByOthers, (*candidate).supported, (*candidate).nativeXDP, (*candidate).zeroCopy,
		// The NIC itself.
		(*candidate).driver, (*candidate).carrier, (*candidate).numaNode, (*candidate).pciLink,
		(*candidate).virtualFunctions,
		// The kernel side of the stack.
		(*candidate).modules, (*candidate).deviceNodes, (*candidate).controlPlane, (*candidate).registered,
		(*candidate).registeredOthers, (*candidate).virtualInterfaces, (*candidate).shares,
		// Versions.
		(*candidate).moduleVersion, (*candidate).userFiles, (*candidate).interfaceVersion, (*candidate).userVersion,
		(*candidate).builtWith,
		// Memory.
		(*candidate).hugepages,
		// AF_XDP.
		(*candidate).queues, (*candidate).attached, (*candidate).boundSockets,
		// VFIO.
		(*candidate).iommuGroup, (*candidate).groupNode, (*candidate).isolation, (*candidate).groupPeers,
	}
}
