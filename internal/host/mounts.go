// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Folders are the folders of a host below which Read looks for facts. A container that reads a host needs these mounted and
// no others. The files of Kubernetes are named one by one, because others beside them are secrets.
func Folders() []string {
	const kubelet = "/var/lib/kubelet"
	configurations := slices.DeleteFunc(kubeletConfigFiles(), func(file string) bool { return isBelow(file, kubelet) })
	return slices.Concat(
		[]string{"/dev", RuntimeFolder, "/etc/default", "/etc/lowlatency", "/etc/sysconfig", "/opt/onload", "/proc", SocketReports, "/sys", "/usr", GuardFolder},
		[]string{unitFolders()[0], unitFolders()[1], kubelet},
		configurations, []string{PlatformPodsFile},
	)
}

// DistributionFolders are the folders of the kubelet's configuration that only hosts of one distribution have: each is mounted by a component of its
// own, config/agent-k3s and config/agent-rke2.
func DistributionFolders() []string {
	return slices.Compact(slices.Sorted(maps.Values(rancherFolders())))
}

// GuardFolder is where the guard of an ordinary host keeps what it says.
const GuardFolder = "/var/lib/lowlatency"

// ReasonNotMounted is the reason of a fact whose file is outside what is mounted of the host: nothing is known of it, not even
// whether it exists.
const ReasonNotMounted = "not mounted into this container"

// notMountedError is returned for names that are not found in a container that has only parts of the host mounted.
type notMountedError struct{}

func (notMountedError) Error() string { return ReasonNotMounted }

// Is makes the error one of those that leave a fact absent and do not end a Read.
func (notMountedError) Is(target error) bool { return target == fs.ErrPermission }

// Mount is one line of mountinfo (proc_pid_mountinfo(5)).
type Mount struct {
	// ID and Parent tell which mount it stands on.
	ID, Parent string
	// Point is where it is mounted, as the process sees it, and Root what of its file system is mounted there.
	Point, Root string
	// ReadOnly is that of the mount or of its file system.
	ReadOnly bool
}

// deletedSuffix follows the root of a mount whose file was removed or replaced since.
const deletedSuffix = "//deleted"

// IsStale reports whether what was mounted has been removed or replaced since: the mount shows the old file for good.
func (m Mount) IsStale() bool { return strings.HasSuffix(m.Root, deletedSuffix) }

// ParseMounts reads the mounts of a process. Lines that are none are left out.
func ParseMounts(mountinfo []byte) []Mount {
	var mounts []Mount
	for line := range bytes.Lines(mountinfo) {
		own, shared, found := strings.Cut(string(line), " - ")
		fields, super := strings.Fields(own), strings.Fields(shared)
		if !found || len(fields) < 6 || len(super) == 0 {
			continue
		}
		options := strings.Split(fields[5], ",")
		ofFileSystem := strings.Split(super[len(super)-1], ",")
		mounts = append(mounts, Mount{
			ID: fields[0], Parent: fields[1], Point: unescape(fields[4]), Root: unescape(fields[3]),
			ReadOnly: slices.Contains(options, "ro") || slices.Contains(ofFileSystem, "ro"),
		})
	}
	return mounts
}

// unescape replaces the octal codes that the kernel writes for spaces and the like (mangle of fs/seq_file.c).
func unescape(text string) string {
	var plain strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if code, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				plain.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		plain.WriteByte(text[i])
	}
	return plain.String()
}

// visible leaves out the mounts that nobody reaches, because another mount stands on the way to them.
func visible(mounts []Mount) []Mount {
	isHidden := map[string]bool{}
	for range mounts {
		before := len(isHidden)
		for _, m := range mounts {
			covered := func(other Mount) bool {
				return other.Parent == m.Parent && other.Point != m.Point && isBelow(m.Point, other.Point)
			}
			if isHidden[m.Parent] || slices.ContainsFunc(mounts, covered) {
				isHidden[m.ID] = true
			}
		}
		if len(isHidden) == before {
			break
		}
	}
	return slices.DeleteFunc(slices.Clone(mounts), func(m Mount) bool { return isHidden[m.ID] })
}

// MountsBelow returns the mounts of this process at a folder and below it, as far as they can be reached.
func MountsBelow(folder string) ([]Mount, error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return nil, fmt.Errorf("finding what is mounted of the host: %w", err)
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("finding what is mounted of the host: %w", err)
	}
	onTheWay := slices.DeleteFunc(ParseMounts(text), func(m Mount) bool { return !isBelow(m.Point, absolute) && !isBelow(absolute, m.Point) })
	return slices.DeleteFunc(visible(onTheWay), func(m Mount) bool { return !isBelow(m.Point, absolute) }), nil
}

// isBelow reports whether a path is a folder or below it.
func isBelow(name, folder string) bool {
	return folder == "/" || name == folder || strings.HasPrefix(name, folder+"/")
}

// parts are the names, relative to the root of a host, of what is mounted of it; nil when the whole host is there.
type parts []string

// partsBelow finds out what of a host is mounted below a folder that is no mount itself. Where the mounts are not known, or
// nothing is mounted below, the folder is the whole host, as an unpacked copy is.
func partsBelow(folder string) parts {
	mounts, err := MountsBelow(folder)
	absolute, absErr := filepath.Abs(folder)
	if err != nil || absErr != nil {
		return nil
	}
	var names parts
	for _, mount := range mounts {
		if mount.Point == absolute {
			return nil
		}
		names = append(names, strings.TrimPrefix(strings.TrimPrefix(mount.Point, absolute), "/"))
	}
	return names
}

// explain turns the error for a name that was not found into one that says whether the host can be asked for it.
func (p parts) explain(name string, err error) error {
	if p == nil || err == nil || !errors.Is(err, fs.ErrNotExist) || p.covers(name) {
		return err
	}
	return notMountedError{}
}

// covers reports whether a name that is not there is not on the host either. Of hosts on which these folders are links into
// /usr, as systemd demands (since version 255), what is mounted as /usr is the whole of them.
func (p parts) covers(name string) bool {
	if first, _, _ := strings.Cut(name, "/"); slices.Contains([]string{"bin", "lib", "lib64", "sbin"}, first) {
		name = path.Join("usr", name)
	}
	return slices.ContainsFunc(p, func(part string) bool { return isBelow(name, part) })
}
