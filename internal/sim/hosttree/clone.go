// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Clone makes a second host of a tree: a folder, which must not exist yet, with the same files. They are hard links,
// which is many times cheaper than copies. Every function of this package puts a new file into the place of an old
// one, so that one host never sees what happens to the other; who writes into a tree by other means must do the same.
func Clone(from, to string) error {
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := to + path[len(from):]
		switch {
		case entry.IsDir():
			return os.Mkdir(target, 0o755)
		case entry.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		default:
			return os.Link(path, target)
		}
	})
	if err != nil {
		return fmt.Errorf("cloning the host tree %s: %w", from, err)
	}
	return nil
}

// writeNew writes a file that takes the place of an old one.
func writeNew(path string, content []byte) (err error) {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	file, err := os.OpenFile(path, flags, 0o644)
	if errors.Is(err, fs.ErrExist) {
		if err := os.Remove(path); err != nil {
			return err
		}
		file, err = os.OpenFile(path, flags, 0o644)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = file.Write(content)
	return err
}
