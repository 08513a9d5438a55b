// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command mutate changes the code of packages in one place at a time and runs the packages' own tests, which should notice.
//
//	go run ./hack/mutate -seed 7 -count 40 ./internal/verify ./internal/plan
//
// The changes are those of a slip of the pen: a comparison turned around, && for ||, a negated condition, a number that is
// one off, a severity or an impact that is another, a statement that is left out. They are drawn at random with a seed from
// all places of a package, so that a run is repeatable. All of a package are compiled into one program, in which at most one
// is in force: compiling takes longer than most tests. No source is written: the compiler gets the files by an overlay. A change that cannot matter, with its reason, belongs into
// equivalents.txt.
//
// The kept mutation testers for Go run every mutant of a package, which takes hours here, and know no severities.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

//go:embed equivalents.txt
var equivalentsText string

type options struct {
	seed    uint64
	count   int
	timeout time.Duration
	limit   float64
	only    string
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "draws the changes")
	flag.IntVar(&o.count, "count", 40, "changes that compile, for each package")
	flag.DurationVar(&o.timeout, "timeout", 2*time.Minute, "after which the tests of a change count as failed")
	flag.Float64Var(&o.limit, "limit", 5, "percentage of changes that may survive in each package")
	flag.StringVar(&o.only, "only", "", "draw only changes of places that begin so, such as rates.go:120")
	flag.Parse()
	if err := o.run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// run judges every package, and fails when too many changes of one survive.
func (o options) run(folders []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	equivalents, err := parseEquivalents(equivalentsText)
	if err != nil {
		return err
	}
	var wanting []string
	for _, folder := range folders {
		found, err := o.judge(ctx, filepath.Clean(folder), equivalents)
		if err != nil {
			return fmt.Errorf("package %s: %w", folder, err)
		}
		fmt.Printf("%s, seed %d: %s\n", folder, o.seed, found)
		if found.percentage() > o.limit {
			wanting = append(wanting, folder)
		}
	}
	if len(wanting) > 0 {
		return fmt.Errorf("more than %g %% of the changes survive in %s", o.limit, strings.Join(wanting, ", "))
	}
	return nil
}

// tally counts the changes of a package by what came of them.
type tally struct{ killed, survived, equivalent, uncompiled int }

// percentage is the share of survivors among the changes that are not equivalent.
func (t tally) percentage() float64 {
	if t.killed+t.survived == 0 {
		return 0
	}
	return 100 * float64(t.survived) / float64(t.killed+t.survived)
}

// String is the line of a table.
func (t tally) String() string {
	return fmt.Sprintf("%d killed, %d survived (%.1f %%), %d equivalent, %d not compiled",
		t.killed, t.survived, t.percentage(), t.equivalent, t.uncompiled)
}

// judge draws changes of one package and runs its tests with each.
func (o options) judge(ctx context.Context, folder string, equivalents []equivalent) (tally, error) {
	all, err := changesOf(folder)
	if err != nil {
		return tally{}, err
	}
	drawn, found := o.draw(folder, all, equivalents)
	tester, err := newTester(folder, o.timeout)
	if err != nil {
		return found, err
	}
	defer tester.close()
	changes, err := tester.build(ctx, drawn)
	if err != nil {
		return found, err
	}
	found.uncompiled = len(drawn) - len(changes)
	changes = changes[:min(o.count, len(changes))]
	if came, output, err := tester.test(ctx, 0); err != nil || came != survived {
		return found, fmt.Errorf("the tests fail without a change: %w\n%s", err, output)
	}
	for i, c := range changes {
		came, _, err := tester.test(ctx, i+1)
		if err != nil {
			return found, err
		}
		if came == killed {
			found.killed++
		} else {
			found.survived++
		}
		fmt.Printf("%s %s\n", came, c)
	}
	return found, nil
}

// draw returns changes that do not overlap, some more than are wanted because not all compile, and counts those that are
// equivalent.
func (o options) draw(folder string, all []change, equivalents []equivalent) ([]change, tally) {
	random := rand.New(rand.NewPCG(o.seed, uint64(len(folder)))) //nolint:gosec // Nothing is secret here.
	all = slices.Clone(all)
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var drawn []change
	var found tally
	for _, c := range all {
		if len(drawn) >= o.count+o.count/4 {
			break
		}
		if !strings.HasPrefix(c.place(), o.only) || slices.ContainsFunc(drawn, c.overlaps) {
			continue
		}
		if reason := reasonOf(equivalents, c); reason != "" {
			found.equivalent++
			fmt.Printf("equivalent %s: %s\n", c, reason)
			continue
		}
		drawn = append(drawn, c)
	}
	return drawn, found
}
