// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package pciname names PCI devices for people, from the PCI ID database (pci.ids) that the module u-root carries: nothing is asked of a
// network or of the machine. Names are for text; programs compare ids. The module builds for Linux alone, so elsewhere devices have
// their ids and no names.
package pciname
