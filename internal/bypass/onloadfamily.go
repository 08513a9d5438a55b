// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// What Onload, TCPDirect and ef_vi have in common: modules, device files, an installation on the node, and NICs.
const (
	nodeOnload      = "/dev/onload"
	nodeOnloadEpoll = "/dev/onload_epoll"
	nodeSFCChar     = "/dev/sfc_char"

	moduleOnload   = "onload"
	moduleResource = "sfc_resource"
	moduleChar     = "sfc_char"

	driverSFC = "sfc"

	fileCPlane = "libefcp.so.1"

	// StackdumpInside is where a container finds the tool that prints what its stacks received.
	StackdumpInside = binariesInside + "/" + fileStackdump

	// installationInside is the folder of a container below which it finds the stack, wherever the node has it:
	// the one that images with Onload use.
	installationInside = "/opt/onload"
	librariesInside    = installationInside + "/usr/lib64"
	binariesInside     = installationInside + "/usr/bin"
)

// onloadRules are the rules about what a NIC or its node lacks, with those about versions that differ between the
// stacks of the family.
func onloadRules(versions ...rule) []rule {
	return slices.Concat([]rule{
		(*candidate).seriesDriver, (*candidate).carrier, (*candidate).numaNode, (*candidate).pciLink, (*candidate).virtualFunctions,
		// The kernel side of the stack.
		(*candidate).modules, (*candidate).deviceNodes, (*candidate).controlPlane, (*candidate).registered,
		(*candidate).registeredOthers, (*candidate).virtualInterfaces, (*candidate).shares,
		(*candidate).moduleVersion, (*candidate).userFiles,
	}, versions, []rule{(*candidate).hugepages})
}

// addOnloadEdits returns what adds device files, user files, and the variables by which the stack is found and
// configured. Files are mounted below /opt/onload of the container.
func addOnloadEdits(settings func([]*candidate) []Variable) func(*Edits, []*candidate) error {
	return func(edits *Edits, held []*candidate) (err error) {
		first := held[0]
		edits.addNodes(first.needs.nodes...)
		if _, ok := first.bypass().DeviceNodes.Value[nodeSFCChar]; ok {
			edits.addNodes(nodeSFCChar)
		}
		if first.needs.fromHost() {
			if edits.Mounts, err = first.mounts(); err != nil {
				return err
			}
		}
		edits.Environment = append(edits.Environment, first.loader()...)
		if settings != nil {
			edits.Environment = append(edits.Environment, settings(held)...)
		}
		return nil
	}
}

// mounts are the user files that the container gets, in ascending order of their names there.
func (c *candidate) mounts() ([]Mount, error) {
	mounts := map[string]Mount{}
	for _, name := range slices.Concat(c.needs.files, c.needs.extras) {
		file, ok := c.file(name)
		if !ok && slices.Contains(c.needs.files, name) {
			return nil, fmt.Errorf("%s was not found below %s of spec.stack userSpace.hostPath; install it there, or use "+
				"userSpace.source Application", name, c.needs.userSpace.HostPath)
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

// loader makes the dynamic linker find the mounted libraries. libonload.so is preloaded by its path, so that nothing
// else of the image is searched elsewhere; the launcher and linked libraries are found by name only.
func (c *candidate) loader() []Variable {
	switch {
	case !c.needs.fromHost() || c.needs.start == v1alpha1.StartApplication:
		return nil
	case c.needs.start == v1alpha1.StartPreload:
		return []Variable{{"LD_PRELOAD", librariesInside + "/" + fileOnload}}
	default:
		return []Variable{{"LD_LIBRARY_PATH", librariesInside}}
	}
}

// supported refuses a NIC that Onload has no native datapath for.
func (c *candidate) supported() verdict {
	if c.needs.overXDP {
		return passed()
	}
	for _, id := range []host.Fact[string]{c.nic.Vendor, c.nic.Device} {
		if v := absent(id, "A PCI identifier of "+c.name(), "its series is not known",
			"let the program read /sys of the node"); v.level != levelPassed {
			return v
		}
	}
	if c.model.Onload {
		return passed()
	}
	what := "of no series that " + string(c.stack.Type) + " knows"
	if c.modelKnown {
		what = "of series " + c.model.Series
	}
	return refused("NIC %s (%s:%s) is %s, and %s needs series 8000, X2, X3 or X4; select others in spec.nics.%s",
		c.name(), topology.PCIID(c.nic.Vendor.Value), topology.PCIID(c.nic.Device.Value), what, c.stack.Type, c.needs.otherNICs)
}

const remedyProc = "let the program read /proc/driver of the node, or load the modules of Onload again"

// modules wants the kernel modules of the stack. The in-tree module sfc drives the NIC and knows nothing of Onload.
func (c *candidate) modules() verdict {
	loaded := c.bypass().Onload.Modules
	if v := absent(loaded, "The list of loaded modules", "those of "+string(c.stack.Type)+" may be missing",
		"let the program read /proc/modules of the node"); v.level != levelPassed {
		return v
	}
	missing := missingFrom(c.needs.modules, func(name string) bool { _, ok := loaded.Value[name]; return ok })
	if len(missing) == 0 {
		return passed()
	}
	return failed("The kernel of the node has not loaded %s (%s), which %s needs; install the release of Onload that "+
		"belongs to this kernel and load the module onload.", strings.Join(missing, ", "), loaded.Source, c.stack.Type)
}

// controlPlane wants a control plane in each network namespace with stacks. Without stacks none need run: the kernel
// starts it with the first one.
func (c *candidate) controlPlane() verdict {
	if !slices.Contains(c.needs.modules, moduleOnload) || !c.isLoaded() {
		return passed()
	}
	onload := c.bypass().Onload
	if v := absent(onload.ControlPlanePIDs, "The processes of Onload's control plane", "it may be dead", remedyProc); v.level != levelPassed {
		return v
	}
	if len(onload.ControlPlanePIDs.Value) > 0 {
		return c.controlPlaneOfEach()
	}
	if v := absent(onload.Stacks, "The number of Onload's stacks", "they may run without a control plane", remedyProc); v.level != levelPassed {
		return v
	}
	if onload.Stacks.Value == 0 {
		return passed()
	}
	return failed("%d stacks of Onload run without a control plane (%s is empty), so routes and neighbours do not "+
		"change any more; see why onload_cp_server ended, and that /sys/module/onload/parameters/cplane_server_path "+
		"names it.", onload.Stacks.Value, onload.ControlPlanePIDs.Source)
}

// controlPlaneOfEach looks for the control plane of each stack whose network namespace is known. Where that of a control
// plane is not, it may be any.
func (c *candidate) controlPlaneOfEach() verdict {
	onload := c.bypass().Onload
	var served []string
	for _, process := range onload.ControlPlanes {
		if process.Namespace == "" {
			return passed()
		}
		served = append(served, process.Namespace)
	}
	for _, stack := range slices.Sorted(maps.Keys(onload.StackOwners)) {
		owner := onload.StackOwners[stack]
		if owner.Namespace == "" || slices.Contains(served, owner.Namespace) {
			continue
		}
		return failed("Stack %d of Onload, of process %d, runs without a control plane: its network namespace (%s) has no "+
			"onload_cp_server, so routes and neighbours do not change any more for that program, and onload_stackdump ends with "+
			"SIGBUS beside it; see why that ended, and start the program again.", stack, owner.PID, owner.Namespace)
	}
	return passed()
}

// registered wants the NIC among those that sfc_resource knows. A NIC under the kernel's own sfc driver is not.
func (c *candidate) registered() verdict {
	if !c.isLoaded() {
		return passed()
	}
	names := c.bypass().Onload.Interfaces
	if v := absent(names, "The NICs that sfc_resource knows", "the NIC may not be accelerated", remedyProc); v.level != levelPassed {
		return v
	}
	if slices.Contains(names.Value, c.nic.PCIAddress) || c.nic.Name.Known && slices.Contains(names.Value, c.nic.Name.Value) {
		return c.registeredByDriver()
	}
	if c.isAway() {
		return noted("The interface of NIC %s is in the network namespace of a pod, from where sfc_resource does not "+
			"name it.", c.nic.PCIAddress)
	}
	return failed("NIC %s is not registered with sfc_resource (%s has %s), so programs run on kernel sockets; %s.",
		c.name(), names.Source, listOrNone(names.Value), c.registration())
}

// registeredByDriver wants the NIC to be registered by the driver of Onload's release. The kernel's own sfc registers
// nothing, so that somebody did it by hand, for AF_XDP.
func (c *candidate) registeredByDriver() verdict {
	if c.needs.overXDP || c.model.Driver != driverSFC || !c.hasKernelsDriver() {
		return passed()
	}
	return failed("NIC %s is registered with sfc_resource, but not by the driver of Onload's release: the loaded module sfc has no "+
		"version, so it is the kernel's own, and Onload reaches the NIC by AF_XDP only; load the sfc of Onload's release, or use "+
		"spec.stack.onload.datapath ExperimentalAFXDP.", c.name())
}

// hasKernelsDriver reports whether the loaded driver is the kernel's own, which has no version; that of Onload's release has.
func (c *candidate) hasKernelsDriver() bool {
	version, loaded := c.bypass().Onload.Modules.Value[c.model.Driver]
	return loaded && version == ""
}

// registration is the way out of registered.
func (c *candidate) registration() string {
	if c.needs.experimental {
		return "write the interface's name to /sys/module/sfc_resource/afxdp/register, which is lost when Onload is " +
			"loaded again"
	}
	if c.hasKernelsDriver() {
		return "the loaded module " + c.model.Driver + " has no version, so it is the kernel's own: load the one of " +
			"Onload's release"
	}
	return "load the driver " + c.model.Driver + " of Onload's release and set the interface up"
}

// virtualInterfaces wants VIs. That all are in use is noted only, because the users may be the pods of the pool:
// every stack holds one on each NIC that it can reach.
func (c *candidate) virtualInterfaces() verdict {
	if !c.isLoaded() {
		return passed()
	}
	resources := c.bypass().Onload.Resources
	if v := absent(resources, "The number of virtual interfaces (VIs)", "there may be none", remedyProc); v.level != levelPassed {
		return v
	}
	table, ok := resources.Value[tableVI]
	total, known := table.Total.Get()
	switch {
	case !ok || !known:
		return unknown("%s does not say how many virtual interfaces (VIs) there are, as long as no NIC is registered "+
			"with sfc_resource; register the NIC.", resources.Source)
	case total == 0:
		return failed("sfc_resource has no virtual interfaces (total of VI in %s is 0), so programs run on kernel "+
			"sockets; see the options num_vis and rss_cpus of the NIC's driver.", resources.Source)
	case table.Current >= total:
		return noted("All %d virtual interfaces (VIs) of the node's NICs are in use (%s); another program would run on "+
			"kernel sockets.", total, resources.Source)
	default:
		return passed()
	}
}

// tableVI is the name of the table of virtual interfaces in /proc/driver/sfc_resource/resources.
const tableVI = "VI"

// shares wants to know how many virtual interfaces this NIC has when it is shared.
func (c *candidate) shares() verdict {
	if !isShared(&c.in.Pool.Spec) || !c.isLoaded() {
		return passed()
	}
	if whole, known := wholeShares(c.in, c.nic); known {
		return c.divided(whole)
	}
	return unknown("How many virtual interfaces (VIs) NIC %s has is not known: %s counts those of all registered NICs "+
		"together, which gives the share of one only when all are of one model; use spec.sharing.mode Exclusive.",
		c.name(), "/proc/driver/sfc_resource/resources")
}

// divided wants the virtual interfaces of a NIC that several pools share to be enough for all of them.
func (c *candidate) divided(whole int) verdict {
	reserved, wanted := c.claim.Reserved(c.nic.PCIAddress), int(c.in.Pool.Spec.Sharing.MaximumSharesPerNIC)
	left := max(0, whole-reserved)
	if reserved == 0 || left >= wanted {
		return passed()
	}
	const text = "NIC %s has %d virtual interfaces (VIs), of which older pools that share it have %d (it is shared with %s), so %d are left of " +
		"the %d that this pool is to hand out; lower spec.sharing.maximumSharesPerNIC of one of the pools."
	judge := noted
	if left == 0 {
		judge = failed
	}
	return judge(text, c.name(), whole, reserved, strings.Join(c.claim.Partners(c.nic.PCIAddress), ", "), left, wanted)
}

// registeredOthers looks at the other NICs that Onload was told of. A stack takes a virtual interface on every one, so
// that a NIC without native XDP among them brings the kernel down when any program of any pool is accelerated.
func (c *candidate) registeredOthers() verdict {
	if !c.isLoaded() {
		return passed()
	}
	const remedy = "load the modules of Onload again without registering it"
	for _, name := range c.bypass().Onload.Interfaces.Value {
		if name == "lo" {
			return failed("Interface lo is registered with sfc_resource and has no native XDP, so the next accelerated program "+
				"makes the kernel panic; %s.", remedy)
		}
		for _, nic := range c.in.Facts.NICs {
			if isNamed := nic.PCIAddress == name || nic.Name.Known && nic.Name.Value == name; isNamed && lacksXDP(nic) {
				return failed("NIC %s with driver %s is registered with sfc_resource and not known to have native XDP, so the next "+
					"accelerated program may make the kernel panic; %s.", nameOfNIC(nic), nic.Driver.Value, remedy)
			}
		}
	}
	return passed()
}

// hugepages wants pages of 2 MiB on the NIC's NUMA node where the stack cannot do without: TCPDirect allocates all
// buffers from them, and NICs of series X3 and X4 receive into them, whatever the default size is. Pages that are
// all in use are noted only: the kubelet counts them, and the pods of this pool may be the users.
func (c *candidate) hugepages() verdict {
	if !c.needs.smallPages && (!c.model.SuperBuffers || c.needs.overXDP) {
		return passed()
	}
	pool, where, found := c.smallPages()
	if !found || !pool.Total.Known || !pool.Free.Known {
		return unknown("The hugepages of 2 MiB of %s cannot be read (%s), so NIC %s may find none; let the program read "+
			"/sys/devices/system/node of the node.", where, cmp.Or(pool.Free.Reason, pool.Total.Reason, "no pool of that size"), c.name())
	}
	switch {
	case pool.Total.Value == 0:
		return failed("There are no hugepages of 2 MiB on %s, and %s cannot work without them on NIC %s; add {size: 2Mi} "+
			"to spec.hugepages of the pool.", where, c.stack.Type, c.name())
	case pool.Free.Value == 0:
		return noted("All %d hugepages of 2 MiB on %s are in use (free_hugepages is 0); if no pod holds them, add pages "+
			"or find the process of the node that does.", pool.Total.Value, where)
	default:
		return passed()
	}
}
