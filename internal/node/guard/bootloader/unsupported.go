// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bootloader

import "strings"

// rpmOSTree has deployments, of which none is tried once.
func rpmOSTree() row {
	return row{
		name:   "rpm-ostree or bootc",
		found:  func(h Host) (bool, error) { return exists(h, "/ostree/deploy") },
		advice: "Add the arguments with rpm-ostree kargs --append, and keep the deployment before it to go back to.",
	}
}

// unifiedKernelImage has the command line in a signed image.
func unifiedKernelImage() row {
	return row{
		name: "a unified kernel image",
		found: func(h Host) (bool, error) {
			for _, folder := range []string{"/boot/efi/EFI/Linux", "/efi/EFI/Linux", "/boot/EFI/Linux"} {
				names, err := h.Names(folder)
				if err != nil {
					return false, err
				}
				for _, name := range names {
					if strings.HasSuffix(name, ".efi") {
						return true, nil
					}
				}
			}
			return false, nil
		},
		advice: "Put the arguments into /etc/kernel/cmdline and build the image anew, or add a signed addon.",
	}
}

// systemdBoot keeps what starts once in a variable of the firmware.
func systemdBoot() row {
	return row{
		name: "systemd-boot",
		found: func(h Host) (bool, error) {
			for _, name := range []string{"/boot/loader/loader.conf", "/boot/efi/loader/loader.conf", "/efi/loader/loader.conf"} {
				if found, err := exists(h, name); found || err != nil {
					return found, err
				}
			}
			return false, nil
		},
		advice: "Put the arguments into /etc/kernel/cmdline and run kernel-install add.",
	}
}

// extlinux is what U-Boot starts with on boards.
func extlinux() row {
	return row{
		name:   "U-Boot or extlinux",
		found:  func(h Host) (bool, error) { return exists(h, "/boot/extlinux/extlinux.conf") },
		advice: "Add the arguments to the line append of /boot/extlinux/extlinux.conf.",
	}
}
