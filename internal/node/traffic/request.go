// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

const (
	// Port is the one that the server listens on unless told otherwise, that of sfnt-pingpong.
	Port = 2048
	// Group is the multicast group unless told otherwise.
	Group = latency.DefaultGroup
	// largestMessage in bytes, of a datagram and of a stream.
	largestDatagram, largestMessage = 65507, 65536
	// mostSizes bounds a measurement.
	mostSizes = 64
	// mostPings and mostBatch are bounds of the program.
	mostPings, mostBatch = 100_000_000, 1_000_000
)

// Request says what ping-pong measures. DefaultRequest has the values of sfnt-pingpong.
type Request struct {
	// Host and Port of the server.
	Host string
	Port int
	// Transport carries messages; Group is the group of Multicast.
	Transport latency.Transport
	Group     string
	Waiting   latency.Waiting
	// CPU that the client is kept to; -1 for none.
	CPU int
	// Sizes of messages in bytes.
	Sizes []int
	// WarmUp pings at least so long, and WarmUpPings times, before anything is measured.
	WarmUp      time.Duration
	WarmUpPings int
	// Batch is how many pings follow each other after one that is not timed.
	Batch int
	// A size is measured while less than MaximumTime passed and less than MaximumPings were tried, and at least for MinimumTime.
	MinimumTime, MaximumTime time.Duration
	MaximumPings             int
	// Timeout is how long a datagram may take before it is lost.
	Timeout time.Duration
	// RoundTrip reports whole round trips instead of halves.
	RoundTrip bool
	// Frames send and receive messages by a socket of AF_XDP; nil for sockets of the C library.
	Frames *Frames
	// Stamper is who stamps messages besides; "" for nobody.
	Stamper latency.Stamper
}

// DefaultRequest measures as sfnt-pingpong does unless told otherwise.
func DefaultRequest() Request {
	return Request{
		Port: Port, Transport: latency.TCP, Group: Group, Waiting: latency.Block, CPU: -1,
		WarmUp: 500 * time.Millisecond, WarmUpPings: 10_000, Batch: 1000,
		MinimumTime: time.Second, MaximumTime: 3 * time.Second, MaximumPings: 1_000_000, Timeout: 200 * time.Millisecond,
	}
}

// DefaultSizes are those of sfnt-pingpong for a transport.
func DefaultSizes(transport latency.Transport) []int {
	if transport == latency.TCP {
		return doubling(1, 65536)
	}
	return append(append([]int{0}, doubling(1, 1024)...), append([]int{1472, 1473}, doubling(2048, 32768)...)...)
}

func doubling(from, to int) []int {
	var sizes []int
	for size := from; size <= to; size *= 2 {
		sizes = append(sizes, size)
	}
	return sizes
}

// Check says what is wrong with a request.
func (r *Request) Check() error {
	if r.Host == "" {
		return errors.New("the name or address of the server is missing")
	}
	if r.Port < 1 || r.Port > 65535 {
		return fmt.Errorf("port %d: ports are from 1 to 65535", r.Port)
	}
	if group, err := netip.ParseAddr(r.Group); r.Transport == latency.Multicast && (err != nil || !group.Is4() || !group.IsMulticast()) {
		return fmt.Errorf("group %q: multicast groups are from 224.0.0.0 to 239.255.255.255", r.Group)
	}
	if err := errors.Join(r.checkCounts(), r.checkTimes(), r.checkSizes()); err != nil {
		return err
	}
	return r.checkFrames()
}

func (r *Request) checkCounts() error {
	if r.Batch < 1 || r.Batch > mostBatch || r.MaximumPings < 1 || r.MaximumPings > mostPings || r.WarmUpPings < 0 || r.WarmUpPings > mostPings {
		return fmt.Errorf("a batch has 1 to %d pings, and a measurement up to %d", mostBatch, mostPings)
	}
	return nil
}

func (r *Request) checkTimes() error {
	if r.WarmUp < 0 || r.MinimumTime < 0 || r.MaximumTime < r.MinimumTime || r.MaximumTime > 24*time.Hour || r.WarmUp > 24*time.Hour {
		return fmt.Errorf("times %s, %s to %s: the least is not above the most, and that is a day", r.WarmUp, r.MinimumTime, r.MaximumTime)
	}
	if r.Timeout < time.Millisecond || r.Timeout > time.Minute {
		return fmt.Errorf("timeout %s: it is from a millisecond to a minute", r.Timeout)
	}
	return nil
}

func (r *Request) checkSizes() error {
	if len(r.Sizes) == 0 || len(r.Sizes) > mostSizes {
		return fmt.Errorf("%d sizes: there are 1 to %d", len(r.Sizes), mostSizes)
	}
	least, most := 0, largestDatagram
	if r.Transport == latency.TCP {
		least, most = 1, largestMessage
	}
	for _, size := range r.Sizes {
		if size < least || size > most {
			return fmt.Errorf("size %d: messages over %s have %d to %d bytes", size, r.Transport, least, most)
		}
	}
	return nil
}

// arguments of the program.
func (r *Request) arguments() []string {
	sizes := make([]string, 0, len(r.Sizes))
	for _, size := range r.Sizes {
		sizes = append(sizes, strconv.Itoa(size))
	}
	spin := 0
	if r.Waiting == latency.Spin {
		spin = 1
	}
	group := "-"
	if r.Transport == latency.Multicast {
		group = r.Group
	}
	numbers := []struct {
		name  string
		value int64
	}{
		{"port", int64(r.Port)}, {"cpu", int64(r.CPU)}, {"spin", int64(spin)}, {"timeout-ms", r.Timeout.Milliseconds()},
		{"warm-ms", r.WarmUp.Milliseconds()}, {"warm-pings", int64(r.WarmUpPings)}, {"batch", int64(r.Batch)},
		{"min-ms", r.MinimumTime.Milliseconds()}, {"max-ms", r.MaximumTime.Milliseconds()}, {"max-pings", int64(r.MaximumPings)},
	}
	words := make([]string, 0, 5+len(numbers))
	words = append(words, "client", "host="+r.Host, "transport="+string(r.Transport), "group="+group, "sizes="+strings.Join(sizes, ","))
	for _, option := range numbers {
		words = append(words, fmt.Sprintf("%s=%d", option.name, option.value))
	}
	return append(append(words, r.Frames.arguments()...), r.stampsArguments()...)
}
