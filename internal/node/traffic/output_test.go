// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// stampsPrinted is what the program prints for the stamps of two messages, of which one was not stamped when it was sent.
const stampsPrinted = "stamps 2\n" + "\xe8\x03\x00\x00\x00\x00\x00\x00" + "\xd0\x07\x00\x00\x00\x00\x00\x00" +
	"\x00\x00\x00\x00\x00\x00\x00\x00" + "\x01\x00\x00\x00\x00\x00\x00\x00" + "\n"

// printed is what the program prints for two times of one size.
const printed = protocolLine + `
clock 20
server 3 far 6.1.0
environment LD_PRELOAD=libonload.so
samples 64 2 1 3 5000
` + "\x10\x27\x00\x00\x00\x00\x00\x00" + "\x05\x00\x00\x00\x00\x00\x00\x00" + `
part client 2 3 4 5
part server 6 7 8 9
stream 1000 64 10 2 9000 1 700 3 4 1 8 5 2 1 2 0 0 0 6
` + "\x01\x00\x00\x00\x00\x00\x00\x00" + "\x02\x00\x00\x00\x00\x00\x00\x00" + "\x03\x00\x00\x00\x00\x00\x00\x00" + `
part client 1 -1 0 0
part server 1 0 0 0
clocks 5000 5001 5002
counted client 8 9 3 4
counted server 7 -1 5 6
counters ` + notCounted + `
end Done measured
`

// notCounted is what a server on CPU 3 says that has not counted there.
const notCounted = `{"cpu":3,"unknown":"nobody counts"}`

func read(text string) (*Output, error) { return Read(strings.NewReader(text)) }

func TestRead(t *testing.T) {
	got, err := read(printed)
	if err != nil {
		t.Fatal(err)
	}
	want := &Output{
		ClockNanoseconds: 20, ServerName: "far", ServerKernel: "6.1.0", ServerCPU: 3, ServerEnvironment: []string{"LD_PRELOAD=libonload.so"},
		Sizes: []SizeTimes{{Bytes: 64, Lost: 1, Stray: 3, Elapsed: 5000, Times: []int64{10_000, 5}}},
		Streams: []StreamTimes{{
			Rate: 1000, Bytes: 64, Count: 10, ProbeCount: 2, Elapsed: 9000, Late: 1, Latest: 700, Blocked: 3, Wanted: 4,
			Load: Tally{8, 5, 2, 1}, Probes: Tally{Received: 2}, Foreign: 6, Answers: []Answer{{1, 2, 3}},
		}},
		Steady: 5000, Raw: 5001, Wall: 5002, Client: Counted{8, 9, 3, 4}, Server: Counted{7, -1, 5, 6}, ServerCounts: notCounted,
		Parts: []Part{{Counted{2, 3, 4, 5}, Counted{6, 7, 8, 9}}, {Counted{Messages: 1, Kernel: -1}, Counted{Messages: 1}}}, End: "Done", Message: "measured",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadRefuses(t *testing.T) {
	start := protocolLine + "\n"
	cases := map[string]struct{ text, want string }{
		"nothing":           {"", "it is another version"},
		"another version":   {"lowlatency-traffic 1\n", "it is another version"},
		"no end":            {start, "ended without a word"},
		"an end of nothing": {start + "end \n", "no word for the end"},
		"an unknown line":   {start + "hello\n", "no such line is known"},
		"a long line":       {start + strings.Repeat("x", 2*longestLine), "ended without a word"},
		"too few words":     {start + "clock\n", "1 words are needed"},
		"no number":         {start + "clock x\n", "invalid syntax"},
		"times that lack":   {start + "samples 1 2 0 0 0\n12345678", "2 of 2 times are missing"},
		"times without end": {start + "samples 1 1 0 0 0\n123456789", "do not end with a line"},
		"too many times":    {start + "samples 1 101000001 0 0 0\n", "are too many"},
		"counted words":     {start + "counted client 8 9\n", "4 words are needed"},
		"a part of nothing": {start + "part client 1 1 1 1\n", "no such part was measured"},
		"a part of no end":  {start + "samples 1 0 0 0 0\n\npart\n", "no such part was measured"},
		"a part too few":    {start + "samples 1 0 0 0 0\n\nend Done measured\n", "1 sizes and rates were measured, and 0 counted"},
		"no counters":       {start + "end Done measured\n", "what the server says of its CPU is missing"},
		"too many lines":    {start + strings.Repeat("clock 1\n", mostLines), "more than"},
		"more than sent":    {start + "stream 1 64 1 0 1 0 0 0 1 0 2 0 0 0 0 0 0 0 0\n", "more came than was sent"},
		"stamps of nothing": {start + "stamps 0\n\n", "no such size was measured"},
		"stamps too few":    {start + "samples 1 1 0 0 0\n12345678\nstamps 2\n", "there are 1 times of this size"},
		"stamps twice":      {start + "samples 1 0 0 0 0\n\nstamps 0\n\nstamps 0\n", "there are 0 times of this size"},
		"stamps that lack":  {start + "samples 1 1 0 0 0\n12345678\nstamps 1\n12345678", "2 of 2 times are missing"},
		"stamps of words":   {start + "samples 1 0 0 0 0\n\nstamps x\n", "invalid syntax"},
		"a stream":          {start + "stream 1 64\n", "19 words are needed"},
		"too many answers":  {start + "stream 1 64 1 33666667 1 0 0 0 1 33666667 1 0 0 0 0 0 0 0 0\n", "33666667 answers are too many"},
		"many variables":    {start + strings.Repeat("environment A=b\n", mostVariables+1), "names more than 256 variables"},
		"answers that lack": {start + "stream 1 64 1 0 1 0 0 0 1 1 1 0 0 0 0 0 0 0 0\n12345678", "3 of 3 times are missing"},
	}
	for name, tc := range cases {
		if _, err := read(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: the error is %v, want %q", name, err, tc.want)
		}
	}
}

func TestReadManyVariables(t *testing.T) {
	got, err := read(protocolLine + "\n" + strings.Repeat("environment A=b\n", mostVariables) + "end Vanished gone\n")
	if err != nil || len(got.ServerEnvironment) != mostVariables {
		t.Errorf("%d variables, %v", len(got.ServerEnvironment), err)
	}
}

// withStamps is printed with the stamps of its size.
func withStamps() string {
	return strings.Replace(printed, "part client 2", stampsPrinted+"part client 2", 1)
}

func TestReadStamps(t *testing.T) {
	got, err := read(withStamps())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Stamp{{1000, 2000}, {0, 1}}, got.Sizes[0].Stamps); diff != "" {
		t.Error(diff)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(printed)
	f.Add(withStamps())
	f.Add(protocolLine + "\nend Vanished gone\n")
	f.Fuzz(func(t *testing.T, text string) {
		output, err := read(text)
		if err != nil {
			return
		}
		request := DefaultRequest()
		request.Stamper = latency.StampedByKernel
		result, err := resultOf(latency.KindPingPong, &request, latency.Host{}, output, latency.Budget{})
		if err != nil {
			return
		}
		if result.Outcome.Reason == "" {
			t.Errorf("%+v has no outcome", result)
		}
		for _, size := range result.Sizes {
			if s := size.Stamps; s == nil || s.Wire.Samples+s.Missing() != s.Messages || s.Messages != size.Distribution.Samples {
				t.Errorf("not all messages of %d bytes are counted: %+v", size.Bytes, s)
			}
		}
	})
}

// TestPathOfParts: what went another way is found in its part, also where there are too many other messages for it to show in the whole.
func TestPathOfParts(t *testing.T) {
	of := func(messages uint64, kernel int64) Part {
		return Part{Counted{Messages: messages, Kernel: kernel}, Counted{Messages: messages, Kernel: kernel}}
	}
	past, through := of(2000, 4), of(200, 204)
	const whole = "the kernel counted 252 for 24200 messages at the client and 252 for 24200 messages at the server"
	cases := map[string]struct {
		last  Part
		state latency.PathState
		words string
	}{
		"all went past the kernel":  {past, latency.PathAccelerated, whole},
		"the last went through it":  {through, latency.PathMixed, whole + "; of 9000 messages a second, 204 for 200 and 204 for 200"},
		"some of the last":          {of(200, 100), latency.PathMixed, whole + "; of 9000 messages a second, 100 for 200 and 100 for 200"},
		"the last are few":          {of(99, 120), latency.PathAccelerated, whole},
		"the last were not counted": {of(200, -1), latency.PathAccelerated, whole},
	}
	for name, tc := range cases {
		output := &Output{Client: Counted{Messages: 24_200, Kernel: 252}, Server: Counted{Messages: 24_200, Kernel: 252}}
		for range 11 {
			output.Sizes, output.Parts = append(output.Sizes, SizeTimes{Bytes: 64}), append(output.Parts, past)
		}
		output.Streams, output.Parts = []StreamTimes{{Rate: 9000}}, append(output.Parts, tc.last)
		if got := pathOf(output); got.State != tc.state || got.Message != tc.words {
			t.Errorf("%s: %s, %s", name, got.State, got.Message)
		}
	}
}

func TestResultOf(t *testing.T) {
	output, err := read(printed)
	if err != nil {
		t.Fatal(err)
	}
	request := DefaultRequest()
	request.Host, request.Transport = "10.0.0.2", latency.Multicast
	got, err := resultOf(latency.KindPingPong, &request, latency.Host{Name: "near"}, output, latency.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	// Half of 10000 less 20; 5 less 20 is nothing.
	if d := got.Sizes[0].Distribution; d.MaximumNanoseconds != 4990 || d.MinimumNanoseconds != 0 {
		t.Errorf("%+v", d)
	}
	if got.Setup.Peer != "10.0.0.2:2048" || got.Setup.Group != Group || got.Sizes[0].Lost != 1 || got.Sizes[0].Stray != 3 {
		t.Errorf("%+v", got)
	}
	if got.Path.Client.State != latency.PathKernel || got.Path.Server.State != latency.PathUnknown {
		t.Errorf("%+v", got.Path)
	}
	isServerOf(t, got)
}

// isServerOf wants all that is printed of the server.
func isServerOf(t *testing.T, result *latency.Result) {
	t.Helper()
	want := latency.End{Name: latency.EndServer, CPU: 3, Counts: []latency.Counts{{CPU: 3, Unknown: "nobody counts"}}, Preemptions: 5, PageFaults: 6}
	if diff := cmp.Diff(want, result.Server()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTimeLineOfASize: what came after half of the time of all round trips is in the second half of the time line.
func TestTimeLineOfASize(t *testing.T) {
	times := &SizeTimes{Elapsed: 60e9, Times: []int64{100, 200, 300, 300, 300}}
	want := &latency.TimeLine{ElapsedNanoseconds: 60e9, LongestNanoseconds: make([]int64, latency.TimeSlices)}
	for slice, longest := range map[int]int64{0: 50, 5: 100, 15: 150, 30: 151, 45: 152} {
		want.LongestNanoseconds[slice] = longest
	}
	if diff := cmp.Diff(want, timeLineOf(times, []int64{50, 100, 150, 151, 152})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestResultOfAWrongStart(t *testing.T) {
	request := DefaultRequest()
	output := &Output{End: "Usage", Message: "sizes"}
	if _, err := resultOf(latency.KindPingPong, &request, latency.Host{}, output, latency.Budget{}); err == nil {
		t.Error("a program that was started wrongly is no error")
	}
}

func TestRequestRefuses(t *testing.T) {
	cases := map[string]struct {
		change func(*Request)
		want   string
	}{
		"no host":             {func(r *Request) { r.Host = "" }, "is missing"},
		"no port":             {func(r *Request) { r.Port = 70_000 }, "from 1 to 65535"},
		"no group":            {func(r *Request) { r.Transport, r.Group = latency.Multicast, "10.0.0.1" }, "multicast groups are from"},
		"no batch":            {func(r *Request) { r.Batch = 0 }, "a batch has 1 to"},
		"less than the least": {func(r *Request) { r.MaximumTime = 0 }, "the least is not above the most"},
		"no timeout":          {func(r *Request) { r.Timeout = 0 }, "from a millisecond to a minute"},
		"no sizes":            {func(r *Request) { r.Sizes = nil }, "0 sizes"},
		"nothing over TCP":    {func(r *Request) { r.Sizes = []int{0} }, "1 to 65536 bytes"},
		"a large datagram":    {func(r *Request) { r.Transport, r.Sizes = latency.UDP, []int{65508} }, "0 to 65507 bytes"},
	}
	for name, tc := range cases {
		r := DefaultRequest()
		r.Host, r.Sizes = "far", []int{1}
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		tc.change(&r)
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: the error is %v, want %q", name, err, tc.want)
		}
	}
}

func TestArguments(t *testing.T) {
	r := DefaultRequest()
	r.Host, r.Transport, r.Waiting, r.Sizes, r.MinimumTime = "far", latency.Multicast, latency.Spin, []int{1, 64}, 2*time.Second
	want := "client host=far transport=Multicast group=224.1.2.48 sizes=1,64 port=2048 cpu=-1 spin=1 timeout-ms=200 warm-ms=500 warm-pings=10000 " +
		"batch=1000 min-ms=2000 max-ms=3000 max-pings=1000000"
	if got := strings.Join(r.arguments(), " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestDefaultSizes(t *testing.T) {
	if diff := cmp.Diff([]int{0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1472, 1473, 2048, 4096, 8192, 16384, 32768}, DefaultSizes(latency.UDP)); diff != "" {
		t.Error(diff)
	}
	if got := DefaultSizes(latency.TCP); len(got) != 17 || got[0] != 1 || got[16] != 65536 {
		t.Errorf("%v", got)
	}
}
