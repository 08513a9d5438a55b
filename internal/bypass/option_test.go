// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

func TestCheckOption(t *testing.T) {
	cases := map[string]struct {
		name, value string
		// want is a part of the sentence; "" for a good option.
		want string
	}{
		"yes or no":               {"EF_TX_PUSH", "1", ""},
		"neither yes nor no":      {"EF_TX_PUSH", "2", `value "2" is not a whole number from 0 to 1`},
		"a word for a number":     {"EF_TX_PUSH", "yes", "a whole number from 0 to 1"},
		"for ever":                {"EF_POLL_USEC", "-1", ""},
		"less than for ever":      {"EF_POLL_USEC", "-2", "a whole number from 0 to 4294967295"},
		"the largest number":      {"EF_POLL_USEC", "4294967295", ""},
		"one more":                {"EF_POLL_USEC", "4294967296", "a whole number from 0 to 4294967295"},
		"no number is for ever":   {"EF_TX_PUSH", "-1", "a whole number from 0 to 1"},
		"a negative default":      {"EF_IRQ_CHANNEL", "-1", ""},
		"a range of its own":      {"EF_TXQ_SIZE", "8192", "a whole number from -1 to 4096"},
		"8 bits":                  {"EF_TCP_FIN_TIMEOUT", "256", "from 0 to 255"},
		"something after":         {"EF_POLL_USEC", "100us", "a whole number"},
		"hexadecimal":             {"EF_UNIX_LOG", "0xffff", ""},
		"hexadecimal, no prefix":  {"EF_TCP_SYN_OPTS", "f", ""},
		"hexadecimal, too much":   {"EF_TCP_SYN_OPTS", "10", "a hexadecimal number from 0 to f"},
		"word":                    {"EF_CTPIO_MODE", "sf-np", ""},
		"word in capitals":        {"EF_CTPIO_MODE", "CT", ""},
		"number of a word":        {"EF_CTPIO_MODE", "2", "one of sf, sf-np, ct"},
		"ports":                   {"EF_TCP_FORCE_REUSEPORT", "80,443", ""},
		"lowest and highest port": {"EF_TCP_FORCE_REUSEPORT", "1,65535", ""},
		"port 0":                  {"EF_TCP_FORCE_REUSEPORT", "0", "from 1 to 65535"},
		"port 0 among others":     {"EF_TCP_FORCE_REUSEPORT", "80,0", "from 1 to 65535"},
		"beyond the last port":    {"EF_TCP_FORCE_REUSEPORT", "65536", "from 1 to 65535"},
		"negative port":           {"EF_TCP_FORCE_REUSEPORT", "-1", "from 1 to 65535"},
		"a comma too many":        {"EF_TCP_FORCE_REUSEPORT", "80,", "from 1 to 65535"},
		"a port in hexadecimal":   {"EF_TCP_FORCE_REUSEPORT", "0x50", "from 1 to 65535"},
		"the lowest of a range":   {"EF_TXQ_SIZE", "-1", ""},
		"below the lowest":        {"EF_TXQ_SIZE", "-2", "a whole number from -1 to 4096"},
		"the highest of a range":  {"EF_TXQ_SIZE", "4096", ""},
		"above the highest":       {"EF_TXQ_SIZE", "4097", "a whole number from -1 to 4096"},
		"hexadecimal, the most":   {"EF_TCP_SYN_OPTS", "0xf", ""},
		"hexadecimal digits":      {"EF_TCP_SYN_OPTS", "g", "a hexadecimal number from 0 to f"},
		"decimal only":            {"EF_POLL_USEC", "0x10", "a whole number"},
		"no port":                 {"EF_TCP_FORCE_REUSEPORT", "80,x", "a list of port numbers"},
		"text":                    {"EF_NAME", "feed-1", ""},
		"unknown":                 {"EF_POL_USEC", "1", "Option EF_POL_USEC in spec.stack.onload.options is not set"},
		"part of a name":          {"EF_POLL", "1", "correct the name"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := CheckOption(v1alpha1.OnloadOption{Name: tc.name, Value: tc.value})
			if !strings.Contains(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("the sentence is %q, want %q in it", got, tc.want)
			}
		})
	}
}

func TestCheckAttribute(t *testing.T) {
	cases := map[string]struct{ name, value, want string }{
		"number":          {"reactor_spin_count", "256", ""},
		"negative":        {"rx_ring_max", "-1", ""},
		"hexadecimal":     {"log_level", "0xb0f", ""},
		"text":            {"ctpio_mode", "sf-np", ""},
		"not a number":    {"n_bufs", "many", `value "many" is not a whole number`},
		"half a number":   {"n_bufs", "1_000", "not a whole number"},
		"binary":          {"n_bufs", "0b1", "not a whole number"},
		"unknown":         {"spin", "1", "Attribute spin in spec.stack.tcpDirect.attributes is not set"},
		"of the emulator": {"emu", "1", "correct the name"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := CheckAttribute(v1alpha1.TCPDirectAttribute{Name: tc.name, Value: tc.value})
			if !strings.Contains(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("the sentence is %q, want %q in it", got, tc.want)
			}
		})
	}
}

// Every line must be one that lookUpOption reads, or an option of Onload would be refused.
func TestOptionTable(t *testing.T) {
	lines := slices.Collect(strings.Lines(optionTable))
	names := make([]string, 0, len(lines))
	for _, line := range lines {
		fields := strings.Fields(line)
		names = append(names, fields[0])
		known, ok := lookUpOption(fields[0])
		if !ok || known.kind != fields[1] || !hasArguments(known) {
			t.Errorf("%q is read as %+v", line, known)
		}
	}
	if !slices.IsSorted(names) || len(names) < 240 || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("%d options, not each once in ascending order", len(names))
	}
}

// hasArguments reports whether an option has what its kind needs.
func hasArguments(o option) bool {
	switch o.kind {
	case "number", "hex":
		if len(o.arguments) != 2 {
			return false
		}
		low, errLow := strconv.ParseInt(o.arguments[0], 10, 64)
		high, errHigh := strconv.ParseInt(o.arguments[1], 10, 64)
		return errLow == nil && errHigh == nil && low < high
	case "word":
		return len(o.arguments) > 1
	default:
		return len(o.arguments) == 0 && (o.kind == "ports" || o.kind == "text")
	}
}

// What a profile sets must be what Onload reads.
func TestProfilesAreValid(t *testing.T) {
	for _, profile := range []v1alpha1.OnloadProfile{v1alpha1.OnloadProfileLatency, v1alpha1.OnloadProfileLatencyBest} {
		for name, value := range profileOptions(onloadInput(), profile) {
			if sentence := CheckOption(v1alpha1.OnloadOption{Name: name, Value: value}); sentence != "" {
				t.Errorf("profile %s: %s", profile, sentence)
			}
		}
	}
}

func FuzzCheckOption(f *testing.F) {
	f.Add("EF_POLL_USEC", "-1")
	f.Add("EF_CTPIO_MODE", "ct")
	f.Add("EF_UDP_FORCE_REUSEPORT", "1,2,")
	f.Add("EF_TCP_SYN_OPTS", "0x-1")
	f.Fuzz(func(t *testing.T, name, value string) {
		sentence := CheckOption(v1alpha1.OnloadOption{Name: name, Value: value})
		known, ok := lookUpOption(name)
		if !ok && sentence == "" {
			t.Errorf("%q is set, and Onload does not know it", name)
		}
		// What is set must be what Onload's functions make of the text: atoi and sscanf stop at the first letter.
		if ok && sentence == "" && known.kind == "number" {
			number, err := strconv.ParseInt(value, 10, 64)
			if err != nil || number < -1 || number > 4294967295 {
				t.Errorf("%s=%q is set, and atoi does not read it", name, value)
			}
		}
	})
}
