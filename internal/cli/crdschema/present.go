// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package crdschema

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// withRulesFor returns the schema with the CEL rules of those fields only that the values have. The rules of other fields
// have nothing to judge, and compiling all of them takes longer than everything else that a command does. The types stay
// whole, because a rule may ask for fields that are absent.
func withRulesFor(schema *structuralschema.Structural, values []any) *structuralschema.Structural {
	kept := *schema
	if len(values) == 0 {
		kept.XValidations = nil
	}
	if schema.Items != nil {
		kept.Items = withRulesFor(schema.Items, elements(values))
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Structural != nil {
		additional := *schema.AdditionalProperties
		additional.Structural = withRulesFor(additional.Structural, membersOf(values))
		kept.AdditionalProperties = &additional
	}
	if schema.Properties != nil {
		kept.Properties = make(map[string]structuralschema.Structural, len(schema.Properties))
		for name := range schema.Properties {
			property := schema.Properties[name]
			kept.Properties[name] = *withRulesFor(&property, named(values, name))
		}
	}
	return &kept
}

// elements are the elements of those values that are lists.
func elements(values []any) []any {
	var all []any
	for _, value := range values {
		if list, ok := value.([]any); ok {
			all = append(all, list...)
		}
	}
	return all
}

// membersOf are the values of those values that are maps.
func membersOf(values []any) []any {
	var all []any
	for _, value := range values {
		if object, ok := value.(map[string]any); ok {
			for _, member := range object {
				all = append(all, member)
			}
		}
	}
	return all
}

// named are the values under a name in those values that are maps.
func named(values []any, name string) []any {
	var all []any
	for _, value := range values {
		if object, ok := value.(map[string]any); ok {
			if member, found := object[name]; found {
				all = append(all, member)
			}
		}
	}
	return all
}
