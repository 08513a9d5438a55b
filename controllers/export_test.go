// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// InventoryOf lets the suite report the hardware of a machine.
func InventoryOf(tb testing.TB, machine hosttree.Machine) *v1alpha1.Inventory {
	tb.Helper()
	return inventoryOf(tb, machine)
}
