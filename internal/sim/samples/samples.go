// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package samples finds the objects that the repository shows to users: those of config/samples, in folders by job, and
// those of docs/examples. Tests and tools look at all of them.
package samples

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

const (
	kustomization = "kustomization.yaml"
	profile       = "profile.yaml"
)

// Files are the YAML files below a folder of the repository, in the order of their paths, each with the folder's name before it. A
// kustomization.yaml is left out: kustomize reads it, and no API server. A folder without a file is an error.
func Files(folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(file) == ".yaml" && entry.Name() != kustomization {
			files = append(files, file)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no YAML file is below %s", folder)
	}
	slices.Sort(files)
	return files, err
}

// Jobs are the folders of config/samples below a tree of the repository that have a profile, each with the path of the tree before
// it: the sets that are applied as one.
func Jobs(tree string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(tree, "config/samples/*", profile))
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("no folder of config/samples below %s has a %s", tree, profile)
	}
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	return found, err
}

// ProfileFor is the file of the profile whose nodes the pool of a sample takes NICs of: the one beside it, or that of the job in whose
// folder the pool's own folder is. It is an error when there is none.
func ProfileFor(pool string) (string, error) {
	beside := filepath.Dir(pool)
	for _, folder := range []string{beside, filepath.Dir(beside)} {
		file := filepath.Join(folder, profile)
		switch _, err := os.Stat(file); {
		case err == nil:
			return file, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
	}
	return "", fmt.Errorf("no %s is beside %s", profile, pool)
}
