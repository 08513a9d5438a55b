// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package crdschema

import (
	"maps"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/nearname"
)

// nearName is the field that was probably meant by an unknown one, whose path has the form spec.network.nics[0].vendr; ""
// when none is near.
func nearName(schema *structuralschema.Structural, path string) string {
	elements := strings.Split(path, ".")
	last := len(elements) - 1
	for _, element := range elements[:last] {
		name, index, _ := strings.Cut(element, "[")
		if schema = property(schema, name); schema == nil {
			return ""
		}
		for range strings.Count("["+index, "]") {
			if schema.Items == nil {
				return ""
			}
			schema = schema.Items
		}
	}
	return nearname.Of(elements[last], slices.Sorted(maps.Keys(schema.Properties)))
}

// property is a field of an object, or the value of a map.
func property(schema *structuralschema.Structural, name string) *structuralschema.Structural {
	if found, ok := schema.Properties[name]; ok {
		return &found
	}
	if schema.AdditionalProperties != nil {
		return schema.AdditionalProperties.Structural
	}
	return nil
}
