// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
		"p.go:6 a < b && !ok => !(a < b && !ok)", "p.go:7 a++ => nothing", `p.go:8 fmt.Println("x") => nothing`,
		"p.go:6 a < b && !ok => a < b || !ok", "p.go:6 a < b => a <= b", "p.go:6 a < b => a >= b", "p.go:6 !ok => ok", "p.go:10 3 => 4",
		"p.go:13 b = 10 => nothing", "p.go:14 continue => nothing", "p.go:12 a == b => a != b", "p.go:13 10 => 11",
		"p.go:17 v1alpha1.SeverityHigh => v1alpha1.SeverityLow", "p.go:18 a - b => a + b", "p.go:18 ImpactWork => ImpactNone", "p.go:18 true => false",
	}
	order := cmpopts.SortSlices(func(a, b string) bool { return a < b })
	if diff := cmp.Diff(want, got, order); diff != "" {
		t.Error(diff)
	}
	for _, c := range found {
		if source[c.start:c.end] != c.was || c.text == c.was {
			t.Errorf("%s changes nothing, or something else", c)
		}
	}
}

func TestBoth(t *testing.T) {
	cases := map[string]change{
		"mutantCondition(7, func() bool { return a <= b }, func() bool { return a < b })": {was: "a < b", text: "a <= b", kind: condition},
		"mutantValue(7, 4, 3)":      {was: "3", text: "4", kind: value},
		"if !mutantIs(7) { a = b }": {was: "a = b", kind: statement},
	}
	for want, c := range cases {
		if got := c.both(7); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A package in which one change is noticed, one is not, and one does not compile.
func TestJudge(t *testing.T) {
	t.Chdir(t.TempDir())
	for file, text := range map[string]string{
		"go.mod": "module example.org/p\n\ngo 1.24\n",
		"p/p.go": "package p\n\nfunc Small(n int) bool {\n\treturn n < 10\n}\n\nvar Numbers [3]int\n",
		"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestSmall(t *testing.T) {\n" +
			"\tif !Small(1) || Small(11) {\n\t\tt.Error(\"wrong\")\n\t}\n}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := changesOf("p")
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]outcome{}
	for _, c := range all {
		tester, err := newTester("p", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		defer tester.close()
		built, err := tester.build(t.Context(), []change{c})
		if err != nil {
			t.Fatal(err)
		}
		if len(built) == 0 {
			outcomes[c.text] = "uncompiled"
			continue
		}
		if outcomes[c.text], _, err = tester.test(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]outcome{"n <= 10": survived, "n >= 10": killed, "11": survived, "4": "uncompiled"}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Error(diff)
	}
}

func TestJudgement(t *testing.T) {
	failed := &exec.ExitError{}
	cases := map[string]struct {
		err, expired error
		want         outcome
		wantErr      bool
	}{
		"the tests pass":           {nil, nil, survived, false},
		"a test fails":             {failed, nil, killed, false},
		"the tests hang":           {failed, context.DeadlineExceeded, killed, false},
		"the run is ended":         {failed, context.Canceled, "", true},
		"the program is not there": {errors.New("no such file"), nil, "", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := judgement(tc.err, tc.expired)
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
	found := tally{killed: 3, survived: 1, uncompiled: 1}
	if found.percentage() != 25 || (tally{}).percentage() != 0 {
		t.Errorf("%+v is %g %%", found, found.percentage())
	}
}

func TestDraw(t *testing.T) {
	all := make([]change, 0, 40)
	for i := range 40 {
		all = append(all, change{file: "p/a.go", line: i, start: 10 * (i / 2), end: 10*(i/2) + 5, source: "x", text: strconv.Itoa(i % 4)})
	}
	o := options{seed: 3, count: 8}
	drawn, found := o.draw("p", all, []equivalent{{"a.go", "x", "0", "why"}})
	again, _ := o.draw("p", all, []equivalent{{"a.go", "x", "0", "why"}})
	if len(drawn) != 10 || found.equivalent == 0 || cmp.Diff(drawn, again, cmp.AllowUnexported(change{})) != "" {
		t.Errorf("%d drawn, %+v", len(drawn), found)
	}
	for i, c := range drawn {
		if c.text == "0" || slices.ContainsFunc(drawn[:i], c.overlaps) {
			t.Errorf("%s overlaps another, or is equivalent", c)
		}
	}
}
