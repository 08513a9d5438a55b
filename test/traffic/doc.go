// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package traffic tries LatencyTests that measure over the network with real processes: what the operator decides is made in two network
// namespaces with a pair of virtual interfaces between them, by the very command lines of its Jobs, and what these leave behind is what
// the operator decides from. Only the API server and the kubelet are played. It needs root and Debian's iproute2 and gcc.
package traffic
