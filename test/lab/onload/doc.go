// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package onload judges a real Onload: its modules are loaded in a machine of the lab, which reaches a NIC by AF_XDP, and
// containers with exactly what the device plugin answers run on it. All of it is in its tests, which have the build tag lab.
package onload
