// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
)

// Change is one difference between what is and what is planned.
type Change struct {
	// What changes, such as "kernel argument nohz_full" or "sysctl vm.stat_interval".
	What string `json:"what"`
	// From and To are the values; "" when there is none.
	From string `json:"from"`
	To   string `json:"to"`
	// Reboot says whether the change takes effect only after a reboot, Why the reason.
	Reboot v1alpha1.RebootRequirement `json:"reboot"`
	Why    string                     `json:"why"`
}

// Changes are the differences between two plans, or between a host and a plan.
type Changes struct {
	Items []Change `json:"items"`
}

// Reboot is Required when any change needs a reboot, else Unknown when any may, else NotRequired. It says
// what the kernel needs; a platform may reboot a node for less.
func (c Changes) Reboot() v1alpha1.RebootRequirement {
	found := v1alpha1.RebootNotRequired
	for _, change := range c.Items {
		switch change.Reboot {
		case v1alpha1.RebootRequired:
			return v1alpha1.RebootRequired
		case v1alpha1.RebootUnknown:
			found = v1alpha1.RebootUnknown
		case v1alpha1.RebootNotRequired:
		}
	}
	return found
}

// unread stands for a value that could not be read.
const unread = "unknown"

// Kinds of items.
const (
	kindArgument = "kernel argument"
	kindSysctl   = "sysctl"
	kindFile     = "file"
	kindKubelet  = "kubelet setting"
	kindThread   = "kernel thread"
)

// Diff compares two plans. A nil plan is a host that no plan has touched.
func Diff(from, to *NodePlan) Changes {
	before, after := map[string]item{}, map[string]bool{}
	for _, i := range from.items() {
		before[i.key()] = i
	}
	var changes Changes
	for _, i := range to.items() {
		after[i.key()] = true
		was, existed := before[i.key()]
		if !existed || !i.is(was) {
			changes.Items = append(changes.Items, i.change(was.value, i.value))
		}
	}
	for _, i := range from.items() {
		if !after[i.key()] {
			changes.Items = append(changes.Items, i.change(i.value, ""))
		}
	}
	return changes
}

// DiffRunning compares what a host runs now with a plan. What the facts do not speak of, such as files
// that were not read, is left out. What they should speak of but do not is a change from "unknown", at the
// end, in one line for all that lack for the same reason; it makes the need for a reboot Unknown where the
// change would need one.
func DiffRunning(facts *host.Facts, to *NodePlan) Changes {
	if facts == nil {
		facts = &host.Facts{}
	}
	if to == nil {
		return Changes{}
	}
	var gaps gaps
	changes := observed(facts, slices.Concat(to.kernelItems(), to.cpuItems()), &gaps)
	if line, reason := runningLine(facts); reason == "" {
		changes = append(changes, ArgumentChanges(line, MachineOf(facts, to), to)...)
	} else {
		for _, i := range to.argumentItems() {
			gaps.addUntold(i, reason)
		}
	}
	changes = append(changes, observed(facts, to.itemsAfterArguments(), &gaps)...)
	return Changes{Items: append(changes, gaps.changes()...)}
}

// observed compares those items that a host tells with what it tells.
func observed(facts *host.Facts, items []item, gaps *gaps) []Change {
	var changes []Change
	for _, i := range items {
		if i.observe == nil {
			continue
		}
		value, reason := i.observe(facts)
		switch {
		case reason != "":
			gaps.addUntold(i, reason)
		case !i.equals(value, i.value):
			changes = append(changes, i.change(value, i.value))
		}
	}
	return changes
}

// gaps collect items whose values could not be read, in groups of one kind that lack for one reason.
type gaps struct{ groups []gap }

type gap struct {
	why   string
	items []item
}

func (g *gaps) addUntold(i item, reason string) {
	why := "the host does not report it: " + reason
	if i.reboot == v1alpha1.RebootRequired {
		i.reboot = v1alpha1.RebootUnknown
	}
	at := slices.IndexFunc(g.groups, func(have gap) bool {
		return i.kind != "" && have.why == why && have.items[0].kind == i.kind && have.items[0].reboot == i.reboot
	})
	if at < 0 {
		g.groups = append(g.groups, gap{why: why, items: []item{i}})
		return
	}
	g.groups[at].items = append(g.groups[at].items, i)
}

// changes has one change for each group.
func (g *gaps) changes() []Change {
	changes := make([]Change, len(g.groups))
	for i, group := range g.groups {
		first := group.items[0]
		c := Change{What: first.what(), From: unread, To: first.value, Reboot: first.reboot, Why: group.why}
		if len(group.items) > 1 {
			c.What = first.kind + "s"
			c.To = joined(group.items, item.brief)
		}
		changes[i] = c
	}
	return changes
}

// item is one thing that a plan decides.
type item struct {
	// kind and name say what it is: kind "sysctl", name "vm.swappiness". Things that are one of a kind have
	// no kind.
	kind, name, value string
	reboot            v1alpha1.RebootRequirement
	why               string
	// whenNew is why no reboot is needed where there was nothing before, which is "" or none; "" when one is
	// needed there, too.
	whenNew, none string
	// same compares two values; nil compares texts.
	same func(a, b string) bool
	// effect is what a kernel argument does; nil for everything else.
	effect *cmdline.Effect
	// observe reads the value from a host, or says why it cannot; nil when hosts do not report.
	observe func(*host.Facts) (value, reason string)
}

func (i item) what() string { return strings.TrimSpace(i.kind + " " + i.name) }

// brief is the item as one of a list. Kernel arguments have their name in their value.
func (i item) brief() string {
	if i.kind == kindArgument {
		return i.value
	}
	return i.name + "=" + i.value
}

// key is the same for the same thing in two plans. Kernel arguments of two names may set one parameter.
func (i item) key() string {
	if i.effect != nil {
		return i.kind + " " + i.effect.Parameter
	}
	return i.what()
}

// is reports whether another plan decides the same.
func (i item) is(other item) bool {
	if i.effect != nil && other.effect != nil {
		return i.effect.Equal(*other.effect)
	}
	return i.equals(other.value, i.value)
}

func (i item) equals(a, b string) bool {
	return a == b || i.same != nil && i.same(a, b)
}

func (i item) change(from, to string) Change {
	if i.whenNew != "" && (from == "" || from == i.none) {
		i.reboot, i.why = v1alpha1.RebootNotRequired, i.whenNew
	}
	return Change{What: i.what(), From: from, To: to, Reboot: i.reboot, Why: i.why}
}
