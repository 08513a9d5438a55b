// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build !windows

package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// ReplaceWith writes like Replace what a function writes, and replaces nothing when that fails.
func ReplaceWith(path string, mode fs.FileMode, write func(io.Writer) error) error {
	pending, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(mode))
	if err != nil {
		return withoutPath(err)
	}
	if err = write(pending); err == nil {
		err = pending.CloseAtomicallyReplace()
	}
	if err != nil {
		return errors.Join(err, pending.Cleanup())
	}
	return nil
}
