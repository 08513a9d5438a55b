// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package kubernetes spells a plan for an ordinary host of Kubernetes: as operations on files, units and the kernel's command
// line, which a guard on the host carries out and takes back. What is written depends on what the host has: its kubelet, its
// container runtime, TuneD, its boot loader. It is pure.
package kubernetes

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// Writing is what is written on a host for its plan.
type Writing struct {
	// Operations in the order in which they are carried out; none where a finding is Critical.
	Operations []operation.Operation
	// Unchecked are the operations where nothing stands in their way but that nobody has read the kubelet's present configuration: to be
	// shown, and not to be carried out.
	Unchecked []operation.Operation
	// KubeletConfiguration is what the kubelet makes of its file and all drop-ins, as JSON; "" where it is not known.
	KubeletConfiguration string
	// Findings say what the host cannot have, or what has to be done first, in the order in which they were found.
	Findings []plan.Finding
}

// Refused reports whether nothing may be written on the host.
func (w Writing) Refused() bool { return w.refusals() > 0 }

// refusals is how many findings keep everything from being written.
func (w Writing) refusals() int {
	count := 0
	for _, f := range w.Findings {
		if f.Severity == v1alpha1.SeverityCritical {
			count++
		}
	}
	return count
}

// packetFilterUnit deletes all rules of the packet filter. It runs at boot alone: on a host with pods it would cut their
// services off.
const packetFilterUnit = "lowlatency-flush-packet-filter.service"

// stateNow is what becomes of a unit on the running host, which starts it at boot; false for nothing. A unit that reserves hugepages sets
// how many there are, whatever there was before: with another number it runs again, and so does the kubelet, which counts them when it
// starts.
func (w *writer) stateNow(unit string) (operation.State, bool) {
	reserves := func(pages plan.HugepagePlan) bool {
		return pages.Method == plan.ByUnit && pages.UnitName() == unit && plan.RebootForHugepages(pages.SizeKibibytes) == v1alpha1.RebootNotRequired
	}
	switch {
	case unit == packetFilterUnit:
		return "", false
	case slices.ContainsFunc(w.plan.Hugepages, reserves):
		return operation.Restarted, true
	default:
		return operation.Started, true
	}
}

// writer collects what is written on one host.
type writer struct {
	Writing

	plan  *plan.NodePlan
	facts *host.Facts
	// unread is how many of the findings that refuse say that something could not be read.
	unread int
}

// Write spells a plan for a host, of which ReadInstallation has read the facts. The error says that the plan itself cannot be
// spelled, on any host.
func Write(p *plan.NodePlan, facts *host.Facts) (Writing, error) {
	if p == nil {
		return Writing{}, errors.New("writing without a plan")
	}
	w := &writer{plan: p, facts: facts}
	for _, part := range []func() error{
		w.checkKernel, w.writeArguments, w.writeFiles, w.writeUnits, w.writeSystem, w.writeAffinity, w.writeTuning, w.writeRuntime, w.writeKubelet,
	} {
		if err := part(); err != nil {
			return Writing{}, fmt.Errorf("writing the plan of profile %q: %w", p.Profile, err)
		}
	}
	w.Operations = operation.Ordered(w.Operations)
	if err := operation.Validate(w.Operations); err != nil {
		return Writing{}, fmt.Errorf("writing the plan of profile %q: %w", p.Profile, err)
	}
	if w.Refused() {
		if w.refusals() == w.unread {
			w.Unchecked = w.Operations
		}
		w.Operations = nil
	}
	return w.Writing, nil
}

func (w *writer) add(operations ...operation.Operation) {
	w.Operations = append(w.Operations, operations...)
}

// report adds a finding about a part of the host.
func (w *writer) report(severity v1alpha1.Severity, rule, about, remedy, format string, values ...any) {
	w.Findings = append(w.Findings, plan.Finding{
		Rule: rule, Severity: severity, Field: about, Message: fmt.Sprintf(format, values...) + ".", Remedy: remedy,
	})
}

// writeFiles puts the planned files on the host.
func (w *writer) writeFiles() error {
	for _, file := range w.plan.Files {
		w.add(operation.PutFile(file.Path, file.Mode, file.Content))
	}
	return nil
}

// writeUnits puts the planned units on the host, masks those that must not start, and starts at once what starts at
// boot.
func (w *writer) writeUnits() error {
	for _, unit := range w.plan.Units {
		w.writeUnit(unit)
	}
	return nil
}

func (w *writer) writeUnit(unit plan.Unit) {
	unit.Content = w.startedAtBoot(unit.Content)
	switch {
	case unit.Masked:
		w.add(operation.MaskUnit(unit.Name), operation.SetService(unit.Name, operation.Stopped))
	case unit.Content != "" && unit.Enabled:
		w.add(operation.PutUnit(unit.Name, unit.Content, operation.Enabled))
		if state, now := w.stateNow(unit.Name); now {
			w.add(operation.SetService(unit.Name, state))
		}
	case unit.Content != "":
		w.add(operation.PutUnit(unit.Name, unit.Content, operation.Present))
	}
	for _, name := range slices.Sorted(maps.Keys(unit.DropIns)) {
		w.add(operation.PutDropIn(unit.Name, name, unit.DropIns[name]))
	}
	if len(unit.DropIns) > 0 && unit.Content == "" && !unit.Masked {
		w.add(operation.SetService(unit.Name, operation.Restarted))
	}
}

// startedAtBoot has the boot start what a kubelet would require, on a host that has none: nobody else would. It stays ordered before a
// kubelet, for one that comes later, which may be that of any distribution: plans name that of packages alone.
func (w *writer) startedAtBoot(unit string) string {
	if !w.facts.Software.NoKubelet.Value {
		return unit
	}
	unit = strings.ReplaceAll(unit, "\nBefore="+kubeletService, "\nBefore="+strings.Join(host.KubeletUnits(), " "))
	return strings.ReplaceAll(unit, "RequiredBy="+kubeletService, "WantedBy=multi-user.target")
}

// writeSystem unloads modules now; a file keeps them from coming back. What stops services is among the units.
func (w *writer) writeSystem() error {
	for _, module := range w.plan.UnloadModules {
		w.add(operation.SetModule(module.Name, operation.Unloaded))
	}
	return nil
}
