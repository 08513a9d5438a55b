// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/golden"
)

// sampled is a file of so many round trips around a middle.
func sampled(n, middle int64) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, middle-n/2+i*7919%n)
	}
	return b.String()
}

func TestSamples(t *testing.T) {
	folder := inFolder(t, map[string]string{"64.txt": sampled(2000, 6000), "256.txt": sampled(11000, 9000), "none.txt": ""})
	for name, tc := range map[string]struct {
		args []string
		// text is a part of what is printed, and err of the error; "" for none.
		text, err string
	}{
		"halves of whole ones":       {[]string{"--program", "zfudppingpong", "64=64.txt"}, "64  2999  2500    3000  3499     -     289  2000     0      0", ""},
		"whole ones":                 {[]string{"--program", "zfudppingpong", "--report", "round-trip", "64=64.txt"}, "64  5999  5000    6000  6999     -     577  2000", ""},
		"halves as they are":         {[]string{"--program", "sfnt-pingpong", "64=64.txt"}, "64  5999  5000    6000  6999     -     577  2000", ""},
		"whole ones of sfnt":         {[]string{"--program", "sfnt-pingpong", "--holds", "round-trip", "64=64.txt"}, "64  2999  2500    3000", ""},
		"whose they are":             {[]string{"--program", "eflatency", "--program-version", "9.1", "64=64.txt"}, "# round trips of eflatency 9.1, with one message under way at a time", ""},
		"that the path is not known": {[]string{"--program", "eflatency", "64=64.txt"}, "# path: Unknown: records do not tell", ""},
		"two sizes":                  {[]string{"--program", "eflatency", "64=64.txt", "256=256.txt"}, "256  4500", ""},
		"a kept limit":               {[]string{"--program", "eflatency", "--limit", "90=4us", "64=64.txt"}, "# outcome: Passed (WithinBudget)", ""},
		"a broken limit":             {[]string{"--program", "eflatency", "--limit", "90=3us", "64=64.txt"}, "# outcome: Failed (OverBudget)", "failed (OverBudget)"},
		"a maximum":                  {[]string{"--program", "eflatency", "--maximum", "3us", "64=64.txt"}, "# outcome: Failed (OverBudget)", "failed (OverBudget)"},
		"too few samples":            {[]string{"--program", "eflatency", "--limit", "99=4us", "64=64.txt"}, "(TooFewSamples)", "inconclusive (TooFewSamples)"},
		"values":                     {[]string{"--program", "zftcppingpong", "-o", "csv", "64=64.txt"}, "64,,minimum,2500,,,2000,,,,half of the round trip,\n", ""},
		"a histogram":                {[]string{"--program", "zftcppingpong", "-o", "hdr", "64=64.txt"}, "Tag=64bytes,", ""},
		"no program":                 {[]string{"64=64.txt"}, "", "--program is missing: it is one of sfnt-pingpong, zfudppingpong"},
		"no size":                    {[]string{"--program", "eflatency", "64.txt"}, "", "is not SIZE=FILE"},
		"the largest size":           {[]string{"--program", "sfnt-pingpong", "65536=64.txt"}, "65536  5999  5000    6000  6999", ""},
		"an impossible size":         {[]string{"--program", "eflatency", "65537=64.txt"}, "", "is not SIZE=FILE"},
		"a size of many digits":      {[]string{"--program", "eflatency", "4294967360=64.txt"}, "", "is not SIZE=FILE"},
		"a size twice":               {[]string{"--program", "eflatency", "64=64.txt", "64=256.txt"}, "", "there is a file of 64 bytes before it"},
		"no file":                    {[]string{"--program", "eflatency", "64=nowhere"}, "", "nowhere"},
		"an empty file":              {[]string{"--program", "eflatency", "64=none.txt"}, "", "none.txt: the file is empty"},
		"nothing":                    {[]string{"--program", "eflatency"}, "", "name a file for each size"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := ofProbe(t, folder, append([]string{"samples"}, tc.args...)...)
			if (err != nil) != (tc.err != "") || (err != nil && !strings.Contains(err.Error(), tc.err)) || !strings.Contains(out, tc.text) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestStacks puts a result of the project's own program and those of others into one table.
func TestStacks(t *testing.T) {
	all, goldens := results(t), absolute(t, "testdata")
	folder := inFolder(t, map[string]string{
		"64.txt": sampled(11000, 12000), "kernel.json": asJSON(t, all["pingpong"]), "load.json": asJSON(t, all["load"]), "recorded.json": asJSON(t, all["recorded"]),
	})
	for file, args := range map[string][]string{
		"zf.json": {"--program", "zfudppingpong", "--program-version", "9.0.2", "64=64.txt"}, "whole.json": {"--program", "eflatency", "--report", "round-trip", "64=64.txt"},
		"other.json": {"--program", "eflatency", "128=64.txt"}, "failed.json": {"--program", "eflatency", "--maximum", "5us", "64=64.txt"},
	} {
		out, err := ofProbe(t, folder, append([]string{"samples", "-o", "json"}, args...)...)
		if (err != nil) != (file == "failed.json") {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, file), []byte(out), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for file, form := range map[string]string{"stacks.txt": "text", "stacks.json": "json"} {
		out, err := ofProbe(t, folder, "stacks", "kernel=kernel.json", "tcpdirect=zf.json", "ef_vi=failed.json", "-o", form)
		if err != nil {
			t.Fatal(err)
		}
		golden.Assert(t, out, filepath.Join(goldens, file))
	}
	for name, tc := range map[string]struct {
		args []string
		err  string
	}{
		"one":                  {[]string{"kernel=kernel.json"}, "name 2 to 8 results"},
		"no name":              {[]string{"kernel.json", "b=zf.json"}, "is not NAME=FILE"},
		"a name with a blank":  {[]string{"a b=kernel.json", "c=zf.json"}, "a word without blanks"},
		"a name for terminals": {[]string{"a\x1b[2J=kernel.json", "c=zf.json"}, "a word without blanks"},
		"a name twice":         {[]string{"a=kernel.json", "a=zf.json"}, "there is a stack of this name before it"},
		"a search":             {[]string{"a=kernel.json", "b=load.json"}, "load.json is a result of probe load"},
		"recorded runs":        {[]string{"a=recorded.json", "b=zf.json"}, "recorded.json is a result of probe recorded"},
		"halves and wholes":    {[]string{"a=kernel.json", "b=whole.json"}, "measure both with the same --report"},
		"no size in common":    {[]string{"a=kernel.json", "b=other.json"}, "other.json has messages of 128 bytes, and a of 64"},
		"a file of no probe":   {[]string{"a=kernel.json", "b=64.txt"}, "64.txt is no result"},
		"no file":              {[]string{"a=kernel.json", "b=nowhere"}, "nowhere"},
	} {
		if out, err := ofProbe(t, folder, append([]string{"stacks"}, tc.args...)...); err == nil || !strings.Contains(err.Error(), tc.err) || out != "" {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
