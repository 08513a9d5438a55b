// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package traffic

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// sanitized is the path of the program, built so that it ends at the first undefined behaviour.
const sanitizedVariable = "LOWLATENCY_TRAFFIC_SANITIZED"

// TestMain builds the program. Without a compiler of C the tests fail: nothing else shows that the program works.
func TestMain(m *testing.M) {
	// What a test reads itself, its result depends on: with another source, go test runs it again.
	const program = "cmd/lowlatency-traffic/"
	for _, source := range []string{"hack/traffic.sh", program + "traffic.c", program + "frames.c", program + "frames.h", program + "stamps.c", program + "stamps.h"} {
		if _, err := os.ReadFile("../../../" + source); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	command := exec.Command("../../../hack/traffic.sh", "sanitized")
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "building lowlatency-traffic:", err)
		os.Exit(1)
	}
	if err := os.Setenv(sanitizedVariable, strings.TrimSpace(string(out))); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// run runs a program and gives the line that it prints.
func run(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	command := exec.Command(name, arguments...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}
