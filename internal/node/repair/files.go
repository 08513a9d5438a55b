// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package repair

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// Files writes to the files of a host below the folder at which its root is mounted.
type Files struct {
	// Root is that folder, such as /host.
	Root string
}

// Put writes one file. It refuses what Allowed refuses, a file that does not exist or is no regular file, and
// links that lead out of the root. It neither creates nor replaces anything: the kernel takes a value in a single
// write, or refuses it with the error that Put returns.
func (f Files) Put(write Write) (err error) {
	if err := Allowed(write.Path, write.New); err != nil {
		return err
	}
	root, err := os.OpenRoot(f.Root)
	if err != nil {
		return fmt.Errorf("opening the host: %w", plain(err))
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	// As a shell does. Truncating means something on file systems that keep what is written only; O_NONBLOCK keeps a
	// pipe that has taken the place of the file from blocking.
	file, err := root.OpenFile(strings.TrimPrefix(write.Path, "/"), os.O_WRONLY|os.O_TRUNC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", write.Path, plain(err))
	}
	defer func() {
		if closed := file.Close(); err == nil && closed != nil {
			err = fmt.Errorf("writing %s: %w", write.Path, plain(closed))
		}
	}()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(fmt.Errorf("%s is not a regular file", write.Path), err)
	}
	if _, err := file.WriteString(write.New + "\n"); err != nil {
		return fmt.Errorf("writing %q to %s: %w", write.New, write.Path, plain(err))
	}
	return nil
}

// plain takes the path off an error that is going to be told with the path of the host.
func plain(err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return pathError.Err
	}
	return err
}
