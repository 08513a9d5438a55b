// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// ArgumentHazard finds the danger in a text of kernel arguments, as far as it does not depend on the node.
func ArgumentHazard(text string) (Hazard, bool) {
	line, err := cmdline.Parse(text)
	if err != nil {
		return Hazard{}, false
	}
	for _, arg := range slices.Concat(line.Args(), line.InitArgs()) {
		if hazard, found := argumentHazard(arg); found {
			return hazard, true
		}
	}
	return Hazard{}, false
}

func argumentHazard(arg cmdline.Arg) (Hazard, bool) {
	name := cmdline.Machine{}.Parameter(arg)
	if parameter, ok := strings.CutPrefix(name, "sysctl."); ok {
		return parameterHazard(parameter, arg.Value)
	}
	if hazard, found := hazardOf(argumentHazards(), name, arg.Value); found {
		return hazard, true
	}
	for _, module := range blacklisted(arg) {
		if hazard, found := moduleHazard(module); found {
			hazard.Why = fmt.Sprintf("keeps module %s from loading, which %s", module, hazard.Why)
			return hazard, true
		}
	}
	return Hazard{}, false
}

// blacklisted are the modules that an argument keeps from loading: module_blacklist of the kernel, modprobe.blacklist and
// rd.driver.blacklist of kmod and dracut.
func blacklisted(arg cmdline.Arg) []string {
	switch (cmdline.Machine{}).Parameter(arg) {
	case "module_blacklist", "modprobe.blacklist", "rd.driver.blacklist":
		return strings.Split(arg.Value, ",")
	default:
		return nil
	}
}

// argumentHazards lists kernel arguments, and those that initial RAM disk and systemd read (dracut.cmdline(7),
// kernel-command-line(7), ignition's and ostree's own documents).
func argumentHazards() []Hazard {
	const system = "Remove it; where a node boots from is decided when it is installed."
	return []Hazard{
		{names: []string{"init", "rdinit"}, Why: "replaces the first program of the node, so that nothing else starts",
			Instead: "Remove it."},
		{names: []string{"root", "rootflags", "rootfstype", "rootdelay", "nfsroot", "nfsaddrs", "initrd", "noinitrd", "boot",
			"ostree*", "roothash", "usrhash", "mount.usr*", "systemd.verity*", "systemd.volatile", "rd.live.*", "live.*", "rd.overlay*"},
			Why: "changes which file system the node boots from, so that it may not come back", Instead: system},
		{names: []string{"ignition", "ignition.*", "coreos.*"}, Why: "provisions the node anew, or keeps it from finding how it was provisioned",
			Instead: "Remove it; the platform provisions nodes."},
		{names: []string{"rd.break", "rd.emergency", "rd.rescue", "rd.systemd.unit", "rd.systemd.mask", "rd.systemd.wants", "rd.cmdline", "rd.init*"},
			Why: "stops the boot in the initial RAM disk, where nobody sees the node", Instead: "Remove it."},
		// runlevel_to_target of systemd reads these words.
		{names: []string{"systemd.unit", "emergency", "rescue", "single", "s", "S", "1", "2", "3", "4", "5", "systemd.run*"},
			Why: "makes systemd start something else than the node's services", Instead: "Remove it."},
		{names: []string{"systemd.mask"}, Why: "keeps a unit from starting without anybody judging which",
			Instead: "Name the unit in spec.system.stopServices."},
		{names: []string{"systemd.hostname", "hostname", "systemd.machine_id"}, Why: "gives the node another identity than the cluster knows it by",
			Instead: "Remove it."},
		{names: []string{"LD_*", "SYSTEMD_*", "PATH"}, Why: "becomes an environment variable of the first program and of all that it starts",
			Instead: "Remove it."},
		{names: []string{"fips"}, Why: "changes the FIPS mode of a node that was installed with another, which then does not boot",
			Instead: "Choose FIPS mode when the cluster is installed."},
		{names: []string{"nomodule"}, Why: "forbids kernel modules, and with them NICs and file systems", Instead: "Remove it."},
		{names: []string{"cgroup_disable"}, harmless: withoutKubeletCgroups,
			Why: "takes away a cgroup controller that kubelet and container runtime need", Instead: "Remove it."},
		{names: []string{"numa"}, harmless: func(value string) bool {
			return value != "off" && value != "noacpi" && !strings.HasPrefix(value, "fake")
		},
			Why: "hides which NUMA node memory and NICs are on", Instead: "Remove it; spec.numa says how strictly NUMA nodes are kept."},
		{names: []string{"selinux", "enforcing", "apparmor"}, harmless: isOn, Acceptable: true,
			Why: "switches off what keeps containers away from the host", Instead: "Remove it."},
		{names: []string{"security", "lsm"}, harmless: func(value string) bool { return strings.Contains(value, "selinux") }, Acceptable: true,
			Why: "chooses which security modules run, and leaves out SELinux, which keeps containers away from the host", Instead: "Remove it."},
		{names: []string{"systemd.debug_shell", "rd.systemd.debug_shell"}, Acceptable: true,
			Why: "opens a shell with all rights on a console, without a password", Instead: "Remove it."},
		{names: []string{"systemd.unified_cgroup_hierarchy"}, harmless: isOn, Acceptable: true,
			Why: "boots with cgroup v1, which kubelets no longer support and cpusets of isolated CPUs need", Instead: "Remove it."},
		{names: []string{"systemd.legacy_systemd_cgroup_controller"}, harmless: isOff, Acceptable: true,
			Why: "boots with cgroup v1, which kubelets no longer support and cpusets of isolated CPUs need", Instead: "Remove it."},
		{names: []string{"pci"}, harmless: func(value string) bool { return !slices.Contains(strings.Split(value, ","), "off") },
			Why: "hides all NICs and disks on the PCI bus", Instead: "Remove it."},
		// kernel/panic.c: 0 waits for ever, and less than 0 reboots at once.
		{names: []string{"panic"}, harmless: cmdline.RebootsSoon, Why: waitsAfterPanic, Instead: "Write panic=10, or remove it."},
		{names: []string{"luks", "rd.luks", "rd.lvm", "rd.md", "rd.dm", "rd.multipath", "fstab", "rd.fstab"}, harmless: isNotOff, Acceptable: true,
			Why: "leaves disks closed that the node may boot from", Instead: "Remove it."},
		{names: []string{"systemd.setenv"}, Acceptable: true,
			harmless: func(value string) bool {
				return !strings.HasPrefix(value, "LD_") && !strings.HasPrefix(value, "SYSTEMD_") && !strings.HasPrefix(value, "PATH=")
			},
			Why: "changes which programs and libraries all services run", Instead: "Remove it."},
		{names: []string{"acpi", "noacpi", "noapic", "nolapic", "disableapic", "nox2apic"}, Acceptable: true,
			harmless: func(value string) bool { return value != "" && value != "off" && value != "ht" },
			Why:      "hides processors, NUMA nodes or interrupts from the kernel", Instead: "Remove it."},
		{names: []string{"mem", "memmap"}, Acceptable: true, Why: "hides memory from the kernel; too little of it and the node does not boot",
			Instead: "Reserve memory by spec.memory.hugepages."},
		{names: []string{"net.ifnames", "biosdevname"}, Acceptable: true,
			Why: "renames network interfaces at the next boot, so that a network configuration by name no longer applies", Instead: "Remove it."},
		{names: []string{"initcall_blacklist"}, Acceptable: true, Why: "keeps built-in parts of the kernel from starting", Instead: "Remove it."},
	}
}

// withoutKubeletCgroups reports whether a list names none of the controllers that the kubelet demands
// (pkg/kubelet/cm/container_manager_linux.go, validateSystemRequirements), and not all.
func withoutKubeletCgroups(list string) bool {
	return !slices.ContainsFunc(strings.Split(list, ","), func(name string) bool {
		return slices.Contains([]string{"", "cpu", "cpuacct", "cpuset", "memory", "pids", "hugetlb", "devices", "freezer", "io", "blkio"}, name)
	})
}

// isOn and isOff read a switch as kernel and systemd do, which take numbers and words; what they cannot read is neither.
func isOn(value string) bool  { return isSwitched(value, true) }
func isOff(value string) bool { return isSwitched(value, false) }

const waitsAfterPanic = "keeps a node whose kernel has panicked waiting, so that it does not come back by itself"

// isNotOff reports whether a value leaves a feature on that is on unless it is switched off.
func isNotOff(value string) bool { return !isOff(value) }

func isSwitched(value string, on bool) bool {
	if number, ok := setting.Integer(value); ok {
		return (number != 0) == on
	}
	switched, ok := setting.Boolean(value)
	return ok && switched == on
}

// argumentHazards are those among spec.kernel.additionalArguments, on this node.
func (p *planner) argumentHazards() []hazardousSetting {
	var found []hazardousSetting
	for i, text := range p.spec.Kernel.AdditionalArguments {
		hazard, dangerous := ArgumentHazard(string(text))
		if !dangerous {
			hazard, dangerous = p.nicArgumentHazard(parsed(string(text)))
		}
		if dangerous {
			found = append(found, hazardousSetting{
				field: element("spec.kernel.additionalArguments", i), text: string(text), Hazard: hazard,
				same: func(other string) bool {
					return cmdline.Machine{}.SameArgument(parsed(string(text)), parsed(other))
				},
			})
		}
	}
	return found
}

// nicArgumentHazard: an argument that takes the driver from a NIC by which the node is reached.
func (p *planner) nicArgumentHazard(arg cmdline.Arg) (Hazard, bool) {
	for _, module := range blacklisted(arg) {
		if hazard, found := p.nicModuleHazard(module); found {
			hazard.Why = fmt.Sprintf("keeps module %s from loading, which %s", module, hazard.Why)
			return hazard, true
		}
	}
	switch (cmdline.Machine{}).Parameter(arg) {
	case "vfio_pci.ids", "pci_stub.ids":
	default:
		return Hazard{}, false
	}
	for _, nic := range p.topology.NICs {
		if nic.Management != "" && slices.ContainsFunc(strings.Split(arg.Value, ","), func(id string) bool { return selectsNIC(id, nic) }) {
			return Hazard{
				Why:     fmt.Sprintf("takes NIC %s, which carries %s, away from the kernel", nic.PCIAddress, nic.Management),
				Instead: "Let a BypassNICPool of stack VFIO bind NICs, which does so by address.",
				objects: finding.OfNICs(nic.PCIAddress),
			}, true
		}
	}
	return Hazard{}, false
}

// selectsNIC reports whether vendor:device, in hexadecimal digits that sscanf reads, is that of the NIC (vfio_pci_fill_ids
// of drivers/vfio/pci/vfio_pci.c).
func selectsNIC(id string, nic topology.NIC) bool {
	fields := strings.Split(id, ":")
	if len(fields) < 2 {
		return false
	}
	return sameHexadecimal(fields[0], nic.Vendor) && sameHexadecimal(fields[1], nic.Device)
}

func sameHexadecimal(a, b string) bool {
	read := func(text string) (uint64, error) {
		return strconv.ParseUint(strings.TrimPrefix(strings.ToLower(text), "0x"), 16, 64)
	}
	left, leftErr := read(a)
	right, rightErr := read(b)
	return leftErr == nil && rightErr == nil && left == right
}
