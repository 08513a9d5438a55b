// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package olm

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestThePreviousBundleIsOfThePreviousVersion: what upgrades are judged by was made from the commit that the Makefile upgrades from, and nobody has
// edited it since. That the commit's source makes these bytes, make olm sees, which has the source.
func TestThePreviousBundleIsOfThePreviousVersion(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	previous := regexp.MustCompile(`(?m)^PREVIOUS \?= ([0-9a-f]{40}|v\S+)$`).FindSubmatch(makefile)
	if previous == nil {
		t.Fatal("the Makefile does not say what PREVIOUS is")
	}
	kept, err := os.ReadFile(previousFolder + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(kept)), "\n")
	if diff := cmp.Diff(append([]string{"# Made by make bundle-fixture from this commit.", string(previous[1])}, sums(t, previousFolder)...), lines); diff != "" {
		t.Errorf("make bundle-fixture has made something else (-is here +was made):\n%s", diff)
	}
}

// sums are the files of a folder as sha256sum prints them, sorted by name.
func sums(t *testing.T, folder string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		all = append(all, fmt.Sprintf("%x  ./%s", sha256.Sum256(content), name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	return all
}
