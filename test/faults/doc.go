// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package faults shows that the checks tell the truth. Simulated machines (machines_test.go) are booted from the objects
// that the project itself renders for them: the profile is planned on the machine, the plan is spelled as MachineConfig,
// KubeletConfig and Tuned, and these are brought to the machine as the platform brings them: files, units that run,
// kernel arguments, TuneD profile, kubelet. What comes of it is read by internal/host and judged by internal/verify in
// both ways in which the product does it: as "kubectl lowlatency check" does, which plans what it finds, and as the
// node's agent does, which holds the host against the plan that it was given. Each reading is made twice, with ten
// seconds in between, so that the checks which compare counters are judged, too.
//
// A healthy machine must fail no check. Then there are two kinds of rows, in files by subject:
//
//   - A fault breaks one thing on such a machine. The named check must fail, with a message that says the given words.
//   - A variation changes something that does no harm. No check may fail for it, and none may become Unknown except
//     those that the row declares, with the reason.
//
// # Adding a row
//
// Add it to the list of its subject, for example faultsOfMemory in memory_test.go; a new subject is a new list, named in
// faults() or variations() of rows_test.go. A row is a few lines:
//
//	{
//		name:  "swap is in use",
//		harm: func(n *node) { n.put("/proc/swaps", "…") },
//		want:  "memory.swap",
//		says:  []string{"/dev/sda3"},
//	},
//
// Without "on", it runs on one machine of usualMachines, on all of them with FAULTS=all in the environment; "on" names
// others, or fewer. The field during happens
// between the two readings. What a node offers is in node_test.go: node.write for files with the kernel's behavior,
// node.put for the text of a file as it is, node.remove, node.reboot with other kernel arguments, node.process, node.pod.
// A row that cannot pass yet stands in open(), with the reason: the test says so when it passes, and then the entry goes.
//
//	go test ./test/faults -v -run 'TestFaults/rows/swap' # the rows whose names begin so, with what the check says
//	make faults                                         # the whole table
package faults
