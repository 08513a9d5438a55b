// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package qualification is what the pod of a LatencyTest, the operator and the command line agree upon: the record that the pod
// leaves behind, what a test measures when its fields are omitted, the fingerprint of a node, and the verdict. It is pure.
package qualification

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

const (
	// MaxRecordLength is what the kubelet keeps of a termination message (pkg/kubelet/container, MaxContainerTerminationMessageLength).
	MaxRecordLength = 4096
	// Version of the form of a record.
	Version = 1
	// MaxProblemLength bounds the sentence of a problem.
	MaxProblemLength = 512
)

// Record is what the pod of a test leaves behind as its termination message: a measurement, or why there is none.
type Record struct {
	Version int                      `json:"version"`
	Kind    v1alpha1.LatencyTestKind `json:"kind"`
	// Problem says why nothing was measured; nil when something was.
	Problem *Problem `json:"problem,omitempty"`
	// Kernel and BootID are those of the kernel under the measurement.
	Kernel string `json:"kernel,omitempty"`
	BootID string `json:"bootID,omitempty"`
	// CPUs were measured.
	CPUs string `json:"cpus,omitempty"`
	// WorstCPU is the CPU with the longest interruption; nil when there was none.
	WorstCPU      *int32 `json:"worstCPU,omitempty"`
	Interruptions int64  `json:"interruptions,omitempty"`
	// NotRecorded are interruptions for which there was no room: percentiles and the longest are then unknown.
	NotRecorded           int64                        `json:"notRecorded,omitempty"`
	MaximumNanoseconds    int64                        `json:"maximumNanoseconds,omitempty"`
	StolenPartsPerMillion int32                        `json:"stolenPartsPerMillion,omitempty"`
	Percentiles           []v1alpha1.LatencyPercentile `json:"percentiles,omitempty"`
	// RepetitionMaximums are the longest interruptions of the repetitions.
	RepetitionMaximums []int64  `json:"repetitionMaximums,omitempty"`
	Causes             []string `json:"causes,omitempty"`
	// CountedInterrupts are those that causes can name.
	CountedInterrupts v1alpha1.CountedInterrupts `json:"countedInterrupts,omitempty"`
	// Isolation is what the scheduler and the idle governor counted; nil when they were not asked.
	Isolation *v1alpha1.LatencyIsolation `json:"isolation,omitempty"`
	// ManagementInterrupts is how often the firmware interrupted the measured CPUs; nil when it was not asked.
	ManagementInterrupts *v1alpha1.LatencyManagementInterrupts `json:"managementInterrupts,omitempty"`
	// TimeLine is when lengths were longest; nil where the record has no room for it.
	TimeLine  *v1alpha1.LatencyTimeLine `json:"timeLine,omitempty"`
	Histogram string                    `json:"histogram,omitempty"`
	// Network is what was measured over the network; nil for kind Jitter.
	Network *NetworkRecord `json:"network,omitempty"`
}

// Problem says why nothing was measured.
type Problem struct {
	// Reason is one of problems.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// HistogramRoom is how long the histogram of a record may be for the record to fit.
func HistogramRoom(r Record) (int, error) {
	r.Histogram = "-"
	text, err := json.Marshal(r)
	return min(v1alpha1.MaxHistogramLength, MaxRecordLength+len(r.Histogram)-len(text)), err
}

// Encode prints a record within the bounds that Parse holds it to. The histogram goes first, then the time line, then the intervals, then half of the causes of
// each end, then all of them, then what the scheduler and the idle governor counted at both, when they do not fit.
func Encode(r Record) ([]byte, error) {
	sheds := []func(){
		func() {}, func() { r.Histogram = "" }, func() { r.TimeLine = nil }, func() { r.Network = r.Network.withoutIntervals() },
		func() { r.leaveCauses(v1alpha1.MaxTestCauses / 2) }, func() { r.leaveCauses(0) }, func() { r.leaveIsolation() },
	}
	for _, shed := range sheds {
		shed()
		text, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("printing the record: %w", err)
		}
		if len(text) <= MaxRecordLength {
			return text, nil
		}
	}
	return nil, fmt.Errorf("the record is longer than the %d bytes that a kubelet keeps", MaxRecordLength)
}

// leaveCauses leaves so many causes of each end, the first of them.
func (r *Record) leaveCauses(count int) {
	r.Causes = FirstCauses(r.Causes, count)
	if r.Network != nil {
		n := *r.Network
		n.ServerCauses = FirstCauses(n.ServerCauses, count)
		r.Network = &n
	}
}

// FirstCauses are so many of some causes; nil for none.
func FirstCauses(causes []string, count int) []string {
	if count = min(count, len(causes)); count > 0 {
		return causes[:count:count]
	}
	return nil
}

// leaveIsolation leaves out what the scheduler and the idle governor counted at both ends.
func (r *Record) leaveIsolation() {
	r.Isolation = nil
	if r.Network != nil {
		n := *r.Network
		n.ServerIsolation = nil
		r.Network = &n
	}
}

// Parse reads what a pod has left behind. It trusts nothing in it: a record that is too long, is no JSON, has fields that are
// not known, values out of their bounds, characters that a terminal would obey, or contradicts itself is refused, and the
// error says which of these.
func Parse(text string) (*Record, error) {
	if text == "" {
		return nil, errors.New("the pod left nothing behind")
	}
	if len(text) > MaxRecordLength {
		return nil, fmt.Errorf("what the pod left behind has %d bytes, more than %d", len(text), MaxRecordLength)
	}
	if !utf8.ValidString(text) {
		return nil, errors.New("what the pod left behind is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	record := &Record{}
	if err := decoder.Decode(record); err != nil {
		return nil, fmt.Errorf("what the pod left behind is no record: %s", printable(err.Error()))
	}
	if decoder.More() {
		return nil, errors.New("what the pod left behind goes on after the record")
	}
	return record, record.check()
}

// check refuses values that no program of ours writes.
func (r *Record) check() error {
	if r.Version != Version {
		return fmt.Errorf("the record has version %d, and not %d", r.Version, Version)
	}
	if !slices.Contains(Kinds(), string(r.Kind)) {
		return errors.New("the record is of a kind that is not known")
	}
	if r.Problem != nil {
		return r.Problem.check()
	}
	if err := r.checkWords(); err != nil {
		return err
	}
	if (r.Network != nil) != (r.Kind != v1alpha1.LatencyTestJitter) {
		return errors.New("the record is of one kind and has what another one measures")
	}
	if r.Network != nil {
		return r.checkNetwork()
	}
	return r.checkNumbers()
}

// Measurement is what a record says, over the network with a server on a node of that name. It has no time, parameters and fingerprints.
func (r *Record) Measurement(server string) *v1alpha1.LatencyMeasurement {
	measured := &v1alpha1.LatencyMeasurement{
		CPUs: r.CPUs, WorstCPU: r.WorstCPU, Interruptions: r.Interruptions, MaximumNanoseconds: r.MaximumNanoseconds, StolenPartsPerMillion: r.StolenPartsPerMillion,
		Percentiles: r.Percentiles, RepetitionMaximumsNanoseconds: r.RepetitionMaximums, Causes: r.Causes, CountedInterrupts: r.CountedInterrupts, Histogram: r.Histogram,
		Isolation: r.Isolation, ManagementInterrupts: r.ManagementInterrupts, TimeLine: r.TimeLine,
	}
	if r.Network != nil {
		measured.Network = r.Network.Measurement(server)
	}
	return measured
}

// Kinds are those of which there are records, Jitter first.
func Kinds() []string {
	return []string{string(v1alpha1.LatencyTestJitter), string(v1alpha1.LatencyTestPingPong), string(v1alpha1.LatencyTestRateSweep), string(v1alpha1.LatencyTestLoadSearch),
		string(v1alpha1.LatencyTestContainerVersusHost), string(v1alpha1.LatencyTestStackComparison)}
}

// problems are the reasons that a program may have for measuring nothing.
func problems() []string {
	return []string{
		v1alpha1.TestNotExclusive, v1alpha1.TestMeasurementFailed, v1alpha1.TestMachineBusy, v1alpha1.TestUnreachable, v1alpha1.TestStranger,
		v1alpha1.TestRefused, v1alpha1.TestPeerVanished, v1alpha1.TestNoAnswer, v1alpha1.TestWrongAnswer, v1alpha1.TestClockUnsteady,
	}
}

func (p *Problem) check() error {
	if !slices.Contains(problems(), p.Reason) {
		return errors.New("the record names a problem that is not known")
	}
	return checkWord("the problem", p.Message, MaxProblemLength)
}

func (r *Record) checkWords() error {
	for _, word := range []struct {
		what, text string
		length     int
	}{
		{"the kernel", r.Kernel, v1alpha1.MaxInventoryTextLength}, {"the boot", r.BootID, v1alpha1.MaxBootIDLength},
		{"the list of CPUs", r.CPUs, v1alpha1.MaxCPUListLength},
	} {
		if err := checkWord(word.what, word.text, word.length); err != nil {
			return err
		}
	}
	if err := cmp.Or(checkCauses(r.Causes, r.CountedInterrupts), checkIsolation(r.Isolation), checkManagementInterrupts(r.ManagementInterrupts), checkTimeLine(r.TimeLine)); err != nil {
		return err
	}
	if len(r.Histogram) > v1alpha1.MaxHistogramLength || !base64Text().MatchString(r.Histogram) {
		return fmt.Errorf("the histogram is not base64 of at most %d characters", v1alpha1.MaxHistogramLength)
	}
	return nil
}

// checkCauses wants so many causes that can be printed, and interrupts that are known.
func checkCauses(causes []string, interrupts v1alpha1.CountedInterrupts) error {
	if len(causes) > v1alpha1.MaxTestCauses {
		return fmt.Errorf("the record names %d causes, more than %d", len(causes), v1alpha1.MaxTestCauses)
	}
	for _, cause := range causes {
		if err := checkWord("a cause", cause, v1alpha1.MaxTestCauseLength); err != nil {
			return err
		}
	}
	if !slices.Contains([]v1alpha1.CountedInterrupts{"", v1alpha1.CountedInterruptsAll, v1alpha1.CountedInterruptsDevices, v1alpha1.CountedInterruptsNone}, interrupts) {
		return errors.New("the record has counted interrupts that are not known")
	}
	return nil
}

// checkTimeLine wants as many slices as there are at most, or fewer, and lengths that can be.
func checkTimeLine(l *v1alpha1.LatencyTimeLine) error {
	if l == nil {
		return nil
	}
	count := len(l.LongestNanoseconds)
	if l.ElapsedNanoseconds < 1 || l.ElapsedNanoseconds > v1alpha1.MaxGeneration || count < 1 || count > v1alpha1.MaxTimeSlices ||
		slices.Min(l.LongestNanoseconds) < 0 || slices.Max(l.LongestNanoseconds) > v1alpha1.MaxGeneration {
		return errors.New("the time line of the record is out of its bounds")
	}
	return nil
}

func base64Text() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9+/]*={0,2}$`) }

// checkWord refuses an empty or long text, and one with characters that are not printed.
func checkWord(what, text string, length int) error {
	switch {
	case text == "":
		return fmt.Errorf("%s is missing in the record", what)
	case len(text) > length:
		return fmt.Errorf("%s has %d bytes in the record, more than %d", what, len(text), length)
	case printable(text) != text:
		return fmt.Errorf("%s has characters in the record that cannot be printed", what)
	}
	return nil
}

// printable replaces what a terminal does not print as it is.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return '?'
	}, text)
}

func (r *Record) checkNumbers() error {
	measured, err := cpus.Parse(r.CPUs)
	if err != nil {
		return errors.New("the record has no list of CPUs")
	}
	if r.WorstCPU != nil && !measured.Contains(int(*r.WorstCPU)) {
		return fmt.Errorf("the record blames CPU %d, which was not measured", *r.WorstCPU)
	}
	numbers := append([]int64{r.Interruptions, r.NotRecorded, r.MaximumNanoseconds}, r.RepetitionMaximums...)
	if slices.ContainsFunc(numbers, func(n int64) bool { return n < 0 || n > v1alpha1.MaxGeneration }) {
		return errors.New("a number of the record is out of its bounds")
	}
	if r.StolenPartsPerMillion < 0 || r.StolenPartsPerMillion > v1alpha1.MaxStolenPartsPerMillion {
		return errors.New("the share of stolen time of the record is out of its bounds")
	}
	if len(r.RepetitionMaximums) == 0 || len(r.RepetitionMaximums) > v1alpha1.MaxTestRepetitions {
		return fmt.Errorf("the record has %d repetitions, not 1 to %d", len(r.RepetitionMaximums), v1alpha1.MaxTestRepetitions)
	}
	if err := r.checkLongest(); err != nil {
		return err
	}
	return r.checkPercentiles()
}

// checkLongest wants the longest interruption to be that of a repetition, and to have a CPU.
func (r *Record) checkLongest() error {
	if slices.Max(r.RepetitionMaximums) != r.MaximumNanoseconds {
		return errors.New("the longest interruption of the record is not that of its repetitions")
	}
	if (r.WorstCPU != nil) != (r.MaximumNanoseconds > 0) {
		return errors.New("the record has a longest interruption without its CPU, or the other way round")
	}
	return nil
}

// checkPercentiles wants each percentile once, in ascending order, none smaller than the one before or above the longest.
func (r *Record) checkPercentiles() error {
	names := make([]v1alpha1.PercentileName, 0, len(r.Percentiles))
	last := int64(0)
	for _, p := range r.Percentiles {
		if p.Nanoseconds < last || p.Nanoseconds > min(r.MaximumNanoseconds, v1alpha1.MaxLatencyNanoseconds) {
			return errors.New("the percentiles of the record do not rise towards its longest interruption")
		}
		names, last = append(names, p.Percentile), p.Nanoseconds
	}
	if !slices.Equal(names, Percentiles()) {
		return errors.New("the percentiles of the record are not those that a test prints")
	}
	return nil
}

// Percentiles are those that a record has, in ascending order.
func Percentiles() []v1alpha1.PercentileName {
	return []v1alpha1.PercentileName{v1alpha1.P50, v1alpha1.P90, v1alpha1.P99, v1alpha1.P999, v1alpha1.P9999, v1alpha1.P99999}
}

// Words is a percentile as people write it, such as "99.9 %".
func Words(name v1alpha1.PercentileName) string {
	digits := strings.TrimPrefix(string(name), "P")
	const whole = 2
	if len(digits) <= whole {
		return digits + " %"
	}
	return digits[:whole] + "." + digits[whole:] + " %"
}
