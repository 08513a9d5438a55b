// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/kubeletfiles"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
)

const (
	kernelPanic    = "kernel.panic"
	panicParameter = "panic="
)

// protectedParameters are the values of the kernel without which a kubelet with protectKernelDefaults does not start, and which any other sets itself
// (setupKernelTunables in pkg/kubelet/cm of Kubernetes).
func protectedParameters() map[string]string {
	return map[string]string{
		"kernel.keys.root_maxbytes": "25000000",
		"kernel.keys.root_maxkeys":  "1000000",
		kernelPanic:                 "10",
		"kernel.panic_on_oops":      "1",
		"vm.overcommit_memory":      "1",
		"vm.panic_on_oom":           "0",
	}
}

// checkProtected refuses a plan that sets otherwise what the kubelet wants to find. What the host has by itself, it has with the kubelet that runs.
func (w *writer) checkProtected(merged string) error {
	var configuration map[string]any
	if err := json.Unmarshal([]byte(merged), &configuration); err != nil {
		return fmt.Errorf("reading the merged kubelet configuration: %w", err)
	}
	if !kubeletfiles.ProtectsKernel(w.facts.Kubelet.Flags.Value, configuration) {
		return nil
	}
	for _, argument := range w.plan.KernelArguments {
		if value, found := strings.CutPrefix(argument.Text, panicParameter); found && !isProtected(kernelPanic, value) {
			w.reportProtected("spec.kernel.additionalArguments", argument.Text, panicParameter+protectedParameters()[kernelPanic])
		}
	}
	set := map[string]string{}
	for _, sysctl := range w.plan.Sysctls {
		set[sysctl.Name] = sysctl.Value
	}
	for _, name := range slices.Sorted(maps.Keys(protectedParameters())) {
		if value, found := set[name]; found && !isProtected(name, value) {
			w.reportProtected("spec.system.kernelParameters", name+"="+value, name+"="+protectedParameters()[name])
		}
	}
	return nil
}

// isProtected reports whether a value of a parameter is the one that the kubelet wants to find, in whichever notation of the kernel.
func isProtected(name, value string) bool {
	return setting.Same(host.SysctlPath(name), value, protectedParameters()[name])
}

func (w *writer) reportProtected(field, has, wanted string) {
	w.report(v1alpha1.SeverityCritical, ruleKubeletMerged, field,
		"Leave it out or set "+wanted+", or take protectKernelDefaults out of the kubelet's configuration, and --protect-kernel-defaults out of its flags.",
		"the plan has %s, and a kubelet with protectKernelDefaults starts with %s only", has, wanted)
}
