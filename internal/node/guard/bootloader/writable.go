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

// Stuck tells hosts on which GRUB cannot clear what it starts once, so that the trial stays the default until the running system clears
// it (GRUB's 00_header and grub-core/commands/loadenv.c: no writing to LVM, to MD RAID, to btrfs and ZFS).
func (m memory) Stuck() (string, error) {
	folder := path.Dir(m.path)
	mounts, err := m.host.Read("/proc/1/mounts")
	if err != nil {
		return "", err
	}
	at := mountOf(string(mounts.Content), folder)
	switch {
	case at.fileSystem == "":
		return "", fmt.Errorf("it is not known on which file system %s is", folder)
	case !slices.Contains([]string{"ext2", "ext3", "ext4", "xfs", "vfat"}, at.fileSystem):
		return fmt.Sprintf("%s is on %s, to which GRUB cannot write: it could not take the trial back", folder, at.fileSystem), nil
	}
	name := strings.TrimPrefix(at.device, "/dev/")
	if strings.HasPrefix(name, "mapper/") || strings.HasPrefix(name, "dm-") || strings.HasPrefix(name, "md") {
		return fmt.Sprintf("%s is on %s, a volume of LVM or RAID, to which GRUB cannot write: it could not take the trial back", folder, at.device), nil
	}
	link, err := m.host.Read(at.device)
	if err != nil {
		return "", err
	}
	if link.Type == hostfile.Link {
		return fmt.Sprintf("%s is on %s, which is a link: it is not known to which device GRUB would write", folder, at.device), nil
	}
	return "", nil
}

// checkFallback refuses hosts with which a kernel that does not come up would stay, unless that is accepted by name.
func (m memory) checkFallback(change Arguments) error {
	stuck, err := m.Stuck()
	if err != nil || stuck == "" || change.Fallback == operation.ByHandAccepted {
		return err
	}
	return fmt.Errorf("%s. Put %s on a partition of its own with ext4, or accept by name that somebody has to choose the entry before at the console "+
		"where a kernel does not come up (spec.rollout.bootFallback of the profile, or fallback of the operation: %s)", stuck, path.Dir(m.path), operation.ByHandAccepted)
}

// mount is a file system in its place.
type mount struct {
	point, device, fileSystem string
	options                   []string
}

// mountOf returns the file system that a folder is on.
func mountOf(mounts, folder string) mount {
	longest, found := -1, mount{}
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) < 4 {
			continue
		}
		point := fields[1]
		inside := point == "/" || folder == point || strings.HasPrefix(folder, point+"/")
		// Of several on one folder, the last one is seen.
		if inside && len(point) >= longest {
			longest = len(point)
			found = mount{point: point, device: fields[0], fileSystem: fields[2], options: strings.Split(fields[3], ",")}
		}
	}
	return found
}
