// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"errors"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// FromFacts derives the topology from what a host says.
func FromFacts(*host.Facts) (*Topology, error) { return nil, errors.New("not yet") }

// FromInventory rebuilds the topology from a reported inventory.
func FromInventory(*v1alpha1.Inventory) (*Topology, error) { return nil, errors.New("not yet") }

// Inventory reports a topology.
func Inventory(*host.Facts, *Topology) *v1alpha1.Inventory { return nil }
