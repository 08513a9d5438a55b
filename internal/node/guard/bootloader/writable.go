// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bootloader

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
)

// writable refuses hosts on which GRUB could not clear what it starts once, so that the trial would stay the default
// (GRUB's 00_header and grub-core/commands/loadenv.c: no writing to LVM, to MD RAID, to btrfs and ZFS).
func (d debian) writable() error {
	mounts, err := d.host.Read("/proc/1/mounts")
	if err != nil {
		return err
	}
	device, fileSystem := mountOf(string(mounts.Content), "/boot/grub")
	switch {
	case fileSystem == "":
		return errors.New("it is not known on which file system /boot/grub is")
	case !slices.Contains([]string{"ext2", "ext3", "ext4", "xfs", "vfat"}, fileSystem):
		return fmt.Errorf("/boot/grub is on %s, to which GRUB cannot write: it could not take the trial back", fileSystem)
	}
	name := strings.TrimPrefix(device, "/dev/")
	if strings.HasPrefix(name, "mapper/") || strings.HasPrefix(name, "dm-") || strings.HasPrefix(name, "md") {
		return fmt.Errorf("/boot/grub is on %s, a volume of LVM or RAID, to which GRUB cannot write: it could not take the trial back", device)
	}
	link, err := d.host.Read(device)
	if err != nil {
		return err
	}
	if link.Type == hostfile.Link {
		return fmt.Errorf("/boot/grub is on %s, which is a link: it is not known to which device GRUB would write", device)
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
