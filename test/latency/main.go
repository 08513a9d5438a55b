// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Latency judges the measurements over the network, and prints a table: beside sockperf and qperf on the same path in turns, and against what is known
// because it was injected. It needs root, Debian's iproute2, sockperf, qperf and gcc, and /dev/net/tun; it makes two network namespaces and removes them.
//
//	go run ./test/latency [-rounds 7] [-only count,delay]
//
// With -program, which names a lowlatency-traffic that is built, -only netem needs iproute2 alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"text/tabwriter"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// exact is the bound of counts.
const exact = "exact"

// row is one judgement.
type row struct {
	// what was judged, what is known of it, what was measured, and how far that is off.
	what, known, measured, off string
	// holds reports whether that is within the bound.
	holds bool
	bound string
}

// judge makes some rows.
type judge struct {
	name  string
	judge func(ctx context.Context, s *stage) ([]row, error)
}

// judges are all, in the order of the table.
func judges() []judge {
	return []judge{{"count", judgeCounts}, {"netem", judgeNetem}, {"delay", judgeDelays}, {"capacity", judgeCapacity}, {"stall", judgeStall}, {"sockperf", judgeSockperf}, {"qperf", judgeQperf}, {"generator", judgeGenerator}}
}

func run(ctx context.Context) error {
	rounds := flag.Int("rounds", 7, "How often each program measures in turns, at least 5.")
	only := flag.String("only", "", "The judges to run, such as count,delay; all without it.")
	program := flag.String("program", "", "The file of lowlatency-traffic; built with hack/traffic.sh without it.")
	flag.Parse()
	s, err := newStage(ctx, *program, *rounds)
	if err != nil {
		return errors.Join(err, s.clear())
	}
	var rows []row
	for _, one := range judges() {
		if *only != "" && !strings.Contains(","+*only+",", ","+one.name+",") {
			continue
		}
		fmt.Fprintln(os.Stderr, "judge:", one.name)
		found, err := one.judge(ctx, s)
		rows = append(rows, found...)
		if errors.Is(err, errNoNetem) && *only == "" {
			fmt.Fprintln(os.Stderr, "judge-latency: left out: netem:", errNoNetem)
			continue
		}
		if err != nil {
			return errors.Join(show(rows), fmt.Errorf("%s: %w", one.name, err), s.clear())
		}
	}
	return errors.Join(show(rows), certain(rows), s.clear())
}

// certain is an error for a count that is wrong: counts do not depend on how busy the machine is, as times do.
func certain(rows []row) error {
	var errs []error
	for _, r := range rows {
		if r.bound == exact && !r.holds {
			errs = append(errs, fmt.Errorf("%s: %s were injected, and %s found", r.what, r.known, r.measured))
		}
	}
	return errors.Join(errs...)
}

// show prints the table. A time that does not hold is shown as such, and is no error: on a machine at work, times are those of the machine.
func show(rows []row) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', tabwriter.Debug)
	_, _ = fmt.Fprintln(w, "| What\t Known\t Measured\t Off\t Bound\t Holds\t")
	_, _ = fmt.Fprintln(w, "|---\t---\t---\t---\t---\t---\t")
	for _, r := range rows {
		holds := "yes"
		if !r.holds {
			holds = "**no**"
		}
		_, _ = fmt.Fprintf(w, "| %s\t %s\t %s\t %s\t %s\t %s\t\n", r.what, r.known, r.measured, r.off, r.bound, holds)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}
