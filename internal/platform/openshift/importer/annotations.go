// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package importer

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// The annotations that change what a PerformanceProfile means.
const (
	annotationPause          = sourceGroup + "/pause-reconcile"
	annotationRPS            = sourceGroup + "/enable-rps"
	annotationPhysicalRPS    = sourceGroup + "/enable-physical-dev-rps"
	annotationExecAffinity   = sourceGroup + "/exec-cpu-affinity"
	annotationDRA            = sourceGroup + "/dra-resource-management"
	annotationOvsDpdkBalance = sourceGroup + "/cpu-load-balancing-ovs-dpdk"
	annotationKubelet        = "kubeletconfig.experimental"
)

// annotation returns the value of an annotation, "" when it is not set.
func (c *converter) annotation(name string) string { return c.source.Metadata.Annotations[name] }

// rollout converts the annotation that pauses the operator. A PerformanceProfile keeps no pod off a node.
func (c *converter) rollout() error {
	c.spec.Verification.Gate = v1alpha1.GateReportOnly
	c.spec.Rollout.State = v1alpha1.RolloutActive
	if c.annotation(annotationPause) == "true" {
		c.spec.Rollout.State = v1alpha1.RolloutPaused
	}
	return nil
}

// packetSteering converts the annotations on receive packet steering. The one on physical devices has
// no effect without the other.
func (c *converter) packetSteering() v1alpha1.PacketSteering {
	if value := c.annotation(annotationRPS); value != "true" && value != "enable" {
		return v1alpha1.PacketSteeringOff
	}
	if c.annotation(annotationPhysicalRPS) == "true" {
		return v1alpha1.PacketSteeringAllDevices
	}
	return v1alpha1.PacketSteeringVirtualDevices
}

// containerRuntime converts the annotation on the CPU of exec processes, and keeps the name of the RuntimeClass that running
// pods use.
func (c *converter) containerRuntime() error {
	c.spec.ContainerRuntime.RuntimeClassName = "performance-" + c.source.Metadata.Name
	c.spec.ContainerRuntime.ExecPlacement = v1alpha1.ExecFirstCPU
	if c.annotation(annotationExecAffinity) == "disable" {
		c.spec.ContainerRuntime.ExecPlacement = v1alpha1.ExecAnyCPU
	}
	return nil
}

func (c *converter) dataPlaneLoadBalancing() v1alpha1.CPULoadBalancing {
	if strings.EqualFold(c.annotation(annotationOvsDpdkBalance), "disable") {
		return v1alpha1.LoadBalancingDisabled
	}
	return v1alpha1.LoadBalancingKept
}

// dynamicAllocation reports whether the kubelet's resource managers are switched off.
func (c *converter) dynamicAllocation() bool {
	on, err := strconv.ParseBool(c.annotation(annotationDRA))
	return err == nil && on
}

// unknownAnnotations remarks on annotations of the PerformanceProfile's group that this package does not
// know: they may change what it means.
func (c *converter) unknownAnnotations() {
	known := []string{annotationPause, annotationRPS, annotationPhysicalRPS, annotationExecAffinity, annotationDRA, annotationOvsDpdkBalance}
	for _, name := range slices.Sorted(maps.Keys(c.source.Metadata.Annotations)) {
		if strings.HasPrefix(name, sourceGroup+"/") && !slices.Contains(known, name) {
			c.remark("metadata.annotations["+name+"]", "the annotation is not known; what it does was not imported.")
		}
	}
}
