// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package recorded

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// trexRecord is what the Python client of TRex in stateless mode gives: server by STLClient.get_server_version(), and stats by STLClient.get_stats() (trex-core,
// scripts/automation/trex_control_plane/interactive/trex/stl/trex_stl_stats.py). Of both, only what is read here is named.
type trexRecord struct {
	Server struct {
		Version string `json:"version"`
	} `json:"server"`
	Stats *struct {
		Total   *trexTotal                 `json:"total"`
		Flows   map[string]json.RawMessage `json:"flow_stats"`
		Latency map[string]json.RawMessage `json:"latency"`
	} `json:"stats"`
}

// trexTotal are the messages of all ports.
type trexTotal struct {
	Out *count `json:"opackets"`
	In  *count `json:"ipackets"`
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
		// Histogram has steps as wide as their first digit. HDR is the same as an HDR histogram, V2 compressed, in base64; "" unless the server was started with --hdrh.
		Histogram map[string]count `json:"histogram"`
		HDR       string           `json:"hdrh"`
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
	probes, lengths, err := r.readLatency(record.Stats.Latency)
	if err != nil {
		return err
	}
	if err := r.readFlows(record.Stats.Flows, probes); err != nil {
		return err
	}
	if r.Rate.FromIntended, r.Highest, err = lengths.distributions(); err != nil {
		return err
	}
	if p := r.Rate.Probes; p != nil {
		// Latencies are those of the probes that came.
		r.Rate.AnswersWanted, r.Rate.AnswersLost = cmp.Or(p.Sent, p.Lost+r.Rate.FromIntended.Samples), p.Lost
	}
	if r.Rate.Load.Sent > 0 {
		return nil
	}
	return r.readTotal(record.Stats.Total)
}

// readTotal reads what became of the messages of the load where no group of streams has them. The total has the probes, too, which are counted as such; where
// there is nothing else, they are the load.
func (r *Run) readTotal(total *trexTotal) (err error) {
	if total == nil || total.Out == nil || total.In == nil {
		return errors.New(`the record has neither flow_stats of a stream nor opackets and ipackets of "total"`)
	}
	load := &r.Rate.Load
	if *load, err = streamOf(uint64(*total.Out), uint64(*total.In)); err != nil || r.Rate.Probes == nil {
		return err
	}
	probes := r.Rate.Probes
	if probes.Sent >= load.Sent {
		load.Reordered, load.Duplicates, r.Rate.Probes = probes.Reordered, probes.Duplicates, nil
		return nil
	}
	load.Sent -= probes.Sent
	load.Lost = min(load.Lost-min(load.Lost, probes.Lost), load.Sent)
	return nil
}

// readLatency reads the groups of streams whose latency was taken, and their latencies together.
func (r *Run) readLatency(groups map[string]json.RawMessage) (names []string, all lengths, err error) {
	all = lengths{coarse: map[step]uint64{}, fine: map[step]uint64{}}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		if _, err := strconv.ParseUint(name, 10, 32); err != nil {
			// "global" counts what belongs to no group.
			continue
		}
		var group trexLatency
		if err := json.Unmarshal(groups[name], &group); err != nil {
			return nil, all, fmt.Errorf("latency of group %s: %w", name, err)
		}
		if r.Rate.Probes == nil {
			r.Rate.Probes = &latency.Stream{}
		}
		r.Rate.Probes.Lost += uint64(group.Errors.Dropped)
		r.Rate.Probes.Reordered += uint64(group.Errors.OutOfOrder)
		r.Rate.Probes.Duplicates += uint64(group.Errors.Duplicates)
		if err := all.addCoarse(group.Latency.Histogram); err != nil {
			return nil, all, fmt.Errorf("histogram of group %s: %w", name, err)
		}
		if err := all.addFine(group.Latency.HDR); err != nil {
			return nil, all, fmt.Errorf("hdrh of group %s: %w", name, err)
		}
		names = append(names, name)
	}
	return names, all, nil
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
