// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command kubectl-lowlatency plans, renders and checks low-latency nodes without a cluster. Installed
// on the PATH it is also the kubectl plugin "kubectl lowlatency".
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli"
	_ "github.com/lowlatency-dev/lowlatency-operator/internal/cli/runtimesetup" // sets the runtime up before the rest is initialized
)

// release is the version that a release build states, as the Makefile does.
//
//nolint:gochecknoglobals // The linker can set a package variable only.
var release string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks the command to end, and the second one ends it.
	context.AfterFunc(ctx, stop)
	code := cli.Run(ctx, release, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}
