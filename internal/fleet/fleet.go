// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package fleet decides about many nodes and many NICs at once: which nodes a profile or pool selects, which plan each
// of them is to have, which nodes share a plan and so a shape, which NICs several pools claim, and what a platform is to
// bring to which nodes.
//
// It is pure: everything is a function of values, objects as they were read and times.
// The controllers, the command line and the tests call the same functions, so that what is printed offline is what is
// applied. Packages below this one build on the decisions: status sums them up in the status of profiles and pools, gate
// decides what is written on a Node, changes says which changes of objects are worth deciding again.
package fleet
