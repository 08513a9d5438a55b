// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	sumsFile       = "SHA256SUMS"
	provenanceFile = "provenance.intoto.json"
	signatureEnd   = ".sig"
)

// signedFiles are those with a signature: between them they name every other file by its sum.
func signedFiles() []string { return []string{sumsFile, provenanceFile} }

// sums are the files of a folder with their sums in hexadecimal, but those that hold sums or signatures.
func sums(folder string, without ...string) (map[string]string, error) {
	found, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("listing the release: %w", err)
	}
	all := map[string]string{}
	for _, file := range found {
		if slices.Contains(without, file.Name()) || strings.HasSuffix(file.Name(), signatureEnd) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the release: %w", err)
		}
		sum := sha256.Sum256(content)
		all[file.Name()] = hex.EncodeToString(sum[:])
	}
	return all, nil
}

// sorted are the names of files.
func sorted(all map[string]string) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// makeSums writes what sha256sum --check reads.
func (r *release) makeSums(context.Context) error {
	all, err := sums(r.output, sumsFile)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, name := range sorted(all) {
		text.WriteString(all[name] + "  " + name + "\n")
	}
	return os.WriteFile(r.path(sumsFile), []byte(text.String()), 0o644) //nolint:gosec // Everybody may read it.
}

// makeProvenance says which commit and compiler the files come from: an in-toto statement with SLSA's predicate of version 1.
func (r *release) makeProvenance(context.Context) error {
	all, err := sums(r.output, sumsFile, provenanceFile)
	if err != nil {
		return err
	}
	var subjects []any
	for _, image := range []struct{ name, digest string }{{r.image, r.digest}, {r.trafficImage, r.trafficDigest}} {
		_, hexadecimal, _ := strings.Cut(image.digest, ":")
		subjects = append(subjects, map[string]any{"name": image.name, "digest": map[string]string{"sha256": hexadecimal}})
	}
	for _, name := range sorted(all) {
		subjects = append(subjects, map[string]any{"name": name, "digest": map[string]string{"sha256": all[name]}})
	}
	repository := "git+https://github.com/lowlatency-dev/lowlatency-operator"
	statement := map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "predicateType": "https://slsa.dev/provenance/v1", "subject": subjects,
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":          "https://github.com/lowlatency-dev/lowlatency-operator/blob/main/docs/release.md",
				"externalParameters": map[string]any{"version": r.version, "image": r.image, "trafficImage": r.trafficImage, "modified": r.source.modified},
				"resolvedDependencies": []any{
					map[string]any{"uri": repository, "digest": map[string]string{"gitCommit": r.source.revision}},
					map[string]any{"name": "go", "annotations": map[string]string{"version": r.source.compiler}},
					map[string]any{"name": "gcc", "annotations": map[string]string{"version": r.source.compilerC}},
				},
			},
			"runDetails": map[string]any{
				"builder":  map[string]any{"id": repository + "#hack/release"},
				"metadata": map[string]any{"startedOn": r.source.committed.Format(time.RFC3339)},
			},
		},
	}
	content, err := json.MarshalIndent(statement, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the provenance: %w", err)
	}
	return os.WriteFile(r.path(provenanceFile), append(content, '\n'), 0o644) //nolint:gosec // Everybody may read it.
}

// sign writes signatures as "cosign sign-blob --key" does: ECDSA over the SHA-256 of the file, in base64. Without a key it does nothing.
func (r *release) sign(ctx context.Context) error {
	if r.key == "" {
		return nil
	}
	key, err := filepath.Abs(r.key)
	if err != nil {
		return fmt.Errorf("finding the key: %w", err)
	}
	files := make([]string, 0, len(signedFiles()))
	for _, name := range signedFiles() {
		file, err := filepath.Abs(r.path(name))
		if err != nil {
			return fmt.Errorf("finding the folder: %w", err)
		}
		files = append(files, file)
	}
	_, err = run(ctx, nil, "go", "run", "-C", "hack/image", ".", "-key", key, "-sign-files", strings.Join(files, ","))
	return err
}
