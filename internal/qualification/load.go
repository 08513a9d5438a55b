// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// What a search does when the fields are omitted.
const (
	defaultLowestRate, defaultFirstRate = 1000, 10_000
	defaultGranularity                  = 10
	defaultProbes                       = 1000
	defaultSniffSeconds                 = 2
	defaultTrialSeconds                 = 15
	defaultConfirmSeconds               = 60
	defaultRetries                      = 1
	// defaultGrowthPercentile is that of latency.DefaultGrowthPercent.
	defaultGrowthPercentile = v1alpha1.P50
	// A search that finds no end has time for so many pairs of a sniff and a trial, and for so many confirmations.
	pairsOfTrials, confirmations = 60, 4
)

const (
	partsPerThousand = 1000
	percent          = 100
)

// Load is how a search for the highest rate goes, with the values in force of what is omitted.
type Load struct {
	// Lowest rate, with which others are compared, First that is tried after it, and Highest, in messages a second.
	Lowest, First, Highest int32
	// GranularityPartsPerThousand is how far apart the best pass and the lowest fail may be.
	GranularityPartsPerThousand int32
	LossPartsPerMillion         int32
	// Percentiles bound those of probes, and GrowthPercentile may be GrowthPercent of that of the lowest rate; 0 where
	// nothing bounds it.
	Percentiles      []v1alpha1.LatencyPercentile
	GrowthPercentile v1alpha1.PercentileName
	GrowthPercent    int32
	// ProbesPerSecond are sent beside the messages of a rate.
	ProbesPerSecond       int32
	Sniff, Trial, Confirm time.Duration
	Retries               int32
}

// loadOf are the values in force of a search.
func loadOf(given *v1alpha1.LoadSearchTest) *Load {
	l := &Load{
		Highest:                     cmp.Or(given.HighestMessagesPerSecond, v1alpha1.MaxMessagesPerSecond),
		GranularityPartsPerThousand: cmp.Or(given.GranularityPartsPerThousand, defaultGranularity),
		LossPartsPerMillion:         ptr.Deref(given.LossPartsPerMillion, 0),
		Percentiles:                 given.Percentiles,
		ProbesPerSecond:             cmp.Or(given.ProbesPerSecond, defaultProbes),
		Retries:                     ptr.Deref(given.Retries, defaultRetries),
	}
	l.Lowest = cmp.Or(given.LowestMessagesPerSecond, min(defaultLowestRate, l.Highest, cmp.Or(given.FirstMessagesPerSecond, defaultLowestRate)))
	l.GrowthPercentile = defaultGrowthPercentile
	l.First = cmp.Or(given.FirstMessagesPerSecond, min(max(defaultFirstRate, l.Lowest), l.Highest))
	if given.Growth != nil {
		l.GrowthPercentile, l.GrowthPercent = given.Growth.Percentile, given.Growth.MaximumPercent
	}
	trial := cmp.Or(given.TrialSeconds, min(max(defaultTrialSeconds, given.SniffSeconds, l.secondsForProbes()), cmp.Or(given.ConfirmSeconds, math.MaxInt32)))
	confirm := cmp.Or(given.ConfirmSeconds, max(defaultConfirmSeconds, trial))
	sniff := cmp.Or(given.SniffSeconds, min(defaultSniffSeconds, trial))
	l.Sniff, l.Trial, l.Confirm = time.Duration(sniff)*time.Second, time.Duration(trial)*time.Second, time.Duration(confirm)*time.Second
	if given.Growth == nil {
		l.GrowthPercent = int32(percent * latency.DefaultGrowth(uint64(l.ProbesPerSecond), l.Trial))
	}
	return l
}

// secondsForProbes is how long a trial has to be so that its probes carry the percentiles by which it is judged.
func (l *Load) secondsForProbes() int32 {
	needed := 0.0
	for _, p := range l.Percentiles {
		needed = max(needed, float64(latency.Samples(PercentOf(p.Percentile))))
	}
	needed = max(needed, float64(latency.Samples(PercentOf(l.GrowthPercentile))))
	return int32(math.Ceil(needed / latency.ProbesBack / float64(l.ProbesPerSecond)))
}

// longest is how long a search may take when nobody says it.
func (l *Load) longest() time.Duration {
	return min(pairsOfTrials*(l.Sniff+l.Trial)+confirmations*l.Confirm, v1alpha1.MaxTestDurationSeconds*time.Second)
}

// Granularity is how far apart, as a share, the best pass and the lowest fail may be.
func (l *Load) Granularity() float64 {
	return float64(l.GranularityPartsPerThousand) / partsPerThousand
}

// Growth is how many times as large a percentile may be as at the lowest rate; 0 where nothing bounds it.
func (l *Load) Growth() float64 { return float64(l.GrowthPercent) / percent }

// LoadRecord is what a search found, in the record of the repetition that found the lowest rate. The rates of the record are those of its Trials.
type LoadRecord struct {
	// BestPass and LowestFail are messages a second, 0 for none.
	BestPass   int64                     `json:"bestPass,omitempty"`
	LowestFail int64                     `json:"lowestFail,omitempty"`
	State      v1alpha1.LoadConfirmation `json:"state"`
	// HeldSeconds is for how long messages were sent in the longest trial that BestPass passed.
	HeldSeconds int64 `json:"heldSeconds,omitempty"`
	// Reason and Message say why the lowest fail did not pass.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Made is how many trials were made.
	Made   int64                `json:"made"`
	Trials []v1alpha1.LoadTrial `json:"trials"`
	// BestPasses are those of all repetitions.
	BestPasses []int32 `json:"bestPasses"`
}

// failReasons are why a rate may not pass: those of the rate, and after them those that say nothing about what receives.
func failReasons() (failed, unjudged []latency.Reason) {
	return []latency.Reason{latency.ReasonLoss, latency.ReasonOverBudget, latency.ReasonGrowth},
		[]latency.Reason{latency.ReasonGeneratorLimit, latency.ReasonTooFewSamples}
}

func (l *LoadRecord) measurement() *v1alpha1.LoadMeasurement {
	return &v1alpha1.LoadMeasurement{
		BestPassPerSecond: int32(l.BestPass), LowestFailPerSecond: int32(l.LowestFail), Confirmation: l.State, HeldSeconds: int32(l.HeldSeconds), FailReason: l.Reason, FailMessage: l.Message,
		Trials: int32(l.Made), RepetitionBestPassesPerSecond: l.BestPasses,
	}
}

// latencyLoad is what a search found, as the programs that measure have it, without its trials.
func latencyLoad(l *v1alpha1.LoadMeasurement) *latency.Load {
	found := &latency.Load{
		BestPass: uint64(l.BestPassPerSecond), LowestFail: uint64(l.LowestFailPerSecond), Confirmed: l.Confirmation == v1alpha1.LoadConfirmed,
		HeldNanoseconds: (time.Duration(l.HeldSeconds) * time.Second).Nanoseconds(),
	}
	if l.LowestFailPerSecond > 0 {
		found.Why = latency.Outcome{Verdict: latency.Failed, Reason: latency.Reason(l.FailReason), Message: l.FailMessage}
	}
	if _, unjudged := failReasons(); slices.Contains(unjudged, found.Why.Reason) {
		found.Why.Verdict = latency.Inconclusive
	}
	return found
}

// checkLoad refuses what no search of ours finds. The rows of its rates were checked before.
func (n *NetworkRecord) checkLoad() error {
	l := n.Load
	const contradiction = "the search of the record contradicts itself"
	if l.isOutOfBounds() {
		return errors.New("a number of the search of the record is out of its bounds")
	}
	isConfirmed := l.State == v1alpha1.LoadConfirmed
	if (!isConfirmed && l.State != v1alpha1.LoadUnconfirmed) || (isConfirmed && l.BestPass == 0) {
		return errors.New(contradiction)
	}
	if len(l.BestPasses) == 0 || len(l.BestPasses) != len(n.Medians) || int64(slices.Min(l.BestPasses)) != l.BestPass || slices.Max(l.BestPasses) > v1alpha1.MaxMessagesPerSecond {
		return errors.New("the search of the record is not that of the repetition with the lowest rate")
	}
	return cmp.Or(l.checkFail(), n.checkTrials())
}

func (l *LoadRecord) isOutOfBounds() bool {
	isEmpty := l.LowestFail != 0 && l.LowestFail <= l.BestPass
	isHeld := l.HeldSeconds >= 0 && l.HeldSeconds <= v1alpha1.MaxTestDurationSeconds && (l.HeldSeconds == 0 || l.BestPass > 0)
	return isEmpty || !isHeld || l.BestPass < 0 || max(l.BestPass, l.LowestFail) > v1alpha1.MaxMessagesPerSecond || l.Made < 1 || l.Made > v1alpha1.MaxTrials
}

// checkFail wants a reason for the lowest fail, and none without one.
func (l *LoadRecord) checkFail() error {
	if l.LowestFail == 0 && l.Reason+l.Message == "" {
		return nil
	}
	failed, unjudged := failReasons()
	if l.LowestFail == 0 || !slices.Contains(slices.Concat(failed, unjudged), latency.Reason(l.Reason)) {
		return errors.New("the search of the record has a reason that is not known, or for nothing")
	}
	return checkWord("why a rate did not pass", l.Message, v1alpha1.MaxFailMessageLength)
}

// checkTrials wants a row of rates for each trial that is told, in their order.
func (n *NetworkRecord) checkTrials() error {
	l := n.Load
	wanted, at := []v1alpha1.LoadTrial{v1alpha1.LoadTrialLow}, []int64{0}
	if l.BestPass > 0 {
		wanted, at = append(wanted, v1alpha1.LoadTrialBestPass), append(at, l.BestPass)
	}
	if l.LowestFail > 0 {
		wanted, at = append(wanted, v1alpha1.LoadTrialLowestFail), append(at, l.LowestFail)
	}
	if !slices.Equal(l.Trials, wanted) || len(n.Rates) != len(wanted) {
		return fmt.Errorf("the search of the record tells %d trials in %d rates, and not %v", len(l.Trials), len(n.Rates), wanted)
	}
	for i, rate := range at {
		if rate > 0 && n.Rates[i][0] != rate {
			return errors.New("the rates of the record are not those of its search")
		}
	}
	return nil
}

// trialName is a trial of a search in words; "" for none.
func trialName(trial v1alpha1.LoadTrial) string {
	return map[v1alpha1.LoadTrial]string{
		v1alpha1.LoadTrialLow: "lowest rate", v1alpha1.LoadTrialBestPass: "best pass", v1alpha1.LoadTrialLowestFail: "lowest fail",
	}[trial]
}

// LoadWords are the interval that a search found.
func LoadWords(l *v1alpha1.LoadMeasurement) string {
	passed := fmt.Sprintf("%d messages a second passed", l.BestPassPerSecond)
	if l.HeldSeconds > 0 {
		passed += fmt.Sprintf(" for %s", time.Duration(l.HeldSeconds)*time.Second)
	}
	if l.Confirmation == v1alpha1.LoadUnconfirmed {
		passed += " and were not confirmed"
	}
	switch {
	case l.BestPassPerSecond == 0 && l.LowestFailPerSecond == 0:
		return "no rate was judged"
	case l.BestPassPerSecond == 0:
		return fmt.Sprintf("no rate passed, %d messages a second did not", l.LowestFailPerSecond)
	case l.LowestFailPerSecond == 0:
		return passed + ", and no higher rate failed"
	}
	return fmt.Sprintf("%s, %d did not (%s)", passed, l.LowestFailPerSecond, l.FailReason)
}
