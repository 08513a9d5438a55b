// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package afxdp

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// privateMode is that of the folders which only the user of this process enters.
	privateMode fs.FileMode = 0o700
	// containerMode is that of the folder which one container sees: any user in it finds the socket, and none replaces it.
	containerMode fs.FileMode = 0o755
	// fileLimit is larger than what is stored of an allocation of all queues of a NIC.
	fileLimit = 1 << 20
)

// makeFolder makes a folder that only root enters; see ownFolder.
func makeFolder(path string) error { return ownFolder(path, privateMode) }

// ownFolder makes a folder with a mode, or gives that mode to the one that is there, before anything is put into it. The
// kubelet creates the folder of a hostPath volume open to everybody (0755, pkg/volume/hostpath of Kubernetes), long before
// this process runs. One that is a link or belongs to another user is refused: what is in it cannot be relied on.
func ownFolder(path string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), privateMode); err != nil {
		return fmt.Errorf("creating a folder for AF_XDP: %w", err)
	}
	if err := os.Mkdir(path, mode); err != nil && !os.IsExist(err) {
		return fmt.Errorf("creating a folder for AF_XDP: %w", err)
	}
	folder, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("opening a folder for AF_XDP, which may not be a link: %w", err)
	}
	defer func() { _ = folder.Close() }()
	info, err := ownedInfo(folder)
	if err != nil {
		return err
	}
	if info.Mode().Perm() == mode {
		return nil
	}
	if err := folder.Chmod(mode); err != nil {
		return fmt.Errorf("closing the folder %s to other users: %w", path, err)
	}
	return nil
}

// ownedInfo describes an open file or folder, which must belong to the user of this process.
func ownedInfo(file *os.File) (fs.FileInfo, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("looking at a file of AF_XDP: %w", err)
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if !known || int(owner.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("%s belongs to another user; remove it", file.Name())
	}
	return info, nil
}

// readOwn reads a file that this program wrote: a regular one of the same user, reached by no link.
func readOwn(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("opening a file of AF_XDP, which may not be a link: %w", err)
	}
	defer func() { _ = file.Close() }()
	info, err := ownedInfo(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > fileLimit {
		return nil, fmt.Errorf("%s is not a file that was stored", path)
	}
	text, err := io.ReadAll(io.LimitReader(file, fileLimit))
	if err != nil {
		return nil, fmt.Errorf("reading a file of AF_XDP: %w", err)
	}
	return text, nil
}
