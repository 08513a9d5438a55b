// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// source is what is built.
type source struct {
	// folder of the module.
	folder string
	// version that a release states.
	version string
	// revision is the commit, and modified reports whether files were changed beside it.
	revision string
	modified bool
	// committed is when the commit was made. Everything in the image bears this time: the hour of the build would make each
	// build another image.
	committed time.Time
}

// describeSource asks git for the commit.
func describeSource(ctx context.Context, folder, version string) (source, error) {
	text, err := output(ctx, folder, nil, "git", "log", "-1", "--format=%H %cI")
	if err != nil {
		return source{}, err
	}
	revision, when, _ := strings.Cut(strings.TrimSpace(text), " ")
	committed, err := time.Parse(time.RFC3339, when)
	if err != nil {
		return source{}, fmt.Errorf("the time of commit %s: %w", revision, err)
	}
	changes, err := output(ctx, folder, nil, "git", "status", "--porcelain")
	if err != nil {
		return source{}, err
	}
	return source{folder: folder, version: version, revision: revision, modified: changes != "", committed: committed.UTC()}, nil
}

// release is what internal/version reads. The compiler states nothing of the repository: that depends on how it was cloned, and on
// its tags.
func (s source) release() string {
	commit := s.revision
	if s.modified {
		commit += "-dirty"
	}
	return s.version + "," + commit + "," + s.committed.Format(time.RFC3339)
}

// build compiles packages with programs for an architecture of Linux into a folder.
func (s source) build(ctx context.Context, packages []string, architecture, into string) error {
	into, err := filepath.Abs(into)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	arguments := slices.Concat([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.release=" + s.release(),
		"-o", into + string(os.PathSeparator)}, packages)
	_, err = output(ctx, s.folder, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + architecture, "GOFLAGS="}, "go", arguments...)
	return err
}

// output runs a program and returns what it prints; what it complains of is in the error.
func output(ctx context.Context, folder string, environment []string, program string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = folder
	command.Env = append(os.Environ(), environment...)
	text, err := command.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return "", fmt.Errorf("%s: %w: %s", command, err, failed.Stderr)
	}
	return string(text), err
}
