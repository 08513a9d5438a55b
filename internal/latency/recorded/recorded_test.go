// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package recorded

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// trex is a record with a million messages of a stream, of which some are lost, and ten thousand probes. The numbers are made up.
func trex(lost int, histogram string) string { return trexHDR(lost, histogram, "") }

// ofTRex is an HDR histogram as TRex's own encoder writes it (src/hdrh, hdr_log_encode, with the limits of src/time_histogram.cpp): 2000 latencies at 7 µs, 7900 at 12,
// 50 at 24, 40 at 27, 9 at 91 and one at 5000.
const ofTRex = "HISTFAAAAC54nJNpmSzMwMDAzwABzFCaEUzOmNZg/wEiwLtAnn1HtWgKc0CtULcREwCu1whX"

// trexHDR is the same of a TRex that was started with --hdrh.
func trexHDR(lost int, histogram, hdr string) string {
	if hdr != "" {
		histogram += fmt.Sprintf(`, "hdrh": %q`, hdr)
	}
	return fmt.Sprintf(`{"server": {"version": "v3.04", "mode": "STL"}, "stats": {
  "0": {"opackets": 1010000, "ipackets": 0}, "1": {"opackets": 0, "ipackets": 1009990},
  "total": {"opackets": 1010000, "ipackets": 1009990, "tx_bps": 12.5}, "global": {"cpu_util": 4.5},
  "flow_stats": {"global": {"rx_err": {"0": 0}, "tx_err": {"0": 0}},
    "7": {"tx_pkts": {"0": 1000000, "1": 0, "total": 1000000}, "rx_pkts": {"0": 0, "1": %d, "total": %d}, "rx_pps": {"0": "N/A"}},
    "12": {"tx_pkts": {"0": 10000, "total": 10000}, "rx_pkts": {"1": 10000, "total": 10000}}},
  "latency": {"global": {"old_flow": 0, "bad_hdr": 0},
    "12": {"err_cntrs": {"dropped": 0, "out_of_order": 1, "dup": 0, "seq_too_high": 0, "seq_too_low": 0},
      "latency": {"jitter": 3, "average": 21.5, "total_max": 90, "total_min": 10, "last_max": 0, "histogram": %s}}}}}`, 1_000_000-lost, 1_000_000-lost, histogram)
}

const quiet = `{"0": 2000, "10": 7900, "20": 90, "90": 10}`

// forward is what testpmd prints when it stops, with or without what was dropped on its way.
func forward(dropped int) string {
	return fmt.Sprintf(`EAL: RTE Version: 'DPDK 24.11.1'
testpmd> stop
  ------- Forward Stats for RX Port= 0/Queue= 0 -> TX Port= 1/Queue= 0 -------
  RX-packets: 999999         TX-packets: 999999         TX-dropped: 0

  ---------------------- Forward statistics for port 0  ----------------------
  RX-packets: 1000000        RX-dropped: 0             RX-total: 1000000
  TX-packets: 500000         TX-dropped: 0             TX-total: 500000
  ----------------------------------------------------------------------------

  ---------------------- Forward statistics for port 1  ----------------------
  RX-packets: 500000         RX-dropped: 0             RX-total: 500000
  TX-packets: %d         TX-dropped: %d             TX-total: 1000000
  ----------------------------------------------------------------------------

  +++++++++++++++ Accumulated forward statistics for all ports+++++++++++++++
  RX-packets: 1500000        RX-dropped: 0             RX-total: 1500000
  TX-packets: %d        TX-dropped: %d             TX-total: 1500000
  ++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++
`, 1_000_000-dropped, dropped, 1_500_000-dropped, dropped)
}

func nic(port, received, missed, sent int) string {
	return fmt.Sprintf(`
  ######################## NIC statistics for port %-2d ########################
  RX-packets: %-10d RX-missed: %-10d RX-bytes:  640
  RX-errors: 0
  RX-nombuf:  0         
  TX-packets: %-10d TX-errors: 0          TX-bytes:  640

  Throughput (since last show)
  Rx-pps:            0          Rx-bps:            0
  Tx-pps:            0          Tx-bps:            0
  ############################################################################
`, port, received, missed, sent)
}

// started is the line that testpmd prints when it starts in a mode.
func started(mode string) string {
	return mode + " packet forwarding - ports=2 - cores=1 - streams=2 - NUMA support enabled, MP allocation mode: native\n"
}

// rest is what testpmd prints after a run that only took in what was still on its way.
const rest = `
  ---------------------- Forward statistics for port 0  ----------------------
  RX-packets: 7              RX-dropped: 0             RX-total: 7
  TX-packets: 0              TX-dropped: 0             TX-total: 0
  ----------------------------------------------------------------------------

  +++++++++++++++ Accumulated forward statistics for all ports+++++++++++++++
  RX-packets: 7              RX-dropped: 0             RX-total: 7
  TX-packets: 0              TX-dropped: 0             TX-total: 0
  ++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++
`

const clearedNICs = "\n  NIC statistics for port 0 cleared\n\n  NIC statistics for port 1 cleared\n"

// found is what is compared of a run.
type found struct {
	Version        string
	Load           latency.Stream
	Probes         *latency.Stream
	Achieved       float64
	Samples        uint64
	Low99, High99  int64
	Longest, Limit int64
	// HDR is what an HDR histogram has, "" for none.
	HDR string
}

// emptyHDR is an empty HDR histogram for lengths up to a highest one, of so many digits.
func emptyHDR(highest int64, digits int) *hdrhistogram.Histogram {
	return hdrhistogram.New(1, highest, digits)
}

// hdr is the text of an HDR histogram with lengths.
func hdr(histogram *hdrhistogram.Histogram, lengths ...int64) string {
	for _, length := range lengths {
		if err := histogram.RecordValue(length); err != nil {
			panic(err)
		}
	}
	text, err := histogram.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// told is what the text of an HDR histogram has; "" for none.
func told(t *testing.T, text string) string {
	t.Helper()
	if text == "" {
		return ""
	}
	histogram, err := latency.DecodeHDR(text)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d, 99 %% %d ns, longest %d ns", histogram.TotalCount(), histogram.ValueAtPercentile(99), histogram.Max())
}

func TestRecordsOfGenerators(t *testing.T) {
	for name, tc := range map[string]struct {
		generator Generator
		text      string
		want      found
	}{
		"TRex": {TRex, trex(10, quiet), found{
			Version: "v3.04", Load: latency.Stream{Sent: 1_000_000, Lost: 10}, Probes: &latency.Stream{Sent: 10_000, Reordered: 1}, Achieved: 100_000,
			Samples: 10_000, Low99: 20_000, High99: 30_000, Longest: 90_000, Limit: 100_000,
		}},
		"TRex with HDR": {TRex, trexHDR(10, `{"0": 2000, "10": 7900, "20": 90, "90": 9, "5000": 1}`, ofTRex), found{
			Version: "v3.04", Load: latency.Stream{Sent: 1_000_000, Lost: 10}, Probes: &latency.Stream{Sent: 10_000, Reordered: 1}, Achieved: 100_000,
			Samples: 10_000, Low99: 24_000, High99: 25_000, Longest: 5_000_000, Limit: 5_004_000, HDR: "10000, 99 % 13007 ns, longest 5005311 ns",
		}},
		// The client clears the steps, and the HDR histogram goes on.
		"TRex with HDR of more than this run": {TRex, trexHDR(10, quiet[:len(quiet)-3]+"1}", ofTRex), found{
			Version: "v3.04", Load: latency.Stream{Sent: 1_000_000, Lost: 10}, Probes: &latency.Stream{Sent: 10_000, Reordered: 1}, Achieved: 100_000,
			Samples: 9991, Longest: 90_000, Limit: 100_000,
		}},
		"TRex without groups": {TRex, `{"stats": {"total": {"opackets": 500, "ipackets": 499}, "flow_stats": {}, "latency": {}}}`, found{Load: latency.Stream{Sent: 500, Lost: 1}, Achieved: 50}},
		"testpmd that sends":  {Testpmd, forward(0), found{Version: "DPDK 24.11.1", Load: latency.Stream{Sent: 1_500_000}, Achieved: 150_000}},
		"testpmd that passes on": {TestpmdForwarder, forward(128), found{
			Version: "DPDK 24.11.1", Load: latency.Stream{Sent: 1_500_000, Lost: 128}, Achieved: 150_000,
		}},
		"Windows lines":        {TestpmdForwarder, strings.ReplaceAll(forward(1), "\n", "\r\n"), found{Version: "DPDK 24.11.1", Load: latency.Stream{Sent: 1_500_000, Lost: 1}, Achieved: 150_000}},
		"NICs once":            {Testpmd, nic(0, 0, 0, 1000) + nic(1, 990, 10, 0), found{Load: latency.Stream{Sent: 1000, Lost: 10}, Achieved: 100}},
		"NICs before, after":   {Testpmd, nic(0, 5, 5, 5) + nic(1, 5, 5, 5) + nic(0, 5, 5, 1005) + nic(1, 1000, 10, 5), found{Load: latency.Stream{Sent: 1000, Lost: 5}, Achieved: 100}},
		"NICs of a forwarder":  {TestpmdForwarder, nic(0, 900, 100, 0) + nic(1, 0, 0, 890), found{Load: latency.Stream{Sent: 1000, Lost: 110}, Achieved: 100}},
		"NICs cleared between": {Testpmd, nic(0, 5, 5, 500) + nic(1, 5, 5, 5) + clearedNICs + nic(0, 5, 5, 1005) + nic(1, 1000, 10, 5), found{Load: latency.Stream{Sent: 1010, Lost: 5}, Achieved: 101}},
		"NICs cleared after":   {Testpmd, nic(0, 5, 5, 5) + nic(1, 5, 5, 5) + nic(0, 5, 5, 1005) + nic(1, 1000, 10, 5) + clearedNICs, found{Load: latency.Stream{Sent: 1000, Lost: 5}, Achieved: 100}},
		// The counters before the run were not shown: the statistics of the run are those of forwarding.
		"NICs after a run alone": {Testpmd, started("io") + forward(0) + nic(0, 9, 0, 9) + nic(1, 9, 0, 9), found{Version: "DPDK 24.11.1", Load: latency.Stream{Sent: 1_500_000}, Achieved: 150_000}},
		"NICs during a run": {Testpmd, started("io") + nic(0, 9, 0, 9) + nic(1, 9, 0, 9) + forward(0) + nic(0, 90, 0, 90) + nic(1, 90, 0, 90), found{
			Version: "DPDK 24.11.1", Load: latency.Stream{Sent: 1_500_000}, Achieved: 150_000,
		}},
		"NICs around a run that goes on": {Testpmd, started("io") + forward(0) + nic(0, 9, 0, 9) + nic(1, 9, 0, 9) + clearedNICs + started("io") + nic(0, 0, 0, 1000) + nic(1, 990, 0, 0), found{
			Version: "DPDK 24.11.1", Load: latency.Stream{Sent: 1000, Lost: 10}, Achieved: 100,
		}},
		"what came in afterwards": {Testpmd, started("flowgen") + forward(0) + started("rxonly") + rest, found{
			Version: "DPDK 24.11.1", Load: latency.Stream{Sent: 1_500_000}, Achieved: 150_000,
		}},
		"NICs before and during a run": {Testpmd, nic(0, 9, 0, 9) + nic(1, 9, 0, 9) + started("io") + nic(0, 9, 0, 99) + nic(1, 99, 0, 9) + forward(0), found{
			Version: "DPDK 24.11.1", Load: latency.Stream{Sent: 1_500_000}, Achieved: 150_000,
		}},
		"NICs three times": {Testpmd, nic(0, 5, 5, 5) + nic(1, 5, 5, 5) + nic(0, 5, 5, 500) + nic(1, 500, 5, 5) + nic(0, 5, 5, 1005) + nic(1, 1000, 10, 5), found{
			Load: latency.Stream{Sent: 1000, Lost: 5}, Achieved: 100,
		}},
		"a prompt before a title of forwarding": {Testpmd, strings.Replace(forward(0), "Forward statistics for port 1", "Forward testpmd> statistics for port 1", 1), found{
			Version: "DPDK 24.11.1", Load: latency.Stream{Sent: 1_500_000}, Achieved: 150_000,
		}},
		"a prompt before the title of all": {Testpmd, strings.Replace(forward(0), "forward statistics for all", "forwatestpmd> rd statistics for all", 1), found{
			Version: "DPDK 24.11.1", Load: latency.Stream{Sent: 1_500_000}, Achieved: 150_000,
		}},
		"NICs before a run alone": {Testpmd, nic(0, 9, 0, 9) + nic(1, 9, 0, 9) + started("io") + forward(0), found{Version: "DPDK 24.11.1", Load: latency.Stream{Sent: 1_500_000}, Achieved: 150_000}},
		"NICs around a run": {Testpmd, nic(0, 9, 0, 9) + nic(1, 9, 0, 9) + started("io") + forward(0) + nic(0, 9, 0, 1009) + nic(1, 909, 0, 9), found{
			Version: "DPDK 24.11.1", Load: latency.Stream{Sent: 1000, Lost: 100}, Achieved: 100,
		}},
		"a prompt in a number": {Testpmd, strings.Replace(nic(0, 0, 0, 1000)+nic(1, 990, 10, 0), "990 ", "99testpmd> show port stats all\r\r\n0 ", 1), found{Load: latency.Stream{Sent: 1000, Lost: 10}, Achieved: 100}},
		"a prompt at the end":  {Testpmd, strings.Replace(nic(0, 0, 0, 1000)+nic(1, 990, 10, 0), "RX-missed: 10", "RX-mistestpmd> sed: 10", 1), found{Load: latency.Stream{Sent: 1000, Lost: 10}, Achieved: 100}},
		"a prompt before a title": {Testpmd, strings.Replace(nic(0, 0, 0, 1000)+nic(1, 990, 10, 0), "NIC statistics for port 1 ", "NIC testpmd> statistics for port 1 ", 1), found{
			Load: latency.Stream{Sent: 1000, Lost: 10}, Achieved: 100,
		}},
		"stopped twice": {TestpmdForwarder, forward(500) + forward(3), found{Version: "DPDK 24.11.1", Load: latency.Stream{Sent: 1_500_000, Lost: 3}, Achieved: 150_000}},
	} {
		t.Run(name, func(t *testing.T) {
			run, err := Parse(tc.generator, []byte(tc.text), 100_000, 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			got := found{
				Version: run.Version, Load: run.Rate.Load, Probes: run.Rate.Probes, Achieved: run.Rate.AchievedPerSecond, Samples: run.Rate.FromIntended.Samples,
				Longest: run.Rate.FromIntended.MaximumNanoseconds, Limit: run.Highest.MaximumNanoseconds,
				HDR: told(t, run.Rate.FromIntended.HDR),
			}
			if p, carried := run.Rate.FromIntended.At(99); carried {
				got.Low99, got.High99 = p.Nanoseconds, *p.HighNanoseconds
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLostProbes: a probe that is lost has no latency, which is later than all others, and is counted once.
func TestLostProbes(t *testing.T) {
	const whole = `{"stats": {"total": {"opackets": 11000, "ipackets": 10800}, "flow_stats": {%s}, "latency": {"5": {"err_cntrs": {"dropped": 150, "out_of_order": 2, "dup": 1}, ` +
		`"latency": {"histogram": {"10": 850}}}}}}`
	type counts struct {
		Load         latency.Stream
		Probes       *latency.Stream
		Wanted, Lost uint64
	}
	for name, tc := range map[string]struct {
		text string
		want counts
	}{
		"groups of their own": {strings.Replace(trex(10, quiet), `"dropped": 0`, `"dropped": 150`, 1), counts{
			latency.Stream{Sent: 1_000_000, Lost: 10}, &latency.Stream{Sent: 10_000, Lost: 150, Reordered: 1}, 10_000, 150,
		}},
		"a total with them": {fmt.Sprintf(whole, `"5": {"tx_pkts": {"0": 1000}}`), counts{
			latency.Stream{Sent: 10_000, Lost: 50}, &latency.Stream{Sent: 1000, Lost: 150, Reordered: 2, Duplicates: 1}, 1000, 150,
		}},
		"a total with as many as nobody knows": {fmt.Sprintf(whole, ""), counts{
			latency.Stream{Sent: 11_000, Lost: 50}, &latency.Stream{Lost: 150, Reordered: 2, Duplicates: 1}, 1000, 150,
		}},
		"nothing else": {fmt.Sprintf(whole, `"5": {"tx_pkts": {"0": 11000}}`), counts{
			latency.Stream{Sent: 11_000, Lost: 200, Reordered: 2, Duplicates: 1}, nil, 11_000, 150,
		}},
		"more lost than the others were": {fmt.Sprintf(strings.Replace(whole, "10800", "0", 1), `"5": {"tx_pkts": {"0": 10000}}`), counts{
			latency.Stream{Sent: 1000, Lost: 1000}, &latency.Stream{Sent: 10_000, Lost: 150, Reordered: 2, Duplicates: 1}, 10_000, 150,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			run, err := Parse(TRex, []byte(tc.text), 1000, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			got := counts{run.Rate.Load, run.Rate.Probes, run.Rate.AnswersWanted, run.Rate.AnswersLost}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLostProbesAreLate: 150 of 10150 probes are more than the rest of 99 %, and less than that of 90 %.
func TestLostProbesAreLate(t *testing.T) {
	run, err := Parse(TRex, []byte(strings.Replace(trex(0, quiet), `"dropped": 0`, `"dropped": 150`, 1)), 100_000, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for percent, want := range map[float64]latency.Reason{99: latency.ReasonLoss, 90: latency.ReasonWithinBudget} {
		all := 1e6
		load, err := latency.JudgeRecorded([]latency.Recorded{run.Recorded}, latency.SearchOptions{
			Confirm: time.Minute, Budget: latency.Budget{LossPartsPerMillion: &all, Limits: []latency.Limit{{Percent: percent, Nanoseconds: 1_000_000}}},
		})
		if err != nil || load.Trials[0].Outcome.Reason != want {
			t.Errorf("%g %%: %+v, %v, want %s", percent, load.Trials, err, want)
		}
	}
}

// before is what of a text comes before a part of it.
func before(text, part string) string {
	text, _, _ = strings.Cut(text, part)
	return text
}

func TestRecordsThatAreNone(t *testing.T) {
	for name, tc := range map[string]struct {
		generator  Generator
		text, want string
	}{
		"a generator that is not known": {"pktgen", "", `generator "pktgen" is not known`},
		"no JSON":                       {TRex, "Traceback (most recent call last):", "the record is not JSON of TRex's statistics"},
		"the statistics alone":          {TRex, `{"total": {"opackets": 1, "ipackets": 1}}`, `the record has no "stats"`},
		"nothing of anything":           {TRex, `{"stats": {}}`, "the record has neither flow_stats of a stream nor"},
		"nothing sent":                  {TRex, `{"stats": {"total": {"opackets": 0, "ipackets": 0}}}`, "no message was sent"},
		"more received than sent":       {TRex, trex(-1, quiet), "1000001 messages were received, and 1000000 sent"},
		"a number that is not there":    {TRex, `{"stats": {"flow_stats": {"7": {"tx_pkts": {"0": "N/A"}}}}}`, `flow_stats of group 7: "\"N/A\"" is no number of messages`},
		"a negative number":             {TRex, `{"stats": {"flow_stats": {"7": {"tx_pkts": {"0": -1}}}}}`, `"-1" is no number of messages`},
		"a strange step":                {TRex, trex(0, `{"15": 1}`), `histogram of group 12: "15" is no step`},
		"a step below all":              {TRex, trex(0, `{"5": 1}`), `"5" is no step`},
		"an HDR histogram that is none": {TRex, trexHDR(0, quiet, "HISTF"), "hdrh of group 12: the text is no HDR histogram"},
		"an endless HDR histogram":      {TRex, trexHDR(0, quiet, hdr(emptyHDR(100_000_001, 3), 1)), "hdrh of group 12: it is for up to 100000001 µs, more than 100000000"},
		"a long HDR histogram":          {TRex, trexHDR(0, quiet, strings.Repeat("A", 262_145)), "hdrh of group 12: it has 262145 bytes, more than 262144"},
		"HDR histograms of other widths": {
			TRex, `{"stats": {"total": {"opackets": 5, "ipackets": 5}, "latency": {"1": {"latency": {"histogram": {"2000": 2}, "hdrh": "` + hdr(emptyHDR(10_000_000, 3), 2500, 2500) +
				`"}}, "2": {"latency": {"histogram": {"2000": 1}, "hdrh": "` + hdr(emptyHDR(10_000_000, 1), 2500) + `"}}}}}`, "steps of different widths",
		},
		"a step that is no number": {TRex, trex(0, `{"x": 1}`), `"x" is no step`},
		"no statistics":            {Testpmd, "testpmd> show fwd stats all\nBad arguments\n", "the record has neither forward statistics nor NIC statistics of a port"},
		"a record that is cut off": {Testpmd, before(forward(0), "TX-packets: 500000"), "Forward statistics for port 0 has no end: the record is cut off"},
		"an end that is cut off":   {TestpmdForwarder, before(forward(0), "+++"), "the record is cut off"},
		"a port less":              {Testpmd, strings.Replace(forward(0), "Forward statistics for port 1 ", "Gone statistics of port 1 ", 1), "the record lacks a port"},
		"a total that is another": {
			TestpmdForwarder, strings.Replace(forward(0), "RX-total: 1000000", "RX-total: 1000001", 1), "Forward statistics for port 0 has 1000001 of RX-total",
		},
		"a number that is cut off":       {Testpmd, before(nic(0, 5, 0, 1000), "00       TX-errors"), "NIC statistics for port 0 has no end: the record is cut off"},
		"a number with something in it":  {Testpmd, strings.Replace(nic(0, 5, 0, 1000), "1000 ", "10EAL: a line\n00 ", 1), "NIC statistics for port 0 has no TX-packets: the record is cut off, or something else"},
		"a NIC less after the run":       {Testpmd, nic(0, 0, 0, 0) + nic(1, 0, 0, 0) + nic(0, 0, 0, 1000), "were not shown as often of each port"},
		"cleared and not shown":          {Testpmd, "  NIC statistics for port 0 cleared\n", "of port 0 were cleared, and not shown after that"},
		"a run without statistics":       {Testpmd, started("io") + forward(0) + started("io"), "a run was started after the last statistics, and has none"},
		"NICs before a run without any":  {Testpmd, started("io") + forward(0) + nic(0, 9, 0, 9) + nic(0, 9, 0, 19) + started("io"), "a run was started after the last statistics, and has none"},
		"a run in which nothing is sent": {Testpmd, started("flowgen") + forward(0) + started("flowgen") + rest, "7 messages were received, and 0 sent"},
		"a sender that never reads":      {Testpmd, started("txonly") + forward(0), "testpmd never reads what comes back"},
		"the same by NICs":               {Testpmd, started("txonly") + nic(0, 0, 0, 1000), "testpmd never reads what comes back"},
		"a forwarder that only reads":    {TestpmdForwarder, started("rxonly") + forward(0), "in the mode rxonly testpmd passes nothing on"},
		"a forwarder of its own":         {TestpmdForwarder, started("flowgen") + forward(0), "in the mode flowgen testpmd passes nothing on"},
		"more left than came":            {TestpmdForwarder, nic(0, 9, 0, 10), "10 messages left it, and 9 came: a forwarder sends none of its own"},
		"a port twice in one printing":   {Testpmd, before(forward(0), "  +++") + forward(0), "it has no Accumulated forward statistics"},
		"two numbers of one field":       {Testpmd, strings.Replace(nic(0, 9, 0, 9), "RX-errors: 0", "RX-packets: 8", 1), "has RX-packets twice"},
		"a sum of drops that is another": {
			TestpmdForwarder, strings.Replace(forward(7), "TX-dropped: 7             TX-total: 1500000", "TX-dropped: 6             TX-total: 1499999", 1), "the record lacks a port",
		},
		"cleared between":   {Testpmd, nic(0, 9, 0, 9) + nic(0, 9, 0, 8), "TX-packets of port 0 went from 9 to 8"},
		"a number too long": {Testpmd, strings.Replace(nic(0, 9, 0, 9), "RX-packets: 9", "RX-packets: 99999999999999999999", 1), "is no number of messages"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(tc.generator, []byte(tc.text), 1000, time.Second); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
	if _, err := Parse(Testpmd, []byte(forward(0)), 0, time.Second); err == nil {
		t.Error("a run without a rate is read")
	}
}

// recordings are files with what DPDK's testpmd 22.11 printed while make test-testpmd compared it with the counters of the kernel.
func recordings(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	return files
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestRecordingsOfTestpmd: the counts are those that the kernel had.
func TestRecordingsOfTestpmd(t *testing.T) {
	want := map[string]latency.Stream{
		"cleared-testpmd-forwarder":             {Sent: 1280},
		"fewer-ports-testpmd-forwarder":         {Sent: 640},
		"full-queue-behind-testpmd-forwarder":   {Sent: 1280, Lost: 624},
		"full-queue-of-a-NIC-testpmd-forwarder": {Sent: 200_192, Lost: 196_103},
		"late-testpmd":                          {Sent: 1280},
		"prompts-testpmd":                       {Sent: 1280},
		"statistics-each-second-testpmd":        {Sent: 64},
		"token-bucket-testpmd":                  {Sent: 1280, Lost: 534},
	}
	got := map[string]latency.Stream{}
	for _, file := range recordings(t) {
		generator := Testpmd
		if strings.HasSuffix(file, "-testpmd-forwarder.txt") {
			generator = TestpmdForwarder
		}
		run, err := Parse(generator, read(t, file), 1000, time.Second)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		got[strings.TrimSuffix(filepath.Base(file), ".txt")] = run.Rate.Load
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func fuzz(f *testing.F, generators []Generator, seeds ...string) {
	f.Helper()
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, generator := range generators {
			run, err := Parse(generator, []byte(text), 1000, time.Second)
			if err != nil {
				continue
			}
			expectPossible(t, run)
			if _, err := latency.JudgeRecorded([]latency.Recorded{run.Recorded}, latency.SearchOptions{Confirm: time.Minute}); err != nil {
				t.Error(err)
			}
		}
	})
}

// expectPossible wants numbers that can be true together.
func expectPossible(t *testing.T, run *Run) {
	t.Helper()
	if load := run.Rate.Load; load.Lost > load.Sent || load.Sent == 0 || printable(run.Version) != run.Version {
		t.Errorf("%+v", run)
	}
	for _, p := range run.Rate.FromIntended.Percentiles {
		if p.HighNanoseconds == nil || *p.HighNanoseconds <= p.Nanoseconds || run.Rate.FromIntended.Samples < latency.Samples(p.Percent) {
			t.Errorf("%+v of %d samples", p, run.Rate.FromIntended.Samples)
		}
	}
}

func FuzzTRex(f *testing.F) {
	fuzz(f, []Generator{TRex}, trex(3, quiet), trexHDR(3, `{"0": 2000, "10": 7900, "20": 90, "90": 9, "5000": 1}`, ofTRex), trex(0, "{}"), `{"stats": {"total": {"opackets": 500, "ipackets": 499}}}`)
}

func FuzzTestpmd(f *testing.F) {
	for _, file := range recordings(f) {
		f.Add(string(read(f, file)))
	}
	fuzz(f, []Generator{Testpmd, TestpmdForwarder}, forward(3), nic(0, 5, 5, 5)+nic(0, 6, 5, 1005), started("io")+forward(0)+clearedNICs+nic(0, 5, 5, 5), "")
}
