// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package subprocess

import (
	"os/exec"
	"runtime"
	"syscall"
)

// EndWithParent has the kernel kill what a command starts once this process ends, also when it is killed itself and can end nothing. The kernel asks for
// the end of the thread that has started it (PR_SET_PDEATHSIG(2const)), so that the calling goroutine keeps its thread, starts the command, and calls
// release when the command has ended.
func EndWithParent(command *exec.Cmd) (release func()) {
	runtime.LockOSThread()
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return runtime.UnlockOSThread
}
