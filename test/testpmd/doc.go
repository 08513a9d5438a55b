// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package testpmd lets the real testpmd of DPDK send and pass on messages between network namespaces of this machine, and compares every count that is read
// from what it printed with those of the kernel: make test-testpmd. It needs root and Debian's dpdk-dev, iproute2 and coreutils, no NIC and no hugepage.
package testpmd
