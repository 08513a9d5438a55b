// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

// The bounds of the API: what the markers of the fields say, for code that must keep to them. A test holds each
// constant against the generated CRDs, and each bound of the CRDs against this list. Lengths are in characters, of
// which a text never has more than bytes.

// Bounds of names and words that several kinds hold.
const (
	// MaxObjectNameLength bounds metadata.name of a LowLatencyNodeProfile and of a BypassNICPool, from which names of
	// other objects are made.
	MaxObjectNameLength = 40
	// MaxNameLength bounds the name of another object that a field holds.
	MaxNameLength = 253
	// MaxNamespaceLength bounds the name of a namespace, and of a container.
	MaxNamespaceLength = 63
	// MaxMatchLabels bounds the labels of a selector.
	MaxMatchLabels = 8
	// MaxMatchExpressions bounds the requirements of a selector, MaxExpressionValues the values of each.
	MaxMatchExpressions = 8
	MaxExpressionValues = 16
	// MaxLabelKeyLength bounds the key of a label.
	MaxLabelKeyLength = 317
	// MaxLabelValueLength bounds the value of a label.
	MaxLabelValueLength = 63
	// MaxHashLength bounds the hash of a plan or of an inventory.
	MaxHashLength = 64
	// MaxCheckLength bounds the name of a check.
	MaxCheckLength = 64
	// MaxGeneration bounds a generation and a count that never ends: the largest integer that every client of JSON
	// reads exactly.
	MaxGeneration = 1<<53 - 1
	// MaxConditions bounds status.conditions.
	MaxConditions = 16
	// MaxCPUListLength bounds a list of CPUs.
	MaxCPUListLength = 1024
	// MaxNUMANodeID is the largest number of a NUMA node.
	MaxNUMANodeID = 1023
	// MaxCommandLineLength bounds a kernel command line.
	MaxCommandLineLength = 8192
	// MaxFindingMessageLength bounds the message of a finding.
	MaxFindingMessageLength = 1024
	// MaxReportedPCIAddressLength bounds the PCI address of a NIC in a status.
	MaxReportedPCIAddressLength = 32
	// MaxReportedInterfaceNameLength bounds the name of an interface in a status.
	MaxReportedInterfaceNameLength = 32
	// MaxReportedDriverLength bounds the name of a driver in a status.
	MaxReportedDriverLength = 64
	// MaxReportedNodes bounds counts of nodes, and of NICs of a pool.
	MaxReportedNodes = 1000000
	// MaxReportedCores bounds counts of cores.
	MaxReportedCores = 1000000
	// MaxHugepages bounds the hugepages of one size.
	MaxHugepages = 1 << 24
)

// Bounds that are not in the schema, which leaves the message of a condition 32768 characters: more than tables, logs
// and people can bear.
const (
	// MaxConditionMessageLength bounds the message of a condition of a LowLatencyNodeProfile, BypassNICPool or Node.
	MaxConditionMessageLength = 1024
	// MaxNodeConditionMessageLength bounds the message of a condition of a LowLatencyNode.
	MaxNodeConditionMessageLength = 2048
)

// Bounds of the spec of a LowLatencyNodeProfile.
const (
	// MaxHousekeepingCores bounds spec.cpus.derived.housekeepingCores.
	MaxHousekeepingCores = 128
	// MaxHugepageReservations bounds spec.memory.hugepages.
	MaxHugepageReservations = 64
	// MaxKernelArguments bounds spec.kernel.additionalArguments.
	MaxKernelArguments = 64
	// MaxKernelArgumentLength bounds one of spec.kernel.additionalArguments.
	MaxKernelArgumentLength = 256
	// MaxFrequencyKilohertz bounds the frequencies of spec.power.
	MaxFrequencyKilohertz = 10000000
	// MaxKubeletConfigurationLength bounds spec.kubelet.additionalConfiguration.
	MaxKubeletConfigurationLength = 16384
	// MaxQuantityLength bounds the amounts of memory of spec.kubelet.
	MaxQuantityLength = 20
	// MaxNetworkNICs bounds spec.network.nics.
	MaxNetworkNICs = 32
	// MaxUnavailableNodes bounds spec.pools.maximumUnavailableNodes.
	MaxUnavailableNodes = 1000
	// MaxReleasedNodes bounds spec.rollout.maximumReleasedNodes.
	MaxReleasedNodes = 1000000
	// MaxKernelParameters bounds spec.system.kernelParameters.
	MaxKernelParameters = 64
	// MaxKernelParameterLength bounds name and value of one of spec.system.kernelParameters.
	MaxKernelParameterLength = 128
	// MaxStoppedServices bounds spec.system.stopServices.
	MaxStoppedServices = 64
	// MaxUnitNameLength bounds the name of a systemd unit.
	MaxUnitNameLength = 255
	// MaxUnloadedModules bounds spec.system.unloadModules.
	MaxUnloadedModules = 64
	// MaxModuleNameLength bounds the name of a kernel module.
	MaxModuleNameLength = 55
	// MaxInterruptionMicroseconds bounds spec.verification.budget.maximumInterruptionMicroseconds.
	MaxInterruptionMicroseconds = 1000000
	// MaxStolenPartsPerMillion bounds spec.verification.budget.stolenPartsPerMillion.
	MaxStolenPartsPerMillion = 1000000
	// MaxWaivedChecks bounds spec.verification.waivedChecks.
	MaxWaivedChecks = 64
	// MaxWaiverReasonLength bounds the reason of a waived check.
	MaxWaiverReasonLength = 256
	// MaxAcceptedRisks bounds spec.acceptedRisks.
	MaxAcceptedRisks = 32
	// MaxRiskLength bounds the setting of an accepted risk: a kernel parameter, "=" and its value.
	MaxRiskLength = 257
	// MaxRiskReasonLength bounds the reason of an accepted risk.
	MaxRiskReasonLength = 256
)

// Bounds of the status of a LowLatencyNodeProfile.
const (
	// MaxEffectiveSettings bounds status.effective.
	MaxEffectiveSettings = 64
	// MaxSettingFieldLength bounds the field of an effective setting.
	MaxSettingFieldLength = 128
	// MaxSettingValueLength bounds the value of an effective setting.
	MaxSettingValueLength = 1024
	// MaxShapes bounds status.shapes.
	MaxShapes = 64
	// MaxProfileFindings bounds status.findings.
	MaxProfileFindings = 64
)

// Bounds of the spec of a LowLatencyNode.
const (
	// MaxPoolsPerNode bounds spec.bypassPools and spec.plannedPools.
	MaxPoolsPerNode = 16
)

// Bounds of the status of a LowLatencyNode.
const (
	// MaxBootIDLength bounds the identifier of a boot, a UUID.
	MaxBootIDLength = 64
	// MaxChecks bounds the counts of checks.
	MaxChecks = 1000
	// MaxFindings bounds status.findings.
	MaxFindings = 128
	// MaxFindingDetailLength bounds observed, expected and fix of a finding.
	MaxFindingDetailLength = 512
	// MaxDecidedConditions bounds decides of a finding, MaxConditionTypeLength each of them.
	MaxDecidedConditions   = 4
	MaxConditionTypeLength = 64
	// MaxDrift bounds status.drift.
	MaxDrift = 128
	// MaxDriftMessageLength bounds the message of a drift.
	MaxDriftMessageLength = 1024
	// MaxKernelPageSizeBytes bounds the size of the kernel's pages.
	MaxKernelPageSizeBytes = 1 << 20
	// MaxSoftwarePathLength bounds the path of a file of the kubelet, and a folder of TuneD or the kubelet.
	MaxSoftwarePathLength = 256
	// MaxKubeletFlags bounds the flags of a kubelet, MaxKubeletFlagLength one of them, and the arguments of its unit.
	MaxKubeletFlags      = 64
	MaxKubeletFlagLength = 512
	// MaxKubeletFiles bounds the files of a kubelet's configuration, MaxKubeletFileLength the content of one.
	MaxKubeletFiles      = 17
	MaxKubeletFileLength = 16384
	// MaxEnactmentWordLength bounds the reason of an enactment.
	MaxEnactmentWordLength = 64
	// EnactmentKeyIDLength is the length of what identifies the key of a guard.
	EnactmentKeyIDLength = 16
	// MaxEnactmentMessageLength bounds the message of an enactment.
	MaxEnactmentMessageLength = 1024
	// MaxDifferences bounds what others have changed of what the guard has written, MaxDifferenceLength one of these.
	MaxDifferences      = 16
	MaxDifferenceLength = 512
	// MaxUnrepairedFiles bounds the files of a drift that could not be repaired.
	MaxUnrepairedFiles = 16
	// MaxUnrepairedLength bounds one of these.
	MaxUnrepairedLength = 512
	// MaxTransitions bounds status.transitions.
	MaxTransitions = 20
	// MaxTransitionWordLength bounds condition and reason of a transition.
	MaxTransitionWordLength = 64
	// MaxTransitionMessageLength bounds the message of a transition.
	MaxTransitionMessageLength = 512
	// MaxBypassNICs bounds status.bypassNICs and spec.bypassNICs.
	MaxBypassNICs = 256
	// MaxNICReasons bounds the reasons of a bypass NIC.
	MaxNICReasons = 8
	// MaxNICReasonLength bounds one of these.
	MaxNICReasonLength = 512
	// MaxNICModelLength bounds the model of a bypass NIC.
	MaxNICModelLength = 64
	// MaxNICUsers bounds the containers that hold units of a bypass NIC.
	MaxNICUsers = 64
	// MaxNICUserMessageLength bounds the message about one of these.
	MaxNICUserMessageLength = 512
)

// Bounds of the objects of a finding.
const (
	// MaxFindingInterrupts bounds the interrupts.
	MaxFindingInterrupts = 32
	// MaxFindingNICs bounds the NICs.
	MaxFindingNICs = 32
	// MaxFindingNUMANodes bounds the NUMA nodes.
	MaxFindingNUMANodes = 64
	// MaxFindingProcesses bounds the processes.
	MaxFindingProcesses = 16
	// MaxFindingContainers bounds the containers.
	MaxFindingContainers = 16
	// MaxFindingFiles bounds the files.
	MaxFindingFiles = 16
	// MaxFindingObjects bounds the counts of all.
	MaxFindingObjects = 1000000
	// MaxInterruptIDLength bounds the number or name of an interrupt.
	MaxInterruptIDLength = 16
	// MaxInterruptHandlersLength bounds the names of the handlers of an interrupt.
	MaxInterruptHandlersLength = 128
	// MaxProcessID is the largest number of a process (PID_MAX_LIMIT of the kernel).
	MaxProcessID = 1 << 22
	// MaxProcessNameLength bounds the name of a process.
	MaxProcessNameLength = 64
	// MaxContainerPathLength bounds a container with its pod and namespace.
	MaxContainerPathLength = 512
	// MaxFindingFileLength bounds the path of a file.
	MaxFindingFileLength = 256
)

// Bounds of status.inventory of a LowLatencyNode.
const (
	// MaxArchitectureLength bounds the architecture.
	MaxArchitectureLength = 32
	// MaxProcessorVendorLength bounds the vendor of the processors.
	MaxProcessorVendorLength = 64
	// MaxProcessorNumber bounds the numbers of a processor's family and model.
	MaxProcessorNumber = 65535
	// MaxHypervisorLength bounds the hypervisor.
	MaxHypervisorLength = 64
	// MaxMicrocodeLength bounds the microcode.
	MaxMicrocodeLength = 32
	// MaxInventoryTextLength bounds what vendors, firmware and kernel call themselves: processor model, product, BIOS
	// version, kernel release, and what a NIC carries of the node's own traffic.
	MaxInventoryTextLength = 128
	// MaxReportedFrequencyKilohertz bounds the frequencies of an inventory.
	MaxReportedFrequencyKilohertz = 1000000000
	// MaxCores bounds the cores.
	MaxCores = 4096
	// MaxCoreLength bounds the CPU list of one core.
	MaxCoreLength = 64
	// MaxPackages bounds the processor packages.
	MaxPackages = 512
	// MaxL3Domains bounds the L3 domains.
	MaxL3Domains = 512
	// MaxNUMANodes bounds the NUMA nodes, and the distances from each of them.
	MaxNUMANodes = 1024
	// MaxNUMADistance bounds a distance between NUMA nodes.
	MaxNUMADistance = 255
	// MaxNodeMemoryBytes bounds the memory of a NUMA node.
	MaxNodeMemoryBytes = 1<<53 - 1
	// MaxHugepageSizes bounds the hugepage sizes of a NUMA node.
	MaxHugepageSizes = 16
	// MaxHugepageSizeKibibytes bounds one of these.
	MaxHugepageSizeKibibytes = 1 << 30
	// MaxInventoryNICs bounds the NICs.
	MaxInventoryNICs = 256
	// MaxReportedVirtualFunctions bounds the virtual functions that a NIC offers.
	MaxReportedVirtualFunctions = 65535
)

// Bounds of a NICSelector.
const (
	// MaxPCIIDLength bounds a PCI vendor or device, which a rule narrows to four characters.
	MaxPCIIDLength = 8
	// MaxDriverNameLength bounds the name of a driver.
	MaxDriverNameLength = 63
	// MaxInterfacePatternLength bounds the name of an interface, or a pattern of names.
	MaxInterfacePatternLength = 32
	// MaxPCIAddressLength bounds a PCI address.
	MaxPCIAddressLength = 16
	// MaxSelectorDevices bounds the devices of a selector.
	MaxSelectorDevices = 32
	// MaxSelectorDrivers bounds the drivers of a selector.
	MaxSelectorDrivers = 8
	// MaxSelectorInterfaces bounds the interfaces of a selector.
	MaxSelectorInterfaces = 32
	// MaxSelectorAddresses bounds the PCI addresses of a selector.
	MaxSelectorAddresses = 64
	// MaxSelectorNUMANodes bounds the NUMA nodes of a selector.
	MaxSelectorNUMANodes = 64
)

// Bounds of the spec of a BypassNICPool.
const (
	// MaxPoolNICs bounds spec.nics.
	MaxPoolNICs = 16
	// MaxInterfaceNameLength bounds the name of an interface, as the kernel does.
	MaxInterfaceNameLength = 15
	// MaxResourceNameLength bounds spec.resourceName.
	MaxResourceNameLength = 128
	// MaxUnitsPerNIC bounds the units of a NIC: its shares, or its queues.
	MaxUnitsPerNIC = 1024
	// MaxSharingPools bounds spec.sharing.withPools: the other pools of a node.
	MaxSharingPools = MaxPoolsPerNode - 1
	// MaxVLAN is the largest number of a VLAN; 4095 is reserved (IEEE 802.1Q).
	MaxVLAN = 4094
	// MaxVLANPriority is the highest priority in the tag of a VLAN.
	MaxVLANPriority = 7
	// MaxTransmitMegabits bounds the rates of a virtual function, in megabits per second.
	MaxTransmitMegabits = 1000000
	// MaxQueue is the largest number of a queue.
	MaxQueue = 1023
	// MaxPoolHugepageSizes bounds spec.hugepages.
	MaxPoolHugepageSizes = 4
	// MaxVirtualFunctionsPerNIC bounds spec.virtualFunctions.countPerNIC.
	MaxVirtualFunctionsPerNIC = 256
	// MaxAttachmentNamespaces bounds spec.networkAttachment.namespaces.
	MaxAttachmentNamespaces = 32
	// MaxSteeredPorts bounds the ports that are steered to queues of stack AFXDP.
	MaxSteeredPorts = 16
	// MaxPort is the largest number of a port.
	MaxPort = 65535
	// MaxFingerprintStacks bounds the stacks in the fingerprint of a measured node.
	MaxFingerprintStacks = 8
	// MaxFingerprintDrivers bounds the drivers of NICs in the fingerprint of a measured node.
	MaxFingerprintDrivers = 8
	// MaxNICVersionLength bounds the version of a driver of NICs, and that of their firmware.
	MaxNICVersionLength = 64
	// MaxStackVersionLength bounds the version of a stack.
	MaxStackVersionLength = 64
	// MaxHostPathLength bounds a folder of the node.
	MaxHostPathLength = 255
	// MaxOnloadOptions bounds the options of stack Onload.
	MaxOnloadOptions = 64
	// MaxOnloadOptionNameLength bounds the name of one of these.
	MaxOnloadOptionNameLength = 64
	// MaxOnloadOptionValueLength bounds the value of one of these.
	MaxOnloadOptionValueLength = 256
	// MaxTCPDirectAttributes bounds the attributes of stack TCPDirect.
	MaxTCPDirectAttributes = 32
	// MaxTCPDirectAttributeLength bounds name and value of one of these.
	MaxTCPDirectAttributeLength = 64
)

// Bounds of the status of a BypassNICPool.
const (
	// MaxPoolMembers bounds status.members.
	MaxPoolMembers = 256
	// MaxMemberNICs bounds the NICs of a member.
	MaxMemberNICs = 64
	// MaxPoolFindings bounds status.findings.
	MaxPoolFindings = 64
	// MaxReportedUnits bounds the units of a pool.
	MaxReportedUnits = 100000000
)

// Bounds of a LatencyTest.
const (
	// MaxQualificationTests bounds spec.verification.qualification.tests of a profile.
	MaxQualificationTests = 8
	// MaxTestNameLength bounds metadata.name of a LatencyTest, which Jobs carry as a label, and the name of a Job.
	MaxTestNameLength = 63
	// MaxTestedNodes bounds the nodes of a LatencyTest: spec.nodes.names, status.results and spec.maximumParallelNodes.
	// MaxSweptNodes bounds them where rates are measured, whose results are larger.
	// MaxComparedNodes bounds them where sides are compared, and MaxComparedRows the rows of all of them: each side has
	// one, and one for each size. MaxPingPongRows bounds the rows of kind PingPong: each node has one, and one for each size. MaxIntervals bounds of how many
	// sizes and rates on all nodes the status has intervals, which would not find room with more.
	MaxTestedNodes   = 128
	MaxSweptNodes    = 64
	MaxComparedNodes = 32
	MaxComparedRows  = 576
	MaxPingPongRows  = 1152
	MaxIntervals     = 384
	// MaxTestDurationSeconds bounds spec.durationSeconds.
	MaxTestDurationSeconds = 86400
	// MaxTestRepetitions bounds spec.repetitions.
	MaxTestRepetitions = 10
	// MaxEarlierRuns bounds the runs before the previous one that are kept to compare with.
	MaxEarlierRuns = 5
	// MaxTestRuns bounds spec.run and the attempts of a result.
	MaxTestRuns = 1000000
	// MaxRepeatHours bounds spec.repeatAfterHours, MaxExpiryHours spec.expireAfterHours.
	MaxRepeatHours = 8760
	MaxExpiryHours = 87600
	// MaxScheduleLength bounds spec.repeatAt.schedule, MaxTimeZoneLength spec.repeatAt.timeZone, MaxStartMinutes spec.repeatAt.startWithinMinutes.
	MaxScheduleLength = 100
	MaxTimeZoneLength = 64
	MaxStartMinutes   = 10080
	// MaxMeasuredCPUs bounds spec.jitter.cpus.
	MaxMeasuredCPUs = 512
	// MaxThresholdNanoseconds bounds spec.jitter.thresholdNanoseconds.
	MaxThresholdNanoseconds = 1000000
	// MaxLatencyNanoseconds bounds percentiles and budgets.
	MaxLatencyNanoseconds = 10000000000
	// MaxPercentiles bounds the percentiles of a budget and of a measurement.
	MaxPercentiles = 6
	// MaxTestReasonLength bounds the reason of a result, MaxTestMessageLength its message.
	MaxTestReasonLength  = 64
	MaxTestMessageLength = 1024
	// MaxCPUNumber is the largest number of a CPU.
	MaxCPUNumber = 65535
	// MaxTestCauses bounds the causes of a measurement, MaxTestCauseLength each of them.
	MaxTestCauses      = 4
	MaxTestCauseLength = 96
	// MaxUnknownReasonLength bounds why something was not counted, MaxIdleStateLength the name of an idle state.
	MaxUnknownReasonLength = 128
	MaxIdleStateLength     = 32
	// MaxBusyPercent bounds for how much of the time a CPU was at work.
	MaxBusyPercent = 100
	// MaxHistogramLength bounds the histogram of a measurement.
	MaxHistogramLength = 2048
	// MaxTimeSlices bounds the slices of the time line of a measurement.
	MaxTimeSlices = 60
	// MaxTestServers bounds spec.traffic.server.nodeNames.
	MaxTestServers = 16
	// MaxTestSizes bounds spec.pingPong.sizes and the sizes of a measurement, MaxMessageBytes each of them. sfnt-pingpong has 19 sizes of datagrams.
	MaxTestSizes    = 20
	MaxMessageBytes = 65536
	// MaxMessagesPerSize bounds spec.pingPong.messagesPerSize, and MaxMessages those of all sizes together, whose times a client keeps in memory.
	MaxMessagesPerSize = 20000000
	MaxMessages        = 40000000
	// MaxTestRates bounds spec.rateSweep.messagesPerSecond and the rates of a measurement, MaxMessagesPerSecond each of them,
	// MaxDatagramBytes spec.rateSweep.bytes and MaxAnswersPerRate spec.rateSweep.answersPerRate.
	MaxTestRates         = 8
	MaxMessagesPerSecond = 5000000
	MaxDatagramBytes     = 65507
	MaxAnswersPerRate    = 1000000
	// MaxGranularity bounds spec.loadSearch.granularityPartsPerThousand, MaxProbesPerSecond spec.loadSearch.probesPerSecond and MaxTrialProbes those of
	// a trial. MaxTrialSeconds bounds the length of trials but that of the confirmation, which MaxConfirmSeconds bounds, and
	// MaxTestRetries how often one is made again. MaxGrowthPercent bounds spec.loadSearch.growth.maximumPercent.
	MaxGranularity     = 1000
	MaxProbesPerSecond = 100000
	MaxTrialProbes     = 5000000
	MaxTrialSeconds    = 3600
	MaxConfirmSeconds  = 43200
	MaxTestRetries     = 10
	MaxGrowthPercent   = 100000
	// MaxRatio bounds spec.budget.ratios[].maximumPartsPerThousand, MaxSides the sides of a comparison, MaxSideLength the name of one, MaxRatios the ratios of one, and
	// MaxComparedRuns its measurements.
	MaxRatio        = 1000000
	MaxSides        = 5
	MaxSideLength   = 20
	MaxRatios       = MaxTestSizes * MaxPercentiles
	MaxComparedRuns = MaxSides * MaxTestRepetitions
	// MaxTrials bounds how many trials were made.
	MaxTrials = 1000000
	// MaxFailMessageLength bounds why a rate did not pass.
	MaxFailMessageLength = 256
	// MaxLossPartsPerMillion bounds spec.budget.lossPartsPerMillion, spec.budget.latePartsPerMillion and spec.loadSearch.lossPartsPerMillion.
	MaxLossPartsPerMillion = 1000000
	// MaxPathMessageLength bounds what a measurement says of its path.
	MaxPathMessageLength = 256
	// MaxIPLength bounds an address of IPv4 or IPv6.
	MaxIPLength = 45
	// MaxIPv4Length bounds an address of IPv4, MaxIPv4PrefixLength one with the length of its prefix.
	MaxIPv4Length       = 15
	MaxIPv4PrefixLength = 18
)
