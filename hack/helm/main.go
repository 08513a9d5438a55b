// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command helm makes the templates of the Helm chart from the overlays of config/, so that there is no second truth: an object that is
// the same under all values is a template without conditions, one that is not is there once for each set of values.
//
//	go run ./hack/helm [-source config] [-chart config/helm]
//
// With -output it writes a chart of a release there instead: -version and -image say what it is.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	var r release
	var source, chart, output string
	flag.StringVar(&source, "source", "config", "The folder of the manifests.")
	flag.StringVar(&chart, "chart", "config/helm", "The folder of the chart.")
	flag.StringVar(&output, "output", "", "The folder in which the chart of a release is written; empty generates the templates in the chart.")
	flag.StringVar(&r.version, "version", "", "The version of the release without a v; as in Chart.yaml when empty.")
	flag.StringVar(&r.image, "image", "", "The image with tag or digest; as in values.yaml when empty.")
	flag.StringVar(&r.trafficImage, "traffic-image", "", "The image that measures over the network, likewise.")
	flag.Parse()
	if err := run(r, source, chart, output); err != nil {
		fmt.Fprintln(os.Stderr, "helm:", err)
		os.Exit(1)
	}
}

func run(r release, source, chart, output string) error {
	if output != "" {
		if err := copyChart(r, chart, output); err != nil {
			return err
		}
		chart = output
	}
	templates, err := generate(source)
	if err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(chart, "templates", generated+"*"))
	if err != nil {
		return fmt.Errorf("looking for old templates: %w", err)
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("removing an old template: %w", err)
		}
	}
	for name, text := range templates {
		if err := write(filepath.Join(chart, "templates", generated+name), text); err != nil {
			return err
		}
	}
	return nil
}

// release is what differs from release to release.
type release struct {
	version, image, trafficImage string
}

// copyChart copies what is written by hand, as a release has it.
func copyChart(r release, chart, output string) error {
	for _, name := range []string{"Chart.yaml", "values.yaml", "values.schema.json", "templates/_helpers.tpl", "templates/NOTES.txt"} {
		content, err := os.ReadFile(filepath.Join(chart, name))
		if err != nil {
			return fmt.Errorf("reading the chart: %w", err)
		}
		if err := write(filepath.Join(output, name), r.apply(name, string(content))); err != nil {
			return err
		}
	}
	return nil
}

// apply puts version and image into a file of the chart.
func (r release) apply(name, text string) string {
	lines := strings.Split(text, "\n")
	replacements := r.replacements(name)
	for i, line := range lines {
		key, _, _ := strings.Cut(line, ":")
		if value, ok := replacements[key]; ok {
			lines[i] = key + ": " + value
		}
	}
	return strings.Join(lines, "\n")
}

// replacements are the values of keys, with their indentation, in a file of the chart.
func (r release) replacements(name string) map[string]string {
	switch {
	case name == "Chart.yaml" && r.version != "":
		return map[string]string{"version": r.version, "appVersion": `"` + r.version + `"`}
	case name == "values.yaml" && r.image != "":
		repository, digest, _ := strings.Cut(r.image, "@")
		tag := ""
		if colon := strings.LastIndex(repository, ":"); colon > strings.LastIndex(repository, "/") {
			repository, tag = repository[:colon], repository[colon+1:]
		}
		values := map[string]string{"  repository": repository, "  tag": `"` + tag + `"`, "  digest": `"` + digest + `"`}
		if r.trafficImage != "" {
			values["trafficImage"] = `"` + r.trafficImage + `"`
		}
		return values
	}
	return nil
}

func write(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // A part of the source tree.
		return fmt.Errorf("writing the chart: %w", err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil { //nolint:gosec // A part of the source tree.
		return fmt.Errorf("writing the chart: %w", err)
	}
	return nil
}
