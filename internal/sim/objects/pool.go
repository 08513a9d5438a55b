// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package objects

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// FirstPort and SecondPort are the Solarflare NICs of the simulated Xeon.
const (
	FirstPort  = "0000:af:00.0"
	SecondPort = "0000:af:00.1"
)

// Pool builds BypassNICPools.
type Pool struct {
	v1alpha1.BypassNICPool
}

// MakePool makes a pool of the Solarflare NICs on nodes with the label role=trading.
func MakePool(name string) *Pool {
	p := &Pool{}
	p.Name, p.UID, p.Generation = name, types.UID("uid-"+name), 1
	p.Spec.NodeSelector.MatchLabels = v1alpha1.Labels{"role": "trading"}
	p.Spec.NICs = []v1alpha1.NICSelector{{Vendor: "1924"}}
	p.Spec.ResourceName = v1alpha1.GroupName + "/" + name
	p.Spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackVFIO, VFIO: &v1alpha1.VFIOStack{}}
	return p
}

// Selecting sets the labels of the nodes.
func (p *Pool) Selecting(labels v1alpha1.Labels) *Pool {
	p.Spec.NodeSelector.MatchLabels = labels
	return p
}

// NICs selects NICs by their addresses.
func (p *Pool) NICs(addresses ...v1alpha1.PCIAddress) *Pool {
	p.Spec.NICs = []v1alpha1.NICSelector{{PCIAddresses: addresses}}
	return p
}

// Resource sets the name of the resource.
func (p *Pool) Resource(name string) *Pool {
	p.Spec.ResourceName = name
	return p
}

// Age sets how many seconds ago the pool was created, as seen from a moment that never changes.
func (p *Pool) Age(seconds int64) *Pool {
	p.CreationTimestamp = metav1.Unix(1_800_000_000-seconds, 0)
	return p
}

// Obj returns the object.
func (p *Pool) Obj() *v1alpha1.BypassNICPool { return p.DeepCopy() }

// NIC is what an agent says about a NIC of a pool. It gives two units.
func NIC(address string, health v1alpha1.NICHealth, reasons ...string) v1alpha1.NodeBypassNIC {
	return v1alpha1.NodeBypassNIC{PCIAddress: address, Health: health, Reasons: reasons, Units: 2}
}

// User is a container that got a unit of a NIC by a way of allocation, and whose memory and CPUs are near the NIC.
func User(way v1alpha1.AllocationType) v1alpha1.NICUser {
	return v1alpha1.NICUser{Namespace: "trading", Pod: "feed", Container: "main", Alignment: v1alpha1.AlignmentAligned, Allocation: way}
}
