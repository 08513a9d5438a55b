// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package platform

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Difference says how an object of the API server differs from the one that is to be applied.
type Difference int

const (
	// Same means that applying would change nothing.
	Same Difference = iota
	// MetadataDiffers means that only labels, annotations or owners differ.
	MetadataDiffers
	// ContentDiffers means that something else differs, or that the object does not exist.
	ContentDiffers
)

// Compare returns what applying the desired object would change. Fields that the desired object does not have
// belong to somebody else and do not count, unless an annotation or label differs, too: then a field may have
// been dropped since the last time, and applying would remove it.
func Compare(live, desired *unstructured.Unstructured) Difference {
	if live == nil {
		return ContentDiffers
	}
	sameMetadata := contains(live.Object["metadata"], desired.Object["metadata"])
	for key, want := range desired.Object {
		if key == "metadata" {
			continue
		}
		if !contains(live.Object[key], want) {
			return ContentDiffers
		}
		if !sameMetadata && !contains(want, live.Object[key]) {
			return ContentDiffers
		}
	}
	if !sameMetadata {
		return MetadataDiffers
	}
	return Same
}

// contains reports whether the live value has everything that the wanted value has. Lists are compared as a
// whole, because the lists of the kinds that the operator applies are atomic.
func contains(live, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		fields, ok := live.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range want {
			if !contains(fields[key], value) {
				return false
			}
		}
		return true
	case []any:
		elements, ok := live.([]any)
		return ok && slices.EqualFunc(elements, want, contains)
	default:
		return live == want || sameNumber(live, want)
	}
}

// sameNumber compares numbers of different Go types: what was decoded from JSON is int64 or float64.
func sameNumber(a, b any) bool {
	return isNumber(a) && isNumber(b) && asText(a) == asText(b)
}

func isNumber(value any) bool {
	switch value.(type) {
	case int, int32, int64, float32, float64, json.Number:
		return true
	default:
		return false
	}
}

func asText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}
