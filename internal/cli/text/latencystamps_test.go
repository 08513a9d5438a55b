// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// TestLatencyStamps: the table of stamps has two rows for each size, also where no message has a stamp, and stands behind the tables of the program's times,
// which are as they are without stamps.
func TestLatencyStamps(t *testing.T) {
	result := &latency.Result{
		Kind: latency.KindPingPong, Outcome: latency.Outcome{Verdict: latency.Passed, Reason: latency.ReasonMeasured, Message: "measured"},
		Path:  latency.Path{State: latency.PathKernel, Message: "counted"},
		Sizes: []latency.Size{{Bytes: 64, Distribution: lengths(t, 1000, 3000)}, {Bytes: 1024, Distribution: lengths(t, 200, 4000)}},
	}
	without := Latency(result)
	result.Sizes[0].Stamps = &latency.Stamps{Messages: 1000, WithoutSent: 30, Wire: lengths(t, 970, 2000), Host: lengths(t, 970, 1000)}
	result.Sizes[1].Stamps = &latency.Stamps{Messages: 200, WithoutReceived: 200}
	result.Setup.Stamping = &latency.Stamping{By: latency.StampedByKernel, Interface: "eth0"}
	want := `# stamps: kernel, at interface eth0, by CLOCK_REALTIME; reporting: half of the round trip, in nanoseconds
# wire: from the stamp of a message to that of its answer, with the network and the server's host; host: the rest, which the client's host took between program and stamp
#size  part                50%  90%  99%  99.9%  99.99%  99.999%  stamped  missing
  #64  wire  2000 (1967..2032)    -    -      -       -        -      970       30
  #64  host   1000 (967..1032)    -    -      -       -        -      970       30
#1024  wire                  -    -    -      -       -        -        0      200
#1024  host                  -    -    -      -       -        -        0      200
`
	got := Latency(result)
	if diff := cmp.Diff(want, got[strings.Index(got, "# stamps:"):strings.Index(got, "# path:")]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(without, strings.Replace(got, want, "", 1)); diff != "" {
		t.Errorf("stamps change other tables (-without +with):\n%s", diff)
	}
}

func TestStampingWords(t *testing.T) {
	for want, by := range map[string]*latency.Stamping{
		"": nil,
		"kernel, at interface eth0, by CLOCK_REALTIME": {By: latency.StampedByKernel, Interface: "eth0"},
		"NIC eth0, by its clock /dev/ptp1":             {By: latency.StampedByNIC, Interface: "eth0", Clock: new(1)},
		"NIC eth0, by its own clock":                   {By: latency.StampedByNIC, Interface: "eth0"},
	} {
		if got := stampingWords(by); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestPairOfStamps: a measurement with stamps takes longer than one without, so that a comparison tells it.
func TestPairOfStamps(t *testing.T) {
	of := func(by *latency.Stamping) *latency.Result {
		return &latency.Result{Kind: latency.KindPingPong, Setup: latency.Setup{Stamping: by}, Sizes: []latency.Size{{Bytes: 64, Distribution: lengths(t, 1000, 3000)}}}
	}
	got := LatencyPair(of(nil), of(&latency.Stamping{By: latency.StampedByKernel, Interface: "eth0"}), NewPalette(false), 120)
	if want := "stamps             -       kernel, at interface eth0, by CLOCK_REALTIME\n"; !strings.HasSuffix(got, want) {
		t.Errorf("%q is missing:\n%s", want, got)
	}
}
