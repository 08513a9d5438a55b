// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package atomicfile replaces files in one step.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// leftoverAge is the age from which a file that was to be renamed is taken for one whose writer was killed. Writers
// need milliseconds; two processes may write to one folder while one takes over from the other.
const leftoverAge = 5 * time.Second

// Replace writes a file so that a reader sees its old content or its new one, and nothing in between, even after the
// machine has lost its power. Its folder must exist. While it is being written, the content is in a file beside it whose
// name is a dot, that of the file and a number.
func Replace(path string, content []byte, mode fs.FileMode) error {
	err := ReplaceWith(path, mode, func(to io.Writer) error {
		_, err := to.Write(content)
		return err
	})
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// withoutPath takes the name of the file that was to be renamed off an error: nobody asked for it.
func withoutPath(err error) error {
	if inPath, ok := errors.AsType[*fs.PathError](err); ok {
		return inPath.Err
	}
	return err
}

// RemoveLeftovers removes what writers that were killed within Replace have left of files whose names match a pattern
// of filepath.Match. A file that may still be written stays. A folder that does not exist has no leftovers.
func RemoveLeftovers(folder, pattern string) error {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking for leftovers in %s: %w", folder, err)
	}
	var problems []error
	for _, entry := range entries {
		if !isLeftover(entry, pattern) {
			continue
		}
		if err := os.Remove(filepath.Join(folder, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, fmt.Errorf("removing a leftover: %w", err))
		}
	}
	return errors.Join(problems...)
}

func isLeftover(entry fs.DirEntry, pattern string) bool {
	hidden, isHidden := strings.CutPrefix(entry.Name(), ".")
	name := strings.TrimRight(hidden, "0123456789")
	matches, err := filepath.Match(pattern, name)
	if !isHidden || name == hidden || !matches || err != nil {
		return false
	}
	info, err := entry.Info()
	return err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) >= leftoverAge
}
