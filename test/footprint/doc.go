// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package footprint measures what the programs of this project cost as whole processes: processor time and memory of the
// command line, resident memory of the agent. It asserts nothing, because a machine that does other work as well measures
// something else; make bench prints what it finds.
package footprint
