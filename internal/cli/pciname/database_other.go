// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build !linux

package pciname

// Of is "", as for a device that the database does not have.
func Of(_, _ string) string { return "" }
