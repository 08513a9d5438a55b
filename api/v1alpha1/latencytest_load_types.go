// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

// LoadSearchTest has the parameters of kind LoadSearch. A rate passes a trial when the client sent it, its loss and its percentiles are
// within their limits, and a percentile has not grown too much over that of the lowest rate. Without percentiles and growth, loss alone decides. A
// first rate is doubled until one does not pass, then the best rate and the one above are brought together, and the best rate is confirmed by a
// long trial.
//
// +kubebuilder:validation:XValidation:rule="(!has(self.lowestMessagesPerSecond) || !has(self.highestMessagesPerSecond) || self.lowestMessagesPerSecond <= self.highestMessagesPerSecond) && (!has(self.firstMessagesPerSecond) || ((!has(self.lowestMessagesPerSecond) || self.lowestMessagesPerSecond <= self.firstMessagesPerSecond) && (!has(self.highestMessagesPerSecond) || self.firstMessagesPerSecond <= self.highestMessagesPerSecond)))",message="spec.loadSearch.lowestMessagesPerSecond, firstMessagesPerSecond and highestMessagesPerSecond must not descend."
// +kubebuilder:validation:XValidation:rule="(!has(self.sniffSeconds) || ((!has(self.trialSeconds) || self.sniffSeconds <= self.trialSeconds) && (!has(self.confirmSeconds) || self.sniffSeconds <= self.confirmSeconds))) && (!has(self.trialSeconds) || !has(self.confirmSeconds) || self.trialSeconds <= self.confirmSeconds)",message="spec.loadSearch.sniffSeconds, trialSeconds and confirmSeconds must not descend."
// +kubebuilder:validation:XValidation:rule="(has(self.probesPerSecond) ? self.probesPerSecond : 1000) * (has(self.confirmSeconds) ? self.confirmSeconds : 60) <= 5000000 && (has(self.probesPerSecond) ? self.probesPerSecond : 1000) * (has(self.trialSeconds) ? self.trialSeconds : 15) <= 5000000 && (has(self.probesPerSecond) ? self.probesPerSecond : 1000) * (has(self.sniffSeconds) ? self.sniffSeconds : 2) <= 5000000",message="a trial has 5000000 probes at most: lower spec.loadSearch.probesPerSecond (1000 when omitted), or shorten spec.loadSearch.confirmSeconds, trialSeconds or sniffSeconds."
// +kubebuilder:validation:XValidation:rule="!has(self.percentiles) || self.percentiles.all(p, 9 * (has(self.trialSeconds) ? (has(self.probesPerSecond) ? self.probesPerSecond : 1000) * self.trialSeconds : has(self.confirmSeconds) ? (has(self.probesPerSecond) ? self.probesPerSecond : 1000) * self.confirmSeconds : (has(self.probesPerSecond) ? self.probesPerSecond : 1000) < 116 ? 43200 * (has(self.probesPerSecond) ? self.probesPerSecond : 1000) : 5000000) >= 10 * {'P50': 200, 'P90': 1000, 'P99': 10000, 'P999': 100000, 'P9999': 1000000, 'P99999': 10000000}[p.percentile])",message="the probes of a trial, a tenth less, must carry spec.loadSearch.percentiles: P99 takes 10000, P999 100000, P9999 1000000, and P99999 is out of reach; raise spec.loadSearch.probesPerSecond or trialSeconds."
// +kubebuilder:validation:XValidation:rule="9 * (has(self.trialSeconds) ? (has(self.probesPerSecond) ? self.probesPerSecond : 1000) * self.trialSeconds : has(self.confirmSeconds) ? (has(self.probesPerSecond) ? self.probesPerSecond : 1000) * self.confirmSeconds : (has(self.probesPerSecond) ? self.probesPerSecond : 1000) < 116 ? 43200 * (has(self.probesPerSecond) ? self.probesPerSecond : 1000) : 5000000) >= 10 * {'P50': 200, 'P90': 1000, 'P99': 10000, 'P999': 100000, 'P9999': 1000000, 'P99999': 10000000}[has(self.growth) ? self.growth.percentile : 'P50']",message="the probes of a trial, a tenth less, must carry spec.loadSearch.growth.percentile: P50, which counts when omitted, takes 200, P99 10000, P999 100000, P9999 1000000, and P99999 is out of reach; raise spec.loadSearch.probesPerSecond or trialSeconds."
type LoadSearchTest struct {
	// bytes is the size of messages, 24 to 65507. When omitted, this means the user has no opinion and the operator chooses a
	// default, which is subject to change over time. The current default is 64.
	// +kubebuilder:validation:Minimum=24
	// +kubebuilder:validation:Maximum=65507
	// +optional
	Bytes int32 `json:"bytes,omitempty"`

	// lowestMessagesPerSecond is the rate that is tried before all, with whose latency that of others is compared, 1 to 5000000. When
	// omitted, this means the user has no opinion and the operator chooses a default, which is subject to change over time. The
	// current default is 1000, or the lower one of the other two rates.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5000000
	// +optional
	LowestMessagesPerSecond int32 `json:"lowestMessagesPerSecond,omitempty"`

	// firstMessagesPerSecond is the rate that is tried after it, 1 to 5000000. When omitted, this means the user has no opinion and
	// the operator chooses a default, which is subject to change over time. The current default is 10000, within the other two rates.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5000000
	// +optional
	FirstMessagesPerSecond int32 `json:"firstMessagesPerSecond,omitempty"`

	// highestMessagesPerSecond is the highest rate that is tried, 1 to 5000000. When omitted, this means the user has no opinion and
	// the operator chooses a default, which is subject to change over time. The current default is 5000000.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5000000
	// +optional
	HighestMessagesPerSecond int32 `json:"highestMessagesPerSecond,omitempty"`

	// granularityPartsPerThousand is how far apart the best rate that passed and the lowest that did not may be at the end, 1 to 1000.
	// When omitted, this means the user has no opinion and the operator chooses a default, which is subject to change over time. The
	// current default is 10, one per cent.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	GranularityPartsPerThousand int32 `json:"granularityPartsPerThousand,omitempty"`

	// lossPartsPerMillion is how many of the messages of a trial, probes included, may be lost, 0 to 1000000. When omitted, this means the user has no
	// opinion and the operator chooses a default, which is subject to change over time. The current default is 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	LossPartsPerMillion *int32 `json:"lossPartsPerMillion,omitempty"`

	// percentiles bound single percentiles of the latencies of probes in each trial, at most 6. When omitted, none is bounded.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=6
	// +listType=map
	// +listMapKey=percentile
	// +optional
	Percentiles []LatencyPercentile `json:"percentiles,omitempty"`

	// growth bounds how much a percentile may grow over that of the lowest rate. When omitted, this means the user has no opinion and the
	// operator chooses a default, which is subject to change over time. The current default is P50 of at most 1000 per cent: what is ten
	// times as long waits in a queue.
	// +optional
	Growth *LatencyGrowth `json:"growth,omitempty"`

	// probesPerSecond are sent beside the messages of a rate through a socket of their own, and their latencies are taken, 1 to 100000.
	// They are no part of the rate. When omitted, this means the user has no opinion and the operator chooses a default, which is
	// subject to change over time. The current default is 1000.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	ProbesPerSecond int32 `json:"probesPerSecond,omitempty"`

	// sniffSeconds is how long the short trial is that comes before each one of full length, so that a rate which is far too high
	// costs little time, 1 to 3600. When omitted, this means the user has no opinion and the operator chooses a default, which is
	// subject to change over time. The current default is 2, or as long as a shorter trial.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +optional
	SniffSeconds int32 `json:"sniffSeconds,omitempty"`

	// trialSeconds is how long a trial is, 1 to 3600. When omitted, this means the user has no opinion and the operator chooses a
	// default, which is subject to change over time. The current default is 15, or as long as a sniff, and longer where the probes of 15
	// seconds do not carry the percentiles, but no longer than confirmSeconds that is set.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +optional
	TrialSeconds int32 `json:"trialSeconds,omitempty"`

	// confirmSeconds is how long the best rate must hold, 1 to 43200. When it does not, the search goes on below it, with trials of
	// that length. A trial of more than 400 million messages goes in several streams one after the other, which count as one. When omitted,
	// this means the user has no opinion and the operator chooses a default, which is subject to change over time. The current default is
	// 60, or as long as a trial.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=43200
	// +optional
	ConfirmSeconds int32 `json:"confirmSeconds,omitempty"`

	// retries is how often a trial that did not pass is made again before its rate counts as one that does not, 0 to 10. When omitted,
	// this means the user has no opinion and the operator chooses a default, which is subject to change over time. The current
	// default is 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +optional
	Retries *int32 `json:"retries,omitempty"`
}

// LatencyGrowth bounds a percentile by that of a low rate.
type LatencyGrowth struct {
	// percentile is P50, P90, P99, P999 (99.9 %) or P9999. P99999 is out of reach of a trial.
	// +required
	Percentile PercentileName `json:"percentile"`

	// maximumPercent is how large the percentile may be, in per cent of the same percentile at the lowest rate, 100 to 100000: 300 is
	// three times as long.
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=100000
	// +required
	MaximumPercent int32 `json:"maximumPercent"`
}

// LoadTrial says for which of its trials a search tells a rate.
//
// +kubebuilder:validation:Enum=Low;BestPass;LowestFail
type LoadTrial string

const (
	// LoadTrialLow is the trial at the lowest rate, with which others are compared.
	LoadTrialLow LoadTrial = "Low"
	// LoadTrialBestPass is the longest trial of the highest rate that passed.
	LoadTrialBestPass LoadTrial = "BestPass"
	// LoadTrialLowestFail is the last trial of the lowest rate above it that did not pass.
	LoadTrialLowestFail LoadTrial = "LowestFail"
)

// LoadConfirmation says whether a rate held over a long trial.
//
// +kubebuilder:validation:Enum=Confirmed;Unconfirmed
type LoadConfirmation string

const (
	// LoadConfirmed is a rate that did.
	LoadConfirmed LoadConfirmation = "Confirmed"
	// LoadUnconfirmed is one that did not, or for which there was no time, or no rate at all.
	LoadUnconfirmed LoadConfirmation = "Unconfirmed"
)

// LoadMeasurement is what a search found: the highest rate that passes is between bestPassPerSecond and lowestFailPerSecond. Of several
// repetitions, it is the one that found the lowest rate.
type LoadMeasurement struct {
	// bestPassPerSecond is the highest rate that passed, in messages a second. When omitted, none passed.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5000000
	// +optional
	BestPassPerSecond int32 `json:"bestPassPerSecond,omitempty"`

	// lowestFailPerSecond is the lowest rate above it that did not pass. When omitted, every rate passed that was tried.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5000000
	// +optional
	LowestFailPerSecond int32 `json:"lowestFailPerSecond,omitempty"`

	// confirmation is Confirmed or Unconfirmed: whether the best rate held over the long trial, to its end.
	// +required
	Confirmation LoadConfirmation `json:"confirmation"`

	// heldSeconds is for how many whole seconds messages were sent in the longest trial that the best rate passed. When omitted, no rate passed, or the
	// trial was shorter than a second, or a version of the operator measured that did not tell.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	HeldSeconds int32 `json:"heldSeconds,omitempty"`

	// failReason says in one word why the lowest fail did not pass: Loss, OverBudget, Growth, or, which says nothing about what
	// receives, GeneratorLimit or TooFewSamples. When omitted, every rate passed that was tried.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	FailReason string `json:"failReason,omitempty"`

	// failMessage says it in a sentence.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	FailMessage string `json:"failMessage,omitempty"`

	// trials is how many trials were made.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Trials int32 `json:"trials"`

	// repetitionBestPassesPerSecond are the highest rates that passed in the repetitions, at most 10; 0 where none did.
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=5000000
	// +listType=atomic
	// +optional
	RepetitionBestPassesPerSecond []int32 `json:"repetitionBestPassesPerSecond,omitempty"`
}
