// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"fmt"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// option is a line of optionTable.
type option struct {
	kind string
	// arguments are the range of a number or the words.
	arguments []string
}

func lookUpOption(name string) (option, bool) {
	for line := range strings.Lines(optionTable) {
		fields := strings.Fields(line)
		if fields[0] == name {
			return option{kind: fields[1], arguments: fields[2:]}, true
		}
	}
	return option{}, false
}

// CheckOption returns one sentence about an option that Onload does not know or whose value it would not read as it
// is written, and "" for a good one. Onload itself goes on with its default and at most prints a line, so what is
// bad must be told before.
func CheckOption(o v1alpha1.OnloadOption) string {
	known, ok := lookUpOption(o.Name)
	if !ok {
		return fmt.Sprintf("Option %s in spec.stack.onload.options is not set, because no release of Onload from 8.1 "+
			"to 10.0 knows it; correct the name.", o.Name)
	}
	wanted := known.mismatch(o.Value)
	if wanted == "" {
		return ""
	}
	return fmt.Sprintf("Option %s in spec.stack.onload.options is not set, because its value %q is not %s; correct "+
		"the value.", o.Name, shorten.Sentence(o.Value, valueLimit), wanted)
}

// valueLimit bounds a value that a sentence quotes; a sentence of a status has v1alpha1.MaxNICReasonLength characters.
const valueLimit = 64

// mismatch returns what a value should have been, or "".
func (o option) mismatch(value string) string {
	switch o.kind {
	case "number":
		return o.mismatchedNumber(value, 10)
	case "hex":
		return o.mismatchedNumber(strings.TrimPrefix(value, "0x"), 16)
	case "word":
		return o.mismatchedWord(value)
	case "ports":
		return mismatchedPorts(value)
	default:
		return ""
	}
}

// mismatchedNumber also takes -1 where the highest number is that of 32 bits without sign: atoi makes it that
// number, and -1 is how Onload's manual writes "for ever".
func (o option) mismatchedNumber(value string, base int) string {
	lowest, highest := o.arguments[0], o.arguments[1]
	if value == "-1" && highest == "4294967295" {
		return ""
	}
	low, errLow := strconv.ParseInt(lowest, 10, 64)
	high, errHigh := strconv.ParseInt(highest, 10, 64)
	number, err := strconv.ParseInt(value, base, 64)
	if errLow == nil && errHigh == nil && err == nil && low <= number && number <= high {
		return ""
	}
	if base == 16 {
		return fmt.Sprintf("a hexadecimal number from %x to %x", low, high)
	}
	return fmt.Sprintf("a whole number from %s to %s", lowest, highest)
}

func (o option) mismatchedWord(value string) string {
	for _, word := range o.arguments {
		if strings.EqualFold(word, value) {
			return ""
		}
	}
	return "one of " + strings.Join(o.arguments, ", ")
}

func mismatchedPorts(value string) string {
	for port := range strings.SplitSeq(value, ",") {
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
			return "a list of port numbers from 1 to 65535 with commas between them"
		}
	}
	return ""
}

// good returns the settings that may be set; the second result has the sentence of the check for each other one.
func good[T any](settings []T, check func(T) string) (kept []T, bad []string) {
	for _, setting := range settings {
		if sentence := check(setting); sentence != "" {
			bad = append(bad, sentence)
		} else {
			kept = append(kept, setting)
		}
	}
	return kept, bad
}
