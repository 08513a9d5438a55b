// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

const (
	// clocksApart is how much longer than the program waited two stamps may be apart, since they are of another clock: a share of the time, and the step
	// in which clocks of NICs count, with room.
	clocksApart = 1000
	clockSteps  = int64(time.Microsecond)
)

// stampsName is how the program calls who stamps.
func stampsName(by latency.Stamper) string {
	return map[latency.Stamper]string{latency.StampedByKernel: "kernel", latency.StampedByNIC: "nic"}[by]
}

// stampsArguments of the program; none for nobody.
func (r *Request) stampsArguments() []string {
	if r.Stamper == "" {
		return nil
	}
	return []string{"timestamps=" + stampsName(r.Stamper)}
}

// checkStamps says why messages of a request cannot be stamped, by a program with this environment.
func (r *Request) checkStamps(environment []string, budget latency.Budget) error {
	if r.Stamper == "" {
		return nil
	}
	if r.Frames != nil {
		return errors.New("frames of AF_XDP pass by the sockets of the kernel, which alone tell stamps")
	}
	if budget.Accelerated {
		return errors.New("an accelerated path passes by the sockets of the kernel, which alone tell stamps")
	}
	at := slices.IndexFunc(environment, func(one string) bool {
		name, value, _ := strings.Cut(one, "=")
		return name == "LD_PRELOAD" && value != ""
	})
	if at >= 0 {
		return fmt.Errorf("%s: a stack in the place of the kernel's sockets has stamps of its own form, or none, and whether it does is not known here: measure without it",
			printable(environment[at]))
	}
	return nil
}

// stamping is who stamps the messages of a measurement.
type stamping struct {
	setup *latency.Stamping
	// nic is set for the measurement; nil for stamps of the kernel.
	nic    *nicStamping
	notice func(string)
}

// openStamping prepares the stamps that a measurement asks for, if any.
func openStamping(options *Options) (*stamping, error) {
	r := &options.Request
	if r.Stamper == "" {
		return &stamping{}, nil
	}
	if err := r.checkStamps(ofProgram(options.Environment), options.Budget); err != nil {
		return nil, err
	}
	by, err := interfaceTo(r.Host, r.Port)
	if err != nil {
		return nil, err
	}
	s := &stamping{setup: &latency.Stamping{By: r.Stamper, Interface: by}, notice: options.Notice}
	if r.Stamper == latency.StampedByNIC {
		if s.nic, err = openNICOfHost(by, s.notice); err != nil {
			return nil, err
		}
		s.setup.Clock = s.nic.clock
	}
	return s, nil
}

// close ends the stamping of messages, puts back what was set for it, and says in the result, which may be nil, what there was.
func (s *stamping) close(result *latency.Result) {
	var left error
	if s.nic != nil {
		left = s.nic.putBack()
	}
	if left != nil {
		s.notice(left.Error())
	}
	if result == nil || s.setup == nil {
		return
	}
	if left != nil {
		result.Remarks = append(result.Remarks, left.Error())
	}
	result.Setup.Stamping = s.setup
	for i := range result.Sizes {
		if lack := result.Sizes[i].Stamps.Lack(); lack != "" {
			result.Remarks = append(result.Remarks, fmt.Sprintf("stamps of %d bytes: %s", result.Sizes[i].Bytes, lack))
		}
	}
}

// stampsOf are what the stamps of a size tell; nil where there are none because nobody asked.
func stampsOf(r *Request, s *SizeTimes, cost int64) (*latency.Stamps, error) {
	if r.Stamper == "" {
		return nil, nil
	}
	found := &latency.Stamps{Messages: uint64(len(s.Times))}
	wires, hosts := make([]int64, 0, len(s.Times)), make([]int64, 0, len(s.Times))
	for i, time := range s.Times {
		var stamp Stamp
		if i < len(s.Stamps) {
			stamp = s.Stamps[i]
		}
		wire := stamp.Received - stamp.Sent
		switch {
		case stamp.Sent == 0 || stamp.Received == 0:
			found.WithoutSent += one(stamp.Sent == 0)
			found.WithoutReceived += one(stamp.Received == 0)
		case wire < 0 || wire > time+time/clocksApart+clockSteps:
			found.Impossible++
		default:
			wires, hosts = append(wires, wire), append(hosts, time-wire)
		}
	}
	var wireErr, hostErr error
	// What reading the clock costs is in the program's times alone.
	found.Wire, wireErr = latency.Distribute(latencies(wires, 0, r.RoundTrip))
	found.Host, hostErr = latency.Distribute(latencies(hosts, cost, r.RoundTrip))
	return found, errors.Join(wireErr, hostErr)
}

func one(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}
