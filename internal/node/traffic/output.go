// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	// protocolLine is the first line of what the program prints.
	protocolLine = "lowlatency-traffic 1"
	// longestLine and mostLines bound what the program may print besides times.
	longestLine = 8192
	mostLines   = 100_000
	// mostTimes bounds the times of one block, as the program itself does.
	mostTimes = 101_000_000
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
	// Steady, Raw and Wall are how far three clocks went over the measurement; 0 when it did not end.
	Steady, Raw, Wall int64
	Client, Server    Counted
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
}

// Counted is what an end counted of itself, and the kernel of it. Kernel is -1 when it does not say.
type Counted struct {
	Messages uint64
	Kernel   int64
}

// Progress is how far a measurement is.
type Progress struct {
	Bytes   int
	Samples uint64
}

// Read reads what the program prints, to its end. Output without an end is an error; what came before is returned with it.
func Read(from io.Reader, progress func(Progress)) (*Output, error) {
	r := &reader{in: bufio.NewReaderSize(from, longestLine), progress: progress, out: &Output{Client: Counted{Kernel: -1}, Server: Counted{Kernel: -1}}}
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
	in       *bufio.Reader
	progress func(Progress)
	out      *Output
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
		r.out.ServerEnvironment = append(r.out.ServerEnvironment, rest)
		return nil
	case "progress":
		var p Progress
		if err := scan(fields, &p.Bytes, &p.Samples); err != nil {
			return err
		}
		r.progress(p)
		return nil
	case "samples":
		return r.samples(fields)
	case "clocks":
		return scan(fields, &r.out.Steady, &r.out.Raw, &r.out.Wall)
	case "counted":
		return r.counted(fields)
	case "end":
		r.out.End, r.out.Message, _ = strings.Cut(rest, " ")
		if r.out.End == "" {
			return errors.New("no word for the end")
		}
		return nil
	}
	return errors.New("no such line is known")
}

func (r *reader) counted(fields []string) error {
	if len(fields) != 3 {
		return errors.New("3 words are needed")
	}
	end := &r.out.Client
	if fields[0] == "server" {
		end = &r.out.Server
	}
	return scan(fields[1:], &end.Messages, &end.Kernel)
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
	block := make([]byte, 8*readAtOnce)
	for left := int(count); left > 0; {
		n := min(left, readAtOnce)
		if _, err := io.ReadFull(r.in, block[:8*n]); err != nil {
			return fmt.Errorf("%d of %d times are missing: %w", left, count, err)
		}
		for i := range n {
			one.Times = append(one.Times, int64(binary.NativeEndian.Uint64(block[8*i:])))
		}
		left -= n
	}
	if newline, err := r.in.ReadByte(); err != nil || newline != '\n' {
		return errors.New("the times do not end with a line")
	}
	r.out.Sizes = append(r.out.Sizes, one)
	return nil
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
