// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Outage kills the API server, does something, and starts the server again with the same arguments, also when that has failed.
// Its clients wait for it on their own.
func (c *Cluster) Outage(ctx context.Context, during func() error) error {
	process, arguments, err := findProcess("--secure-port=" + c.port())
	if err != nil {
		return fmt.Errorf("looking for the API server: %w", err)
	}
	if err := syscall.Kill(process, syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing the API server: %w", err)
	}
	err = during()
	// One that was started here before is not awaited any more.
	c.running = slices.DeleteFunc(c.running, func(p *program) bool { return p.command.Process.Pid == process })
	return errors.Join(err, c.Launch(ctx, "kube-apiserver", arguments[0], arguments[1:]...))
}

// findProcess finds the process with an argument.
func findProcess(argument string) (process int, arguments []string, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, nil, err
	}
	for _, file := range files {
		// A process may end while it is looked at.
		text, err := os.ReadFile(file)
		arguments := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
		if err != nil || !slices.Contains(arguments, argument) {
			continue
		}
		process, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		return process, arguments, err
	}
	return 0, nil, fmt.Errorf("no process has the argument %s", argument)
}
