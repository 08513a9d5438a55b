// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// readDeadline bounds the reading of one file. Files of /proc and /sys answer at once; a few, such as
// trace_pipe, wait for events for ever.
const readDeadline = 2 * time.Second

// directoryTree is a host below a directory. It is read through os.Root, which keeps every access below
// that directory even while links are being changed under it.
type directoryTree struct{ root *os.Root }

func openDirectory(name string) (*directoryTree, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("opening the root directory: %w", err)
	}
	return &directoryTree{root}, nil
}

// Close closes the root.
func (t *directoryTree) Close() error { return t.root.Close() }

func (t *directoryTree) view() view { return &directoryView{root: t.root} }

// directoryView keeps the directories on the way to the last file open: the thousands of small files of
// /sys lie next to each other, and os.Root otherwise opens every directory of a path for each of them.
type directoryView struct {
	root   *os.Root
	open   []openDirectoryHandle
	buffer bytes.Buffer
}

type openDirectoryHandle struct {
	name string
	root *os.Root
}

func (v *directoryView) release() { v.closeFrom(0) }

func (v *directoryView) closeFrom(depth int) {
	for _, handle := range v.open[depth:] {
		closeRead(handle.root)
	}
	v.open = v.open[:depth]
}

// handle returns a directory to work in, and keeps open what leads to it.
func (v *directoryView) handle(dir string) (*os.Root, error) {
	at, rest := v.root, dir
	depth := len(v.open)
	for ; depth > 0; depth-- {
		name := v.open[depth-1].name
		if below, ok := strings.CutPrefix(dir, name); ok && (below == "" || below[0] == '/') {
			at, rest = v.open[depth-1].root, strings.TrimPrefix(below, "/")
			break
		}
	}
	v.closeFrom(depth)
	for component := range strings.SplitSeq(rest, "/") {
		if component == "" || component == "." {
			continue
		}
		next, err := at.OpenRoot(component)
		if err != nil {
			return nil, err
		}
		v.open = append(v.open, openDirectoryHandle{path.Join(v.nameOfLast(), component), next})
		at = next
	}
	return at, nil
}

func (v *directoryView) nameOfLast() string {
	if len(v.open) == 0 {
		return ""
	}
	return v.open[len(v.open)-1].name
}

func (v *directoryView) lstat(name string) (node, error) {
	dir, err := v.handle(path.Dir(name))
	if err != nil {
		return node{}, err
	}
	base := path.Base(name)
	info, err := dir.Lstat(base)
	if err != nil {
		return node{}, err
	}
	found := node{kind: kindOf(info.Mode()), size: info.Size(), permissions: uint32(info.Mode().Perm())}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && found.kind == kindDevice {
		found.major, found.minor = unix.Major(stat.Rdev), unix.Minor(stat.Rdev)
	}
	if found.kind == kindLink {
		found.target, err = dir.Readlink(base)
	}
	return found, err
}

func (v *directoryView) readFile(name string, limit int) (string, error) {
	v.buffer.Reset()
	err := v.copyFile(name, limit, &v.buffer)
	if err != nil {
		return "", err
	}
	return v.buffer.String(), nil
}

func (v *directoryView) copyFile(name string, limit int, to io.Writer) error {
	dir, err := v.handle(path.Dir(name))
	if err != nil {
		return err
	}
	// The caller has seen a regular file here. Should a pipe have taken its place since, O_NONBLOCK keeps
	// opening it from blocking, and the second look refuses it.
	file, err := dir.OpenFile(path.Base(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer closeRead(file)
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errNotRegular
	}
	return copyContent(file, limit, to)
}

func copyContent(file *os.File, limit int, to io.Writer) error {
	if err := file.SetReadDeadline(time.Now().Add(readDeadline)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return err
	}
	// Files of /proc and /sys give their size as 0 or 4096, so only reading tells how long they are.
	length, err := io.Copy(to, io.LimitReader(file, int64(limit)+1))
	if err == nil && length > int64(limit) {
		err = tooLargeError{limit}
	}
	return err
}

// closeRead closes a file that was only read from: it has nothing to lose.
func closeRead(file io.Closer) { _ = file.Close() }

func (v *directoryView) readDir(name string, limit int) ([]entry, error) {
	dir, err := v.handle(name)
	if err != nil {
		return nil, err
	}
	file, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer closeRead(file)
	found, err := file.ReadDir(limit + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(found) > limit {
		return nil, tooManyError{limit}
	}
	entries := make([]entry, len(found))
	for i, f := range found {
		entries[i] = entry{f.Name(), kindOf(f.Type())}
	}
	return entries, nil
}
