// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// kind is what a name in a tree stands for.
type kind uint8

const (
	kindFile kind = iota + 1
	kindDirectory
	kindLink
	// kindDevice are character devices. Like kindOther they are never opened.
	kindDevice
	// kindOther are pipes, block devices and sockets: opening one may block or act, so they are never opened.
	kindOther
)

// permissionBits are those of a mode that say who may do what.
const permissionBits = 0o777

// node is one name in a tree.
type node struct {
	kind kind
	// target of a symbolic link, as it is written.
	target string
	// size as the file system tells it; 0 for files of /proc.
	size int64
	// permissions are the permission bits of a file or device.
	permissions uint32
	// major and minor are the numbers of a device.
	major, minor uint32
	// inode is the number of the file; 0 in an archive.
	inode uint64
}

// entry is one name in a directory.
type entry struct {
	name string
	kind kind
}

// tree holds the files of a host.
type tree interface {
	view() view
	Close() error
}

// view looks at a tree for the time of one Read. Names are relative to the root, clean and
// slash-separated; none of their directories may be a symbolic link: walk sees to that. A view is for one
// goroutine.
type view interface {
	// lstat describes a name and follows no link.
	lstat(name string) (node, error)
	// readFile returns the content of a regular file, or an error if it is longer than limit.
	readFile(name string, limit int) (string, error)
	// copyFile writes the content of a regular file to a writer piece by piece, or fails if it is longer than limit.
	copyFile(name string, limit int, to io.Writer) error
	// readDir lists a directory, or fails if it holds more than limit names.
	readDir(name string, limit int) ([]entry, error)
	release()
}

// Errors of trees beyond fs.ErrNotExist and fs.ErrPermission. They are compared with errors.Is.
var (
	errNotRegular   = errors.New("not a regular file")
	errNotDirectory = errors.New("not a directory")
	errNotLink      = errors.New("not a symbolic link")
	errLoop         = errors.New("too many symbolic links, perhaps a loop")
	errPCITree      = errors.New("more PCI devices, or more bridges behind each other, than a host can have")
	errTooDeep      = errors.New("more directories deep than any file of the kernel")
	errOutside      = errors.New("a symbolic link leads out of the root")
	errHidden       = errors.New(reasonHidden)
)

// notRegular says why a name that is no regular file cannot be read as one. A container runtime puts the device of /dev/null over a file
// that a container is not to see (maskedPaths of the OCI runtime specification; maskPaths of runc).
func (n node) notRegular() error {
	const nullMajor, nullMinor = 1, 3
	if n.kind == kindDevice && n.major == nullMajor && n.minor == nullMinor {
		return errHidden
	}
	return errNotRegular
}

// tooLargeError says that a file is longer than is sensible for it.
type tooLargeError struct{ limit int }

func (e tooLargeError) Error() string { return fmt.Sprintf("longer than %d bytes", e.limit) }

// tooManyError says that a directory or a list holds more than any real host has.
type tooManyError struct{ limit int }

func (e tooManyError) Error() string { return fmt.Sprintf("holds more than %d entries", e.limit) }

// unreadableError is the reason for which a file could not be read when its snapshot was made.
type unreadableError struct{ reason string }

func (e unreadableError) Error() string { return e.reason }

// Is makes a recorded reason behave like the original.
func (e unreadableError) Is(target error) bool {
	return target == errHidden && e.reason == reasonHidden || target == fs.ErrPermission && (e.reason == reasonPermission || e.reason == ReasonNotMounted)
}

const (
	reasonMissing    = "no such file"
	reasonPermission = "permission denied"
	reasonHidden     = "the container runtime hides it"
)

// reasonOf puts an error of a tree into the words of Fact.Reason, without the path: a Fact has it.
func reasonOf(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return reasonMissing
	}
	if _, ok := errors.AsType[notMountedError](err); ok {
		return ReasonNotMounted
	}
	if errors.Is(err, fs.ErrPermission) {
		return reasonPermission
	}
	return withoutPath(err).Error()
}

// withoutPath takes the path off an error whose message is going to name it anyway.
func withoutPath(err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return pathError.Err
	}
	return err
}
