// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1_test

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

type (
	nicPool     = v1alpha1.BypassNICPool
	nicPoolRule = rule[v1alpha1.BypassNICPool]
)

// resourceIsImmutable is the message of the only rule that compares with the stored object.
const resourceIsImmutable = "spec.resourceName cannot be changed, because running pods were admitted with it; create another pool."

// newNICPool returns a pool of Onload NICs with nothing that may be omitted.
func newNICPool() *nicPool {
	return &nicPool{
		ObjectMeta: metav1.ObjectMeta{Name: "x2"},
		Spec: v1alpha1.BypassNICPoolSpec{
			NodeSelector: v1alpha1.NodeSelector{MatchLabels: v1alpha1.Labels{"node-role.kubernetes.io/trading": ""}},
			NICs:         []v1alpha1.NICSelector{{Vendor: "1924", Devices: []v1alpha1.PCIID{"0b03"}}},
			Stack: v1alpha1.BypassStack{
				Type: v1alpha1.StackOnload, Onload: &v1alpha1.OnloadStack{UserSpace: onHost("/opt/onload")},
			},
			ResourceName: "lowlatency.dev/x2",
		},
	}
}

func onHost(folder string) v1alpha1.UserSpaceSpec {
	return v1alpha1.UserSpaceSpec{Source: v1alpha1.UserSpaceHostPath, HostPath: folder}
}

// The functions below turn the pool of newNICPool into one of another stack.

func useTCPDirect(p *nicPool) {
	p.Spec.Stack = v1alpha1.BypassStack{
		Type: v1alpha1.StackTCPDirect, TCPDirect: &v1alpha1.TCPDirectStack{UserSpace: onHost("/opt/onload")},
	}
	p.Spec.Hugepages = []v1alpha1.NICHugepages{{Size: "2Mi", CountPerNIC: 400}}
}

func useEFVI(p *nicPool) {
	p.Spec.Stack = v1alpha1.BypassStack{
		Type: v1alpha1.StackEFVI, EFVI: &v1alpha1.EFVIStack{UserSpace: onHost("/opt/onload")},
	}
}

func useVFIO(p *nicPool) {
	p.Spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackVFIO, VFIO: &v1alpha1.VFIOStack{}}
}

func useAFXDP(p *nicPool) {
	p.Spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackAFXDP, AFXDP: &v1alpha1.AFXDPStack{}}
}

func steer(way v1alpha1.AFXDPSteeringType, ports ...int32) func(*nicPool) {
	return func(p *nicPool) { p.Spec.Stack.AFXDP.Steering = v1alpha1.AFXDPSteeringSpec{Type: way, UDPPorts: ports} }
}

func withVFs(p *nicPool) {
	p.Spec.VirtualFunctions = &v1alpha1.VirtualFunctionsSpec{CountPerNIC: 8}
}

func shared(p *nicPool) { p.Spec.Sharing.Mode = v1alpha1.SharingShared }

func terms(list ...v1alpha1.NICSelector) func(*nicPool) {
	return func(p *nicPool) { p.Spec.NICs = list }
}

func attach(way v1alpha1.NetworkAttachmentType) func(*nicPool) {
	return func(p *nicPool) {
		p.Spec.NetworkAttachment = &v1alpha1.NetworkAttachmentSpec{Type: way, Namespaces: []string{"trading"}}
		if way == v1alpha1.AttachmentMACVLAN || way == v1alpha1.AttachmentIPVLAN {
			p.Spec.NetworkAttachment.ParentInterface = "ens1f0"
			p.Spec.NICs = []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"ens1f0"}}}
		}
	}
}

// all makes one change of several.
func all(changes ...func(*nicPool)) func(*nicPool) {
	return func(p *nicPool) {
		for _, change := range changes {
			change(p)
		}
	}
}

// nicPoolRules returns a case for each CEL rule of BypassNICPool.
func nicPoolRules() []nicPoolRule {
	return slices.Concat(nicPoolNameRules(), resourceNameRules(), nodeLabelRules(), poolSelectorRules(),
		nodeSelectorRules(func(p *nicPool, selector v1alpha1.NodeSelector) { p.Spec.NodeSelector = selector }),
		allocationRules(), sharingRules(), virtualFunctionRules(), vfioRules(), attachmentRules(), attachmentValueRules(),
		stackSectionRules(), userSpaceRules(), onloadRules(), versionRules(), tcpDirectRules())
}

func nicPoolNameRules() []nicPoolRule {
	return []nicPoolRule{{
		message:  "metadata.name must be at most 40 characters long, because the names of daemon sets are made from it.",
		accepted: func(p *nicPool) { p.Name = strings.Repeat("a", 40) },
		rejected: func(p *nicPool) { p.Name = strings.Repeat("a", 41) },
	}}
}

func allocate(way v1alpha1.AllocationType) func(*nicPool) {
	return func(p *nicPool) { p.Spec.Allocation = way }
}

func allocationRules() []nicPoolRule {
	return []nicPoolRule{{
		field: "spec",
		message: "spec.networkAttachment.type HostDevice and SRIOV need spec.allocation DevicePlugin: Multus learns from " +
			"the kubelet's device plugins which device to move into the pod; use MACVLAN or IPVLAN, or omit " +
			"spec.networkAttachment.",
		accepted: all(allocate(v1alpha1.AllocationDynamic), attach(v1alpha1.AttachmentMACVLAN)),
		rejected: all(allocate(v1alpha1.AllocationDynamic), attach(v1alpha1.AttachmentHostDevice)),
	}, {
		field: "spec",
		message: "spec.allocation must be DevicePlugin or omitted when spec.stack.type is AFXDP, because only the device plugin " +
			"hands AF_XDP sockets over.",
		accepted: all(useAFXDP, allocate(v1alpha1.AllocationDevicePlugin)),
		rejected: all(useAFXDP, allocate(v1alpha1.AllocationDynamic)),
	}}
}

func resourceName(name string) func(*nicPool) {
	return func(p *nicPool) { p.Spec.ResourceName = name }
}

func resourceNameRules() []nicPoolRule {
	return []nicPoolRule{
		{
			field:    "spec.resourceName",
			message:  "spec.resourceName must be a domain, a slash and a name of lower-case letters, digits and _.-, such as lowlatency.dev/x2.",
			accepted: resourceName("nic.example-1.com/x2_vf.shared-0"),
			rejected: resourceName("lowlatency.dev/X2"),
		},
		{
			field:    "spec.resourceName",
			message:  "spec.resourceName must not be in the domain kubernetes.io, which the kubelet keeps for itself.",
			accepted: resourceName("kubernetes.io.example.com/x2"),
			rejected: resourceName("node.kubernetes.io/x2"),
		},
		{
			field:    "spec.resourceName",
			message:  "spec.resourceName must not begin with requests., by which resource quotas name resources.",
			accepted: resourceName("request.example.com/x2"),
			rejected: resourceName("requests.example.com/x2"),
		},
	}
}

func nodeLabelRules() []nicPoolRule {
	set := func(key string, value v1alpha1.LabelValue) func(*nicPool) {
		return func(p *nicPool) { p.Spec.NodeSelector.MatchLabels = v1alpha1.Labels{key: value} }
	}
	return []nicPoolRule{
		{
			field:    "spec.nodeSelector.matchLabels",
			message:  "a label key is a name of at most 63 letters, digits and _.-, which a DNS name and a slash may precede.",
			accepted: set("node-role.kubernetes.io/trading", ""),
			rejected: set("trading nodes", ""),
		},
		{
			field:    "spec.nodeSelector.matchLabels[]",
			message:  "a label value is empty or begins and ends with a letter or digit, with letters, digits and _.- between.",
			accepted: set("zone", "rack-1.A_2"),
			rejected: set("zone", "rack 1"),
		},
	}
}

func agreeing(p *nicPool) {
	p.Spec.Sharing = v1alpha1.SharingSpec{Mode: v1alpha1.SharingShared, MaximumSharesPerNIC: 4, WithPools: []string{"x2-tcpdirect"}}
}

func sharingRules() []nicPoolRule {
	return []nicPoolRule{
		{
			field:    "spec.sharing",
			message:  "spec.sharing.withPools needs spec.sharing.mode Shared and spec.sharing.maximumSharesPerNIC, which says how many virtual interfaces of each NIC this pool hands out.",
			accepted: agreeing,
			rejected: all(agreeing, func(p *nicPool) { p.Spec.Sharing.MaximumSharesPerNIC = 0 }),
		},
		{
			field:    "spec.sharing.withPools[]",
			message:  "the name of a pool consists of lower-case letters, digits, - and ., and begins and ends with a letter or digit.",
			accepted: all(agreeing, func(p *nicPool) { p.Spec.Sharing.WithPools = []string{"a", "b.c-1"} }),
			rejected: all(agreeing, func(p *nicPool) { p.Spec.Sharing.WithPools = []string{"X2"} }),
		},
		{
			field:    "spec",
			message:  "spec.sharing.withPools applies to the stacks Onload, TCPDirect and EFVI only, whose programs each take virtual interfaces of one NIC; divide other NICs with spec.virtualFunctions.",
			accepted: all(useEFVI, agreeing),
			rejected: all(useAFXDP, agreeing),
		},
		{
			field:    "spec.sharing",
			message:  "spec.sharing.maximumSharesPerNIC applies to spec.sharing.mode Shared only.",
			accepted: all(shared, func(p *nicPool) { p.Spec.Sharing.MaximumSharesPerNIC = 4 }),
			rejected: func(p *nicPool) { p.Spec.Sharing.MaximumSharesPerNIC = 4 },
		},
		{
			field:    "spec",
			message:  "spec.sharing.mode Shared cannot be combined with spec.stack.type VFIO: one program owns a VFIO device.",
			accepted: all(useEFVI, shared),
			rejected: all(useVFIO, shared),
		},
		{
			field:    "spec",
			message:  "spec.sharing.mode Shared cannot be combined with spec.virtualFunctions: each virtual function is handed out as a whole.",
			accepted: all(withVFs, func(p *nicPool) { p.Spec.Sharing.Mode = v1alpha1.SharingExclusive }),
			rejected: all(withVFs, shared),
		},
		{
			field:    "spec",
			message:  "spec.sharing.mode Shared cannot be combined with spec.networkAttachment.type HostDevice or SRIOV, which move the interface into one pod; share with MACVLAN, IPVLAN or host networking.",
			accepted: all(attach(v1alpha1.AttachmentMACVLAN), shared),
			rejected: all(attach(v1alpha1.AttachmentHostDevice), shared),
		},
		{
			field:   "spec",
			message: "spec.hugepages must hold pages of size 2Mi with spec.stack.type TCPDirect, which allocates its buffers from them even where the default size is another.",
			accepted: all(useTCPDirect, func(p *nicPool) {
				p.Spec.Hugepages = append(p.Spec.Hugepages, v1alpha1.NICHugepages{Size: "1Gi", CountPerNIC: 1})
			}),
			rejected: all(useTCPDirect, func(p *nicPool) {
				p.Spec.Hugepages = []v1alpha1.NICHugepages{{Size: "1Gi", CountPerNIC: 1}}
			}),
		},
	}
}

func virtualFunctionRules() []nicPoolRule {
	virtual := v1alpha1.NICSelector{Vendor: "8086", Role: v1alpha1.RoleVirtualFunction}
	physical := v1alpha1.NICSelector{Vendor: "8086", Role: v1alpha1.RolePhysicalFunction}
	return []nicPoolRule{
		{
			field:    "spec",
			message:  "spec.virtualFunctions cannot be combined with role VirtualFunction in spec.nics: virtual functions are created on physical functions.",
			accepted: all(withVFs, terms(physical)),
			rejected: all(withVFs, terms(physical, virtual)),
		},
		{
			field:    "spec",
			message:  "spec.networkAttachment.type SRIOV needs virtual functions: set spec.virtualFunctions, or role VirtualFunction in every item of spec.nics.",
			accepted: all(attach(v1alpha1.AttachmentSRIOV), terms(virtual)),
			rejected: all(attach(v1alpha1.AttachmentSRIOV), terms(virtual, physical)),
		},
	}
}

func vfioRules() []nicPoolRule {
	const message = "with spec.stack.type VFIO and without spec.virtualFunctions, items of spec.nics must select by vendor, devices or pciAddresses, or have vfio-pci among drivers: once bound to vfio-pci, a NIC has no interface, no link and no other driver."
	bound := v1alpha1.NICSelector{Drivers: []v1alpha1.DriverName{"i40e", "vfio-pci"}, Link: v1alpha1.LinkAny}
	return []nicPoolRule{{
		field:    "spec",
		message:  message,
		accepted: all(useVFIO, terms(bound, v1alpha1.NICSelector{Vendor: "8086"})),
		rejected: all(useVFIO, terms(bound, v1alpha1.NICSelector{Drivers: []v1alpha1.DriverName{"i40e"}})),
	}}
}

func attachmentRules() []nicPoolRule {
	return []nicPoolRule{
		{
			field:    "spec",
			message:  "spec.networkAttachment.type MACVLAN and IPVLAN work with spec.stack.type Onload only: ef_vi and TCPDirect find no NIC behind them, AF_XDP sockets no queues, and a VFIO device has no network interface.",
			accepted: attach(v1alpha1.AttachmentIPVLAN),
			rejected: all(useTCPDirect, attach(v1alpha1.AttachmentMACVLAN)),
		},
		{
			field:    "spec",
			message:  "spec.networkAttachment.type HostDevice cannot be combined with spec.stack.type VFIO: a VFIO device has no network interface that could move; use SRIOV on virtual functions, or omit spec.networkAttachment.",
			accepted: all(useVFIO, withVFs, attach(v1alpha1.AttachmentSRIOV)),
			rejected: all(useVFIO, withVFs, attach(v1alpha1.AttachmentHostDevice)),
		},
		{
			field:   "spec",
			message: "with spec.networkAttachment.type MACVLAN or IPVLAN, every item of spec.nics must name spec.networkAttachment.parentInterface as its only interface and spec.virtualFunctions must be omitted: the child is made on that interface whichever NIC the pod holds.",
			accepted: all(attach(v1alpha1.AttachmentMACVLAN), terms(
				v1alpha1.NICSelector{Interfaces: []v1alpha1.InterfacePattern{"ens1f0"}, NUMANodes: []int32{0}})),
			rejected: all(attach(v1alpha1.AttachmentMACVLAN), terms(
				v1alpha1.NICSelector{Interfaces: []v1alpha1.InterfacePattern{"ens1f0", "ens1f1"}})),
		},
		{
			field:    "spec.networkAttachment",
			message:  "spec.networkAttachment.addresses None cannot be combined with type IPVLAN: the ipvlan plugin makes no interface without an address.",
			accepted: attach(v1alpha1.AttachmentIPVLAN),
			rejected: all(attach(v1alpha1.AttachmentIPVLAN), func(p *nicPool) {
				p.Spec.NetworkAttachment.Addresses = v1alpha1.AddressesNone
			}),
		},
		{
			field:    "spec.networkAttachment",
			message:  "spec.networkAttachment.parentInterface must be set with type MACVLAN or IPVLAN, and only then.",
			accepted: attach(v1alpha1.AttachmentHostDevice),
			rejected: all(attach(v1alpha1.AttachmentMACVLAN), func(p *nicPool) { p.Spec.NetworkAttachment.ParentInterface = "" }),
		},
	}
}

func attachmentValueRules() []nicPoolRule {
	parent := func(name string) func(*nicPool) {
		return all(attach(v1alpha1.AttachmentMACVLAN), func(p *nicPool) {
			p.Spec.NetworkAttachment.ParentInterface = name
			p.Spec.NICs = []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"ens1.100"}}}
		})
	}
	namespace := func(name string) func(*nicPool) {
		return all(attach(v1alpha1.AttachmentHostDevice), func(p *nicPool) {
			p.Spec.NetworkAttachment.Namespaces = []string{"trading", name}
		})
	}
	function := func(settings v1alpha1.VirtualFunctionSettings) func(*nicPool) {
		return all(withVFs, attach(v1alpha1.AttachmentSRIOV), func(p *nicPool) { p.Spec.NetworkAttachment.VirtualFunction = &settings })
	}
	return []nicPoolRule{
		{
			field:    "spec.networkAttachment",
			message:  "spec.networkAttachment.virtualFunction applies to type SRIOV only, whose plugin sets virtual functions up.",
			accepted: function(v1alpha1.VirtualFunctionSettings{VLAN: 100, Trust: v1alpha1.On, SpoofCheck: v1alpha1.Off}),
			rejected: all(attach(v1alpha1.AttachmentHostDevice), func(p *nicPool) {
				p.Spec.NetworkAttachment.VirtualFunction = &v1alpha1.VirtualFunctionSettings{VLAN: 100}
			}),
		},
		{
			field:    "spec.networkAttachment.virtualFunction",
			message:  "spec.networkAttachment.virtualFunction.minimumTransmitMegabits must be at most maximumTransmitMegabits.",
			accepted: function(v1alpha1.VirtualFunctionSettings{MinimumTransmitMegabits: 100, MaximumTransmitMegabits: 100}),
			rejected: function(v1alpha1.VirtualFunctionSettings{MinimumTransmitMegabits: 101, MaximumTransmitMegabits: 100}),
		},
		{
			field:    "spec.networkAttachment.virtualFunction",
			message:  "spec.networkAttachment.virtualFunction.vlanPriority needs vlan: frames without a tag have no priority.",
			accepted: function(v1alpha1.VirtualFunctionSettings{VLAN: 4094, VLANPriority: 7}),
			rejected: function(v1alpha1.VirtualFunctionSettings{VLANPriority: 7}),
		},
		{
			field:    "spec.networkAttachment.parentInterface",
			message:  "an interface name consists of letters, digits and _.:-.",
			accepted: parent("ens1.100"),
			rejected: all(parent("ens1*"), terms(v1alpha1.NICSelector{Interfaces: []v1alpha1.InterfacePattern{"ens1*"}})),
		},
		{
			field:    "spec.networkAttachment.namespaces[]",
			message:  "a namespace is a name of lower-case letters, digits and -, which begins and ends with a letter or digit.",
			accepted: namespace("trading-2"),
			rejected: namespace("kube/system"),
		},
	}
}

func stackSectionRules() []nicPoolRule {
	nothing := func(*nicPool) {}
	without := func(field string) string {
		return "spec.stack." + field + " must be set when spec.stack.type is "
	}
	return []nicPoolRule{
		{
			field:    "spec.stack",
			message:  without("onload") + "Onload, and only then.",
			accepted: nothing,
			rejected: func(p *nicPool) { p.Spec.Stack.Onload = nil },
		},
		{
			field:    "spec.stack",
			message:  without("tcpDirect") + "TCPDirect, and only then.",
			accepted: useTCPDirect,
			rejected: all(useTCPDirect, func(p *nicPool) { p.Spec.Stack.TCPDirect = nil }),
		},
		{
			field:    "spec.stack",
			message:  without("efvi") + "EFVI, and only then.",
			accepted: useEFVI,
			rejected: func(p *nicPool) { p.Spec.Stack.EFVI = &v1alpha1.EFVIStack{UserSpace: onHost("/opt/onload")} },
		},
		{
			field:    "spec.stack",
			message:  without("vfio") + "VFIO, and only then.",
			accepted: useVFIO,
			rejected: func(p *nicPool) { p.Spec.Stack.VFIO = &v1alpha1.VFIOStack{} },
		},
		{
			field:    "spec.stack",
			message:  without("afxdp") + "AFXDP, and only then.",
			accepted: useAFXDP,
			rejected: all(useAFXDP, func(p *nicPool) { p.Spec.Stack.AFXDP = nil }),
		},
		{
			field:    "spec.stack.afxdp.steering",
			message:  "spec.stack.afxdp.steering.udpPorts must be set with type UDPPorts, and only then.",
			accepted: all(useAFXDP, steer(v1alpha1.SteeringUDPPorts, 30001, 65535)),
			rejected: all(useAFXDP, steer(v1alpha1.SteeringAll, 30001)),
		},
	}
}

// userSpaces are the stacks with user files: how to use each, and where its userSpace is.
func userSpaces() map[string]struct {
	use   func(*nicPool)
	space func(*nicPool) *v1alpha1.UserSpaceSpec
} {
	return map[string]struct {
		use   func(*nicPool)
		space func(*nicPool) *v1alpha1.UserSpaceSpec
	}{
		"onload":    {func(*nicPool) {}, func(p *nicPool) *v1alpha1.UserSpaceSpec { return &p.Spec.Stack.Onload.UserSpace }},
		"tcpDirect": {useTCPDirect, func(p *nicPool) *v1alpha1.UserSpaceSpec { return &p.Spec.Stack.TCPDirect.UserSpace }},
		"efvi":      {useEFVI, func(p *nicPool) *v1alpha1.UserSpaceSpec { return &p.Spec.Stack.EFVI.UserSpace }},
	}
}

func userSpaceRules() []nicPoolRule {
	stacks := userSpaces()
	rules := make([]nicPoolRule, 0, 2*len(stacks))
	for section, stack := range stacks {
		set := func(space v1alpha1.UserSpaceSpec) func(*nicPool) {
			return all(stack.use, func(p *nicPool) { *stack.space(p) = space })
		}
		field := "spec.stack." + section + ".userSpace"
		rules = append(rules,
			nicPoolRule{
				field:    field,
				message:  "userSpace.hostPath must be set when userSpace.source is HostPath, and only then.",
				accepted: set(v1alpha1.UserSpaceSpec{Source: v1alpha1.UserSpaceApplication}),
				rejected: set(v1alpha1.UserSpaceSpec{Source: v1alpha1.UserSpaceHostPath}),
			},
			nicPoolRule{
				field:    field + ".hostPath",
				message:  "userSpace.hostPath is an absolute path of letters, digits and ._+-, without a slash at its end, for example /opt/onload.",
				accepted: set(onHost("/opt/onload-9.1.1.37")),
				rejected: set(onHost("/opt/../etc")),
			})
	}
	return rules
}

func onloadRules() []nicPoolRule {
	option := func(name, value string) func(*nicPool) {
		return func(p *nicPool) { p.Spec.Stack.Onload.Options = []v1alpha1.OnloadOption{{Name: name, Value: value}} }
	}
	start := func(way v1alpha1.OnloadStart) func(*nicPool) {
		return func(p *nicPool) {
			p.Spec.Stack.Onload.UserSpace = v1alpha1.UserSpaceSpec{Source: v1alpha1.UserSpaceApplication}
			p.Spec.Stack.Onload.Start = way
		}
	}
	return []nicPoolRule{
		{
			field:    "spec.stack.onload",
			message:  "spec.stack.onload.start must be Application or omitted with userSpace.source Application: there is nothing to preload from the node.",
			accepted: start(v1alpha1.StartApplication),
			rejected: start(v1alpha1.StartPreload),
		},
		{
			field:    "spec.stack.onload.options[].name",
			message:  "an option of Onload is written as EF_ and upper-case letters, digits and _, for example EF_POLL_USEC.",
			accepted: option("EF_POLL_USEC", "-1"),
			rejected: option("LD_PRELOAD", "1"),
		},
		{
			field:    "spec.stack.onload.options[].value",
			message:  "the value of an option consists of letters, digits, spaces and ._:;,=/+-.",
			accepted: option("EF_INTERFACE_WHITELIST", "ens1f0 ens1f1"),
			rejected: option("EF_NAME", "a\nLD_PRELOAD=b"),
		},
	}
}

func versionRules() []nicPoolRule {
	versions := map[string]func(*nicPool, v1alpha1.StackVersion){
		"onload.version":          func(p *nicPool, v v1alpha1.StackVersion) { p.Spec.Stack.Onload.Version = v },
		"tcpDirect.version":       func(p *nicPool, v v1alpha1.StackVersion) { useTCPDirect(p); p.Spec.Stack.TCPDirect.Version = v },
		"tcpDirect.onloadVersion": func(p *nicPool, v v1alpha1.StackVersion) { useTCPDirect(p); p.Spec.Stack.TCPDirect.OnloadVersion = v },
		"efvi.onloadVersion":      func(p *nicPool, v v1alpha1.StackVersion) { useEFVI(p); p.Spec.Stack.EFVI.OnloadVersion = v },
	}
	rules := make([]nicPoolRule, 0, len(versions))
	for field, set := range versions {
		rules = append(rules, nicPoolRule{
			field:    "spec.stack." + field,
			message:  "a version begins with a letter or digit and consists of letters, digits and ._+-, for example 9.1.1.37.",
			accepted: func(p *nicPool) { set(p, "9.1.1.37") },
			rejected: func(p *nicPool) { set(p, ">=9.1") },
		})
	}
	return rules
}

func tcpDirectRules() []nicPoolRule {
	attribute := func(name, value string) func(*nicPool) {
		return all(useTCPDirect, func(p *nicPool) {
			p.Spec.Stack.TCPDirect.Attributes = []v1alpha1.TCPDirectAttribute{{Name: name, Value: value}}
		})
	}
	return []nicPoolRule{
		{
			field:    "spec.stack.tcpDirect.attributes[].name",
			message:  "an attribute of TCPDirect is written in lower-case letters, digits and _, for example ctpio_mode.",
			accepted: attribute("ctpio_mode", "ct"),
			rejected: attribute("ctpio-mode", "ct"),
		},
		{
			field:    "spec.stack.tcpDirect.attributes[].name",
			message:  "the attribute interface is set by the operator, to the interface of the container's NIC.",
			accepted: attribute("interfaces", "1"),
			rejected: attribute("interface", "ens1f0"),
		},
		{
			field:    "spec.stack.tcpDirect.attributes[].value",
			message:  "the value of an attribute consists of letters, digits and ._-.",
			accepted: attribute("n_bufs", "40000"),
			rejected: attribute("n_bufs", "1;interface=eth0"),
		},
	}
}

func describeNICPoolRules(admin func() client.Client) {
	for _, r := range nicPoolRules() {
		It("accepts and rejects at "+r.field+": "+r.message, func(ctx SpecContext) {
			accepted := newNICPool()
			r.accepted(accepted)
			Expect(admin().Create(ctx, accepted, client.DryRunAll)).To(Succeed())
			Expect(has(accepted, r.field)).To(BeTrue(), "the accepted object has no value at "+r.field)

			rejected := newNICPool()
			r.rejected(rejected)
			expectObjection(admin().Create(ctx, rejected, client.DryRunAll), place{r.field, r.message})
		})
	}

	It("keeps the resource name of a pool that exists, and lets everything else change", func(ctx SpecContext) {
		pool := newNICPool()
		Expect(admin().Create(ctx, pool)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin().Delete(ctx, pool)).To(Succeed()) })

		renamed := pool.DeepCopy()
		renamed.Spec.ResourceName = "lowlatency.dev/x2-new"
		expectObjection(admin().Update(ctx, renamed, client.DryRunAll), place{"spec.resourceName", resourceIsImmutable})

		changed := pool.DeepCopy()
		useTCPDirect(changed)
		shared(changed)
		allocate(v1alpha1.AllocationDynamic)(changed)
		Expect(admin().Update(ctx, changed, client.DryRunAll)).To(Succeed())
	})
}

// expectObjection expects that the API server refused an object for one reason.
func expectObjection(err error, want place) {
	GinkgoHelper()
	Expect(apierrors.IsInvalid(err)).To(BeTrue(), "not refused as invalid: %v", err)
	Expect(objections(err, want.Message)).To(Equal(map[place]int{want: 1}))
}
