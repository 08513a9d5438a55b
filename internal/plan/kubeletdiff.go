// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// sameKubeletValue compares two values of a field of the kubelet's configuration, written by kubeletValue: lists of CPUs by
// the CPUs, amounts by the amount.
func sameKubeletValue(field string) func(a, b string) bool {
	if field == "reservedSystemCPUs" {
		return func(a, b string) bool {
			left, leftErr := cpus.Parse(a)
			right, rightErr := cpus.Parse(b)
			return leftErr == nil && rightErr == nil && left.Equal(right)
		}
	}
	return func(a, b string) bool {
		var left, right any
		if json.Unmarshal([]byte(a), &left) != nil || json.Unmarshal([]byte(b), &right) != nil {
			return a == b
		}
		return sameAmounts(left, right)
	}
}

// sameAmounts compares values in which texts may be amounts. The order of lists, such as the reservations of NUMA nodes,
// does not count.
func sameAmounts(a, b any) bool {
	switch left := a.(type) {
	case map[string]any:
		right, ok := b.(map[string]any)
		return ok && maps.EqualFunc(left, right, sameAmounts)
	case []any:
		right, ok := b.([]any)
		return ok && len(left) == len(right) && !slices.ContainsFunc(left, func(one any) bool {
			return !slices.ContainsFunc(right, func(other any) bool { return sameAmounts(one, other) })
		})
	case string:
		right, ok := b.(string)
		return ok && (left == right || sameQuantity(left, right))
	default:
		return reflect.DeepEqual(a, b)
	}
}

func sameQuantity(a, b string) bool {
	left, leftErr := resource.ParseQuantity(a)
	right, rightErr := resource.ParseQuantity(b)
	return leftErr == nil && rightErr == nil && left.Cmp(right) == 0
}
