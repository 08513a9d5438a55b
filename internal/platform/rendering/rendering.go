// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package rendering is the part of a platform that needs no cluster: what it keeps to itself on nodes, and how it writes
// the plans of a profile as objects. The command line plans and renders by the value that each platform has of type
// Platform. It is pure.
package rendering

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// Request is what is to be rendered: the plans of one profile for nodes that no platform has touched yet.
type Request struct {
	Profile *v1alpha1.LowLatencyNodeProfile
	// Shapes in ascending order of their hashes.
	Shapes []fleet.Shape
	// Namespace of the operator.
	Namespace string
	// Group is the name of the group of nodes that exists already, where the profile binds to one without its name.
	Group string
	// Facts of the hosts by the names of their nodes, where the platform writes on hosts; those of ReadInstallation.
	Facts map[string]*host.Facts
}

// Bundle is what is applied for one group of nodes, the nodes that a platform changes together.
type Bundle struct {
	Group string
	// GroupType is what the platform calls such a group: "machine config pool".
	GroupType string
	// Nodes by name, ascending.
	Nodes []string
	// Objects in the order in which they are applied.
	Objects []*unstructured.Unstructured
	// Host is what is written on the nodes, where the platform does so itself.
	Host *HostWriting
	// Carried is what the objects bring to the nodes, where somebody else writes it there.
	Carried *HostWriting
	// Operations are the same as a guard on the host takes them; none where nothing may be written, or something was not checked.
	Operations []operation.Operation
}

// Written is what comes to the nodes, whoever writes it there.
func (b *Bundle) Written() *HostWriting { return cmp.Or(b.Host, b.Carried) }

// HostWriting is what is written on hosts, as files with paths and as a change of the command line. It is printed as it is:
// the names of its fields are part of the command line's documented output.
type HostWriting struct {
	// PlanHash identifies the plan.
	PlanHash string `json:"planHash"`
	// Nodes on which the same is written, ascending.
	Nodes []string `json:"nodes"`
	// Refused tells that nothing is written before something is mended that Findings name.
	Refused bool `json:"refused,omitempty"`
	// Findings say what the hosts cannot have, or what has to be done first.
	Findings []string `json:"findings,omitempty"`
	// KernelArguments are added to the kernel's command line, in this order.
	KernelArguments []string `json:"kernelArguments,omitempty"`
	// Files ascending by path.
	Files []WrittenFile `json:"files,omitempty"`
	// Links are masked units.
	Links []WrittenLink `json:"links,omitempty"`
	// EnabledUnits are started at boot.
	EnabledUnits []string `json:"enabledUnits,omitempty"`
	// TuneDProfile is the profile that becomes the active one of TuneD.
	TuneDProfile string `json:"tunedProfile,omitempty"`
	// RemovedFiles are removed while the kubelet is stopped.
	RemovedFiles []string `json:"removedFiles,omitempty"`
	// Settings are files of the kernel and their values, now and at each boot.
	Settings []WrittenSetting `json:"settings,omitempty"`
	// Services and Modules are changed now.
	Services []WrittenState `json:"services,omitempty"`
	Modules  []WrittenState `json:"modules,omitempty"`
}

// WrittenFile is a file on a host.
type WrittenFile struct {
	Path string `json:"path"`
	// Mode in octal digits.
	Mode    string `json:"mode"`
	Content string `json:"content"`
}

// WrittenLink is a symbolic link on a host.
type WrittenLink struct {
	Path   string `json:"path"`
	Target string `json:"target"`
}

// WrittenSetting is a file of the kernel and its value.
type WrittenSetting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// WrittenState is a service or a module, and what becomes of it.
type WrittenState struct {
	Name  string `json:"name"`
	State string `json:"state"`
}

// Platform is the part of a platform that needs no cluster.
type Platform struct {
	// Rules are what the platform keeps to itself on nodes.
	Rules plan.PlatformRules
	// Render writes plans.
	Render Renderer
}

// Renderer writes the plans of a profile as the objects of one platform, one bundle for each group of nodes, ascending
// by name. The objects are those that the operator applies, byte for byte. The error says what the platform cannot write
// or would refuse.
type Renderer func(Request) ([]Bundle, error)

// DropRepeated leaves an object that several bundles hold in the first of them only: the groups of a profile share some
// objects, such as its RuntimeClass.
func DropRepeated(bundles []Bundle) {
	var seen []*unstructured.Unstructured
	for i := range bundles {
		bundles[i].Objects = slices.DeleteFunc(bundles[i].Objects, func(object *unstructured.Unstructured) bool {
			return slices.ContainsFunc(seen, func(other *unstructured.Unstructured) bool {
				return equality.Semantic.DeepEqual(object, other)
			})
		})
		seen = append(seen, bundles[i].Objects...)
	}
}
