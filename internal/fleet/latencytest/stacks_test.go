// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// newStacks is a world in which the kernel's sockets on the NIC of a pool are compared with its stack, and with that from the network of the node, five
// times. The test has a name that leaves no room.
func newStacks(t *testing.T) *scene {
	t.Helper()
	s := newComparison(t)
	s.Test.Name = strings.Repeat("long", 15)
	pool := &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: "x2"}}
	pool.Spec.ResourceName, pool.Spec.Stack.Type = "lowlatency.dev/x2", v1alpha1.StackOnload
	s.Pools = []*v1alpha1.BypassNICPool{pool}
	kernel, onload := v1alpha1.TestEnd{BypassNICPool: "x2", Sockets: v1alpha1.TestSocketsKernel}, v1alpha1.TestEnd{BypassNICPool: "x2"}
	s.Test.Spec.Kind, s.Test.Spec.Budget.Ratios[0].MaximumPartsPerThousand = v1alpha1.LatencyTestStackComparison, 700
	s.Test.Spec.StackComparison = &v1alpha1.StackComparison{Base: "kernel", Sides: []v1alpha1.StackSide{
		{Name: "kernel", Path: v1alpha1.LatencyPathKernel, Client: v1alpha1.StackClient{TestEnd: kernel}, Server: v1alpha1.StackServer{TestEnd: kernel}},
		{Name: "onload", Path: v1alpha1.LatencyPathAccelerated, Client: v1alpha1.StackClient{TestEnd: onload}, Server: v1alpha1.StackServer{TestEnd: onload}},
		{Name: "host", Path: v1alpha1.LatencyPathAccelerated, Client: v1alpha1.StackClient{TestEnd: onload, Network: v1alpha1.TestNetworkHost}, Server: v1alpha1.StackServer{TestEnd: onload}},
	}}
	return s
}

// side is the one that is measured now.
func (s *scene) side() qualification.Side {
	p := qualification.ParametersOf(&s.Test.Spec)
	return p.SideOf(int(s.of("node-1").ComparedRuns))
}

// measures ends the measurement of the side that is under way, with the path that it is to take, and a median in nanoseconds.
func (s *scene) measures(median int64) *Decision {
	s.t.Helper()
	path := s.side().Path
	s.ends("node-1", runRecord(s.t, median, func(r *qualification.Record) { r.Kind, r.Network.Path = v1alpha1.LatencyTestStackComparison, path }))
	return s.step()
}

// answers lets the server of the side be ready, at an address of its own, where it is not.
func (s *scene) answers() {
	s.t.Helper()
	for range 3 {
		if s.of("node-1").Server.Address != "" {
			return
		}
		if job := s.jobNamed(s.of("node-1").Server.Job); job != nil {
			s.serves("node-1", fmt.Sprintf("10.0.0.%d", 10+s.of("node-1").ComparedRuns))
		}
		s.step()
	}
	s.t.Fatalf("no server is ready: %+v", s.of("node-1"))
}

func medianOf(side v1alpha1.LatencySide, onload int64) int64 {
	return map[v1alpha1.LatencySide]int64{"kernel": 10_000, "onload": onload, "host": 4_000}[side]
}

func TestStacksFromServerToVerdict(t *testing.T) {
	for name, tc := range map[string]struct {
		onload int64
		want   string
	}{
		"fast enough": {5_000, "Idle Passed Fresh WithinBudget"},
		"too slow":    {8_000, "Idle Failed Fresh Ratio"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStacks(t)
			order, servers := s.measuresAll(tc.onload)
			if got := strings.Join(order, ""); got != "kohhokkohhokkoh" {
				t.Errorf("the order is %s", got)
			}
			// The server of the pool's stack serves onload and host, and that of the kernel's sockets two repetitions, where these follow each other.
			if len(servers) != 6 {
				t.Errorf("the servers are %s", servers)
			}
			s.expect("node-1", tc.want)
			if ratio := qualification.RatioOf(&s.of("node-1").Measured.Network.Comparison.Sides[1], 64, v1alpha1.P99); ratio == nil || ratio.PartsPerThousand != tc.onload/10 {
				t.Errorf("%+v", ratio)
			}
			for i := range s.Jobs {
				if name := s.Jobs[i].Name; len(name) > v1alpha1.MaxTestNameLength || strings.HasSuffix(name, serverSuffix) {
					t.Errorf("Job %s", name)
				}
			}
		})
	}
}

// measuresAll measures from the first server to the last side, and gives the first letters of the sides and the names of the servers in their order.
func (s *scene) measuresAll(onload int64) (order, servers []string) {
	s.t.Helper()
	for s.step(); s.of("node-1").Activity == v1alpha1.LatencyRunning; s.step() {
		s.answers()
		side := s.side()
		order, servers = append(order, string(side.Name[0])), append(servers, s.of("node-1").Server.Job)
		s.expectEnds(&side)
		s.measures(medianOf(side.Name, onload))
	}
	return order, slices.Compact(servers)
}

// expectEnds looks at the Jobs of both ends: what each is told, and what it asks for.
func (s *scene) expectEnds(side *qualification.Side) {
	s.t.Helper()
	result := s.of("node-1")
	for name, end := range map[string]v1alpha1.TestEnd{result.Job: side.Client, result.Server.Job: side.Server} {
		job := s.jobNamed(name)
		if job == nil {
			s.t.Fatalf("%s: Job %s is not there", side.Name, name)
		}
		container := job.Spec.Template.Spec.Containers[0]
		if got := slices.Contains(container.Args, "--sockets=Kernel"); got != (end.Sockets == v1alpha1.TestSocketsKernel) {
			s.t.Errorf("%s: %s", side.Name, container.Args)
		}
		if container.Resources.Limits.Name("lowlatency.dev/x2", "").IsZero() || len(container.Env) != 0 {
			s.t.Errorf("%s: %+v", side.Name, container)
		}
	}
	client := s.jobNamed(result.Job)
	if client.Spec.Template.Spec.HostNetwork != side.IsOnHost || !slices.Contains(client.Spec.Template.Spec.Containers[0].Args, "--server="+result.Server.Address) {
		s.t.Errorf("%s: %+v", side.Name, client.Spec.Template.Spec)
	}
}

// stopping is a world in which the first side was measured, and the pod of its server is still there.
func stopping(t *testing.T) (s *scene, former string) {
	t.Helper()
	s = newStacks(t)
	s.step()
	s.answers()
	server := s.jobNamed(s.of("node-1").Server.Job).DeepCopy()
	if d := s.measures(10_000); len(d.Start) != 0 || len(d.Stop) != 1 || d.Stop[0].Name != server.Name {
		t.Fatalf("%+v", d)
	}
	server.DeletionTimestamp = new(metav1.NewTime(s.Now))
	s.Jobs = append(s.Jobs, *server)
	return s, server.Name
}

// TestServersDoNotMeet: both may want the same NIC and the same address, so that one has to be gone before the next is made.
func TestServersDoNotMeet(t *testing.T) {
	s, former := stopping(t)
	for range 2 {
		if d := s.step(); len(d.Start)+len(d.Stop) != 0 || d.Again == 0 {
			t.Fatalf("%+v", d)
		}
	}
	if got := s.of("node-1").Message; got != "measurement 1 of 15 (kernel): waits until Job "+former+" of the server before has ended" {
		t.Error(got)
	}
	s.Jobs = without(s.Jobs, former)
	if d := s.step(); len(d.Start) != 1 || d.Start[0].Name != s.of("node-1").Server.Job {
		t.Fatalf("%+v", d)
	}
	s.answers()
	if r := s.of("node-1"); r.ComparedRuns != 1 || r.Server.Address != "10.0.0.11" || s.jobNamed(r.Job) == nil {
		t.Errorf("%+v", r)
	}
}

// TestServerThatStays is not waited for without end.
func TestServerThatStays(t *testing.T) {
	s, _ := stopping(t)
	s.Now = s.Now.Add(StartTime)
	s.step()
	s.expect("node-1", "Idle Inconclusive  NotStarted")
}

// TestStacksWithoutAResult: the side at which it ended is named.
func TestStacksWithoutAResult(t *testing.T) {
	for name, tc := range map[string]struct {
		happens       func(*scene)
		want, message string
	}{
		"its server does not start": {func(s *scene) { s.Now = s.Now.Add(StartTime) }, "Idle Inconclusive  NotStarted",
			"measurement 2 of 15 (onload): the server did not start on node node-2 within 10m0s: the server: Job "},
		"its server is deleted": {func(s *scene) {
			s.Jobs = without(s.Jobs, s.of("node-1").Server.Job)
			s.Now = s.Now.Add(jobAppears)
		}, "Idle Inconclusive  JobGone", "measurement 2 of 15 (onload): Job "},
		"the server leaves": {func(s *scene) { s.Nodes = s.Nodes[:1] }, "Idle Inconclusive  PeerVanished", "measurement 2 of 15 (onload): node node-2, which ran the server, went away"},
		"an earlier Job is deleted": {func(s *scene) {
			s.answers()
			s.Jobs = without(s.Jobs, strings.TrimSuffix(s.of("node-1").Job, "1")+"0")
			for s.of("node-1").Activity == v1alpha1.LatencyRunning {
				s.answers()
				s.measures(5_000)
				s.step()
			}
		}, "Idle Inconclusive  JobGone", "measurement 15 of 15 (host): Job "},
		"somebody makes the earlier Job": {func(s *scene) {
			s.answers()
			s.jobNamed(strings.TrimSuffix(s.of("node-1").Job, "1") + "0").Spec.Template.Spec.Containers[0].Args[2] = "--kind=PingPong"
			for s.of("node-1").Activity == v1alpha1.LatencyRunning {
				s.answers()
				s.measures(5_000)
				s.step()
			}
		}, "Idle Inconclusive  ForeignPod", "measurement 15 of 15 (host): Job "},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStacks(t)
			s.step()
			s.answers()
			s.measures(10_000)
			s.step()
			tc.happens(s)
			s.step()
			s.expect("node-1", tc.want)
			if got := s.of("node-1").Message; !strings.HasPrefix(got, tc.message) {
				t.Error(got)
			}
		})
	}
}

// TestFirstServerOfStacksNamesItsSide: there is one for each.
func TestFirstServerOfStacksNamesItsSide(t *testing.T) {
	s := newStacks(t)
	s.step()
	s.Now = s.Now.Add(StartTime)
	s.step()
	if got := s.of("node-1").Message; !strings.HasPrefix(got, "measurement 1 of 15 (kernel): the server did not start on node node-2") {
		t.Error(got)
	}
}

// TestStacksThatAreChanged begin anew: arguments alone do not tell that the pool is another.
func TestStacksThatAreChanged(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.LatencyTestSpec){
		"another server": func(spec *v1alpha1.LatencyTestSpec) { spec.StackComparison.Sides[1].Server.BypassNICPool = "x3" },
		"another client": func(spec *v1alpha1.LatencyTestSpec) { spec.StackComparison.Sides[1].Client.BypassNICPool = "x3" },
		"another name":   func(spec *v1alpha1.LatencyTestSpec) { spec.StackComparison.Sides[2].Name = "other" },
		"a side less":    func(spec *v1alpha1.LatencyTestSpec) { spec.StackComparison.Sides = spec.StackComparison.Sides[:2] },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStacks(t)
			s.step()
			s.answers()
			s.measures(10_000)
			s.step()
			s.answers()
			before := s.of("node-1").Job
			change(&s.Test.Spec)
			s.Test.Generation++
			s.step()
			if r := s.of("node-1"); r.ComparedRuns != 0 || r.Activity == v1alpha1.LatencyRunning && r.Job == before || s.jobNamed(before) != nil {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestPoolsOfSides: each side's pool has to be there, and one that is to be accelerated needs a stack that takes over sockets.
func TestPoolsOfSides(t *testing.T) {
	const ofVendor = "BypassNICPool x3 has stack %s, which accelerates no sockets, and what is to go by path Accelerated is measured through sockets"
	for name, tc := range map[string]struct {
		stack v1alpha1.StackType
		path  v1alpha1.LatencyPath
		want  string
	}{
		"a pool that is not there": {"", v1alpha1.LatencyPathAccelerated, "waits for BypassNICPool x3, which does not exist"},
		"TCPDirect":                {v1alpha1.StackTCPDirect, v1alpha1.LatencyPathAccelerated, fmt.Sprintf(ofVendor, "TCPDirect") + ": its programs, such as zfudppingpong of its vendor, measure it"},
		"ef_vi":                    {v1alpha1.StackEFVI, v1alpha1.LatencyPathAccelerated, fmt.Sprintf(ofVendor, "EFVI") + ": its programs, such as eflatency of its vendor, measure it"},
		"AF_XDP":                   {v1alpha1.StackAFXDP, v1alpha1.LatencyPathAccelerated, fmt.Sprintf(ofVendor, "AFXDP")},
		"VFIO":                     {v1alpha1.StackVFIO, v1alpha1.LatencyPathAccelerated, fmt.Sprintf(ofVendor, "VFIO")},
		"Onload":                   {v1alpha1.StackOnload, v1alpha1.LatencyPathAccelerated, ""},
		"the kernel's sockets on a NIC of TCPDirect": {v1alpha1.StackTCPDirect, v1alpha1.LatencyPathKernel, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStacks(t)
			if tc.stack != "" {
				pool := s.Pools[0].DeepCopy()
				pool.Name, pool.Spec.Stack.Type = "x3", tc.stack
				s.Pools = append(s.Pools, pool)
			}
			side := &s.Test.Spec.StackComparison.Sides[2]
			side.Server.BypassNICPool, side.Path = "x3", tc.path
			d := s.step()
			if got := s.of("node-1"); (got.Activity == v1alpha1.LatencyRunning) != (tc.want == "") || (tc.want != "" && got.Message != tc.want) || (len(d.Start) == 1) != (tc.want == "") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestResultsOfStacksFindRoom: etcd takes objects of 1.5 MiB, and a test with the most nodes, sides and sizes is one.
func TestResultsOfStacksFindRoom(t *testing.T) {
	for name, tc := range map[string]struct{ sides, sizes, nodes int }{
		"the most of all": {v1alpha1.MaxSides, v1alpha1.MaxTestSizes, 5}, "many sides": {v1alpha1.MaxSides, 1, 32}, "many sizes": {2, v1alpha1.MaxTestSizes, 13},
		"before there were more sizes": {v1alpha1.MaxSides, 8, 12}, "two sides of as many": {2, 8, 32},
		"in between": {v1alpha1.MaxSides, 3, 28},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStacks(t)
			s.Test.Spec.Nodes = v1alpha1.LatencyTestNodes{Profile: "trading"}
			s.Nodes, s.Test.Spec.StackComparison.Sides, s.Test.Spec.PingPong.Sizes = nil, nil, nil
			for i := range tc.sides {
				s.Test.Spec.StackComparison.Sides = append(s.Test.Spec.StackComparison.Sides, v1alpha1.StackSide{Name: v1alpha1.StackName(fmt.Sprint("a-name-of-a-long-", i))})
			}
			for i := range tc.sizes {
				s.Test.Spec.PingPong.Sizes = append(s.Test.Spec.PingPong.Sizes, int32(1000+i))
			}
			for i := range tc.nodes {
				s.add(fmt.Sprintf("a-node-with-a-name-of-middling-length-%d.example.com", i))
			}
			s.step()
			if _, message := (&decider{World: s.World, selectedNodes: s.selected()}).stalled(); message != "" {
				t.Errorf("the most nodes are too many: %s", message)
			}
			measured := largestComparison(tc.sides, tc.sizes)
			for i := range s.Test.Status.Results {
				result := &s.Test.Status.Results[i]
				result.Message = strings.Repeat("m", 500)
				d := &decider{World: s.World, selectedNodes: s.selected()}
				result.Previous, result.Measured = d.asPrevious(measured), d.inRoom(measured)
				result.Earlier = d.earlierInRoom(measured, mostEarlierRuns())
			}
			text, err := json.Marshal(s.Test)
			if err != nil {
				t.Fatal(err)
			}
			const most = 3 << 19
			t.Logf("the test has %d bytes of %d", len(text), most)
			if len(text) > most {
				t.Errorf("the test has %d bytes, more than %d", len(text), most)
			}
			s.add("one-too-many")
			s.step()
			s.expectReady(metav1.ConditionFalse, v1alpha1.ReasonTooManyNodes)
		})
	}
}

// largestComparison is a measurement with numbers of many digits.
func largestComparison(sides, sizes int) *v1alpha1.LatencyMeasurement {
	figures := v1alpha1.LatencyFigures{
		Samples: 10_000_000, LeastSamples: 1_000_000, MinimumNanoseconds: 1_000_000, MeanNanoseconds: 1_000_000, DeviationNanoseconds: 1_000_000, MaximumNanoseconds: 1_000_000_000,
	}
	side := v1alpha1.SideMeasurement{
		Side: "a-name-of-a-long-one", Path: v1alpha1.LatencyPathAccelerated, WantedPath: v1alpha1.LatencyPathAccelerated, PathMessage: strings.Repeat("m", 120), CPUs: "10-11",
		RepetitionMediansNanoseconds: slices.Repeat([]int64{1_000_000}, v1alpha1.MaxTestRepetitions), Histogram: strings.Repeat("h", 1500),
		Causes: largestServer().ServerCauses, Isolation: largestServer().ServerIsolation, ServerCounts: largestServer(),
	}
	for _, name := range qualification.Percentiles() {
		figures.Percentiles = append(figures.Percentiles, v1alpha1.LatencyPercentile{Percentile: name, Nanoseconds: 1_000_000_000})
		figures.Intervals = append(figures.Intervals, v1alpha1.LatencyInterval{LowNanoseconds: 1_000_000_000, HighNanoseconds: new(int64(1_000_000_000))})
		for range sizes {
			side.Ratios = append(side.Ratios, v1alpha1.LatencyRatio{Bytes: 1472, Percentile: name, PartsPerThousand: 1000, LowPartsPerThousand: 1000, HighPartsPerThousand: 1000})
		}
	}
	side.Sizes = slices.Repeat([]v1alpha1.SizeMeasurement{{Bytes: 1472, Lost: 100_000, Stray: 100_000, LatencyFigures: figures}}, sizes)
	fingerprint := v1alpha1.LatencyFingerprint{
		Kernel: strings.Repeat("k", 40), CommandLineHash: strings.Repeat("c", 16), Microcode: "0x1234", BIOSVersion: "1.2.3", PlanHash: strings.Repeat("p", 16),
		NICsHash: strings.Repeat("n", 16),
	}
	return &v1alpha1.LatencyMeasurement{
		CompletedTime: metav1.NewTime(begin()), ParametersHash: strings.Repeat("h", 16), Fingerprint: fingerprint, Percentiles: figures.Percentiles,
		Network: &v1alpha1.NetworkMeasurement{
			Server: "server-1", ServerKernel: fingerprint.Kernel, PathMessage: strings.Repeat("m", 120), ServerFingerprint: &fingerprint,
			Comparison: &v1alpha1.ComparisonMeasurement{Base: "a-name-of-a-long-one", Sides: slices.Repeat([]v1alpha1.SideMeasurement{side}, sides)},
		},
	}
}

// TestKernelSocketsOfOtherKinds: an end of any kind can have them.
func TestKernelSocketsOfOtherKinds(t *testing.T) {
	s := newPingPong(t, "node-2")
	s.Pools = newStacks(t).Pools
	s.Test.Spec.Traffic.Server.TestEnd = v1alpha1.TestEnd{BypassNICPool: "x2", Sockets: v1alpha1.TestSocketsKernel}
	s.Test.Spec.Traffic.Client = &v1alpha1.TestEnd{BypassNICPool: "x2"}
	s.begins()
	got := map[string]bool{}
	for _, name := range []string{s.of("node-1").Job, s.of("node-1").Server.Job} {
		args := s.jobNamed(name).Spec.Template.Spec.Containers[0].Args
		got[args[3]] = slices.Contains(args, "--sockets=Kernel")
	}
	if diff := cmp.Diff(map[string]bool{"--role=Client": false, "--role=Server": true}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
