// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

// Pair is what two results have of the same thing, such as a size of messages. One is nil where only the other result has it.
type Pair[T any] struct{ Before, After *T }

// SizePairs are the sizes of two results, in the order of the first, and behind them those that only the second has.
func SizePairs(before, after *Result) []Pair[Size] {
	return pairsOf(before.Sizes, after.Sizes, func(s *Size) int { return s.Bytes })
}

// RatePairs are the rates of two results with messages of the same size, in the order of the first, and behind them those that only the second has.
func RatePairs(before, after *Result) []Pair[Rate] {
	type key struct {
		perSecond uint64
		bytes     int
	}
	return pairsOf(before.Rates, after.Rates, func(r *Rate) key { return key{r.PerSecond, r.Bytes} })
}

// pairsOf matches by a key. What was measured several times in one result is matched by its turn.
func pairsOf[T any, K comparable](before, after []T, key func(*T) K) []Pair[T] {
	pairs := make([]Pair[T], 0, len(before)+len(after))
	waiting := map[K][]int{}
	for i := range before {
		k := key(&before[i])
		waiting[k] = append(waiting[k], len(pairs))
		pairs = append(pairs, Pair[T]{Before: &before[i]})
	}
	for i := range after {
		k := key(&after[i])
		if at := waiting[k]; len(at) > 0 {
			pairs[at[0]].After, waiting[k] = &after[i], at[1:]
			continue
		}
		pairs = append(pairs, Pair[T]{After: &after[i]})
	}
	return pairs
}

// Overlaps reports whether the difference between percentiles of two results is within their spread: the intervals of both have a length in common. One
// without an upper end has all lengths above its lower one.
func (p *Percentile) Overlaps(other *Percentile) bool {
	return !p.isBelow(other) && !other.isBelow(p)
}

func (p *Percentile) isBelow(other *Percentile) bool {
	return p.HighNanoseconds != nil && *p.HighNanoseconds < other.LowNanoseconds
}

// Overlaps reports whether two searches may have looked for the same rate: what both know of it has a rate in common.
func (l *Load) Overlaps(other *Load) bool {
	return !l.isBelow(other) && !other.isBelow(l)
}

// isBelow reports whether a rate that failed here is one that passed there, or lower. Neither counts where it says nothing of what receives, nor does a
// rate that did not hold for the time of a confirmation.
func (l *Load) isBelow(other *Load) bool {
	return l.isBroken() && other.Confirmed && l.LowestFail <= other.BestPass
}
