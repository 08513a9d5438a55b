// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// options are what the command line asks for.
type options struct {
	rounds  int
	program string
	// server and delayed are "" where both ends are on this machine.
	server, delayed string
	sizes           []int
	// judges are those that run, and isWhole tells that nobody has chosen some of them.
	judges  []judge
	isWhole bool
}

// The smallest message that all three programs send, which is sockperf's, and the largest that is one frame of Ethernet over UDP.
const smallestMessage, largestMessage = 14, 1472

func parseOptions(arguments []string) (options, error) {
	var o options
	var only, sizes string
	flags := flag.NewFlagSet("latency", flag.ContinueOnError)
	flags.IntVar(&o.rounds, "rounds", 7, "How often each program measures in turns, at least 5.")
	flags.StringVar(&only, "only", "", "The judges to run, such as count,delay; all without it.")
	flags.StringVar(&o.program, "program", "", "The file of lowlatency-traffic; built with hack/traffic.sh without it.")
	flags.StringVar(&o.server, "server", "", "The address of another machine, where the servers of lowlatency-traffic, sockperf and qperf run already; "+
		"network namespaces of this machine without it.")
	flags.StringVar(&o.delayed, "delayed", "", "With -server: the interface of this machine that leads there, whose packets netem may hold back for the judge of delays.")
	flags.StringVar(&sizes, "sizes", "64", "The sizes of messages in bytes that are compared with those of sockperf and qperf.")
	if err := flags.Parse(arguments); err != nil {
		return o, fmt.Errorf("reading the command line: %w", err)
	}
	if o.rounds < latency.PairsNeeded {
		return o, fmt.Errorf("-rounds %d: it takes %d to carry an interval", o.rounds, latency.PairsNeeded)
	}
	if err := o.checkServer(); err != nil {
		return o, err
	}
	var err error
	if o.sizes, err = parseSizes(sizes); err != nil {
		return o, err
	}
	o.isWhole = only == ""
	o.judges, err = o.chosen(only)
	return o, err
}

func (o *options) checkServer() error {
	if o.server == "" {
		if o.delayed != "" {
			return errors.New("-delayed is for -server: between network namespaces the judges know what to delay")
		}
		return nil
	}
	if address, err := netip.ParseAddr(o.server); err != nil || !address.Is4() {
		return fmt.Errorf("-server %s is no address of IPv4", o.server)
	}
	return nil
}

// parseSizes reads sizes with commas between them.
func parseSizes(text string) ([]int, error) {
	var sizes []int
	for word := range strings.SplitSeq(text, ",") {
		size, err := strconv.Atoi(word)
		if err != nil || size < smallestMessage || size > largestMessage {
			return nil, fmt.Errorf("-sizes: %q is no size from %d to %d bytes", word, smallestMessage, largestMessage)
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
}

// chosen are the judges that run: all that can without a choice.
func (o *options) chosen(only string) ([]judge, error) {
	can := judges()
	if o.server != "" {
		can = slices.DeleteFunc(judgesAway(), func(j judge) bool { return j.name == "delay" && o.delayed == "" })
	}
	if only == "" {
		return can, nil
	}
	names := make([]string, 0, len(can))
	for _, j := range can {
		names = append(names, j.name)
	}
	wanted := strings.Split(only, ",")
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("-only: there is no judge %q here, only %s", name, strings.Join(names, ", "))
		}
	}
	return slices.DeleteFunc(can, func(j judge) bool { return !slices.Contains(wanted, j.name) }), nil
}
