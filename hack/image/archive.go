// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"archive/tar"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// nameKey is the annotation with the whole name of an image in an archive.
const nameKey = "io.containerd.image.name"

// writeArchive writes an OCI image layout (image-spec, image-layout.md) as a tar archive. Its name is in the annotations
// that containerd and podman read. Its bytes depend on the image alone.
func writeArchive(path string, reference name.Tag, index v1.ImageIndex) error {
	folder, err := os.MkdirTemp(filepath.Dir(path), ".layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // Only temporary files are left.
	files, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	err = files.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": reference.TagStr(), nameKey: reference.Name(),
	}))
	if err != nil {
		return err
	}
	return packFolder(path, folder)
}

// packFolder packs a folder's files, in ascending order of their names, and puts the archive in place when it is whole.
func packFolder(path, folder string) (err error) {
	out, err := os.CreateTemp(filepath.Dir(path), ".archive-")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name()) //nolint:errcheck // It is gone when all went well.
	archive := tar.NewWriter(out)
	err = filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return packFile(archive, folder, file)
	})
	for _, finish := range []func() error{archive.Close, func() error { return out.Chmod(0o644) }, out.Close} {
		if failure := finish(); err == nil {
			err = failure
		}
	}
	if err != nil {
		return err
	}
	return os.Rename(out.Name(), path)
}

func packFile(archive *tar.Writer, folder, path string) error {
	relative, err := filepath.Rel(folder, path)
	if err != nil {
		return err
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // It was only read.
	info, err := in.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: filepath.ToSlash(relative), Mode: 0o644, Size: info.Size(), ModTime: time.Unix(0, 0)}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(archive, in)
	return err
}
