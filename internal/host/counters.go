// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// counterTable is /proc/interrupts or /proc/softirqs: a header with one column for each online CPU, then
// lines of a name, the counters and, in interrupts, a description. It is not changed once it was read: facts share it.
type counterTable struct {
	columns []int
	lines   []InterruptLine
}

// counterParser reads a counter table as the kernel prints it (kernel/irq/proc.c, show_interrupts; fs/proc/softirqs.c).
// The text is written to it in pieces of any length, because it has some 20 MB on a host with 512 CPUs and 4,000
// interrupts, of which one line at a time is kept.
type counterParser struct {
	// earlier is the same table at another time. What stands there as well is taken from it: of thousands of
	// interrupts, a few have come since, so that the counts of the others need no memory of their own.
	earlier counterTable
	table   counterTable
	// begun is the beginning of the line whose end has not been written yet.
	begun []byte
}

// Write takes the next piece of the text; an error tells what makes no sense in it.
func (p *counterParser) Write(piece []byte) (int, error) {
	written := len(piece)
	for {
		line, rest, ended := bytes.Cut(piece, []byte{'\n'})
		if !ended {
			p.begun = append(p.begun, piece...)
			return written, nil
		}
		if len(p.begun) > 0 {
			p.begun = append(p.begun, line...)
			line = p.begun
		}
		if err := p.add(line); err != nil {
			return 0, err
		}
		p.begun, piece = p.begun[:0], rest
	}
}

// finish ends the text and returns the table. Zeros at the end are no content, see plainText.
func (p *counterParser) finish() (counterTable, error) {
	err := p.add(bytes.TrimRight(p.begun, "\x00"))
	return p.table, err
}

// add reads one line, of which the first is the header.
func (p *counterParser) add(line []byte) error {
	switch {
	case p.table.columns == nil:
		return p.header(string(line))
	case len(bytes.TrimSpace(line)) == 0:
		return nil
	case len(p.table.lines) == maxEntries:
		return tooManyError{maxEntries}
	}
	parsed, err := p.parse(line)
	if err != nil {
		return fmt.Errorf("line %d: %w", len(p.table.lines)+2, err)
	}
	if p.table.lines == nil {
		p.table.lines = make([]InterruptLine, 0, len(p.earlier.lines))
	}
	p.table.lines = append(p.table.lines, parsed)
	return nil
}

func (p *counterParser) header(line string) error {
	columns, err := parseColumns(line)
	if err != nil {
		return err
	}
	if slices.Equal(columns, p.earlier.columns) {
		columns = p.earlier.columns
	}
	p.table.columns = columns
	return nil
}

// parseColumns reads the header: "CPU0 CPU1 …" in ascending order.
func parseColumns(header string) ([]int, error) {
	var columns []int
	for field := range strings.FieldsSeq(header) {
		id, ok := numberIn(field, "CPU", "")
		if !ok || id > cpus.MaxCPU {
			return nil, fmt.Errorf("the header names %q where a CPU belongs", abbreviate(field))
		}
		if len(columns) > 0 && id <= columns[len(columns)-1] {
			return nil, fmt.Errorf("the header names CPU%d after CPU%d", id, columns[len(columns)-1])
		}
		columns = append(columns, id)
	}
	if len(columns) == 0 {
		return nil, errors.New("the header names no CPU")
	}
	return columns, nil
}

// parse reads one line. Lines that count for the whole machine have a single counter.
func (p *counterParser) parse(line []byte) (InterruptLine, error) {
	name, rest, ok := bytes.Cut(line, []byte{':'})
	name = bytes.TrimSpace(name)
	earlier := p.earlierLine(name)
	counts, description := readCounts(bytes.TrimSpace(rest), len(p.table.columns), earlier.Counts)
	// Counters are digits and spaces, so that only what stands around them can be binary.
	if !ok || len(name) == 0 || !isPlain(name) || !isPlain(description) {
		return InterruptLine{}, fmt.Errorf("%q is not of the form NAME: COUNTERS", abbreviate(string(line)))
	}
	return InterruptLine{
		Name: textOr(earlier.Name, name), Counts: counts, Description: textOr(earlier.Description, description),
	}, nil
}

// earlierLine is the line in the same place of the earlier table, if it has the same name. When interrupts were added
// or removed, those below them are kept anew once.
func (p *counterParser) earlierLine(name []byte) InterruptLine {
	if at := len(p.table.lines); at < len(p.earlier.lines) && p.earlier.lines[at].Name == string(name) {
		return p.earlier.lines[at]
	}
	return InterruptLine{}
}

// textOr is a text as a string: the known one if that is equal.
func textOr(known string, text []byte) string {
	if known == string(text) {
		return known
	}
	return string(text)
}

func isPlain(text []byte) bool { return utf8.Valid(text) && !bytes.ContainsFunc(text, isBinary) }

// readCounts takes as many numbers off the beginning of a text as there are, at most one for each column. The result
// is the earlier one as long as the counts are equal.
func readCounts(text []byte, columns int, earlier []uint64) (counts []uint64, rest []byte) {
	var own []uint64
	length := 0
	for ; length < columns; length++ {
		count, after, ok := cutCount(text)
		if !ok {
			break
		}
		text = after
		if own == nil && length < len(earlier) && earlier[length] == count {
			continue
		}
		if own == nil {
			// Each counter takes two bytes at least, which bounds what a short line with many columns may cost.
			own = append(make([]uint64, 0, min(columns, length+1+len(text)/2)), earlier[:length]...)
		}
		own = append(own, count)
	}
	switch {
	case own != nil:
		counts = own
	case length > 0:
		counts = earlier[:length:length]
	default:
		counts = []uint64{}
	}
	return counts, bytes.TrimLeft(text, " ")
}

// cutCount takes a number off the beginning of a text, and the spaces before it.
func cutCount(text []byte) (count uint64, rest []byte, ok bool) {
	// Nearly all counters of a large host are zero: an interrupt comes to one or a few of its CPUs.
	const never = "          0 "
	if len(text) > len(never) && string(text[:len(never)]) == never {
		return 0, text[len(never)-1:], true
	}
	text = bytes.TrimLeft(text, " ")
	end := bytes.IndexByte(text, ' ')
	if end < 0 {
		end = len(text)
	}
	count, err := strconv.ParseUint(string(text[:end]), 10, 64)
	if err != nil {
		return 0, text, false
	}
	return count, text[end:], true
}
