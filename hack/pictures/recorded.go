// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/hack/pictures/terminal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/probe"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
)

const (
	// recorded is the folder with what was recorded, below the repository.
	recorded = "hack/pictures/recorded"
	// demoFile has the lines of the demo that are shown, as a terminal got them.
	demoFile = "demo.txt"
	// The act that is shown begins with demoBegin.
	demoBegin = "A node goes wrong"
	demoLines = 40
)

// keepDemo keeps what the picture shows of a recording of the demo.
func keepDemo(repository, recording string) error {
	text, err := os.ReadFile(recording)
	if err != nil {
		return fmt.Errorf("reading the recording of the demo: %w", err)
	}
	lines, err := terminal.Lines(bytes.NewReader(text))
	if err != nil {
		return err
	}
	shown := terminal.Cut(lines, demoBegin, demoLines)
	if len(shown) == 0 {
		return errors.New("no line of the recording of the demo contains " + demoBegin)
	}
	if err := os.WriteFile(filepath.Join(repository, recorded, demoFile), []byte(strings.Join(shown, "\n")+"\n"), 0o644); err != nil {
		return fmt.Errorf("keeping the recording of the demo: %w", err)
	}
	return nil
}

func demoPicture(repository string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(repository, recorded, demoFile))
	if err != nil {
		return nil, fmt.Errorf("reading what was recorded of the demo: %w", err)
	}
	lines, err := terminal.Lines(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return []byte(terminal.Draw(lines)), nil
}

// jitterPictures are one measurement on a machine that nobody has tuned, and what the kernel counted in an emulated machine before and
// after it booted with the planned arguments. Lengths of the latter say nothing, so they are not drawn.
func jitterPictures(repository string) (one, pair []byte, err error) {
	results := map[string]*jitter.Result{}
	for _, name := range []string{"jitter.json", "jitter-before.json", "jitter-after.json"} {
		if results[name], err = readResult(repository, name); err != nil {
			return nil, nil, err
		}
	}
	return []byte(jitter.Plot(results["jitter.json"])), []byte(jitter.CompareCounted(results["jitter-before.json"], results["jitter-after.json"])), nil
}

// readResult reads a recorded measurement.
func readResult(repository, name string) (*jitter.Result, error) {
	file := filepath.Join(repository, recorded, name)
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading a recorded measurement: %w", err)
	}
	return probe.ParseResult(file, text)
}
