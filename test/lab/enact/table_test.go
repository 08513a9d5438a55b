// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package enact

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// record adds a line to the table of all tests, the file LAB_TABLE, as soon as it is known: what ends early keeps its lines.
func record(t *testing.T, what, outcome string, took time.Duration) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	line := fmt.Sprintf("%s\t%s\t%.0f\t%s\n", name, outcome, took.Seconds(), what)
	_, _ = fmt.Fprint(os.Stderr, "lab: done: "+line)
	path := os.Getenv("LAB_TABLE")
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Error(err)
		return
	}
	if _, err := file.WriteString(line); err != nil {
		t.Error(err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

// prove does a part of a test with the machines, and adds its line to the table. A part that ends before its end takes the test
// with it, because the next begins where it would have ended.
func (f *fleet) prove(what string, do func()) {
	outer, began, ended := f.t, time.Now(), false
	passed := outer.Run(what, func(t *testing.T) {
		f.setT(t)
		do()
		ended = true
	})
	f.setT(outer)
	outcome := "passed"
	if !passed {
		outcome = "FAILED"
	}
	record(outer, what, outcome, time.Since(began))
	if !ended {
		outer.FailNow()
	}
}

func (f *fleet) setT(t *testing.T) {
	f.t = t
	for _, h := range f.hosts {
		h.t = t
	}
}
