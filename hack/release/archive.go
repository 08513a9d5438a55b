// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/hack/kustomization"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/installer"
)

// entry is a file of an archive.
type entry struct {
	name    string
	content []byte
	mode    fs.FileMode
}

// archive packs files into a compressed tar. Nothing in it depends on the machine.
func archive(name string, entries []entry, when time.Time) ([]byte, error) {
	var buffer bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("packing %s: %w", name, err)
	}
	packed := tar.NewWriter(compressed)
	for _, one := range entries {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: one.name, Size: int64(len(one.content)), Mode: int64(one.mode), ModTime: when, Format: tar.FormatPAX,
		}
		if err := packed.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", one.name, err)
		}
		if _, err := packed.Write(one.content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", one.name, err)
		}
	}
	if err := packed.Close(); err != nil {
		return nil, fmt.Errorf("packing %s: %w", name, err)
	}
	if err := compressed.Close(); err != nil {
		return nil, fmt.Errorf("packing %s: %w", name, err)
	}
	return buffer.Bytes(), nil
}

// unpack undoes archive.
func unpack(content []byte) ([]entry, error) {
	uncompressed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("uncompressing: %w", err)
	}
	var entries []entry
	for reader := tar.NewReader(uncompressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading a tar: %w", err)
		}
		file, err := io.ReadAll(reader)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", header.Name, err)
		}
		entries = append(entries, entry{header.Name, file, header.FileInfo().Mode().Perm()})
	}
}

// archiveFolder packs a folder under another name into a file of the release.
func (r *release) archiveFolder(name, folder, as string) error {
	var entries []entry
	err := fs.WalkDir(os.DirFS(folder), ".", func(file string, found fs.DirEntry, err error) error {
		if err != nil || found.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(folder, file))
		entries = append(entries, entry{path.Join(as, file), content, 0o644})
		return err
	})
	if err != nil {
		return fmt.Errorf("packing %s: %w", name, err)
	}
	content, err := archive(name, entries, r.source.committed)
	if err != nil {
		return err
	}
	return os.WriteFile(r.path(name), content, 0o644) //nolint:gosec // Everybody may read it.
}

// writeManifest writes what kustomize builds from folders of config, with the image of the release.
func (r *release) writeManifest(name string, overlay kustomization.Overlay) error {
	traffic, _, _ := strings.Cut(installer.SourceTrafficImage, ":")
	overlay.Images = []kustomization.Image{
		{Name: "controller", NewName: r.image, Digest: r.digest}, {Name: traffic, NewName: r.trafficImage, Digest: r.trafficDigest},
	}
	objects, err := kustomization.BuildOverlay("config", overlay)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, object := range objects {
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		text.WriteString("---\n")
		text.Write(content)
	}
	return os.WriteFile(r.path(name), text.Bytes(), 0o644) //nolint:gosec // Everybody may read it.
}
