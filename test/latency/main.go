// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Latency judges the measurements over the network, and prints a table: beside sockperf and qperf on the same path in turns, and against what is known
// because it was injected. It needs root, Debian's iproute2, sockperf, qperf and gcc, and /dev/net/tun; it makes two network namespaces and removes them.
//
//	go run ./test/latency [-rounds 7] [-only count,delay] [-sizes 64,1024]
//
// With -program, which names a lowlatency-traffic that is built, -only netem needs iproute2 alone. With -server it makes nothing: the servers of all three
// programs are on another machine, as make lab-judges starts them, and it is their client.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"text/tabwriter"
	"time"
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
	// why it does not hold, where that can be told; "" where the columns before say it.
	why string
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

// judgesAway are those of a server on another machine; all others need both ends on this one.
func judgesAway() []judge {
	return []judge{{"delay", judgeDelaysAway}, {"sockperf", judgeSockperf}, {"qperf", judgeQperf}}
}

func run(ctx context.Context) error {
	o, err := parseOptions(os.Args[1:])
	if err != nil {
		return err
	}
	s, err := newStage(ctx, o)
	if err != nil {
		return errors.Join(err, s.clear())
	}
	var rows []row
	for _, one := range o.judges {
		fmt.Fprintln(os.Stderr, "judge:", one.name)
		found, err := measured(ctx, s, one)
		rows = append(rows, found...)
		if errors.Is(err, errNoNetem) && o.isWhole {
			fmt.Fprintln(os.Stderr, "judge-latency: left out: netem:", errNoNetem)
			continue
		}
		if err != nil {
			return errors.Join(show(os.Stdout, rows), fmt.Errorf("%s: %w", one.name, err), s.clear())
		}
	}
	return errors.Join(show(os.Stdout, rows), certain(rows), s.clear())
}

// measured are the rows of a judge, and how busy the machine was meanwhile where that matters.
func measured(ctx context.Context, s *stage, one judge) ([]row, error) {
	begin, before := time.Now(), readPressure()
	rows, err := one.judge(ctx, s)
	if after := readPressure(); before != unknownPressure && after != unknownPressure {
		blame(rows, float64(after-before)/float64(time.Since(begin)))
	}
	return rows, err
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
func show(out io.Writer, rows []row) error {
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', tabwriter.Debug)
	_, _ = fmt.Fprintln(w, "| What\t Known\t Measured\t Off\t Bound\t Holds\t")
	_, _ = fmt.Fprintln(w, "|---\t---\t---\t---\t---\t---\t")
	for _, r := range rows {
		holds := "yes"
		if !r.holds {
			holds = "**no**"
			if r.why != "" {
				holds += ": " + r.why
			}
		}
		_, _ = fmt.Fprintf(w, "| %s\t %s\t %s\t %s\t %s\t %s\t\n", r.what, r.known, r.measured, r.off, r.bound, holds)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}
