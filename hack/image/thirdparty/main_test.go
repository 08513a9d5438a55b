// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"strings"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/hack/image/licences"
)

// TestCheck refuses a module as soon as one of its licences is not accepted.
func TestCheck(t *testing.T) {
	good := licences.Module{Path: "example.com/good", Licences: []string{"Apache-2.0", "MIT"}}
	bad := licences.Module{Path: "example.com/bad", Licences: []string{"GPL-2.0", "MIT"}}
	if err := check([]licences.Module{good}); err != nil {
		t.Error(err)
	}
	err := check([]licences.Module{good, bad})
	if err == nil || !strings.Contains(err.Error(), "example.com/bad (GPL-2.0)") || strings.Contains(err.Error(), "good") {
		t.Errorf("check gives %v", err)
	}
}

func TestPage(t *testing.T) {
	text := page([]licences.Module{
		{Path: "example.com/a", Version: "v1.2.3", Licences: []string{"ISC", "MIT"}},
		{Path: licences.StandardLibrary, Licences: []string{"BSD-3-Clause"}},
	})
	for _, row := range []string{"\n| example.com/a | v1.2.3 | ISC, MIT |\n", "\n| stdlib | of the compiler | BSD-3-Clause |\n"} {
		if !strings.Contains(text, row) {
			t.Errorf("the page lacks %q:\n%s", row, text)
		}
	}
}
