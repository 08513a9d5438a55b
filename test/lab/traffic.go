// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// TrafficProgram is the name of the program that sends and answers messages.
const TrafficProgram = "lowlatency-traffic"

// AddTrafficProgram puts that program into a folder, for Spec.Files, and has hack/traffic.sh build it first when this user's cache does not hold it.
func AddTrafficProgram(ctx context.Context, folder string) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, filepath.Join(root, "hack", "traffic.sh"))
	command.Stderr = os.Stderr
	built, err := command.Output()
	if err != nil {
		return fmt.Errorf("building %s with hack/traffic.sh: %w", TrafficProgram, err)
	}
	content, err := os.ReadFile(strings.TrimSpace(string(built)))
	if err != nil {
		return fmt.Errorf("reading %s: %w", TrafficProgram, err)
	}
	return os.WriteFile(filepath.Join(folder, TrafficProgram), content, 0o755) //nolint:gosec // A program that others run, too.
}
