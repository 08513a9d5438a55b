// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// What a test does when the fields are omitted.
const (
	defaultDurationSeconds      = 60
	defaultRepetitions          = 1
	defaultParallelNodes        = 8
	defaultCPUs                 = 1
	defaultThresholdNanoseconds = 500
	defaultMessageBytes         = 64
	// defaultAnswers carry 99.9 %, and defaultMessages 99.99 %.
	defaultAnswers  = 120_000
	defaultMessages = 1_000_000
)

// Parameters are what a test measures, with the values in force of what is omitted.
type Parameters struct {
	Kind          v1alpha1.LatencyTestKind
	Duration      time.Duration
	Repetitions   int32
	CPUs          int32
	Threshold     time.Duration
	ParallelNodes int
	// Sizes of messages in bytes: several of kind PingPong, one of those that send on a schedule.
	Sizes []int32
	// Messages with which a size ends, where messages go one at a time; 0 where they do not.
	Messages int32
	// Rates in messages a second, of kind RateSweep, and of how many messages of each the time is taken.
	Rates   []int32
	Answers int32
	// Load is how a search goes; nil for the other kinds.
	Load *Load
	// Traffic is nil for kind Jitter.
	Traffic *Traffic
	// Comparison is what is measured in turns; nil for the kinds that compare nothing. Repetitions measures each side so often.
	Comparison *Comparison
}

// Traffic is between which ends messages go, with the values in force of what is omitted.
type Traffic struct {
	Transport v1alpha1.TestTransport
	Waiting   v1alpha1.TestWaiting
	Server    v1alpha1.TestServer
	Client    v1alpha1.TestEnd
	// Group of multicast that the test names; "" for the one of the program.
	Group string
}

// IsOnSchedule reports whether messages leave on a schedule, so that what was measured of them takes more room.
func (p *Parameters) IsOnSchedule() bool { return len(p.Rates) > 0 || p.Load != nil }

// Addresses are those of IPv4 that ends of the test have of their own, without their prefix lengths: there can be one such end at a time only.
func (p *Parameters) Addresses() []string {
	var found []string
	if p.Traffic == nil {
		return nil
	}
	for _, side := range p.Sides() {
		for _, end := range []*v1alpha1.TestEnd{&side.Server, &side.Client} {
			if address := AddressOf(end); address != "" && !slices.Contains(found, address) {
				found = append(found, address)
			}
		}
	}
	return found
}

// AddressOf is the address of an end without the length of its prefix; "" where it has none of its own.
func AddressOf(end *v1alpha1.TestEnd) string {
	address, _, _ := strings.Cut(end.Address, "/")
	return address
}

// Group is the group of multicast on which messages go; "" where they do not go so. Members of one receive what all others send to it.
func (p *Parameters) Group() string {
	if p.Traffic == nil || p.Traffic.Transport != v1alpha1.TransportMulticast {
		return ""
	}
	return cmp.Or(p.Traffic.Group, latency.DefaultGroup)
}

// defaultSizes are the sizes of messages of kind PingPong; the first is that of the histogram. 1472 bytes fill a frame of Ethernet.
func defaultSizes() []int32 { return []int32{64, 1, 32, 128, 256, 512, 1024, 1472} }

// defaultRates are those of kind RateSweep in messages a second; the first is that of the histogram.
func defaultRates() []int32 { return []int32{10_000, 50_000, 100_000} }

// ParametersOf are those of a test.
func ParametersOf(spec *v1alpha1.LatencyTestSpec) Parameters {
	jitter := v1alpha1.JitterTest{}
	if spec.Jitter != nil {
		jitter = *spec.Jitter
	}
	p := Parameters{
		Kind:          spec.Kind,
		Duration:      time.Duration(cmp.Or(spec.DurationSeconds, defaultDurationSeconds)) * time.Second,
		Repetitions:   cmp.Or(spec.Repetitions, defaultRepetitions),
		CPUs:          cmp.Or(jitter.CPUs, defaultCPUs),
		Threshold:     time.Duration(cmp.Or(jitter.ThresholdNanoseconds, defaultThresholdNanoseconds)),
		ParallelNodes: int(cmp.Or(spec.MaximumParallelNodes, defaultParallelNodes)),
	}
	if spec.Traffic == nil {
		return p
	}
	p.Traffic = &Traffic{
		Transport: spec.Traffic.Transport, Waiting: cmp.Or(spec.Traffic.Waiting, v1alpha1.WaitingSpin), Server: spec.Traffic.Server,
		Client: ptr.Deref(spec.Traffic.Client, v1alpha1.TestEnd{}), Group: spec.Traffic.MulticastGroup,
	}
	p.fillMessages(spec)
	if len(p.Addresses()) > 0 || p.Group() != "" {
		p.ParallelNodes = 1
	}
	return p
}

// fillMessages are the sizes of messages, and their rates.
func (p *Parameters) fillMessages(spec *v1alpha1.LatencyTestSpec) {
	switch spec.Kind {
	case v1alpha1.LatencyTestContainerVersusHost, v1alpha1.LatencyTestStackComparison:
		p.Comparison, p.Repetitions = comparisonOf(spec, p.Traffic), cmp.Or(spec.Repetitions, defaultPairs)
		p.fillPings(ptr.Deref(spec.PingPong, v1alpha1.PingPongTest{}))
	case v1alpha1.LatencyTestPingPong:
		p.fillPings(ptr.Deref(spec.PingPong, v1alpha1.PingPongTest{}))
	case v1alpha1.LatencyTestRateSweep:
		sweep := ptr.Deref(spec.RateSweep, v1alpha1.RateSweepTest{})
		p.Sizes, p.Rates = []int32{cmp.Or(sweep.Bytes, defaultMessageBytes)}, orDefault(sweep.MessagesPerSecond, defaultRates())
		p.Answers = cmp.Or(sweep.AnswersPerRate, defaultAnswers)
	case v1alpha1.LatencyTestLoadSearch:
		search := ptr.Deref(spec.LoadSearch, v1alpha1.LoadSearchTest{})
		p.Sizes, p.Load = []int32{cmp.Or(search.Bytes, defaultMessageBytes)}, loadOf(&search)
		if spec.DurationSeconds == 0 {
			p.Duration = p.Load.longest()
		}
	case v1alpha1.LatencyTestJitter:
	}
}

// fillPings are the sizes of messages that go one at a time, and how many go of each.
func (p *Parameters) fillPings(given v1alpha1.PingPongTest) {
	p.Sizes, p.Messages = orDefault(given.Sizes, defaultSizes()), cmp.Or(given.MessagesPerSize, defaultMessages)
}

// HasOtherMessages reports whether a size has another number of messages than it has when nobody says it.
func (p *Parameters) HasOtherMessages() bool { return p.Messages != 0 && p.Messages != defaultMessages }

func orDefault(given, otherwise []int32) []int32 {
	if len(given) == 0 {
		return otherwise
	}
	return given
}
