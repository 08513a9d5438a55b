// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

const (
	// StackdumpInside is where a container finds the tool that prints what its stacks received.
	StackdumpInside = binariesInside + "/" + fileStackdump

	// installationInside is the folder of a container below which it finds the stack, wherever the node has it:
	// the one that images with Onload use.
	installationInside = "/opt/onload"
	librariesInside    = installationInside + "/usr/lib64"
	binariesInside     = installationInside + "/usr/bin"

	// readWrite are the permissions of device files: no container has to make one.
	readWrite = "rw"

	// attachedInterface is the name that Multus gives the first interface which it adds to a pod.
	attachedInterface = "net1"
)

// ContainerEdits returns what a container gets that holds devices of the pool, one or several. It fails for a device
// that must not be handed out, and when a file or group that the container needs is not known. Files are mounted
// below /opt/onload of the container. Sockets of AF_XDP belong to one allocation, so that the device plugin adds them.
func ContainerEdits(in Input, devices []Device) (Edits, error) {
	if len(devices) == 0 {
		return Edits{}, errors.New("no device of the pool was given to the container")
	}
	held, err := candidatesOf(in, devices)
	if err != nil {
		return Edits{}, err
	}
	first := held[0]
	edits := Edits{Environment: addresses(in.Pool.Spec.ResourceName, held)}
	if first.stack.isVFIO() {
		if err := edits.addVFIO(in.Pool.Spec.ResourceName, held); err != nil {
			return Edits{}, err
		}
		return edits, nil
	}
	if first.stack.isAFXDP() {
		return edits, nil
	}
	edits.addNodes(first.stack.nodes...)
	if _, ok := first.bypass().DeviceNodes.Value[nodeSFCChar]; ok {
		edits.addNodes(nodeSFCChar)
	}
	if first.stack.fromHost() {
		if edits.Mounts, err = first.mounts(); err != nil {
			return Edits{}, err
		}
	}
	edits.Environment = append(edits.Environment, first.loader()...)
	edits.Environment = append(edits.Environment, settings(held)...)
	return edits, nil
}

// candidatesOf are the devices in ascending order of PCI address, each once: a container may hold several shares of
// one NIC.
func candidatesOf(in Input, devices []Device) ([]*candidate, error) {
	byAddress := map[string]*candidate{}
	for _, device := range devices {
		if device.Health == v1alpha1.NICIneligible {
			return nil, fmt.Errorf("NIC %s must not be handed out: %s", device.NIC.PCIAddress, Why(device.Reasons))
		}
		byAddress[device.NIC.PCIAddress] = newCandidate(in, device.NIC, nil)
	}
	return slices.SortedFunc(maps.Values(byAddress), func(a, b *candidate) int {
		return compareAddresses(a.nic.PCIAddress, b.nic.PCIAddress)
	}), nil
}

// mounts are the user files that the container gets, in ascending order of their names there.
func (c *candidate) mounts() ([]Mount, error) {
	mounts := map[string]Mount{}
	for _, name := range slices.Concat(c.stack.files, c.stack.extras) {
		file, ok := c.file(name)
		if !ok && slices.Contains(c.stack.files, name) {
			return nil, fmt.Errorf("%s was not found below %s of spec.stack userSpace.hostPath; install it there, or use "+
				"userSpace.source Application", name, c.stack.userSpace.HostPath)
		}
		if ok {
			for _, inside := range namesInside(name) {
				mounts[inside] = Mount{HostPath: file.Path, ContainerPath: inside}
			}
		}
	}
	ordered := make([]Mount, 0, len(mounts))
	for _, inside := range slices.Sorted(maps.Keys(mounts)) {
		ordered = append(ordered, mounts[inside])
	}
	return ordered, nil
}

// namesInside are the paths of a user file in a container. Programs ask for a library by the name that it was given
// when it was built, which ends in .so.1; compilers and people use the one without a number.
func namesInside(name string) []string {
	if name == fileLauncher || name == fileStackdump {
		return []string{binariesInside + "/" + name}
	}
	path := librariesInside + "/" + name
	if name == fileOnload {
		return []string{path}
	}
	bare := strings.TrimSuffix(path, ".1")
	return []string{bare, bare + ".1"}
}

func (e *Edits) addNodes(paths ...string) {
	for _, path := range paths {
		node := DeviceNode{Path: path, Permissions: readWrite}
		if !slices.Contains(e.DeviceNodes, node) {
			e.DeviceNodes = append(e.DeviceNodes, node)
		}
	}
}

// addresses tells the container which NICs it holds, in the variable that users of the SR-IOV network device plugin
// know: PCIDEVICE_, the resource in upper case with underscores, and the PCI addresses.
func addresses(resource string, held []*candidate) []Variable {
	list := make([]string, 0, len(held))
	for _, c := range held {
		list = append(list, c.nic.PCIAddress)
	}
	return []Variable{{addressVariable(resource), strings.Join(list, ",")}}
}

func addressVariable(resource string) string {
	return "PCIDEVICE_" + strings.ToUpper(strings.NewReplacer(".", "_", "/", "_", "-", "_").Replace(resource))
}

// information is what the variable PCIDEVICE_…_INFO tells about a NIC, in the notation of that plugin.
type information struct {
	Generic genericInformation `json:"generic"`
	VFIO    vfioInformation    `json:"vfio"`
}

type genericInformation struct {
	DeviceID string `json:"deviceID"`
}

type vfioInformation struct {
	Group     string `json:"dev-mount"`
	Container string `json:"mount"`
}

func (e *Edits) addVFIO(resource string, held []*candidate) error {
	told := map[string]information{}
	e.addNodes(nodeVFIO)
	for _, c := range held {
		group, known := c.group(c.nic.PCIAddress)
		if !known {
			return fmt.Errorf("the IOMMU group of NIC %s is not known; bind the NIC to vfio-pci", c.nic.PCIAddress)
		}
		path := c.groupPath(group)
		e.addNodes(path)
		told[c.nic.PCIAddress] = information{
			Generic: genericInformation{DeviceID: c.nic.PCIAddress},
			VFIO:    vfioInformation{Group: path, Container: nodeVFIO},
		}
	}
	text, err := json.Marshal(told)
	if err != nil {
		return fmt.Errorf("the NICs of the container cannot be described: %w", err)
	}
	e.Environment = append(e.Environment, Variable{addressVariable(resource) + "_INFO", string(text)})
	return nil
}

// loader makes the dynamic linker find the mounted libraries. libonload.so is preloaded by its path, so that nothing
// else of the image is searched elsewhere; the launcher and linked libraries are found by name only.
func (c *candidate) loader() []Variable {
	switch {
	case !c.stack.fromHost() || c.stack.start == v1alpha1.StartApplication:
		return nil
	case c.stack.start == v1alpha1.StartPreload:
		return []Variable{{"LD_PRELOAD", librariesInside + "/" + fileOnload}}
	default:
		return []Variable{{"LD_LIBRARY_PATH", librariesInside}}
	}
}

// settings are the variables by which the stack is configured.
func settings(held []*candidate) []Variable {
	spec := &held[0].in.Pool.Spec
	switch {
	case spec.Stack.Onload != nil:
		return onloadSettings(held[0].in, spec.Stack.Onload)
	case spec.Stack.TCPDirect != nil:
		return []Variable{{"ZF_ATTR", zfAttributes(held, spec.Stack.TCPDirect.Attributes)}}
	default:
		return nil
	}
}

// onloadSettings are the EF_ variables of the profile, with the pool's options over them, in ascending order of their
// names.
func onloadSettings(in Input, o *v1alpha1.OnloadStack) []Variable {
	values := profileOptions(in, cmp.Or(o.Profile, v1alpha1.OnloadProfileLatency))
	good, _ := goodOptions(o.Options)
	for _, option := range good {
		values[option.Name] = option.Value
	}
	variables := make([]Variable, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		variables = append(variables, Variable{name, values[name]})
	}
	return variables
}

// profileOptions are the options of Onload's profiles latency and latency-best
// (scripts/onload_profiles/latency.opf, latency-best.opf).
func profileOptions(in Input, profile v1alpha1.OnloadProfile) map[string]string {
	values := map[string]string{}
	if profile == v1alpha1.OnloadProfileNone {
		return values
	}
	values["EF_POLL_USEC"] = "100000"
	values["EF_TCP_FASTSTART_INIT"] = "0"
	values["EF_TCP_FASTSTART_IDLE"] = "0"
	if profile == v1alpha1.OnloadProfileLatency {
		return values
	}
	values["EF_CTPIO_SWITCH_BYPASS"] = "1"
	values["EF_EPOLL_MT_SAFE"] = "1"
	values["EF_TPH_MODE"] = "2"
	if !mayHaveFastX2(in) {
		values["EF_CTPIO_MODE"] = "ct"
	}
	return values
}

// mayHaveFastX2 tells whether a NIC of series X2 runs above 10 Gbit/s, or may: a NIC that sends faster than the CPU
// writes would cut frames off in mid-air, which arrive as poisoned ones. Like the vendor's script it looks at all
// NICs of the node, because a stack uses every one that it can reach. Unlike it, it takes an unknown speed for a
// high one: a link that comes up later must not spoil the frames of a running container.
func mayHaveFastX2(in Input) bool {
	const tenGigabit = 10000
	return slices.ContainsFunc(candidatesOfNode(in), func(c *candidate) bool {
		speed, known := c.nic.SpeedMegabits.Get()
		return c.model.Series == "X2" && c.nic.Driver.Value == c.model.Driver && (!known || speed > tenGigabit)
	})
}

func candidatesOfNode(in Input) []*candidate {
	all := make([]*candidate, 0, len(in.Facts.NICs))
	for _, nic := range in.Facts.NICs {
		all = append(all, newCandidate(in, nic, nil))
	}
	return all
}

// zfAttributes is the text of ZF_ATTR. TCPDirect has one default interface: that of the first NIC. A program that
// holds several opens the others by name.
func zfAttributes(held []*candidate, attributes []v1alpha1.TCPDirectAttribute) string {
	name := held[0].nic.Name.Value
	if held[0].in.Pool.Spec.NetworkAttachment != nil || name == "" {
		name = attachedInterface
	}
	good, _ := goodAttributes(attributes)
	parts := make([]string, 0, 1+len(good))
	parts = append(parts, "interface="+name)
	for _, attribute := range good {
		parts = append(parts, attribute.Name+"="+attribute.Value)
	}
	return strings.Join(parts, ";")
}
