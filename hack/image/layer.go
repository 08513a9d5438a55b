// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// file is a file of a layer.
type file struct {
	// path in the image, without a slash before it.
	path string
	// from is the file on this machine.
	from string
	mode int64
	// link is what a symbolic link points to; empty for a file.
	link string
}

// layerOf makes a layer of the files, in their order and with their folders, owned by root, all of one time.
func layerOf(files []file, when time.Time) (v1.Layer, error) {
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	known := map[string]bool{".": true}
	for _, f := range files {
		if err := addFolders(archive, filepath.Dir(f.path), when, known); err != nil {
			return nil, err
		}
		if err := addFile(archive, f, when); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(9), tarball.WithCompressedCaching)
}

func addFolders(archive *tar.Writer, folder string, when time.Time, known map[string]bool) error {
	if known[folder] {
		return nil
	}
	if err := addFolders(archive, filepath.Dir(folder), when, known); err != nil {
		return err
	}
	known[folder] = true
	return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755, ModTime: when})
}

func addFile(archive *tar.Writer, f file, when time.Time) error {
	if f.link != "" {
		return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: f.path, Linkname: f.link, Mode: 0o777, ModTime: when})
	}
	content, err := os.ReadFile(f.from)
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: f.path, Mode: f.mode, Size: int64(len(content)), ModTime: when}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = archive.Write(content)
	return err
}
