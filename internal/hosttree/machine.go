// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package hosttree builds trees of /proc, /sys and /etc that describe real classes of machines, for
// tests, demonstrations and benchmarks.
package hosttree

import (
	"errors"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cpus"
)

// Machine is a description of hardware.
type Machine struct {
	// Hostname of the machine.
	Hostname string
}

// Xeon is a dual-socket machine.
func Xeon() Machine { return Machine{} }

// EPYC is a machine with 8 NUMA nodes.
func EPYC() Machine { return Machine{} }

// Arm is an arm64 server.
func Arm() Machine { return Machine{} }

// Write writes the tree of the machine.
func (m Machine) Write(dir string) error { return errors.New("not yet") }

// BootOptions say what the kernel boots with.
type BootOptions struct {
	// CommandLine is the whole kernel command line.
	CommandLine string
	// KernelType is the flavour of the kernel; "" means Default.
	KernelType v1alpha1.KernelType
}

// Boot rewrites the tree as a kernel that boots with these options leaves it.
func Boot(dir string, options BootOptions) error { return errors.New("not yet") }

// MoveIRQ routes an IRQ to CPUs.
func MoveIRQ(dir string, irq int, to cpus.Set) error { return errors.New("not yet") }

// WriteSetting writes a value to a file of the tree.
func WriteSetting(dir, path, value string) error { return errors.New("not yet") }

// FindIRQ returns the first IRQ of a NIC.
func FindIRQ(dir, nicName string) (int, error) { return 0, errors.New("not yet") }
