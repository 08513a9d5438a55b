// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubernetes

import (
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// The rules of an ordinary host. Each names one thing that a plan needs and a host may not have.
const (
	ruleKernel        = "host.kernel"
	ruleBootLoader    = "host.boot-loader"
	ruleCommandLine   = "host.command-line"
	ruleTuneD         = "host.tuned"
	ruleRuntime       = "host.container-runtime"
	ruleKubelet       = "host.kubelet"
	ruleKubeletFlags  = "host.kubelet-flags"
	ruleKubeletMerged = "host.kubelet-configuration"
)

// checkKernel: kernels are the packages of the distribution, which are not installed here.
func (w *writer) checkKernel() error {
	wanted, running := w.plan.Kernel, w.facts.Kernel
	// A fact that is absent has the value of neither.
	if wanted.Type == v1alpha1.KernelRealTime && !running.RealTime.Value {
		w.report(v1alpha1.SeverityCritical, ruleKernel, "spec.kernel.type",
			"Install the distribution's real-time kernel, make it the default and boot it, or set spec.kernel.type to Default.",
			"the plan needs a real-time kernel, and the running one, %s, is none", shown(running.Release))
	}
	const large = 64 << 10
	if wanted.PageSize == v1alpha1.PageSize64Ki && running.PageSizeBytes.Value != large {
		w.report(v1alpha1.SeverityCritical, ruleKernel, "spec.memory.kernelPageSize",
			"Install the distribution's kernel with 64 KiB pages, make it the default and boot it, or leave the field out.",
			"the plan needs a kernel with 64 KiB pages, and the running one, %s, is none", shown(running.Release))
	}
	return nil
}

func shown(fact host.Fact[string]) string {
	if text, known := fact.Get(); known {
		return text
	}
	return "unknown"
}

// writeArguments adds the planned arguments to the command line.
func (w *writer) writeArguments() error {
	if len(w.plan.KernelArguments) == 0 {
		return nil
	}
	texts := make([]string, 0, len(w.plan.KernelArguments))
	for _, argument := range w.plan.KernelArguments {
		texts = append(texts, argument.Text)
	}
	arguments := operation.AddKernelArguments(texts...)
	if w.plan.Kernel.BootFallback == v1alpha1.BootFallbackByHandAccepted {
		arguments.Fallback = operation.ByHandAccepted
	}
	w.add(arguments)
	w.checkBootLoader()
	w.checkCommandLine()
	return nil
}

// checkBootLoader: where a line can be tried once before it stays, it is written; elsewhere somebody has to do it.
func (w *writer) checkBootLoader() {
	loader, known := w.facts.Software.BootLoader.Get()
	byHand := map[host.BootLoader]string{
		host.Extlinux:    "Add the arguments to the line append of the entries in /boot/extlinux/extlinux.conf by hand, and boot.",
		host.RaspberryPi: "Add the arguments to the only line of /boot/firmware/cmdline.txt by hand, and boot.",
		host.OSTree:      "Add the arguments with \"rpm-ostree kargs --append-if-missing=ARGUMENT\", and boot; \"rpm-ostree rollback\" and another boot bring the former ones back.",
	}
	switch {
	case !known:
		w.report(v1alpha1.SeverityHigh, ruleBootLoader, "the boot loader",
			"Add the arguments to the kernel's command line by the means of the host.", "it is not known by its files")
	case byHand[loader] != "":
		w.report(v1alpha1.SeverityHigh, ruleBootLoader, "the boot loader", byHand[loader],
			"%s cannot try a command line once and fall back, so its files are not written", loader)
	}
}

// checkCommandLine refuses a host on whose command line somebody else says something about what the plan decides: who
// removes the plan could not tell whose it is, and the kernel adds some of these up. Behind our own marker it is ours.
func (w *writer) checkCommandLine() {
	text, known := w.facts.Kernel.CommandLine.Get()
	line, err := cmdline.Parse(text)
	if !known || err != nil || operation.MarkerOf(strings.Fields(text)) != "" {
		return
	}
	for _, change := range plan.ArgumentChanges(line, plan.MachineOf(w.facts, w.plan), w.plan) {
		if change.From == "" || w.isImplied(line, change) {
			continue
		}
		w.report(v1alpha1.SeverityCritical, ruleCommandLine, "the kernel's command line",
			"Remove it where it was set, and boot, so that the arguments have one writer.",
			"it already has %s, where the plan has %s", change.From, orNothing(change.To))
	}
}

// isImplied tells a change whose present value nobody wrote: other arguments bring it with them.
func (w *writer) isImplied(line cmdline.Line, change plan.Change) bool {
	words := strings.Fields(change.From)
	return !slices.ContainsFunc(words, line.Contains)
}

func orNothing(text string) string {
	if text == "" {
		return "nothing of the kind"
	}
	return text
}
