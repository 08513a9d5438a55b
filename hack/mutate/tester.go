// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// outcome is what came of a change.
type outcome string

const (
	killed     outcome = "killed    "
	survived   outcome = "SURVIVED  "
	uncompiled outcome = "uncompiled"
)

// tester runs the tests of one package.
type tester struct {
	folder  string
	scratch string
	timeout time.Duration
}

func newTester(folder string, timeout time.Duration) (*tester, error) {
	scratch, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for overlays: %w", err)
	}
	return &tester{folder: folder, scratch: scratch, timeout: timeout}, nil
}

func (t *tester) close() { _ = os.RemoveAll(t.scratch) }

// test runs the tests of the package with the change.
func (t *tester) test(ctx context.Context, c change) (outcome, error) {
	overlay, err := t.overlay(c)
	if err != nil {
		return "", err
	}
	limited, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	output, err := t.run(limited, "-overlay", overlay)
	return judgement(output, err, limited.Err())
}

// baseline fails when the tests fail without a change: they could notice none then.
func (t *tester) baseline(ctx context.Context) error {
	if output, err := t.run(ctx); err != nil {
		return fmt.Errorf("the tests fail without a change: %w\n%s", err, output)
	}
	return nil
}

func (t *tester) run(ctx context.Context, flags ...string) ([]byte, error) {
	arguments := slices.Concat([]string{"test", "-vet=off", "-short", "-failfast", "-count=1", "-timeout", t.timeout.String()}, flags, []string{"./" + t.folder})
	command := exec.CommandContext(ctx, "go", arguments...)
	command.WaitDelay = time.Second
	return command.CombinedOutput()
}

// judgement tells from what go test printed, and how it ended, what came of a change.
func judgement(output []byte, err, expired error) (outcome, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return survived, nil
	case bytes.Contains(output, []byte("[build failed]")):
		return uncompiled, nil
	case errors.Is(expired, context.Canceled):
		return "", expired
	case bytes.Contains(output, []byte("[setup failed]")):
		return "", fmt.Errorf("running go test: %w: %s", err, output)
	case expired != nil, errors.As(err, &exit):
		return killed, nil
	}
	return "", fmt.Errorf("running go test: %w", err)
}

// overlay writes the changed file and what tells the compiler to take it in place of the source.
func (t *tester) overlay(c change) (string, error) {
	source, err := os.ReadFile(c.file)
	if err != nil {
		return "", fmt.Errorf("reading a source: %w", err)
	}
	original, err := filepath.Abs(c.file)
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", c.file, err)
	}
	changed := filepath.Join(t.scratch, "changed.go")
	if err := os.WriteFile(changed, slices.Concat(source[:c.start], []byte(c.text), source[c.end:]), 0o600); err != nil {
		return "", fmt.Errorf("writing a changed file: %w", err)
	}
	data, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", fmt.Errorf("writing an overlay: %w", err)
	}
	file := filepath.Join(t.scratch, "overlay.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return "", fmt.Errorf("writing an overlay: %w", err)
	}
	return file, nil
}

// equivalent is a change that no test can notice.
type equivalent struct{ file, source, text, reason string }

// parseEquivalents reads lines "file ¦ line of code ¦ replacement ¦ reason".
func parseEquivalents(text string) ([]equivalent, error) {
	var all []equivalent
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		const parts = 4
		fields := strings.Split(line, " ¦ ")
		if len(fields) != parts {
			return nil, fmt.Errorf("equivalents.txt: %q has not the form file ¦ code ¦ replacement ¦ reason", line)
		}
		all = append(all, equivalent{fields[0], fields[1], fields[2], fields[3]})
	}
	return all, nil
}

// reasonOf is why no test can notice the change; "" when one should.
func reasonOf(all []equivalent, c change) string {
	for _, e := range all {
		if strings.HasSuffix(filepath.ToSlash(c.file), e.file) && oneLine(c.source) == e.source && oneLine(c.text) == e.text {
			return e.reason
		}
	}
	return ""
}
