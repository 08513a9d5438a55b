// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// errNoLinux is returned for the root directory of a machine that runs another system.
var errNoLinux = errors.New("reading a running machine needs Linux; name a snapshot, which \"kubectl lowlatency snapshot\" makes on Linux")

// copyTree is an unpacked copy of a host on a machine of any system: what directoryTree is on Linux, without its system calls.
type copyTree struct{ root *os.Root }

func openCopy(name string) (tree, error) {
	absolute, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("finding the root directory: %w", err)
	}
	if filepath.Dir(absolute) == absolute {
		return nil, errNoLinux
	}
	root, err := os.OpenRoot(absolute)
	if err != nil {
		return nil, fmt.Errorf("opening the root directory: %w", withoutPath(err))
	}
	return &copyTree{root}, nil
}

// Close closes the root.
func (t *copyTree) Close() error { return t.root.Close() }

func (t *copyTree) view() view { return copyView{t.root} }

// copyView opens each name from the root: os.Root keeps every access below it.
type copyView struct{ root *os.Root }

func (copyView) release() {}

func (v copyView) lstat(name string) (node, error) {
	if _, err := baseOf(name); err != nil {
		return node{}, err
	}
	info, err := v.root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return node{}, err
	}
	found := node{kind: kindOfFile(info.Mode()), size: info.Size(), permissions: uint32(info.Mode().Perm())}
	if found.kind == kindLink {
		target, err := v.root.Readlink(filepath.FromSlash(name))
		found.target = filepath.ToSlash(target)
		return found, err
	}
	return found, nil
}

// kindOfFile is the kind of what a copy holds.
func kindOfFile(mode fs.FileMode) kind {
	switch {
	case mode.IsRegular():
		return kindFile
	case mode.IsDir():
		return kindDirectory
	case mode&fs.ModeSymlink != 0:
		return kindLink
	case mode&fs.ModeCharDevice != 0:
		return kindDevice
	}
	return kindOther
}

func (v copyView) readFile(name string, limit int) (string, error) {
	file, err := v.open(name)
	if err != nil {
		return "", err
	}
	defer closeRead(file)
	content, err := io.ReadAll(io.LimitReader(file, int64(limit)+1))
	if err == nil && len(content) > limit {
		err = tooLargeError{limit}
	}
	if err != nil {
		return "", err
	}
	return string(content), nil
}

func (v copyView) copyFile(name string, limit int, to io.Writer) error {
	file, err := v.open(name)
	if err != nil {
		return err
	}
	defer closeRead(file)
	written, err := io.CopyN(to, file, int64(limit))
	if errors.Is(err, io.EOF) {
		return nil
	}
	if more, readErr := file.Read(make([]byte, 1)); err == nil && written == int64(limit) && more > 0 {
		return errors.Join(tooLargeError{limit}, readErr)
	}
	return err
}

// open opens a regular file; anything else may block or act.
func (v copyView) open(name string) (*os.File, error) {
	found, err := v.lstat(name)
	if err != nil {
		return nil, err
	}
	if found.kind != kindFile {
		return nil, errNotRegular
	}
	return v.root.Open(filepath.FromSlash(name))
}

func (v copyView) readDir(name string, limit int) ([]entry, error) {
	found, err := v.lstat(name)
	if err != nil {
		return nil, err
	}
	if found.kind != kindDirectory {
		return nil, errNotDirectory
	}
	directory, err := v.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer closeRead(directory)
	listed, err := directory.ReadDir(limit + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(listed) > limit {
		return nil, tooManyError{limit}
	}
	entries := make([]entry, 0, len(listed))
	for _, one := range listed {
		entries = append(entries, entry{one.Name(), kindOfFile(one.Type())})
	}
	return entries, nil
}
