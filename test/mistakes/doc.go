// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package mistakes shows what users' mistakes and a failing API server cost the nodes. A whole cluster runs (see
// internal/sim/cluster): a real API server, the operator's manager, the simulated platform, and production agents and
// device plugins on simulated hosts. Everything that happens to Nodes, LowLatencyNodes, profiles and pools is watched and
// put into the order in which etcd has written it; after each step these must hold:
//
//   - no node reboots without a changed plan: not at all for a mistake, once for a change;
//   - no node gets the taint without a check that has failed or is pending on it, and none before its own turn comes;
//   - no healthy NIC is lost to a newcomer;
//   - nothing is stuck when the mistake is corrected;
//   - no false green: where a profile or pool says Ready for its current spec, the hosts themselves show the spec. The hosts
//     are read by this package alone: kernel command line, hugepages, kubelet configuration.
//
// TestNamedMistakes makes each mistake that has a name, and prints what it cost. TestRandomMistakes makes histories of
// mistakes and corrections drawn with a seed. TestServerFaults makes changes and mistakes while the API server, as the
// manager sees it, is slow, refuses, fails, drops watches, loses answers, or while the manager is killed at a write.
//
// A history that fails is printed with its seed, after steps that are not needed for the failure were taken out.
// "go test ./test/mistakes -run TestRandomMistakes -seed 17 -count 1" makes one again; "make mistakes" makes all.
//
// TestChurn, which "make churn" runs, lets nodes flap, edits profiles and restarts agents for a given time, and judges
// memory, goroutines and file descriptors by their slope.
package mistakes
