// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// source is what is released.
type source struct {
	// revision is the commit, modified reports whether files beside it have changed.
	revision string
	modified bool
	// committed is when the commit was made: every file of a release bears this time.
	committed time.Time
	// compiler is the Go release, compilerC what gcc says of itself.
	compiler, compilerC string
}

// describe asks git and go.
func describe(ctx context.Context) (source, error) {
	text, err := run(ctx, nil, "git", "log", "-1", "--format=%H %cI")
	if err != nil {
		return source{}, err
	}
	revision, when, _ := strings.Cut(strings.TrimSpace(text), " ")
	committed, err := time.Parse(time.RFC3339, when)
	if err != nil {
		return source{}, fmt.Errorf("the time of commit %s: %w", revision, err)
	}
	changes, err := run(ctx, nil, "git", "status", "--porcelain")
	if err != nil {
		return source{}, err
	}
	compiler, err := run(ctx, nil, "go", "env", "GOVERSION")
	if err != nil {
		return source{}, err
	}
	about, err := run(ctx, nil, "gcc", "--version")
	if err != nil {
		return source{}, err
	}
	compilerC, _, _ := strings.Cut(about, "\n")
	return source{
		revision: revision, modified: changes != "", committed: committed.UTC(), compiler: strings.TrimSpace(compiler), compilerC: compilerC,
	}, nil
}

// stated is what internal/version reads.
func (s source) stated(version string) string {
	commit := s.revision
	if s.modified {
		commit += "-dirty"
	}
	return "v" + version + "," + commit + "," + s.committed.Format(time.RFC3339)
}

// run runs a program and returns what it prints; what it complains of is in the error.
func run(ctx context.Context, environment []string, program string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Env = append(os.Environ(), environment...)
	text, err := command.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return "", fmt.Errorf("%s: %w: %s", command, err, failed.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	return string(text), nil
}
