// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hostfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// labelAttribute is where SELinux keeps the security context of a file.
const labelAttribute = "security.selinux"

// maximumLabel is more than any security context has.
const maximumLabel = 4096

// maximumFile is more than any file has that a plan replaces; a larger one is not read into memory.
const maximumFile = 64 << 20

// Root is the file system of a host below a folder.
type Root struct {
	fd int
	// sync makes what was written survive a power cut.
	sync func(*os.File) error
	// settle makes what a boot loader reads survive one, too.
	settle func(*os.File) error
}

// OpenRoot opens the root of a host: "/" for this one.
func OpenRoot(folder string) (*Root, error) {
	fd, err := unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the root %s: %w", folder, err)
	}
	return &Root{fd: fd, sync: (*os.File).Sync, settle: syncFileSystem}, nil
}

// Close gives the root back.
func (r *Root) Close() error {
	if err := unix.Close(r.fd); err != nil {
		return fmt.Errorf("closing the root: %w", err)
	}
	return nil
}

// open opens a path below the root, and fails when any part of it is a link.
func (r *Root) open(name string, flags int) (int, error) {
	how := &unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC | unix.O_NOFOLLOW),
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	for {
		fd, err := unix.Openat2(r.fd, "."+path.Clean("/"+name), how)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
			continue
		}
		if errors.Is(err, unix.ELOOP) {
			return -1, fmt.Errorf("%s leads over a link, which is not followed: %w", name, err)
		}
		if err != nil {
			return -1, fmt.Errorf("opening %s: %w", name, err)
		}
		return fd, nil
	}
}

// inFolder calls do with the folder of a path and the path's name in it.
func (r *Root) inFolder(name string, do func(folder int, base string) error) error {
	folder, err := r.open(path.Dir(name), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(folder) }()
	if err := do(folder, path.Base(name)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Read returns what is at a path.
func (r *Root) Read(name string) (State, error) {
	var s State
	err := r.inFolder(name, func(folder int, base string) error {
		var stat unix.Stat_t
		if err := unix.Fstatat(folder, base, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		s = State{Type: typeOf(stat.Mode), Mode: stat.Mode & 0o7777, UID: int(stat.Uid), GID: int(stat.Gid)}
		return s.read(folder, base)
	})
	if errors.Is(err, unix.ENOENT) {
		return State{}, nil
	}
	return s, err
}

func typeOf(mode uint32) Type {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return Regular
	case unix.S_IFLNK:
		return Link
	case unix.S_IFDIR:
		return Folder
	default:
		return Other
	}
}

// read adds content and label.
func (s *State) read(folder int, base string) error {
	switch s.Type {
	case Link:
		target := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(folder, base, target)
		if err != nil {
			return err
		}
		s.Content, s.Label = target[:n], labelOfLink(folder, base)
		return nil
	case Regular, Folder:
		fd, err := unix.Openat(folder, base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		file := os.NewFile(uintptr(fd), base)
		defer func() { _ = file.Close() }()
		return s.readOpened(file)
	default:
		return nil
	}
}

func (s *State) readOpened(file *os.File) error {
	s.Label = labelOf(int(file.Fd()))
	if s.Type == Folder {
		return nil
	}
	content, err := io.ReadAll(io.LimitReader(file, maximumFile+1))
	if err != nil {
		return err
	}
	if len(content) > maximumFile {
		return fmt.Errorf("the file has more than %d bytes", maximumFile)
	}
	s.Content = content
	return nil
}

// Create puts a file, a link or a folder at a path where nothing is.
func (r *Root) Create(name string, s State) error {
	return r.inFolder(name, func(folder int, base string) error {
		switch s.Type {
		case Link:
			if err := unix.Symlinkat(string(s.Content), folder, base); err != nil {
				return err
			}
			if err := unix.Fchownat(folder, base, s.UID, s.GID, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				return err
			}
			return s.setLabelOfLink(folder, base)
		case Folder:
			if err := unix.Mkdirat(folder, base, 0o700); err != nil {
				return err
			}
			return r.finish(&s, folder, base, unix.O_RDONLY|unix.O_DIRECTORY)
		case Regular:
			return r.finish(&s, folder, base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
		default:
			return fmt.Errorf("nothing of the type %q is made", s.Type)
		}
	})
}

// finish gives what is new its content, owner, mode and label, and makes them survive a power cut.
func (r *Root) finish(s *State, folder int, base string, flags int) error {
	fd, err := unix.Openat(folder, base, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), base)
	if s.Type == Regular {
		_, err = file.Write(s.Content)
	}
	if err == nil {
		err = file.Chown(s.UID, s.GID)
	}
	if err == nil {
		// After the owner, because changing that takes the bits above 0o777 away.
		err = unix.Fchmod(fd, s.Mode)
	}
	if err == nil {
		err = s.setLabel(fd)
	}
	if err == nil {
		err = r.sync(file)
	}
	return errors.Join(err, file.Close())
}

// setLabel gives what is new its label. A file system without labels of its own, such as FAT, has that of its mount for each file.
func (s *State) setLabel(fd int) error {
	if s.Label == "" {
		return nil
	}
	err := unix.Fsetxattr(fd, labelAttribute, []byte(s.Label), 0)
	if errors.Is(err, unix.ENOTSUP) && labelOf(fd) == s.Label {
		return nil
	}
	return err
}

// labelOf is the label of what is open; "" where there is none.
func labelOf(fd int) string {
	label := make([]byte, maximumLabel)
	n, err := unix.Fgetxattr(fd, labelAttribute, label)
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(label[:n]), "\x00")
}

// linkPath is a path of a link for calls that take no folder: a link has no file that could be open.
func linkPath(folder int, base string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder, base)
}

func labelOfLink(folder int, base string) string {
	label := make([]byte, maximumLabel)
	n, err := unix.Lgetxattr(linkPath(folder, base), labelAttribute, label)
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(label[:n]), "\x00")
}

func (s *State) setLabelOfLink(folder int, base string) error {
	if s.Label == "" {
		return nil
	}
	return unix.Lsetxattr(linkPath(folder, base), labelAttribute, []byte(s.Label), 0)
}

// Rename replaces what is at a path by what is at another of the same folder.
func (r *Root) Rename(from, to string) error {
	return r.inFolder(to, func(folder int, base string) error {
		return unix.Renameat(folder, path.Base(from), folder, base)
	})
}

// Remove removes a file, a link or an empty folder.
func (r *Root) Remove(name string) error {
	return r.inFolder(name, func(folder int, base string) error {
		err := unix.Unlinkat(folder, base, 0)
		if errors.Is(err, unix.EISDIR) {
			err = unix.Unlinkat(folder, base, unix.AT_REMOVEDIR)
		}
		return err
	})
}

// isReadAtBoot tells that boot loaders read a folder.
func isReadAtBoot(folder string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path.Clean("/"+folder), "/"), "/")
	return first == "boot" || first == "efi"
}

// syncFileSystem has the kernel write the names of a file system to their places. A boot loader does not read the journal of ext4 (GRUB's
// grub-core/fs/ext2.c), in which fsync(2) leaves them: after a power cut it would find the file from before. syncfs(2) writes the buffers of the
// device after the journal (sync_filesystem in fs/sync.c). XFS keeps them elsewhere, and is not reached by it.
func syncFileSystem(file *os.File) error { return unix.Syncfs(int(file.Fd())) }

// Sync makes the names in a folder survive a power cut, for boot loaders that read it, too.
func (r *Root) Sync(folder string) error {
	fd, err := r.open(folder, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), folder)
	err = r.sync(file)
	if err == nil && isReadAtBoot(folder) {
		err = r.settle(file)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("syncing %s: %w", folder, err)
	}
	return nil
}

// Append adds bytes to a file that exists.
func (r *Root) Append(name string, content []byte) error {
	return r.write(name, unix.O_WRONLY|unix.O_APPEND, func(file *os.File) error {
		_, err := file.Write(content)
		return err
	})
}

// Truncate cuts a file.
func (r *Root) Truncate(name string, size int64) error {
	return r.write(name, unix.O_WRONLY, func(file *os.File) error { return file.Truncate(size) })
}

// write changes a file and makes the change survive a power cut.
func (r *Root) write(name string, flags int, change func(*os.File) error) error {
	fd, err := r.open(name, flags)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), name)
	err = change(file)
	if err == nil {
		err = r.sync(file)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// immutableFlag is FS_IMMUTABLE_FL of linux/fs.h.
const immutableFlag = 0x10

// SetVariable writes a variable of the firmware with one call, as efivarfs wants it, or removes it. The kernel makes the files of
// variables that it does not know immutable, against mistakes: that is taken off, and set again on one that is written over.
func (r *Root) SetVariable(name string, content []byte) error {
	isProtected, err := r.setFlag(name, immutableFlag, false)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	if len(content) == 0 {
		return r.Remove(name)
	}
	err = r.inFolder(name, func(folder int, base string) error {
		fd, err := unix.Openat(folder, base, unix.O_WRONLY|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return err
		}
		_, err = unix.Write(fd, content)
		return errors.Join(err, unix.Close(fd))
	})
	if isProtected {
		_, protected := r.setFlag(name, immutableFlag, true)
		err = errors.Join(err, protected)
	}
	return err
}

// setFlag changes an attribute of a file, and returns whether it was set. A file system without attributes has none set.
func (r *Root) setFlag(name string, flag int, set bool) (was bool, err error) {
	fd, err := r.open(name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(fd) }()
	flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	if err != nil {
		return false, nil
	}
	was = flags&flag != 0
	if was == set {
		return was, nil
	}
	if err := unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags^flag); err != nil {
		return was, fmt.Errorf("changing the attributes of %s: %w", name, err)
	}
	return was, nil
}
