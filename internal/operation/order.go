// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package operation

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// hashBytes is as much of the digest as in the hash of a plan.
const hashBytes = 8

// Ordered are the operations in the order in which they are carried out, whatever the order they came in: by kind, then by
// path and name. Sysctls and files of the kernel keep the order they came in, because one may allow the next.
func Ordered(operations []Operation) []Operation {
	ordered := slices.Clone(operations)
	kinds := Kinds()
	slices.SortStableFunc(ordered, func(a, b Operation) int {
		if order := cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)); order != 0 {
			return order
		}
		if a.Kind == Sysctl || a.Kind == Sysfs {
			return 0
		}
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Name, b.Name))
	})
	return ordered
}

// Hash identifies operations: 16 hexadecimal digits, equal for equal operations in any order that Ordered makes the same.
func Hash(operations []Operation) string {
	// Operations consist of texts and numbers, so writing them cannot fail.
	data, err := json.Marshal(Ordered(operations))
	if err != nil {
		return ""
	}
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:hashBytes])
}

// Arguments are those that the operations add to the kernel's command line, the marker among them.
func Arguments(operations []Operation) []string {
	var arguments []string
	for i := range operations {
		arguments = append(arguments, operations[i].Arguments...)
	}
	return arguments
}
