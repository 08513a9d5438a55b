// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// nicPoolWith returns a pool with the given fields of spec beside or instead of the required ones.
func nicPoolWith(spec string) *unstructured.Unstructured {
	object := parse("{apiVersion: lowlatency.dev/v1alpha1, kind: BypassNICPool, metadata: {name: x2}}")
	content := map[string]any{}
	Expect(yaml.Unmarshal([]byte(`
nodeSelector: {matchLabels: {trading: ""}}
nics: [{vendor: "1924"}]
stack: {type: EFVI, efvi: {userSpace: {source: Application}}}
resourceName: lowlatency.dev/x2
`), &content)).To(Succeed())
	Expect(yaml.Unmarshal([]byte(spec), &content)).To(Succeed())
	object.Object["spec"] = content
	return object
}

// numbered returns count texts of the given length that end with different numbers.
func numbered[T ~string](count, length int) []T {
	list := make([]T, 0, count)
	for i := range count {
		end := fmt.Sprintf("%04d", i)
		list = append(list, T(strings.Repeat("A", length-len(end))+end))
	}
	return list
}

// largestSelector fills every list of a selector.
func largestSelector() v1alpha1.NICSelector {
	selector := v1alpha1.NICSelector{
		Vendor:  "1924",
		Drivers: append(numbered[v1alpha1.DriverName](7, 63), "vfio-pci"),
		Link:    v1alpha1.LinkUp,
		Role:    v1alpha1.RolePhysicalFunction,
	}
	for i := range 64 {
		selector.PCIAddresses = append(selector.PCIAddresses, v1alpha1.PCIAddress(fmt.Sprintf("10000000:%02x:00.0", i)))
		selector.NUMANodes = append(selector.NUMANodes, int32(i))
	}
	for _, name := range numbered[v1alpha1.InterfacePattern](32, 15) {
		selector.Interfaces = append(selector.Interfaces, name+v1alpha1.InterfacePattern(strings.Repeat("*", 17)))
	}
	for i := range 32 {
		selector.Devices = append(selector.Devices, v1alpha1.PCIID(fmt.Sprintf("%04x", i)))
	}
	return selector
}

// largestNICPool fills every list whose rules look at each item.
func largestNICPool() *nicPool {
	pool := newNICPool()
	pool.Spec.NICs = nil
	for range 16 {
		pool.Spec.NICs = append(pool.Spec.NICs, largestSelector())
	}
	pool.Spec.ResourceName = strings.Repeat("a", 64) + "." + strings.Repeat("b", 58) + "/" + "nic1"
	pool.Spec.VirtualFunctions = &v1alpha1.VirtualFunctionsSpec{CountPerNIC: 256}
	pool.Spec.Stack.Onload.UserSpace = onHost("/" + strings.Repeat("a", 254))
	for _, name := range numbered[string](64, 61) {
		pool.Spec.Stack.Onload.Options = append(pool.Spec.Stack.Onload.Options,
			v1alpha1.OnloadOption{Name: "EF_" + name, Value: strings.Repeat("1", 256)})
	}
	pool.Spec.NetworkAttachment = &v1alpha1.NetworkAttachmentSpec{Type: v1alpha1.AttachmentSRIOV}
	for _, name := range numbered[string](32, 63) {
		pool.Spec.NetworkAttachment.Namespaces = append(pool.Spec.NetworkAttachment.Namespaces, strings.ToLower(name))
	}
	return pool
}

// describeNICPoolBounds shows that the schema of BypassNICPool is in force, by one sample of each sort of bound.
func describeNICPoolBounds(admin func() client.Client) {
	DescribeTable("refuses a pool with",
		func(ctx SpecContext, spec, wantField, wantMessage string) {
			err := admin().Create(ctx, nicPoolWith(spec), client.DryRunAll, client.FieldValidation("Strict"))
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "not refused as invalid: %v", err)
			Expect(err).To(MatchError(And(ContainSubstring(wantField+": "), ContainSubstring(wantMessage))))
		},
		Entry("a stack that does not exist", `stack: {type: DPDK}`,
			"spec.stack.type", `supported values: "Onload", "TCPDirect", "EFVI", "VFIO", "AFXDP"`),
		Entry("a startup that does not exist", `startup: Gate`,
			"spec.startup", `supported values: "AsProfile", "Taint"`),
		Entry("no NICs", `nics: []`, "spec.nics", "at least 1 items"),
		Entry("too many terms", "nics: ["+strings.Repeat("{vendor: '1924'}, ", 17)+"]", "spec.nics", "at most 16 items"),
		Entry("a selector without a field", `nics: [{}]`, "spec.nics[0]", "at least 1 properties"),
		Entry("a device named twice", `nics: [{vendor: "1924", devices: ["0b03", "0b03"]}]`,
			"spec.nics[0].devices[1]", "Duplicate value"),
		Entry("a negative NUMA node", `nics: [{vendor: "1924", numaNodes: [-1]}]`,
			"spec.nics[0].numaNodes[0]", "greater than or equal to 0"),
		Entry("an unknown link state", `nics: [{vendor: "1924", link: up}]`,
			"spec.nics[0].link", `supported values: "Any", "Up"`),
		Entry("an interface name that Linux cannot have", `nics: [{interfaces: [abcdefghijklmnop]}]`,
			"spec.nics[0].interfaces[0]", "an interface name has at most 15 characters."),
		Entry("a resource name without a name", `resourceName: a/`,
			"spec.resourceName", "at least 3 chars long"),
		Entry("hugepages of one size twice", `hugepages: [{size: 2Mi, countPerNIC: 1}, {size: 2Mi, countPerNIC: 2}]`,
			"spec.hugepages[1]", "Duplicate value"),
		Entry("no hugepages of a size", `hugepages: [{size: 2Mi, countPerNIC: 0}]`,
			"spec.hugepages[0].countPerNIC", "greater than or equal to 1"),
		Entry("hugepages of a size that no kernel has", `hugepages: [{size: 4Mi, countPerNIC: 1}]`,
			"spec.hugepages[0].size", "supported values"),
		Entry("no shares", `sharing: {mode: Shared, maximumSharesPerNIC: 0}`,
			"spec.sharing.maximumSharesPerNIC", "greater than or equal to 1"),
		Entry("more virtual functions than PCI gives a NIC", `virtualFunctions: {countPerNIC: 257}`,
			"spec.virtualFunctions.countPerNIC", "less than or equal to 256"),
		Entry("an attachment to no namespace", `networkAttachment: {type: HostDevice, namespaces: []}`,
			"spec.networkAttachment.namespaces", "at least 1 items"),
		Entry("an option given twice", `stack: {type: Onload, onload: {userSpace: {source: Application}, options:
			[{name: EF_A, value: "1"}, {name: EF_A, value: "2"}]}}`,
			"spec.stack.onload.options[1]", "Duplicate value"),
		Entry("a stack without user space", `stack: {type: TCPDirect, tcpDirect: {}}`,
			"spec.stack.tcpDirect.userSpace", "Required value"),
		Entry("AF_XDP sockets that may or may not copy", `stack: {type: AFXDP, afxdp: {zeroCopy: Maybe}}`,
			"spec.stack.afxdp.zeroCopy", `supported values: "Required", "Preferred"`),
		Entry("queues without a number", `stack: {type: AFXDP, afxdp: {queues: {}}}`,
			"spec.stack.afxdp.queues", "at least 1 properties"),
		Entry("a queue beyond all NICs", `stack: {type: AFXDP, afxdp: {queues: {first: 1024}}}`,
			"spec.stack.afxdp.queues.first", "less than or equal to 1023"),
		Entry("no queues", `stack: {type: AFXDP, afxdp: {queues: {count: 0}}}`,
			"spec.stack.afxdp.queues.count", "greater than or equal to 1"),
		Entry("a port that UDP has not", `stack: {type: AFXDP, afxdp: {steering: {type: UDPPorts, udpPorts: [65536]}}}`,
			"spec.stack.afxdp.steering.udpPorts[0]", "less than or equal to 65535"),
		Entry("a port named twice", `stack: {type: AFXDP, afxdp: {steering: {type: UDPPorts, udpPorts: [7, 7]}}}`,
			"spec.stack.afxdp.steering.udpPorts[1]", "Duplicate value"),
		Entry("an allocation by nobody", `allocation: Scheduler`,
			"spec.allocation", `supported values: "DevicePlugin", "DynamicResourceAllocation"`),
		Entry("interrupts of every CPU", `interrupts: {placement: Everywhere}`,
			"spec.interrupts.placement", "supported values"),
	)

	It("affords its rules for a pool that is as large as the bounds allow", func(ctx SpecContext) {
		Expect(admin().Create(ctx, largestNICPool(), client.DryRunAll)).To(Succeed())
	})
	Context("in the status of a LowLatencyNode", func() { describeNodeNICs(admin) })
}

// describeNodeNICs shows what an agent can report about the NICs of pools.
func describeNodeNICs(admin func() client.Client) {
	report := func(ctx SpecContext, nics ...v1alpha1.NodeBypassNIC) error {
		node := &v1alpha1.LowLatencyNode{
			ObjectMeta: metav1.ObjectMeta{Name: "node-2"},
			Spec:       v1alpha1.LowLatencyNodeSpec{Profile: "trading", BypassPools: []string{"x2"}},
		}
		Expect(admin().Create(ctx, node)).To(Succeed())
		defer func() { Expect(admin().Delete(ctx, node)).To(Succeed()) }()
		node.Status.BypassNICs = nics
		return admin().Status().Update(ctx, node)
	}
	healthy := func(pool string) v1alpha1.NodeBypassNIC {
		return v1alpha1.NodeBypassNIC{Pool: pool, PCIAddress: "0000:3b:00.0", Health: v1alpha1.NICHealthy}
	}

	It("takes one NIC from two pools, and from one pool once", func(ctx SpecContext) {
		Expect(report(ctx, healthy("x2"), healthy("x2-shared"))).To(Succeed())
		Expect(report(ctx, healthy("x2"), healthy("x2"))).To(MatchError(ContainSubstring("Duplicate value")))
	})

	It("takes users by both ways of allocation, and of agents that do not report, and no others", func(ctx SpecContext) {
		user := func(way v1alpha1.AllocationType) v1alpha1.NodeBypassNIC {
			nic := healthy("x2")
			nic.Users = []v1alpha1.NICUser{{
				Namespace: "trading", Pod: "feed", Container: "main", Alignment: v1alpha1.AlignmentAligned, Allocation: way,
			}}
			return nic
		}
		for _, way := range []v1alpha1.AllocationType{"", v1alpha1.AllocationDevicePlugin, v1alpha1.AllocationDynamic} {
			Expect(report(ctx, user(way))).To(Succeed(), string(way))
		}
		Expect(report(ctx, user("Scheduler"))).To(MatchError(ContainSubstring("supported values")))
	})

	It("takes the largest report, and no longer one", func(ctx SpecContext) {
		largest := make([]v1alpha1.NodeBypassNIC, 0, 256)
		for _, address := range numbered[string](256, 32) {
			nic := healthy("x2")
			nic.PCIAddress = address
			for range 8 {
				nic.Reasons = append(nic.Reasons, strings.Repeat("r", 512))
			}
			largest = append(largest, nic)
		}
		Expect(report(ctx, largest...)).To(Succeed())
		Expect(report(ctx, append(largest, healthy("x2"))...)).To(MatchError(ContainSubstring("at most 256 items")))
	})
}
