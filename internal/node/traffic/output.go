// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

const (
	// protocolLine is the first line of what the program prints.
	protocolLine = "lowlatency-traffic 5"
	// longestLine and mostLines bound what the program may print besides times.
	longestLine = 8192
	mostLines   = 100_000
	// mostTimes bounds the times of one block, as the program itself does; stamps are two for each of them.
	mostTimes = 101_000_000
	// mostStreamAnswers bounds the answers of one stream, each of which has three times.
	mostStreamAnswers = mostTimes / 3
	// mostVariables bounds what the server names of its environment, as in the program itself.
	mostVariables = 256
	// done is the word for the end of a whole measurement.
	done = "Done"
	// readAtOnce is how many times are read before there is memory for more.
	readAtOnce = 4096
)

// Output is what the program printed.
type Output struct {
	// ClockNanoseconds is what reading the clock costs.
	ClockNanoseconds int64
	// ServerName, ServerKernel, ServerCPU and ServerEnvironment are what the server said of itself.
	ServerName, ServerKernel string
	ServerCPU                int
	ServerEnvironment        []string
	Sizes                    []SizeTimes
	Streams                  []StreamTimes
	// Steady, Raw and Wall are how far three clocks went over the measurement; 0 when it did not end.
	Steady, Raw, Wall int64
	// Client and Server are what was counted over the whole measurement, and Parts over each of Sizes and then of Streams.
	Client, Server Counted
	Parts          []Part
	// ServerCounts is what the server says of its CPU, which nobody has looked at; "" where the measurement did not come to its end.
	ServerCounts string
	// End is the word for how it ended, and Message the sentence.
	End, Message string
}

// SizeTimes are the times of messages of one size.
type SizeTimes struct {
	Bytes       int
	Lost, Stray uint64
	// Elapsed is how long it took, in nanoseconds.
	Elapsed int64
	// Times are round trips in nanoseconds, in the order in which they were taken.
	Times []int64
	// Stamps are those of the same messages, one for each; nil where they were not asked for.
	Stamps []Stamp
}

// Stamp is when the kernel or the NIC has seen a message go and its answer come, in nanoseconds of a clock that both times have in common; 0 where it has
// not said.
type Stamp struct{ Sent, Received int64 }

// StreamTimes are the times of a stream of messages at a rate, and what the server saw of them.
type StreamTimes struct {
	// Rate in messages a second, and the bytes of each.
	Rate  uint64
	Bytes int
	// Count and ProbeCount are how many messages were sent, and Elapsed the nanoseconds until the last had left.
	Count, ProbeCount uint64
	Elapsed           int64
	// Late messages left more than an interval after their time, the latest by Latest nanoseconds. Blocked is how often the socket had no room.
	Late    uint64
	Latest  int64
	Blocked uint64
	// Wanted is how many messages asked for an answer.
	Wanted       uint64
	Load, Probes Tally
	// Foreign messages belonged to neither.
	Foreign uint64
	Answers []Answer
}

// Tally is what the server saw of a stream.
type Tally struct{ Received, Duplicates, Reordered, Gaps uint64 }

// Answer is when a message was to leave, when it left, and when its answer was there, in nanoseconds since the begin of the stream.
type Answer struct{ Intended, Actual, Back int64 }

// Counted is what an end counted of itself, and the kernel of it. Kernel is -1 when it does not say.
type Counted struct {
	Messages uint64
	Kernel   int64
	// Preemptions is how often the kernel gave the CPU of the program to something else, and Faults how often a page was not there.
	Preemptions, Faults uint64
}

// Part is what was counted at both ends while one size was measured, or one stream.
type Part struct{ Client, Server Counted }

// Read reads what the program prints, to its end. Output without an end is an error; what came before is returned with it.
func Read(from io.Reader) (*Output, error) {
	r := &reader{in: bufio.NewReaderSize(from, longestLine), out: &Output{Client: Counted{Kernel: -1}, Server: Counted{Kernel: -1}}}
	line, err := r.line()
	if err != nil || line != protocolLine {
		return r.out, fmt.Errorf("the program prints %.100q, not %q: it is another version", line, protocolLine)
	}
	for range mostLines {
		if line, err = r.line(); err != nil {
			return r.out, fmt.Errorf("the program ended without a word: %w", err)
		}
		if err := r.take(line); err != nil {
			return r.out, fmt.Errorf("the program prints %.100q: %w", line, err)
		}
		if r.out.End != "" {
			return r.out, nil
		}
	}
	return r.out, fmt.Errorf("the program prints more than %d lines", mostLines)
}

type reader struct {
	in  *bufio.Reader
	out *Output
}

func (r *reader) line() (string, error) {
	line, err := r.in.ReadSlice('\n')
	if err != nil {
		return string(line), err
	}
	return strings.TrimSuffix(string(line), "\n"), nil
}

// take reads one line.
func (r *reader) take(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	fields := strings.Fields(rest)
	switch word {
	case "clock":
		return scan(fields, &r.out.ClockNanoseconds)
	case "server":
		return scan(fields, &r.out.ServerCPU, &r.out.ServerName, &r.out.ServerKernel)
	case "environment":
		return r.environment(rest)
	case "clocks":
		return scan(fields, &r.out.Steady, &r.out.Raw, &r.out.Wall)
	case "counters":
		r.out.ServerCounts = rest
		return nil
	case "counted":
		return countedAt(fields, &r.out.Client, &r.out.Server)
	case "part":
		return r.part(fields)
	case "end":
		return r.end(rest)
	}
	return r.block(word, fields)
}

// block reads a line that times follow.
func (r *reader) block(word string, fields []string) error {
	switch word {
	case "samples":
		return r.samples(fields)
	case "stamps":
		return r.stamps(fields)
	case "stream":
		return r.stream(fields)
	}
	return errors.New("no such line is known")
}

// environment reads a variable of the server, which alone says how many there are.
func (r *reader) environment(variable string) error {
	if len(r.out.ServerEnvironment) == mostVariables {
		return fmt.Errorf("the server names more than %d variables of its environment", mostVariables)
	}
	r.out.ServerEnvironment = append(r.out.ServerEnvironment, variable)
	return nil
}

func (r *reader) end(text string) error {
	r.out.End, r.out.Message, _ = strings.Cut(text, " ")
	if r.out.End == "" {
		return errors.New("no word for the end")
	}
	if parts, measured := len(r.out.Parts), len(r.out.Sizes)+len(r.out.Streams); r.out.End == done && parts != measured {
		return fmt.Errorf("%d sizes and rates were measured, and %d counted", measured, parts)
	}
	if r.out.End == done && r.out.ServerCounts == "" {
		return errors.New("what the server says of its CPU is missing")
	}
	return nil
}

// part reads what one end counted of a part; the client comes first.
func (r *reader) part(fields []string) error {
	if len(fields) > 0 && fields[0] == "client" {
		r.out.Parts = append(r.out.Parts, Part{Server: Counted{Kernel: -1}})
	}
	if len(r.out.Parts) == 0 || len(r.out.Parts) > len(r.out.Sizes)+len(r.out.Streams) {
		return errors.New("no such part was measured")
	}
	last := &r.out.Parts[len(r.out.Parts)-1]
	return countedAt(fields, &last.Client, &last.Server)
}

func countedAt(fields []string, client, server *Counted) error {
	if len(fields) == 0 {
		return errors.New("an end is needed")
	}
	end := client
	if fields[0] == "server" {
		end = server
	}
	return scan(fields[1:], &end.Messages, &end.Kernel, &end.Preemptions, &end.Faults)
}

// samples reads the times of a size, which follow the line as 8 bytes each, the lowest first.
func (r *reader) samples(fields []string) error {
	var one SizeTimes
	var count uint64
	if err := scan(fields, &one.Bytes, &count, &one.Lost, &one.Stray, &one.Elapsed); err != nil {
		return err
	}
	if count > mostTimes {
		return fmt.Errorf("%d times are too many", count)
	}
	var err error
	if one.Times, err = r.times(count); err != nil {
		return err
	}
	r.out.Sizes = append(r.out.Sizes, one)
	return nil
}

// stamps reads those of the size that was read last, two for each of its times.
func (r *reader) stamps(fields []string) error {
	var count uint64
	if err := scan(fields, &count); err != nil {
		return err
	}
	if len(r.out.Sizes) == 0 {
		return errors.New("no such size was measured")
	}
	last := &r.out.Sizes[len(r.out.Sizes)-1]
	if last.Stamps != nil || count != uint64(len(last.Times)) {
		return fmt.Errorf("there are %d times of this size", len(last.Times))
	}
	times, err := r.times(2 * count)
	if err != nil {
		return err
	}
	last.Stamps = make([]Stamp, 0, count)
	for two := range slices.Chunk(times, 2) {
		last.Stamps = append(last.Stamps, Stamp{two[0], two[1]})
	}
	return nil
}

// stream reads what was seen of a stream; the times of its answers follow, three for each.
func (r *reader) stream(fields []string) error {
	var one StreamTimes
	var count uint64
	if err := scan(fields, &one.Rate, &one.Bytes, &one.Count, &one.ProbeCount, &one.Elapsed, &one.Late, &one.Latest, &one.Blocked, &one.Wanted, &count,
		&one.Load.Received, &one.Load.Duplicates, &one.Load.Reordered, &one.Load.Gaps,
		&one.Probes.Received, &one.Probes.Duplicates, &one.Probes.Reordered, &one.Probes.Gaps, &one.Foreign); err != nil {
		return err
	}
	if count > mostStreamAnswers {
		return fmt.Errorf("%d answers are too many", count)
	}
	if one.Load.Received > one.Count || one.Probes.Received > one.ProbeCount {
		return errors.New("more came than was sent")
	}
	times, err := r.times(3 * count)
	if err != nil {
		return err
	}
	for three := range slices.Chunk(times, 3) {
		one.Answers = append(one.Answers, Answer{three[0], three[1], three[2]})
	}
	r.out.Streams = append(r.out.Streams, one)
	return nil
}

// times reads a block of times and the end of its line.
func (r *reader) times(count uint64) ([]int64, error) {
	var times []int64
	block := make([]byte, 8*readAtOnce)
	for left := int(count); left > 0; {
		n := min(left, readAtOnce)
		if _, err := io.ReadFull(r.in, block[:8*n]); err != nil {
			return nil, fmt.Errorf("%d of %d times are missing: %w", left, count, err)
		}
		for i := range n {
			times = append(times, int64(binary.NativeEndian.Uint64(block[8*i:])))
		}
		left -= n
	}
	if newline, err := r.in.ReadByte(); err != nil || newline != '\n' {
		return nil, errors.New("the times do not end with a line")
	}
	return times, nil
}

// scan reads words into values, one for each.
func scan(words []string, into ...any) error {
	if len(words) != len(into) {
		return fmt.Errorf("%d words are needed", len(into))
	}
	for i, word := range words {
		var err error
		switch value := into[i].(type) {
		case *string:
			*value = word
		case *int:
			*value, err = strconv.Atoi(word)
		case *int64:
			*value, err = strconv.ParseInt(word, 10, 64)
		case *uint64:
			*value, err = strconv.ParseUint(word, 10, 64)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
