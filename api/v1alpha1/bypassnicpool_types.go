// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BypassNICPool hands the kernel-bypass NICs of a set of nodes to pods as an extended resource. Every unit of the
// resource stands for a NIC, a virtual function or a share of a NIC, and carries that NIC's NUMA node, so that the
// kubelet's topology manager places CPUs, hugepages and NIC together. A NIC whose stack would not accelerate, because
// a device node, a version or the control plane is missing, is advertised unhealthy, and the status says why.
//
// A pool serves nodes that a LowLatencyNodeProfile governs: hugepages, IOMMU arguments and virtual functions of the
// pool become part of that profile's plan.
//
// Never handed out are a NIC that carries the node's own traffic, and a NIC that another pool has, unless both pools
// agree to share it (spec.sharing.withPools): status.findings names them.
//
// A pod asks for a NIC as for a CPU, with a limit of the resource that spec.resourceName names:
//
//	resources:
//	  limits: {cpu: "4", memory: 2Gi, hugepages-2Mi: 800Mi, lowlatency.dev/x2: "1"}
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=bnp,categories=lowlatency
// +kubebuilder:printcolumn:name="Stack",type=string,JSONPath=`.spec.stack.type`
// +kubebuilder:printcolumn:name="Resource",type=string,JSONPath=`.spec.resourceName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes.matched`
// +kubebuilder:printcolumn:name="NICs",type=integer,JSONPath=`.status.nics.found`
// +kubebuilder:printcolumn:name="Healthy",type=integer,JSONPath=`.status.nics.healthy`
// +kubebuilder:printcolumn:name="In-use",type=integer,JSONPath=`.status.nics.allocated`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40",message="metadata.name must be at most 40 characters long, because the names of daemon sets are made from it."
type BypassNICPool struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says which NICs are handed out, and by which stack.
	// +required
	Spec BypassNICPoolSpec `json:"spec"`

	// status is what the nodes say about the NICs.
	// +optional
	Status BypassNICPoolStatus `json:"status,omitzero"`
}

// BypassNICPoolList is a list of BypassNICPool.
//
// +kubebuilder:object:root=true
type BypassNICPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []BypassNICPool `json:"items"`
}

// BypassNICPoolSpec says which NICs are handed out, and by which stack.
//
// +kubebuilder:validation:XValidation:rule="self.stack.type == 'Onload' || !has(self.networkAttachment) || !(self.networkAttachment.type in ['MACVLAN', 'IPVLAN'])",message="spec.networkAttachment.type MACVLAN and IPVLAN work with spec.stack.type Onload only: ef_vi and TCPDirect find no NIC behind them, AF_XDP sockets no queues, and a VFIO device has no network interface."
// +kubebuilder:validation:XValidation:rule="self.stack.type != 'VFIO' || !has(self.sharing) || !has(self.sharing.mode) || self.sharing.mode == 'Exclusive'",message="spec.sharing.mode Shared cannot be combined with spec.stack.type VFIO: one program owns a VFIO device."
// +kubebuilder:validation:XValidation:rule="!has(self.virtualFunctions) || !has(self.sharing) || !has(self.sharing.mode) || self.sharing.mode == 'Exclusive'",message="spec.sharing.mode Shared cannot be combined with spec.virtualFunctions: each virtual function is handed out as a whole."
// +kubebuilder:validation:XValidation:rule="!has(self.sharing) || !has(self.sharing.withPools) || self.stack.type in ['Onload', 'TCPDirect', 'EFVI']",message="spec.sharing.withPools applies to the stacks Onload, TCPDirect and EFVI only, whose programs each take virtual interfaces of one NIC; divide other NICs with spec.virtualFunctions."
// +kubebuilder:validation:XValidation:rule="self.stack.type != 'TCPDirect' || (has(self.hugepages) && self.hugepages.exists(page, page.size == '2Mi'))",message="spec.hugepages must hold pages of size 2Mi with spec.stack.type TCPDirect, which allocates its buffers from them even where the default size is another."
// +kubebuilder:validation:XValidation:rule="self.stack.type != 'VFIO' || !has(self.networkAttachment) || self.networkAttachment.type != 'HostDevice'",message="spec.networkAttachment.type HostDevice cannot be combined with spec.stack.type VFIO: a VFIO device has no network interface that could move; use SRIOV on virtual functions, or omit spec.networkAttachment."
// +kubebuilder:validation:XValidation:rule="!has(self.networkAttachment) || self.networkAttachment.type != 'SRIOV' || has(self.virtualFunctions) || self.nics.all(nic, has(nic.role) && nic.role == 'VirtualFunction')",message="spec.networkAttachment.type SRIOV needs virtual functions: set spec.virtualFunctions, or role VirtualFunction in every item of spec.nics."
// +kubebuilder:validation:XValidation:rule="!has(self.networkAttachment) || !(self.networkAttachment.type in ['HostDevice', 'SRIOV']) || !has(self.sharing) || !has(self.sharing.mode) || self.sharing.mode == 'Exclusive'",message="spec.sharing.mode Shared cannot be combined with spec.networkAttachment.type HostDevice or SRIOV, which move the interface into one pod; share with MACVLAN, IPVLAN or host networking."
// +kubebuilder:validation:XValidation:rule="!has(self.networkAttachment) || !has(self.networkAttachment.parentInterface) || (!has(self.virtualFunctions) && self.nics.all(nic, has(nic.interfaces) && nic.interfaces.all(name, name == self.networkAttachment.parentInterface)))",message="with spec.networkAttachment.type MACVLAN or IPVLAN, every item of spec.nics must name spec.networkAttachment.parentInterface as its only interface and spec.virtualFunctions must be omitted: the child is made on that interface whichever NIC the pod holds."
// +kubebuilder:validation:XValidation:rule="!has(self.virtualFunctions) || self.nics.all(nic, !has(nic.role) || nic.role == 'PhysicalFunction')",message="spec.virtualFunctions cannot be combined with role VirtualFunction in spec.nics: virtual functions are created on physical functions."
// +kubebuilder:validation:XValidation:rule="self.stack.type != 'VFIO' || has(self.virtualFunctions) || self.nics.all(nic, !has(nic.interfaces) && (!has(nic.link) || nic.link == 'Any') && (!has(nic.drivers) || 'vfio-pci' in nic.drivers))",message="with spec.stack.type VFIO and without spec.virtualFunctions, items of spec.nics must select by vendor, devices or pciAddresses, or have vfio-pci among drivers: once bound to vfio-pci, a NIC has no interface, no link and no other driver."
// +kubebuilder:validation:XValidation:rule="!has(self.allocation) || self.allocation != 'DynamicResourceAllocation' || self.stack.type != 'AFXDP'",message="spec.allocation must be DevicePlugin or omitted when spec.stack.type is AFXDP, because only the device plugin hands AF_XDP sockets over."
// +kubebuilder:validation:XValidation:rule="!has(self.allocation) || self.allocation != 'DynamicResourceAllocation' || !has(self.networkAttachment) || self.networkAttachment.type in ['MACVLAN', 'IPVLAN']",message="spec.networkAttachment.type HostDevice and SRIOV need spec.allocation DevicePlugin: Multus learns from the kubelet's device plugins which device to move into the pod; use MACVLAN or IPVLAN, or omit spec.networkAttachment."
type BypassNICPoolSpec struct {
	// nodeSelector selects the nodes by their labels. A node must carry all of them. On a node that no
	// LowLatencyNodeProfile governs, or more than one selects, nothing is handed out, and status.findings says so.
	// +required
	NodeSelector NodeSelector `json:"nodeSelector"`

	// nics select the NICs, 1 to 16 selectors. A NIC belongs to the pool when it matches one of them, each port
	// by itself, because each port is a PCI function of its own:
	//
	//	nics:
	//	- {vendor: "1924", devices: ["0b03"], drivers: [sfc]}
	//	- {vendor: "10ee", devices: ["5084"], numaNodes: [1]}
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(nic, !has(nic.interfaces) || has(nic.vendor) || has(nic.drivers) || has(nic.pciAddresses) || nic.interfaces.all(name, name.matches('^(!|[A-Za-z0-9_.:-])')) && nic.interfaces.exists(name, !name.startsWith('!')))",message="in spec.nics, interfaces that begin with a wildcard or that only exclude need a vendor, drivers or pciAddresses beside them: alone they would take nearly every NIC."
	// +listType=atomic
	// +required
	NICs []NICSelector `json:"nics"`

	// stack is the software that the pods use on the NIC. It decides what a container gets with the NIC (device
	// files, libraries, environment) and what must be right before a NIC is handed out.
	// +required
	Stack BypassStack `json:"stack"`

	// resourceName is the extended resource that a pod asks for, such as lowlatency.dev/x2. It cannot be
	// changed, because running pods were admitted with it.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)+/[a-z0-9]([a-z0-9_.-]{0,61}[a-z0-9])?$')",message="spec.resourceName must be a domain, a slash and a name of lower-case letters, digits and _.-, such as lowlatency.dev/x2."
	// +kubebuilder:validation:XValidation:rule="!self.split('/')[0].endsWith('kubernetes.io')",message="spec.resourceName must not be in the domain kubernetes.io, which the kubelet keeps for itself."
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('requests.')",message="spec.resourceName must not begin with requests., by which resource quotas name resources."
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.resourceName cannot be changed, because running pods were admitted with it; create another pool."
	// +required
	ResourceName string `json:"resourceName"`

	// allocation is DevicePlugin or DynamicResourceAllocation: the way in which the units of the resource reach
	// the scheduler and the kubelet.
	//
	// DevicePlugin: the kubelet's topology manager places CPUs, hugepages and NIC together.
	//
	// DynamicResourceAllocation: each node publishes ResourceSlices, and a DeviceClass of the pool's own takes
	// pods with a ResourceClaim as well as pods that ask for resourceName. It needs Kubernetes 1.34, and 1.36
	// for pods that ask for resourceName and for the taints of unhealthy NICs. The scheduler can
	// place NICs together with devices of other drivers, by the attributes pcieRoot and numaNode; the
	// kubelet's topology manager does not see them, so CPUs and hugepages may be on another NUMA node.
	//
	// It may be changed while pods hold NICs: they keep them, and a NIC is handed out in the new way when no pod
	// holds it in the old one any more. From DevicePlugin to DynamicResourceAllocation, pods that ask for
	// resourceName wait until the kubelets have forgotten the device plugin, about five minutes.
	// From DynamicResourceAllocation to DevicePlugin, this waits for all pods of
	// the pool, because the kubelet cannot end a pod with a claim without the driver that prepared it; delete
	// them before the pool, too. When omitted, this means the user has no opinion and the
	// operator chooses a default, which is subject to change over time. The current default is DevicePlugin.
	// +optional
	Allocation AllocationType `json:"allocation,omitempty"`

	// startup is AsProfile or Taint. With Taint, a node of the pool has the taint lowlatency.dev/unverified with effect
	// NoSchedule from its start until the kubelet advertises every unit that its healthy NICs give, so that no pod is
	// sent there before the device plugin is registered; again after each reboot. AsProfile does so where
	// spec.verification.gate of the LowLatencyNodeProfile is Taint. With allocation DynamicResourceAllocation there is
	// nothing to wait for: the kubelet keeps a pod until the driver has prepared its NIC. When omitted, this means
	// the user has no opinion and the operator chooses a default, which is subject to change over time. The current
	// default is AsProfile.
	// +optional
	Startup PoolStartup `json:"startup,omitempty"`

	// sharing says whether a NIC is handed to one container or to several. When omitted, a NIC is handed to
	// one.
	//
	// Containers that share a NIC share its bandwidth, its filters and its hugepages, too.
	// +optional
	Sharing SharingSpec `json:"sharing,omitzero"`

	// hugepages are reserved for every NIC of the pool, on the NIC's own NUMA node, besides those of the
	// LowLatencyNodeProfile; 1 to 4 sizes. Reserving is not giving: a pod must ask for them with a limit such as
	// hugepages-2Mi.
	//
	//	hugepages:
	//	- {size: 2Mi, countPerNIC: 400}
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +listType=map
	// +listMapKey=size
	// +optional
	Hugepages []NICHugepages `json:"hugepages,omitempty"`

	// interrupts says which CPUs handle the interrupts of the NICs.
	// +optional
	Interrupts NICInterruptsSpec `json:"interrupts,omitzero"`

	// virtualFunctions are created on every NIC of the pool and handed out instead of it; the NIC itself keeps its
	// driver. With stack type VFIO they are bound to vfio-pci. When omitted, the NICs themselves are handed out.
	// +optional
	VirtualFunctions *VirtualFunctionsSpec `json:"virtualFunctions,omitempty"`

	// networkAttachment makes a NetworkAttachmentDefinition by which Multus gives a pod the interface of its
	// NIC. When omitted, none is made: pods of the stacks Onload, TCPDirect and EFVI then need hostNetwork, or an
	// attachment of somebody else; those of AFXDP need neither. A pod names the attachment in an annotation:
	//
	//	k8s.v1.cni.cncf.io/networks: '[{"name": "x2", "ips": ["192.168.7.11/24"]}]'
	// +optional
	NetworkAttachment *NetworkAttachmentSpec `json:"networkAttachment,omitempty"`
}

// PoolStartup says whether pods are kept off a node until its device plugin advertises.
//
// +kubebuilder:validation:Enum=AsProfile;Taint
type PoolStartup string

const (
	// StartupAsProfile does as the profile's gate says.
	StartupAsProfile PoolStartup = "AsProfile"
	// StartupTaint keeps pods off in any case.
	StartupTaint PoolStartup = "Taint"
)

// AllocationType is the way in which the units of a pool reach the scheduler and the kubelet.
//
// +kubebuilder:validation:Enum=DevicePlugin;DynamicResourceAllocation
type AllocationType string

const (
	// AllocationDevicePlugin registers the units with the kubelet, as an extended resource.
	AllocationDevicePlugin AllocationType = "DevicePlugin"
	// AllocationDynamic publishes them in ResourceSlices, for Dynamic Resource Allocation.
	AllocationDynamic AllocationType = "DynamicResourceAllocation"
)

// SharingMode says how many containers may hold one NIC.
//
// +kubebuilder:validation:Enum=Exclusive;Shared
type SharingMode string

const (
	// SharingExclusive hands a NIC to one container.
	SharingExclusive SharingMode = "Exclusive"
	// SharingShared hands a NIC to as many containers as it has virtual interfaces for.
	SharingShared SharingMode = "Shared"
)

// SharingSpec says how many containers may hold one NIC.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maximumSharesPerNIC) || (has(self.mode) && self.mode == 'Shared')",message="spec.sharing.maximumSharesPerNIC applies to spec.sharing.mode Shared only."
// +kubebuilder:validation:XValidation:rule="!has(self.withPools) || (has(self.mode) && self.mode == 'Shared' && has(self.maximumSharesPerNIC))",message="spec.sharing.withPools needs spec.sharing.mode Shared and spec.sharing.maximumSharesPerNIC, which says how many virtual interfaces of each NIC this pool hands out."
type SharingSpec struct {
	// mode is Exclusive or Shared. Exclusive: one container. Shared: as many containers as the NIC has virtual
	// interfaces (VIs) for, which is read from the driver, or queues with stack type AFXDP, and no more than
	// maximumSharesPerNIC. When omitted, this means the user has no opinion and the operator chooses a
	// default, which is subject to change over time. The current default is Exclusive.
	// +optional
	Mode SharingMode `json:"mode,omitempty"`

	// maximumSharesPerNIC is the most containers that share one NIC, 1 to 1024. The number of virtual
	// interfaces of the NIC is the limit in any case.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +optional
	MaximumSharesPerNIC int32 `json:"maximumSharesPerNIC,omitempty"`

	// withPools are the names of other pools that hand out the same NICs, 1 to 15: such as one for Onload and one for
	// TCPDirect on the same ports. Each pool names the other, both have the same spec.interrupts.placement, and
	// maximumSharesPerNIC of each says how the virtual interfaces of a NIC are divided. Where these are more than a NIC has, the
	// younger pools hand out what is left. Without the other's consent, a NIC belongs to the pool that had it first, and
	// status.findings says what is missing.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=15
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=40
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="the name of a pool consists of lower-case letters, digits, - and ., and begins and ends with a letter or digit."
	// +listType=set
	// +optional
	WithPools []string `json:"withPools,omitempty"`
}

// NICHugepages are hugepages for every NIC of a pool.
type NICHugepages struct {
	// size of one page.
	// +required
	Size HugepageSize `json:"size"`

	// countPerNIC is the number of pages for each NIC, 1 to 16777216, on the NIC's own NUMA node.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16777216
	// +required
	CountPerNIC int32 `json:"countPerNIC"`
}

// NICInterruptPlacement says which CPUs handle the interrupts of a NIC.
//
// +kubebuilder:validation:Enum=NICLocalHousekeeping;Housekeeping;Kept
type NICInterruptPlacement string

const (
	// NICInterruptsLocalHousekeeping places them on housekeeping CPUs of the NIC's own NUMA node.
	NICInterruptsLocalHousekeeping NICInterruptPlacement = "NICLocalHousekeeping"
	// NICInterruptsHousekeeping places them on any housekeeping CPU.
	NICInterruptsHousekeeping NICInterruptPlacement = "Housekeeping"
	// NICInterruptsKept leaves them where the profile and the driver put them.
	NICInterruptsKept NICInterruptPlacement = "Kept"
)

// NICInterruptsSpec says which CPUs handle the interrupts of the NICs.
type NICInterruptsSpec struct {
	// placement is NICLocalHousekeeping, Housekeeping or Kept. When omitted, this means the user has no opinion
	// and the operator chooses a default, which is subject to change over time. The current default is
	// NICLocalHousekeeping where the NIC's NUMA node has a housekeeping CPU, and Housekeeping elsewhere.
	// +optional
	Placement NICInterruptPlacement `json:"placement,omitempty"`
}

// VirtualFunctionsSpec says which virtual functions are created on a NIC.
type VirtualFunctionsSpec struct {
	// countPerNIC is the number of virtual functions on each NIC, 1 to 256. A NIC that offers fewer is a
	// finding.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	// +required
	CountPerNIC int32 `json:"countPerNIC"`
}

// NetworkAttachmentType is the way in which a pod gets the interface of its NIC.
//
// +kubebuilder:validation:Enum=HostDevice;SRIOV;MACVLAN;IPVLAN
type NetworkAttachmentType string

const (
	// AttachmentHostDevice moves the interface into the pod with the host-device plugin.
	AttachmentHostDevice NetworkAttachmentType = "HostDevice"
	// AttachmentSRIOV moves the virtual function into the pod with the sriov plugin.
	AttachmentSRIOV NetworkAttachmentType = "SRIOV"
	// AttachmentMACVLAN puts a macvlan child of the interface into the pod.
	AttachmentMACVLAN NetworkAttachmentType = "MACVLAN"
	// AttachmentIPVLAN puts an ipvlan child of the interface into the pod.
	AttachmentIPVLAN NetworkAttachmentType = "IPVLAN"
)

// NetworkAttachmentSpec describes the NetworkAttachmentDefinition of a pool.
//
// +kubebuilder:validation:XValidation:rule="(self.type in ['MACVLAN', 'IPVLAN']) == has(self.parentInterface)",message="spec.networkAttachment.parentInterface must be set with type MACVLAN or IPVLAN, and only then."
// +kubebuilder:validation:XValidation:rule="self.type != 'IPVLAN' || !has(self.addresses) || self.addresses == 'Static'",message="spec.networkAttachment.addresses None cannot be combined with type IPVLAN: the ipvlan plugin makes no interface without an address."
// +kubebuilder:validation:XValidation:rule="!has(self.virtualFunction) || self.type == 'SRIOV'",message="spec.networkAttachment.virtualFunction applies to type SRIOV only, whose plugin sets virtual functions up."
type NetworkAttachmentSpec struct {
	// type is HostDevice, SRIOV, MACVLAN or IPVLAN. HostDevice moves the interface itself into the pod, and back
	// when the pod ends. SRIOV does so with a virtual function, and sets it up through its NIC; it is the only type
	// for stack type VFIO. MACVLAN and IPVLAN leave the interface to the node and put a child of it into the pod;
	// they work with stack type Onload only.
	// +required
	Type NetworkAttachmentType `json:"type"`

	// parentInterface is the interface of the node on which a MACVLAN or IPVLAN child is made. It must be the only
	// interface that spec.nics name, so that the child is on the NIC that the pod was given.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_.:-]+$')",message="an interface name consists of letters, digits and _.:-."
	// +optional
	ParentInterface string `json:"parentInterface,omitempty"`

	// namespaces in which the NetworkAttachmentDefinition is made, under the name of the pool, 1 to 32. They must
	// exist.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="a namespace is a name of lower-case letters, digits and -, which begins and ends with a letter or digit."
	// +listType=set
	// +required
	Namespaces []string `json:"namespaces"`

	// addresses is Static or None: how the interface gets its address. Static: the pod's annotation
	// k8s.v1.cni.cncf.io/networks says it, under ips. None: it gets none. When omitted, this means the user has no opinion and the operator chooses a default, which is
	// subject to change over time. The current default is Static.
	// +optional
	Addresses AddressAssignment `json:"addresses,omitempty"`

	// virtualFunction says how the sriov plugin sets the virtual function of a pod up, through its NIC; the plugin takes
	// it back when the pod ends. What is omitted stays as it is. A driver that cannot do what is said fails the start of
	// the pod, with an event of it.
	//
	//	virtualFunction: {vlan: 100, trust: "On", spoofCheck: "Off"}
	// +optional
	VirtualFunction *VirtualFunctionSettings `json:"virtualFunction,omitempty"`
}

// OnOff switches a setting of a virtual function.
//
// +kubebuilder:validation:Enum="On";"Off"
type OnOff string

const (
	// On switches it on.
	On OnOff = "On"
	// Off switches it off.
	Off OnOff = "Off"
)

// LinkStateSetting says which link a virtual function sees.
//
// +kubebuilder:validation:Enum=Auto;Enabled;Disabled
type LinkStateSetting string

const (
	// LinkStateAuto follows the link of the NIC.
	LinkStateAuto LinkStateSetting = "Auto"
	// LinkStateEnabled is up in any case.
	LinkStateEnabled LinkStateSetting = "Enabled"
	// LinkStateDisabled is down in any case.
	LinkStateDisabled LinkStateSetting = "Disabled"
)

// VirtualFunctionSettings are what a NIC is told about a virtual function (ip-link(8), "vf").
//
// +kubebuilder:validation:XValidation:rule="!has(self.minimumTransmitMegabits) || !has(self.maximumTransmitMegabits) || self.minimumTransmitMegabits <= self.maximumTransmitMegabits",message="spec.networkAttachment.virtualFunction.minimumTransmitMegabits must be at most maximumTransmitMegabits."
// +kubebuilder:validation:XValidation:rule="!has(self.vlanPriority) || has(self.vlan)",message="spec.networkAttachment.virtualFunction.vlanPriority needs vlan: frames without a tag have no priority."
type VirtualFunctionSettings struct {
	// vlan is the number of the VLAN, 1 to 4094, whose tag the NIC adds to what the pod sends and removes from what it
	// receives. The pod sees no tag.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4094
	// +optional
	VLAN int32 `json:"vlan,omitempty"`

	// vlanPriority is the priority in the tag, 1 to 7. When omitted, it is 0.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=7
	// +optional
	VLANPriority int32 `json:"vlanPriority,omitempty"`

	// trust is On or Off. On lets the pod change the MAC address, and receive all multicast or all frames (promiscuous mode),
	// as far as the driver permits it to trusted functions. DPDK programs that set MAC addresses or promiscuous mode need it.
	// +optional
	Trust OnOff `json:"trust,omitempty"`

	// spoofCheck is On or Off. On makes the NIC drop frames whose source MAC address is not that of the function.
	// +optional
	SpoofCheck OnOff `json:"spoofCheck,omitempty"`

	// linkState is Auto, Enabled or Disabled. With Enabled, functions of one NIC reach each other while its link is down.
	// +optional
	LinkState LinkStateSetting `json:"linkState,omitempty"`

	// minimumTransmitMegabits is the rate in megabits per second that the function is guaranteed, 1 to 1000000.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	MinimumTransmitMegabits int32 `json:"minimumTransmitMegabits,omitempty"`

	// maximumTransmitMegabits is the rate in megabits per second that the function may not exceed, 1 to 1000000.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	MaximumTransmitMegabits int32 `json:"maximumTransmitMegabits,omitempty"`
}

// AddressAssignment says how the interface of a pod gets its address.
//
// +kubebuilder:validation:Enum=Static;None
type AddressAssignment string

const (
	// AddressesStatic takes the address from the pod's annotation.
	AddressesStatic AddressAssignment = "Static"
	// AddressesNone assigns none.
	AddressesNone AddressAssignment = "None"
)
