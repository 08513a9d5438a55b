// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

// RuntimeHandler is the name of the container runtime's handler for latency-critical pods.
const RuntimeHandler = "high-performance"
