// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const cpuinfoFile = "/proc/cpuinfo"

// cpuinfo is what the first processor of /proc/cpuinfo says, by key.
type cpuinfo map[string]string

// readProcessor never reads "cpu MHz", and /proc/cpuinfo of a running host only once: up to Linux 5.17,
// opening that file interrupts the CPUs to measure their frequency (arch/x86/kernel/cpu/aperfmperf.c,
// arch_freq_prepare_all). What it says changes while the host runs in one respect only, the microcode,
// which therefore comes from the sysfs of the boot CPU where that has it; there it is a number in memory.
func (h *Host) readProcessor(r *reader, f *Facts) {
	info, reason := h.cpuinfoOf(r)
	f.Firmware = readFirmware(r)
	f.Architecture = read(r, source[string]{"/proc/sys/kernel/arch", parseArchitecture})
	if !f.Architecture.Known {
		f.Architecture = info.architecture(reason)
	}
	f.Processor = Processor{
		Vendor:      info.vendor(reason),
		Model:       info.model(reason),
		Family:      info.number(reason, "cpu family"),
		ModelNumber: info.number(reason, "model"),
		Microcode:   r.nameFact(cpuRoot + "/cpu0/microcode/version"),
		Flags:       info.flags(reason),
	}
	if !f.Processor.Microcode.Known {
		f.Processor.Microcode = info.fact(reason, "microcode")
	}
	f.Processor.Hypervisor = hypervisor(f)
}

func (h *Host) cpuinfoOf(r *reader) (info cpuinfo, reason string) {
	if known := h.cpuinfo.Load(); known != nil && r.live && r.taken == nil {
		return *known, ""
	}
	text, err := r.content(cpuinfoFile, mediumFile)
	if err == nil {
		text, err = plainText(text)
	}
	if err != nil {
		return nil, reasonOf(err)
	}
	info = parseColonPairs(text, "vendor_id", "cpu family", "model", "model name", "microcode", "flags",
		"CPU implementer", "CPU part", "CPU architecture", "Features")
	h.cpuinfo.Store(&info)
	return info, ""
}

// fact returns the first of the keys that the processor has.
func (c cpuinfo) fact(reason string, keys ...string) Fact[string] {
	for _, key := range keys {
		if value, ok := c[key]; ok {
			return Known(strings.Clone(value), cpuinfoFile)
		}
	}
	if reason == "" {
		reason = "no line " + strings.Join(keys, " or ")
	}
	return Absent[string](cpuinfoFile, reason)
}

// architecture tells the architectures by the shape of the file.
func (c cpuinfo) architecture(reason string) Fact[string] {
	switch {
	case c["vendor_id"] != "" && strings.Contains(" "+c["flags"]+" ", " lm "):
		return Known("amd64", cpuinfoFile)
	case c["CPU implementer"] != "" && (c["CPU architecture"] == "8" || c["CPU architecture"] == "AArch64"):
		return Known("arm64", cpuinfoFile)
	}
	if reason == "" {
		reason = "neither the shape of amd64 nor that of arm64"
	}
	return Absent[string](cpuinfoFile, reason)
}

// parseArchitecture turns UTS_MACHINE into Go's notation.
func parseArchitecture(machine string) (string, error) {
	if name, ok := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[machine]; ok {
		return name, nil
	}
	return parseRelease(machine)
}

func (c cpuinfo) vendor(reason string) Fact[string] {
	vendor := c.fact(reason, "vendor_id", "CPU implementer")
	if name, ok := vendorNames()[strings.ToLower(vendor.Value)]; ok {
		vendor.Value = name
	}
	return vendor
}

// vendorNames are the CPUID vendor strings of x86 in lower case and the implementer codes of Arm
// (arch/arm64/include/asm/cputype.h).
func vendorNames() map[string]string {
	return map[string]string{
		"genuineintel": "Intel",
		"authenticamd": "AMD",
		"hygongenuine": "Hygon",
		"0x41":         "ARM",
		"0x42":         "Broadcom",
		"0x43":         "Cavium",
		"0x46":         "Fujitsu",
		"0x48":         "HiSilicon",
		"0x4e":         "NVIDIA",
		"0x50":         "APM",
		"0x51":         "Qualcomm",
		"0x61":         "Apple",
		"0x6d":         "Microsoft",
		"0x70":         "Phytium",
		"0xc0":         "Ampere",
	}
}

// model is the model name; kernels of arm64 give none, only the number of the part.
func (c cpuinfo) model(reason string) Fact[string] {
	if part, ok := c["CPU part"]; ok && c["model name"] == "" {
		return Known("CPU part "+part, cpuinfoFile)
	}
	return c.fact(reason, "model name")
}

// number is a number in decimal notation, as arch/x86/kernel/cpu/proc.c prints family and model.
func (c cpuinfo) number(reason, key string) Fact[int] {
	text := c.fact(reason, key)
	if !text.Known {
		return Absent[int](text.Source, text.Reason)
	}
	number, err := strconv.Atoi(text.Value)
	if err != nil || number < 0 {
		return Absent[int](text.Source, fmt.Sprintf("%s is %q, not a number", key, text.Value))
	}
	return Known(number, text.Source)
}

func (c cpuinfo) flags(reason string) Fact[[]string] {
	flags := c.fact(reason, "flags", "Features")
	if !flags.Known {
		return Absent[[]string](flags.Source, flags.Reason)
	}
	return Known(strings.Fields(flags.Value), flags.Source)
}

func readFirmware(r *reader) Firmware {
	entry := func(name string) Fact[string] {
		return read(r,
			source[string]{"/sys/class/dmi/id/" + name, parseName},
			source[string]{"/sys/devices/virtual/dmi/id/" + name, parseName},
		)
	}
	return Firmware{Vendor: entry("sys_vendor"), Product: entry("product_name"), BIOSVersion: entry("bios_version")}
}

// hypervisor names the virtual machine monitor. On x86, CPUID sets a flag in every guest; its name comes
// from DMI. Arm has no such flag: there DMI alone tells, if the host has it.
func hypervisor(f *Facts) Fact[string] {
	flags, known := f.Processor.Flags.Get()
	virtual := slices.Contains(flags, "hypervisor")
	name := hypervisorOf(f.Firmware)
	switch {
	case virtual && name.Value != "":
		return name
	case virtual:
		return Known("unknown", f.Processor.Flags.Source)
	case known && f.Architecture.Value == "amd64":
		return Known("", f.Processor.Flags.Source)
	case f.Architecture.Value == "arm64" && name.Known:
		return name
	}
	return Absent[string](cpuinfoFile, "neither the flags of the processor nor DMI report one")
}

// hypervisorOf recognises a virtual machine by its DMI product and vendor, as systemd-detect-virt does
// (src/basic/virt.c, dmi_vendor_table); "" is hardware. Bare-metal instances of clouds keep the vendor of
// the cloud.
func hypervisorOf(firmware Firmware) Fact[string] {
	if product := firmware.Product.Value; strings.Contains(product, ".metal") {
		return Known("", firmware.Product.Source)
	}
	for _, text := range []Fact[string]{firmware.Product, firmware.Vendor} {
		for _, known := range hypervisorNames() {
			if text.Known && strings.HasPrefix(text.Value, known.begins) {
				return Known(known.name, text.Source)
			}
		}
	}
	if firmware.Vendor.Known {
		return Known("", firmware.Vendor.Source)
	}
	return firmware.Vendor
}

// hypervisorNames are what the DMI product or vendor of a virtual machine begins with.
func hypervisorNames() []struct{ begins, name string } {
	return []struct{ begins, name string }{
		{"KVM", "KVM"}, {"OpenStack", "KVM"}, {"KubeVirt", "KVM"}, {"QEMU", "KVM"}, {"RHEV", "KVM"}, {"oVirt", "KVM"},
		{"Amazon EC2", "Amazon"}, {"Google Compute Engine", "Google"}, {"VMware", "VMware"}, {"VMW", "VMware"},
		{"Virtual Machine", "Microsoft"}, {"innotek GmbH", "VirtualBox"}, {"VirtualBox", "VirtualBox"},
		{"Xen", "Xen"}, {"HVM domU", "Xen"}, {"Parallels", "Parallels"}, {"BHYVE", "bhyve"},
		{"Apple Virtualization", "Apple"}, {"Alibaba Cloud ECS", "Alibaba"}, {"Nutanix AHV", "Nutanix"}, {"AHV", "Nutanix"},
	}
}
