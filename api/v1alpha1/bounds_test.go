// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// bound is a constant with the places that it bounds, each a kind's short name and a path.
type bound struct {
	maximum int64
	keyword string
	places  string
}

// bounds holds each constant of bounds.go against its places.
func bounds() []bound {
	return slices.Concat(sharedBounds(), objectBounds(), selectorBounds(), profileBounds(), nodeBounds(), poolBounds(), testBounds(), repetitionBounds())
}

func objectBounds() []bound {
	all := func(fields ...string) string {
		lists := []string{"lln: status.findings[]", "lln: status.drift[]", "llnp: status.findings[]"}
		places := make([]string, 0, len(lists)*len(fields))
		for _, field := range fields {
			for _, list := range lists {
				places = append(places, list+".objects."+field)
			}
		}
		return strings.Join(places, " ")
	}
	return []bound{
		{v1alpha1.MaxFindingInterrupts, "maxItems", all("interrupts")},
		{v1alpha1.MaxFindingNICs, "maxItems", all("nics")},
		{v1alpha1.MaxFindingNUMANodes, "maxItems", all("numaNodes")},
		{v1alpha1.MaxFindingProcesses, "maxItems", all("processes")},
		{v1alpha1.MaxFindingContainers, "maxItems", all("containers")},
		{v1alpha1.MaxFindingFiles, "maxItems", all("files")},
		{v1alpha1.MaxFindingObjects, "maximum", all("counts.cpus", "counts.interrupts", "counts.nics", "counts.numaNodes", "counts.processes",
			"counts.containers", "counts.files")},
		{v1alpha1.MaxInterruptIDLength, "maxLength", all("interrupts[].id")},
		{v1alpha1.MaxInterruptHandlersLength, "maxLength", all("interrupts[].handlers")},
		{v1alpha1.MaxProcessID, "maximum", all("processes[].pid", "processes[].thread")},
		{v1alpha1.MaxProcessNameLength, "maxLength", all("processes[].name")},
		{v1alpha1.MaxContainerPathLength, "maxLength", all("containers[]") + " bnp: status.findings[].container"},
		{v1alpha1.MaxFindingFileLength, "maxLength", all("files[]")},
	}
}

func sharedBounds() []bound {
	return []bound{
		{v1alpha1.MaxObjectNameLength, "maxLength", "lln: spec.bypassPools[] spec.plannedPools[].name spec.bypassNICs[].pool bnp: spec.sharing.withPools[] status.findings[].conflictingPools[] lt: spec.nodes.profile spec.nodes.bypassNICPool"},
		{v1alpha1.MaxNameLength, "maxLength", `bnp: status.findings[].node status.members[].node llnp: spec.containerRuntime.runtimeClassName status.findings[].node
			status.shapes[].pool lln: spec.planConfigMap spec.profile status.bypassNICs[].pool
			status.bypassNICs[].users[].pod lt: spec.nodes.names[] status.results[].node status.results[].measured.fingerprint.stacks[].pool status.results[].measured.network.serverFingerprint.stacks[].pool status.results[].previous.fingerprint.stacks[].pool status.results[].previous.network.serverFingerprint.stacks[].pool status.results[].pendingFingerprint.stacks[].pool lln: spec.qualification.fingerprint.stacks[].pool`},
		{v1alpha1.MaxNamespaceLength, "maxLength", `llnp: spec.verification.qualification.tests[].namespace bnp: spec.networkAttachment.namespaces[] lln: spec.qualification.test.namespace status.bypassNICs[].users[].container
			status.bypassNICs[].users[].namespace`},
		{v1alpha1.MaxMatchLabels, "maxProperties", `bnp: spec.nodeSelector.matchLabels llnp: spec.nodeSelector.matchLabels
			spec.pools.existing.machineConfigLabels spec.pools.existing.machineConfigPoolSelector lt: spec.nodes.nodeSelector.matchLabels`},
		{v1alpha1.MaxMatchExpressions, "maxItems", "bnp: spec.nodeSelector.matchExpressions llnp: spec.nodeSelector.matchExpressions lt: spec.nodes.nodeSelector.matchExpressions"},
		{v1alpha1.MaxExpressionValues, "maxItems", "bnp: spec.nodeSelector.matchExpressions[].values llnp: spec.nodeSelector.matchExpressions[].values lt: spec.nodes.nodeSelector.matchExpressions[].values"},
		{v1alpha1.MaxLabelKeyLength, "maxLength", "bnp: spec.nodeSelector.matchExpressions[].key llnp: spec.nodeSelector.matchExpressions[].key lt: spec.nodes.nodeSelector.matchExpressions[].key"},
		{v1alpha1.MaxLabelValueLength, "maxLength", `bnp: spec.nodeSelector.matchExpressions[].values[] spec.nodeSelector.matchLabels[]
			llnp: spec.nodeSelector.matchExpressions[].values[] spec.nodeSelector.matchLabels[]
			spec.pools.existing.machineConfigLabels[] spec.pools.existing.machineConfigPoolSelector[] lt: spec.nodes.nodeSelector.matchExpressions[].values[] spec.nodes.nodeSelector.matchLabels[]`},
		{v1alpha1.MaxHashLength, "maxLength", `llnp: status.shapes[].hash lln: spec.planHash spec.pendingPlanHash status.inventory.hash
			status.enactment.planHash status.enactment.inForcePlanHash
			status.transitions[].planHash status.verifiedPlanHash lt: status.results[].measured.parametersHash status.results[].previous.parametersHash status.results[].measured.fingerprint.commandLineHash status.results[].measured.network.serverFingerprint.commandLineHash status.results[].measured.fingerprint.planHash status.results[].measured.network.serverFingerprint.planHash status.results[].measured.fingerprint.nicsHash status.results[].measured.network.serverFingerprint.nicsHash status.results[].previous.fingerprint.commandLineHash status.results[].previous.network.serverFingerprint.commandLineHash status.results[].previous.fingerprint.planHash status.results[].previous.network.serverFingerprint.planHash status.results[].previous.fingerprint.nicsHash status.results[].previous.network.serverFingerprint.nicsHash status.results[].pendingFingerprint.commandLineHash status.results[].pendingFingerprint.planHash status.results[].pendingFingerprint.nicsHash lln: spec.qualification.fingerprint.commandLineHash spec.qualification.fingerprint.planHash spec.qualification.fingerprint.nicsHash spec.qualification.fingerprint.mitigationsHash status.inventory.mitigationsHash lt: status.results[].measured.fingerprint.mitigationsHash status.results[].measured.network.serverFingerprint.mitigationsHash status.results[].previous.fingerprint.mitigationsHash status.results[].previous.network.serverFingerprint.mitigationsHash status.results[].pendingFingerprint.mitigationsHash`},
		{v1alpha1.MaxCheckLength, "maxLength", `llnp: spec.verification.waivedChecks[].check status.findings[].check lln: status.drift[].check
			status.findings[].check status.transitions[].check`},
		{v1alpha1.MaxGeneration, "maximum", `bnp: status.observedGeneration llnp: status.observedGeneration lln:
			spec.plannedPools[].generation status.bypassNICs[].poolGeneration status.drift[].drifted status.drift[].repaired
			status.observedGeneration status.enactment.number status.enactment.refusal.number status.enactment.key.serial lt: status.observedGeneration status.results[].measured.timeLine.elapsedNanoseconds status.results[].previous.timeLine.elapsedNanoseconds status.results[].measured.timeLine.longestNanoseconds[] status.results[].previous.timeLine.longestNanoseconds[] status.results[].measured.interruptions status.results[].previous.interruptions status.results[].earlier[].least status.results[].earlier[].most status.results[].measured.maximumNanoseconds status.results[].previous.maximumNanoseconds status.results[].measured.repetitionMaximumsNanoseconds[] status.results[].previous.repetitionMaximumsNanoseconds[]`},
		{v1alpha1.MaxConditions, "maxItems", "bnp: status.conditions llnp: status.conditions lln: status.conditions lt: status.conditions"},
		{v1alpha1.MaxCPUListLength, "maxLength", `llnp: spec.cpus.explicit.dataPlane spec.cpus.explicit.housekeeping spec.cpus.explicit.isolated
			spec.cpus.explicit.offline spec.cpus.explicit.shared status.shapes[].housekeeping
			status.shapes[].isolated lln: status.inventory.l3Domains[] status.inventory.nics[].localCPUs
			status.inventory.numaNodes[].cpus status.inventory.efficiencyCPUs status.inventory.offlineCPUs status.inventory.onlineCPUs
			status.inventory.packages[] status.software.possibleCPUs status.findings[].objects.cpus status.drift[].objects.cpus llnp: status.findings[].objects.cpus lt: status.results[].measured.cpus status.results[].previous.cpus`},
		{v1alpha1.MaxNUMANodeID, "maximum", `bnp: spec.nics[].numaNodes[] status.members[].nics[].numaNode llnp:
			spec.memory.hugepages[].numaNode lln: status.bypassNICs[].numaNode
			status.inventory.nics[].numaNode status.inventory.numaNodes[].id status.findings[].objects.numaNodes[]
			status.drift[].objects.numaNodes[] llnp: spec.network.nics[].numaNodes[] status.findings[].objects.numaNodes[]`},
		{v1alpha1.MaxCommandLineLength, "maxLength", "llnp: status.shapes[].kernelArguments lln: status.inventory.kernelCommandLine"},
		{v1alpha1.MaxFindingMessageLength, "maxLength", "bnp: status.findings[].message llnp: status.findings[].message lln: status.findings[].message"},
		{v1alpha1.MaxReportedPCIAddressLength, "maxLength", `bnp: status.findings[].pciAddress status.members[].nics[].pciAddress lln:
			spec.bypassNICs[].pciAddress status.bypassNICs[].pciAddress status.inventory.nics[].pciAddress
			status.inventory.nics[].physicalFunction status.findings[].objects.nics[]
			status.drift[].objects.nics[] llnp: status.findings[].objects.nics[]`},
		{v1alpha1.MaxReportedInterfaceNameLength, "maxLength", "lln: status.bypassNICs[].interfaceName status.inventory.nics[].interfaceName"},
		{v1alpha1.MaxReportedDriverLength, "maxLength", "lln: status.inventory.nics[].driver spec.qualification.fingerprint.drivers[].name lt: status.results[].measured.fingerprint.drivers[].name status.results[].measured.network.serverFingerprint.drivers[].name status.results[].previous.fingerprint.drivers[].name status.results[].previous.network.serverFingerprint.drivers[].name status.results[].pendingFingerprint.drivers[].name"},
		{v1alpha1.MaxReportedNodes, "maximum", `bnp: status.nics.eligible status.nics.found status.nics.healthy status.nodes.matched
			status.nodes.reporting llnp: status.nodes.applied status.nodes.deJittered status.nodes.matched
			status.nodes.numaAligned status.nodes.planned status.nodes.pending status.shapes[].nodes status.shapes[].pending lt: status.nodes.selected status.nodes.passed status.nodes.failed status.nodes.inconclusive status.nodes.stale status.nodes.running status.nodes.waiting`},
		{v1alpha1.MaxReportedCores, "maximum", `llnp: status.shapes[].partition.askedCores status.shapes[].partition.housekeepingCores
			status.shapes[].partition.isolatedCores`},
		{v1alpha1.MaxHugepages, "maximum", "bnp: spec.hugepages[].countPerNIC llnp: spec.memory.hugepages[].count"},
	}
}

// selectorBounds are those of a NICSelector, which the profile and the pool have in common.
func selectorBounds() []bound {
	both := func(suffix string) string {
		return "llnp: spec.network.nics[]." + suffix + " bnp: spec.nics[]." + suffix
	}
	return []bound{
		{v1alpha1.MaxPCIIDLength, "maxLength", both("vendor") + " lln: status.inventory.nics[].vendor status.inventory.nics[].device"},
		{v1alpha1.MaxPCIIDLength, "maxLength", both("devices[]")},
		{v1alpha1.MaxDriverNameLength, "maxLength", both("drivers[]")},
		{v1alpha1.MaxInterfacePatternLength, "maxLength", both("interfaces[]")},
		{v1alpha1.MaxPCIAddressLength, "maxLength", both("pciAddresses[]")},
		{v1alpha1.MaxSelectorDevices, "maxItems", both("devices")},
		{v1alpha1.MaxSelectorDrivers, "maxItems", both("drivers")},
		{v1alpha1.MaxSelectorInterfaces, "maxItems", both("interfaces")},
		{v1alpha1.MaxSelectorAddresses, "maxItems", both("pciAddresses")},
		{v1alpha1.MaxSelectorNUMANodes, "maxItems", both("numaNodes")},
	}
}

func profileBounds() []bound {
	return []bound{
		{v1alpha1.MaxHousekeepingCores, "maximum", "llnp: spec.cpus.derived.housekeepingCores"},
		{v1alpha1.MaxHugepageReservations, "maxItems", "llnp: spec.memory.hugepages"},
		{v1alpha1.MaxKernelArguments, "maxItems", "llnp: spec.kernel.additionalArguments"},
		{v1alpha1.MaxKernelArgumentLength, "maxLength", "llnp: spec.kernel.additionalArguments[]"},
		{v1alpha1.MaxProcessorNumber, "maximum", "lln: status.inventory.processorFamily status.inventory.processorModelNumber"},
		{v1alpha1.MaxFrequencyKilohertz, "maximum", `llnp: spec.power.housekeepingMaximumFrequencyKilohertz
			spec.power.isolatedMaximumFrequencyKilohertz`},
		{v1alpha1.MaxKubeletConfigurationLength, "maxLength", "llnp: spec.kubelet.additionalConfiguration"},
		{v1alpha1.MaxQuantityLength, "maxLength", `llnp: spec.kubelet.evictionHardMemory spec.kubelet.kubeReservedMemory
			spec.kubelet.systemReservedMemory`},
		{v1alpha1.MaxNetworkNICs, "maxItems", "llnp: spec.network.nics"},
		{v1alpha1.MaxUnavailableNodes, "maximum", "llnp: spec.pools.maximumUnavailableNodes"},
		{v1alpha1.MaxReleasedNodes, "maximum", "llnp: spec.rollout.maximumReleasedNodes"},
		{v1alpha1.MaxKernelParameters, "maxItems", "llnp: spec.system.kernelParameters"},
		{v1alpha1.MaxKernelParameterLength, "maxLength", "llnp: spec.system.kernelParameters[].name spec.system.kernelParameters[].value"},
		{v1alpha1.MaxStoppedServices, "maxItems", "llnp: spec.system.stopServices"},
		{v1alpha1.MaxUnitNameLength, "maxLength", "llnp: spec.system.stopServices[] lln: status.software.kubelet.unit"},
		{v1alpha1.MaxUnloadedModules, "maxItems", "llnp: spec.system.unloadModules"},
		{v1alpha1.MaxModuleNameLength, "maxLength", "llnp: spec.system.unloadModules[]"},
		{v1alpha1.MaxInterruptionMicroseconds, "maximum", "llnp: spec.verification.budget.maximumInterruptionMicroseconds"},
		{v1alpha1.MaxStolenPartsPerMillion, "maximum", "llnp: spec.verification.budget.stolenPartsPerMillion lt: spec.budget.stolenPartsPerMillion status.results[].measured.stolenPartsPerMillion status.results[].previous.stolenPartsPerMillion"},
		{v1alpha1.MaxQualificationTests, "maxItems", "llnp: spec.verification.qualification.tests"},
		{v1alpha1.MaxWaivedChecks, "maxItems", "llnp: spec.verification.waivedChecks"},
		{v1alpha1.MaxWaiverReasonLength, "maxLength", "llnp: spec.verification.waivedChecks[].reason"},
		{v1alpha1.MaxAcceptedRisks, "maxItems", "llnp: spec.acceptedRisks"},
		{v1alpha1.MaxRiskLength, "maxLength", "llnp: spec.acceptedRisks[].setting"},
		{v1alpha1.MaxRiskReasonLength, "maxLength", "llnp: spec.acceptedRisks[].reason"},
		{v1alpha1.MaxEffectiveSettings, "maxItems", "llnp: status.effective"},
		{v1alpha1.MaxSettingFieldLength, "maxLength", "llnp: status.effective[].field"},
		{v1alpha1.MaxSettingValueLength, "maxLength", "llnp: status.effective[].value"},
		{v1alpha1.MaxShapes, "maxItems", "llnp: status.shapes"},
		{v1alpha1.MaxProfileFindings, "maxItems", "llnp: status.findings"},
	}
}

func nodeBounds() []bound {
	return []bound{
		{v1alpha1.MaxPoolsPerNode, "maxItems", "lln: spec.bypassPools spec.plannedPools bnp: status.findings[].conflictingPools"},
		{v1alpha1.MaxBootIDLength, "maxLength", "lln: status.bootID status.enactment.bootID status.transitions[].bootID"},
		{v1alpha1.MaxKernelPageSizeBytes, "maximum", "lln: status.software.kernelPageSizeBytes"},
		{v1alpha1.MaxSoftwarePathLength, "maxLength", "lln: status.software.tunedProfiles status.software.kubelet.dropInFolder status.software.kubelet.files[].path"},
		{v1alpha1.MaxKubeletFlags, "maxItems", "lln: status.software.kubelet.flags"},
		{v1alpha1.MaxKubeletFlagLength, "maxLength", "lln: status.software.kubelet.configArguments status.software.kubelet.flags[]"},
		{v1alpha1.MaxKubeletFiles, "maxItems", "lln: status.software.kubelet.files"},
		{v1alpha1.MaxKubeletFileLength, "maxLength", "lln: status.software.kubelet.files[].content"},
		{v1alpha1.MaxEnactmentWordLength, "maxLength", "lln: status.enactment.reason status.enactment.refusal.reason"},
		{v1alpha1.EnactmentKeyIDLength, "maxLength", "lln: status.enactment.key.id"},
		{v1alpha1.MaxEnactmentMessageLength, "maxLength", "lln: status.enactment.message status.enactment.refusal.message"},
		{v1alpha1.MaxDifferences, "maxItems", "lln: status.enactment.differences"},
		{v1alpha1.MaxDifferenceLength, "maxLength", "lln: status.enactment.differences[]"},
		{v1alpha1.MaxChecks, "maximum", "lln: status.checks.failed status.checks.passed status.checks.unknown status.checks.waived"},
		{v1alpha1.MaxFindings, "maxItems", "lln: status.findings"},
		{v1alpha1.MaxDecidedConditions, "maxItems", "lln: status.findings[].decides"},
		{v1alpha1.MaxConditionTypeLength, "maxLength", "lln: status.findings[].decides[]"},
		{v1alpha1.MaxFindingDetailLength, "maxLength", "lln: status.findings[].expected status.findings[].fix status.findings[].observed"},
		{v1alpha1.MaxDrift, "maxItems", "lln: status.drift"},
		{v1alpha1.MaxDriftMessageLength, "maxLength", "lln: status.drift[].message"},
		{v1alpha1.MaxUnrepairedFiles, "maxItems", "lln: status.drift[].unrepaired"},
		{v1alpha1.MaxUnrepairedLength, "maxLength", "lln: status.drift[].unrepaired[]"},
		{v1alpha1.MaxTransitions, "maxItems", "lln: status.transitions"},
		{v1alpha1.MaxTransitionWordLength, "maxLength", "lln: status.transitions[].condition status.transitions[].reason"},
		{v1alpha1.MaxTransitionMessageLength, "maxLength", "lln: status.transitions[].message"},
		{v1alpha1.MaxBypassNICs, "maxItems", "lln: status.bypassNICs spec.bypassNICs"},
		{v1alpha1.MaxNICReasons, "maxItems", "lln: status.bypassNICs[].reasons"},
		{v1alpha1.MaxNICReasonLength, "maxLength", "lln: status.bypassNICs[].reasons[]"},
		{v1alpha1.MaxNICModelLength, "maxLength", "lln: status.bypassNICs[].model"},
		{v1alpha1.MaxNICUsers, "maxItems", "lln: status.bypassNICs[].users"},
		{v1alpha1.MaxNICUserMessageLength, "maxLength", "lln: status.bypassNICs[].users[].message"},
		{v1alpha1.MaxArchitectureLength, "maxLength", "lln: status.inventory.architecture"},
		{v1alpha1.MaxProcessorVendorLength, "maxLength", "lln: status.inventory.processorVendor"},
		{v1alpha1.MaxHypervisorLength, "maxLength", "lln: status.inventory.hypervisor"},
		{v1alpha1.MaxMicrocodeLength, "maxLength", "lln: status.inventory.microcode lt: status.results[].measured.fingerprint.microcode status.results[].measured.network.serverFingerprint.microcode status.results[].previous.fingerprint.microcode status.results[].previous.network.serverFingerprint.microcode status.results[].pendingFingerprint.microcode lln: spec.qualification.fingerprint.microcode"},
		{v1alpha1.MaxInventoryTextLength, "maxLength", `lln: status.inventory.biosVersion status.inventory.kernelRelease
			status.inventory.nics[].management status.inventory.processorModel status.inventory.product lt: status.results[].measured.fingerprint.kernel status.results[].measured.network.serverFingerprint.kernel status.results[].measured.fingerprint.biosVersion status.results[].measured.network.serverFingerprint.biosVersion status.results[].previous.fingerprint.kernel status.results[].previous.network.serverFingerprint.kernel status.results[].previous.fingerprint.biosVersion status.results[].previous.network.serverFingerprint.biosVersion status.results[].pendingFingerprint.kernel status.results[].pendingFingerprint.biosVersion lln: spec.qualification.fingerprint.kernel spec.qualification.fingerprint.biosVersion spec.qualification.fingerprint.systemUUID
			lt: status.results[].measured.fingerprint.systemUUID status.results[].measured.network.serverFingerprint.systemUUID status.results[].previous.fingerprint.systemUUID status.results[].previous.network.serverFingerprint.systemUUID status.results[].pendingFingerprint.systemUUID`},
		{v1alpha1.MaxReportedFrequencyKilohertz, "maximum", "lln: status.inventory.maximumFrequencyKilohertz status.inventory.minimumFrequencyKilohertz"},
		{v1alpha1.MaxCores, "maxItems", "lln: status.inventory.cores"},
		{v1alpha1.MaxCoreLength, "maxLength", "lln: status.inventory.cores[]"},
		{v1alpha1.MaxPackages, "maxItems", "lln: status.inventory.packages"},
		{v1alpha1.MaxL3Domains, "maxItems", "lln: status.inventory.l3Domains"},
		{v1alpha1.MaxNUMANodes, "maxItems", "lln: status.inventory.numaNodes status.inventory.numaNodes[].distances"},
		{v1alpha1.MaxNUMADistance, "maximum", "lln: status.inventory.numaNodes[].distances[]"},
		{v1alpha1.MaxNodeMemoryBytes, "maximum", "lln: status.inventory.numaNodes[].memoryBytes"},
		{v1alpha1.MaxHugepageSizes, "maxItems", "lln: status.inventory.numaNodes[].hugepageSizesKibibytes"},
		{v1alpha1.MaxHugepageSizeKibibytes, "maximum", "lln: status.inventory.numaNodes[].hugepageSizesKibibytes[]"},
		{v1alpha1.MaxInventoryNICs, "maxItems", "lln: status.inventory.nics"},
		{v1alpha1.MaxReportedVirtualFunctions, "maximum", "lln: status.inventory.nics[].maximumVirtualFunctions"},
	}
}

func poolBounds() []bound {
	return []bound{
		{v1alpha1.MaxPoolNICs, "maxItems", "bnp: spec.nics"},
		{v1alpha1.MaxInterfaceNameLength, "maxLength", "bnp: spec.networkAttachment.parentInterface"},
		{v1alpha1.MaxResourceNameLength, "maxLength", "bnp: spec.resourceName"},
		{v1alpha1.MaxUnitsPerNIC, "maximum", `bnp: spec.sharing.maximumSharesPerNIC spec.stack.afxdp.queues.count
			status.members[].nics[].allocated status.members[].nics[].units lln: status.bypassNICs[].units`},
		{v1alpha1.MaxSharingPools, "maxItems", "bnp: spec.sharing.withPools"},
		{v1alpha1.MaxVLAN, "maximum", "bnp: spec.networkAttachment.virtualFunction.vlan"},
		{v1alpha1.MaxVLANPriority, "maximum", "bnp: spec.networkAttachment.virtualFunction.vlanPriority"},
		{v1alpha1.MaxTransmitMegabits, "maximum", `bnp: spec.networkAttachment.virtualFunction.minimumTransmitMegabits
			spec.networkAttachment.virtualFunction.maximumTransmitMegabits`},
		{v1alpha1.MaxQueue, "maximum", "bnp: spec.stack.afxdp.queues.first"},
		{v1alpha1.MaxPoolHugepageSizes, "maxItems", "bnp: spec.hugepages"},
		{v1alpha1.MaxVirtualFunctionsPerNIC, "maximum", "bnp: spec.virtualFunctions.countPerNIC"},
		{v1alpha1.MaxAttachmentNamespaces, "maxItems", "bnp: spec.networkAttachment.namespaces"},
		{v1alpha1.MaxSteeredPorts, "maxItems", "bnp: spec.stack.afxdp.steering.udpPorts"},
		{v1alpha1.MaxPort, "maximum", "bnp: spec.stack.afxdp.steering.udpPorts[]"},
		{v1alpha1.MaxStackVersionLength, "maxLength", `bnp: spec.stack.efvi.onloadVersion spec.stack.onload.version spec.stack.tcpDirect.onloadVersion
			spec.stack.tcpDirect.version lln: status.bypassNICs[].moduleVersion
			status.bypassNICs[].userVersion lt: status.results[].measured.fingerprint.stacks[].versions status.results[].measured.network.serverFingerprint.stacks[].versions status.results[].previous.fingerprint.stacks[].versions status.results[].previous.network.serverFingerprint.stacks[].versions status.results[].pendingFingerprint.stacks[].versions lln: spec.qualification.fingerprint.stacks[].versions`},
		{v1alpha1.MaxFingerprintDrivers, "maxItems", "lln: spec.qualification.fingerprint.drivers lt: status.results[].measured.fingerprint.drivers status.results[].measured.network.serverFingerprint.drivers status.results[].previous.fingerprint.drivers status.results[].previous.network.serverFingerprint.drivers status.results[].pendingFingerprint.drivers"},
		{v1alpha1.MaxNICVersionLength, "maxLength", "lln: status.inventory.nics[].driverVersion status.inventory.nics[].firmwareVersion spec.qualification.fingerprint.drivers[].version spec.qualification.fingerprint.drivers[].firmware lt: status.results[].measured.fingerprint.drivers[].version status.results[].measured.network.serverFingerprint.drivers[].version status.results[].previous.fingerprint.drivers[].version status.results[].previous.network.serverFingerprint.drivers[].version status.results[].pendingFingerprint.drivers[].version status.results[].measured.fingerprint.drivers[].firmware status.results[].measured.network.serverFingerprint.drivers[].firmware status.results[].previous.fingerprint.drivers[].firmware status.results[].previous.network.serverFingerprint.drivers[].firmware status.results[].pendingFingerprint.drivers[].firmware"},
		{v1alpha1.MaxFingerprintStacks, "maxItems", "lt: status.results[].measured.fingerprint.stacks status.results[].measured.network.serverFingerprint.stacks status.results[].previous.fingerprint.stacks status.results[].previous.network.serverFingerprint.stacks status.results[].pendingFingerprint.stacks lln: spec.qualification.fingerprint.stacks"},
		{v1alpha1.MaxHostPathLength, "maxLength", `bnp: spec.stack.efvi.userSpace.hostPath spec.stack.onload.userSpace.hostPath
			spec.stack.tcpDirect.userSpace.hostPath`},
		{v1alpha1.MaxOnloadOptions, "maxItems", "bnp: spec.stack.onload.options"},
		{v1alpha1.MaxOnloadOptionNameLength, "maxLength", "bnp: spec.stack.onload.options[].name"},
		{v1alpha1.MaxOnloadOptionValueLength, "maxLength", "bnp: spec.stack.onload.options[].value"},
		{v1alpha1.MaxTCPDirectAttributes, "maxItems", "bnp: spec.stack.tcpDirect.attributes"},
		{v1alpha1.MaxTCPDirectAttributeLength, "maxLength", "bnp: spec.stack.tcpDirect.attributes[].name spec.stack.tcpDirect.attributes[].value"},
		{v1alpha1.MaxPoolMembers, "maxItems", "bnp: status.members"},
		{v1alpha1.MaxMemberNICs, "maxItems", "bnp: status.members[].nics"},
		{v1alpha1.MaxPoolFindings, "maxItems", "bnp: status.findings"},
		{v1alpha1.MaxReportedUnits, "maximum", "bnp: status.nics.allocated status.nics.units"},
	}
}

// repetitionBounds are those of what measures nodes once more, and of what is compared then.
func repetitionBounds() []bound {
	return []bound{
		{v1alpha1.MaxEarlierRuns, "maxItems", "lt: status.results[].earlier"},
		{v1alpha1.MaxRepeatHours, "maximum", "lt: spec.repeatAfterHours"},
		{v1alpha1.MaxExpiryHours, "maximum", "lt: spec.expireAfterHours"},
		{v1alpha1.MaxScheduleLength, "maxLength", "lt: spec.repeatAt.schedule"},
		{v1alpha1.MaxTimeZoneLength, "maxLength", "lt: spec.repeatAt.timeZone"},
		{v1alpha1.MaxStartMinutes, "maximum", "lt: spec.repeatAt.startWithinMinutes"},
	}
}

func testBounds() []bound {
	measured := func(field string) string {
		return "lt: status.results[].measured." + field + " status.results[].previous." + field
	}
	rate := func(field string) string { return measured("network.rates[]." + field) }
	side := func(field string) string { return measured("network.comparison.sides[]." + field) }
	smis := func(field string) string {
		return measured("managementInterrupts."+field) + " lln: spec.qualification.managementInterrupts." + field + " lt:"
	}
	server := func(field string) string { return measured("network."+field) + " " + side(field) }
	both := func(field string) string { return measured(field) + " " + side(field) }
	isolation := func(field string) string { return both("isolation."+field) + " " + server("serverIsolation."+field) }
	figures := func(field string) string {
		return measured("network.sizes[]."+field) + " " + side("sizes[]."+field) + " " + rate("fromIntended."+field) + " " + rate("fromSent."+field)
	}
	return []bound{
		{v1alpha1.MaxTestNameLength, "maxLength", "llnp: spec.verification.qualification.tests[].name lln: spec.qualification.test.name lt: status.results[].job status.results[].server.job"},
		{v1alpha1.MaxTestedNodes, "maxItems", "lt: spec.nodes.names status.results"},
		{v1alpha1.MaxTestedNodes, "maximum", "lt: spec.maximumParallelNodes"},
		{v1alpha1.MaxTestDurationSeconds, "maximum", "lt: spec.durationSeconds " + measured("network.load.heldSeconds")},
		{v1alpha1.MaxTestRepetitions, "maximum", "lt: spec.repetitions"},
		{v1alpha1.MaxTestRepetitions, "maxItems", measured("repetitionMaximumsNanoseconds") + " " + measured("network.repetitionMediansNanoseconds") + " " +
			measured("network.load.repetitionBestPassesPerSecond") + " " + side("repetitionMediansNanoseconds")},
		{v1alpha1.MaxTestRuns, "maximum", "lt: spec.run status.results[].attempts " + measured("run")},
		{v1alpha1.MaxMeasuredCPUs, "maximum", "lt: spec.jitter.cpus"},
		{v1alpha1.MaxThresholdNanoseconds, "maximum", "lt: spec.jitter.thresholdNanoseconds"},
		{v1alpha1.MaxLatencyNanoseconds, "maximum", "lt: spec.budget.maximumNanoseconds spec.budget.percentiles[].nanoseconds spec.loadSearch.percentiles[].nanoseconds " + measured("percentiles[].nanoseconds") + " " +
			figures("percentiles[].nanoseconds") + " " + figures("intervals[].lowNanoseconds") + " " + figures("intervals[].highNanoseconds")},
		{v1alpha1.MaxPercentiles, "maxItems", "lt: spec.budget.percentiles spec.budget.ratios spec.loadSearch.percentiles " + measured("percentiles") + " " + figures("percentiles") + " " + figures("intervals")},
		{v1alpha1.MaxTestReasonLength, "maxLength", "lt: status.results[].reason " + measured("network.load.failReason")},
		{v1alpha1.MaxTestMessageLength, "maxLength", "lt: status.results[].message"},
		{v1alpha1.MaxCPUNumber, "maximum", measured("worstCPU") + " " + isolation("runQueue.cpu") + " " + isolation("idleStates.cpu") + " " + isolation("busy.cpu") + " " + smis("cpu")},
		{v1alpha1.MaxUnknownReasonLength, "maxLength", isolation("runQueue.unknownReason") + " " + isolation("idleStates.unknownReason") + " " + isolation("busy.unknownReason") + " " + smis("unknownReason")},
		{v1alpha1.MaxBusyPercent, "maximum", isolation("busy.percent")},
		{v1alpha1.MaxIdleStateLength, "maxLength", isolation("idleStates.name")},
		{v1alpha1.MaxGeneration, "maximum", isolation("runQueue.waitedNanoseconds") + " " + isolation("runQueue.countedNanoseconds") + " " +
			isolation("idleStates.entries") + " " + isolation("idleStates.latencyMicroseconds") + " " + isolation("idleStates.countedNanoseconds") + " " + smis("count")},
		{v1alpha1.MaxTestCauses, "maxItems", both("causes") + " " + server("serverCauses")},
		{v1alpha1.MaxTestCauseLength, "maxLength", both("causes[]") + " " + server("serverCauses[]")},
		{v1alpha1.MaxTimeSlices, "maxItems", measured("timeLine.longestNanoseconds")},
		{v1alpha1.MaxHistogramLength, "maxLength", measured("histogram") + " " + side("histogram")},
		{v1alpha1.MaxRatio, "maximum", "lt: spec.budget.ratios[].maximumPartsPerThousand"},
		{v1alpha1.MaxSides, "maxItems", "lt: spec.stackComparison.sides " + measured("network.comparison.sides")},
		{v1alpha1.MaxSideLength, "maxLength", "lt: spec.stackComparison.base spec.stackComparison.sides[].name " + measured("network.comparison.base") + " " + side("side")},
		{v1alpha1.MaxRatios, "maxItems", side("ratios")},
		{v1alpha1.MaxComparedRuns, "maximum", "lt: status.results[].comparedRuns"},
		{v1alpha1.MaxCPUListLength, "maxLength", side("cpus") + " " + server("serverCPUs")},
		{v1alpha1.MaxObjectNameLength, "maxLength", "lt: spec.traffic.client.bypassNICPool spec.traffic.server.bypassNICPool " +
			"spec.stackComparison.sides[].client.bypassNICPool spec.stackComparison.sides[].server.bypassNICPool"},
		{v1alpha1.MaxNameLength, "maxLength", "lt: spec.traffic.server.nodeNames[] status.results[].server.node " + measured("network.server")},
		{v1alpha1.MaxInventoryTextLength, "maxLength", measured("network.serverKernel")},
		{v1alpha1.MaxGeneration, "maximum", measured("network.repetitionMediansNanoseconds[]") + " " + side("repetitionMediansNanoseconds[]") + " " +
			side("ratios[].partsPerThousand") + " " + side("ratios[].lowPartsPerThousand") + " " + side("ratios[].highPartsPerThousand") + " " + side("sizes[].lost") + " " + side("sizes[].stray") + " " + figures("samples") + " " + figures("leastSamples") + " " + figures("minimumNanoseconds") + " " +
			figures("meanNanoseconds") + " " + figures("deviationNanoseconds") + " " + figures("maximumNanoseconds") + " " +
			measured("network.sizes[].lost") + " " + measured("network.sizes[].stray") + " " + rate("achievedPerSecond") + " " + rate("sent") + " " + rate("lost") + " " +
			rate("gaps") + " " + rate("duplicates") + " " + rate("reordered") + " " + rate("late") + " " + rate("maximumLatenessNanoseconds") + " " + rate("answersLost")},
		{v1alpha1.MaxTestServers, "maxItems", "lt: spec.traffic.server.nodeNames"},
		{v1alpha1.MaxTestSizes, "maxItems", "lt: spec.pingPong.sizes " + measured("network.sizes") + " " + side("sizes")},
		{v1alpha1.MaxMessageBytes, "maximum", "lt: spec.pingPong.sizes[] " + measured("network.sizes[].bytes") + " " + rate("bytes") + " " + side("sizes[].bytes") + " " + side("ratios[].bytes")},
		{v1alpha1.MaxMessagesPerSize, "maximum", "lt: spec.pingPong.messagesPerSize"},
		{v1alpha1.MaxTestRates, "maxItems", "lt: spec.rateSweep.messagesPerSecond " + measured("network.rates")},
		{v1alpha1.MaxMessagesPerSecond, "maximum", "lt: spec.rateSweep.messagesPerSecond[] spec.budget.minimumMessagesPerSecond " +
			"spec.loadSearch.lowestMessagesPerSecond spec.loadSearch.firstMessagesPerSecond spec.loadSearch.highestMessagesPerSecond " +
			rate("messagesPerSecond") + " " + measured("network.load.bestPassPerSecond") + " " + measured("network.load.lowestFailPerSecond") + " " +
			measured("network.load.repetitionBestPassesPerSecond[]")},
		{v1alpha1.MaxGranularity, "maximum", "lt: spec.loadSearch.granularityPartsPerThousand"},
		{v1alpha1.MaxProbesPerSecond, "maximum", "lt: spec.loadSearch.probesPerSecond"},
		{v1alpha1.MaxTrialSeconds, "maximum", "lt: spec.loadSearch.sniffSeconds spec.loadSearch.trialSeconds"},
		{v1alpha1.MaxConfirmSeconds, "maximum", "lt: spec.loadSearch.confirmSeconds"},
		{v1alpha1.MaxTestRetries, "maximum", "lt: spec.loadSearch.retries"},
		{v1alpha1.MaxGrowthPercent, "maximum", "lt: spec.loadSearch.growth.maximumPercent"},
		{v1alpha1.MaxTrials, "maximum", measured("network.load.trials")},
		{v1alpha1.MaxFailMessageLength, "maxLength", measured("network.load.failMessage")},
		{v1alpha1.MaxDatagramBytes, "maximum", "lt: spec.rateSweep.bytes spec.loadSearch.bytes"},
		{v1alpha1.MaxAnswersPerRate, "maximum", "lt: spec.rateSweep.answersPerRate"},
		{v1alpha1.MaxLossPartsPerMillion, "maximum", "lt: spec.budget.lossPartsPerMillion spec.budget.latePartsPerMillion spec.loadSearch.lossPartsPerMillion"},
		{v1alpha1.MaxPathMessageLength, "maxLength", measured("network.pathMessage") + " " + side("pathMessage")},
		{v1alpha1.MaxIPLength, "maxLength", "lt: spec.traffic.multicastGroup"},
		{v1alpha1.MaxIPv4Length, "maxLength", "lt: status.results[].server.address"},
		{v1alpha1.MaxIPv4PrefixLength, "maxLength", "lt: spec.traffic.client.address spec.traffic.server.address spec.stackComparison.sides[].client.address spec.stackComparison.sides[].server.address"},
	}
}

// expectedBounds returns what bounds says, with a line for each place and keyword.
func expectedBounds(t *testing.T) map[string]int64 {
	t.Helper()
	expected := map[string]int64{}
	for _, b := range bounds() {
		kind := ""
		for word := range strings.FieldsSeq(b.places) {
			if name, isKind := strings.CutSuffix(word, ":"); isKind {
				kind = name
				continue
			}
			key := fmt.Sprintf("%s %s %s", kind, word, b.keyword)
			if _, twice := expected[key]; twice {
				t.Errorf("%s is listed twice", key)
			}
			expected[key] = b.maximum
		}
	}
	return expected
}

// generatedBounds returns the upper bounds of the generated CRDs; of several at one place, the narrowest counts.
func generatedBounds(t *testing.T) map[string]int64 {
	t.Helper()
	generated := map[string]int64{}
	for _, crd := range readCRDs(t) {
		for _, version := range crd.Spec.Versions {
			walk(*version.Schema.OpenAPIV3Schema, func(n node) {
				path := strings.NewReplacer(".items", "[]", ".*", "[]").Replace(n.path)
				for keyword, value := range upperBounds(n) {
					generated[fmt.Sprintf("%s %s %s", crd.Spec.Names.ShortNames[0], path, keyword)] = value
				}
			})
		}
	}
	return generated
}

func upperBounds(n node) map[string]int64 {
	found := map[string]int64{}
	if n.foreign {
		return found
	}
	for _, schema := range restrictions(n) {
		for keyword, value := range map[string]*int64{
			"maxItems": schema.MaxItems, "maxLength": schema.MaxLength, "maxProperties": schema.MaxProperties, "maximum": whole(schema),
		} {
			if value == nil {
				continue
			}
			if narrowest, known := found[keyword]; !known || *value < narrowest {
				found[keyword] = *value
			}
		}
	}
	return found
}

func whole(schema apiextensionsv1.JSONSchemaProps) *int64 {
	if schema.Maximum == nil {
		return nil
	}
	return new(int64(math.Round(*schema.Maximum)))
}

func TestBoundsAreThoseOfTheCRDs(t *testing.T) {
	if diff := cmp.Diff(generatedBounds(t), expectedBounds(t)); diff != "" {
		t.Errorf("bounds of the CRDs (-) and of bounds.go (+):\n%s", diff)
	}
}

func TestNamesOfObjectsAreBoundedByRules(t *testing.T) {
	want := fmt.Sprintf("size(self.metadata.name) <= %d", v1alpha1.MaxObjectNameLength)
	for _, kind := range []string{"LowLatencyNodeProfile", "BypassNICPool"} {
		found := false
		for _, rule := range schemas(t)[kind+" v1alpha1"].XValidations {
			found = found || rule.Rule == want
		}
		if !found {
			t.Errorf("%s has no rule %q", kind, want)
		}
	}
}

func TestMessagesOfConditionsFitTheSchema(t *testing.T) {
	for kind, schema := range schemas(t) {
		message := schema.Properties["status"].Properties["conditions"].Items.Schema.Properties["message"]
		if *message.MaxLength < max(v1alpha1.MaxConditionMessageLength, v1alpha1.MaxNodeConditionMessageLength) {
			t.Errorf("%s: the message of a condition has %d characters", kind, *message.MaxLength)
		}
	}
}
