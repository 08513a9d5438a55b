// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"errors"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChangesIn(t *testing.T) {
	const source = `package p

import "fmt"

func f(a, b int, ok bool) (int, error) {
	if a < b && !ok {
		a++
		fmt.Println("x")
	}
	for range 3 {
		switch {
		case a == b:
			b = 10
			continue
		}
	}
	s := v1alpha1.SeverityHigh
	return a - b, check(s, ImpactWork, true)
}
`
	found, err := changesIn("p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, 0, len(found))
	for _, c := range found {
		got = append(got, c.place()+" "+oneLine(c.was)+" => "+oneLine(c.text))
	}
	want := []string{
		"p.go:6 a < b && !ok => !(a < b && !ok)", "p.go:6 && => ||", "p.go:6 < => <=", "p.go:6 < => >=", "p.go:6 ! => nothing",
		"p.go:7 a++ => nothing", `p.go:8 fmt.Println("x") => nothing`, "p.go:10 3 => 4", "p.go:13 b = 10 => nothing",
		"p.go:14 continue => nothing", "p.go:12 == => !=", "p.go:13 10 => 11", "p.go:17 SeverityHigh => SeverityLow",
		"p.go:18 - => +", "p.go:18 ImpactWork => ImpactNone", "p.go:18 true => false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, c := range found {
		if changed := source[:c.start] + c.text + source[c.end:]; source[c.start:c.end] != c.was || changed == source {
			t.Errorf("%s changes nothing, or something else", c)
		}
	}
}

func TestJudgement(t *testing.T) {
	failed := &exec.ExitError{}
	cases := map[string]struct {
		output       string
		err, expired error
		want         outcome
		wantErr      bool
	}{
		"the tests pass":                 {"ok", nil, nil, survived, false},
		"a test fails":                   {"--- FAIL: TestX", failed, nil, killed, false},
		"it does not compile":            {"FAIL p [build failed]", failed, nil, uncompiled, false},
		"the tests hang":                 {"", failed, context.DeadlineExceeded, killed, false},
		"the run is ended":               {"", failed, context.Canceled, "", true},
		"the go command is not there":    {"", errors.New("no such file"), nil, "", true},
		"go test cannot find the folder": {"FAIL p [setup failed]", failed, nil, "", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := judgement([]byte(tc.output), tc.err, tc.expired)
			if got != tc.want || (err != nil) != tc.wantErr {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestEquivalents(t *testing.T) {
	all, err := parseEquivalents("# why\n\np/a.go ¦ if a < b { ¦ <= ¦ they never are equal\n")
	if err != nil {
		t.Fatal(err)
	}
	c := change{file: "internal/p/a.go", source: "\tif a <  b {", text: "<="}
	if got := reasonOf(all, c); got != "they never are equal" {
		t.Errorf("the reason is %q", got)
	}
	for _, other := range []change{{file: "internal/p/a.go", source: c.source, text: ">="}, {file: "b.go", source: c.source, text: "<="}, {file: c.file, source: "x", text: "<="}} {
		if got := reasonOf(all, other); got != "" {
			t.Errorf("%s is said to be equivalent: %s", other, got)
		}
	}
	if _, err := parseEquivalents("a.go ¦ code"); err == nil {
		t.Error("a line without replacement and reason is accepted")
	}
	if _, err := parseEquivalents(equivalentsText); err != nil {
		t.Error(err)
	}
}

func TestTally(t *testing.T) {
	var found tally
	for _, o := range []outcome{killed, killed, killed, survived, uncompiled} {
		found.add(o)
	}
	if found != (tally{killed: 3, survived: 1, uncompiled: 1}) || found.percentage() != 25 || (tally{}).percentage() != 0 {
		t.Errorf("%+v is %g %%", found, found.percentage())
	}
}
