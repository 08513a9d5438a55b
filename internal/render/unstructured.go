// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package render

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/internal/apply"
)

// YAML prints objects as one stream of documents with keys in alphabetical order.
func YAML(objects []*unstructured.Unstructured) ([]byte, error) {
	var out bytes.Buffer
	for _, object := range objects {
		document, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("printing %s %q: %w", object.GetKind(), object.GetName(), err)
		}
		out.WriteString("---\n")
		out.Write(document)
	}
	return out.Bytes(), nil
}

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
