// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LatencyTest measures nodes and judges them by a budget. The operator runs one Job on each chosen node, in the namespace of the
// LatencyTest, and writes what it measured, with the fingerprint of the node, into the status. A result is stale once the kernel,
// its command line, the firmware, the microcode, the plan or a driver of the node has become another; the node is then
// measured again.
//
// The pod of a Job is Guaranteed and asks for whole CPUs, which a kubelet with the static CPU manager gives to it alone: it never
// runs on CPUs that another pod owns. It has no rights in the API, no volume and no capability. Tests never run on the same
// node at the same time.
//
// Who may create pods in the namespace of a LatencyTest can pretend to be its pod. A test that decides about nodes belongs in a
// namespace of those who administer the nodes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=lt,categories=lowlatency
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.kind`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes.selected`
// +kubebuilder:printcolumn:name="Passed",type=integer,JSONPath=`.status.nodes.passed`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.nodes.failed`
// +kubebuilder:printcolumn:name="Inconclusive",type=integer,JSONPath=`.status.nodes.inconclusive`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.nodes.running`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must be at most 63 characters long, because Jobs carry it as a label."
type LatencyTest struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says what is measured on which nodes.
	// +required
	Spec LatencyTestSpec `json:"spec"`

	// status is what was measured.
	// +optional
	Status LatencyTestStatus `json:"status,omitzero"`
}

// LatencyTestList is a list of LatencyTest.
//
// +kubebuilder:object:root=true
type LatencyTestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []LatencyTest `json:"items"`
}

// LatencyTestKind says what is measured.
//
// +kubebuilder:validation:Enum=Jitter;PingPong;RateSweep;LoadSearch;ContainerVersusHost;StackComparison
type LatencyTestKind string

const (
	// LatencyTestJitter measures how often and for how long something else runs on a CPU that a program believes to own.
	LatencyTestJitter LatencyTestKind = "Jitter"
	// LatencyTestPingPong measures how long a message takes to a server and back, with one message under way at a time.
	LatencyTestPingPong LatencyTestKind = "PingPong"
	// LatencyTestRateSweep measures how long messages take that leave on a schedule, at one rate after the other.
	LatencyTestRateSweep LatencyTestKind = "RateSweep"
	// LatencyTestLoadSearch looks for the highest rate of messages without loss and with a stable latency.
	LatencyTestLoadSearch LatencyTestKind = "LoadSearch"
	// LatencyTestContainerVersusHost measures as PingPong does, in turns from a pod as users have it and from the network namespace of the
	// node, and tells how many times as long messages take from the pod.
	LatencyTestContainerVersusHost LatencyTestKind = "ContainerVersusHost"
	// LatencyTestStackComparison measures as PingPong does, in turns on sides that are named, such as the kernel's sockets and Onload, and tells how many
	// times as long messages take on each as on one of them.
	LatencyTestStackComparison LatencyTestKind = "StackComparison"
)

// LatencyTestSpec says what is measured on which nodes, and what is good enough.
//
// +kubebuilder:validation:XValidation:rule="self.kind == 'Jitter' || !has(self.jitter)",message="spec.jitter stands with spec.kind Jitter only."
// +kubebuilder:validation:XValidation:rule="self.kind in ['PingPong', 'ContainerVersusHost', 'StackComparison'] || !has(self.pingPong)",message="spec.pingPong stands with spec.kind PingPong, ContainerVersusHost or StackComparison only."
// +kubebuilder:validation:XValidation:rule="self.kind == 'RateSweep' || !has(self.rateSweep)",message="spec.rateSweep stands with spec.kind RateSweep only."
// +kubebuilder:validation:XValidation:rule="self.kind == 'LoadSearch' || !has(self.loadSearch)",message="spec.loadSearch stands with spec.kind LoadSearch only."
// +kubebuilder:validation:XValidation:rule="(self.kind != 'Jitter') == has(self.traffic)",message="spec.traffic says between which ends messages go: every spec.kind but Jitter needs it, and Jitter has none."
// +kubebuilder:validation:XValidation:rule="!(self.kind in ['RateSweep', 'LoadSearch']) || !has(self.traffic) || self.traffic.transport != 'TCP'",message="spec.traffic.transport TCP does not stand with spec.kind RateSweep and LoadSearch: messages that leave on a schedule are datagrams, so use UDP or Multicast."
// +kubebuilder:validation:XValidation:rule="!has(self.nodes.names) || !has(self.traffic) || !has(self.traffic.server.nodeNames) || self.nodes.names.all(node, self.traffic.server.nodeNames.exists(server, server != node))",message="spec.traffic.server.nodeNames needs for each of spec.nodes.names a node that is another one: a measured node runs its own server with placement SameNode only."
// +kubebuilder:validation:XValidation:rule="!has(self.pingPong) || !has(self.pingPong.sizes) || !has(self.traffic) || self.pingPong.sizes.all(size, self.traffic.transport == 'TCP' ? size >= 1 : size <= 65507)",message="spec.pingPong.sizes are 1 to 65536 bytes over TCP, and 0 to 65507 bytes in datagrams."
// +kubebuilder:validation:XValidation:rule="!has(self.budget) || self.kind == 'Jitter' || !has(self.budget.stolenPartsPerMillion)",message="spec.budget.stolenPartsPerMillion stands with spec.kind Jitter only."
// +kubebuilder:validation:XValidation:rule="!has(self.budget) || self.kind != 'Jitter' || (!has(self.budget.maximumNanoseconds) || self.budget.maximumNanoseconds >= (has(self.jitter) && has(self.jitter.thresholdNanoseconds) ? self.jitter.thresholdNanoseconds : 500)) && ((has(self.jitter) && has(self.jitter.thresholdNanoseconds) ? self.jitter.thresholdNanoseconds : 500) <= 500 || !has(self.budget.stolenPartsPerMillion) && (!has(self.budget.percentiles) || self.budget.percentiles.all(p, p.nanoseconds >= (has(self.jitter) && has(self.jitter.thresholdNanoseconds) ? self.jitter.thresholdNanoseconds : 500))))",message="spec.budget of kind Jitter cannot bound what spec.jitter.thresholdNanoseconds (500 when omitted) leaves out: maximumNanoseconds is at least as long, and above 500 so are percentiles, and stolenPartsPerMillion is not judged."
// +kubebuilder:validation:XValidation:rule="!has(self.budget) || self.kind != 'Jitter' || (!has(self.budget.lossPartsPerMillion) && !has(self.budget.path))",message="spec.budget.lossPartsPerMillion and spec.budget.path are about messages, which spec.kind Jitter does not send."
// +kubebuilder:validation:XValidation:rule="!has(self.budget) || !has(self.budget.latePartsPerMillion) || self.kind == 'RateSweep'",message="spec.budget.latePartsPerMillion stands with spec.kind RateSweep only, which judges single rates on a schedule."
// +kubebuilder:validation:XValidation:rule="!has(self.budget) || !has(self.budget.minimumMessagesPerSecond) || self.kind == 'LoadSearch'",message="spec.budget.minimumMessagesPerSecond stands with spec.kind LoadSearch only."
// +kubebuilder:validation:XValidation:rule="!has(self.budget) || self.kind != 'LoadSearch' || (!has(self.budget.maximumNanoseconds) && !has(self.budget.percentiles) && !has(self.budget.lossPartsPerMillion))",message="spec.budget of kind LoadSearch has minimumMessagesPerSecond and path only: by what loss and latencies a rate passes is in spec.loadSearch."
// +kubebuilder:validation:XValidation:rule="!has(self.budget) || !has(self.budget.minimumMessagesPerSecond) || !has(self.loadSearch) || !has(self.loadSearch.highestMessagesPerSecond) || self.budget.minimumMessagesPerSecond <= self.loadSearch.highestMessagesPerSecond",message="spec.budget.minimumMessagesPerSecond must not be above spec.loadSearch.highestMessagesPerSecond, which no trial exceeds."
// +kubebuilder:validation:XValidation:rule="self.kind != 'LoadSearch' || !has(self.durationSeconds) || (!has(self.loadSearch) ? self.durationSeconds >= 75 : [has(self.loadSearch.confirmSeconds) ? self.durationSeconds - self.loadSearch.confirmSeconds : self.durationSeconds < 120 ? self.durationSeconds - 60 : self.durationSeconds / 2].all(trial, has(self.loadSearch.trialSeconds) ? trial >= self.loadSearch.trialSeconds : trial >= (has(self.loadSearch.confirmSeconds) && self.loadSearch.confirmSeconds < 15 ? self.loadSearch.confirmSeconds : 15) && (!has(self.loadSearch.sniffSeconds) || trial >= self.loadSearch.sniffSeconds) && ((has(self.loadSearch.percentiles) ? self.loadSearch.percentiles.map(p, p.percentile) : []) + [has(self.loadSearch.growth) ? self.loadSearch.growth.percentile : 'P50']).all(p, 9 * trial * (has(self.loadSearch.probesPerSecond) ? self.loadSearch.probesPerSecond : 1000) >= 10 * {'P50': 200, 'P90': 1000, 'P99': 10000, 'P999': 100000, 'P9999': 1000000, 'P99999': 10000000}[p])))",message="spec.durationSeconds ends a search, so it must have time for spec.loadSearch.trialSeconds (when omitted 15, or what spec.loadSearch.sniffSeconds, percentiles and growth need) and spec.loadSearch.confirmSeconds (when omitted 60, or as long as a trial)."
// +kubebuilder:validation:XValidation:rule="!has(self.budget) || !has(self.budget.ratios) || self.kind in ['ContainerVersusHost', 'StackComparison']",message="spec.budget.ratios stands with spec.kind ContainerVersusHost and StackComparison only, which compare."
// +kubebuilder:validation:XValidation:rule="!has(self.budget) || self.kind != 'ContainerVersusHost' || (!has(self.budget.maximumNanoseconds) && !has(self.budget.percentiles) && !has(self.budget.lossPartsPerMillion))",message="spec.budget of kind ContainerVersusHost has ratios and path only: what single latencies may be is judged by kind PingPong."
// +kubebuilder:validation:XValidation:rule="!(self.kind in ['ContainerVersusHost', 'StackComparison']) || !has(self.repetitions) || self.repetitions >= 5",message="spec.repetitions of kind ContainerVersusHost and StackComparison is at least 5: fewer pairs of measurements carry no interval of confidence."
// +kubebuilder:validation:XValidation:rule="(self.kind == 'StackComparison') == has(self.stackComparison)",message="spec.stackComparison has the sides of spec.kind StackComparison, which needs it, and stands with no other kind."
// +kubebuilder:validation:XValidation:rule="self.kind != 'StackComparison' || !has(self.traffic) || (!has(self.traffic.client) && !has(self.traffic.server.bypassNICPool) && !has(self.traffic.server.address) && !has(self.traffic.server.sockets))",message="spec.traffic of kind StackComparison has no client, and its server no bypassNICPool, address and sockets: each of spec.stackComparison.sides has its own ends."
// +kubebuilder:validation:XValidation:rule="!has(self.budget) || self.kind != 'StackComparison' || (!has(self.budget.path) && !has(self.budget.maximumNanoseconds) && !has(self.budget.percentiles) && !has(self.budget.lossPartsPerMillion))",message="spec.budget of kind StackComparison has ratios only: each side says its own path, and what single latencies may be is judged by kind PingPong."
// +kubebuilder:validation:XValidation:rule="self.kind != 'PingPong' || !has(self.budget) || !has(self.budget.percentiles) || self.budget.percentiles.all(p, (has(self.pingPong) && has(self.pingPong.messagesPerSize) ? self.pingPong.messagesPerSize : 1000000) >= {'P50': 200, 'P90': 1000, 'P99': 10000, 'P999': 100000, 'P9999': 1000000, 'P99999': 10000000}[p.percentile])",message="the messages of a size, spec.pingPong.messagesPerSize, must carry spec.budget.percentiles: P99 takes 10000, P999 100000, P9999 1000000 and P99999 10000000; raise it (1000000 when omitted), and spec.durationSeconds."
// +kubebuilder:validation:XValidation:rule="!(self.kind in ['ContainerVersusHost', 'StackComparison']) || !has(self.budget) || !has(self.budget.ratios) || self.budget.ratios.all(p, (has(self.pingPong) && has(self.pingPong.messagesPerSize) ? self.pingPong.messagesPerSize : 1000000) >= {'P50': 200, 'P90': 1000, 'P99': 10000, 'P999': 100000, 'P9999': 1000000, 'P99999': 10000000}[p.percentile])",message="the messages of a size, spec.pingPong.messagesPerSize, must carry spec.budget.ratios: P99 takes 10000, P999 100000, P9999 1000000 and P99999 10000000; raise it (1000000 when omitted), and spec.durationSeconds."
// +kubebuilder:validation:XValidation:rule="self.kind != 'RateSweep' || !has(self.budget) || !has(self.budget.percentiles) || self.budget.percentiles.all(p, p.percentile != 'P99999')",message="spec.budget.percentiles of kind RateSweep go up to P9999: P99999 takes the times of ten million messages, and spec.rateSweep.answersPerRate is 1000000 at most."
// +kubebuilder:validation:XValidation:rule="self.kind != 'RateSweep' || !has(self.budget) || !has(self.budget.percentiles) || self.budget.percentiles.all(p, p.percentile == 'P99999' || (has(self.rateSweep) && has(self.rateSweep.answersPerRate) ? self.rateSweep.answersPerRate : 120000) >= {'P50': 200, 'P90': 1000, 'P99': 10000, 'P999': 100000, 'P9999': 1000000}[p.percentile])",message="the answers of a rate, spec.rateSweep.answersPerRate, must carry spec.budget.percentiles: P99 takes 10000, P999 100000 and P9999 1000000; raise it (120000 when omitted), and spec.durationSeconds."
// +kubebuilder:validation:XValidation:rule="self.kind != 'RateSweep' || !has(self.budget) || !has(self.budget.percentiles) || self.budget.percentiles.all(p, p.percentile == 'P99999' || (has(self.rateSweep) && has(self.rateSweep.messagesPerSecond) ? self.rateSweep.messagesPerSecond : [10000, 50000, 100000]).all(rate, rate * (has(self.durationSeconds) ? self.durationSeconds : 60) >= (has(self.rateSweep) && has(self.rateSweep.messagesPerSecond) ? size(self.rateSweep.messagesPerSecond) : 3) * {'P50': 200, 'P90': 1000, 'P99': 10000, 'P999': 100000, 'P9999': 1000000}[p.percentile]))",message="spec.durationSeconds (60 when omitted) is shared out among the rates, so each of spec.rateSweep.messagesPerSecond (10000, 50000 and 100000 when omitted) must send what carries spec.budget.percentiles in its share: 10000 messages for P99, 100000 for P999 and 1000000 for P9999; raise spec.durationSeconds, or leave out low rates."
// +kubebuilder:validation:XValidation:rule="!has(self.budget) || !has(self.budget.path) || self.budget.path != 'Accelerated' || !has(self.traffic) || (has(self.traffic.client) && has(self.traffic.client.bypassNICPool) && has(self.traffic.server.bypassNICPool) && !(has(self.traffic.client.sockets) && self.traffic.client.sockets == 'Kernel') && !(has(self.traffic.server.sockets) && self.traffic.server.sockets == 'Kernel'))",message="spec.budget.path Accelerated needs bypassNICPool in spec.traffic.client and spec.traffic.server, and sockets Kernel in none: the pods' own network and the kernel's own sockets are not accelerated."
// +kubebuilder:validation:XValidation:rule="!has(self.repeatAt) || !has(self.repeatAfterHours)",message="spec has repeatAt or repeatAfterHours, not both: nodes are measured once more at times of day, or so many hours after the last time."
type LatencyTestSpec struct {
	// nodes are those that are measured, at most 128, 64 with kind RateSweep or LoadSearch, and 32 with kind ContainerVersusHost or
	// StackComparison. They are fewer where there are many sizes: 57 with 19 sizes of kind PingPong, 14 with 19 sizes of two sides, 28 with 3 sizes of 5
	// sides.
	// +required
	Nodes LatencyTestNodes `json:"nodes"`

	// kind is Jitter, PingPong, RateSweep, LoadSearch, ContainerVersusHost or StackComparison. Jitter: a loop on the cycle counter notes when and for how long something else runs on
	// its CPU. PingPong: messages go to a server and come back, one at a time, and half of the time that takes is the latency, as
	// sfnt-pingpong has it; such a number is a floor, since nothing is sent while an answer is late. RateSweep: messages leave on a
	// schedule whatever comes back, at one rate after the other, and the latency counts from when a message was to leave. LoadSearch:
	// messages leave so at rates that are chosen by what came of those before, until the highest one is found that passes.
	// ContainerVersusHost: what PingPong measures is measured in turns from a pod as users have it and from the network namespace of the
	// node, and the ratio of the two is judged. Its LatencyTests are in namespace lowlatency-operator-agents, which alone admits such pods.
	// StackComparison: the same in turns on up to five sides that are named, such as the kernel's sockets and Onload on one NIC, each with a client
	// and a server of its own, and the ratio of each to one of them is judged.
	// +required
	Kind LatencyTestKind `json:"kind"`

	// jitter has the parameters of kind Jitter. When omitted, each of them is as if it were omitted.
	// +optional
	Jitter *JitterTest `json:"jitter,omitempty"`

	// traffic says between which ends messages go, and how. Every kind but Jitter needs it.
	// +optional
	Traffic *TestTraffic `json:"traffic,omitempty"`

	// pingPong has the parameters of kind PingPong, ContainerVersusHost and StackComparison. When omitted, each of them is as if it were omitted.
	// +optional
	PingPong *PingPongTest `json:"pingPong,omitempty"`

	// stackComparison has the sides of kind StackComparison, which needs it.
	// +optional
	StackComparison *StackComparison `json:"stackComparison,omitempty"`

	// rateSweep has the parameters of kind RateSweep. When omitted, each of them is as if it were omitted.
	// +optional
	RateSweep *RateSweepTest `json:"rateSweep,omitempty"`

	// loadSearch has the parameters of kind LoadSearch. When omitted, each of them is as if it were omitted.
	// +optional
	LoadSearch *LoadSearchTest `json:"loadSearch,omitempty"`

	// durationSeconds is how long each repetition measures, 1 to 86400. Kind PingPong shares it out among its sizes, each of
	// which ends earlier with as many messages as pingPong.messagesPerSize says, and kinds ContainerVersusHost and StackComparison do so on each of their sides; kind RateSweep among its rates, and the highest sends 400 million messages at
	// most. A repetition of kind LoadSearch ends after that time at the latest, and what it has not found by then is Inconclusive. When
	// omitted, this means the user has no opinion and the operator chooses a default, which is subject to change over time. The
	// current default is 60, and for kind LoadSearch the time of 60 pairs of a sniff and a trial and of four confirmations, but 86400 at
	// most.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	DurationSeconds int32 `json:"durationSeconds,omitempty"`

	// repetitions is how often the measurement is made, 1 to 10; of each latency the worst repetition is judged, and messages that were lost or left late are counted over all. Kinds ContainerVersusHost and StackComparison have 5 to 10, each of
	// which measures all sides, one after the other, in an order that turns round with each repetition. When omitted, this means the
	// user has no opinion and the operator chooses a default, which is subject to change over time. The current default is 1, and 6 for kinds
	// ContainerVersusHost and StackComparison.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	Repetitions int32 `json:"repetitions,omitempty"`

	// budget is what a node may show at most. A result that is there is judged anew by a changed budget. When omitted, the
	// budget of the LowLatencyNodeProfile that governs the node counts for kind Jitter (spec.verification.budget); without that,
	// and for the other kinds, the outcome is Inconclusive.
	// +optional
	Budget *LatencyBudget `json:"budget,omitempty"`

	// run counts runs on demand, 0 to 1000000: raising it measures every node once more. When omitted, it is 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Run int32 `json:"run,omitempty"`

	// repeatAfterHours measures a node once more so many hours after its last measurement, 1 to 8760. When omitted, no
	// number of hours makes a node be measured once more.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8760
	// +optional
	RepeatAfterHours int32 `json:"repeatAfterHours,omitempty"`

	// repeatAt measures every node once more at times that suit, such as on Saturdays or while the exchange is closed. A node without a fresh result is
	// measured at once, whatever the time. When omitted, no time of day counts.
	// +optional
	RepeatAt *TestSchedule `json:"repeatAt,omitempty"`

	// expireAfterHours is for how many hours a measurement counts, 1 to 87600; after that the node is measured again. When
	// omitted, a measurement counts until the fingerprint of the node changes.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=87600
	// +optional
	ExpireAfterHours int32 `json:"expireAfterHours,omitempty"`

	// maximumParallelNodes is how many nodes are measured at the same time, 1 to 128. When omitted, this means the user
	// has no opinion and the operator chooses a default, which is subject to change over time. The current default is 8.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	// +optional
	MaximumParallelNodes int32 `json:"maximumParallelNodes,omitempty"`
}

// TestSchedule says when nodes are measured once more.
type TestSchedule struct {
	// schedule is when, in the five fields of cron, with one space between two: minute, hour, day of the month, month and day of the week, as a CronJob
	// of Kubernetes has them. "30 2 * * 6" is half past two on Saturdays.
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z*/,?-]+( [0-9A-Za-z*/,?-]+){4}$')",message="spec.repeatAt.schedule has the five fields of cron with one space between two, minute, hour, day of the month, month and day of the week, such as 30 2 * * 6."
	// +required
	Schedule string `json:"schedule"`

	// timeZone is the zone in which the schedule is read, by its name in the database of time zones, such as Europe/London. When omitted, it is UTC.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && self != 'Local'",message="spec.repeatAt.timeZone is the name of a time zone, such as Europe/London or UTC."
	// +optional
	TimeZone string `json:"timeZone,omitempty"`

	// startWithinMinutes is for how long after a time of the schedule measurements may begin, 1 to 10080. Nodes that have not begun by then, since others
	// are measured first, or the operator was away, wait for the next time. When omitted, they begin as soon as they can.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10080
	// +optional
	StartWithinMinutes int32 `json:"startWithinMinutes,omitempty"`
}

// LatencyTestNodes says which nodes are measured, in one of four ways.
//
// +kubebuilder:validation:XValidation:rule="[has(self.profile), has(self.bypassNICPool), has(self.nodeSelector), has(self.names)].filter(set, set).size() == 1",message="spec.nodes needs exactly one of profile, bypassNICPool, nodeSelector and names."
type LatencyTestNodes struct {
	// profile is the name of the LowLatencyNodeProfile whose nodes are measured.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +optional
	Profile string `json:"profile,omitempty"`

	// bypassNICPool is the name of the BypassNICPool whose nodes are measured.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +optional
	BypassNICPool string `json:"bypassNICPool,omitempty"`

	// nodeSelector selects nodes by their labels.
	// +optional
	NodeSelector *NodeSelector `json:"nodeSelector,omitempty"`

	// names are the names of nodes, 1 to 128.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	Names []string `json:"names,omitempty"`
}

// JitterTest has the parameters of kind Jitter.
type JitterTest struct {
	// cpus is how many CPUs of each node are measured at the same time, 1 to 512. The pod asks for one core more, from which
	// it reads the kernel's counters, and for whole cores where threads share them. Which CPUs they are is up to the kubelet.
	// When omitted, this means the user has no opinion and the operator chooses a default, which is subject to change over
	// time. The current default is 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=512
	// +optional
	CPUs int32 `json:"cpus,omitempty"`

	// thresholdNanoseconds is the least length of an interruption, 100 to 1000000. When omitted, this means the user has no
	// opinion and the operator chooses a default, which is subject to change over time. The current default is 500.
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	ThresholdNanoseconds int32 `json:"thresholdNanoseconds,omitempty"`
}

// TestTraffic says between which ends messages go, and how. Both ends are pods of Jobs, as that of kind Jitter: Guaranteed, with whole
// CPUs, without rights. The program is not that of the operator, but of the image lowlatency-traffic, which has a C library that a
// stack such as Onload takes over.
//
// +kubebuilder:validation:XValidation:rule="!has(self.multicastGroup) || self.transport == 'Multicast'",message="spec.traffic.multicastGroup stands with transport Multicast only."
type TestTraffic struct {
	// server is the end that answers.
	// +required
	Server TestServer `json:"server"`

	// client is the end that measures, on each of spec.nodes. When omitted, it is a pod on the pods' own network.
	// +optional
	Client *TestEnd `json:"client,omitempty"`

	// transport is TCP, UDP or Multicast. TCP: one connection without Nagle's algorithm. UDP: unicast. Multicast: datagrams to the
	// group of multicastGroup in both directions. Both ends join it on the interface by which they reach each other: the NIC of their pool, where they
	// have one. Members of a group receive what all others send to it, so only one node is measured at a time on one group, of whichever test.
	// +required
	Transport TestTransport `json:"transport"`

	// multicastGroup is the group of transport Multicast, of IPv4, 224.0.2.0 to 231.255.255.255 or 233.0.0.0 to 239.255.255.255. Set it where the network
	// forwards only groups that it knows, or the group is in use. When omitted, this means the user has no opinion and the operator chooses a default,
	// which is subject to change over time. The current default is 224.1.2.48, that of sfnt-pingpong.
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="self.matches('^((22[4-9]|23[0-9])([.](25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])){3}|[fF]{2}[0-9a-fA-F]{0,2}:.*)$')",message="a group of multicast is an address of IPv4 from 224.0.0.0 to 239.255.255.255, such as 239.192.1.7."
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[fF]{2}[0-9a-fA-F]{0,2}:')",message="a group of ff00::/8 cannot be measured: messages of LatencyTests go over IPv4, so name a group of IPv4, such as 239.192.1.7."
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('224.0.0.')",message="groups of 224.0.0.0/24 belong to the protocols of routers and switches on one link (RFC 5771), which a measurement would disturb: name another one, such as 239.192.1.7."
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('224.0.1.')",message="groups of 224.0.1.0/24 belong to protocols of the network such as PTP and NTP (RFC 5771), which a measurement would disturb: name another one, such as 239.192.1.7."
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('232.')",message="groups of 232.0.0.0/8 are joined with a source (RFC 4607), and both ends join without one: name another one, such as 239.192.1.7."
	// +optional
	MulticastGroup string `json:"multicastGroup,omitempty"`

	// waiting is Spin or Block: how both ends wait for a message. Spin asks the socket again and again, Block sleeps in the kernel.
	// When omitted, this means the user has no opinion and the operator chooses a default, which is subject to change over
	// time. The current default is Spin.
	// +optional
	Waiting TestWaiting `json:"waiting,omitempty"`
}

// TestTransport is what carries messages.
//
// +kubebuilder:validation:Enum=TCP;UDP;Multicast
type TestTransport string

const (
	// TransportTCP is a connection without Nagle's algorithm.
	TransportTCP TestTransport = "TCP"
	// TransportUDP is unicast.
	TransportUDP TestTransport = "UDP"
	// TransportMulticast is UDP to a group, in both directions.
	TransportMulticast TestTransport = "Multicast"
)

// TestWaiting is how a program waits for a message.
//
// +kubebuilder:validation:Enum=Spin;Block
type TestWaiting string

const (
	// WaitingSpin asks the socket again and again.
	WaitingSpin TestWaiting = "Spin"
	// WaitingBlock sleeps in the kernel.
	WaitingBlock TestWaiting = "Block"
)

// ServerPlacement says which node runs the server.
//
// +kubebuilder:validation:Enum=Nodes;SameNode
type ServerPlacement string

const (
	// ServerOnNodes is one of the nodes that are named.
	ServerOnNodes ServerPlacement = "Nodes"
	// ServerOnSameNode is the measured node itself, in another pod.
	ServerOnSameNode ServerPlacement = "SameNode"
)

// TestServer is the end that answers.
//
// +kubebuilder:validation:XValidation:rule="(self.placement == 'Nodes') == has(self.nodeNames)",message="spec.traffic.server.nodeNames stands with placement Nodes, which needs it, and with no other."
type TestServer struct {
	// placement is Nodes or SameNode. Nodes: the first of nodeNames that is not the measured node and that no test uses runs the
	// server; without one, the measured node waits. SameNode: the server is another pod of the measured node; the kubelet chooses
	// its CPUs, and with them the NUMA node.
	// +required
	Placement ServerPlacement `json:"placement"`

	// nodeNames are the names of nodes that may run the server, 1 to 16, the preferred one first. No test measures a node while it
	// runs a server. A node that is the only one named is not measured, although spec.nodes may select it: no other could run its server.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +optional
	NodeNames []string `json:"nodeNames,omitempty"`

	TestEnd `json:",inline"`
}

// TestEnd is what the pod of an end asks for.
//
// +kubebuilder:validation:XValidation:rule="!has(self.address) || has(self.bypassNICPool)",message="an address needs bypassNICPool, whose network attachment takes it."
// +kubebuilder:validation:XValidation:rule="!has(self.sockets) || has(self.bypassNICPool)",message="sockets needs bypassNICPool: without a pool there is no stack, and all sockets are the kernel's."
type TestEnd struct {
	// bypassNICPool is the name of a BypassNICPool. The pod asks for one unit of its resource, so that the stack of the pool is there as in any other
	// pod, and for the network that the pool makes in the namespace of the test. Where the allocation of the pool is DynamicResourceAllocation, the
	// scheduler makes the claim, from Kubernetes 1.36 on. When omitted, the pod has the pods' own network alone.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +optional
	BypassNICPool string `json:"bypassNICPool,omitempty"`

	// address is the IPv4 address of the interface in the network of the pool, with the length of its prefix, such as
	// 192.0.2.31/24. A pool whose addresses are Static needs it. With stack AFXDP it is what messages carry from a NIC that has no address. A
	// test with an address measures one node at a time. When omitted, the address is what the network gives, or the NIC has.
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=18
	// +kubebuilder:validation:XValidation:rule="self.matches('^((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])[.]){3}(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])/(3[0-2]|[12]?[0-9])$')",message="an address is one of IPv4 with the length of its prefix, such as 192.0.2.31/24."
	// +optional
	Address string `json:"address,omitempty"`

	// sockets is Pool or Kernel. Pool: the program starts as the stack of the pool has it. Kernel: it starts without what a stack is preloaded and set by
	// (LD_PRELOAD, and variables such as EF_), so that its sockets are the kernel's on the NIC of the pool. When omitted, it is Pool.
	// +optional
	Sockets TestSockets `json:"sockets,omitempty"`
}

// TestSockets says whose sockets a program has.
//
// +kubebuilder:validation:Enum=Pool;Kernel
type TestSockets string

const (
	// TestSocketsPool are those that the stack of a pool makes of them.
	TestSocketsPool TestSockets = "Pool"
	// TestSocketsKernel are the kernel's own.
	TestSocketsKernel TestSockets = "Kernel"
)

// PingPongTest has the parameters of kind PingPong, ContainerVersusHost and StackComparison.
//
// +kubebuilder:validation:XValidation:rule="!has(self.messagesPerSize) || self.messagesPerSize * (has(self.sizes) ? size(self.sizes) : 8) <= 40000000",message="a measurement has 40000000 messages at most: lower spec.pingPong.messagesPerSize, or name fewer spec.pingPong.sizes (8 when omitted)."
type PingPongTest struct {
	// sizes are those of the messages in bytes, 1 to 20 of 0 to 65536. The histogram of the result is that of the first. When
	// omitted, this means the user has no opinion and the operator chooses a default, which is subject to change over time. The
	// current default is 64, 1, 32, 128, 256, 512, 1024 and 1472.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=65536
	// +listType=set
	// +optional
	Sizes []int32 `json:"sizes,omitempty"`

	// messagesPerSize is with how many messages a size ends, 1000 to 20000000, and 40000000 of all sizes together, because the client keeps the times of
	// all of them: its pod asks for 48 MiB for each million. A percentile takes a hundred messages above it, in every repetition: P9999 a million, and P99999
	// ten million, with some more where messages may be lost. durationSeconds has to have time for them: ten million take 100 s at a round trip of
	// 10 µs. When omitted, this means the user has no opinion and the operator chooses a default, which is subject to change over time. The
	// current default is 1000000.
	// +kubebuilder:validation:Minimum=1000
	// +kubebuilder:validation:Maximum=20000000
	// +optional
	MessagesPerSize int32 `json:"messagesPerSize,omitempty"`
}

// RateSweepTest has the parameters of kind RateSweep.
type RateSweepTest struct {
	// messagesPerSecond are the rates, 1 to 8 of 1 to 5000000 messages a second, in the order of the measurement. A rate that the
	// client missed by more than 10 % is the last. The histogram of the result is that of the first. When omitted, this means the
	// user has no opinion and the operator chooses a default, which is subject to change over time. The current default is 10000,
	// 50000 and 100000.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=5000000
	// +listType=set
	// +optional
	MessagesPerSecond []int32 `json:"messagesPerSecond,omitempty"`

	// bytes is the size of messages, 24 to 65507. When omitted, this means the user has no opinion and the operator chooses a
	// default, which is subject to change over time. The current default is 64.
	// +kubebuilder:validation:Minimum=24
	// +kubebuilder:validation:Maximum=65507
	// +optional
	Bytes int32 `json:"bytes,omitempty"`

	// answersPerRate is of how many messages of each rate the time is taken at least, where so many are sent, 1000 to 1000000; twice
	// as many at most. The server answers these alone, so that the way back is quiet. 99 % takes 10000 of them, 99.9 % 100000. When
	// omitted, this means the user has no opinion and the operator chooses a default, which is subject to change over time. The
	// current default is 120000.
	// +kubebuilder:validation:Minimum=1000
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	AnswersPerRate int32 `json:"answersPerRate,omitempty"`
}

// LatencyPath is the way that messages took, by what the kernel counted at both ends.
//
// +kubebuilder:validation:Enum=Kernel;Accelerated;Mixed;Unknown
type LatencyPath string

const (
	// LatencyPathKernel is the network stack of the kernel.
	LatencyPathKernel LatencyPath = "Kernel"
	// LatencyPathAccelerated is past the network stack of the kernel.
	LatencyPathAccelerated LatencyPath = "Accelerated"
	// LatencyPathMixed is one end this way and the other that way, or some messages of an end.
	LatencyPathMixed LatencyPath = "Mixed"
	// LatencyPathUnknown is where the counters could not be read.
	LatencyPathUnknown LatencyPath = "Unknown"
)

// LatencyBudget is what a node may show at most. A value that equals the bound is within it.
//
// +kubebuilder:validation:MinProperties=1
type LatencyBudget struct {
	// maximumNanoseconds bounds the longest interruption, or the longest latency of a message, 1 to 10000000000. When omitted, it
	// is not judged.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000000000
	// +optional
	MaximumNanoseconds int64 `json:"maximumNanoseconds,omitempty"`

	// stolenPartsPerMillion bounds the share of time that was taken from the measured CPU which lost most, 1 to 1000000. When
	// omitted, it is not judged.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	StolenPartsPerMillion int32 `json:"stolenPartsPerMillion,omitempty"`

	// lossPartsPerMillion bounds the share of messages that are lost, 0 to 1000000. When omitted, it is not judged.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	LossPartsPerMillion *int32 `json:"lossPartsPerMillion,omitempty"`

	// latePartsPerMillion bounds the share of messages that left more than an interval of their rate after their time, 0 to 1000000:
	// the CPU of the client was held up. When omitted, it is not judged.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	LatePartsPerMillion *int32 `json:"latePartsPerMillion,omitempty"`

	// minimumMessagesPerSecond is the rate that must pass, 1 to 5000000. When omitted, any rate is good enough that was found.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5000000
	// +optional
	MinimumMessagesPerSecond int32 `json:"minimumMessagesPerSecond,omitempty"`

	// path is Accelerated or Kernel: the way that messages have to take by what the kernel counts at both ends. A result of
	// another way is Inconclusive: it says nothing about this one. When omitted, the way is told and not judged.
	// +kubebuilder:validation:Enum=Accelerated;Kernel
	// +optional
	Path LatencyPath `json:"path,omitempty"`

	// percentiles bound single percentiles, of each size or rate of messages, at most 6. When omitted, none is judged.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=6
	// +listType=map
	// +listMapKey=percentile
	// +optional
	Percentiles []LatencyPercentile `json:"percentiles,omitempty"`

	// ratios bound how many times as long messages of each size may take as on the side with which others are compared, at most 6 percentiles. The whole
	// interval of confidence has to be within the bound for a pass, and beyond it for a failure. When omitted, any ratio is good enough that was
	// found.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=6
	// +listType=map
	// +listMapKey=percentile
	// +optional
	Ratios []LatencyRatioBound `json:"ratios,omitempty"`
}

// PercentileName is a percentile as people write it, without the point.
//
// +kubebuilder:validation:Enum=P50;P90;P99;P999;P9999;P99999
type PercentileName string

const (
	// P50 is the median.
	P50 PercentileName = "P50"
	// P90 leaves 10 of 100 above it.
	P90 PercentileName = "P90"
	// P99 leaves 1 of 100 above it.
	P99 PercentileName = "P99"
	// P999 is 99.9 %.
	P999 PercentileName = "P999"
	// P9999 is 99.99 %.
	P9999 PercentileName = "P9999"
	// P99999 is 99.999 %.
	P99999 PercentileName = "P99999"
)

// LatencyPercentile is a percentile with its value, or with its bound.
type LatencyPercentile struct {
	// percentile is P50, P90, P99, P999 (99.9 %), P9999 or P99999. Of kind Jitter it is over time: at a random
	// moment, the interruption that is going on is at most so long, and 0 when none is. Of the other kinds it is over messages,
	// and takes a hundred of them above it: P99999 ten million.
	// +required
	Percentile PercentileName `json:"percentile"`

	// nanoseconds is the value or the bound, 0 to 10000000000.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000000000
	// +required
	Nanoseconds int64 `json:"nanoseconds"`
}
