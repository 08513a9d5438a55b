// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

// measuredRecord is a record as the pod of a test leaves it.
func measuredRecord() Record {
	r := Record{
		Version: Version, Kind: v1alpha1.LatencyTestJitter, Kernel: "6.12.0-rt", BootID: "b1", CPUs: "4-5", WorstCPU: new(int32(5)), Interruptions: 7,
		MaximumNanoseconds: 9000, StolenPartsPerMillion: 12, RepetitionMaximums: []int64{9000, 4000}, Causes: []string{"Interrupt LOC"}, Histogram: "SElTVA==",
		TimeLine: &v1alpha1.LatencyTimeLine{ElapsedNanoseconds: 2e9, LongestNanoseconds: []int64{0, 9000, 4000}},
	}
	for i, name := range Percentiles() {
		r.Percentiles = append(r.Percentiles, v1alpha1.LatencyPercentile{Percentile: name, Nanoseconds: int64(i) * 1000})
	}
	return r
}

func encoded(t *testing.T, r Record) string {
	t.Helper()
	text, err := Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRecordsAreReadAsTheyAreWritten(t *testing.T) {
	problem := Record{Version: Version, Kind: v1alpha1.LatencyTestJitter, Problem: &Problem{v1alpha1.TestNotExclusive, "the CPUs are shared"}}
	for name, want := range map[string]Record{"a measurement": measuredRecord(), "a problem": problem} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(encoded(t, want))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEncodeShedsWhatDoesNotFit(t *testing.T) {
	r := measuredRecord()
	r.Histogram = strings.Repeat("A", v1alpha1.MaxHistogramLength)
	r.CPUs = strings.Repeat("1,", 450) + "4-5"
	r.Kernel = strings.Repeat("k", v1alpha1.MaxInventoryTextLength)
	r.Causes = []string{strings.Repeat("c", 90), strings.Repeat("d", 90), strings.Repeat("e", 90), strings.Repeat("f", 90)}
	r.BootID = strings.Repeat("b", 600)
	got := encoded(t, r)
	if strings.Contains(got, "histogram") || !strings.Contains(got, "timeLine") || !strings.Contains(got, "causes") || len(got) > MaxRecordLength {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	// What the scheduler counted is the last to go: it is short, and names a culprit.
	r.Isolation = IsolationOf([]counted.Isolation{counted.Uncounted(4, "/proc/schedstat: no such file")})
	short := r
	short.BootID, short.Causes, short.Histogram, short.TimeLine = "", nil, "", nil
	const name = len(`"bootID":"",`)
	r.BootID = strings.Repeat("b", MaxRecordLength-len(encoded(t, short))-name)
	if got := encoded(t, r); strings.Contains(got, "causes") || !strings.Contains(got, "isolation") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	r.BootID += strings.Repeat("b", 100)
	if got := encoded(t, r); strings.Contains(got, "isolation") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	r.BootID = strings.Repeat("b", MaxRecordLength)
	if _, err := Encode(r); err == nil {
		t.Error("a record that no kubelet keeps is written")
	}
}

func TestHostileRecordsAreRefused(t *testing.T) {
	with := func(change func(*Record)) string {
		r := measuredRecord()
		change(&r)
		return encoded(t, r)
	}
	cases := map[string]struct{ text, want string }{
		"nothing":        {"", "the pod left nothing behind"},
		"garbage":        {"Segmentation fault", "what the pod left behind is no record: invalid character 'S' looking for beginning of value"},
		"too large":      {strings.Repeat(" ", MaxRecordLength+1), "what the pod left behind has 4097 bytes, more than 4096"},
		"no UTF-8":       {"\xff\xfe", "what the pod left behind is not UTF-8"},
		"another field":  {`{"version":1,"verdict":"Passed"}`, `what the pod left behind is no record: json: unknown field "verdict"`},
		"a field in red": {`{"` + `\u001b[31m":1}`, "what the pod left behind is no record: json: unknown field \"\\x1b[31m\""},
		"two records":    {encoded(t, measuredRecord()) + "{}", "what the pod left behind goes on after the record"},
		"a number as text": {
			`{"version":"1"}`, "what the pod left behind is no record: json: cannot unmarshal string into Go struct field Record.version of type int",
		},
		"a later version":       {with(func(r *Record) { r.Version = 2 }), "the record has version 2, and not 1"},
		"another kind":          {with(func(r *Record) { r.Kind = "Quick" }), "the record is of a kind that is not known"},
		"another problem":       {with(func(r *Record) { r.Problem = &Problem{"Fine", "x"} }), "the record names a problem that is not known"},
		"a problem with escape": {with(func(r *Record) { r.Problem = &Problem{v1alpha1.TestNotExclusive, "\x1b[2J"} }), "the problem has characters in the record that cannot be printed"},
		"no kernel":             {with(func(r *Record) { r.Kernel = "" }), "the kernel is missing in the record"},
		"a kernel with escape":  {with(func(r *Record) { r.Kernel = "6.1\x1b]0;x\a" }), "the kernel has characters in the record that cannot be printed"},
		"a long boot":           {with(func(r *Record) { r.BootID = strings.Repeat("b", 65) }), "the boot has 65 bytes in the record, more than 64"},
		"no CPUs":               {with(func(r *Record) { r.CPUs = "all" }), "the record has no list of CPUs"},
		"many causes":           {with(func(r *Record) { r.Causes = []string{"a", "b", "c", "d", "e"} }), "the record names 5 causes, more than 4"},
		"strange interrupts":    {with(func(r *Record) { r.CountedInterrupts = "Some" }), "the record has counted interrupts that are not known"},
		"a cause of two lines":  {with(func(r *Record) { r.Causes = []string{"a\nb"} }), "a cause has characters in the record that cannot be printed"},
		"a histogram of text":   {with(func(r *Record) { r.Histogram = "<script>" }), "the histogram is not base64 of at most 2048 characters"},
		"a CPU that was not measured": {
			with(func(r *Record) { r.WorstCPU = new(int32(1)) }), "the record blames CPU 1, which was not measured",
		},
		"a time line without end": {with(func(r *Record) { r.TimeLine.LongestNanoseconds = make([]int64, 61) }), "the time line of the record is out of its bounds"},
		"one without a begin":     {with(func(r *Record) { r.TimeLine.LongestNanoseconds = nil }), "the time line of the record is out of its bounds"},
		"one without time":        {with(func(r *Record) { r.TimeLine.ElapsedNanoseconds = 0 }), "the time line of the record is out of its bounds"},
		"one below nothing":       {with(func(r *Record) { r.TimeLine.LongestNanoseconds[0] = -1 }), "the time line of the record is out of its bounds"},
		"a negative count":        {with(func(r *Record) { r.Interruptions = -1 }), "a number of the record is out of its bounds"},
		"more than all of the time": {
			with(func(r *Record) { r.StolenPartsPerMillion = 1000001 }), "the share of stolen time of the record is out of its bounds",
		},
		"no repetition":      {with(func(r *Record) { r.RepetitionMaximums = nil }), "the record has 0 repetitions, not 1 to 10"},
		"a hidden maximum":   {with(func(r *Record) { r.RepetitionMaximums[1] = 99999 }), "the longest interruption of the record is not that of its repetitions"},
		"nobody is to blame": {with(func(r *Record) { r.WorstCPU = nil }), "the record has a longest interruption without its CPU, or the other way round"},
		"falling percentiles": {
			with(func(r *Record) { r.Percentiles[0].Nanoseconds = 5000 }), "the percentiles of the record do not rise towards its longest interruption",
		},
		"a percentile is missing": {
			with(func(r *Record) { r.Percentiles = r.Percentiles[1:] }), "the percentiles of the record are not those that a test prints",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(tc.text)
			if err == nil || err.Error() != tc.want {
				t.Errorf("refused with %v, want %s", err, tc.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	text, err := Encode(measuredRecord())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	if text, err = Encode(networkRecord()); err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add(`{"version":1,"kind":"Jitter","problem":{"reason":"NotExclusive","message":"x"}}`)
	f.Add(`{"version":1,"kind":"PingPong","kernel":"6","bootID":"0","cpus":"0","network":{"path":"Kernel"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		record, err := Parse(text)
		if err != nil {
			if printable(err.Error()) != err.Error() {
				t.Errorf("the error cannot be printed: %q", err)
			}
			return
		}
		again, err := Encode(*record)
		if err != nil {
			t.Skip("escapes made it longer")
		}
		if _, err := Parse(string(again)); err != nil && record.Histogram == "" {
			t.Errorf("%q is read once and not twice: %v", text, err)
		}
	})
}
