// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ReplaceWith writes like Replace what a function writes, and replaces nothing when that fails. Windows has no modes: who may read
// the folder may read the file.
func ReplaceWith(path string, _ fs.FileMode, write func(io.Writer) error) error {
	pending, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"*")
	if err != nil {
		return withoutPath(err)
	}
	err = write(pending)
	if err = errors.Join(err, pending.Sync(), pending.Close()); err == nil {
		err = os.Rename(pending.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(pending.Name()))
	}
	return nil
}
