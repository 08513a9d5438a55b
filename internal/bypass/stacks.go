// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// Stack is a row of the table of stacks: all that is known about one besides its types in the API. Whoever wants to
// know something about a stack asks its row, and compares no type.
type Stack struct {
	// Type is its name in the API.
	Type v1alpha1.StackType
	// Sample is a pool with it below config/samples, Section the heading about it in docs/pools.md.
	Sample, Section string
	// HasStackdump means that onload_stackdump counts what its programs receive at user level and what through the
	// kernel.
	HasStackdump bool
	// AcceleratesSockets means that programs with the C library's sockets go by it unchanged. Measures is the vendor's program by which another
	// one is measured; "" for none that is known.
	AcceleratesSockets bool
	Measures           string
	// Plugin is what the pod of its device plugin needs besides.
	Plugin PluginPod

	// isolation is how programs are confined that drive the NIC from user space; nil when the kernel's driver keeps it.
	isolation func(*v1alpha1.BypassStack) v1alpha1.VFIOIsolation
	// hasSection reports whether a spec has the section of the stack.
	hasSection func(*v1alpha1.BypassStack) bool
	// needs reads the section.
	needs func(*v1alpha1.BypassStack) needs
	// supported refuses a NIC that the stack does not support, also one on which virtual functions are to be created;
	// nil when it supports all.
	supported rule
	// eligible are the rules about what else forbids a NIC, rules those about what it or its node lacks, both in the
	// order in which equally severe sentences are told.
	eligible, rules []rule
	// badSettings are sentences about what a pool would set and the stack would not take; nil for no settings.
	badSettings func(*v1alpha1.BypassStack) []string
	// addEdits adds what a container gets besides the addresses of its NICs; nil for nothing that is known before
	// the allocation.
	addEdits func(*Edits, []*candidate) error
	// shares is how many containers may share a NIC, and whether that is known; nil when none may.
	shares func(Input, host.NIC) (count int, known bool)
	// queues are the receive queues behind so many units of a NIC; nil for stacks that hand out none.
	queues func(c *candidate, units int) []int
}

// rule is one thing to say about a NIC.
type rule func(*candidate) verdict

// needs is what a pool's stack needs of a node, whichever section of the spec says it.
type needs struct {
	// moduleVersion and userVersion are the releases that the spec asks for; "" for any. The fields say where.
	moduleVersion, moduleField string
	userVersion, userField     string
	userSpace                  v1alpha1.UserSpaceSpec
	// sameBuild means that the user files must be of the module's build, and hold its interface version.
	sameBuild bool
	// unversioned means that the user files need not say which release they are of.
	unversioned bool
	// overXDP means that frames leave the NIC's driver through XDP, whoever owns the sockets.
	overXDP bool
	// experimental means that Onload reaches the NIC by AF_XDP.
	experimental bool
	start        v1alpha1.OnloadStart
	// smallPages means that the stack works with hugepages of 2 MiB only.
	smallPages bool
	// otherNICs is a sentence about how NICs are reached that the stack does not support.
	otherNICs string
	// nodes are the device files that must be there, modules the kernel modules.
	nodes, modules []string
	// nodesForAll means that the device files must be open to everybody.
	nodesForAll bool
	// library is the file whose version is that of the user space.
	library string
	// files must be there with userSpace.source HostPath; extras are handed on where they are.
	files, extras []string
}

// fromHost reports whether the user files are those of the node.
func (n *needs) fromHost() bool { return n.userSpace.Source == v1alpha1.UserSpaceHostPath }

// PluginPod is what the pod of a device plugin needs besides, because of its stack.
type PluginPod struct {
	// HostNetwork means that it works in the network namespace of the node, in which the NICs are.
	HostNetwork bool
	// Capabilities without CAP_.
	Capabilities []string
	// Folders of the node that it writes.
	Folders []PluginFolder
	// Alone means that two of them cannot run beside each other on one node.
	Alone bool
}

// PluginFolder is a folder of the node that a device plugin writes, under the same path.
type PluginFolder struct {
	// Name of the volume.
	Name, Path string
	// Created means that it is created where there is none.
	Created bool
}

// Stacks is the table of stacks. A stack is a type in the API, a file here with its row, and a line in this table; it
// needs a sample and a section in docs/pools.md, which a test looks for.
func Stacks() []Stack {
	return []Stack{onloadStack(), tcpDirectStack(), efviStack(), afxdpStack(), vfioStack()}
}

// StackOf returns the row of a stack; the zero row for a type that is none.
func StackOf(kind v1alpha1.StackType) Stack {
	stacks := Stacks()
	index := slices.IndexFunc(stacks, func(s Stack) bool { return s.Type == kind })
	if index < 0 {
		return Stack{}
	}
	return stacks[index]
}

// sectionsOf are the stacks whose sections a spec has.
func sectionsOf(spec *v1alpha1.BypassStack) []Stack {
	return slices.DeleteFunc(Stacks(), func(s Stack) bool { return !s.hasSection(spec) })
}

// hasSection reports whether the section of the type is there, and no other.
func hasSection(spec *v1alpha1.BypassStack) bool {
	sections := sectionsOf(spec)
	return len(sections) == 1 && sections[0].Type == spec.Type
}

// stackOf returns the stack whose section a spec has. ParsePool makes sure that there is one.
func stackOf(spec *v1alpha1.BypassNICPoolSpec) Stack {
	if sections := sectionsOf(&spec.Stack); len(sections) > 0 {
		return sections[0]
	}
	return vfioStack()
}

// UserSpaceFolders are the folders of the host in which the user files of the pool's stack are looked for: what to ask
// host.Request for before Devices is called. A pool whose user files come with the application has none.
func UserSpaceFolders(spec *v1alpha1.BypassNICPoolSpec) []string {
	needs := stackOf(spec).needs(&spec.Stack)
	if !needs.fromHost() {
		return nil
	}
	return []string{needs.userSpace.HostPath}
}
