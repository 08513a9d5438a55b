// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command kubectl-lowlatency plans, renders and checks low-latency nodes without a cluster. Installed
// on the PATH it is also the kubectl plugin "kubectl lowlatency".
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli"
)

func main() {
	collectLate()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}

const (
	// firstGCPercent lets the heap grow to 16 MiB before garbage is collected for the first time: most commands end before.
	firstGCPercent = 400
	// laterGCPercent is how it goes on for those that read many hosts.
	laterGCPercent = 100
)

// collectLate puts the first garbage collection off, unless the environment says when to collect.
func collectLate() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(firstGCPercent)
	runtime.AddCleanup(new([64]byte), func(percent int) { debug.SetGCPercent(percent) }, laterGCPercent)
}
