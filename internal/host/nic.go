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
	"strconv"
	"strings"
	"syscall"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

const (
	pciRoot    = "/sys/bus/pci/devices"
	deviceRoot = "/sys/devices"
	netRoot    = "/sys/class/net"

	// networkClass begins the PCI class of network controllers (PCI Code and ID Assignment, base class 02h).
	networkClass = "0x02"

	// maxBridges bounds the depth of a PCI tree. A domain has 256 buses, but every bridge between a device
	// and its root costs latency and power; real trees are half a dozen deep.
	maxBridges = 64

	reasonNoInterface = "no interface on this device"
)

// readNICs merges the PCI devices of the network class with the interfaces whose device is on PCI. Either
// view alone has gaps: a device that is bound to vfio-pci has no interface, and some snapshots have no
// /sys/class/net or no /sys/bus/pci.
func readNICs(r *reader, f *Facts) {
	devices := r.networkDevices()
	interfaces := r.interfaces()
	for address, found := range interfaces {
		if _, ok := devices[address]; !ok {
			devices[address] = found.device
		}
	}
	r.nics = devices
	vectors := vectorsByDevice(f.Interrupts.Lines.Value)
	for _, address := range slices.Sorted(maps.Keys(devices)) {
		if r.broken() != nil {
			return
		}
		nic := r.nic(address, devices[address]+"/")
		if len(nic.Interrupts) == 0 {
			nic.Interrupts = vectors[address]
		}
		r.addInterface(&nic, interfaces[address])
		f.NICs = append(f.NICs, nic)
	}
	f.Interfaces = r.otherInterfaces(interfaces)
}

// otherInterfaces are those that no NIC is known by. Interfaces of pods come and go: one that has gone since it was listed is left out.
func (r *reader) otherInterfaces(ofNICs map[string]netInterface) []Interface {
	taken := map[string]bool{}
	for _, nic := range ofNICs {
		taken[nic.name] = true
	}
	var others []Interface
	for _, name := range r.members(netRoot, maxEntries, func(e entry) bool { return e.kind != kindFile && !taken[e.name] }) {
		if masks, err := r.steeringOf(queuesOf(name)); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENODEV) {
			others = append(others, Interface{Name: name, ReceiveSteering: masks})
		}
	}
	return others
}

// queuesOf is the folder of an interface's queues.
func queuesOf(name string) string { return netRoot + "/" + name + "/queues" }

// steeringOf reads the masks of the receive queues in a folder. Nothing else hangs on these, so a folder that cannot be listed is a mask that is absent.
func (r *reader) steeringOf(folder string) ([]Fact[cpus.Set], error) {
	names, err := r.list(folder, numberedBy("rx-", ""))
	if err != nil {
		return []Fact[cpus.Set]{Absent[cpus.Set](folder, reasonOf(err))}, err
	}
	return r.steering(folder, numbersIn(names, "rx-", ""))
}

// steering reads the masks of receive queues. The error is that of one of them which is absent.
func (r *reader) steering(folder string, queues []int) (masks []Fact[cpus.Set], failure error) {
	masks = each(queues, func(queue int) Fact[cpus.Set] {
		mask, err := tryRead(r, source[cpus.Set]{folder + "/rx-" + strconv.Itoa(queue) + "/rps_cpus", r.parseMask})
		failure = cmp.Or(failure, err)
		return mask
	})
	return masks, failure
}

// networkDevices returns the folders of the PCI devices of the network class by PCI address.
func (r *reader) networkDevices() map[string]string {
	r.pci = r.pciDevices()
	devices := maps.Clone(r.pci)
	maps.DeleteFunc(devices, func(_, folder string) bool {
		return !strings.HasPrefix(r.textFact(folder+"/class").Value, networkClass)
	})
	return devices
}

// pciDevices returns the folders of all PCI devices by PCI address. Without the links of the bus, as in a snapshot, they are looked for
// behind all bridges.
func (r *reader) pciDevices() map[string]string {
	devices := map[string]string{}
	for _, address := range r.members(pciRoot, maxEntries, isPCIDevice) {
		devices[address] = pciRoot + "/" + address
	}
	if len(devices) > 0 {
		return devices
	}
	isDomain := func(e entry) bool { return e.kind == kindDirectory && strings.HasPrefix(e.name, "pci") }
	for _, domain := range r.members(deviceRoot, maxEntries, isDomain) {
		r.descend(deviceRoot+"/"+domain, maxBridges, devices)
	}
	return devices
}

// descend collects the PCI devices below a bridge.
func (r *reader) descend(dir string, depth int, devices map[string]string) {
	isDevice := func(e entry) bool { return e.kind == kindDirectory && isPCIDevice(e) }
	for _, address := range r.members(dir, maxEntries, isDevice) {
		devices[address] = dir + "/" + address
		if depth == 0 || len(devices) > maxEntries {
			r.fail(dir, errPCITree)
			return
		}
		r.descend(dir+"/"+address, depth-1, devices)
	}
}

// isPCIDevice recognises an address such as 0000:3b:00.0. Domains of Intel VMD have five digits.
func isPCIDevice(e entry) bool {
	domain, rest, ok := strings.Cut(e.name, ":")
	return ok && len(domain) >= 4 && len(domain) <= 8 && isHexadecimal(domain) && len(rest) == len("3b:00.0") &&
		rest[2] == ':' && rest[5] == '.' && isHexadecimal(rest[:2]+rest[3:5]) && rest[6] >= '0' && rest[6] <= '7'
}

func isHexadecimal(text string) bool { return strings.Trim(text, "0123456789abcdef") == "" }

func (r *reader) nic(address, folder string) NIC {
	nic := NIC{
		PCIAddress: address,
		PCIeRoot:   r.pcieRoot(path.Clean(folder)),
		Name:       Absent[string](netRoot, reasonNoInterface),
		Vendor:     r.nameFact(folder + "vendor"),
		Device:     r.nameFact(folder + "device"),
		Driver:     r.linkFact(folder+"driver", "no driver is bound", parseName),
		NUMANode:   read(r, source[int]{folder + "numa_node", parseNUMANode}),
		LocalCPUs:  read(r, r.set(folder+"local_cpulist", folder+"local_cpus")...),

		PhysicalFunction:        r.linkFact(folder+"physfn", "this is a physical function", parsePCIAddress),
		MaximumVirtualFunctions: r.identifierFact(folder + "sriov_totalvfs"),
		LinkSpeed:               r.nameFact(folder + "current_link_speed"),
		MaximumLinkSpeed:        r.nameFact(folder + "max_link_speed"),
		LinkWidth:               r.identifierFact(folder + "current_link_width"),
		MaximumLinkWidth:        r.identifierFact(folder + "max_link_width"),
		Interrupts:              r.numbered(folder+"msi_irqs", "", "", maxEntries),
		LinkPowerStates:         r.linkPowerStates(folder + "link"),
	}
	nic.DriverVersion, nic.FirmwareVersion = r.driverVersion(nic.Driver), r.firmwareVersion(folder+"infiniband")
	nic.PortLinkSpeed, nic.PortLinkWidth = r.port(folder, nic.PhysicalFunction)
	for _, index := range r.numbered(path.Clean(folder), "virtfn", "", maxEntries) {
		if function := r.linkFact(folder+"virtfn"+strconv.Itoa(index), reasonMissing, parsePCIAddress); function.Known {
			nic.VirtualFunctions = append(nic.VirtualFunctions, function.Value)
		}
	}
	return nic
}

// driverVersion is the version that the module of a driver states (MODULE_VERSION); hyphens of drivers are underscores in modules.
func (r *reader) driverVersion(driver Fact[string]) Fact[string] {
	if !driver.Known {
		return Absent[string](driver.Source, driver.Reason)
	}
	return r.nameFact(moduleRoot + "/" + strings.ReplaceAll(driver.Value, "-", "_") + "/version")
}

// firmwareVersion is that of the first RDMA device of a NIC that tells it (Documentation/ABI/stable/sysfs-class-infiniband, fw_ver).
func (r *reader) firmwareVersion(folder string) Fact[string] {
	fact := Absent[string](folder, "the NIC has no RDMA device, and tells its firmware only in the network namespace of its interface")
	for _, device := range r.members(folder, maxEntries, func(e entry) bool { return e.kind == kindDirectory }) {
		if fact = r.nameFact(folder + "/" + device + "/fw_ver"); fact.Known {
			break
		}
	}
	return fact
}

// pcieRoot is the root complex of a device, by where its folder really is: /sys/devices/pci0000:3a/0000:3a:00.0/...
func (r *reader) pcieRoot(folder string) Fact[string] {
	where, err := r.directory(folder)
	if err != nil {
		return Absent[string](folder, reasonOf(err))
	}
	below, ok := strings.CutPrefix(where, deviceRoot+"/")
	root, _, _ := strings.Cut(below, "/")
	if domain, isRoot := strings.CutPrefix(root, "pci"); !ok || !isRoot || strings.Trim(domain, "0123456789abcdef:") != "" {
		return Absent[string](folder, "its folder is not below a PCIe root of "+deviceRoot)
	}
	return Known(root, folder)
}

// port is what the bridge above a device can do, in whose folder that of the device is.
func (r *reader) port(folder string, physical Fact[string]) (speed Fact[string], width Fact[int]) {
	if physical.Known {
		const reason = "a virtual function has no link"
		return Absent[string](folder, reason), Absent[int](folder, reason)
	}
	where, err := r.directory(folder)
	if err != nil {
		return Absent[string](folder, reasonOf(err)), Absent[int](folder, reasonOf(err))
	}
	above := path.Dir(where)
	switch {
	case isPCIDevice(entry{name: path.Base(above)}):
		return r.nameFact(above + "/max_link_speed"), r.identifierFact(above + "/max_link_width")
	case strings.HasPrefix(path.Base(above), "pci"):
		return Known("", above), Known(0, above)
	}
	const reason = "its folder is not below a PCI bridge"
	return Absent[string](folder, reason), Absent[int](folder, reason)
}

// linkFact is the last element of the target of a link, such as the name of a driver.
func (r *reader) linkFact(file, missing string, parse func(string) (string, error)) Fact[string] {
	target, err := r.link(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Absent[string](file, missing)
	}
	if err == nil {
		target, err = plainText(path.Base(target))
	}
	if err == nil {
		target, err = parse(target)
	}
	if err != nil {
		return Absent[string](file, reasonOf(err))
	}
	return Known(target, file)
}

func parsePCIAddress(text string) (string, error) {
	if !isPCIDevice(entry{name: text}) {
		return "", fmt.Errorf("not a PCI address: %q", abbreviate(text))
	}
	return text, nil
}

// vectorsByDevice takes the vectors of PCI devices out of the descriptions of interrupts, where kernels
// since 6.3 and those of RHEL 9 name the device: "IR-PCI-MSIX-0000:3b:00.0    1-edge      eth0-rx-0".
func vectorsByDevice(lines []InterruptLine) map[string][]int {
	vectors := map[string][]int{}
	for _, line := range lines {
		number, isNumber := numberIn(line.Name, "", "")
		if address, ok := vectorDevice(line.Description); ok && isNumber {
			vectors[address] = append(vectors[address], number)
		}
	}
	return vectors
}

// vectorDevice is the PCI address in the name of an interrupt's controller, which begins the description.
func vectorDevice(description string) (string, bool) {
	end := strings.IndexAny(description, whiteSpace)
	dash := strings.LastIndexByte(description[:max(end, 0)], '-')
	if dash < 0 {
		return "", false
	}
	domain, address := description[:dash], description[dash+1:end]
	isMessage := strings.HasSuffix(domain, "PCI-MSI") || strings.HasSuffix(domain, "PCI-MSIX")
	return address, isMessage && isPCIDevice(entry{name: address})
}

// netInterface is a network interface whose device is on PCI.
type netInterface struct {
	name string
	// device is the folder of the PCI device.
	device string
	// port tells the interfaces of a device with several ports apart.
	port int
}

// interfaces returns the interface of each PCI device that has one. Where one device has several, as a
// ConnectX-3 does for its ports, the first port counts.
func (r *reader) interfaces() map[string]netInterface {
	byAddress := map[string]netInterface{}
	isInterface := func(e entry) bool { return e.kind != kindFile }
	for _, name := range r.members(netRoot, maxEntries, isInterface) {
		device, ok := r.deviceOf(name)
		if !ok || r.isRepresentor(name) {
			continue
		}
		found := netInterface{name, device, r.identifierFact(netRoot + "/" + name + "/dev_port").Value}
		address := path.Base(device)
		if known, ok := byAddress[address]; !ok || cmp.Compare(found.port, known.port) < 0 {
			byAddress[address] = found
		}
	}
	return byAddress
}

// deviceOf returns the folder of the PCI device that an interface belongs to. The device of a virtio
// interface is virtioN, a child of the PCI device. Interfaces on other children, such as a USB adapter
// below its host controller or a subfunction, are no NICs on PCI.
func (r *reader) deviceOf(name string) (string, bool) {
	device, err := r.directory(netRoot + "/" + name + "/device")
	if err != nil {
		return "", false
	}
	if _, ok := numberIn(path.Base(device), "virtio", ""); ok {
		device = path.Dir(device)
	}
	return device, isPCIDevice(entry{name: path.Base(device)})
}

// isRepresentor recognises the interfaces that stand for the virtual functions of a NIC in switchdev mode
// and hang on its physical function (devlink: phys_port_name pf0vf1, pf0sf2, c1pf0).
func (r *reader) isRepresentor(name string) bool {
	port := strings.TrimLeft(r.textFact(netRoot+"/"+name+"/phys_port_name").Value, "c0123456789")
	return strings.HasPrefix(port, "pf")
}

// addInterface adds what the interface tells.
func (r *reader) addInterface(nic *NIC, found netInterface) {
	if found.name == "" {
		nic.Carrier = Absent[bool](netRoot, reasonNoInterface)
		nic.SpeedMegabits = Absent[int64](netRoot, reasonNoInterface)
		nic.ReceiveQueues = Absent[int](netRoot, reasonNoInterface)
		return
	}
	folder := netRoot + "/" + found.name + "/"
	nic.Name = Known(found.name, netRoot+"/"+found.name)
	nic.Carrier = r.switchFact(folder + "carrier")
	nic.SpeedMegabits = read(r, source[int64]{folder + "speed", parseSpeed})
	queues := r.numbered(queuesOf(found.name), "rx-", "", maxEntries)
	nic.ReceiveSteering, _ = r.steering(queuesOf(found.name), queues)
	nic.ReceiveQueues = countOfQueues(queuesOf(found.name), len(queues))
	nic.Drops = map[string]Fact[uint64]{}
	for _, name := range dropCounters() {
		nic.Drops[name] = r.countFact(folder + "statistics/" + name)
	}
}

// dropCounters are the counters of Documentation/ABI/testing/sysfs-class-net-statistics that mean a packet of the
// wire was lost for want of room or time. rx_dropped is not among them: it also counts packets of protocols that
// nobody speaks.
func dropCounters() []string {
	return []string{"rx_fifo_errors", "rx_missed_errors", "rx_over_errors", "tx_fifo_errors"}
}

// linkPowerStates are the switches of a PCIe link that are on (Documentation/ABI/testing/sysfs-bus-pci, link/).
func (r *reader) linkPowerStates(folder string) Fact[[]string] {
	isState := func(e entry) bool { return e.kind == kindFile && strings.HasSuffix(e.name, "_aspm") }
	names, err := r.list(folder, isState)
	if err != nil {
		return Absent[[]string](folder, reasonOf(err))
	}
	on := []string{}
	for _, name := range names {
		state := r.switchFact(folder + "/" + name)
		if !state.Known {
			return Absent[[]string](state.Source, state.Reason)
		}
		if state.Value {
			on = append(on, name)
		}
	}
	return Known(on, folder)
}

// countOfQueues is about the folders that net_rx_queue_update_kobjects (net/core/net-sysfs.c) keeps, one for each
// queue that the driver uses now. Every interface has one, so that none means a folder that was not recorded.
func countOfQueues(folder string, count int) Fact[int] {
	if count == 0 {
		return Absent[int](folder, reasonMissing)
	}
	return Known(count, folder)
}

// parseSpeed reads the speed of a link, SPEED_UNKNOWN (-1) while it is down.
func parseSpeed(text string) (int64, error) {
	speed, err := parseNumber(text)
	if err == nil && speed <= 0 {
		return 0, fmt.Errorf("the link has no speed (%d): it is down or virtual", speed)
	}
	return speed, err
}
