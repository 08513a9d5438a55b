// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
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

func TestRecorded(t *testing.T) {
	good, lossy, other := trexFile(t, 0, "v3.04"), trexFile(t, 3, "v3.04"), trexFile(t, 0, "v2.87")
	for name, tc := range map[string]struct {
		args []string
		// text is a part of what is printed, and err of the error; "" for none.
		text, err string
	}{
		"an interval":   {[]string{"--duration", "1s", "--confirm", "1s", "30000=" + good, "30500=" + lossy}, "best pass    30000\nlowest fail  30500\n", ""},
		"the version":   {[]string{"--duration", "1s", "--confirm", "1s", "30000=" + good, "30500=" + lossy}, "# recorded runs of trex v3.04, in messages a second", ""},
		"not confirmed": {[]string{"--duration", "1s", "30000=" + good, "30500=" + lossy}, "# outcome: Inconclusive (Unfinished)", "inconclusive (Unfinished)"},
		"too slow":      {[]string{"--duration", "1s", "--confirm", "1s", "--at-least", "30500", "30000=" + good, "30500=" + lossy}, "# outcome: Failed (Rate)", "failed (Rate)"},
		"a limit":       {[]string{"--duration", "1s", "--confirm", "1s", "--limit", "99=20us", "--at-least", "30000", "30000=" + good}, "# outcome: Passed", ""},
		"within a step": {[]string{"--duration", "1s", "--confirm", "1s", "--limit", "99=15us", "30000=" + good}, "(Coarse)", "inconclusive (Coarse)"},
		"two versions":  {[]string{"--duration", "1s", "30000=" + good, "30500=" + other}, "", "is of version v2.87, and another run of v3.04"},
		"no duration":   {[]string{"30000=" + good}, "", "--duration is missing"},
		"no rate":       {[]string{"--duration", "1s", good}, "", "is not RATE=FILE"},
		"no file":       {[]string{"--duration", "1s", "1000=/nowhere"}, "", "/nowhere"},
		"nothing":       {[]string{"--duration", "1s"}, "", "name a file for each rate"},
		"testpmd":       {[]string{"--generator", "testpmd", "--duration", "1s", "1000=" + good}, "", "neither forward statistics nor NIC statistics"},
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
