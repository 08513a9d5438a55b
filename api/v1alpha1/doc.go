// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package v1alpha1 holds the objects of the Low Latency Node Operator:
//
//   - LowLatencyNodeProfile: how a set of nodes is partitioned, tuned and verified;
//   - LowLatencyNode: what one node is to be, and what its running kernel says about it;
//   - BypassNICPool: which kernel-bypass NICs of a set of nodes are handed to pods, and by which stack;
//   - LatencyTest: which nodes are measured, and what was measured on them.
//
// The profile, the pool and the test are written by users, the LowLatencyNode by the operator (spec) and by the node's agent
// (status). Both select NICs by a NICSelector. Bounds are in bounds.go; labels, annotations, taints and names are in
// keys.go; condition types and reasons are in conditions.go. Nothing here acts.
//
// +kubebuilder:object:generate=true
// +groupName=lowlatency.dev
package v1alpha1
