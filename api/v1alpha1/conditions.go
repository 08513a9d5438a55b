// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

// Condition types. Ready sums up the others; Degraded means that something will not solve itself;
// Stalled is present only while nothing will change without a new spec.
const (
	// ConditionReady is True when every matching node is verified for the current plan.
	ConditionReady = "Ready"
	// ConditionProgressing is True while nodes are on the way to the current plan.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when something failed that will not solve itself.
	ConditionDegraded = "Degraded"
	// ConditionStalled is True while nothing will change without a new spec.
	ConditionStalled = "Stalled"
	// ConditionApplied is True on a node whose running kernel has the plan's command line.
	ConditionApplied = "Applied"
	// ConditionDeJittered is True when the running kernel proves that isolated CPUs are left alone.
	ConditionDeJittered = "DeJittered"
	// ConditionNUMAAligned is True when CPUs, hugepages, NICs and kubelet are aligned by NUMA node.
	ConditionNUMAAligned = "NUMAAligned"
)

// Condition reasons.
const (
	// ReasonVerified means that the kernel's state satisfies the plan.
	ReasonVerified = "Verified"
	// ReasonChecksFailed means that a critical check failed.
	ReasonChecksFailed = "ChecksFailed"
	// ReasonChecksUnknown means that the facts for a critical check are missing.
	ReasonChecksUnknown = "ChecksUnknown"
	// ReasonHeartbeatStale means that the node's agent does not renew its Lease any more, so that what it proved counts no
	// longer.
	ReasonHeartbeatStale = "HeartbeatStale"
	// ReasonAwaitingInventory means that the node's agent has not reported yet.
	ReasonAwaitingInventory = "AwaitingInventory"
	// ReasonAwaitingPlan means that the node has no plan yet.
	ReasonAwaitingPlan = "AwaitingPlan"
	// ReasonAwaitingVerification means that the agent has not verified the current plan yet.
	ReasonAwaitingVerification = "AwaitingVerification"
	// ReasonRebootPending means that the running kernel has an older plan.
	ReasonRebootPending = "RebootPending"
	// ReasonTakenBack means that the guard of the host has tried the plan, and taken it back.
	ReasonTakenBack = "TakenBack"
	// ReasonRefused means that the guard of the host has refused the plan, and written nothing.
	ReasonRefused = "Refused"
	// ReasonRollingOut means that the platform is bringing the plan to the nodes.
	ReasonRollingOut = "RollingOut"
	// ReasonRolloutComplete means that all nodes have the current plan.
	ReasonRolloutComplete = "RolloutComplete"
	// ReasonPaused means that spec.rollout.state is Paused.
	ReasonPaused = "Paused"
	// ReasonPlanImpossible means that the profile cannot be met on a node.
	ReasonPlanImpossible = "PlanImpossible"
	// ReasonReleaseHeld means that more nodes are to leave the profile at once than spec.rollout.maximumReleasedNodes permits.
	ReasonReleaseHeld = "ReleaseHeld"
	// ReasonReleasing means that nodes that the profile no longer selects are being given back.
	ReasonReleasing = "Releasing"
	// ReasonNoNodes means that no node matches.
	ReasonNoNodes = "NoNodes"
	// ReasonProfilesOverlap means that another profile selects the same node.
	ReasonProfilesOverlap = "ProfilesOverlap"
	// ReasonPerformanceProfileConflict means that a PerformanceProfile governs the same pool.
	ReasonPerformanceProfileConflict = "PerformanceProfileConflict"
	// ReasonRuntimeClassConflict means that another profile has the RuntimeClass of the name that this one asks for.
	ReasonRuntimeClassConflict = "RuntimeClassConflict"
	// ReasonMachineConfigPoolConflict means that a node is in another custom pool, or that an existing pool does not fit.
	ReasonMachineConfigPoolConflict = "MachineConfigPoolConflict"
	// ReasonObjectConflict says that somebody else has made, or keeps changing, an object that the operator is to make.
	ReasonObjectConflict = "ObjectConflict"
	// ReasonPlatformFailed means that the platform reports a failure.
	ReasonPlatformFailed = "PlatformFailed"
	// ReasonRenderingLate means that the platform has not made of what was written, within ten minutes, what nodes boot with.
	ReasonRenderingLate = "RenderingLate"
	// ReasonHostRefused means that the plan cannot be written on an ordinary host as that is.
	ReasonHostRefused = "HostRefused"
	// ReasonEnactmentFailed means that a host has refused the plan or was brought back to what it was before; no further node is
	// begun.
	ReasonEnactmentFailed = "EnactmentFailed"
	// ReasonEnactmentLate means that a node is being changed for longer than it should take.
	ReasonEnactmentLate = "EnactmentLate"
	// ReasonDrainBlocked means that pods of the node whose turn it is may not be evicted.
	ReasonDrainBlocked = "DrainBlocked"
	// ReasonAsExpected means that nothing is wrong.
	ReasonAsExpected = "AsExpected"
	// ReasonDeleting means that the nodes are being given back.
	ReasonDeleting = "Deleting"
	// ReasonNICsHealthy means that every NIC that a pool may hand out is healthy.
	ReasonNICsHealthy = "NICsHealthy"
	// ReasonNICsUnhealthy means that a NIC lacks what its stack needs.
	ReasonNICsUnhealthy = "NICsUnhealthy"
	// ReasonNICsUnknown means that a node does not give a fact that the stack of a NIC needs.
	ReasonNICsUnknown = "NICsUnknown"
	// ReasonNoNICs means that a pool has no NIC that it may hand out.
	ReasonNoNICs = "NoNICs"
	// ReasonAwaitingNodes means that agents have not reported the NICs of a pool for its current spec yet.
	ReasonAwaitingNodes = "AwaitingNodes"
	// ReasonPluginsStarting means that the device plugin of a pool, or its driver for Dynamic Resource Allocation, does
	// not run on all of its nodes yet.
	ReasonPluginsStarting = "PluginsStarting"
	// ReasonAllocationChanging means that containers hold NICs of a pool in the way that its spec.allocation named
	// before, or that a kubelet counts units of the device plugin that it named before.
	ReasonAllocationChanging = "AllocationChanging"
	// ReasonNICClaimConflict means that two BypassNICPools claim the same NIC or resource name. The one that has it keeps
	// it and is not degraded.
	ReasonNICClaimConflict = "NICClaimConflict"
	// ReasonSettling means that the node proves its plan again after a failure, but not for long enough yet.
	ReasonSettling = "Settling"
	// ReasonNodeNotReady means that the kubelet of the node does not report it ready.
	ReasonNodeNotReady = "NodeNotReady"
	// ReasonAwaitingPlugins means that the device plugin or the DRA driver of a pool has not advertised the units of a node yet.
	ReasonAwaitingPlugins = "AwaitingPlugins"
	// ReasonAwaitingQualification means that a LatencyTest which the profile names has no fresh result of the node yet.
	ReasonAwaitingQualification = "AwaitingQualification"
	// ReasonQualificationFailed means that the node has failed a LatencyTest which the profile names.
	ReasonQualificationFailed = "QualificationFailed"
	// ReasonQualificationStale means that the result of a LatencyTest which the profile names does not count any more, because
	// the node has changed since, or the result has expired.
	ReasonQualificationStale = "QualificationStale"
	// ReasonQualificationMissing means that a LatencyTest which the profile names does not exist, or that none of them selects the node.
	ReasonQualificationMissing = "QualificationMissing"
	// ReasonNodesUngoverned means that a node of a pool is not governed by exactly one LowLatencyNodeProfile.
	ReasonNodesUngoverned = "NodesUngoverned"
	// ReasonTestsPassed means that every node of a LatencyTest has passed, and that the results are fresh.
	ReasonTestsPassed = "TestsPassed"
	// ReasonTestsFailed means that a node of a LatencyTest shows more than the budget allows.
	ReasonTestsFailed = "TestsFailed"
	// ReasonTestsInconclusive means that a node of a LatencyTest gave no result that can be judged.
	ReasonTestsInconclusive = "TestsInconclusive"
	// ReasonTestsRunning means that nodes of a LatencyTest are measured, or wait for it.
	ReasonTestsRunning = "TestsRunning"
	// ReasonNodesMissing means that spec.nodes.names of a LatencyTest has names that no Node has.
	ReasonNodesMissing = "NodesMissing"
	// ReasonTooManyNodes means that a LatencyTest selects more nodes than one can have.
	ReasonTooManyNodes = "TooManyNodes"
	// ReasonScheduleInvalid means that spec.repeatAt of a LatencyTest cannot be read or names a time that never comes, or that its time zone does
	// not exist. Nodes are measured, but for repetitions.
	ReasonScheduleInvalid = "ScheduleInvalid"
	// ReasonImageUnknown means that the operator does not know the image of its own program, or for a LatencyTest over the network that of lowlatency-traffic.
	ReasonImageUnknown = "ImageUnknown"
	// ReasonNamespaceNotPermitted means that a LatencyTest would have a pod in the network namespace of its nodes, and is in a namespace that is
	// not made for such pods.
	ReasonNamespaceNotPermitted = "NamespaceNotPermitted"
)

// Reasons of the results of a LatencyTest.
const (
	// TestWithinBudget: Passed.
	TestWithinBudget = "WithinBudget"
	// TestMaximumExceeded: Failed, the longest interruption is beyond the budget.
	TestMaximumExceeded = "MaximumExceeded"
	// TestStolenTimeExceeded: Failed, more time was taken from a CPU than the budget allows.
	TestStolenTimeExceeded = "StolenTimeExceeded"
	// TestPercentileExceeded: Failed, a percentile is beyond the budget.
	TestPercentileExceeded = "PercentileExceeded"
	// TestThresholdTooHigh: Inconclusive, the budget bounds interruptions that are shorter than spec.jitter.thresholdNanoseconds, which were not counted.
	TestThresholdTooHigh = "ThresholdTooHigh"
	// TestNoBudget: Inconclusive, neither the test nor the profile of the node has a budget.
	TestNoBudget = "NoBudget"
	// TestNotExclusive: Inconclusive, the kubelet gave the pod no CPUs of its own.
	TestNotExclusive = "NotExclusive"
	// TestMeasurementFailed: Inconclusive, the program of the test says why it could not measure.
	TestMeasurementFailed = "MeasurementFailed"
	// TestPodFailed: Inconclusive, the pod ended without a result.
	TestPodFailed = "PodFailed"
	// TestNotStarted: Inconclusive, the pod did not start in time, or the API server refused the Job.
	TestNotStarted = "NotStarted"
	// TestNotEnded: Inconclusive, the Job did not end within its deadline.
	TestNotEnded = "NotEnded"
	// TestBadResult: Inconclusive, what the pod left is no result.
	TestBadResult = "BadResult"
	// TestForeignPod: Inconclusive, the pod is not the one that the operator asked for.
	TestForeignPod = "ForeignPod"
	// TestJobGone: Inconclusive, somebody has deleted the Job.
	TestJobGone = "JobGone"
	// TestNodeLeft: Inconclusive, the node went away, is not Ready, or is not selected any more.
	TestNodeLeft = "NodeLeft"
	// TestNodeChanged: Inconclusive, the fingerprint of the node changed while it was measured.
	TestNodeChanged = "NodeChanged"
)

// Reasons of the results of a LatencyTest that sends messages.
const (
	// TestOverBudget: Failed, a latency is beyond the budget.
	TestOverBudget = "OverBudget"
	// TestLoss: Failed, more messages were lost than the budget allows; Inconclusive, a search found no rate without too much loss, or the base of a comparison lost too many.
	TestLoss = "Loss"
	// TestLateSends: Failed, more messages left late than the budget allows.
	TestLateSends = "LateSends"
	// TestGeneratorLimit: Inconclusive, the client did not reach a rate, which says nothing about what receives.
	TestGeneratorLimit = "GeneratorLimit"
	// TestRate: Failed, the highest rate that passes is below the one that the budget asks for; Inconclusive, the search did not tell the
	// two apart.
	TestRate = "Rate"
	// TestGrowth: Inconclusive, no rate passed, because latencies grew too much.
	TestGrowth = "Growth"
	// TestUnfinished: Inconclusive, a search had no time to come to its end.
	TestUnfinished = "Unfinished"
	// TestRatio: Failed, messages take more times as long on one side as the budget allows; Inconclusive, the measurements do not tell.
	TestRatio = "Ratio"
	// TestPathsDiffer: Inconclusive, the sides of a comparison do not have one known path, or a side took another one than it was to take.
	TestPathsDiffer = "PathsDiffer"
	// TestTooFewSamples: Inconclusive, the samples do not carry a percentile of the budget.
	TestTooFewSamples = "TooFewSamples"
	// TestNotAccelerated: Inconclusive, messages did not go past the network stack of the kernel, as the budget asks for.
	TestNotAccelerated = "NotAccelerated"
	// TestNotThroughKernel: Inconclusive, messages did not go through the network stack of the kernel, as the budget asks for.
	TestNotThroughKernel = "NotThroughKernel"
	// TestMachineBusy: Inconclusive, something else ran on the CPU of the client or of the server.
	TestMachineBusy = "MachineBusy"
	// TestUnreachable: Inconclusive, no connection reaches the server.
	TestUnreachable = "Unreachable"
	// TestStranger: Inconclusive, something else listens on the port of the server, or another version of it.
	TestStranger = "Stranger"
	// TestRefused: Inconclusive, the server will not measure so; the message is its own.
	TestRefused = "Refused"
	// TestPeerVanished: Inconclusive, the server or its node went away while it was measured.
	TestPeerVanished = "PeerVanished"
	// TestPeerFailed: Inconclusive, the pod of the server has ended by itself.
	TestPeerFailed = "PeerFailed"
	// TestNoAnswer: Inconclusive, the server is there while no message comes back.
	TestNoAnswer = "NoAnswer"
	// TestWrongAnswer: Inconclusive, an answer is not the message that was sent.
	TestWrongAnswer = "WrongAnswer"
	// TestClockUnsteady: Inconclusive, a clock went back, or its rate changed.
	TestClockUnsteady = "ClockUnsteady"
)

// Conditions of a Node, as the operator repeats those of its LowLatencyNode.
const (
	// NodeConditionDeJittered on a Node is DeJittered of its LowLatencyNode.
	NodeConditionDeJittered = "LowLatencyDeJittered"
	// NodeConditionNUMAAligned on a Node is NUMAAligned of its LowLatencyNode.
	NodeConditionNUMAAligned = "LowLatencyNUMAAligned"
	// NodeConditionReady on a Node is True while pods that need low latency may be sent there: the node is verified for
	// its current plan and boot, and its device plugins advertise. It is what the gate decides, settling times
	// included, whether or not spec.verification.gate is Taint; the node readiness controller can act on it.
	NodeConditionReady = "LowLatencyReady"
)

// Reasons of the standard conditions of a Node about its maintenance, MaintenancePlanned and the like. By this prefix the operator
// tells its own from those of others.
const (
	// NodeReasonPrefix begins them all.
	NodeReasonPrefix = "LowLatency"
	// NodeReasonPlanned means that the node waits for its turn to be changed.
	NodeReasonPlanned = NodeReasonPrefix + "PlanWaits"
	// NodeReasonChanging means that the operator changes the host.
	NodeReasonChanging = NodeReasonPrefix + "HostChanges"
	// NodeReasonDraining means that the operator evicts the pods of the node, because the host is to reboot.
	NodeReasonDraining = NodeReasonPrefix + "PodsEvicted"
	// NodeReasonDrained means that the pods are gone that the operator evicts.
	NodeReasonDrained = NodeReasonPrefix + "NodeEmpty"
)
