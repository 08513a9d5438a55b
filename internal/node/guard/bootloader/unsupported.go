// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bootloader

import "strings"

// rpmOSTree has deployments, of which none is tried once.
func rpmOSTree() row {
	return row{
		name:   "rpm-ostree or bootc",
		found:  func(h Host) (bool, error) { return exists(h, "/ostree/deploy") },
		advice: "Add each argument with rpm-ostree kargs --append-if-missing=ARGUMENT, and boot; rpm-ostree rollback and another boot bring the former ones back.",
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

// raspberryPi has a firmware of its own, which starts a kernel with the only line of a file.
func raspberryPi() row {
	return row{
		name:   "the firmware of a Raspberry Pi",
		found:  func(h Host) (bool, error) { return exists(h, "/boot/firmware/cmdline.txt") },
		advice: "Add the arguments to the only line of /boot/firmware/cmdline.txt.",
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
