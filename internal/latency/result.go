// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import "github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"

// Version is the version of the form of Result. It changes when a field changes its meaning, not when one is added.
const Version = 1

// Kind is the kind of a measurement.
type Kind string

const (
	// KindPingPong has one message under way at a time, as sfnt-pingpong does, for one size of messages after the other.
	KindPingPong Kind = "PingPong"
	// KindRateSweep sends messages on a schedule, whatever comes back, at one rate after the other.
	KindRateSweep Kind = "RateSweep"
	// KindLoadSearch looks for the highest rate that passes.
	KindLoadSearch Kind = "LoadSearch"
)

// Result is what a measurement over the network found. Its JSON form is documented in docs/latency.md.
type Result struct {
	Version int     `json:"version"`
	Kind    Kind    `json:"kind"`
	Outcome Outcome `json:"outcome"`
	// Generator is the name and the version of another program that has sent, and recorded its runs; "" for the project's own.
	Generator string `json:"generator,omitempty"`
	Setup     Setup  `json:"setup"`
	Path      Path   `json:"path"`
	// Preemptions is how often the kernel gave the CPU of the client to something else over ElapsedNanoseconds, ServerPreemptions the same of
	// the server, and PageFaults and ServerPageFaults how often a page of their memory was not there. All are 0 where the measurement did not come to its end.
	Preemptions        uint64 `json:"preemptions,omitempty"`
	ServerPreemptions  uint64 `json:"serverPreemptions,omitempty"`
	PageFaults         uint64 `json:"pageFaults,omitempty"`
	ServerPageFaults   uint64 `json:"serverPageFaults,omitempty"`
	ElapsedNanoseconds int64  `json:"elapsedNanoseconds,omitempty"`
	// Counted are the interrupts and softirqs on the CPU of the client over CountedNanoseconds, from before the client was started until it had
	// ended, the most frequent first. The time is 0 where nothing was counted, as where the client was kept to no CPU.
	Counted            []counted.Event `json:"counted,omitempty"`
	CountedNanoseconds int64           `json:"countedNanoseconds,omitempty"`
	// InterruptsFrom is where interrupts were counted: /proc/interrupts; /sys/kernel/irq, which has those of devices alone; or none.
	InterruptsFrom string `json:"interruptsFrom,omitempty"`
	// Isolation is what the scheduler and the idle governor counted on the CPU of the client over the same time; nil where nothing was counted.
	Isolation *counted.Isolation `json:"isolation,omitempty"`
	// ServerCounts are what was counted on the CPU of the server while it answered: one for each program that measured, of which a search starts one after
	// the other. There are none in results that were saved before servers counted, and where the measurement did not come to its end.
	ServerCounts []Counts `json:"serverCounts,omitempty"`
	// Remarks are sentences about what happened meanwhile and does not change the outcome.
	Remarks []string `json:"remarks,omitempty"`
	// Sizes are what ping-pong found, in the order of the measurement. Other kinds have one, found while nothing else was sent.
	Sizes []Size `json:"sizes,omitempty"`
	// Rates are what a sweep found, in the order of the measurement.
	Rates []Rate `json:"rates,omitempty"`
	// Load is what a search found.
	Load *Load `json:"load,omitempty"`
}

// Setup is how was measured.
type Setup struct {
	// Transport is TCP, UDP or Multicast.
	Transport Transport `json:"transport"`
	// Waiting is Spin or Block.
	Waiting Waiting `json:"waiting"`
	// Peer is the address and port of the server.
	Peer string `json:"peer"`
	// Group is the address of the multicast group.
	Group string `json:"group,omitempty"`
	// RoundTrip says whether latencies are those of the whole round trip; they are half of it otherwise.
	RoundTrip bool `json:"roundTrip,omitempty"`
	// Timestamps says which clock took the latencies.
	Timestamps string `json:"timestamps"`
	// Stamping is who stamped messages besides; nil for nobody.
	Stamping *Stamping `json:"stamping,omitempty"`
	// ClockNanoseconds is what reading the clock costs, which is subtracted from each sample.
	ClockNanoseconds int64 `json:"clockNanoseconds"`
	// Client and Server are the two hosts.
	Client Host `json:"client"`
	Server Host `json:"server"`
}

// DefaultGroup is the multicast group unless told otherwise, that of sfnt-pingpong.
const DefaultGroup = "224.1.2.48"

// Host is one end of a measurement.
type Host struct {
	Name   string `json:"name"`
	Kernel string `json:"kernel"`
	// CPU that the program was kept to; -1 when to none.
	CPU int `json:"cpu"`
	// Environment are the variables that decide about the stack: LD_PRELOAD, EF_*, ZF_* and others, in ascending order.
	Environment []string `json:"environment,omitempty"`
}

// Transport is what carries messages.
type Transport string

const (
	// TCP is a connection without Nagle's algorithm.
	TCP Transport = "TCP"
	// UDP is unicast.
	UDP Transport = "UDP"
	// Multicast is UDP to a group, in both directions.
	Multicast Transport = "Multicast"
)

// Waiting is how both ends wait for a message.
type Waiting string

const (
	// Spin asks the socket again and again.
	Spin Waiting = "Spin"
	// Block sleeps in the kernel.
	Block Waiting = "Block"
)

// Size is what was found with messages of one size.
type Size struct {
	Bytes int `json:"bytes"`
	// Lost pings got no answer in time; Stray answers came twice or too late.
	Lost         uint64       `json:"lost"`
	Stray        uint64       `json:"stray"`
	Distribution Distribution `json:"distribution"`
	// Stamps are nil where messages were not to be stamped.
	Stamps *Stamps `json:"stamps,omitempty"`
	// TimeLine is nil in results of earlier versions.
	TimeLine *TimeLine `json:"timeLine,omitempty"`
}

// Distribution is what is known of many latencies, in nanoseconds.
type Distribution struct {
	Samples              uint64  `json:"samples"`
	MinimumNanoseconds   int64   `json:"minimumNanoseconds"`
	MeanNanoseconds      float64 `json:"meanNanoseconds"`
	MedianNanoseconds    int64   `json:"medianNanoseconds"`
	MaximumNanoseconds   int64   `json:"maximumNanoseconds"`
	DeviationNanoseconds float64 `json:"deviationNanoseconds"`
	// Percentiles that the samples carry, in ascending order.
	Percentiles []Percentile `json:"percentiles"`
	// HDR is an HDR histogram in nanoseconds, V2 compressed, in base64.
	HDR string `json:"hdr"`
}

// Percentile is a latency that a share of all samples stays below, and how far it can be trusted.
type Percentile struct {
	Percent     float64 `json:"percent"`
	Nanoseconds int64   `json:"nanoseconds"`
	// LowNanoseconds to HighNanoseconds hold the percentile of what was sampled with 95 % confidence, by ranks and batches. The upper end is nil where
	// the samples give none: those above the percentile came in so few bursts that another run may show any other value.
	LowNanoseconds  int64  `json:"lowNanoseconds"`
	HighNanoseconds *int64 `json:"highNanoseconds"`
	// Independent is how many independent samples would tell as much about the percentile: as many as there are where none is like the one before, and
	// fewer where those above the percentile come in bursts. 0 in results of earlier versions, which did not tell.
	Independent uint64 `json:"independent,omitempty"`
	// Beyond is how many samples lie above the rank.
	Beyond uint64 `json:"beyond"`
}
