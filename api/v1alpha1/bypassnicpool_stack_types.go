// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

// StackType is a kernel-bypass stack.
//
// +kubebuilder:validation:Enum=Onload;TCPDirect;EFVI;VFIO;AFXDP
type StackType string

const (
	// StackOnload accelerates BSD sockets of unchanged programs.
	StackOnload StackType = "Onload"
	// StackTCPDirect is the zero-copy TCP and UDP library of Onload, zf.
	StackTCPDirect StackType = "TCPDirect"
	// StackEFVI is the layer-2 library of Onload, ef_vi.
	StackEFVI StackType = "EFVI"
	// StackVFIO hands a PCI function to a user-space driver, such as DPDK.
	StackVFIO StackType = "VFIO"
	// StackAFXDP hands out AF_XDP sockets on the queues of a NIC that keeps its kernel driver.
	StackAFXDP StackType = "AFXDP"
)

// BypassStack is the software that pods use on the NIC: a type and the section of that type.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'Onload' ? has(self.onload) : !has(self.onload)",message="spec.stack.onload must be set when spec.stack.type is Onload, and only then."
// +kubebuilder:validation:XValidation:rule="self.type == 'TCPDirect' ? has(self.tcpDirect) : !has(self.tcpDirect)",message="spec.stack.tcpDirect must be set when spec.stack.type is TCPDirect, and only then."
// +kubebuilder:validation:XValidation:rule="self.type == 'EFVI' ? has(self.efvi) : !has(self.efvi)",message="spec.stack.efvi must be set when spec.stack.type is EFVI, and only then."
// +kubebuilder:validation:XValidation:rule="self.type == 'VFIO' ? has(self.vfio) : !has(self.vfio)",message="spec.stack.vfio must be set when spec.stack.type is VFIO, and only then."
// +kubebuilder:validation:XValidation:rule="self.type == 'AFXDP' ? has(self.afxdp) : !has(self.afxdp)",message="spec.stack.afxdp must be set when spec.stack.type is AFXDP, and only then."
// +union
type BypassStack struct {
	// type is Onload, TCPDirect, EFVI, VFIO or AFXDP. Onload accelerates the sockets of unchanged programs. TCPDirect and
	// EFVI are libraries that programs are written for. VFIO gives the whole PCI function to a user-space driver,
	// such as one of DPDK. AFXDP gives queues of a NIC to programs with AF_XDP sockets; the NIC keeps its kernel
	// driver and the pod needs no privilege.
	// +unionDiscriminator
	// +required
	Type StackType `json:"type"`

	// onload is the section of type Onload.
	// +optional
	Onload *OnloadStack `json:"onload,omitempty"`

	// tcpDirect is the section of type TCPDirect.
	// +optional
	TCPDirect *TCPDirectStack `json:"tcpDirect,omitempty"`

	// efvi is the section of type EFVI.
	// +optional
	EFVI *EFVIStack `json:"efvi,omitempty"`

	// vfio is the section of type VFIO.
	// +optional
	VFIO *VFIOStack `json:"vfio,omitempty"`

	// afxdp is the section of type AFXDP.
	// +optional
	AFXDP *AFXDPStack `json:"afxdp,omitempty"`
}

// StackVersion is the version of a stack as its vendor writes it, such as 9.1.1.37 or v9_2.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9._+-]*$')",message="a version begins with a letter or digit and consists of letters, digits and ._+-, for example 9.1.1.37."
type StackVersion string

// UserSpaceSource says where the user files of a stack come from.
//
// +kubebuilder:validation:Enum=HostPath;Application
type UserSpaceSource string

const (
	// UserSpaceHostPath mounts them from the node.
	UserSpaceHostPath UserSpaceSource = "HostPath"
	// UserSpaceApplication means that the application's image holds them.
	UserSpaceApplication UserSpaceSource = "Application"
)

// UserSpaceSpec says where the user files of a stack come from. They must be of the same build as the module of the
// node's kernel: with another, programs run on kernel sockets without a word.
//
// +kubebuilder:validation:XValidation:rule="(self.source == 'HostPath') == has(self.hostPath)",message="userSpace.hostPath must be set when userSpace.source is HostPath, and only then."
type UserSpaceSpec struct {
	// source is HostPath or Application. HostPath: the files are mounted from the node, read-only. Application:
	// the application's image holds them; nothing is mounted, and their version is read from the running stack
	// only.
	// +required
	Source UserSpaceSource `json:"source"`

	// hostPath is the folder of the node below which the stack is installed, such as /opt/onload. The files are
	// looked for in its usr/lib64, usr/lib and lib folders.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^(/[A-Za-z0-9_+-][A-Za-z0-9._+-]*)+$')",message="userSpace.hostPath is an absolute path of letters, digits and ._+-, without a slash at its end, for example /opt/onload."
	// +optional
	HostPath string `json:"hostPath,omitempty"`
}

// OnloadStart says how a program comes to use Onload.
//
// +kubebuilder:validation:Enum=Preload;Launcher;Application
type OnloadStart string

const (
	// StartPreload sets LD_PRELOAD.
	StartPreload OnloadStart = "Preload"
	// StartLauncher mounts the onload launcher, which the container's command calls.
	StartLauncher OnloadStart = "Launcher"
	// StartApplication leaves it to the application.
	StartApplication OnloadStart = "Application"
)

// OnloadProfile is a set of EF_ options.
//
// +kubebuilder:validation:Enum=None;Latency;LatencyBest
type OnloadProfile string

const (
	// OnloadProfileNone sets no options.
	OnloadProfileNone OnloadProfile = "None"
	// OnloadProfileLatency is Onload's profile latency.
	OnloadProfileLatency OnloadProfile = "Latency"
	// OnloadProfileLatencyBest is Onload's profile latency-best, which depends on model and speed of the NICs.
	OnloadProfileLatencyBest OnloadProfile = "LatencyBest"
)

// OnloadDatapath says by which driver Onload reaches the NIC.
//
// +kubebuilder:validation:Enum=Native;ExperimentalAFXDP
type OnloadDatapath string

const (
	// DatapathNative needs a NIC of the vendor with its own driver.
	DatapathNative OnloadDatapath = "Native"
	// DatapathExperimentalAFXDP runs Onload on AF_XDP sockets of any NIC whose driver has XDP.
	DatapathExperimentalAFXDP OnloadDatapath = "ExperimentalAFXDP"
)

// OnloadStack is the section of stack type Onload.
//
// +kubebuilder:validation:XValidation:rule="self.userSpace.source == 'HostPath' || !has(self.start) || self.start == 'Application'",message="spec.stack.onload.start must be Application or omitted with userSpace.source Application: there is nothing to preload from the node."
type OnloadStack struct {
	// version is the Onload release that module and user files must both have. When omitted, they must only be
	// equal to each other.
	// +optional
	Version StackVersion `json:"version,omitempty"`

	// userSpace says where libonload.so and its companions come from.
	// +required
	UserSpace UserSpaceSpec `json:"userSpace"`

	// start is Preload, Launcher or Application. Preload: LD_PRELOAD names libonload.so, so that every program of
	// the container that uses sockets is accelerated. Launcher: the script onload is mounted, and the container's
	// command calls it. Application: the image arranges it. When omitted, this means the user has no opinion and the
	// operator chooses a default, which is subject to change over time. The current default is Preload with
	// userSpace.source HostPath and Application otherwise.
	// +optional
	Start OnloadStart `json:"start,omitempty"`

	// profile is None, Latency or LatencyBest: which EF_ options a container gets besides those of options.
	// Latency and LatencyBest are Onload's own profiles latency and latency-best. They are turned into EF_ options
	// for each node, because LatencyBest depends on model and speed of the NICs. When omitted, this means the user has no opinion and the operator
	// chooses a default, which is subject to change over time. The current default is Latency.
	// +optional
	Profile OnloadProfile `json:"profile,omitempty"`

	// options are EF_ options that are set besides those of the profile and win over them, at most 64. With
	// EF_NO_FAIL 0, a socket that Onload cannot accelerate is an error and not a kernel socket:
	//
	//	options:
	//	- {name: EF_POLL_USEC, value: "-1"}
	//	- {name: EF_NO_FAIL, value: "0"}
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Options []OnloadOption `json:"options,omitempty"`

	// datapath is Native or ExperimentalAFXDP. Native needs a NIC of the vendor with its own driver.
	// ExperimentalAFXDP runs Onload on AF_XDP sockets of any NIC whose driver has XDP: it uses no hugepages, and
	// Onload's own project calls it work in progress. When omitted, this means the user has no opinion and the operator
	// chooses a default, which is subject to change over time. The current default is Native.
	// +optional
	Datapath OnloadDatapath `json:"datapath,omitempty"`
}

// OnloadOption is an EF_ option of Onload.
type OnloadOption struct {
	// name is the option, such as EF_POLL_USEC.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^EF_[A-Z0-9_]+$')",message="an option of Onload is written as EF_ and upper-case letters, digits and _, for example EF_POLL_USEC."
	// +required
	Name string `json:"name"`

	// value of the option. Names and values that Onload does not know are reported in the pool's status and not
	// set.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9 ._:;,=/+-]+$')",message="the value of an option consists of letters, digits, spaces and ._:;,=/+-."
	// +required
	Value string `json:"value"`
}

// TCPDirectStack is the section of stack type TCPDirect.
type TCPDirectStack struct {
	// version is the TCPDirect release that libonload_zf.so must have. When omitted, any that fits the module
	// is accepted.
	// +optional
	Version StackVersion `json:"version,omitempty"`

	// onloadVersion is the Onload release that the module must have. When omitted, any is accepted.
	// +optional
	OnloadVersion StackVersion `json:"onloadVersion,omitempty"`

	// userSpace says where libonload_zf.so and libefcp.so come from.
	// +required
	UserSpace UserSpaceSpec `json:"userSpace"`

	// attributes are set in ZF_ATTR besides the interface, at most 32.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	// +optional
	Attributes []TCPDirectAttribute `json:"attributes,omitempty"`
}

// TCPDirectAttribute is an attribute of TCPDirect.
type TCPDirectAttribute struct {
	// name is the attribute, such as ctpio_mode. The attribute interface is set by the operator.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9_]*$')",message="an attribute of TCPDirect is written in lower-case letters, digits and _, for example ctpio_mode."
	// +kubebuilder:validation:XValidation:rule="self != 'interface'",message="the attribute interface is set by the operator, to the interface of the container's NIC."
	// +required
	Name string `json:"name"`

	// value of the attribute.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$')",message="the value of an attribute consists of letters, digits and ._-."
	// +required
	Value string `json:"value"`
}

// EFVIStack is the section of stack type EFVI.
type EFVIStack struct {
	// onloadVersion is the Onload release that the module and libciul.so must have. When omitted, they must only
	// fit each other.
	// +optional
	OnloadVersion StackVersion `json:"onloadVersion,omitempty"`

	// userSpace says where libciul.so and libefcp.so come from.
	// +required
	UserSpace UserSpaceSpec `json:"userSpace"`
}

// VFIOIsolation says what keeps a device from memory that is not its program's.
//
// +kubebuilder:validation:Enum=IOMMU;NoIOMMU
type VFIOIsolation string

const (
	// VFIOIsolationIOMMU lets the IOMMU confine the device.
	VFIOIsolationIOMMU VFIOIsolation = "IOMMU"
	// VFIOIsolationNoIOMMU confines the device by nothing, on machines without an IOMMU.
	VFIOIsolationNoIOMMU VFIOIsolation = "NoIOMMU"
)

// VFIOStack is the section of stack type VFIO. The NICs, or their virtual functions, are bound to vfio-pci.
type VFIOStack struct {
	// isolation is IOMMU or NoIOMMU. IOMMU: the device reaches the memory of its program and no other, and
	// the plan of the node gets the kernel arguments that this needs. NoIOMMU is for machines without an IOMMU,
	// such as virtual ones: a program that owns the device can then write to all memory of the node. When omitted, this means the user has no
	// opinion and the operator chooses a default, which is subject to change over time. The current default is
	// IOMMU.
	// +optional
	Isolation VFIOIsolation `json:"isolation,omitempty"`
}

// AFXDPZeroCopy says whether frames may be copied between the driver and the program.
//
// +kubebuilder:validation:Enum=Required;Preferred
type AFXDPZeroCopy string

const (
	// ZeroCopyRequired hands out NICs only whose driver receives into the program's own memory.
	ZeroCopyRequired AFXDPZeroCopy = "Required"
	// ZeroCopyPreferred also hands out NICs whose driver copies.
	ZeroCopyPreferred AFXDPZeroCopy = "Preferred"
)

// AFXDPStack is the section of stack type AFXDP. A program in the driver of the NIC redirects the frames of the queues
// to AF_XDP sockets of the pods that hold them; every other frame goes to the kernel as before. With
// spec.sharing.mode Exclusive a container gets the NIC with all these queues; with Shared it gets one queue for each
// unit of the resource that it asks for.
type AFXDPStack struct {
	// zeroCopy is Required or Preferred. Required: only NICs whose driver is known to receive into the program's
	// own memory, and sockets are bound with XDP_ZEROCOPY, so that one which would copy is an error. Preferred:
	// also drivers with XDP that copy each frame; status says so. A NIC whose driver has no XDP is never handed
	// out. When omitted, this means the user has no opinion and the operator chooses a default, which is subject to
	// change over time. The current default is Required.
	// +optional
	ZeroCopy AFXDPZeroCopy `json:"zeroCopy,omitempty"`

	// queues are the receive queues that are handed out. When omitted, these are all queues of the NIC.
	// +optional
	Queues AFXDPQueuesSpec `json:"queues,omitzero"`

	// steering says which frames of these queues go to the program. When omitted, all do.
	// +optional
	Steering AFXDPSteeringSpec `json:"steering,omitzero"`
}

// AFXDPQueuesSpec selects receive queues of a NIC by their numbers.
//
// +kubebuilder:validation:MinProperties=1
type AFXDPQueuesSpec struct {
	// first is the number of the first queue that is handed out, 0 to 1023. Those before it stay with the kernel:
	// keep its traffic there with the NIC's own tables (ethtool -X and -N). When omitted, it is 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1023
	// +optional
	First *int32 `json:"first,omitempty"`

	// count is the number of queues, 1 to 1024. A NIC with fewer is a finding, and not handed out. When omitted,
	// these are all from first on.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +optional
	Count int32 `json:"count,omitempty"`
}

// AFXDPSteeringType says by what frames are distinguished.
//
// +kubebuilder:validation:Enum=All;UDPPorts
type AFXDPSteeringType string

const (
	// SteeringAll takes every frame of a queue.
	SteeringAll AFXDPSteeringType = "All"
	// SteeringUDPPorts takes UDP datagrams to certain ports.
	SteeringUDPPorts AFXDPSteeringType = "UDPPorts"
)

// AFXDPSteeringSpec says which frames go to a program.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'UDPPorts') == has(self.udpPorts)",message="spec.stack.afxdp.steering.udpPorts must be set with type UDPPorts, and only then."
type AFXDPSteeringSpec struct {
	// type is All or UDPPorts. All: every frame of the queue, those of ARP and other protocols included, which the
	// program must answer itself. UDPPorts: only UDP datagrams to the ports of udpPorts, over IPv4 or IPv6, with
	// or without one VLAN tag; fragments, IPv4 options and extension headers of IPv6 are left to the kernel, as is
	// everything else.
	// +required
	Type AFXDPSteeringType `json:"type"`

	// udpPorts are destination ports, 1 to 16.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=65535
	// +listType=set
	// +optional
	UDPPorts []int32 `json:"udpPorts,omitempty"`
}
