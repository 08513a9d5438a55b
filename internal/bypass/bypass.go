// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package bypass decides, from what a host says, which NICs of a node a BypassNICPool hands out, whether each of
// them is fit for its stack, how many containers may hold it, and what a container gets with it. It is pure: the
// device plugin, the agent and the command line call the same functions on the same facts, so what the status says
// is what the kubelet is told.
package bypass

import (
	"net/netip"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// Pool is a BypassNICPool as the nodes get it: the JSON text under the key v1alpha1.PoolKey of the pool's ConfigMap.
type Pool struct {
	// Name and Generation are those of the BypassNICPool.
	Name       string `json:"name"`
	Generation int64  `json:"generation"`
	Standing
	// Spec is its spec.
	Spec v1alpha1.BypassNICPoolSpec `json:"spec"`
	// OtherPools are the other pools that select some of the same nodes.
	OtherPools []OtherPool `json:"otherPools,omitempty"`
	// Holdings are which pools have the NICs that the pool and another one claim.
	Holdings []Holding `json:"holdings,omitempty"`
}

// Holding is a NIC that a pool has on some nodes, although another one claims it, too.
type Holding struct {
	PCIAddress string `json:"pciAddress"`
	// Pool is the name of the pool that has it.
	Pool string `json:"pool"`
	// Nodes by name.
	Nodes []string `json:"nodes"`
}

// OtherPool is another pool that selects some nodes of a pool. Which of them has what both claim there, Claims says.
type OtherPool struct {
	Claimant
	// Nodes that both pools select.
	Nodes []string `json:"nodes"`
}

// Input is what the devices of a node follow from.
type Input struct {
	Pool Pool
	// Node is the name of the node.
	Node string
	// HostAddresses are the addresses by which the cluster knows the node.
	HostAddresses []netip.Addr
	// Facts are what the host says, its Bypass included.
	Facts *host.Facts
}

// Device is one NIC, or one virtual function, that the pool selects on a node.
type Device struct {
	NIC host.NIC
	// Series is the series of the NIC, such as X2; "" when its PCI identifiers are not known.
	Series string
	Health v1alpha1.NICHealth
	// Reasons are what there is to say about the NIC, each in one sentence with the file or device and the way
	// out, the most severe first, at most 8. A NIC that is healthy has those that cost something and forbid
	// nothing, such as a PCIe link with fewer lanes than it could have.
	Reasons []string
	// Units is how many containers may hold the NIC; 0 for one that is ineligible, or whose driver does not say
	// how many virtual interfaces it has.
	Units int
	// Shared means that the NIC is handed out in shares, see DeviceIDs.
	Shared bool
	// Queues are the receive queues that a pool with stack AFXDP hands out; nil for other stacks, and when the
	// number of queues is not known.
	Queues   []int
	Versions Versions
}

// Why joins the reasons of a NIC that cannot be handed out into one text; it has one even where nobody gave a reason.
func Why(reasons []string) string {
	if len(reasons) == 0 {
		return "its NIC is not healthy"
	}
	return strings.Join(reasons, " ")
}

// Versions are what the parts of a stack call themselves; "" for a part that was not found.
type Versions struct {
	// Module is the version of the kernel module.
	Module string
	// User is the version of the user files on the node.
	User string
}

// Edits are what a container gets with the devices that it holds.
type Edits struct {
	DeviceNodes []DeviceNode
	Mounts      []Mount
	Environment []Variable
}

// DeviceNode is a device file of the node, which the container sees under the same path.
type DeviceNode struct {
	Path string
	// Permissions are letters of rwm, as in the device cgroup.
	Permissions string
}

// Mount is a file or folder of the node that the container sees, read-only.
type Mount struct {
	HostPath      string
	ContainerPath string
}

// Variable is an environment variable.
type Variable struct{ Name, Value string }
