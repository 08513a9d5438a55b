// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openShown makes the memory in which the program shows how far it is. It needs no file system, since a pod may have none that it can write to.
func openShown() (*os.File, error) {
	descriptor, err := unix.MemfdCreate(program, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(descriptor), program)
	if err := file.Truncate(shownSize); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
