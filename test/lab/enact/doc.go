// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package enact shows the guard on a real host: an emulated machine with Debian and GRUB on its own disk, whose kernel
// arguments are tried, verified and kept, and whose values are changed without a reboot. On such machines with a kubelet and a real
// control plane it shows the operator, its agent, the guard and the kernel together.
package enact
