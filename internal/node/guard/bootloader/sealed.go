// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bootloader

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

const crypttab = "/etc/crypttab"

// mostLinks is how many links in a row are followed: as many as the kernel follows (MAXSYMLINKS in include/linux/namei.h).
const mostLinks = 40

// Sealed says which disk of the host is opened with a key that its TPM keeps, or why that cannot be told; "" where crypttab(5) names none or is not
// there. GRUB and systemd's boot stub measure the kernel's command line into the TPM's registers 8, 9 and 12, and a key that is bound to them is not
// given to a kernel with other arguments: the start waits for a passphrase, before anything of ours runs. To which registers a key is bound only the
// disk itself says.
func Sealed(h Host) string {
	content, err := readCrypttab(h)
	if err != nil {
		return fmt.Sprintf("whether the TPM opens a disk of this host at its start cannot be told: %v", err)
	}
	disk := sealedDisk(content)
	if disk == "" {
		return ""
	}
	return fmt.Sprintf("the disk %s is opened with a key that the TPM keeps (%s), and that it may not give to a kernel with other arguments", disk, crypttab)
}

// readCrypttab is the content of the table, which is empty where there is none. A link within the host is followed as systemd follows it; one that
// leads nowhere in the host says nothing about its disks: what it leads to may come with a mount, or be in a file system that is not this host's.
func readCrypttab(h Host) (string, error) {
	name := crypttab
	for range mostLinks {
		file, err := h.Read(name)
		if err != nil {
			return "", fmt.Errorf("%s cannot be read: %w", crypttab, err)
		}
		switch {
		case file.Type == hostfile.Regular:
			return string(file.Content), nil
		case file.Type == hostfile.Absent && name == crypttab:
			return "", nil
		case file.Type == hostfile.Absent:
			return "", fmt.Errorf("%s is a link that leads to %s, and that is not in the file system of this host", crypttab, name)
		case file.Type != hostfile.Link:
			return "", fmt.Errorf("%s is no regular file", name)
		}
		if name, err = follow(name, string(file.Content)); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%s is a link that leads over more than %d others", crypttab, mostLinks)
}

// follow is where a link leads to. One that climbs above the root of the host ends there for a kernel whose root that is, and outside for every other
// reader, so it is not taken for either.
func follow(link, target string) (string, error) {
	if path.IsAbs(target) {
		return path.Clean(target), nil
	}
	relative := path.Join(strings.TrimPrefix(path.Dir(link), "/"), target)
	if relative == ".." || strings.HasPrefix(relative, "../") {
		return "", fmt.Errorf("%s is a link that leads to %s, out of the file system of this host", link, target)
	}
	return path.Join("/", relative), nil
}

// sealedDisk is the first disk of crypttab(5) that a TPM opens at the start; "" for none.
func sealedDisk(table string) string {
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 4 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		options := strings.Split(fields[3], ",")
		isSealed := slices.ContainsFunc(options, func(option string) bool { return strings.HasPrefix(option, "tpm2-device=") })
		if isSealed && !slices.Contains(options, "noauto") {
			return fields[0]
		}
	}
	return ""
}

// CheckSealed refuses arguments for a host whose start may wait for a passphrase with them, unless that is accepted by name. The way back to
// the former arguments is refused to nobody.
func CheckSealed(sealed string, change Arguments) error {
	if sealed == "" || len(change.Add) == 0 || change.Fallback == operation.ByHandAccepted {
		return nil
	}
	return fmt.Errorf("%s. Where no key is bound to one of the registers 8, 9 and 12 (cryptsetup luksDump), or where somebody can type the passphrase or start "+
		"the host again, accept that by name (spec.rollout.bootFallback of the profile, or fallback of the operation: %s)", sealed, operation.ByHandAccepted)
}
