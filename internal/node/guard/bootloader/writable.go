// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bootloader

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
)

// writable refuses hosts on which GRUB could not clear what it starts once, so that the trial would stay the default
// (GRUB's 00_header and grub-core/commands/loadenv.c: no writing to LVM, to MD RAID, to btrfs and ZFS).
func writable(h Host, folder string) error {
	mounts, err := h.Read("/proc/1/mounts")
	if err != nil {
		return err
	}
	device, fileSystem := mountOf(string(mounts.Content), folder)
	switch {
	case fileSystem == "":
		return fmt.Errorf("it is not known on which file system %s is", folder)
	case !slices.Contains([]string{"ext2", "ext3", "ext4", "xfs", "vfat"}, fileSystem):
		return fmt.Errorf("%s is on %s, to which GRUB cannot write: it could not take the trial back", folder, fileSystem)
	}
	name := strings.TrimPrefix(device, "/dev/")
	if strings.HasPrefix(name, "mapper/") || strings.HasPrefix(name, "dm-") || strings.HasPrefix(name, "md") {
		return fmt.Errorf("%s is on %s, a volume of LVM or RAID, to which GRUB cannot write: it could not take the trial back", folder, device)
	}
	link, err := h.Read(device)
	if err != nil {
		return err
	}
	if link.Type == hostfile.Link {
		return fmt.Errorf("%s is on %s, which is a link: it is not known to which device GRUB would write", folder, device)
	}
	return nil
}

// mountOf returns device and type of the file system that a folder is on.
func mountOf(mounts, folder string) (device, fileSystem string) {
	longest := -1
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		point := fields[1]
		inside := point == "/" || folder == point || strings.HasPrefix(folder, point+"/")
		// Of several on one folder, the last one is seen.
		if inside && len(point) >= longest {
			longest, device, fileSystem = len(point), fields[0], fields[2]
		}
	}
	return device, fileSystem
}
