// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"path"
	"strings"
)

// controlPlaneInterface and efviInterface are further checksums that libraries of Onload hold.
const (
	controlPlaneInterface = "b7d0a1c2e3f4455667788990a0b1c2d3"
	efviInterface         = "1ae616206d92cb6ea3dc447f447ddebf"
)

func (o Onload) userVersion() string { return cmp.Or(o.UserVersion, o.Version) }

func (o Onload) userInterfaceVersion() string {
	return cmp.Or(o.UserInterfaceVersion, o.InterfaceVersion)
}

// driverVersion is what the drivers of Onload's releases call themselves; the kernel's own sfc has no version.
const driverVersion = "6.4.0.1002"

// onloadPaths are all that Onload brings to a host, except for drivers.
func (m Machine) onloadPaths() []string {
	paths := []string{"/proc/driver/onload", "/proc/driver/sfc_resource", "/dev/onload", "/dev/onload_epoll", "/dev/sfc_char"}
	for _, module := range []string{"onload", "sfc_char", "sfc_resource"} {
		paths = append(paths, "/sys/module/"+module)
	}
	if pid := m.Onload.ControlPlanePID; pid > 0 {
		paths = append(paths, fmt.Sprint("/proc/", pid))
	}
	for name := range m.Onload.userFiles() {
		paths = append(paths, path.Join(m.Onload.UserFolder, name))
	}
	return paths
}

// writeOnload writes what the loaded modules show in /proc and /sys: the formats are those of Onload's
// src/driver/linux_onload/linux_stats.c, cplane.c and src/driver/linux_resource/kernel_proc.c.
func (m Machine) writeOnload(t *tree) {
	o := m.Onload
	if o.State != OnloadLoaded {
		return
	}
	// A release ends with a space, where its build profile would follow.
	t.text("/proc/driver/onload/version", fmt.Sprintf("onload_product: Onload\nonload_version: %s \nuk_intf_ver: %s\n", o.Version, o.InterfaceVersion))
	t.text("/proc/driver/onload/stacks", "")
	t.text("/proc/driver/onload/cp_server_pids", "")
	if o.ControlPlanePID > 0 {
		t.file("/proc/driver/onload/cp_server_pids", o.ControlPlanePID)
		Process{PID: o.ControlPlanePID, Name: "onload_cp_serve", AllowedCPUs: m.possible()}.write(t)
	}
	t.text("/proc/driver/sfc_resource/resources", fmt.Sprintf(
		"*** VI ***\n  total = %[1]d\ncurrent = %[2]d\n    max = %[2]d\n\n*** VI_SET ***\ncurrent = 0\n    max = 0\n\n*** PD ***\ncurrent = %[2]d\n    max = %[2]d\n\n",
		o.VirtualInterfaces, o.VirtualInterfacesInUse))
	t.directory("/proc/driver/sfc_resource/devices")
	for _, nic := range m.NICs {
		if nic.Driver == "sfc" || nic.Driver == "xilinx_efct" {
			t.text("/proc/driver/sfc_resource/"+nic.Name+"/firewall_rules", "")
			t.file("/sys/module/"+nic.Driver+"/initstate", "live")
			t.file("/sys/module/"+nic.Driver+"/version", driverVersion)
		}
	}
	for _, module := range []string{"onload", "sfc_char", "sfc_resource"} {
		t.file("/sys/module/"+module+"/initstate", "live")
	}
	t.file("/sys/module/onload/version", o.Version+" ")
	t.file("/sys/module/onload/srcversion", fmt.Sprintf("%X", sha256.Sum256([]byte(o.Version)))[:23])
}

// writeOnloadFiles writes what Onload has outside of /proc and /sys: the device files of the loaded modules, as
// texts that describe them, and the user files.
func (m Machine) writeOnloadFiles(t *tree) {
	if m.Onload.State == OnloadLoaded {
		for minor, name := range []string{"onload", "onload_epoll", "sfc_char"} {
			t.text("/dev/"+name, deviceFile(245-minor, 0))
		}
	}
	for name, content := range m.Onload.userFiles() {
		t.text(path.Join(m.Onload.UserFolder, name), content)
	}
}

// deviceFile stands for a character device that everyone may use, in the words of internal/host.
func deviceFile(major, minor int) string {
	return fmt.Sprintf("character device %d:%d mode 666\n", major, minor)
}

// userFiles are the user files by their path below UserFolder, with texts where the libraries have them.
func (o Onload) userFiles() map[string]string {
	if o.State == OnloadAbsent || o.UserFolder == "" {
		return nil
	}
	const folder, copyright = "usr/lib64/", "Copyright (c) 2002-2026 Advanced Micro Devices, Inc."
	const built = "\nBuilt: Nov 20 2026 21:41:43 (release)\n"
	version := o.userVersion() + " \n"
	return map[string]string{
		folder + "libonload.so":       library(controlPlaneInterface, o.userInterfaceVersion(), "Onload "+version+copyright+built),
		folder + "libonload_ext.so.1": library("onload_is_present"),
		folder + "libonload_zf.so.1": library(efviInterface,
			"TCPDirect Library version: "+o.userVersion()+"\nTCPDirect built with Onload version: "+version+copyright+built),
		folder + "libefcp.so.1":    library(controlPlaneInterface),
		folder + "libciul.so.1":    library(efviInterface, o.userVersion()),
		"usr/bin/onload":           "#!/bin/bash\n",
		"usr/bin/onload_stackdump": library(o.userInterfaceVersion()),
	}
}

// library is a file with the constants that a library holds.
func library(constants ...string) string {
	return "\x7fELF\x02\x01\x01\x00\x00" + strings.Join(constants, "\x00") + "\x00"
}
