// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// keys are those of keys.go in the group of the API.
func keys(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("keys.go")
	if err != nil {
		t.Fatal(err)
	}
	matches := regexp.MustCompile(`= GroupName \+ "(/[^"]+)"`).FindAllStringSubmatch(string(text), -1)
	found := make([]string, 0, len(matches))
	for _, match := range matches {
		found = append(found, v1alpha1.GroupName+match[1])
	}
	for _, known := range []string{v1alpha1.LabelProfile, v1alpha1.TaintUnverified, v1alpha1.AnnotationStarted, v1alpha1.Finalizer} {
		if !slices.Contains(found, known) {
			t.Fatalf("%s is not found in keys.go: %q", known, found)
		}
	}
	return found
}

func TestKeysAreQualifiedNames(t *testing.T) {
	for _, key := range keys(t) {
		for _, problem := range validation.IsQualifiedName(key) {
			t.Errorf("%s: %s", key, problem)
		}
	}
}

// files calls a function with the text of each file of a folder of the project that ends in a suffix.
func files(t *testing.T, folder, suffix string, visit func(name string, text []byte)) {
	t.Helper()
	visited := 0
	err := filepath.WalkDir(filepath.Join("..", "..", folder), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, suffix) {
			return err
		}
		text, err := os.ReadFile(name)
		visited++
		visit(name, text)
		return err
	})
	if err != nil || visited == 0 {
		t.Fatalf("%s: %d files (%v)", folder, visited, err)
	}
}

// TestCodeUsesTheListOfKeys finds keys that code spells out. Tests may: they notice when a key becomes another.
func TestCodeUsesTheListOfKeys(t *testing.T) {
	spelled := regexp.MustCompile(`(^|[^-])\blowlatency\.dev/|^.app\.kubernetes\.io/(name|component|part-of|managed-by)`)
	for _, folder := range []string{"api", "internal", "controllers", "cmd"} {
		files(t, folder, ".go", func(name string, text []byte) {
			if strings.HasSuffix(name, "_test.go") || filepath.Base(name) == "keys.go" {
				return
			}
			for _, literal := range literals(name, text) {
				if spelled.MatchString(literal) {
					t.Errorf("%s spells %s out; use the constant of api/v1alpha1/keys.go", name, literal)
				}
			}
		})
	}
}

// literals returns the string literals of a Go file.
func literals(name string, text []byte) []string {
	set := token.NewFileSet()
	var s scanner.Scanner
	s.Init(set.AddFile(name, -1, len(text)), text, nil, 0)
	var found []string
	for {
		_, kind, literal := s.Scan()
		if kind == token.EOF {
			return found
		}
		if kind == token.STRING {
			found = append(found, literal)
		}
	}
}

// TestManifestsUseTheListOfKeys finds keys in manifests that no constant has. A resource is named by a user: in a pool, and by pods as the pool
// does.
func TestManifestsUseTheListOfKeys(t *testing.T) {
	known := append(keys(t), v1alpha1.GroupVersion.String())
	key := regexp.MustCompile(`\blowlatency\.dev/[A-Za-z0-9._-]+`)
	resource := regexp.MustCompile(`(?m)^  resourceName: (\S+)$`)
	files(t, "config/samples", ".yaml", func(_ string, text []byte) {
		for _, found := range resource.FindAllStringSubmatch(string(text), -1) {
			known = append(known, found[1])
		}
	})
	files(t, "config", ".yaml", func(name string, text []byte) {
		// The chart has a copy of them.
		if strings.HasPrefix(name, crdFolder) || strings.HasSuffix(name, "zz_generated.customresourcedefinition.yaml") {
			return
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "resourceName") || strings.Contains(line, "limits:") {
				continue
			}
			for _, found := range key.FindAllString(line, -1) {
				if !slices.Contains(known, found) {
					t.Errorf("%s has %s, which is not in api/v1alpha1/keys.go", name, found)
				}
			}
		}
	})
}
