// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/tunedprofile"
)

const (
	// parentProfile is what OpenShift gives every node without a performance profile.
	parentProfile = "openshift-node"
	// tunedPriority is before the Node Tuning Operator's own profiles, 20 for those of PerformanceProfiles and 30 and
	// 40 for its defaults; a smaller number goes first.
	tunedPriority = 15
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
	profile, err := tunedprofile.Text(in.Plan, parentProfile)
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
