// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubernetes

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/crioconfig"
)

// writeRuntime configures the container runtime. containerd has nothing that is configured by a file for what pods may ask of
// CRI-O, and its containers take their CPUs from the kubelet alone.
func (w *writer) writeRuntime() error {
	const about = "the container runtime"
	runtime, known := w.facts.Software.ContainerRuntime.Get()
	switch {
	case !known:
		w.report(v1alpha1.SeverityMedium, ruleRuntime, about, "Install CRI-O or containerd as a service of systemd.",
			"none is known by its service, so none is configured")
	case runtime == host.CRIO:
		file, err := crioconfig.File(w.plan)
		if err != nil {
			return err
		}
		w.add(operation.PutRuntimeDropIn(file.Path, file.Content))
	default:
		w.reportContainerd(about)
	}
	return nil
}

// reportContainerd says what pods cannot ask of containerd, and what to use instead.
func (w *writer) reportContainerd(about string) {
	w.report(v1alpha1.SeverityLow, ruleRuntime, about,
		"Since 1.33 the kubelet sets no CPU quota for containers with CPUs of their own. Use spec.power for idle states and frequencies.",
		"%s has no handler by which pods ask for CPUs without quota, load balancing or idle states, so there is no RuntimeClass", host.Containerd)
	for _, request := range w.plan.ContainerRuntime.PodRequests {
		if request == plan.RequestInterrupts {
			w.report(v1alpha1.SeverityHigh, ruleRuntime, "spec.interrupts.placement",
				"Set it to Housekeeping, or use CRI-O.",
				"%s does not take interrupts off the CPUs of a pod, so with PerPod they are handled there", host.Containerd)
		}
	}
	if w.plan.CPUs.Isolation == v1alpha1.IsolationPerPod {
		w.report(v1alpha1.SeverityHigh, ruleRuntime, "spec.cpus.isolation",
			"Set it to Static, or use CRI-O.",
			"%s does not take the CPUs of a pod out of the scheduler's load balancing, so with PerPod nothing isolates them", host.Containerd)
	}
}

// hasHandler reports whether the runtime of a host has the handler of latency-critical pods.
func hasHandler(facts *host.Facts) bool { return facts.Software.ContainerRuntime.Value == host.CRIO }
