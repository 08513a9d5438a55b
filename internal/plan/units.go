// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"io"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// kubeletUnit is the service that no node runs pods without.
const kubeletUnit = "kubelet.service"

// beforePods are the units before which a host has to be ready: the first pod starts with them. systemd passes over the names of units that a
// host does not have. Those of other distributions are added where a plan is written for an ordinary host, and are in no plan: they would
// change its hash.
func beforePods() []string { return append([]string{kubeletUnit}, host.RuntimeUnits()...) }

// addFile and addUnit put something on the host; planHost sorts both lists.
func (p *planner) addFile(f File) { p.plan.Files = append(p.plan.Files, f) }

func (p *planner) addUnit(u Unit) { p.plan.Units = append(p.plan.Units, u) }

// option is one line of a unit.
func option(section, name, value string) *unit.UnitOption {
	return unit.NewUnitOption(section, name, value)
}

// serialize writes a unit or a drop-in.
func serialize(options ...*unit.UnitOption) string {
	var b strings.Builder
	// Reading from memory and writing to memory cannot fail.
	_, _ = io.Copy(&b, unit.Serialize(options))
	return b.String()
}

// oneshot is a unit that runs commands at boot before the kubelet starts.
type oneshot struct {
	description string
	// commands run one after the other.
	commands []string
	// required units make the kubelet's start fail with them; others only come before it.
	required bool
	// after and before name further units.
	after, before []string
	slice         string
}

// content writes the unit. Default dependencies stay, so that it runs after sysinit.target.
func (o oneshot) content() string {
	before := append(beforePods(), o.before...)
	options := []*unit.UnitOption{
		option("Unit", "Description", o.description),
		option("Unit", "Before", strings.Join(before, " ")),
	}
	if len(o.after) > 0 {
		options = append(options, option("Unit", "After", strings.Join(o.after, " ")))
	}
	options = append(options,
		option("Service", "Type", "oneshot"),
		option("Service", "RemainAfterExit", "true"))
	for _, command := range o.commands {
		options = append(options, option("Service", "ExecStart", command))
	}
	if o.slice != "" {
		options = append(options, option("Service", "Slice", o.slice))
	}
	if o.required {
		return serialize(append(options, option("Install", "RequiredBy", kubeletUnit))...)
	}
	return serialize(append(options, option("Install", "WantedBy", "multi-user.target"))...)
}
