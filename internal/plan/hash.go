// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
)

// hashBytes is how much of the digest identifies a plan: 64 bits, so that even among a million plans two
// are taken for one with a probability below 10^-7.
const hashBytes = 8

// Hash identifies the plan: 16 hexadecimal digits that are equal for equal plans. Neither origins nor
// the derivation count, so that naming a default in the profile changes no plan. The hash of no plan is "".
func (p *NodePlan) Hash() string {
	if p == nil {
		return ""
	}
	// A plan consists of texts, numbers, and what came out of JSON, so writing it cannot fail.
	data, err := json.Marshal(withoutOrigins(reflect.ValueOf(*p)).Interface())
	if err != nil {
		return ""
	}
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:hashBytes])
}

// withoutOrigins copies a value with every Origin and Derivation emptied. Pointers, maps and the sets inside cpus.Set
// hold no origins and are shared with the original.
func withoutOrigins(value reflect.Value) reflect.Value {
	if value.Type() == reflect.TypeFor[Origin]() || value.Type() == reflect.TypeFor[*Derivation]() {
		return reflect.Zero(value.Type())
	}
	switch value.Kind() {
	case reflect.Struct:
		clone := reflect.New(value.Type()).Elem()
		clone.Set(value)
		for i := range value.NumField() {
			if clone.Field(i).CanSet() {
				clone.Field(i).Set(withoutOrigins(value.Field(i)))
			}
		}
		return clone
	case reflect.Slice:
		if value.IsNil() {
			return value
		}
		clone := reflect.MakeSlice(value.Type(), value.Len(), value.Len())
		for i := range value.Len() {
			clone.Index(i).Set(withoutOrigins(value.Index(i)))
		}
		return clone
	default:
		return value
	}
}
