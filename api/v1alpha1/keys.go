// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

// Every key that the operator puts on objects, and every name by which it is known to others, is in this file. Code
// uses the constants; tests hold the manifests of config against them.

// Labels.
const (
	// LabelProfile on a Node or child object names the profile that governs it.
	LabelProfile = GroupName + "/profile"
	// LabelPool on a Node names its managed machine config pool.
	LabelPool = GroupName + "/pool"
	// LabelBypassPool on a child object names the BypassNICPool that it was made for.
	LabelBypassPool = GroupName + "/bypass-pool"
	// LabelLatencyTest on a Job and its Pod names the LatencyTest of their namespace that they were made for.
	LabelLatencyTest = GroupName + "/latency-test"
	// LabelTestClients on the Pod of a server of a LatencyTest says from where clients come that are no pods of the cluster's network: Host.
	LabelTestClients = GroupName + "/latency-test-clients"

	// LabelName is the recommended label for the name of a program.
	LabelName = "app.kubernetes.io/name"
	// LabelComponent is the recommended label for the part of a program.
	LabelComponent = "app.kubernetes.io/component"
	// LabelPartOf is the recommended label for what a program belongs to.
	LabelPartOf = "app.kubernetes.io/part-of"
	// LabelManagedBy is the recommended label for who makes an object.
	LabelManagedBy = "app.kubernetes.io/managed-by"
)

// ComponentTrafficImage is the value of LabelComponent of the PodTemplate whose container has the image lowlatency-traffic: nothing is started from
// it, and kustomize replaces images there.
const ComponentTrafficImage = "traffic-image"

// Values of LabelComponent of what runs on nodes.
const (
	// ComponentAgent is the agent of a node.
	ComponentAgent = "agent"
	// ComponentHeartbeat is the Lease of an agent.
	ComponentHeartbeat = "heartbeat"
	// ComponentDevicePlugin is the device plugin of a BypassNICPool, or its driver for Dynamic Resource Allocation.
	ComponentDevicePlugin = "device-plugin"
	// ComponentEnactment is what is about one ordinary host that is being changed: a Lease, an instruction, a pod.
	ComponentEnactment = "enactment"
	// ComponentLatencyTest is a Job of a LatencyTest.
	ComponentLatencyTest = "latency-test"
)

// Annotations.
const (
	// AnnotationStarted on a Node is the boot for which the device plugins of all pools have advertised their units.
	AnnotationStarted = GroupName + "/started"
	// AnnotationQualified on a Node is the boot in which its gate has been open: a test that is new, missing or changed does not
	// close it in that boot.
	AnnotationQualified = GroupName + "/qualified"
	// AnnotationPlanHash on an object names the plan that it carries.
	AnnotationPlanHash = GroupName + "/plan-hash"
	// AnnotationPausedFor on a MachineConfigPool says that the operator holds it until its rendered configuration has
	// everything of a plan; the value is the hash of that plan.
	AnnotationPausedFor = GroupName + "/paused-for"
	// AnnotationDigest on an object of a BypassNICPool identifies what was applied. By it a field is noticed that is not
	// to be there any more: what the desired object does not have is not compared otherwise.
	AnnotationDigest = GroupName + "/digest"

	// AnnotationCordoned on a Node says since when the operator keeps pods off it while it changes the host. A cordon without
	// it belongs to somebody else and is left alone.
	AnnotationCordoned = GroupName + "/cordoned"
	// AnnotationHeld on a Node names the labels and annotations, separated by commas, by which the operator keeps others from
	// replacing the node while it changes the host. What it does not name belongs to somebody else and is left alone.
	AnnotationHeld = GroupName + "/held"
	// AnnotationRetry on a Node asks for one more attempt with a plan that has failed there: its value is
	// status.enactment.number of the LowLatencyNode.
	AnnotationRetry = GroupName + "/retry-enactment"
	// AnnotationNumber on the ConfigMap of an instruction, and on the pod that hands it over, is its number.
	AnnotationNumber = GroupName + "/instruction"
	// AnnotationAction on that ConfigMap is Enact or Remove.
	AnnotationAction = GroupName + "/action"
	// AnnotationReboot on that ConfigMap is Allowed or Forbidden.
	AnnotationReboot = GroupName + "/reboot"

	// AnnotationNode on the Job of a LatencyTest names the node that it measures, and on objects of an enactment the node that
	// is changed.
	AnnotationNode = GroupName + "/node"
	// AnnotationRun on the Job of a LatencyTest is what spec.run of the test was when it was made.
	AnnotationRun = GroupName + "/run"
	// AnnotationParameters on the Job of a LatencyTest is the hash of the parameters that it measures with.
	AnnotationParameters = GroupName + "/parameters"

	// AnnotationClaim on a CDI specification names the ResourceClaim that it was written for.
	AnnotationClaim = GroupName + "/claim"
	// AnnotationRequest on a CDI device names the request of the claim.
	AnnotationRequest = GroupName + "/request"
	// AnnotationDevices on a CDI device names the devices of ResourceSlices that the request was given.
	AnnotationDevices = GroupName + "/devices"
)

// Taints.
const (
	// TaintUnverified keeps pods off a node whose gate is Taint until it is verified.
	TaintUnverified = GroupName + "/unverified"
	// TaintHealth is on a device of a ResourceSlice that is not healthy; its value is the health. It keeps the device
	// from new claims and leaves the pods alone that hold it.
	TaintHealth = GroupName + "/health"
)

// Finalizer lets the operator give nodes back before a profile disappears.
const Finalizer = GroupName + "/return-nodes"

// Attributes of the devices of ResourceSlices. They are in one domain for the drivers of all pools, so that one
// expression or constraint speaks of several pools.
const (
	// AttributePool names the BypassNICPool.
	AttributePool = GroupName + "/pool"
	// AttributeStack is the stack of the pool.
	AttributeStack = GroupName + "/stack"
	// AttributeSeries is the series of the NIC.
	AttributeSeries = GroupName + "/series"
	// AttributeDriver is the kernel driver of the NIC.
	AttributeDriver = GroupName + "/driver"
	// AttributeInterface is the network interface of the NIC.
	AttributeInterface = GroupName + "/interface"
	// AttributeModuleVersion is the version of the kernel module of the stack.
	AttributeModuleVersion = GroupName + "/moduleVersion"
	// AttributeUserVersion is the version of the user files of the stack.
	AttributeUserVersion = GroupName + "/userVersion"
	// AttributeLinkSpeed is the speed of the link in megabits per second.
	AttributeLinkSpeed = GroupName + "/linkSpeedMegabits"
)

// DriverSuffix ends the names of the drivers of all pools for Dynamic Resource Allocation.
const DriverSuffix = ".bypass." + GroupName

// LeaderElectionID is the name of the Lease of the manager that leads.
const LeaderElectionID = "manager." + GroupName

// Names by which the operator writes.
const (
	// ProjectName is the name of the operator: the recommended labels of its objects, and the reporter of its events.
	ProjectName = "lowlatency-operator"
	// FieldManager owns every field that the manager writes.
	FieldManager = ProjectName
	// AgentFieldManager owns the status of a LowLatencyNode.
	AgentFieldManager = "lowlatency-agent"
)

// Keys and names of ConfigMaps.
const (
	// PlanKey is the key of a plan in its ConfigMap.
	PlanKey = "plan.json"
	// PoolKey is the key of a BypassNICPool in its ConfigMap.
	PoolKey = "pool.json"
	// PoolConfigMapPrefix precedes the name of a BypassNICPool in the name of its ConfigMap.
	PoolConfigMapPrefix = "bypass-"
)
