// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

const (
	// parentProfile is what OpenShift gives every node without a performance profile.
	parentProfile = "openshift-node"
	// tunedPriority is before the Node Tuning Operator's own profiles, 20 for those of PerformanceProfiles and 30 and
	// 40 for its defaults; a smaller number goes first.
	tunedPriority = 15
	// transparentHugepagesFile has an option of its own in TuneD.
	transparentHugepagesFile = "/sys/kernel/mm/transparent_hugepage/enabled"
)

// TunedGroupVersionKind is the kind of the Node Tuning Operator's Tuned object.
func TunedGroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "tuned.openshift.io", Version: "v1", Kind: "Tuned"}
}

// Tuned carries everything that takes effect on the running system. Its TuneD profile includes openshift-node
// alone, states every other setting itself, and has no bootloader section, so that kernel arguments have one
// writer. No published Go module has the type, hence the untyped result.
func Tuned(in Input) (*unstructured.Unstructured, error) {
	in, err := in.checked(Input.checkPool)
	if err != nil {
		return nil, err
	}
	name := TunedName(in.MachineConfigPool.Name)
	profile, err := tunedProfile(in.Plan)
	if err != nil {
		return nil, fmt.Errorf("rendering Tuned for machine config pool %q: %w", in.MachineConfigPool.Name, err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"profile": []any{map[string]any{"name": name, "data": profile}},
			"recommend": []any{map[string]any{
				"profile":             name,
				"priority":            int64(tunedPriority),
				"machineConfigLabels": untyped(in.MachineConfigPool.machineConfigLabels()),
			}},
		},
	}}
	metadata := in.metadata(name, "tuned")
	object.SetGroupVersionKind(TunedGroupVersionKind())
	object.SetName(name)
	object.SetNamespace(TunedNamespace)
	object.SetLabels(metadata.Labels)
	object.SetAnnotations(metadata.Annotations)
	return object, nil
}

func untyped(labels map[string]string) map[string]any {
	out := make(map[string]any, len(labels))
	for key, value := range labels {
		out[key] = value
	}
	return out
}

// tunedProfile is the text of the TuneD profile of a plan.
func tunedProfile(p *plan.NodePlan) (string, error) {
	main := section{name: "main"}
	main.set("summary", "Low-latency node of profile "+p.Profile)
	main.set("include", parentProfile)
	network, err := networkSection(p.Network)
	if err != nil {
		return "", err
	}
	return printProfile([]section{
		main, sysctlSection(p.Sysctls), sysfsSection(p.Sysfs), memorySection(p.Sysfs), cpuSection(p),
		irqbalanceSection(), schedulerSection(), serviceSection(p.Units), network,
	})
}

func sysctlSection(sysctls []plan.Setting) section {
	s := section{name: "sysctl"}
	for _, setting := range sysctls {
		s.set(setting.Name, setting.Value)
	}
	return s
}

func sysfsSection(settings []plan.Setting) section {
	s := section{name: "sysfs"}
	for _, setting := range settings {
		if setting.Name != transparentHugepagesFile {
			s.set(setting.Name, setting.Value)
		}
	}
	return s
}

// memorySection sets transparent hugepages by TuneD's own option, so that a parent profile that does the same has
// one value and not two writers.
func memorySection(settings []plan.Setting) section {
	s := section{name: "vm"}
	for _, setting := range settings {
		if setting.Name == transparentHugepagesFile {
			s.set("transparent_hugepages", setting.Value)
		}
	}
	return s
}

// cpuSection replaces that of the parent profile, which would set the governor even where the plan keeps it.
func cpuSection(p *plan.NodePlan) section {
	s := section{name: "cpu"}
	if p.Power.IdleStates == v1alpha1.IdleShallowByQoS {
		s.set("force_latency", shallowLatency(p.Architecture))
	}
	if p.Power.Governor == v1alpha1.GovernorPerformance {
		s.set("governor", "performance")
	}
	if p.Power.Governor == v1alpha1.GovernorPerformance && p.Vendor == "Intel" {
		s.set("energy_perf_bias", "performance")
		s.set("min_perf_pct", "100")
	}
	if len(s.options) == 0 {
		s.set("enabled", "false")
		return s
	}
	s.set("replace", "true")
	return s
}

// shallowLatency is the latency request that allows the shallowest real idle state, or 3 microseconds where the
// kernel lists none. On x86 state 0 is polling and state 1 is C1; on arm64 state 0 is WFI.
func shallowLatency(architecture string) string {
	if architecture == "arm64" {
		return "cstate.id:0|3"
	}
	return "cstate.id:1|3"
}

// irqbalanceSection switches the plugin off, which a parent profile may switch on. The plan bans CPUs by a drop-in of
// irqbalance.service, while the plugin writes /etc/sysconfig/irqbalance, as CRI-O does for each pod that asks for
// quiet CPUs: with TuneD as a second writer, a restart of it would take back what CRI-O wrote.
func irqbalanceSection() section {
	s := section{name: "irqbalance"}
	s.set("enabled", "false")
	return s
}

// schedulerSection keeps the plugin, which the parent profile switches on, from doing what it does by default:
// watching every new process through perf events, which costs CPU time, and writing interrupt affinities.
func schedulerSection() section {
	s := section{name: "scheduler"}
	s.set("runtime", "0")
	s.set("irq_process", "false")
	s.set("default_irq_smp_affinity", "ignore")
	return s
}

// serviceSection stops at once what the MachineConfig masks from the next boot on.
func serviceSection(units []plan.Unit) section {
	s := section{name: "service"}
	for _, unit := range units {
		if unit.Masked {
			s.set("service."+unit.Name, "stop")
		}
	}
	return s
}

// networkSection sets the number of queues in the parent profile's own section, since TuneD gives each NIC to one
// section only.
func networkSection(network plan.NetworkPlan) (section, error) {
	s := section{name: "net"}
	if network.Queues == 0 {
		return s, nil
	}
	if len(network.NICs) > 0 {
		expression, err := udevExpression(network.NICs)
		if err != nil {
			return s, err
		}
		s.set("devices_udev_regex", expression)
	}
	s.set("channels", fmt.Sprintf("combined %d", network.Queues))
	return s, nil
}
