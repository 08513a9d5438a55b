// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package crdschema

import (
	"maps"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
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
	return nearest(elements[last], slices.Sorted(maps.Keys(schema.Properties)))
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

// nearest is the first name with the fewest changes; "" when more than a third of the letters would change.
func nearest(text string, names []string) string {
	best, fewest := "", len(text)/3+1
	for _, name := range names {
		if changes := distance(strings.ToLower(text), strings.ToLower(name)); changes < fewest {
			best, fewest = name, changes
		}
	}
	return best
}

// distance is how many letters must be put in, taken out or replaced to make one text of the other (Levenshtein). Longer
// texts than any field has are far from all.
func distance(a, b string) int {
	const longest = 128
	if len(a) > longest || len(b) > longest {
		return longest
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
