// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"fmt"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// RuntimeHandler is the name of the container runtime's handler for latency-critical pods. CRI-O runs its
// per-pod tuning for handlers whose name contains this word
// (internal/runtimehandlerhooks/runtime_handler_hooks_linux.go of CRI-O).
const RuntimeHandler = "high-performance"

// runtimeFile configures CRI-O: a handler for latency-critical pods, and pause containers on housekeeping
// CPUs.
func (p *planner) runtimeFile() {
	c := p.plan.CPUs
	var b strings.Builder
	fmt.Fprintf(&b, "[crio.runtime]\ninfra_ctr_cpuset = %q\n", c.Housekeeping)
	if !c.Shared.IsEmpty() {
		fmt.Fprintf(&b, "shared_cpuset = %q\n", c.Shared)
	}
	fmt.Fprintf(&b, "\n[crio.runtime.runtimes.%s]\ninherit_default_runtime = true\n", RuntimeHandler)
	if p.spec.ContainerRuntime.ExecPlacement == v1alpha1.ExecFirstCPU {
		b.WriteString("exec_cpu_affinity = \"first\"\n")
	}
	b.WriteString("allowed_annotations = [\n")
	for _, annotation := range p.runtimeAnnotations() {
		fmt.Fprintf(&b, "  %q,\n", annotation)
	}
	b.WriteString("]\n")
	p.addFile(File{
		Path:    "/etc/crio/crio.conf.d/99-lowlatency-" + p.plan.Profile + ".conf",
		Mode:    0o644,
		Content: b.String(),
		Origin:  p.origin("spec.containerRuntime.execPlacement"),
	})
}

// runtimeAnnotations are what pods may ask of CRI-O (pkg/annotations/v2 of CRI-O). irq-load-balancing is
// among them only when interrupts follow pods: at the end of such a pod CRI-O puts its CPUs back into the
// default interrupt affinity and into irqbalance's reach, wherever they came from (setIRQLoadBalancing).
func (p *planner) runtimeAnnotations() []string {
	annotations := []string{
		"cpu-c-states.crio.io",
		"cpu-freq-governor.crio.io",
		"cpu-load-balancing.crio.io",
		"cpu-quota.crio.io",
	}
	if !p.plan.CPUs.Shared.IsEmpty() {
		annotations = append(annotations, "cpu-shared.crio.io")
	}
	if p.spec.Interrupts.Placement == v1alpha1.InterruptsPerPod {
		annotations = append(annotations, "irq-load-balancing.crio.io")
	}
	return annotations
}
