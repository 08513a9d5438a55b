// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package embedded is a platform for one machine: a real etcd and kube-apiserver as local processes,
// with a simulated fleet of nodes behind it. It serves the demo, tests and benchmarks.
//
// What is simulated is only what a cluster's platform would do: the machine-config operator that
// renders and rolls machine config pools, the Node Tuning Operator that hands TuneD profiles to nodes, and a kernel
// that comes up with new arguments. Everything that judges a node is the code that runs in
// production: the agents read a host tree as they would read /host.
package embedded
