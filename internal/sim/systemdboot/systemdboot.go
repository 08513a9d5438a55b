// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package systemdboot plays systemd-boot: the entries that it reads when a machine starts, and the variables of the firmware by which
// it is told what to start. No firmware is in it: variables are files, as the kernel shows them.
package systemdboot

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf16"
)

// Where systemd-boot and kernel-install keep what they read.
const (
	Partition = "/efi"
	Entries   = Partition + "/loader/entries"
	// OneShot names the entry that is started next, once.
	OneShot = "/sys/firmware/efi/efivars/LoaderEntryOneShot-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
	// MachineID is that of the installation.
	MachineID = "0f4bd5d2a6f94bd0a9fd6d0dfbf0f2d4"
)

// Files are those of a host with two kernels, as kernel-install of systemd 252 has made them.
func Files(line string) map[string]string {
	files := map[string]string{
		Partition + "/loader/loader.conf": "timeout 3\n",
		"/etc/kernel/cmdline":             line + "\n",
		"/etc/machine-id":                 MachineID + "\n",
		"/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f":           variable("systemd-boot 252.39-1~deb12u2"),
		"/sys/firmware/efi/efivars/LoaderFeatures-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f":       "\x06\x00\x00\x00\xff\x1f\x00\x00\x00\x00\x00\x00",
		"/sys/firmware/efi/efivars/LoaderEntrySelected-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f":  variable(MachineID + "-6.1.0-41-amd64.conf"),
		"/sys/firmware/efi/efivars/LoaderDevicePartUUID-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f": variable("0B1C4B0E-5B0A-4B0A-8B0A-5B0A4B0A8B0A"),
		"/sys/firmware/efi/efivars/LoaderEntries-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f":        variable(MachineID + "-6.1.0-41-amd64.conf"),
	}
	for _, version := range []string{"6.1.0-9-amd64", "6.1.0-41-amd64"} {
		Install(files, version, line)
	}
	return files
}

// Install adds a kernel, as kernel-install does.
func Install(files map[string]string, version, line string) {
	folder := "/" + MachineID + "/" + version
	files[Partition+folder+"/linux"], files[Partition+folder+"/initrd.img-"+version] = "MZ", "07070"
	files[Entries+"/"+MachineID+"-"+version+".conf"] = "# Boot Loader Specification type#1 entry\n" +
		"# File created by /usr/lib/kernel/install.d/90-loaderentry.install (systemd 252.39-1~deb12u2)\n" +
		"title      Debian GNU/Linux 12 (bookworm)\nversion    " + version + "\nmachine-id " + MachineID + "\nsort-key   debian\n" +
		"options    " + line + " systemd.machine_id=" + MachineID + "\nlinux      " + folder + "/linux\ninitrd     " + folder + "/initrd.img-" + version + "\n"
}

// variable is a text in UTF-16 behind its attributes.
func variable(text string) string {
	content := []byte{0x7, 0, 0, 0}
	for _, unit := range utf16.Encode([]rune(text + "\x00")) {
		content = binary.LittleEndian.AppendUint16(content, unit)
	}
	return string(content)
}

// Start is what systemd-boot does: it starts the newest entry that has a sort-key, or the one that the variable names, which it removes
// before. It returns the line of both, that of the trial empty where none is to be tried. Entries are given by the names of their files.
func Start(entries map[string]string, oneShot string) (line, trial string) {
	named := strings.ReplaceAll(oneShot[min(4, len(oneShot)):], "\x00", "")
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return bytes.Compare([]byte(rank(entries[b])), []byte(rank(entries[a])))
	})
	if entry, found := entries[named]; found {
		trial = LineOf(entry)
	}
	return LineOf(entries[names[0]]), trial
}

// rank grows with what is started rather: first those with a sort-key, then newer ones. Versions differ in one number alone here.
func rank(entry string) string {
	version := valueOf(entry, "version")
	has := "0"
	if valueOf(entry, "sort-key") != "" {
		has = "1"
	}
	return has + strings.Repeat("0", 40-len(version)) + version
}

// LineOf is the line of an entry.
func LineOf(entry string) string { return valueOf(entry, "options") }

func valueOf(entry, key string) string {
	for line := range strings.Lines(entry) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == key {
			return strings.Join(words[1:], " ")
		}
	}
	return ""
}
