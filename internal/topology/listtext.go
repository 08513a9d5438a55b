// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"fmt"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// listText writes a CPU list within the bound of the API: in plain list format, or, for long lists such
// as every other CPU of a thousand, with strides ("0-1022:1/2"), which cpus.Parse reads. A list
// that fits in neither form is not written.
func listText(set cpus.Set) (text string, fits bool) {
	for _, write := range []func(cpus.Set) string{cpus.Set.String, strideText} {
		if text = write(set); len(text) <= v1alpha1.MaxCPUListLength {
			return text, true
		}
	}
	return "", false
}

// span is a run of consecutive CPUs.
type span struct{ first, last int }

func (s span) length() int { return s.last - s.first + 1 }

func spansOf(set cpus.Set) []span {
	var spans []span
	for _, cpu := range set.IDs() {
		if n := len(spans); n > 0 && spans[n-1].last == cpu-1 {
			spans[n-1].last = cpu
			continue
		}
		spans = append(spans, span{cpu, cpu})
	}
	return spans
}

// strideText writes spans of equal length at equal steps as "first-last:length/step", the notation of
// Documentation/admin-guide/kernel-parameters.rst.
func strideText(set cpus.Set) string {
	var elements []string
	for spans := spansOf(set); len(spans) > 0; {
		n := regular(spans)
		first, last := spans[0], spans[n-1]
		element := cpus.Of(first.first).String()
		switch {
		case n > 1:
			element = fmt.Sprintf("%d-%d:%d/%d", first.first, last.last, first.length(), spans[1].first-first.first)
		case first.length() > 1:
			element = fmt.Sprintf("%d-%d", first.first, first.last)
		}
		elements = append(elements, element)
		spans = spans[n:]
	}
	return strings.Join(elements, ",")
}

// regular returns how many leading spans have one length and one step.
func regular(spans []span) int {
	n := 1
	for n < len(spans) &&
		spans[n].length() == spans[0].length() &&
		spans[n].first-spans[n-1].first == spans[1].first-spans[0].first {
		n++
	}
	return n
}
