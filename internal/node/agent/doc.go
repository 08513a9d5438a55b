// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package agent is what runs on a node: it reads the host, evaluates the plan of the node and writes
// what the running kernel says into the status of its own LowLatencyNode. It changes nothing on the
// host, unless the profile asks for repair and the agent was deployed to do it (Repairer).
//
// # Being quiet
//
// An agent that disturbs isolated CPUs would falsify what it reports. It reads plain memory of the
// kernel only: no MSR, no performance counter, no current frequency, whose reading makes the CPU in
// question run code. It keeps its threads to the housekeeping CPUs of the plan (KeepTo), as
// a Go program spreads its threads over all CPUs that it may use. It should run with GOMAXPROCS at
// 2: one thread that reads, and one for the garbage collector and the API server. While nothing changes nothing is written but the Lease of the node, once for each look at the host: only
// so does an agent that finds all as it was differ from one that is dead.
//
// # Rights
//
// On its own LowLatencyNode, by resource name: get and watch; on its status: patch. On the ConfigMaps of plans and
// pools in the operator's namespace: get. On its Lease, in the namespace of the agents: patch. It lists nothing and
// creates nothing. On the node: reading files below the root, and connecting to the socket of the kubelet's
// PodResources service, which a read-only mount allows (the kernel checks the permissions of the socket,
// and whether a file system is writable only for files, folders and links: sb_permission in fs/namei.c).
package agent
