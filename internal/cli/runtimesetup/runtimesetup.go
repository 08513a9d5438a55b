// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package runtimesetup sets the Go runtime up for a command that runs for some hundredths of a second. It does so when it is
// initialized, and imports the standard library only. Go initializes packages in the order of their paths as far as their
// imports allow, so this one comes before the libraries of Kubernetes, during whose initialization the first garbage
// collection would otherwise start.
package runtimesetup

import (
	"os"
	"runtime"
	"runtime/debug"
)

const (
	// firstGCPercent lets the heap grow to 16 MiB before garbage is collected for the first time: most commands end before.
	firstGCPercent = 400
	// laterGCPercent is how it goes on for those that read many hosts.
	laterGCPercent = 100
)

var _, _ = collectLate(), useOneProcessor()

// collectLate puts the first garbage collection off, unless the environment says when to collect.
func collectLate() bool {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return false
	}
	debug.SetGCPercent(firstGCPercent)
	runtime.AddCleanup(new([64]byte), func(percent int) { debug.SetGCPercent(percent) }, laterGCPercent)
	return true
}

// useOneProcessor keeps the goroutines on one CPU at a time, unless the environment says on how many. A command reads one
// file after another: more only wait for work, which costs processor time, and let garbage grow while it is collected.
func useOneProcessor() bool {
	if os.Getenv("GOMAXPROCS") != "" {
		return false
	}
	runtime.GOMAXPROCS(1)
	return true
}
