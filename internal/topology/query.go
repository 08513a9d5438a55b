// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cpus"
)

// Signature identifies the layout.
func (t *Topology) Signature() string { return "" }

// CoresOf returns the cores of a NUMA node.
func (t *Topology) CoresOf(numaNode int) []Core { return nil }

// SiblingsOf returns the CPUs of the core that holds the CPU.
func (t *Topology) SiblingsOf(cpu int) cpus.Set { return cpus.Set{} }

// NUMANodeOf returns the NUMA node of a CPU, -1 when unknown.
func (t *Topology) NUMANodeOf(cpu int) int { return -1 }

// L3Of returns the CPUs that share the L3 cache with the CPU.
func (t *Topology) L3Of(cpu int) cpus.Set { return cpus.Set{} }

// NUMANode returns the NUMA node with the number.
func (t *Topology) NUMANode(id int) (*NUMANode, bool) { return nil, false }

// PhysicalNICs returns the NICs that are no virtual functions.
func (t *Topology) PhysicalNICs() []NIC { return nil }

// HasNUMA tells whether the host has more than one NUMA node.
func (t *Topology) HasNUMA() bool { return false }

// MatchNICs returns the NICs that any of the selectors matches.
func (t *Topology) MatchNICs(selectors []v1alpha1.NICSelector) []NIC { return nil }
