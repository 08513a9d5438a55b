// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

const (
	onloadRoot   = "/proc/driver/onload"
	resourceRoot = "/proc/driver/sfc_resource"
	moduleRoot   = "/sys/module"
	noIOMMUFile  = moduleRoot + "/vfio/parameters/enable_unsafe_noiommu_mode"

	// controlPlane is what /proc/PID/comm says for onload_cp_server: the kernel keeps 15 characters.
	controlPlane = "onload_cp_serve"

	// maxResources bounds the tables of sfc_resource; Onload 10 has 5 (EFRM_RESOURCE_NUM).
	maxResources = 64
)

// stackModules are the modules of Onload and of the drivers of the NICs that it runs on natively.
func stackModules() []string {
	return []string{"onload", "sfc", "sfc_char", "sfc_driverlink", "sfc_resource", "xilinx_efct"}
}

// readBypass reads what bypass stacks show of themselves. It needs the processes that readProcesses found.
func readBypass(folders []string) func(*reader, *Facts) {
	return func(r *reader, f *Facts) {
		f.Bypass = Bypass{
			Onload:        r.onload(f.Processes.Value),
			VFIO:          r.vfio(),
			DeviceNodes:   r.deviceNodes(),
			Networks:      r.routes(),
			Lower:         r.lowerInterfaces(),
			UserSpaces:    r.userSpaces(folders),
			SocketReports: r.socketReports(),
		}
	}
}

// readNetworks reads the part of Facts.Bypass that says which NICs carry the host's own traffic.
func readNetworks(r *reader, f *Facts) {
	f.Bypass.Networks, f.Bypass.Lower = r.routes(), r.lowerInterfaces()
}

func (r *reader) onload(processes []Process) Onload {
	const version = onloadRoot + "/version"
	stacks := read(r, source[map[int]int]{onloadRoot + "/stacks", parseStacks})
	planes := addControlPlanes(read(r, source[[]int]{onloadRoot + "/cp_server_pids", parsePIDs}), processes)
	namespaces := r.networkNamespaces(stacks.Value, planes.Value)
	return Onload{
		Version: read(r,
			source[string]{version, parseColonValue("onload_version")},
			source[string]{moduleRoot + "/onload/version", parseName}),
		InterfaceVersion: read(r, source[string]{version, parseColonValue("uk_intf_ver")}),
		ControlPlanePIDs: planes,
		ControlPlanes: each(planes.Value, func(pid int) NamespacedProcess {
			return NamespacedProcess{pid, namespaces[pid]}
		}),
		Stacks:      countOf(stacks),
		StackOwners: ownersOf(stacks.Value, namespaces),
		Resources:   read(r, source[map[string]ResourceCount]{resourceRoot + "/resources", parseResources}),
		Interfaces:  r.registeredInterfaces(),
		Modules:     r.stackModules(),
	}
}

// parseColonValue returns how to read the value of one key, as efab_version_read_proc of Onload's
// src/driver/linux_onload/linux_stats.c writes them: "onload_version: 9.1.0.15 ".
func parseColonValue(key string) func(text string) (string, error) {
	return func(text string) (string, error) {
		value := parseColonPairs(text, key)[key]
		if value == "" {
			return "", fmt.Errorf("no line %s", key)
		}
		return value, nil
	}
}

// parsePIDs reads one process per line.
func parsePIDs(text string) ([]int, error) {
	pids := []int{}
	for field := range strings.FieldsSeq(text) {
		pid, err := parseIdentifier(field)
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// addControlPlanes adds the control planes that /proc shows. The kernel gives the list in the numbers of the
// reader's PID namespace (pid_vnr in cp_server_pids_show of src/driver/linux_onload/cplane.c) and leaves out
// what is not in it: to a container it is empty. The /proc of the host shows the process to a container, too.
func addControlPlanes(listed Fact[[]int], processes []Process) Fact[[]int] {
	if !listed.Known {
		return listed
	}
	for _, process := range processes {
		if process.Name == controlPlane && !slices.Contains(listed.Value, process.PID) {
			listed.Value = append(listed.Value, process.PID)
		}
	}
	slices.Sort(listed.Value)
	return listed
}

// parseStacks reads the processes that made stacks, by the number of the stack. Each line of efab_stacks_seq_show
// (src/driver/linux_onload/linux_stats.c) begins with the number of a stack, a colon and the process: 0 for one that has
// ended, or that is not in the PID namespace of the reader.
func parseStacks(text string) (map[int]int, error) {
	stacks := map[int]int{}
	for line := range strings.Lines(text) {
		number, rest, _ := strings.Cut(line, ":")
		stack, err := parseIdentifier(number)
		if err != nil {
			return nil, fmt.Errorf("not a line of a stack: %q", abbreviate(line))
		}
		first, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		pid, err := parseIdentifier(first)
		if err != nil {
			pid = 0
		}
		stacks[stack] = pid
	}
	return stacks, nil
}

func countOf(stacks Fact[map[int]int]) Fact[int] {
	if !stacks.Known {
		return Absent[int](stacks.Source, stacks.Reason)
	}
	return Known(len(stacks.Value), stacks.Source)
}

// ownersOf are the owners of stacks that are known.
func ownersOf(stacks map[int]int, namespaces map[int]string) map[int]NamespacedProcess {
	owners := map[int]NamespacedProcess{}
	for stack, pid := range stacks {
		if pid > 0 {
			owners[stack] = NamespacedProcess{pid, namespaces[pid]}
		}
	}
	return owners
}

// networkNamespaces tells the network namespaces of the owners of stacks and of control planes, by process. Links of
// other users' processes are closed to a reader without privileges. Everybody may look at /proc/PID/net, whose files
// each network namespace has of its own, so that their inodes tell namespaces apart (proc_net_ns_init and proc_alloc_inum of
// the kernel's fs/proc).
func (r *reader) networkNamespaces(stacks map[int]int, planes []int) map[int]string {
	pids := slices.Clone(planes)
	for _, pid := range stacks {
		if pid > 0 {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	pids = slices.Compact(pids)
	links := map[int]string{}
	for _, pid := range pids {
		target, err := r.link(fmt.Sprintf("%s/%d/ns/net", procRoot, pid))
		if errors.Is(err, fs.ErrPermission) && r.live {
			return r.inodesOfNamespaces(pids)
		}
		links[pid] = target
	}
	return links
}

func (r *reader) inodesOfNamespaces(pids []int) map[int]string {
	inodes := map[int]string{}
	for _, pid := range pids {
		found, err := r.walk.resolve(relative(fmt.Sprintf("%s/%d/net/dev", procRoot, pid)))
		if err == nil && found.node.inode > 0 {
			inodes[pid] = fmt.Sprintf("inode %d of /proc/PID/net/dev", found.node.inode)
		}
	}
	return inodes
}

// parseResources reads what efrm_resource_read_proc (src/driver/linux_resource/kernel_proc.c) writes: for
// each resource a title such as "*** VI ***", the total where there is one, the current number and the most
// that ever were.
func parseResources(text string) (map[string]ResourceCount, error) {
	resources := map[string]ResourceCount{}
	name := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "*** "); ok {
			name = strings.TrimSpace(strings.TrimSuffix(title, "***"))
			resources[name] = ResourceCount{Total: Absent[int](resourceRoot+"/resources", "no total for "+abbreviate(name))}
			if len(resources) > maxResources {
				return nil, tooManyError{maxResources}
			}
			continue
		}
		if line == "" {
			continue
		}
		count, known := resources[name]
		if err := count.set(line); err != nil || !known {
			return nil, cmp.Or(err, fmt.Errorf("a number without a title: %q", abbreviate(line)))
		}
		resources[name] = count
	}
	return resources, nil
}

// set takes over a line such as "current = 3".
func (c *ResourceCount) set(line string) error {
	key, value, ok := strings.Cut(line, "=")
	number, err := parseIdentifier(strings.TrimSpace(value))
	if !ok || err != nil {
		return fmt.Errorf("not a number of a resource: %q", abbreviate(line))
	}
	switch strings.TrimSpace(key) {
	case "total":
		c.Total = Known(number, resourceRoot+"/resources")
	case "current":
		c.Current = number
	}
	return nil
}

// registeredInterfaces lists the folders that sfc_resource makes for interfaces, and those below devices.
func (r *reader) registeredInterfaces() Fact[[]string] {
	const devices = "devices"
	isFolder := func(e entry) bool { return e.kind == kindDirectory }
	names, err := r.list(resourceRoot, isFolder)
	if err != nil {
		return Absent[[]string](resourceRoot, reasonOf(err))
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == devices })
	below, err := r.list(resourceRoot+"/"+devices, isFolder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Absent[[]string](resourceRoot+"/"+devices, reasonOf(err))
	}
	names = append(names, below...)
	slices.Sort(names)
	return Known(slices.Compact(names), resourceRoot)
}

// stackModules tells the loaded modules. A module has a folder below /sys/module, with a version only if
// its source states one.
func (r *reader) stackModules() Fact[map[string]string] {
	if _, err := r.directory(moduleRoot); err != nil {
		return Absent[map[string]string](moduleRoot, reasonOf(err))
	}
	modules := map[string]string{}
	for _, name := range stackModules() {
		if _, err := r.directory(moduleRoot + "/" + name); err == nil {
			modules[name] = r.textFact(moduleRoot + "/" + name + "/version").Value
		}
	}
	return Known(modules, moduleRoot)
}

// vfio reads the IOMMU groups. Where no NIC is in one, the hundreds of other devices that a host has are not looked at.
func (r *reader) vfio() VFIO {
	groups := r.groupsOf(r.nics)
	if len(groups) > 0 {
		maps.Copy(groups, r.groupsOf(r.pci))
	}
	return VFIO{Groups: groups, NoIOMMU: read(r, source[bool]{noIOMMUFile, parseLetter})}
}

// groupsOf are the IOMMU groups of those devices that are in one, by PCI address.
func (r *reader) groupsOf(devices map[string]string) map[string]int {
	groups := map[string]int{}
	for address, folder := range devices {
		group := r.linkFact(folder+"/iommu_group", "in no IOMMU group", parseName)
		if number, ok := numberIn(group.Value, "", ""); ok && group.Known {
			groups[address] = number
		}
	}
	return groups
}

// parseLetter reads a parameter of type bool, which the kernel shows as Y or N (param_get_bool).
func parseLetter(text string) (bool, error) {
	if text != "Y" && text != "N" {
		return false, fmt.Errorf("neither Y nor N: %q", abbreviate(text))
	}
	return text == "Y", nil
}

// lowerInterfaces reads the links lower_NAME of each interface (Documentation/ABI/testing/sysfs-class-net).
func (r *reader) lowerInterfaces() map[string][]string {
	lower := map[string][]string{}
	names := r.members(netRoot, maxEntries, func(e entry) bool { return e.kind != kindFile })
	for _, name := range names {
		if below := r.lowerOf(name); len(below) > 0 {
			lower[name] = below
		}
	}
	if ports := lower[datapath]; len(ports) > 0 {
		for _, name := range names {
			if _, known := lower[name]; !known && r.isInternalPort(name) {
				lower[name] = slices.Clone(ports)
			}
		}
	}
	return lower
}

// datapath is the interface that Open vSwitch makes the master of the NICs in the kernel's datapath.
const datapath = "ovs-system"

func (r *reader) lowerOf(name string) []string {
	const prefix = "lower_"
	folder := netRoot + "/" + name
	isLink := func(e entry) bool { return e.kind == kindLink && strings.HasPrefix(e.name, prefix) }
	links, err := r.peekList(folder, isLink)
	if err != nil || len(links) == 0 {
		return nil
	}
	r.taken.list(folder, links, nil)
	lower := make([]string, len(links))
	for i, link := range links {
		lower[i] = strings.TrimPrefix(link, prefix)
	}
	return lower
}

// isInternalPort recognises an interface such as br-ex of OpenShift, an internal port of Open vSwitch. The kernel
// links it to no NIC, although its packets leave by those of the datapath: ovs_netdev_link of
// net/openvswitch/vport-netdev.c joins only other drivers' interfaces to ovs-system. It is an Ethernet
// interface without a device and without a master.
func (r *reader) isInternalPort(name string) bool {
	const ethernet = 1 // ARPHRD_ETHER of include/uapi/linux/if_arp.h
	folder := netRoot + "/" + name
	if kind := r.identifierFact(folder + "/type"); kind.Value != ethernet {
		return false
	}
	for _, link := range []string{"device", "master"} {
		if _, err := r.link(path.Join(folder, link)); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}
