// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

// someCounts are those of CPU 3.
func someCounts() latency.Counts {
	return latency.Counts{
		CPU: 3, CountedNanoseconds: 2e9, InterruptsFrom: interruptsOfAll,
		Counted: []counted.Event{{Kind: counted.Interrupt, Name: "24 PCI-MSI 1-edge eth0-rx-0", Count: 500}, {Kind: counted.Softirq, Name: "NET_RX", Count: 30}},
		Isolation: &counted.Isolation{
			CPU: 3, Nanoseconds: 2e9, IdleNanoseconds: 2e9, WaitedNanoseconds: 700, BusyTicks: 150, AllTicks: 200,
			IdleStates: []counted.IdleEntries{{State: "C6", LatencyMicroseconds: 133, Count: 40}},
		},
	}
}

// TestCountsArrive: what a server says is what its client reads.
func TestCountsArrive(t *testing.T) {
	odd, asleep := someCounts(), someCounts()
	odd.Counted[0].Name, odd.Isolation.RunQueueUnknown, odd.Isolation.IdleStates = "24 \x1b[2J\"<", strings.Repeat("y ", 200), nil
	wantOdd := someCounts()
	wantOdd.Counted[0].Name, wantOdd.Isolation.RunQueueUnknown, wantOdd.Isolation.IdleStates = "24  [2J\"<", strings.Repeat("y ", 62)+"y…", nil
	asleep.Isolation.IdleStates = make([]counted.IdleEntries, mostIdleStates+1)
	wantAsleep := someCounts()
	wantAsleep.Isolation.IdleStates, wantAsleep.Isolation.IdleUnknown = nil, "17 idle states were entered, more than 16"
	for name, tc := range map[string]struct{ counts, want latency.Counts }{
		"what was counted":          {someCounts(), someCounts()},
		"nothing":                   {latency.Counts{CPU: 3, Unknown: "nobody counts"}, latency.Counts{CPU: 3, Unknown: "nobody counts"}},
		"names that are odd":        {odd, wantOdd},
		"more states than there is": {asleep, wantAsleep},
	} {
		text, err := encodeCounts(tc.counts)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseCounts(text, 3)
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// TestManyCounts: the counters that moved least find no room, and the others are there.
func TestManyCounts(t *testing.T) {
	many := someCounts()
	for i := range 200 {
		many.Counted = append(many.Counted, counted.Event{Kind: counted.Interrupt, Name: fmt.Sprintf("%d %s", i, strings.Repeat("x", 300)), Count: 9})
	}
	text, err := encodeCounts(many)
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseCounts(text, 3)
	if err != nil || len(text) > longestCounts || len(got.Counted) < 10 || !cmp.Equal(got.Counted[:2], many.Counted[:2]) {
		t.Errorf("of many counters %d have come in %d bytes: %v", len(got.Counted), len(text), err)
	}
	if many.Counted[50].Name != "48 "+strings.Repeat("x", 300) {
		t.Error("what was counted has changed")
	}
}

// TestCountsOfAStrangerAreRefused, each with one sentence.
func TestCountsOfAStrangerAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*latency.Counts)
		want   string
	}{
		"another CPU":                 {func(c *latency.Counts) { c.CPU = 4 }, "it is of CPU 4, and the server is kept to CPU 3"},
		"counted and not":             {func(c *latency.Counts) { c.Unknown = "nobody counts" }, "was not counted"},
		"over no time":                {func(c *latency.Counts) { c.CountedNanoseconds = 0 }, "was not counted"},
		"over less than no time":      {func(c *latency.Counts) { c.CountedNanoseconds = -1 }, "was not counted"},
		"for ever":                    {func(c *latency.Counts) { c.CountedNanoseconds = 1 << 60 }, "was not counted"},
		"without the scheduler":       {func(c *latency.Counts) { c.Isolation = nil }, "was not counted"},
		"a reason to obey":            {func(c *latency.Counts) { *c = latency.Counts{CPU: 3, Unknown: "\x1b[2J"} }, "cannot be printed"},
		"nothing at all":              {func(c *latency.Counts) { *c = latency.Counts{CPU: 3} }, "was not counted"},
		"interrupts of elsewhere":     {func(c *latency.Counts) { c.InterruptsFrom = "/etc/passwd" }, "nobody counts interrupts there"},
		"a kind of another":           {func(c *latency.Counts) { c.Counted[0].Kind = counted.Firmware }, "of no kind that is known"},
		"a counter that stood":        {func(c *latency.Counts) { c.Counted[0].Count = 0 }, "of no kind that is known"},
		"a counter beyond all":        {func(c *latency.Counts) { c.Counted[0].Count = 1 << 60 }, "of no kind that is known"},
		"a counter twice":             {func(c *latency.Counts) { c.Counted[1] = c.Counted[0] }, "comes twice"},
		"a name to obey":              {func(c *latency.Counts) { c.Counted[0].Name = "24\x07" }, "cannot be printed"},
		"no name":                     {func(c *latency.Counts) { c.Counted[0].Name = "" }, "a name has 0 bytes"},
		"a long name":                 {func(c *latency.Counts) { c.Counted[0].Name = strings.Repeat("x", 129) }, "a name has 129 bytes"},
		"many counters":               {func(c *latency.Counts) { c.Counted = make([]counted.Event, 65) }, "65 counters are more than 64"},
		"a scheduler of another CPU":  {func(c *latency.Counts) { c.Isolation.CPU = 1 }, "cannot be"},
		"more work than time":         {func(c *latency.Counts) { c.Isolation.BusyTicks = 201 }, "cannot be"},
		"waits over no time":          {func(c *latency.Counts) { c.Isolation.Nanoseconds, c.Isolation.IdleNanoseconds = 0, 1 }, "cannot be"},
		"waits beyond all":            {func(c *latency.Counts) { c.Isolation.WaitedNanoseconds = 1 << 60 }, "cannot be"},
		"work of which nobody knows":  {func(c *latency.Counts) { c.Isolation.BusyTicks, c.Isolation.AllTicks = 0, 0 }, "cannot be"},
		"a state without a name":      {func(c *latency.Counts) { c.Isolation.IdleStates[0].State = "" }, "cannot be"},
		"a state to obey":             {func(c *latency.Counts) { c.Isolation.IdleStates[0].State = "\x1b" }, "cannot be"},
		"a state that was left early": {func(c *latency.Counts) { c.Isolation.IdleStates[0].LatencyMicroseconds = -1 }, "cannot be"},
		"many states":                 {func(c *latency.Counts) { c.Isolation.IdleStates = make([]counted.IdleEntries, 17) }, "cannot be"},
	} {
		c := someCounts()
		tc.change(&c)
		if got, err := parseCounts(marshalled(t, c), 3); err == nil || !strings.Contains(err.Error(), tc.want) || !cmp.Equal(got, latency.Counts{}) {
			t.Errorf("%s: the error is %v, want %q, and %+v", name, err, tc.want, got)
		}
	}
	for text, want := range map[string]string{
		"": "it cannot be read", "none": "it cannot be read", "\x1b[2J": "it cannot be read", `{"cpu":3,"unknown":"x","more":1}`: "unknown field",
		`{"cpu":3,"unknown":"x"} and more`: "goes on after its end", `{"cpu":3,"unknown":"` + strings.Repeat("x", longestCounts) + `"}`: "bytes are more than 3072",
	} {
		if _, err := parseCounts(text, 3); err == nil || !strings.Contains(err.Error(), want) || strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("%.40q: the error is %v, want %q", text, err, want)
		}
	}
	onNone := someCounts()
	onNone.CPU, onNone.Isolation.CPU = -1, -1
	if _, err := parseCounts(marshalled(t, onNone), -1); err == nil {
		t.Error("something was counted on no CPU")
	}
}

// FuzzParseCounts: whatever is taken can be said again, and comes as it was.
func FuzzParseCounts(f *testing.F) {
	text, err := encodeCounts(someCounts())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text, 3)
	f.Add(notCounted, 3)
	f.Add(`{"cpu":-1,"unknown":"the server is kept to no CPU"}`, -1)
	f.Fuzz(func(t *testing.T, text string, cpu int) {
		c, err := parseCounts(text, cpu)
		if err != nil {
			return
		}
		again, err := encodeCounts(c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseCounts(again, cpu)
		if err != nil || got.CPU != c.CPU || got.CountedNanoseconds != c.CountedNanoseconds || (got.Unknown == "") != (c.Unknown == "") {
			t.Errorf("%q became %+v, %v", text, got, err)
		}
	})
}

// TestQuestionsOfAServer: a CPU is read when a measurement begins and when it has ended, and what does not fit is unknown.
func TestQuestionsOfAServer(t *testing.T) {
	root, h, _ := counting(t)
	moves := func() {
		counts(t, root, " 24:  99  520  PCI-MSI 1-edge  eth0-rx-0\nLOC:  50  7  Local timer interrupts\n", "NET_RX:  900  31\n")
	}
	for name, tc := range map[string]struct {
		cpu       int
		questions []string
		want      string
	}{
		"a measurement":       {1, []string{"begin 7", "end 7"}, `counted 7 {"cpu":1,"counted":[{"kind":"Interrupt","name":"24 PCI-MSI 1-edge eth0-rx-0","count":500},`},
		"no CPU":              {-1, []string{"begin 7", "end 7"}, `counted 7 {"cpu":-1,"unknown":"the server is kept to no CPU"}`},
		"no begin":            {1, []string{"end 7"}, `counted 7 {"cpu":1,"unknown":"the server has not said when the measurement began"}`},
		"the begin of others": {1, []string{"begin 6", "end 7"}, `counted 7 {"cpu":1,"unknown":"the server has not said when the measurement began"}`},
	} {
		counts(t, root, " 24:  10  20  PCI-MSI 1-edge  eth0-rx-0\nLOC:  5  5  Local timer interrupts\n", "NET_RX:  1  1\n")
		c := &cpuCounter{host: h, cpu: tc.cpu}
		answer := ""
		for _, question := range tc.questions {
			var err error
			if answer, err = c.answer(t.Context(), question); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if number, isBegin := strings.CutPrefix(question, "begin "); isBegin && answer != "begun "+number+" " {
				t.Errorf("%s: the answer is %q", name, answer)
			}
			moves()
		}
		if !strings.HasPrefix(answer, tc.want) {
			t.Errorf("%s: %s, want %s", name, answer, tc.want)
		}
	}
	for _, question := range []string{"", "begin", "begin x", "end -1", "stop 7", "end 7 8"} {
		if answer, err := (&cpuCounter{host: h, cpu: 1}).answer(t.Context(), question); err == nil {
			t.Errorf("%q is answered with %q", question, answer)
		}
	}
}

// marshalled is a value as JSON, whatever it holds.
func marshalled(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
