// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package confinement puts a process where the agent is, or a device plugin: behind exactly the mounts of its DaemonSet, as root without any
// capability, on a host with sockets and secrets. It must read every fact that it would read with all of the host before
// it, and be denied everything else. make attempts prints what was attempted.
package confinement
