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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// outcome is what came of a change.
type outcome string

const (
	killed   outcome = "killed  "
	survived outcome = "SURVIVED"
)

// variable of the environment holds the number of the change that is in force.
const variable = "MUTANT"

// helper is the file that is added to the package.
const helper = `package %s

import (
	"os"
	"strconv"
)

var mutantInForce = func() int { id, _ := strconv.Atoi(os.Getenv("MUTANT")); return id }()

func mutantIs(id int) bool { return id == mutantInForce }

func mutantCondition(id int, changed, original func() bool) bool {
	if mutantIs(id) {
		return changed()
	}
	return original()
}

func mutantValue[T any](id int, changed, original T) T {
	if mutantIs(id) {
		return changed
	}
	return original
}

var _, _ = mutantCondition, mutantValue[int]
`

// tester has the tests of one package with all changes in one program, of which at most one is in force.
type tester struct {
	folder, name string
	scratch      string
	timeout      time.Duration
}

func newTester(folder string, timeout time.Duration) (*tester, error) {
	name, err := exec.Command("go", "list", "-f", "{{.Name}}", "./"+folder).Output() //nolint:gosec,noctx // A folder of this repository.
	if err != nil {
		return nil, fmt.Errorf("asking for the name of the package: %w", err)
	}
	scratch, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for overlays: %w", err)
	}
	return &tester{folder: folder, name: strings.TrimSpace(string(name)), scratch: scratch, timeout: timeout}, nil
}

func (t *tester) close() { _ = os.RemoveAll(t.scratch) }

func (t *tester) program() string { return filepath.Join(t.scratch, "package.test") }

// build compiles the tests with the changes, and leaves out those that do not compile. It returns those that did; the
// number of a change is its place in the list, from 1 on.
func (t *tester) build(ctx context.Context, changes []change) ([]change, error) {
	for {
		files, ranges, err := combine(changes)
		if err != nil {
			return nil, err
		}
		overlay, err := t.overlay(files)
		if err != nil {
			return nil, err
		}
		output, err := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-gcflags=-e", "-overlay", overlay, "-o", t.program(), "./"+t.folder).CombinedOutput() //nolint:gosec // A folder of this repository.
		if err == nil {
			return changes, nil
		}
		bad := broken(output, ranges)
		if len(bad) == 0 {
			return nil, fmt.Errorf("compiling the tests: %w: %s", err, output)
		}
		var kept []change
		for i, c := range changes {
			if !bad[i] {
				kept = append(kept, c)
			}
		}
		changes = kept
	}
}

// lines are those of a changed file that a change takes.
type lines struct {
	file     string
	from, to int
}

// combine writes all changes into their files. They do not overlap.
func combine(changes []change) (map[string][]byte, []lines, error) {
	order := make([]int, len(changes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return changes[a].start - changes[b].start })
	files, at := map[string][]byte{}, map[string]int{}
	ranges := make([]lines, len(changes))
	sources := map[string][]byte{}
	for _, i := range order {
		c := changes[i]
		if sources[c.file] == nil {
			source, err := os.ReadFile(c.file)
			if err != nil {
				return nil, nil, fmt.Errorf("reading a source: %w", err)
			}
			sources[c.file] = source
		}
		text := slices.Concat(files[c.file], sources[c.file][at[c.file]:c.start])
		from := bytes.Count(text, []byte("\n")) + 1
		text = append(text, c.both(i+1)...)
		ranges[i] = lines{c.file, from, bytes.Count(text, []byte("\n")) + 1}
		files[c.file], at[c.file] = text, c.end
	}
	for file, source := range sources {
		files[file] = append(files[file], source[at[file]:]...)
	}
	return files, ranges, nil
}

// broken are the changes in whose lines the compiler found errors.
func broken(output []byte, ranges []lines) map[int]bool {
	bad := map[int]bool{}
	for _, match := range regexp.MustCompile(`(?m)^(\S+\.go):(\d+):`).FindAllSubmatch(output, -1) {
		line, _ := strconv.Atoi(string(match[2]))
		for i, r := range ranges {
			if filepath.Base(r.file) == filepath.Base(string(match[1])) && r.from <= line && line <= r.to {
				bad[i] = true
			}
		}
	}
	return bad
}

// overlay writes the changed files, and what tells the compiler to take them in place of the sources.
func (t *tester) overlay(files map[string][]byte) (string, error) {
	replace := map[string]string{}
	files[filepath.Join(t.folder, "zz_mutant.go")] = fmt.Appendf(nil, helper, t.name)
	for file, text := range files {
		original, err := filepath.Abs(file)
		if err != nil {
			return "", fmt.Errorf("finding %s: %w", file, err)
		}
		replace[original] = filepath.Join(t.scratch, filepath.Base(file))
		if err := os.WriteFile(replace[original], text, 0o600); err != nil {
			return "", fmt.Errorf("writing a changed file: %w", err)
		}
	}
	data, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("writing an overlay: %w", err)
	}
	file := filepath.Join(t.scratch, "overlay.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return "", fmt.Errorf("writing an overlay: %w", err)
	}
	return file, nil
}

// test runs the tests with the change of that number; 0 is none.
func (t *tester) test(ctx context.Context, id int) (outcome, []byte, error) {
	limited, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	command := exec.CommandContext(limited, t.program(), "-test.short", "-test.failfast", "-test.timeout", t.timeout.String()) //nolint:gosec // The program was built before.
	command.Dir, command.WaitDelay = t.folder, time.Second
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", variable, id))
	output, err := command.CombinedOutput()
	found, err := judgement(err, limited.Err())
	return found, output, err
}

// judgement tells from how the tests ended what came of a change. Tests that hang have noticed it.
func judgement(err, expired error) (outcome, error) {
	var exit *exec.ExitError
	hasEnded := err == nil || errors.As(err, &exit)
	switch {
	case errors.Is(expired, context.Canceled):
		return "", expired
	case !hasEnded && expired == nil:
		return "", fmt.Errorf("running the tests: %w", err)
	}
	return map[bool]outcome{true: survived, false: killed}[err == nil], nil
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
