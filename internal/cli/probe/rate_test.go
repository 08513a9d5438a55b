// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package probe

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// stream are the arguments of a short measurement on a schedule.
func stream(t *testing.T, kind, port string, more ...string) []string {
	return append([]string{
		kind, "--client", "127.0.0.1", "--program", trafficProgram(t), "--port", port, "--warm-up", "0", "--warm-up-messages", "1", "--quiet-messages", "1", "--timeout", "10s", "--wait", "block",
	}, more...)
}

func TestRateForms(t *testing.T) {
	port := served(t)
	sweep := []string{"--rates", "100", "--duration", "500ms", "--transport", "multicast", "--buffer", "1000000"}
	out, _ := client(t, stream(t, "rate", port, append(sweep, "-o", "json")...)...)
	var result latency.Result
	if err := json.Unmarshal([]byte(out), &result); err != nil || result.Kind != latency.KindRateSweep || len(result.Rates) != 1 || result.Rates[0].Load.Sent != 50 {
		t.Errorf("%v: %s", err, out)
	}
	if out, _ = client(t, stream(t, "rate", port, append(sweep, "--limit", "50=1h")...)...); !strings.Contains(out, "#target") || !strings.Contains(out, "# outcome: ") {
		t.Error(out)
	}
	if out, _ = client(t, stream(t, "rate", port, append(sweep, "-o", "csv")...)...); !strings.Contains(out, "\n64,100,maximum,") {
		t.Error(out)
	}
	out, _ = client(t, stream(t, "rate", port, append(sweep, "-o", "hdr")...)...)
	if tags, samples := logged(t, out); !cmp.Equal(tags, []string{"64bytes", "100persecond-intended", "100persecond-sent"}) || samples[1] != samples[2] {
		t.Errorf("%v with %v samples: %s", tags, samples, out)
	}
}

func TestLoadForms(t *testing.T) {
	port := served(t)
	search := []string{"--minimum", "50", "--start", "50", "--highest", "100", "--probes", "50", "--sniff", "100ms", "--search", "200ms", "--confirm", "200ms", "--granularity", "0.5"}
	out, err := client(t, stream(t, "load", port, search...)...)
	if err == nil || !strings.Contains(out, "best pass") || !strings.Contains(out, "#Low") {
		t.Errorf("the rates end where the generator's do, and that is no pass: %v: %s", err, out)
	}
	if out, _ := client(t, stream(t, "load", port, append(search, "-o", "csv")...)...); !strings.Contains(out, "\n64,50,maximum,") {
		t.Error(out)
	}
	out, _ = client(t, stream(t, "load", port, append(search, "-o", "hdr")...)...)
	if tags, samples := logged(t, out); len(tags) < 4 || tags[1] != "trial1-low-50persecond-intended" || tags[2] != "trial1-low-50persecond-sent" || samples[1] != samples[2] {
		t.Errorf("%v with %v samples: %s", tags, samples, out)
	}
}

func TestStreamsRefuse(t *testing.T) {
	cases := map[string]struct {
		arguments []string
		want      string
	}{
		"neither":         {[]string{"rate"}, "say either --server"},
		"TCP":             {[]string{"rate", "--client", "far", "--transport", "tcp"}, "must be one of udp, multicast"},
		"a small message": {[]string{"rate", "--client", "far", "--program", "x", "--size", "23"}, "at least 24 bytes"},
		"a limit":         {[]string{"rate", "--client", "far", "--program", "x", "--limit", "99"}, "a limit is PERCENT=LATENCY"},
		"few probes":      {[]string{"load", "--client", "far", "--program", "x", "--limit", "99.99=1ms"}, "do not carry 99.99 %"},
		"no growth":       {[]string{"load", "--client", "far", "--program", "x", "--growth", "0.5"}, "growth 0.5 at least 1"},
		"a percentile":    {[]string{"load", "--client", "far", "--program", "x", "--growth-percentile", "95"}, "the growth of 95 %: it is of one of the percentiles"},
		"a loss":          {[]string{"load", "--client", "far", "--program", "x", "--limit", "1"}, "a limit is PERCENT=LATENCY"},
	}
	for name, tc := range cases {
		if _, err := client(t, tc.arguments...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
