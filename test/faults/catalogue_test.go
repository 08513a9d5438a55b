// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"slices"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// Each check has a fault that makes it fail, and no two rows have one name.
func TestEveryCheckHasAFault(t *testing.T) {
	seen, names := map[v1alpha1.CheckID]bool{}, map[string]bool{}
	for _, f := range faults() {
		if f.unknown == "" {
			seen[f.want] = true
		}
		if names[f.name] {
			t.Errorf("two rows are called %q", f.name)
		}
		names[f.name] = true
	}
	for _, v := range variations() {
		if names[v.name] {
			t.Errorf("two rows are called %q", v.name)
		}
		names[v.name] = true
	}
	for _, check := range verify.Catalogue() {
		if !seen[check.ID] {
			t.Errorf("check %s: no fault makes it fail", check.ID)
		}
	}
}

// The numbers that the harness must not fall below, and every machine is used.
func TestRows(t *testing.T) {
	if got := len(faults()); got < 150 {
		t.Errorf("%d faults, want at least 150", got)
	}
	if got := len(variations()); got < 120 {
		t.Errorf("%d variations, want at least 120", got)
	}
	var used []string
	for _, f := range faults() {
		used = append(used, f.row().machines()...)
	}
	for _, v := range variations() {
		used = append(used, v.row().machines()...)
	}
	for name := range machines() {
		if !slices.Contains(used, name) {
			t.Errorf("no row runs on machine %s", name)
		}
	}
}
