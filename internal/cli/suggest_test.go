// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import "testing"

func TestMistypedNames(t *testing.T) {
	cases := map[string]struct {
		in   string
		args []string
		want string
	}{
		"a mistyped command":   {args: []string{"pln"}, want: `there is no command "pln" (did you mean plan?); see kubectl lowlatency --help`},
		"a command, its flag":  {args: []string{"plann", "-f", "x"}, want: `there is no command "plann" (did you mean plan?); see kubectl lowlatency --help`},
		"a mistyped check":     {args: []string{"explain", "cpu.nohzfull"}, want: `there is no check "cpu.nohzfull" (did you mean cpu.nohz-full?); kubectl lowlatency explain lists all`},
		"a mistyped kind":      {in: "apiVersion: lowlatency.dev/v1alpha1\nkind: ByPassNicPol\nmetadata: {name: a}\n", args: []string{"plan", "-f", "-"}, want: `-, ByPassNicPol "a": only LowLatencyNodeProfile, BypassNICPool, LatencyTest and LowLatencyNode of lowlatency.dev/v1alpha1 are read here, not ByPassNicPol of lowlatency.dev/v1alpha1 (did you mean BypassNICPool?)`},
		"a mistyped flag":      {args: []string{"check", "--windo", "1s"}, want: "unknown flag: --windo (did you mean --window?); see kubectl lowlatency check --help"},
		"a mistyped format":    {args: []string{"topology", "-o", "htm"}, want: `invalid argument "htm" for "-o, --output" flag: must be one of text, json, yaml, svg, html, jsonpath=..., go-template=... (did you mean html?); see kubectl lowlatency topology --help`},
		"a mistyped probe":     {args: []string{"probe", "jiter"}, want: `there is no command "jiter" (did you mean jitter?); see kubectl lowlatency probe --help`},
		"a probe's format":     {args: []string{"probe", "jitter", "-o", "sgv"}, want: `invalid argument "sgv" for "-o, --output" flag: must be one of text, json, svg, html (did you mean svg?); see kubectl lowlatency probe jitter --help`},
		"a mistyped shell":     {args: []string{"completion", "bsh"}, want: `there is no command "bsh" (did you mean bash?); see kubectl lowlatency completion --help`},
		"a flag like no other": {args: []string{"check", "--zzzzzz"}, want: "unknown flag: --zzzzzz; see kubectl lowlatency check --help"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := run(t, tc.in, tc.args...); got.code != ExitUsage || got.err != "error: "+tc.want+"\n" {
				t.Errorf("exit code %d: %q, want %q", got.code, got.err, tc.want)
			}
		})
	}
}
