// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// ContainerImage is a container image of one static program, which needs neither a registry nor a base image.
type ContainerImage struct {
	// Name with its tag, as pods ask for it.
	Name string
	// Program is the file on this machine; the image has it at /<its name> as its entry point.
	Program string
	// Others are further programs, which the image has at /<their names>.
	Others []string
}

// Write writes the image as an archive in the format of "docker save", which ctr imports (moby's image/tarexport):
// a configuration, one layer, and a manifest that names them.
func (i ContainerImage) Write(path string) (err error) {
	var files []entry
	for _, program := range append([]string{i.Program}, i.Others...) {
		content, err := os.ReadFile(program)
		if err != nil {
			return fmt.Errorf("making container image %s: %w", i.Name, err)
		}
		files = append(files, entry{filepath.Base(program), content, 0o755})
	}
	layer, err := archive(files...)
	if err != nil {
		return fmt.Errorf("making container image %s: %w", i.Name, err)
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config":  map[string]any{"Entrypoint": []string{"/" + files[0].name}},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(layer)}},
		"history": []map[string]string{{"created_by": "test/lab"}},
	})
	if err != nil {
		return fmt.Errorf("making container image %s: %w", i.Name, err)
	}
	manifest, err := json.Marshal([]map[string]any{{
		"Config": digest(config) + ".json", "RepoTags": []string{i.Name}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return fmt.Errorf("making container image %s: %w", i.Name, err)
	}
	image, err := archive(entry{digest(config) + ".json", config, 0o644}, entry{"layer.tar", layer, 0o644},
		entry{"manifest.json", manifest, 0o644})
	if err == nil {
		err = os.WriteFile(path, image, 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing container image %s: %w", i.Name, err)
	}
	return nil
}

// entry is a file in an archive.
type entry struct {
	name    string
	content []byte
	mode    int64
}

// archive is the same for the same entries: it holds no times and no owners.
func archive(entries ...entry) ([]byte, error) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, e := range entries {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.content))}
		if err := writer.WriteHeader(header); err != nil {
			return nil, errors.Join(err, writer.Close())
		}
		if _, err := writer.Write(e.content); err != nil {
			return nil, errors.Join(err, writer.Close())
		}
	}
	// Closing writes the end of the archive, which must come before its bytes are taken.
	err := writer.Close()
	return buffer.Bytes(), err
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
