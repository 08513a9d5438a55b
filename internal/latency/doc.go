// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package latency holds what measurements over the network find, as values: distributions with the confidence in each of their
// percentiles, the path that messages took, and the verdict by a budget. It is pure: it measures nothing, and the programs that do are
// in internal/node/traffic.
package latency
