// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestChartIsGenerated: what is in the tree is what the overlays say.
func TestChartIsGenerated(t *testing.T) {
	templates, err := generate("../../config")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	paths, err := filepath.Glob("../../config/helm/templates/" + generated + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimPrefix(filepath.Base(path), generated)] = string(content)
	}
	if diff := cmp.Diff(templates, found); diff != "" {
		t.Errorf("run make helm: templates (-config +config/helm):\n%s", diff)
	}
}

func TestRelease(t *testing.T) {
	folder := t.TempDir()
	image := "registry.example.com:5000/team/operator@sha256:" + strings.Repeat("0a", 32)
	if err := run(release{version: "1.2.3", image: image}, "../../config", "../../config/helm", folder); err != nil {
		t.Fatal(err)
	}
	for name, lines := range map[string][]string{
		"Chart.yaml":  {"version: 1.2.3", `appVersion: "1.2.3"`},
		"values.yaml": {"  repository: registry.example.com:5000/team/operator", `  tag: ""`, "  digest: \"sha256:" + strings.Repeat("0a", 32) + `"`},
	} {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			if !strings.Contains(string(content), line+"\n") {
				t.Errorf("%s has no line %q:\n%s", name, line, content)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "templates", generated+"deployment.yaml")); err != nil {
		t.Error(err)
	}
}

// TestVersions: chart and bundle are of one version.
func TestVersions(t *testing.T) {
	chart, err := os.ReadFile("../../config/helm/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := os.ReadFile("../../config/manifests/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(bundle), "\n  version: ")
	if !found {
		t.Fatal("config/manifests/base.yaml has no version")
	}
	version, _, _ := strings.Cut(rest, "\n")
	if !strings.Contains(string(chart), "\nversion: "+version+"\n") || !strings.Contains(string(chart), "\nappVersion: \""+version+"\"\n") {
		t.Errorf("the bundle is of version %s, the chart is\n%s", version, chart)
	}
}
