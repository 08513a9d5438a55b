// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"cmp"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/pciname"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Pool is a BypassNICPool with its NICs on some nodes.
type Pool struct {
	Pool         string             `json:"pool"`
	Stack        v1alpha1.StackType `json:"stack"`
	ResourceName string             `json:"resourceName"`
	Nodes        []PoolNode         `json:"nodes"`
}

// PoolNode is a node with its NICs of one pool.
type PoolNode struct {
	Node string `json:"node"`
	// Problem says why the NICs are not known, or are those of an earlier spec of the pool; null when they are known.
	Problem   *string        `json:"problem"`
	NICs      []PoolNIC      `json:"nics"`
	NUMANodes []PoolNUMANode `json:"numaNodes"`
	// Hardware are the physical NICs of the node, where the pool selects none of them.
	Hardware []NICKind `json:"hardware,omitempty"`
}

// NICKind are the NICs of a node that have the same vendor and device.
type NICKind struct {
	Vendor string `json:"vendor"`
	Device string `json:"device"`
	// Product is the name of the device in pci.ids; null when that does not have it.
	Product *string  `json:"product"`
	Names   []string `json:"names"`
}

// PoolNIC is a NIC, or a virtual function, that a pool selects.
type PoolNIC struct {
	PCIAddress    string             `json:"pciAddress"`
	Name          *string            `json:"name"`
	Series        *string            `json:"series"`
	NUMANode      *int               `json:"numaNode"`
	Health        v1alpha1.NICHealth `json:"health"`
	Reasons       []string           `json:"reasons"`
	ModuleVersion *string            `json:"moduleVersion"`
	UserVersion   *string            `json:"userVersion"`
	Units         int                `json:"units"`
	// Users are the containers that hold a unit; null when that is not known, as of a snapshot.
	Users []PoolUser `json:"users"`
	// Edits are what a container with this NIC gets; null in what a cluster reports, and for a NIC that must not
	// be handed out, for EditsProblem.
	Edits        *PoolEdits `json:"edits"`
	EditsProblem *string    `json:"editsProblem"`
}

// PoolUser is a container that holds a unit of a NIC.
type PoolUser struct {
	Namespace string             `json:"namespace"`
	Pod       string             `json:"pod"`
	Container string             `json:"container"`
	Alignment v1alpha1.Alignment `json:"alignment"`
	Message   *string            `json:"message"`
	// Acceleration is left out unless it was asked for.
	Acceleration *PoolAcceleration `json:"acceleration,omitempty"`
}

// PoolEdits are what a container gets with a NIC.
type PoolEdits struct {
	DeviceNodes []PoolDeviceNode `json:"deviceNodes"`
	Mounts      []PoolMount      `json:"mounts"`
	Environment []Setting        `json:"environment"`
}

// PoolDeviceNode is a device file, under the same path on the node and in the container.
type PoolDeviceNode struct {
	Path        string `json:"path"`
	Permissions string `json:"permissions"`
}

// PoolMount is a file or folder of the node that the container sees, read-only.
type PoolMount struct {
	HostPath      string `json:"hostPath"`
	ContainerPath string `json:"containerPath"`
}

// PoolNUMANode is what a NUMA node of a node has of the pool. A pod gets all its units from one NUMA node, so Free is
// the most that the next pod can ask for.
type PoolNUMANode struct {
	// ID is null for NICs whose NUMA node is not known.
	ID *int `json:"id"`
	// HealthyNICs are those that can be handed out, and Units what they give together.
	HealthyNICs int `json:"healthyNICs"`
	Units       int `json:"units"`
	// Free is how many of these units nobody holds; null when that is not known.
	Free *int `json:"free"`
}

// OfPool is the view of a pool without nodes.
func OfPool(name string, spec *v1alpha1.BypassNICPoolSpec) Pool {
	return Pool{Pool: name, Stack: spec.Stack.Type, ResourceName: spec.ResourceName, Nodes: []PoolNode{}}
}

// OfDevices is the view of what a pool selects on a host. The function says what a container with one of the devices
// gets.
func OfDevices(node string, devices []bypass.Device, edits func(bypass.Device) (bypass.Edits, error)) PoolNode {
	return poolNode(node, each(devices, func(device bypass.Device) PoolNIC {
		nic := PoolNIC{
			PCIAddress: device.NIC.PCIAddress, Name: known(device.NIC.Name.Value), Series: known(device.Series),
			Health: device.Health, Reasons: append([]string{}, device.Reasons...),
			ModuleVersion: known(device.Versions.Module), UserVersion: known(device.Versions.User), Units: device.Units,
		}
		if numa, ok := device.NIC.NUMANode.Get(); ok {
			nic.NUMANode = &numa
		}
		got, err := edits(device)
		if err != nil {
			problem := err.Error()
			nic.EditsProblem = &problem
			return nic
		}
		nic.Edits = poolEdits(got)
		return nic
	}))
}

// WithHardware is the node of a pool that selects none of its NICs, with the NICs that it has.
func (n PoolNode) WithHardware(nics []host.NIC) PoolNode {
	if len(n.NICs) == 0 {
		physical := slices.DeleteFunc(topology.NICsOf(nics), topology.NIC.IsVirtualFunction)
		n.Hardware = each(topology.NICKinds(physical), func(kind topology.NICKind) NICKind {
			return NICKind{Vendor: kind.Vendor, Device: kind.Device, Product: known(pciname.Of(kind.Vendor, kind.Device)), Names: kind.Names}
		})
	}
	return n
}

// OfNodeNICs is the view of what the agent of a node reports about the NICs of a pool.
func OfNodeNICs(node string, nics []v1alpha1.NodeBypassNIC) PoolNode {
	return poolNode(node, each(nics, func(nic v1alpha1.NodeBypassNIC) PoolNIC {
		view := PoolNIC{
			PCIAddress: nic.PCIAddress, Name: known(nic.InterfaceName), Series: known(nic.Model), Health: nic.Health,
			Reasons: append([]string{}, nic.Reasons...), ModuleVersion: known(nic.ModuleVersion), UserVersion: known(nic.UserVersion),
			Units: int(nic.Units), Users: each(nic.Users, poolUser),
		}
		if nic.NUMANode != nil {
			numa := int(*nic.NUMANode)
			view.NUMANode = &numa
		}
		return view
	}))
}

// WithHolders is the pool with the containers that hold its NICs, when that is known, and without what a container gets.
func (p Pool) WithHolders(holders []allocation.Holder, areKnown bool) Pool {
	held := p
	held.Nodes = each(p.Nodes, func(node PoolNode) PoolNode {
		return poolNode(node.Node, each(node.NICs, func(nic PoolNIC) PoolNIC {
			nic.Edits, nic.EditsProblem = nil, nil
			if areKnown {
				nic.Users = usersOf(nic.PCIAddress, holders)
			}
			return nic
		}))
	})
	return held
}

func usersOf(pciAddress string, holders []allocation.Holder) []PoolUser {
	users := []PoolUser{}
	for _, holder := range holders {
		if holder.PCIAddress == pciAddress {
			users = append(users, PoolUser{
				Namespace: holder.Container.Namespace, Pod: holder.Container.Pod, Container: holder.Container.Name,
				Alignment: holder.Alignment, Message: known(holder.Message),
			})
		}
	}
	return users
}

func poolUser(user v1alpha1.NICUser) PoolUser {
	return PoolUser{
		Namespace: user.Namespace, Pod: user.Pod, Container: user.Container, Alignment: user.Alignment, Message: known(user.Message),
	}
}

func poolEdits(edits bypass.Edits) *PoolEdits {
	return &PoolEdits{
		DeviceNodes: each(edits.DeviceNodes, func(n bypass.DeviceNode) PoolDeviceNode { return PoolDeviceNode(n) }),
		Mounts:      each(edits.Mounts, func(m bypass.Mount) PoolMount { return PoolMount(m) }),
		Environment: each(edits.Environment, func(v bypass.Variable) Setting { return Setting(v) }),
	}
}

// poolNode adds up the NICs by NUMA node, those without one last.
func poolNode(node string, nics []PoolNIC) PoolNode {
	view := PoolNode{Node: node, NICs: nics, NUMANodes: []PoolNUMANode{}}
	for _, nic := range nics {
		i := slices.IndexFunc(view.NUMANodes, func(n PoolNUMANode) bool { return sameNumber(n.ID, nic.NUMANode) })
		if i < 0 {
			i = len(view.NUMANodes)
			view.NUMANodes = append(view.NUMANodes, PoolNUMANode{ID: nic.NUMANode, Free: new(int)})
		}
		view.NUMANodes[i].add(nic)
	}
	slices.SortFunc(view.NUMANodes, func(a, b PoolNUMANode) int {
		return cmp.Compare(order(a.ID), order(b.ID))
	})
	return view
}

func (n *PoolNUMANode) add(nic PoolNIC) {
	if nic.Health != v1alpha1.NICHealthy {
		return
	}
	n.HealthyNICs++
	n.Units += nic.Units
	switch {
	case nic.Users == nil:
		n.Free = nil
	case n.Free != nil:
		*n.Free += max(0, nic.Units-len(nic.Users))
	}
}

func sameNumber(a, b *int) bool { return order(a) == order(b) }

// order puts an unknown number behind all others.
func order(number *int) int {
	const last = 1 << 20
	if number == nil {
		return last
	}
	return *number
}

// NICsOf are the NICs of the pool with the PCI address, one for each node that has them.
func (p Pool) NICsOf(pciAddress string) []PoolNIC {
	var found []PoolNIC
	for _, node := range p.Nodes {
		for _, nic := range node.NICs {
			if nic.PCIAddress == pciAddress {
				found = append(found, nic)
			}
		}
	}
	return found
}

// IsHealthy reports whether there are NICs of the pool, all of them are healthy, and no node has a problem.
func (p Pool) IsHealthy() bool {
	nics := 0
	for _, node := range p.Nodes {
		nics += len(node.NICs)
		unhealthy := func(nic PoolNIC) bool { return nic.Health != v1alpha1.NICHealthy }
		if node.Problem != nil || slices.ContainsFunc(node.NICs, unhealthy) {
			return false
		}
	}
	return nics > 0
}
