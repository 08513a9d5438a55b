// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command lowlatency-guard changes one host as a plan says, and has a way back. It needs neither a cluster nor the kubelet.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/command"
	"github.com/lowlatency-dev/lowlatency-operator/internal/version"
)

// release is the version that a release build states, as the Makefile and the Dockerfile do.
//
//nolint:gochecknoglobals // The linker can set a package variable only.
var release string

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// What has begun goes on when the terminal is closed, or when nobody reads what is printed any more. Programs that the guard runs still get
	// these signals as they are by default.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGPIPE)
	if err := command.New(version.Of(release).String()).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	return 0
}
