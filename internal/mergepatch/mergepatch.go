// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package mergepatch merges decoded JSON documents by the rules of JSON merge patches (RFC 7386), as the kubelet merges the
// files of its folder of configuration. It is pure.
package mergepatch

import "maps"

// Merge returns the document with the patch over it: objects are merged name by name, null removes a name, and anything else
// takes the place of what was there, lists as a whole. Neither argument is changed.
func Merge(document, patch map[string]any) map[string]any {
	merged := make(map[string]any, len(document)+len(patch))
	maps.Copy(merged, document)
	for name, value := range patch {
		inner, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(merged, name)
		case isObject:
			below, _ := merged[name].(map[string]any)
			merged[name] = Merge(below, inner)
		default:
			merged[name] = value
		}
	}
	return merged
}
