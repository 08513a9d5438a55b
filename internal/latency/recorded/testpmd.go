// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package recorded

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// The lines of testpmd that are read (DPDK, app/test-pmd/testpmd.c, fwd_stats_display, and config.c, nic_stats_display). A title begins a block, and a border
// or another title ends it. Option -v of EAL prints the version.
const (
	forwardTitle     = `Forward statistics for port`
	accumulatedTitle = `Accumulated forward statistics for all ports`
	nicTitle         = `NIC statistics for port`
)

func titleLine() *regexp.Regexp {
	return regexp.MustCompile(`^ *[-+#]+ ?(` + forwardTitle + `|` + accumulatedTitle + `|` + nicTitle + `) *([0-9]*) *[-+#]+ *$`)
}

func fieldOfLine() *regexp.Regexp { return regexp.MustCompile(`([A-Z][A-Za-z]*-[a-z]+): *([0-9]+)`) }

func borderLine() *regexp.Regexp { return regexp.MustCompile(`^ *[-+#]{20,} *$`) }

func versionLine() *regexp.Regexp { return regexp.MustCompile(`RTE Version: '([^']{1,60})'`) }

// block is what testpmd prints of a port, or of all.
type block struct {
	title, port string
	fields      map[string]uint64
}

// readTestpmd reads the text that testpmd printed: `show fwd stats all`, or what `stop` prints; otherwise `show port stats all`, once after these were
// cleared, or before and after.
func (r *Run) readTestpmd(text []byte, isForwarder bool) error {
	if found := versionLine().FindSubmatch(text); found != nil {
		r.Version = printable(string(found[1]))
	}
	blocks, err := blocksOf(string(text))
	if err != nil {
		return err
	}
	sum, err := sumOf(blocks)
	if err != nil {
		return err
	}
	if !isForwarder {
		r.Rate.Load, err = streamOf(sum["TX-packets"], sum["RX-packets"])
		return err
	}
	// What came to it was received, or dropped at the NIC; what it dropped afterwards is lost, too.
	arrived := sum["RX-packets"] + sum["RX-dropped"] + sum["RX-missed"] + sum["RX-nombuf"] + sum["RX-nombufs"]
	r.Rate.Load, err = streamOf(arrived, sum["TX-packets"])
	return err
}

// blocksOf are the blocks of a text in their order.
func blocksOf(text string) ([]block, error) {
	title, field, border := titleLine(), fieldOfLine(), borderLine()
	var blocks []block
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if found := title.FindStringSubmatch(line); found != nil {
			blocks = append(blocks, block{title: found[1], port: found[2], fields: map[string]uint64{}})
			inside = true
			continue
		}
		if border.MatchString(line) {
			inside = false
		}
		if !inside {
			continue
		}
		for _, found := range field.FindAllStringSubmatch(line, -1) {
			value, err := strconv.ParseUint(found[2], 10, 53)
			if err != nil {
				return nil, fmt.Errorf("%s of port %s: %.40q is no number of messages", found[1], blocks[len(blocks)-1].port, found[2])
			}
			blocks[len(blocks)-1].fields[found[1]] = value
		}
	}
	for i := range blocks {
		if err := blocks[i].check(); err != nil {
			return nil, err
		}
	}
	return blocks, nil
}

// check wants the numbers of a block to be there, and to add up.
func (b *block) check() error {
	for _, way := range []string{"RX", "TX"} {
		packets, found := b.fields[way+"-packets"]
		if !found {
			return fmt.Errorf("%s %s has no %s-packets: the record is cut off", b.title, b.port, way)
		}
		if whole, found := b.fields[way+"-total"]; found && whole != packets+b.fields[way+"-dropped"] {
			return fmt.Errorf("%s %s has %d of %s-total, and %s-packets and %s-dropped are %d together", b.title, b.port, whole, way, way, way, packets+b.fields[way+"-dropped"])
		}
	}
	return nil
}

// sumOf is what all ports count together: of the last forward statistics where there are some, and otherwise of the NICs, less what they counted in
// the first block where there are two.
func sumOf(blocks []block) (map[string]uint64, error) {
	forward, accumulated, first, last := map[string]*block{}, (*block)(nil), map[string]*block{}, map[string]*block{}
	for i := range blocks {
		b := &blocks[i]
		switch b.title {
		case forwardTitle:
			forward[b.port], accumulated = b, nil
		case accumulatedTitle:
			accumulated = b
		default:
			if first[b.port] == nil {
				first[b.port] = b
			}
			last[b.port] = b
		}
	}
	if len(forward) > 0 {
		sum := map[string]uint64{}
		for _, b := range forward {
			addFields(sum, b.fields)
		}
		return sum, agrees(sum, accumulated)
	}
	if len(last) == 0 {
		return nil, errors.New("the record has neither forward statistics nor NIC statistics of a port: it is what testpmd prints at `show fwd stats all` or `show port stats all`")
	}
	return differences(first, last)
}

// agrees is an error when the block of all ports, which testpmd prints after them, is not there, or does not have the sums of the ports: then some of them
// are missing.
func agrees(sum map[string]uint64, accumulated *block) error {
	if accumulated == nil {
		return errors.New("the record is cut off: it has no " + accumulatedTitle)
	}
	for _, field := range []string{"RX-packets", "TX-packets"} {
		if accumulated.fields[field] != sum[field] {
			return fmt.Errorf("%s has %d of %s, and its ports have %d: the record lacks a port", accumulatedTitle, accumulated.fields[field], field, sum[field])
		}
	}
	return nil
}

// differences are the sums of the last blocks of ports, less the first ones of those that have two.
func differences(first, last map[string]*block) (map[string]uint64, error) {
	sum := map[string]uint64{}
	for port, b := range last {
		fields := b.fields
		if before := first[port]; before != b {
			fields = map[string]uint64{}
			for name, value := range b.fields {
				if value < before.fields[name] {
					return nil, fmt.Errorf("%s of port %s went from %d to %d: it was cleared between the two", name, port, before.fields[name], value)
				}
				fields[name] = value - before.fields[name]
			}
		}
		addFields(sum, fields)
	}
	return sum, nil
}

func addFields(sum, fields map[string]uint64) {
	for name, value := range fields {
		sum[name] += value
	}
}

// printable is a text of another program without what a terminal would obey.
func printable(text string) string {
	const most = 60
	cleaned := strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return '?'
	}, text)
	return strings.TrimSpace(cleaned[:min(len(cleaned), most)])
}
