// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// withoutRules are the names of those results of searches that do not tell their rules.
func (p *latencyPair) withoutRules() []string {
	var names []string
	for _, m := range p.moments() {
		if m.result.Load != nil && m.result.Load.Rules == nil {
			names = append(names, m.name)
		}
	}
	return names
}

// ruleRows are the rules by which a search was made, and its rates were judged, each behind its name; "" for a limit that there is not.
func ruleRows(rules *latency.SearchOptions) [][2]string {
	budget := &rules.Budget
	path := ""
	if budget.Accelerated {
		path = string(latency.PathAccelerated)
	}
	return [][2]string{
		{"loss allowed", orNone(budget.LossPartsPerMillion, partsWords)}, {"late messages allowed", orNone(budget.LatePartsPerMillion, partsWords)},
		{"limits", limitWords(budget.Limits)}, {"longest latency allowed", orNone(budget.MaximumNanoseconds, latency.Length)}, {"growth allowed", growthWords(rules)},
		{"rate asked for", orNone(budget.LeastPerSecond, unsigned)}, {"path asked for", path},
		{"least rate", orNone(rules.Minimum, unsigned)}, {"first rate", orNone(rules.Start, unsigned)}, {"highest rate", orNone(rules.Maximum, unsigned)},
		{"granularity", orNone(rules.Granularity, plain)}, {"retries", strconv.Itoa(rules.Retries)}, {"probes a second", orNone(rules.Probes, unsigned)},
		{"short trial", orNone(rules.Sniff, time.Duration.String)}, {"trial", orNone(rules.Search, time.Duration.String)},
		{"confirmation", orNone(rules.Confirm, time.Duration.String)}, {"longest search", orNone(rules.Longest, time.Duration.String)},
	}
}

// orNone is a value in words; "" where it is the one that stands for none.
func orNone[T comparable](value T, words func(T) string) string {
	var none T
	if value == none {
		return ""
	}
	return words(value)
}

// limitWords are limits of percentiles in ascending order.
func limitWords(limits []latency.Limit) string {
	ascending := slices.SortedFunc(slices.Values(limits), func(a, b latency.Limit) int {
		return cmp.Or(cmp.Compare(a.Percent, b.Percent), cmp.Compare(a.Nanoseconds, b.Nanoseconds))
	})
	words := make([]string, 0, len(ascending))
	for _, limit := range ascending {
		words = append(words, formatPercent(limit.Percent)+" "+latency.Length(limit.Nanoseconds))
	}
	return strings.Join(words, ", ")
}

func growthWords(rules *latency.SearchOptions) string {
	return orNone(rules.Growth, func(growth float64) string { return plain(growth) + " times " + formatPercent(rules.GrowthPercent) })
}

func partsWords(perMillion *float64) string { return plain(*perMillion) + " parts per million" }

func plain(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }
