// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LatencyTestStatus is what was measured.
type LatencyTestStatus struct {
	// conditions are Ready, which is True when every selected node has passed and its result is fresh; Progressing, which is
	// True while nodes are measured or wait for it; and Degraded, which is True when a node has failed or none can be measured.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that this status speaks of.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// nodes counts the nodes.
	// +optional
	Nodes *LatencyTestCounts `json:"nodes,omitempty"`

	// results are the nodes with what was measured on them, at most 128, in the order of their names.
	// +kubebuilder:validation:MaxItems=128
	// +listType=map
	// +listMapKey=node
	// +optional
	Results []LatencyTestResult `json:"results,omitempty"`
}

// LatencyTestCounts counts nodes.
type LatencyTestCounts struct {
	// selected is the number of nodes that the test selects.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Selected int32 `json:"selected"`

	// passed is the number of nodes whose result is within the budget and fresh.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Passed int32 `json:"passed"`

	// failed is the number of nodes whose result is beyond the budget and fresh.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Failed int32 `json:"failed"`

	// inconclusive is the number of nodes whose last run gave no result that can be judged.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Inconclusive int32 `json:"inconclusive"`

	// stale is the number of nodes whose result does not count any more.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Stale int32 `json:"stale"`

	// running is the number of nodes that are measured now.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Running int32 `json:"running"`

	// waiting is the number of nodes that are to be measured.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Waiting int32 `json:"waiting"`
}

// LatencyOutcome is what became of a measurement.
//
// +kubebuilder:validation:Enum=Passed;Failed;Inconclusive
type LatencyOutcome string

const (
	// LatencyPassed means that what was measured is within the budget.
	LatencyPassed LatencyOutcome = "Passed"
	// LatencyFailed means that what was measured is beyond the budget.
	LatencyFailed LatencyOutcome = "Failed"
	// LatencyInconclusive means that nothing was measured that can be judged.
	LatencyInconclusive LatencyOutcome = "Inconclusive"
)

// LatencyFreshness says whether a result counts.
//
// +kubebuilder:validation:Enum=Fresh;Stale;Expired
type LatencyFreshness string

const (
	// LatencyFresh means that the node is what it was when it was measured.
	LatencyFresh LatencyFreshness = "Fresh"
	// LatencyStale means that the fingerprint of the node, or what the test measures, has changed since.
	LatencyStale LatencyFreshness = "Stale"
	// LatencyExpired means that spec.expireAfterHours have passed.
	LatencyExpired LatencyFreshness = "Expired"
)

// LatencyActivity says what a test does on a node now.
//
// +kubebuilder:validation:Enum=Idle;Waiting;Running
type LatencyActivity string

const (
	// LatencyIdle means that the node is not to be measured now.
	LatencyIdle LatencyActivity = "Idle"
	// LatencyWaiting means that the node is to be measured, and waits.
	LatencyWaiting LatencyActivity = "Waiting"
	// LatencyRunning means that a Job measures the node.
	LatencyRunning LatencyActivity = "Running"
)

// LatencyTestResult is a node with what was measured on it.
type LatencyTestResult struct {
	// node is the name of the node.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Node string `json:"node"`

	// activity is Idle, Waiting or Running.
	// +required
	Activity LatencyActivity `json:"activity"`

	// outcome is Passed, Failed or Inconclusive. A run without a result leaves a fresh one that is there as it is. When
	// omitted, the node has not been measured yet.
	// +optional
	Outcome LatencyOutcome `json:"outcome,omitempty"`

	// freshness is Fresh, Stale or Expired. When omitted, there is no result that could be fresh.
	// +optional
	Freshness LatencyFreshness `json:"freshness,omitempty"`

	// reason says in one word why the outcome is what it is, such as WithinBudget, MaximumExceeded, NotExclusive or NodeLeft.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Reason string `json:"reason,omitempty"`

	// message says in a sentence why outcome, freshness and activity are what they are.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// job is the name of the Job that measures the node, or did last. It refers to the long report, which the log of its pod is for as long as the Job is
	// there: an hour after its end.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Job string `json:"job,omitempty"`

	// server is the other end of a measurement over the network. When omitted, there is none.
	// +optional
	Server *LatencyTestPeer `json:"server,omitempty"`

	// startedTime is when that Job was made, or the one of its server while it has none yet.
	// +optional
	StartedTime *metav1.Time `json:"startedTime,omitempty"`

	// comparedRuns is how many measurements of a comparison that is under way have ended. Their Jobs stay until it has ended, too.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=50
	// +optional
	ComparedRuns int32 `json:"comparedRuns,omitempty"`

	// attempts is how many runs in a row gave nothing that could be judged.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// attemptedTime is when the last of these ended.
	// +optional
	AttemptedTime *metav1.Time `json:"attemptedTime,omitempty"`

	// pendingFingerprint is what the node was when the running Job was made.
	// +optional
	PendingFingerprint *LatencyFingerprint `json:"pendingFingerprint,omitempty"`

	// measured is what the last run measured that could be judged.
	// +optional
	Measured *LatencyMeasurement `json:"measured,omitempty"`

	// previous is what the run before measured, without its histograms and intervals, and without what was counted on CPUs meanwhile.
	// +optional
	Previous *LatencyMeasurement `json:"previous,omitempty"`

	// earlier are runs before previous, the newest first, that were measured like it: with the same parameters, and with nothing changed meanwhile that is
	// part of a fingerprint. A run is worse, or better, only when it is beyond these, too. There
	// are five at most, and one where the nodes of the test have many sizes and rates together.
	// +kubebuilder:validation:MaxItems=5
	// +listType=atomic
	// +optional
	Earlier []LatencyRunSpread `json:"earlier,omitempty"`
}

// LatencyRunSpread has the figures by which the repetitions of a run are compared with those of another: nanoseconds of a length, of kind
// LoadSearch messages a second, and of kinds ContainerVersusHost and StackComparison parts per thousand of a ratio.
type LatencyRunSpread struct {
	// least is the least figure of a repetition.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	Least int64 `json:"least"`

	// most is the greatest figure of a repetition.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	Most int64 `json:"most"`
}

// LatencyTestPeer is the other end of a measurement over the network.
type LatencyTestPeer struct {
	// node is the name of the node that runs the server.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Node string `json:"node"`

	// job is the name of the Job of the server.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Job string `json:"job"`

	// address is where the server listens. When omitted, its pod is not ready yet, and the measurement waits for it.
	// +kubebuilder:validation:MaxLength=15
	// +optional
	Address string `json:"address,omitempty"`
}

// LatencyMeasurement is what was measured on a node.
type LatencyMeasurement struct {
	// completedTime is when the measurement was received.
	// +required
	CompletedTime metav1.Time `json:"completedTime"`

	// run is spec.run at that time.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Run int32 `json:"run,omitempty"`

	// parametersHash tells with which parameters the measurement was made: kind, duration and the like.
	// +kubebuilder:validation:MaxLength=64
	// +required
	ParametersHash string `json:"parametersHash"`

	// fingerprint is what the node was.
	// +required
	Fingerprint LatencyFingerprint `json:"fingerprint"`

	// cpus are the CPUs that were measured, or to which the client of a measurement over the network was kept.
	// +kubebuilder:validation:MaxLength=1024
	// +required
	CPUs string `json:"cpus"`

	// worstCPU is the CPU with the longest interruption; absent where there was none.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	// +optional
	WorstCPU *int32 `json:"worstCPU,omitempty"`

	// interruptions is how many interruptions there were on all CPUs in all repetitions. When omitted, kind Jitter has seen none,
	// and the other kinds do not count them.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	Interruptions int64 `json:"interruptions,omitempty"`

	// maximumNanoseconds is the longest interruption, or the longest latency of a message.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	MaximumNanoseconds int64 `json:"maximumNanoseconds"`

	// stolenPartsPerMillion is the share of time that was taken from the CPU which lost most in one repetition. When omitted, kind
	// Jitter has seen none, and the other kinds do not measure it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	StolenPartsPerMillion int32 `json:"stolenPartsPerMillion,omitempty"`

	// percentiles are those of the CPU and repetition in which each was largest, or of the size or rate of messages, at most 6. One that
	// the samples do not carry is absent.
	// +kubebuilder:validation:MaxItems=6
	// +listType=map
	// +listMapKey=percentile
	// +optional
	Percentiles []LatencyPercentile `json:"percentiles,omitempty"`

	// network is what was measured over the network. When omitted, nothing was.
	// +optional
	Network *NetworkMeasurement `json:"network,omitempty"`

	// repetitionMaximumsNanoseconds are the longest interruptions, or latencies, of the repetitions, at most 10.
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=9007199254740991
	// +listType=atomic
	// +optional
	RepetitionMaximumsNanoseconds []int64 `json:"repetitionMaximumsNanoseconds,omitempty"`

	// causes are what the kernel counted when the longest interruptions came, first of the longest one, at most 4. Of kinds over the network
	// they are what it counted on the CPU of the client during all repetitions, with the rate of each: preemptions and page faults first, then
	// interrupts, the most frequent first, and softirqs last.
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=96
	// +listType=atomic
	// +optional
	Causes []string `json:"causes,omitempty"`

	// countedInterrupts is All, Devices or None: which interrupts causes can name. Devices: the container runtime hides
	// /proc/interrupts from pods, so that interrupts of devices were counted from /sys/kernel/irq, and those of the kernel itself, such as
	// its timer's, were not. None: none were counted. When omitted, nothing is measured that has causes.
	// +optional
	CountedInterrupts CountedInterrupts `json:"countedInterrupts,omitempty"`

	// isolation is what the scheduler and the idle governor counted during the measurement. When omitted, nothing is measured that has
	// any, the measurement was made by a version of the operator that did not ask them, each side of a comparison has its own, or there was no room.
	// +optional
	Isolation *LatencyIsolation `json:"isolation,omitempty"`

	// managementInterrupts is how often the firmware interrupted the measured CPUs. When omitted, another kind was measured, or by a version of the operator
	// that did not count them.
	// +optional
	ManagementInterrupts *LatencyManagementInterrupts `json:"managementInterrupts,omitempty"`

	// timeLine says when interruptions, or latencies of messages, were longest. When omitted, the measurement was made by a version of the operator that did
	// not tell, its record had no room, or it is a comparison.
	// +optional
	TimeLine *LatencyTimeLine `json:"timeLine,omitempty"`

	// histogram is the HDR histogram of the lengths of all interruptions in nanoseconds, or of the latencies of messages of the
	// first size or rate, or of the best rate that a search found, in the compressed V2 encoding and base64. It is absent where it would be too large,
	// and where there is one for each side of a comparison.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Histogram string `json:"histogram,omitempty"`
}

// LatencyTimeLine cuts the time of a measurement into slices that are equally long. Its repetitions follow one another, and sizes or rates of messages within
// each, without what was between them.
type LatencyTimeLine struct {
	// elapsedNanoseconds is the time of all slices.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	ElapsedNanoseconds int64 `json:"elapsedNanoseconds"`

	// longestNanoseconds is the longest interruption of all CPUs, or the longest latency of a message, that began in each slice, in the order of time: at
	// most 60, and 0 where there was none. Of a search it is that of the best rate that it found.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=60
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=9007199254740991
	// +listType=atomic
	// +required
	LongestNanoseconds []int64 `json:"longestNanoseconds,omitempty"`
}

// CountedInterrupts says which interrupts the kernel showed to a measurement.
//
// +kubebuilder:validation:Enum=All;Devices;None
type CountedInterrupts string

const (
	// CountedInterruptsAll are those of /proc/interrupts.
	CountedInterruptsAll CountedInterrupts = "All"
	// CountedInterruptsDevices are those of /sys/kernel/irq: of devices alone.
	CountedInterruptsDevices CountedInterrupts = "Devices"
	// CountedInterruptsNone are none.
	CountedInterruptsNone CountedInterrupts = "None"
)

// NetworkMeasurement is what was measured over the network. Of each latency, the worst repetition counts; messages that were lost or left late are those of all.
type NetworkMeasurement struct {
	// server is the name of the node that ran the server.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Server string `json:"server,omitempty"`

	// serverKernel is the release of its kernel.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	ServerKernel string `json:"serverKernel,omitempty"`

	// serverFingerprint is what that node was. When omitted, it was the measured node itself.
	// +optional
	ServerFingerprint *LatencyFingerprint `json:"serverFingerprint,omitempty"`

	ServerCounts `json:",inline"`

	// path is the way that messages took: Kernel, Accelerated, Mixed or Unknown, by what the kernel counted at both ends. Of kind
	// StackComparison it is that of the base.
	// +required
	Path LatencyPath `json:"path"`

	// pathMessage says in a sentence what the kernel counted.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	PathMessage string `json:"pathMessage,omitempty"`

	// sizes are what was measured with messages of each size, one at a time, at most 20, in the order of the measurement. Kind
	// RateSweep and LoadSearch have one, measured while nothing else was sent. The kinds that compare have those of their sides in comparison.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Sizes []SizeMeasurement `json:"sizes,omitempty"`

	// rates are what was measured with messages that leave on a schedule, at most 8, in the order of the measurement. Kind LoadSearch
	// has those of its trials Low, BestPass and LowestFail, as far as there are such. When omitted, none left so.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Rates []RateMeasurement `json:"rates,omitempty"`

	// load is what a search for the highest rate found. When omitted, none was made.
	// +optional
	Load *LoadMeasurement `json:"load,omitempty"`

	// comparison is what was measured on several sides in turns, in place of sizes. The figures of the measurement are then those of the first
	// side that is not the base. When omitted, nothing was compared.
	// +optional
	Comparison *ComparisonMeasurement `json:"comparison,omitempty"`

	// repetitionMediansNanoseconds are the medians of the first rate, or of the first size, in the repetitions, at most 10.
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=9007199254740991
	// +listType=atomic
	// +optional
	RepetitionMediansNanoseconds []int64 `json:"repetitionMediansNanoseconds,omitempty"`
}

// SizeMeasurement is what was measured with messages of one size.
type SizeMeasurement struct {
	// bytes is the size of the messages.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65536
	// +required
	Bytes int32 `json:"bytes"`

	// lost is how many messages had no answer in time, in all repetitions.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	Lost int64 `json:"lost"`

	// stray is how many answers came twice or too late, in all repetitions.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	Stray int64 `json:"stray"`

	LatencyFigures `json:",inline"`
}

// RateMeasurement is what was measured with messages that leave on a schedule, at one rate. Counts are of all repetitions, and of kind
// LoadSearch of one trial.
type RateMeasurement struct {
	// trial is Low, BestPass or LowestFail: which trial of a search it was. When omitted, it was none.
	// +optional
	Trial LoadTrial `json:"trial,omitempty"`

	// messagesPerSecond is the rate.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5000000
	// +required
	MessagesPerSecond int32 `json:"messagesPerSecond"`

	// achievedPerSecond is the rate at which messages left in the repetition in which it was lowest.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	AchievedPerSecond int64 `json:"achievedPerSecond"`

	// bytes is the size of the messages.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65536
	// +required
	Bytes int32 `json:"bytes"`

	// sent is how many messages were sent.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	Sent int64 `json:"sent"`

	// lost is how many of them the server did not receive.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	Lost int64 `json:"lost"`

	// gaps is in how many runs they were lost.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	Gaps int64 `json:"gaps"`

	// duplicates is how many the server received once more.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	Duplicates int64 `json:"duplicates"`

	// reordered is how many the server received after one that was sent later.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	Reordered int64 `json:"reordered"`

	// late is how many left more than an interval of the rate after their time.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	Late int64 `json:"late"`

	// maximumLatenessNanoseconds is how late the latest of them left.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	MaximumLatenessNanoseconds int64 `json:"maximumLatenessNanoseconds"`

	// answersLost is how many answers did not come back; the message was lost, or its answer.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	AnswersLost int64 `json:"answersLost"`

	// fromIntended are the latencies from when messages, or probes, were to leave, so that a client that was held up hides nothing. They are
	// estimates of one way: the time until the answer, less the mean half round trip of the sizes. They are judged.
	// +required
	FromIntended LatencyFigures `json:"fromIntended"`

	// fromSent are the latencies of the same messages from when they left, as sfnt-stream counts them.
	// +required
	FromSent LatencyFigures `json:"fromSent"`
}

// LatencyFigures are what is known of many latencies. Of each figure, the worst repetition counts.
type LatencyFigures struct {
	// samples is how many latencies were taken in all repetitions.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	Samples int64 `json:"samples"`

	// minimumNanoseconds is the shortest latency of all repetitions.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	MinimumNanoseconds int64 `json:"minimumNanoseconds"`

	// meanNanoseconds is the largest mean of a repetition.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	MeanNanoseconds int64 `json:"meanNanoseconds"`

	// deviationNanoseconds is the largest standard deviation of a repetition.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	DeviationNanoseconds int64 `json:"deviationNanoseconds"`

	// maximumNanoseconds is the longest latency of all repetitions.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	MaximumNanoseconds int64 `json:"maximumNanoseconds"`

	// leastSamples is how many latencies were taken in the repetition with the fewest: each percentile is that of one repetition, and rests on so many
	// at least. When omitted, there are no intervals.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	LeastSamples int64 `json:"leastSamples,omitempty"`

	// percentiles are those that the samples of every repetition carry, at most 6, each of the repetition in which it was largest.
	// +kubebuilder:validation:MaxItems=6
	// +listType=atomic
	// +optional
	Percentiles []LatencyPercentile `json:"percentiles,omitempty"`

	// intervals are those of percentiles, in the same order. When omitted, there are none: of latencies that are not judged, of measurements by earlier
	// releases, and where the nodes of a test have more than 384 sizes or rates together, of which they would not find room.
	// +kubebuilder:validation:MaxItems=6
	// +listType=atomic
	// +optional
	Intervals []LatencyInterval `json:"intervals,omitempty"`
}

// LatencyInterval holds the percentile of what was sampled in one repetition with 95 % confidence, by ranks and batches: it is wider where samples that
// follow each other are alike. It says nothing about other repetitions, whose spread repetitionMedians shows.
type LatencyInterval struct {
	// lowNanoseconds is the lower end.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000000000
	// +required
	LowNanoseconds int64 `json:"lowNanoseconds"`

	// highNanoseconds is the upper end. When omitted, the samples give none: those above the percentile came in few bursts, and another run may show any
	// other value.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000000000
	// +optional
	HighNanoseconds *int64 `json:"highNanoseconds,omitempty"`
}

// LatencyFingerprint is what decides about the latency of a node. A field is absent when nobody tells.
type LatencyFingerprint struct {
	// systemUUID is that of the machine, as the kubelet reports it. It counts only where it is known both before and after.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	SystemUUID string `json:"systemUUID,omitempty"`

	// kernel is the release of the running kernel.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Kernel string `json:"kernel,omitempty"`

	// commandLineHash is a hash of the command line of the running kernel.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	CommandLineHash string `json:"commandLineHash,omitempty"`

	// microcode is the revision of the loaded microcode.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Microcode string `json:"microcode,omitempty"`

	// biosVersion is the version of the firmware.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	BIOSVersion string `json:"biosVersion,omitempty"`

	// planHash is the plan that the node was verified for.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PlanHash string `json:"planHash,omitempty"`

	// nicsHash is a hash of the NICs with their drivers.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	NICsHash string `json:"nicsHash,omitempty"`

	// mitigationsHash is a hash of how the kernel mitigates the vulnerabilities of the processor. It counts only where it is known both
	// before and after: earlier versions of the operator did not tell it.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	MitigationsHash string `json:"mitigationsHash,omitempty"`

	// drivers are the drivers of NICs of which the node tells a version or that of a firmware, at most 8. A version counts only where it is
	// known both before and after.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Drivers []LatencyFingerprintDriver `json:"drivers,omitempty"`

	// stacks are the stacks of the BypassNICPools on the node whose versions are known, at most 8. A stack that is there before
	// a measurement and not after it, or after it and not before, is no change: a pool says what the node gives to pods, not
	// what runs on it.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=pool
	// +optional
	Stacks []LatencyFingerprintStack `json:"stacks,omitempty"`
}

// LatencyFingerprintDriver is a driver of NICs on a node, with a version or that of a firmware.
//
// +kubebuilder:validation:MinProperties=2
type LatencyFingerprintDriver struct {
	// name of the kernel driver.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	Name string `json:"name"`

	// version of the driver's module; absent when it states none.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Version string `json:"version,omitempty"`

	// firmware is the version of the firmware of its NICs, or their versions with commas between them; absent when no NIC tells it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Firmware string `json:"firmware,omitempty"`
}

// LatencyFingerprintStack is the stack of a BypassNICPool on a node.
type LatencyFingerprintStack struct {
	// pool is the name of the BypassNICPool.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Pool string `json:"pool"`

	// versions are that of the kernel module and that of the user files, with a slash between them; a hyphen stands for one that
	// nobody reports.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	Versions string `json:"versions"`
}
