// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lowlatency-dev/lowlatency-operator/internal/apply"
)

// toUnstructured converts an object for server-side apply: every field that is left in it is one that the
// operator will own, so whatever the Go types print without having been set is removed.
func toUnstructured(object runtime.Object) (*unstructured.Unstructured, error) {
	plain, err := apply.Object(object)
	if err != nil {
		return nil, err
	}
	if spec, ok := plain.Object["spec"].(map[string]any); ok {
		removeUnset(spec, fieldsWithoutOmitempty(plain.GetKind()))
	}
	return plain, nil
}

// fieldsWithoutOmitempty are the fields of a kind's spec that its Go type prints even when they are not set.
func fieldsWithoutOmitempty(kind string) []string {
	switch kind {
	case "MachineConfig":
		return []string{"osImageURL", "baseOSExtensionsContainerImage", "extensions", "fips", "kernelArguments"}
	case "MachineConfigPool":
		return []string{"configuration", "paused"}
	default:
		return nil
	}
}

func removeUnset(fields map[string]any, names []string) {
	for _, name := range names {
		switch value := fields[name].(type) {
		case nil:
			delete(fields, name)
		case map[string]any:
			if len(value) == 0 {
				delete(fields, name)
			}
		case string, bool:
			if value == "" || value == false {
				delete(fields, name)
			}
		}
	}
}
