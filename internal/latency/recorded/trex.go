// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package recorded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// trexRecord is what the Python client of TRex in stateless mode gives: server by STLClient.get_server_version(), and stats by STLClient.get_stats() (trex-core,
// scripts/automation/trex_control_plane/interactive/trex/stl/trex_stl_stats.py). Of both, only what is read here is named.
type trexRecord struct {
	Server struct {
		Version string `json:"version"`
	} `json:"server"`
	Stats *struct {
		Total *struct {
			Out *count `json:"opackets"`
			In  *count `json:"ipackets"`
		} `json:"total"`
		Flows   map[string]json.RawMessage `json:"flow_stats"`
		Latency map[string]json.RawMessage `json:"latency"`
	} `json:"stats"`
}

// trexFlow are the messages of a group of streams, by ports and in total.
type trexFlow struct {
	Sent     map[string]count `json:"tx_pkts"`
	Received map[string]count `json:"rx_pkts"`
}

// trexLatency are the latencies of a group of streams in microseconds.
type trexLatency struct {
	Errors struct {
		Dropped    count `json:"dropped"`
		OutOfOrder count `json:"out_of_order"`
		Duplicates count `json:"dup"`
	} `json:"err_cntrs"`
	Latency struct {
		Histogram map[string]count `json:"histogram"`
	} `json:"latency"`
}

// count is a number of messages. TRex writes other values where it has none.
type count uint64

// UnmarshalJSON reads a whole number that is not negative.
func (c *count) UnmarshalJSON(text []byte) error {
	value, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 53)
	if err != nil {
		return fmt.Errorf("%.40q is no number of messages", text)
	}
	*c = count(value)
	return nil
}

// readTRex reads the JSON form of a record.
func (r *Run) readTRex(text []byte) error {
	var record trexRecord
	if err := json.Unmarshal(text, &record); err != nil {
		return fmt.Errorf("the record is not JSON of TRex's statistics: %w", err)
	}
	if record.Stats == nil {
		return errors.New(`the record has no "stats": write {"server": client.get_server_version(), "stats": client.get_stats()}`)
	}
	r.Version = printable(record.Server.Version)
	probes, steps, err := r.readLatency(record.Stats.Latency)
	if err != nil {
		return err
	}
	if err := r.readFlows(record.Stats.Flows, probes); err != nil {
		return err
	}
	if r.Rate.Load.Sent == 0 {
		total := record.Stats.Total
		if total == nil || total.Out == nil || total.In == nil {
			return errors.New(`the record has neither flow_stats of a stream nor opackets and ipackets of "total"`)
		}
		if r.Rate.Load, err = streamOf(uint64(*total.Out), uint64(*total.In)); err != nil {
			return err
		}
	}
	r.Rate.FromIntended, r.Highest, err = distributionsOf(steps)
	return err
}

// readLatency reads the groups of streams whose latency was taken, and their latencies together.
func (r *Run) readLatency(groups map[string]json.RawMessage) (names []string, steps map[int64]uint64, err error) {
	steps = map[int64]uint64{}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		if _, err := strconv.ParseUint(name, 10, 32); err != nil {
			// "global" counts what belongs to no group.
			continue
		}
		var group trexLatency
		if err := json.Unmarshal(groups[name], &group); err != nil {
			return nil, nil, fmt.Errorf("latency of group %s: %w", name, err)
		}
		if r.Rate.Probes == nil {
			r.Rate.Probes = &latency.Stream{}
		}
		r.Rate.Probes.Lost += uint64(group.Errors.Dropped)
		r.Rate.Probes.Reordered += uint64(group.Errors.OutOfOrder)
		r.Rate.Probes.Duplicates += uint64(group.Errors.Duplicates)
		if err := addSteps(steps, group.Latency.Histogram); err != nil {
			return nil, nil, fmt.Errorf("histogram of group %s: %w", name, err)
		}
		names = append(names, name)
	}
	return names, steps, nil
}

// addSteps adds the steps of a histogram, by the lowest microseconds of each.
func addSteps(steps map[int64]uint64, histogram map[string]count) error {
	for key, number := range histogram {
		from, err := strconv.ParseInt(key, 10, 40)
		if err != nil || from < 0 || (from > 0 && from != stepOf(from)*(from/stepOf(from))) || (from > 0 && from < 10) {
			return fmt.Errorf("%.20q is no step: they begin at 0, 10, 20 to 90, 100, 200 and so on", key)
		}
		steps[from] += uint64(number)
	}
	return nil
}

// stepOf is how wide the step is that begins at so many microseconds: as the power of ten below, and 10 for the first.
func stepOf(from int64) int64 {
	step := int64(10)
	for step <= from/10 {
		step *= 10
	}
	return step
}

// readFlows reads what became of the messages of the groups of streams, of which some are probes.
func (r *Run) readFlows(groups map[string]json.RawMessage, probes []string) error {
	var sent, received, probed uint64
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		if _, err := strconv.ParseUint(name, 10, 32); err != nil {
			continue
		}
		var flow trexFlow
		if err := json.Unmarshal(groups[name], &flow); err != nil {
			return fmt.Errorf("flow_stats of group %s: %w", name, err)
		}
		if slices.Contains(probes, name) {
			probed += total(flow.Sent)
			continue
		}
		sent, received = sent+total(flow.Sent), received+total(flow.Received)
	}
	if r.Rate.Probes != nil {
		if r.Rate.Probes.Sent = probed; r.Rate.Probes.Lost > probed && probed > 0 {
			return fmt.Errorf("%d probes were lost, and %d sent", r.Rate.Probes.Lost, probed)
		}
	}
	var err error
	r.Rate.Load, err = streamOf(sent, received)
	return err
}

// total is the sum over ports, which TRex writes beside them.
func total(ports map[string]count) uint64 {
	sum := uint64(0)
	for port, number := range ports {
		if port != "total" {
			sum += uint64(number)
		}
	}
	return sum
}

// distributionsOf are latencies at the lower and at the upper ends of their steps; none without samples.
func distributionsOf(steps map[int64]uint64) (low, high latency.Distribution, err error) {
	begins := slices.Sorted(maps.Keys(steps))
	samples := uint64(0)
	for _, from := range begins {
		if samples += steps[from]; samples > math.MaxInt64/100 {
			return low, high, errors.New("the histogram has more messages than can be")
		}
	}
	if samples == 0 {
		return low, high, nil
	}
	low, high = latency.Distribution{Samples: samples, Percentiles: []latency.Percentile{}}, latency.Distribution{Samples: samples, Percentiles: []latency.Percentile{}}
	ends := func(rank uint64) (int64, int64) {
		for _, from := range begins {
			if rank < steps[from] {
				return from * int64(time.Microsecond), (from + stepOf(from)) * int64(time.Microsecond)
			}
			rank -= steps[from]
		}
		return 0, 0
	}
	low.MinimumNanoseconds, high.MinimumNanoseconds = ends(0)
	low.MaximumNanoseconds, high.MaximumNanoseconds = ends(samples - 1)
	low.MedianNanoseconds, high.MedianNanoseconds = ends(samples / 2)
	for _, percent := range latency.Ladder() {
		if samples < latency.Samples(percent) {
			continue
		}
		rank := min(uint64(float64(samples)*percent/100+1e-9), samples-1)
		from, to := ends(rank)
		one := latency.Percentile{Percent: percent, Nanoseconds: from, LowNanoseconds: from, HighNanoseconds: &to, Beyond: samples - 1 - rank}
		low.Percentiles = append(low.Percentiles, one)
		one.Nanoseconds = to
		high.Percentiles = append(high.Percentiles, one)
	}
	return low, high, nil
}
