// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// readDeadline bounds the reading of one file. Files of /proc and /sys answer at once; a few, such as
	// trace_pipe, wait for events for ever.
	readDeadline = 2 * time.Second
	// maxOpenDirectories is how many directories a view keeps open before it closes them all.
	maxOpenDirectories = 256
	// pieceSize is how much of a file or directory is read at once: the largest page size of Linux, which is also the
	// length of most files of /proc and /sys.
	pieceSize = 64 << 10
)

// directoryTree is a host below a directory.
type directoryTree struct {
	root int
	// mounted is what of the host is there, in a container.
	mounted parts
}

func openDirectory(name string) (*directoryTree, error) {
	root, err := openAt(unix.AT_FDCWD, name, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("opening the root directory: %w", err)
	}
	return &directoryTree{root, partsBelow(name)}, nil
}

// Close closes the root.
func (t *directoryTree) Close() error { return unix.Close(t.root) }

func (t *directoryTree) view() view {
	return &directoryView{root: t.root, mounted: t.mounted, open: map[string]int{}, piece: make([]byte, pieceSize), kinds: map[string]kind{}}
}

// directoryView opens one name at a time, each in the directory above it and without following links, which keeps every
// access below the root even while links are being changed under it. os.Root promises the same, and takes two to three
// times as many system calls for it, of which a large host sees tens of thousands.
//
// It keeps directories open: the thousands of small files of /sys lie next to each other.
type directoryView struct {
	root    int
	mounted parts
	open    map[string]int
	piece   []byte
	// content is where files are put together that need several pieces.
	content []byte
	// listed is the directory that was listed latest, and kinds what its names stand for.
	listed string
	kinds  map[string]kind
}

func (v *directoryView) release() {
	for _, directory := range v.open {
		closeDescriptor(directory)
	}
	clear(v.open)
}

// openAt opens a name in a directory.
func openAt(directory int, name string, flags int) (int, error) {
	for {
		opened, err := unix.Openat(directory, name, flags|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return opened, err
		}
	}
}

// closeDescriptor closes what was only read from: it has nothing to lose.
func closeDescriptor(descriptor int) { _ = unix.Close(descriptor) }

// handle returns a directory to work in, and keeps open what leads to it. It is good until the next call.
func (v *directoryView) handle(dir string) (int, error) {
	if len(v.open) >= maxOpenDirectories {
		v.release()
	}
	return v.descend(dir)
}

func (v *directoryView) descend(dir string) (int, error) {
	if dir == "." {
		return v.root, nil
	}
	if known, ok := v.open[dir]; ok {
		return known, nil
	}
	parent, err := v.descend(dirOf(dir))
	if err != nil {
		return 0, err
	}
	base, err := baseOf(dir)
	if err != nil {
		return 0, err
	}
	opened, err := openAt(parent, base, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return 0, err
	}
	v.open[dir] = opened
	return opened, nil
}

// openDirectory fails if a name is no directory, or a link to one.
func (v *directoryView) openDirectory(name string) error {
	_, err := v.handle(name)
	return v.mounted.explain(name, err)
}

// within returns the directory of a name and its last component.
func (v *directoryView) within(name string) (int, string, error) {
	base, err := baseOf(name)
	if err != nil {
		return 0, "", err
	}
	dir, err := v.handle(dirOf(name))
	return dir, base, err
}

func (v *directoryView) lstat(name string) (node, error) {
	dir, base, err := v.within(name)
	if err != nil {
		return node{}, v.mounted.explain(name, err)
	}
	if v.kindListed(dirOf(name), base) == kindLink {
		if target, err := v.readLink(dir, base); err == nil {
			return node{kind: kindLink, target: target}, nil
		}
	}
	stat, err := statAt(dir, base)
	if err != nil {
		return node{}, v.mounted.explain(name, err)
	}
	found := nodeOf(&stat)
	if found.kind == kindLink {
		found.target, err = v.readLink(dir, base)
	}
	return found, err
}

// nodeOf is what the kernel says of a name, without the target of a link.
func nodeOf(stat *unix.Stat_t) node {
	found := node{kind: kindOfMode(stat.Mode), size: stat.Size, permissions: stat.Mode & permissionBits, inode: stat.Ino}
	if found.kind == kindDevice {
		found.major, found.minor = unix.Major(stat.Rdev), unix.Minor(stat.Rdev)
	}
	return found
}

func statAt(dir int, base string) (unix.Stat_t, error) {
	for {
		var stat unix.Stat_t
		err := unix.Fstatat(dir, base, &stat, unix.AT_SYMLINK_NOFOLLOW)
		if !errors.Is(err, unix.EINTR) {
			return stat, err
		}
	}
}

func (v *directoryView) readLink(dir int, base string) (string, error) {
	length, err := unix.Readlinkat(dir, base, v.piece)
	if err != nil {
		return "", err
	}
	return string(v.piece[:length]), nil
}

// kindOfMode reads the type of a file from its mode, as inode(7) describes it.
func kindOfMode(mode uint32) kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return kindFile
	case unix.S_IFDIR:
		return kindDirectory
	case unix.S_IFLNK:
		return kindLink
	case unix.S_IFCHR:
		return kindDevice
	}
	return kindOther
}

func (v *directoryView) readFile(name string, limit int) (string, error) {
	v.content = v.content[:0]
	var text string
	err := v.pieces(name, limit, func(piece []byte, last bool) error {
		if last && len(v.content) == 0 {
			text = string(piece)
			return nil
		}
		v.content = append(v.content, piece...)
		return nil
	})
	if len(v.content) > 0 {
		text = string(v.content)
	}
	return text, err
}

func (v *directoryView) copyFile(name string, limit int, to io.Writer) error {
	return v.pieces(name, limit, func(piece []byte, _ bool) error {
		_, err := to.Write(piece)
		return err
	})
}

// pieces gives the content of a regular file to a function piece by piece, and says which is known to be the last.
func (v *directoryView) pieces(name string, limit int, do func(piece []byte, last bool) error) error {
	dir, base, err := v.within(name)
	if err != nil {
		return err
	}
	// The caller has seen a regular file here. Should a pipe have taken its place since, O_NONBLOCK keeps
	// opening it from blocking, and the second look refuses it.
	file, err := openAt(dir, base, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY)
	if err != nil {
		return err
	}
	defer closeDescriptor(file)
	var stat unix.Stat_t
	if err := unix.Fstat(file, &stat); err != nil {
		return err
	}
	if found := nodeOf(&stat); found.kind != kindFile {
		return found.notRegular()
	}
	return v.copyContent(file, stat.Size, limit, do)
}

// readDevice reads once from a character device.
func (v *directoryView) readDevice(name string, size int) (string, error) {
	dir, base, err := v.within(name)
	if err != nil {
		return "", err
	}
	file, err := openAt(dir, base, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY)
	if err != nil {
		return "", err
	}
	defer closeDescriptor(file)
	content := make([]byte, size)
	n, err := unix.Read(file, content)
	if err != nil {
		return "", err
	}
	return string(content[:n]), nil
}

// copyContent reads a file to its end. Files of /proc and /sys give their size as 0 or that of a page, so that reading on
// shows where they end; of others it is known.
func (v *directoryView) copyContent(file int, size int64, limit int, do func([]byte, bool) error) error {
	deadline := time.Time{}
	for length := int64(0); ; {
		n, err := unix.Read(file, v.piece)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			if deadline, err = awaitContent(file, deadline); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		case n <= 0:
			return nil
		}
		length += int64(n)
		if length > int64(limit) {
			return tooLargeError{limit}
		}
		last := length == size && size%int64(os.Getpagesize()) != 0
		if err := do(v.piece[:n], last); err != nil || last {
			return err
		}
	}
}

// awaitContent waits until a file has something to read, at the longest until the deadline, which is readDeadline from now
// when there is none yet.
func awaitContent(file int, deadline time.Time) (time.Time, error) {
	if deadline.IsZero() {
		deadline = time.Now().Add(readDeadline)
	}
	left := time.Until(deadline)
	if left <= 0 {
		return deadline, os.ErrDeadlineExceeded
	}
	_, err := unix.Poll([]unix.PollFd{{Fd: int32(file), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
	if errors.Is(err, unix.EINTR) {
		err = nil
	}
	return deadline, err
}

func (v *directoryView) readDir(name string, limit int) ([]entry, error) {
	file, keep, err := v.openList(name)
	if err != nil {
		return nil, err
	}
	if !keep {
		defer closeDescriptor(file)
	}
	var entries []entry
	for {
		n, err := unix.Getdents(file, v.piece)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return entries, err
		}
		if n <= 0 {
			v.remember(name, entries)
			return entries, nil
		}
		entries = appendEntries(entries, file, v.piece[:n])
		if len(entries) > limit {
			return nil, tooManyError{limit}
		}
	}
}

// openList opens a directory to list it. What has not been open before is listed and worked in by one descriptor, which is kept.
func (v *directoryView) openList(name string) (file int, keep bool, err error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW
	if _, known := v.open[name]; known || name == "." {
		dir, err := v.handle(name)
		if err != nil {
			return 0, false, err
		}
		file, err = openAt(dir, ".", flags)
		return file, false, err
	}
	dir, base, err := v.within(name)
	if err != nil {
		return 0, false, err
	}
	if file, err = openAt(dir, base, flags); err == nil {
		v.open[name] = file
	}
	return file, true, err
}

// maxRemembered bounds the directories whose content is remembered: that of a larger one would cost more than it saves.
const maxRemembered = 1024

// remember keeps what the names of a directory stand for.
func (v *directoryView) remember(name string, entries []entry) {
	clear(v.kinds)
	v.listed = name
	if len(entries) > maxRemembered {
		return
	}
	for _, e := range entries {
		v.kinds[e.name] = e.kind
	}
}

// kindListed is what a name stood for when its directory was listed, if that is the one listed latest; else 0.
func (v *directoryView) kindListed(dir, base string) kind {
	if dir != v.listed {
		return 0
	}
	return v.kinds[base]
}
