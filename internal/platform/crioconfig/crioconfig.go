// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package crioconfig writes what a plan asks of CRI-O, on every platform that has it: its file of configuration, and the
// RuntimeClass by which pods ask for the handler in it. It is pure.
package crioconfig

import (
	"fmt"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// Handler is the name of CRI-O's handler for latency-critical pods. CRI-O runs its latency hooks for
// handlers whose name contains high-performance only
// (internal/runtimehandlerhooks/runtime_handler_hooks_linux.go of CRI-O).
const Handler = "high-performance"

// fewestGoThreads is how many threads a Go program runs at once at least in a pod without CPUs of its own. CRI-O tells such
// programs by GOMAXPROCS; otherwise each takes the number of all CPUs that it may use, and wakes as many
// (crio.conf(5), min_injected_gomaxprocs). A CRI-O that does not know the option passes over it.
const fewestGoThreads = 4

// File configures CRI-O: a handler for latency-critical pods, and pause containers on housekeeping
// CPUs, and in a cluster with CPU partitioning the pods of the platform, too. Its name is behind those of the installer's and
// users' files about these pods (01-workload-pinning-default.conf, 01-workload-partitioning), of which the last counts. A request of pods for which CRI-O has no annotation is an error.
func File(p *plan.NodePlan) (plan.File, error) {
	runtime := p.ContainerRuntime
	var b strings.Builder
	fmt.Fprintf(&b, "[crio.runtime]\ninfra_ctr_cpuset = %q\n", runtime.InfrastructureCPUs)
	if !p.CPUs.Shared.IsEmpty() {
		fmt.Fprintf(&b, "shared_cpuset = %q\n", p.CPUs.Shared)
	}
	fmt.Fprintf(&b, "min_injected_gomaxprocs = %d\n", fewestGoThreads)
	fmt.Fprintf(&b, "\n[crio.runtime.runtimes.%s]\ninherit_default_runtime = true\n", Handler)
	// Otherwise crun makes a second control group below that of the container's systemd scope, and whoever sets the CPUs of
	// the container has to set both (crun(1), run.oci.systemd.subgroup).
	b.WriteString("default_annotations = { \"run.oci.systemd.subgroup\" = \"\" }\n")
	if runtime.ExecPlacement == v1alpha1.ExecFirstCPU {
		b.WriteString("exec_cpu_affinity = \"first\"\n")
	}
	b.WriteString("allowed_annotations = [\n")
	for _, request := range runtime.PodRequests {
		annotation, known := runtimeAnnotations()[request]
		if !known {
			return plan.File{}, fmt.Errorf("CRI-O has no annotation for the request %q of pods", request)
		}
		fmt.Fprintf(&b, "  %q,\n", annotation)
	}
	b.WriteString("]\n")
	if management := p.ManagementCPUs(); !management.IsEmpty() {
		// CRI-O's parser wants cpushares; the kubelet annotates the pods with their own (openshift/kubernetes, pkg/kubelet/managed).
		fmt.Fprintf(&b, "\n[crio.runtime.workloads.management]\nactivation_annotation = \"target.workload.openshift.io/management\"\n"+
			"annotation_prefix = \"resources.workload.openshift.io\"\nresources = { \"cpushares\" = 0, \"cpuset\" = %q }\n", management)
	}
	return plan.File{
		Path:    "/etc/crio/crio.conf.d/99-lowlatency-" + p.Profile + ".conf",
		Mode:    0o644,
		Content: b.String(),
		Origin:  runtime.Origin,
	}, nil
}

// runtimeAnnotations are the annotations by which pods ask CRI-O (pkg/annotations/v2 of CRI-O). CRI-O takes the CPUs of
// a pod out of irqbalance's reach and puts them back at its end (setIRQLoadBalancing).
func runtimeAnnotations() map[plan.PodRequest]string {
	return map[plan.PodRequest]string{
		plan.RequestIdleStates:        "cpu-c-states.crio.io",
		plan.RequestFrequencyGovernor: "cpu-freq-governor.crio.io",
		plan.RequestLoadBalancing:     "cpu-load-balancing.crio.io",
		plan.RequestCPUQuota:          "cpu-quota.crio.io",
		plan.RequestSharedCPUs:        "cpu-shared.crio.io",
		plan.RequestInterrupts:        "irq-load-balancing.crio.io",
	}
}
