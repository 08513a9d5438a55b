// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package traffic runs the program that sends and answers the messages of measurements over the network, lowlatency-traffic, and makes
// results of what it prints. That program is C, so that stacks which take the place of the C library's functions accelerate it; its
// source, with the protocol between its two ends, is in cmd/lowlatency-traffic.
package traffic
