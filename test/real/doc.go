// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package real installs the operator by what its users install it with: Operator Lifecycle Manager and Argo CD. Both run for real, as
// local processes on a real API server with a real controller manager; hosts and the machine-config operator are those of the simulated
// platform. What a kubelet and a scheduler would do for the pods of the operator's Deployments is done here: a pod becomes a process with
// the arguments, the environment and the mounted secrets of its specification, with the token of its service account bound to it, and it is
// ready when its own readiness probe says so.
//
// The tests have the build tag lab, because they need programs that take long to build: make olm and make argocd run them.
package real
