// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
)

// trexFile is the record of a run of TRex that lost so many of ten thousand messages; the numbers are made up.
func trexFile(t *testing.T, lost int, version string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.json")
	text := fmt.Sprintf(`{"server": {"version": %q}, "stats": {"total": {"opackets": 30000, "ipackets": %d}, "latency": {"5": {"err_cntrs": {"dropped": 0}, "latency": {"histogram": {"10": 9950, "20": 50}}}}}}`,
		version, 30_000-lost)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// withHDR is the record of a run of TRex whose server was started with --hdrh: 9950 latencies of 12 µs and 50 of 24.
func withHDR(t *testing.T) string {
	t.Helper()
	histogram := hdrhistogram.New(1, 10_000_000, 3)
	if err := errors.Join(histogram.RecordValues(12, 9950), histogram.RecordValues(24, 50)); err != nil {
		t.Fatal(err)
	}
	hdr, err := histogram.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := os.ReadFile(trexFile(t, 0, "v3.04"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "hdr.json")
	if err := os.WriteFile(file, bytes.Replace(plain, []byte(`"histogram"`), fmt.Appendf(nil, `"hdrh": %q, "histogram"`, hdr), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestRecordedHistograms: the tools of HdrHistogram read the log, and find the latencies of each run from when messages left.
func TestRecordedHistograms(t *testing.T) {
	fine, coarse := withHDR(t), trexFile(t, 0, "v3.04")
	var out bytes.Buffer
	command := recordedCommand()
	command.SetArgs([]string{"--duration", "1s", "--confirm", "1s", "--at-least", "30000", "-o", "hdr", "30000=" + fine, "30500=" + coarse, "30550=" + fine})
	command.SetOut(&out)
	if err := command.Execute(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for reader := hdrhistogram.NewHistogramLogReader(&out); ; {
		histogram, err := reader.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if histogram == nil {
			break
		}
		got = append(got, fmt.Sprintf("%s: %d, longest %d", histogram.Tag(), histogram.TotalCount(), histogram.Max()))
	}
	if diff := cmp.Diff([]string{"trial1-low-30000persecond-sent: 10000, longest 25007", "trial3-confirm-30550persecond-sent: 10000, longest 25007"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRecorded(t *testing.T) {
	good, lossy, other, fine := trexFile(t, 0, "v3.04"), trexFile(t, 3, "v3.04"), trexFile(t, 0, "v2.87"), withHDR(t)
	for name, tc := range map[string]struct {
		args []string
		// text is a part of what is printed, and err of the error; "" for none.
		text, err string
	}{
		"an interval":                {[]string{"--duration", "1s", "--confirm", "1s", "30000=" + good, "30500=" + lossy}, "best pass    30000\nlowest fail  30500\n", ""},
		"the version":                {[]string{"--duration", "1s", "--confirm", "1s", "30000=" + good, "30500=" + lossy}, "# recorded runs of trex v3.04, in messages a second", ""},
		"not confirmed":              {[]string{"--duration", "1s", "30000=" + good, "30500=" + lossy}, "# outcome: Inconclusive (Unfinished)", "inconclusive (Unfinished)"},
		"too slow":                   {[]string{"--duration", "1s", "--confirm", "1s", "--at-least", "30500", "30000=" + good, "30500=" + lossy}, "# outcome: Failed (Rate)", "failed (Rate)"},
		"a limit":                    {[]string{"--duration", "1s", "--confirm", "1s", "--limit", "99=20us", "--at-least", "30000", "30000=" + good}, "# outcome: Passed", ""},
		"within a step":              {[]string{"--duration", "1s", "--confirm", "1s", "--limit", "99=15us", "30000=" + good}, "(Coarse)", "inconclusive (Coarse)"},
		"a limit of which HDR tells": {[]string{"--duration", "1s", "--confirm", "1s", "--limit", "99=15us", "--at-least", "30000", "30000=" + fine}, "# outcome: Passed", ""},
		"a limit within HDR":         {[]string{"--duration", "1s", "--confirm", "1s", "--limit", "99=12500ns", "30000=" + fine}, "(Coarse)", "inconclusive (Coarse)"},
		"no HDR":                     {[]string{"--duration", "1s", "--confirm", "1s", "-o", "hdr", "30000=" + good}, "", "-o hdr: no run has an HDR histogram"},
		"HDR of testpmd":             {[]string{"--generator", "testpmd", "--duration", "1s", "-o", "hdr", "1000=/nowhere"}, "", "-o hdr: testpmd takes no latencies"},
		"two versions":               {[]string{"--duration", "1s", "30000=" + good, "30500=" + other}, "", "is of version v2.87, and another run of v3.04"},
		"no duration":                {[]string{"30000=" + good}, "", "--duration is missing"},
		"no rate":                    {[]string{"--duration", "1s", good}, "", "is not RATE=FILE"},
		"no file":                    {[]string{"--duration", "1s", "1000=/nowhere"}, "", "/nowhere"},
		"nothing":                    {[]string{"--duration", "1s"}, "", "name a file for each rate"},
		"testpmd":                    {[]string{"--generator", "testpmd", "--duration", "1s", "1000=" + good}, "", "neither forward statistics nor NIC statistics"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			command := recordedCommand()
			command.SetArgs(tc.args)
			command.SetOut(&out)
			command.SilenceUsage, command.SilenceErrors = true, true
			err := command.Execute()
			if (err != nil) != (tc.err != "") || (err != nil && !strings.Contains(err.Error(), tc.err)) || !strings.Contains(out.String(), tc.text) {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
}
