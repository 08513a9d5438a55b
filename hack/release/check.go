// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// checkFolder reports what a release lacks, which files are not what SHA256SUMS says, and what krew would refuse.
func checkFolder(folder string) error {
	stated, err := statedSums(folder)
	if err != nil {
		return err
	}
	actual, err := sums(folder, sumsFile)
	if err != nil {
		return err
	}
	failures := compareSums(stated, actual)
	for _, pattern := range contents() {
		if found, err := filepath.Glob(filepath.Join(folder, pattern)); err != nil || len(found) == 0 {
			failures = append(failures, fmt.Errorf("there is no %s", pattern))
		}
	}
	return errors.Join(append(failures, checkKrew(folder)...)...)
}

// statedSums are the files with their sums as SHA256SUMS has them.
func statedSums(folder string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(folder, sumsFile))
	if err != nil {
		return nil, fmt.Errorf("the checksums: %w", err)
	}
	stated := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if sum, name, found := strings.Cut(strings.TrimSpace(line), "  "); found {
			stated[name] = sum
		}
	}
	return stated, nil
}

// compareSums lists files that are missing, changed or not stated.
func compareSums(stated, actual map[string]string) []error {
	failures := make([]error, 0, len(stated))
	for _, name := range sorted(stated) {
		switch actual[name] {
		case stated[name]:
		case "":
			failures = append(failures, fmt.Errorf("%s is missing", name))
		default:
			failures = append(failures, fmt.Errorf("%s is not what %s says", name, sumsFile))
		}
	}
	for _, name := range sorted(actual) {
		if stated[name] == "" {
			failures = append(failures, fmt.Errorf("%s has no checksum", name))
		}
	}
	return failures
}

// contents are patterns for the files of every release.
func contents() []string {
	all := make([]string, 0, 32)
	all = append(all,
		"image.tar", "image-amd64.spdx.json", "image-arm64.spdx.json", "image-digest.txt",
		"traffic-image.tar", "traffic-image-amd64.spdx.json", "traffic-image-arm64.spdx.json", "traffic-image-digest.txt",
		"install.yaml", "install-repair.yaml", "install-kubernetes.yaml", "install-kubernetes-monitoring.yaml", "crds.yaml",
		"dashboard-console.yaml", "dashboard-grafana.yaml",
		"bundle-*.tar.gz", "catalog-*.tar.gz", "lowlatency-operator-*.tgz", mustGather+"-*.tar.gz", krewFile, "RELEASE_NOTES.md", provenanceFile)
	for _, one := range platforms() {
		all = append(all, one.archive(plugin, "*"), one.materials(plugin))
	}
	for _, one := range guardPlatforms() {
		all = append(all, one.archive(guard, "*"), one.materials(guard))
	}
	return all
}
