// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// OpenOnload returns the folder with Onload for a kernel of the image, as hack/lab/onload/build.sh describes it, and builds it
// first when this user's cache does not hold it. It reports what it does on progress.
func (i *Image) OpenOnload(ctx context.Context, kernel Kernel, progress io.Writer) (string, error) {
	release, err := kernelRelease(i.file("vmlinuz-" + string(kernel)))
	if err != nil {
		return "", err
	}
	const releaseFile = "release"
	dir, err := built(ctx, "onload", func(dir string) error {
		if err := os.WriteFile(filepath.Join(dir, releaseFile), []byte(release), 0o644); err != nil {
			return fmt.Errorf("naming the kernel that Onload is built for: %w", err)
		}
		return nil
	}, progress)
	if err != nil {
		return "", err
	}
	builtFor, err := os.ReadFile(filepath.Join(dir, releaseFile))
	if err != nil {
		return "", fmt.Errorf("reading which kernel Onload was built for: %w", err)
	}
	if string(builtFor) != release {
		return "", fmt.Errorf("%s has Onload for the kernel %s, and the image's is %s: remove that folder, so that Onload is built anew",
			dir, builtFor, release)
	}
	return dir, nil
}

// kernelRelease reads the release out of a kernel for x86, whose header says where its version is, counted from the second
// sector (Documentation/arch/x86/boot.rst, kernel_version).
func kernelRelease(path string) (string, error) {
	const field, sector, limit = 0x20e, 0x200, 256
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the release of a kernel: %w", err)
	}
	if len(content) < field+2 {
		return "", fmt.Errorf("%s is too short for a kernel", path)
	}
	start := sector + int(binary.LittleEndian.Uint16(content[field:]))
	if start >= len(content) {
		return "", fmt.Errorf("%s does not say which release it is", path)
	}
	text, _, ended := bytes.Cut(content[start:min(len(content), start+limit)], []byte{0})
	release, _, _ := strings.Cut(string(text), " ")
	if !ended || release == "" {
		return "", errors.New(path + " does not say which release it is")
	}
	return release, nil
}
