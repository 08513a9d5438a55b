// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// stackSpec is a test that compares the kernel's sockets on a NIC with Onload, and that with Onload in the network of the node.
func stackSpec() *v1alpha1.LatencyTestSpec {
	kernel, pool := v1alpha1.TestEnd{BypassNICPool: "x2", Sockets: v1alpha1.TestSocketsKernel}, v1alpha1.TestEnd{BypassNICPool: "x2"}
	return &v1alpha1.LatencyTestSpec{
		Kind: v1alpha1.LatencyTestStackComparison, Repetitions: 5, PingPong: &v1alpha1.PingPongTest{Sizes: []int32{64, 1024}},
		Traffic: &v1alpha1.TestTraffic{Transport: v1alpha1.TransportUDP, Server: v1alpha1.TestServer{Placement: v1alpha1.ServerOnNodes, NodeNames: []string{"n2"}}},
		StackComparison: &v1alpha1.StackComparison{Base: "kernel", Sides: []v1alpha1.StackSide{
			{Name: "kernel", Path: v1alpha1.LatencyPathKernel, Client: v1alpha1.StackClient{TestEnd: kernel}, Server: v1alpha1.StackServer{TestEnd: kernel}},
			{Name: "onload", Path: v1alpha1.LatencyPathAccelerated, Client: v1alpha1.StackClient{TestEnd: pool}, Server: v1alpha1.StackServer{TestEnd: pool}},
			{Name: "host", Path: v1alpha1.LatencyPathAccelerated, Client: v1alpha1.StackClient{TestEnd: pool, Network: v1alpha1.TestNetworkHost}, Server: v1alpha1.StackServer{TestEnd: pool}},
		}},
	}
}

// stackRuns are the records of all runs: of a kernel with a median of 10 microseconds, and of others that take so many parts per thousand of that, each on
// the path that it is to take; change spoils those of a side.
func stackRuns(p *Parameters, parts map[v1alpha1.LatencySide]int64, change func(v1alpha1.LatencySide, *Record)) []*Record {
	records := make([]*Record, 0, p.Runs())
	for run := range p.Runs() {
		side := p.SideOf(run)
		record := runRecord(10_000*parts[side.Name]/1000, side.Path)
		change(side.Name, record)
		records = append(records, record)
	}
	return records
}

func asTheyAre(v1alpha1.LatencySide, *Record) {}

func TestSidesOfStacks(t *testing.T) {
	spec := stackSpec()
	p := ParametersOf(spec)
	order := make([]string, 0, p.Runs())
	for run := range p.Runs() {
		order = append(order, string(p.SideOf(run).Name[0]))
	}
	if got := strings.Join(order, ""); got != "kohhokkohhokkoh" {
		t.Errorf("the order is %s", got)
	}
	pool := v1alpha1.TestEnd{BypassNICPool: "x2"}
	want := Side{Name: "host", Client: pool, Server: pool, IsOnHost: true, Path: v1alpha1.LatencyPathAccelerated}
	if diff := cmp.Diff(want, p.Sides()[2]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := p.SideOf(0); got.Client.Sockets != v1alpha1.TestSocketsKernel || got.Server.Sockets != v1alpha1.TestSocketsKernel || p.ParallelNodes != 8 {
		t.Errorf("%+v, %d at a time", got, p.ParallelNodes)
	}
	spec.StackComparison.Sides[1].Server.Address = "192.0.2.31/24"
	if got := ParametersOf(spec); got.ParallelNodes != 1 {
		t.Errorf("%d nodes at a time have one address", got.ParallelNodes)
	}
}

// TestStacksAreHashed: what is compared otherwise has another hash.
func TestStacksAreHashed(t *testing.T) {
	seen := map[string]string{ParametersOf(stackSpec()).Hash(): "as it is"}
	for name, change := range map[string]func(*v1alpha1.StackComparison){
		"another base":        func(c *v1alpha1.StackComparison) { c.Base = "onload" },
		"another name":        func(c *v1alpha1.StackComparison) { c.Sides[1].Name = "other" },
		"another path":        func(c *v1alpha1.StackComparison) { c.Sides[1].Path = v1alpha1.LatencyPathKernel },
		"another client":      func(c *v1alpha1.StackComparison) { c.Sides[1].Client.BypassNICPool = "x3" },
		"another server":      func(c *v1alpha1.StackComparison) { c.Sides[1].Server.BypassNICPool = "x3" },
		"another address":     func(c *v1alpha1.StackComparison) { c.Sides[1].Client.Address = "192.0.2.31/24" },
		"another network":     func(c *v1alpha1.StackComparison) { c.Sides[1].Client.Network = v1alpha1.TestNetworkHost },
		"other sockets":       func(c *v1alpha1.StackComparison) { c.Sides[1].Client.Sockets = v1alpha1.TestSocketsKernel },
		"a server elsewhere":  func(c *v1alpha1.StackComparison) { c.Sides[1].Server.Network = v1alpha1.TestNetworkHost },
		"other sockets there": func(c *v1alpha1.StackComparison) { c.Sides[1].Server.Sockets = v1alpha1.TestSocketsKernel },
		"a side less":         func(c *v1alpha1.StackComparison) { c.Sides = c.Sides[:2] },
	} {
		spec := stackSpec()
		change(spec.StackComparison)
		hash := ParametersOf(spec).Hash()
		if other := seen[hash]; other != "" {
			t.Errorf("%s has the hash of %s", name, other)
		}
		seen[hash] = name
	}
}

func TestJudgeStacks(t *testing.T) {
	p := ParametersOf(stackSpec())
	fast := map[v1alpha1.LatencySide]int64{"kernel": 1000, "onload": 400, "host": 380}
	falls := func(side v1alpha1.LatencySide, path v1alpha1.LatencyPath) func(v1alpha1.LatencySide, *Record) {
		return func(of v1alpha1.LatencySide, record *Record) {
			if of == side {
				record.Network.Path = path
			}
		}
	}
	bounds := func(parts int32) *v1alpha1.LatencyBudget {
		return &v1alpha1.LatencyBudget{Ratios: []v1alpha1.LatencyRatioBound{{Percentile: v1alpha1.P50, MaximumPartsPerThousand: parts}}}
	}
	const differ = "messages did not go the way that their side says, so that nothing can be compared: "
	for name, tc := range map[string]struct {
		parts   map[v1alpha1.LatencySide]int64
		change  func(v1alpha1.LatencySide, *Record)
		budget  *v1alpha1.LatencyBudget
		reason  string
		message string
		// ratios are how many each side has.
		ratios []int
	}{
		"fast enough": {fast, asTheyAre, bounds(700), "Passed WithinBudget",
			"host to kernel, 64 bytes, 50 %: 0.380 (0.380 to 0.380)", []int{0, 4, 4}},
		"all paths are told": {fast, asTheyAre, bounds(700), "Passed WithinBudget",
			"to a server on node n2, path Kernel of kernel, Accelerated of onload, Accelerated of host", []int{0, 4, 4}},
		"one is too slow": {map[v1alpha1.LatencySide]int64{"kernel": 1000, "onload": 400, "host": 800}, asTheyAre, bounds(700), "Failed Ratio",
			"host to kernel, 64 bytes, 50 %: 0.800 (0.800 to 0.800) times as long, and the budget has 0.700", []int{0, 4, 4}},
		"one fell to the kernel": {fast, falls("onload", v1alpha1.LatencyPathKernel), bounds(700), "Inconclusive PathsDiffer",
			differ + "onload was to go Accelerated and went Kernel (the kernel counted 2 for 2 messages)", []int{0, 0, 4}},
		"the base is accelerated": {fast, falls("kernel", v1alpha1.LatencyPathAccelerated), bounds(700), "Inconclusive PathsDiffer",
			differ + "kernel was to go Kernel and went Accelerated", []int{0, 0, 0}},
		"nobody knows":                        {fast, falls("onload", v1alpha1.LatencyPathUnknown), bounds(700), "Inconclusive PathsDiffer", "onload was to go Accelerated and went Unknown", []int{0, 0, 4}},
		"one end alone":                       {fast, falls("host", v1alpha1.LatencyPathMixed), bounds(700), "Inconclusive PathsDiffer", "host was to go Accelerated and went Mixed", []int{0, 4, 0}},
		"no budget":                           {fast, asTheyAre, nil, "Inconclusive NoBudget", "onload to kernel, 64 bytes, 50 %: 0.400", []int{0, 4, 4}},
		"fell to the kernel without a budget": {fast, falls("onload", v1alpha1.LatencyPathKernel), nil, "Inconclusive PathsDiffer", "onload was to go Accelerated", []int{0, 0, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			measured := Compared(&p, stackRuns(&p, tc.parts, tc.change), "n2")
			got := Judge(measured, tc.budget)
			if string(got.Outcome)+" "+got.Reason != tc.reason || !strings.Contains(got.Message, tc.message) {
				t.Errorf("%+v", got)
			}
			ratios := make([]int, 0, len(tc.ratios))
			for i := range measured.Network.Comparison.Sides {
				ratios = append(ratios, len(measured.Network.Comparison.Sides[i].Ratios))
			}
			if diff := cmp.Diff(tc.ratios, ratios); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOneRunOnAnotherPath is enough.
func TestOneRunOnAnotherPath(t *testing.T) {
	p := ParametersOf(stackSpec())
	records := stackRuns(&p, map[v1alpha1.LatencySide]int64{"kernel": 1000, "onload": 400, "host": 380}, asTheyAre)
	records[4].Network.Path = v1alpha1.LatencyPathKernel
	got := Judge(Compared(&p, records, "n2"), nil)
	if got.Reason != v1alpha1.TestPathsDiffer || !strings.Contains(got.Message, "onload was to go Accelerated and went Mixed") {
		t.Errorf("%+v", got)
	}
}

// TestFiguresOfStacks are those of the first side that is not the base: the base stands first here.
func TestFiguresOfStacks(t *testing.T) {
	p := ParametersOf(stackSpec())
	compared := func(onload int64) *v1alpha1.LatencyMeasurement {
		return Compared(&p, stackRuns(&p, map[v1alpha1.LatencySide]int64{"kernel": 1000, "onload": onload, "host": 380}, asTheyAre), "n2")
	}
	m := compared(400)
	if m.MaximumNanoseconds != 9*4_000 || m.Network.RepetitionMediansNanoseconds[0] != 4_000 || m.RepetitionMaximumsNanoseconds[0] != 9*4_000 || m.Network.Path != v1alpha1.LatencyPathKernel {
		t.Errorf("%+v", m)
	}
	if got := CompareMeasurements(m, compared(600)); got.Trend != TrendWorse || !strings.HasPrefix(got.Message, "the ratios of medians are larger than before in every repetition (0.600, were 0.400)") {
		t.Errorf("%+v", got)
	}
}

// TestCausesOfSides: each side tells what was counted with its longest latency, and a failure repeats it.
func TestCausesOfSides(t *testing.T) {
	p := ParametersOf(stackSpec())
	records := stackRuns(&p, map[v1alpha1.LatencySide]int64{"kernel": 1000, "onload": 800, "host": 380}, func(side v1alpha1.LatencySide, r *Record) {
		r.Causes, r.CountedInterrupts = []string{"timer of " + string(side)}, v1alpha1.CountedInterruptsDevices
	})
	worst := records[4]
	worst.Causes, worst.MaximumNanoseconds, worst.CountedInterrupts = []string{"eth0 (7 a second)", "softirq NET_RX (9 a second)"}, 10*worst.MaximumNanoseconds, v1alpha1.CountedInterruptsAll
	m := Compared(&p, records, "n2")
	got := make([][]string, 0, len(p.Sides()))
	for i := range m.Network.Comparison.Sides {
		got = append(got, m.Network.Comparison.Sides[i].Causes)
	}
	if diff := cmp.Diff([][]string{{"timer of kernel"}, worst.Causes, {"timer of host"}}, got); diff != "" || m.CountedInterrupts != v1alpha1.CountedInterruptsAll {
		t.Errorf("counted %s (-want +got):\n%s", m.CountedInterrupts, diff)
	}
	verdict := Judge(m, &v1alpha1.LatencyBudget{Ratios: []v1alpha1.LatencyRatioBound{{Percentile: v1alpha1.P50, MaximumPartsPerThousand: 700}}})
	if !strings.HasSuffix(verdict.Message, "the budget has 0.700; on CPU 4 of the client the kernel counted eth0 (7 a second), softirq NET_RX (9 a second)") {
		t.Errorf("%+v", verdict)
	}
}

// TestComparisonsWithoutSides: saved objects may hold anything.
func TestComparisonsWithoutSides(t *testing.T) {
	m := &v1alpha1.LatencyMeasurement{Network: &v1alpha1.NetworkMeasurement{Comparison: &v1alpha1.ComparisonMeasurement{}}}
	if got := Judge(m, nil); got.Outcome != v1alpha1.LatencyInconclusive {
		t.Errorf("%+v", got)
	}
	if got := CompareMeasurements(m, m); got.Trend != TrendUnknown {
		t.Errorf("%+v", got)
	}
}
