// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command run runs a program to its end, throws away what it prints on its standard output, and says what it cost: exit
// code, microseconds of processor time (user and system), and the largest resident memory in KiB. It is a program of its
// own, and small, because Linux counts the memory of whoever starts a process as the process's own until it has started.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("name a program and its arguments")
	}
	command := exec.Command(arguments[0], arguments[1:]...)
	command.Stderr = os.Stderr
	err := command.Run()
	if command.ProcessState == nil {
		return err
	}
	usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return errors.New("this system does not say what a process cost")
	}
	spent := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	_, err = fmt.Println(command.ProcessState.ExitCode(), spent.Microseconds(), usage.Maxrss)
	return err
}
