// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"encoding/xml"
	"errors"
	"html"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

// elements counts the elements of an SVG document by name, and fails when it is not well-formed.
func elements(t *testing.T, document string) map[string]int {
	t.Helper()
	counts, decoder := map[string]int{}, xml.NewDecoder(strings.NewReader(document))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return counts
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if start, ok := token.(xml.StartElement); ok {
			counts[start.Name.Local]++
		}
	}
}

// twoCPUs is a result with interruptions on CPU 4 and none on CPU 5.
func twoCPUs() *Result {
	return &Result{CPUs: []CPUResult{
		{
			CPU: 4, DurationNanoseconds: 1e9, MaximumNanoseconds: 70_000, InterruptionsPerSecond: 4, StolenPartsPerMillion: 75,
			Histogram: []Bucket{{1024, 2048, 3}, {2048, 4096, 0}, {4096, 8192, 1}},
			Worst: []Interruption{
				{AtNanoseconds: 1e6, LengthNanoseconds: 70_000, Causes: []counted.Event{{Kind: counted.Interrupt, Name: `142 <eth0> & "x"`, Count: 1}}},
				{AtNanoseconds: 2e6, LengthNanoseconds: 1_500},
			},
			Counted: []counted.Event{{Kind: counted.Interrupt, Name: "LOC", Count: 500}, {Kind: counted.Interrupt, Name: "142", Count: 2}, {Kind: counted.ContextSwitch, Name: "nonvoluntary_ctxt_switches", Count: 3}}, CountedNanoseconds: 2e9,
		},
		{CPU: 5, DurationNanoseconds: 1e9},
	}}
}

func TestPlot(t *testing.T) {
	document := Plot(twoCPUs())
	counts := elements(t, document)
	// The background and one bar for each bucket with something in it; a title for each bar and each interruption.
	if counts["rect"] != 1+2 || counts["title"] != 2+2 {
		t.Errorf("the plot has %d bars and %d titles", counts["rect"]-1, counts["title"])
	}
	if got := strings.Count(document, "none at or above the threshold"); got != 2 {
		t.Errorf("%d of 2 empty plots say that they are", got)
	}
	if got := strings.Count(document, `stroke="#c62828"`); got != 1 {
		t.Errorf("%d interruptions without a cause are red, want 1", got)
	}
	if strings.Contains(document, "<eth0>") {
		t.Error("a name is not escaped")
	}
	for _, want := range []string{"4 per second, longest 70µs, 75 ppm of the time", "kernel, per second: 251 interrupts, 0 softirqs, 1.5 preemptions", ">10µs<", ">0.1<"} {
		if !strings.Contains(document, want) {
			t.Errorf("%q is missing in:\n%s", want, document)
		}
	}
}

func TestPlotOfNothing(t *testing.T) {
	elements(t, Plot(&Result{}))
}

// TestLabelsDoNotOverlap tests that the marks of the widest scale have room for their names.
func TestLabelsDoNotOverlap(t *testing.T) {
	wide := &Result{CPUs: []CPUResult{{CPU: 1, DurationNanoseconds: 1e10, Histogram: []Bucket{{256, 512, 1}, {268435456, 536870912, 1}}}}}
	s := scalesOf(wide)
	const widest, pixels = len("100ms"), 8
	if room := areaWidth / float64(s.length.to-s.length.from); room < float64(widest*pixels) {
		t.Errorf("%.0f pixels for a label of up to %d letters", room, widest)
	}
}

func TestCompare(t *testing.T) {
	after := twoCPUs()
	after.CPUs = append(after.CPUs[1:], CPUResult{CPU: 6, DurationNanoseconds: 1e9})
	document := Compare(twoCPUs(), after)
	if counts := elements(t, document); counts["rect"] != 1+2 {
		t.Errorf("%d bars, want 2", counts["rect"]-1)
	}
	for want, times := range map[string]int{"CPU 4 before": 1, "CPU 4 after": 1, "CPU 6 after": 1, "not measured": 2, "none at or above the threshold": 3} {
		if got := strings.Count(document, want); got != times {
			t.Errorf("%q stands there %d times, want %d", want, got, times)
		}
	}
}

// TestPlotsWithoutAll: a picture of some interruptions alone says so, and at the CPU that what it says is the least.
func TestPlotsWithoutAll(t *testing.T) {
	all, some := twoCPUs(), twoCPUs()
	some.CPUs[0].Interruptions, some.CPUs[0].NotRecorded = 900, 700
	const warning, figures = "CPU 4: 700 of 900 interruptions had no room in the record: ", "4 per second, longest ≥70µs, ≥75 ppm of the time"
	for name, tc := range map[string]struct {
		document       string
		words, figures string
	}{
		"a plot": {Plot(some), ">" + warning, figures}, "before": {Compare(some, all), ">before, " + warning, figures}, "after": {Compare(all, some), ">after, " + warning, figures},
		"both": {Compare(some, some), ">after, " + warning, figures},
	} {
		elements(t, tc.document)
		if !strings.Contains(tc.document, tc.words) || !strings.Contains(tc.document, tc.figures) {
			t.Errorf("%s: %q or %q is missing in:\n%s", name, tc.words, tc.figures, tc.document)
		}
	}
	for _, document := range []string{Plot(all), Compare(all, all)} {
		if strings.Contains(document, "had no room") || strings.Contains(document, "≥") {
			t.Errorf("a whole picture warns:\n%s", document)
		}
	}
}

// TestScalesAreShared tests that a bar of the same rate is as high on both sides.
func TestScalesAreShared(t *testing.T) {
	quiet := &Result{CPUs: []CPUResult{{CPU: 4, DurationNanoseconds: 1e9, Histogram: []Bucket{{1024, 2048, 3}}}}}
	heights := regexp.MustCompile(`<rect x="[^"]*" y="([^"]*)"[^>]*><title>1.024µs`).FindAllStringSubmatch(Compare(twoCPUs(), quiet), -1)
	if len(heights) != 2 || heights[0][1] != heights[1][1] {
		t.Errorf("bars begin at %v", heights)
	}
}

// countedPair are two results of CPU 3 with more counters than a panel names.
func countedPair() (before, after *Result) {
	of := func(causes ...counted.Event) *Result {
		return &Result{CPUs: []CPUResult{{CPU: 3, DurationNanoseconds: 1e9, Counted: causes, CountedNanoseconds: 2e9}}}
	}
	before = of(
		counted.Event{Kind: counted.Interrupt, Name: "LOC Local timer interrupts", Count: 2000}, counted.Event{Kind: counted.Softirq, Name: "TIMER", Count: 400}, counted.Event{Kind: counted.Softirq, Name: "SCHED", Count: 300}, counted.Event{Kind: counted.Softirq, Name: "RCU", Count: 200},
		counted.Event{Kind: counted.Interrupt, Name: "RES <Rescheduling>", Count: 100}, counted.Event{Kind: counted.Interrupt, Name: "CAL", Count: 50}, counted.Event{Kind: counted.Interrupt, Name: "TLB", Count: 6}, counted.Event{Kind: counted.ContextSwitch, Name: "nonvoluntary_ctxt_switches", Count: 8},
	)
	return before, of(counted.Event{Kind: counted.Interrupt, Name: "LOC Local timer interrupts", Count: 1}, counted.Event{Kind: counted.Interrupt, Name: "TLB", Count: 2})
}

func TestPairs(t *testing.T) {
	before, after := countedPair()
	compared := cmp.AllowUnexported(pair{})
	kinds := []pair{{"interrupts", 1078, 1.5}, {"softirqs", 450, 0}, {"preemptions", 4, uncounted}}
	if diff := cmp.Diff(kinds, pairsByKind(before.On(3), after.On(3)), compared); diff != "" {
		t.Errorf("by kind (-want +got):\n%s", diff)
	}
	names := []pair{
		{"LOC Local timer interrupts", 1000, 0.5}, {"softirq TIMER", 200, 0}, {"softirq SCHED", 150, 0}, {"softirq RCU", 100, 0},
		{"RES <Rescheduling>", 50, 0}, {"2 others", 28, 1},
	}
	if diff := cmp.Diff(names, pairsByName(before.On(3), after.On(3)), compared); diff != "" {
		t.Errorf("by name (-want +got):\n%s", diff)
	}
	if got := pairsByKind(before.On(3), &CPUResult{CPU: 3}); got != nil {
		t.Errorf("what was not counted is drawn as %v", got)
	}
}

func TestCompareCounted(t *testing.T) {
	before, after := countedPair()
	document := CompareCounted(before, after)
	// The background, the two colours of each panel explained, and two bars for each of three kinds and six names.
	if counts := elements(t, document); counts["rect"] != 1+2*2+2*(3+6) {
		t.Errorf("%d bars, want 18", counts["rect"]-1-2*2)
	}
	for _, of := range [][2]string{{colourBefore, "before"}, {colourAfter, "after"}} {
		if !regexp.MustCompile(`fill="` + of[0] + `"/>\n<text [^>]*>` + of[1] + `<`).MatchString(document) {
			t.Errorf("nothing says that the colour %s is %s", of[0], of[1])
		}
	}
	for _, want := range []string{"CPU 3: what the kernel counted", ">1078<", ">1.5<", "RES &lt;Rescheduling&gt;", ">unknown<"} {
		if !strings.Contains(document, want) {
			t.Errorf("%q is missing in:\n%s", want, document)
		}
	}
	if document := CompareCounted(before, twoCPUs()); strings.Count(document, "not counted in both") != 2*3 {
		t.Errorf("CPUs that only one of the results has are compared:\n%s", document)
	}
}

// box is about the room of a text that begins at a place.
type box struct{ left, right, top, bottom float64 }

// textBoxes are those of the texts of a document that begin at a place, by what they say; widths and heights are about those of its fonts.
func textBoxes(t *testing.T, document string) (boxes []box, words []string) {
	t.Helper()
	const wide, high, deep, usual = 0.6, 0.75, 0.22, 13.0
	for _, found := range regexp.MustCompile(`<text x="([^"]*)" y="([^"]*)" text-anchor="start" ([^>]*)>([^<]*)</text>`).FindAllStringSubmatch(document, -1) {
		var numbers [3]float64
		size := regexp.MustCompile(`font-size="([^"]*)"`).FindStringSubmatch(found[3])
		if size == nil {
			size = []string{"", strconv.FormatFloat(usual, 'f', -1, 64)}
		}
		for i, text := range []string{found[1], found[2], size[1]} {
			number, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			numbers[i] = number
		}
		x, y, font := numbers[0], numbers[1], numbers[2]
		below := 0.0
		if strings.ContainsAny(found[4], "gjpqy,()") {
			below = deep * font
		}
		text := html.UnescapeString(found[4])
		boxes, words = append(boxes, box{x, x + wide*font*float64(len(text)), y - high*font, y + below}), append(words, text)
	}
	return boxes, words
}

// TestLabelsOfPairsDoNotOverlap: names and rates have room where a panel has as many names as it can, and their bars are short.
func TestLabelsOfPairsDoNotOverlap(t *testing.T) {
	before, after := countedPair()
	for _, result := range []*Result{before, after} {
		for i := range result.CPUs[0].Counted {
			result.CPUs[0].Counted[i].Count = 1 + uint64(i%2)
		}
		result.CPUs[0].Counted[len(result.CPUs[0].Counted)-1].Count = 1e6
	}
	boxes, words := textBoxes(t, CompareCounted(before, after))
	if len(boxes) < 3*(3+mostNames) {
		t.Fatalf("found %d texts only", len(boxes))
	}
	for i, a := range boxes {
		for k, b := range boxes[:i] {
			if a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom {
				t.Errorf("%q lies on %q", words[i], words[k])
			}
		}
	}
}

// TestCompareCountedOtherwise: interrupts of devices are not compared with those of devices and kernel.
func TestCompareCountedOtherwise(t *testing.T) {
	before, after := countedPair()
	after.CPUs[0].InterruptsFrom = host.DeviceInterrupts
	document := CompareCounted(before, after)
	if strings.Contains(document, ">interrupts<") || strings.Contains(document, "RES &lt;Rescheduling&gt;") || !strings.Contains(document, "softirqs") ||
		!strings.Contains(document, "but interrupts: not the same were") {
		t.Errorf("what was not counted alike is compared:\n%s", document)
	}
}

// TestCompareShowsCounts tests that a comparison of lengths shows the kernel's counts below, where both results have them.
func TestCompareShowsCounts(t *testing.T) {
	if got := strings.Count(Compare(twoCPUs(), twoCPUs()), "what the kernel counted"); got != 1 {
		t.Errorf("the counts of %d CPUs are shown, want those of CPU 4 only", got)
	}
}
