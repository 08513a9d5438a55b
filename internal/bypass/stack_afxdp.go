// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/release"
)

const (
	// SocketsFolder is where the sockets of allocations are. The container runtime must see it under the same path.
	SocketsFolder = "/run/lowlatency/afxdp"
	// bpfFolder is that of the BPF file system, which systemd mounts on every host.
	bpfFolder = "/sys/fs/bpf"
)

// afxdpStack adds no edits: its sockets belong to one allocation, so that the device plugin adds them. That needs the
// network namespace of the node, in which the NICs are, the BPF file system, the folder of the sockets that containers
// get, and the capabilities for XDP programs and maps (CAP_BPF, CAP_NET_ADMIN), for AF_XDP sockets (CAP_NET_RAW) and
// for their pinned memory (CAP_IPC_LOCK). Two plugins cannot have the sockets of the same containers.
func afxdpStack() Stack {
	return Stack{
		Type: v1alpha1.StackAFXDP, Sample: "market-data/afxdp/pool.yaml", Section: "AF_XDP",
		Plugin: PluginPod{
			HostNetwork:  true,
			Capabilities: []string{"BPF", "IPC_LOCK", "NET_ADMIN", "NET_RAW"},
			Folders:      []PluginFolder{{Name: "afxdp", Path: SocketsFolder, Created: true}, {Name: "bpf", Path: bpfFolder}},
			Alone:        true,
		},
		hasSection: func(s *v1alpha1.BypassStack) bool { return s.AFXDP != nil },
		needs:      func(*v1alpha1.BypassStack) needs { return needs{overXDP: true} },
		eligible:   []rule{(*candidate).nativeXDP, (*candidate).zeroCopy},
		rules: []rule{
			(*candidate).carrier, (*candidate).numaNode, (*candidate).pciLink, (*candidate).virtualFunctions,
			(*candidate).queues, (*candidate).attached, (*candidate).boundSockets,
		},
		shares: func(in Input, nic host.NIC) (int, bool) {
			queues, known := queuesOf(in.Pool.Spec.Stack.AFXDP, nic)
			return len(queues), known
		},
		queues: handedQueues,
	}
}

// zeroCopy wants a driver that receives into the memory of sockets, unless the pool is content with one that copies.
// Distributors bring drivers to older kernels, so that a release before the driver's says nothing for sure.
func (c *candidate) zeroCopy() verdict {
	driver, known := xdpDriverOf(c.nic.Driver.Value)
	if !known {
		return passed()
	}
	required := effectiveZeroCopy(c.in.Pool.Spec.Stack.AFXDP) == v1alpha1.ZeroCopyRequired
	switch {
	case !driver.hasZeroCopy() && required:
		return refused("Driver %s of NIC %s copies every frame, and spec.stack.afxdp.zeroCopy is Required; select NICs with "+
			"one of the drivers %s, or set it to Preferred.", driver.name, c.name(), driversWith(xdpDriver.hasZeroCopy))
	case !driver.hasZeroCopy():
		return noted("Driver %s of NIC %s copies every frame between its own memory and that of the program.", driver.name, c.name())
	case !required:
		return passed()
	}
	running := c.in.Facts.Kernel.Release
	if v := absent(running, "The release of the kernel", "whether driver "+driver.name+" has zero copy is not known",
		"let the program read /proc of the node"); v.level != levelPassed {
		return v
	}
	if is, _ := release.Parse(running.Value); is.AtLeast(driver.zeroCopy.Major, driver.zeroCopy.Minor) {
		return passed()
	}
	return unknown("Driver %s of NIC %s has zero copy since Linux %s and the node runs %s, so it may copy; run a newer kernel, "+
		"or set spec.stack.afxdp.zeroCopy to Preferred.", driver.name, c.name(), driver.zeroCopy, running.Value)
}

// effectiveZeroCopy fills in the default of the field.
func effectiveZeroCopy(spec *v1alpha1.AFXDPStack) v1alpha1.AFXDPZeroCopy {
	return cmp.Or(spec.ZeroCopy, v1alpha1.ZeroCopyRequired)
}

// queuesOf returns the queues of a NIC that a pool hands out, in ascending order: none when the NIC has not all of
// them. They are not known when the host does not report how many the NIC has.
func queuesOf(spec *v1alpha1.AFXDPStack, nic host.NIC) (queues []int, known bool) {
	total, known := nic.ReceiveQueues.Get()
	first, count := wantedQueues(spec)
	if !known {
		return nil, false
	}
	if count == 0 {
		count = max(total-first, 0)
	}
	if first+count > total {
		return nil, true
	}
	for queue := first; queue < first+count; queue++ {
		queues = append(queues, queue)
	}
	return queues, true
}

// wantedQueues are the fields of the spec; a count of 0 stands for all from the first on.
func wantedQueues(spec *v1alpha1.AFXDPStack) (first, count int) {
	if spec.Queues.First != nil {
		first = int(*spec.Queues.First)
	}
	return first, int(spec.Queues.Count)
}

// handedQueues are the queues behind the units of a NIC.
func handedQueues(c *candidate, units int) []int {
	queues, _ := queuesOf(c.in.Pool.Spec.Stack.AFXDP, c.nic)
	if isShared(&c.in.Pool.Spec) {
		return queues[:min(units, len(queues))]
	}
	return queues
}

// queues wants the queues that the pool names.
func (c *candidate) queues() verdict {
	if c.isAway() {
		return noted("The interface of NIC %s is in the network namespace of a pod, so its queues are not known.",
			c.nic.PCIAddress)
	}
	if v := absent(c.nic.ReceiveQueues, "The number of receive queues of "+c.name(), "it is not known how many containers may hold it",
		"let the program read /sys of the node"); v.level != levelPassed {
		return v
	}
	first, count := wantedQueues(c.in.Pool.Spec.Stack.AFXDP)
	if queues, _ := queuesOf(c.in.Pool.Spec.Stack.AFXDP, c.nic); len(queues) > 0 {
		return passed()
	}
	return failed("NIC %s has %d receive queues (%s) and spec.stack.afxdp.queues asks for %d from number %d on; give it more "+
		"with ethtool -L, or ask for fewer.", c.name(), c.nic.ReceiveQueues.Value, c.nic.ReceiveQueues.Source, max(count, 1), first)
}

// attached is what the device plugin found out when it attached its XDP program to the NIC. Nothing is known of it before
// the plugin has run, which forbids nothing: the plugin hands out what it has attached and nothing else.
func (c *candidate) attached() verdict {
	if problem := c.reported(c.nic.PCIAddress); problem != "" {
		return failed("%s", problem)
	}
	return passed()
}

// boundSockets is what the device plugin found out about the node's kernel.
func (c *candidate) boundSockets() verdict {
	if problem := c.reported(""); problem != "" {
		return noted("%s", problem)
	}
	return passed()
}

// reported is what the pool's device plugin says of a NIC, or under "" of the node; "" for nothing.
func (c *candidate) reported(subject string) string {
	return c.bypass().SocketReports.Value[c.in.Pool.Name][subject]
}
