// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package apiserver

import (
	"syscall"
	"testing"
)

// TestCtrlCReachesNoGoCommand: a terminal signals the group of the demo's processes, in which the go command is not.
func TestCtrlCReachesNoGoCommand(t *testing.T) {
	command := goCommand("version")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer command.Wait() //nolint:errcheck // What it prints is of no interest.
	group, err := syscall.Getpgid(command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if group != command.Process.Pid {
		t.Errorf("the go command %d is in group %d", command.Process.Pid, group)
	}
}
