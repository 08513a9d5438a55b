// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// measuring tells this test program that it is the process that measures.
const measuring = "LOWLATENCY_TEST_MEASURE"

func TestMain(m *testing.M) {
	if os.Getenv(measuring) == "" {
		os.Exit(m.Run())
	}
	if err := Serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func itself(ctx context.Context) *exec.Cmd {
	command := exec.CommandContext(ctx, os.Args[0])
	command.Env = append(append(os.Environ(), Environment()...), measuring+"=1")
	return command
}

func TestRun(t *testing.T) {
	h, err := host.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	result, err := Run(t.Context(), Options{
		Request:   Request{Duration: 500 * time.Millisecond, WarmUp: 50 * time.Millisecond, Threshold: time.Microsecond},
		Placement: Placement{Measured: cpus.Of(1), Control: cpus.Of(0)},
		Host:      h, Command: itself, SampleInterval: 20 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", result)
}
