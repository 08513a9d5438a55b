// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

const (
	krewFile    = "lowlatency.krew.yaml"
	krewVersion = "krew.googlecontainertools.github.com/v1alpha2"
	// krewName is the plugin's name in krew's index, where the manifest's file is named after it.
	krewName = "lowlatency"
)

// krewManifest is what krew reads of a plugin (pkg/index/types.go there).
type krewManifest struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Spec       struct {
		Version          string         `json:"version"`
		ShortDescription string         `json:"shortDescription"`
		Description      string         `json:"description,omitempty"`
		Caveats          string         `json:"caveats,omitempty"`
		Homepage         string         `json:"homepage,omitempty"`
		Platforms        []krewPlatform `json:"platforms"`
	} `json:"spec"`
}

// krewPlatform is an archive, and the machines that it is for.
type krewPlatform struct {
	URI      string                `json:"uri"`
	SHA256   string                `json:"sha256"`
	Bin      string                `json:"bin"`
	Files    []krewCopy            `json:"files,omitempty"`
	Selector *metav1.LabelSelector `json:"selector"`
}

// krewCopy is a file of an archive, and where krew puts it.
type krewCopy struct {
	From string `json:"from"`
	To   string `json:"to"`
}

var krewSum = regexp.MustCompile(`^[a-f0-9]{64}$`)

// checkKrew reports what krew would refuse in the manifest of a folder, or would not find in its archives. The rules are those of krew's
// own judge of manifests, cmd/validate-krew-manifest with internal/index/validation.
func checkKrew(folder string) []error {
	content, err := os.ReadFile(filepath.Join(folder, krewFile))
	if err != nil {
		return []error{fmt.Errorf("the manifest of krew: %w", err)}
	}
	var manifest krewManifest
	if err := yaml.UnmarshalStrict(content, &manifest); err != nil {
		return []error{fmt.Errorf("%s: %w", krewFile, err)}
	}
	failures := manifest.check()
	for i := range manifest.Spec.Platforms {
		failures = append(failures, manifest.Spec.Platforms[i].check(folder)...)
	}
	for i, failure := range failures {
		failures[i] = fmt.Errorf("%s: %w", krewFile, failure)
	}
	return failures
}

// check reports what is wrong but for single platforms.
func (m *krewManifest) check() []error {
	var failures []error
	must := func(holds bool, format string, values ...any) {
		if !holds {
			failures = append(failures, fmt.Errorf(format, values...))
		}
	}
	version, hasV := strings.CutPrefix(m.Spec.Version, "v")
	must(m.APIVersion == krewVersion, "apiVersion is %q, krew reads %s", m.APIVersion, krewVersion)
	must(m.Kind == "Plugin", "kind is %q, krew reads Plugin", m.Kind)
	must(m.Metadata.Name == krewName, "the plugin's name is %q, in the index it is %s", m.Metadata.Name, krewName)
	must(hasV && versions.MatchString(version), "version %q is not a v with three numbers", m.Spec.Version)
	must(m.Spec.ShortDescription != "" && !strings.ContainsAny(m.Spec.ShortDescription, "\r\n"), "the short description is not one line")
	must(len(m.Spec.Platforms) > 0, "there is no platform")
	for _, machine := range krewMachines() {
		count := 0
		for i := range m.Spec.Platforms {
			if m.Spec.Platforms[i].isFor(machine) {
				count++
			}
		}
		must(count <= 1, "%d platforms are for %s", count, machine)
	}
	return failures
}

// krewMachines are the systems that krew installs on, as its judge lists them.
func krewMachines() []labels.Set {
	var all []labels.Set
	for system, architectures := range map[string][]string{
		"windows": {"386", "amd64", "arm64"}, "linux": {"386", "amd64", "arm", "arm64", "ppc64le"}, "darwin": {"386", "amd64", "arm64"},
	} {
		for _, architecture := range architectures {
			all = append(all, labels.Set{"os": system, "arch": architecture})
		}
	}
	return all
}

// isFor reports whether krew takes this archive on a machine.
func (p *krewPlatform) isFor(machine labels.Set) bool {
	selector, err := metav1.LabelSelectorAsSelector(p.Selector)
	return err == nil && selector.Matches(machine)
}

// check reports what is wrong with one archive.
func (p *krewPlatform) check(folder string) []error {
	failures := p.checkSelector()
	name := path.Base(p.URI)
	content, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		return append(failures, fmt.Errorf("uri %q names no archive of the release: %w", p.URI, err))
	}
	sum := sha256.Sum256(content)
	if !krewSum.MatchString(p.SHA256) || p.SHA256 != hex.EncodeToString(sum[:]) {
		failures = append(failures, fmt.Errorf("sha256 %q is not that of %s", p.SHA256, name))
	}
	packed, err := filesIn(content)
	if err != nil {
		return append(failures, fmt.Errorf("reading %s: %w", name, err))
	}
	return append(failures, p.checkFiles(name, packed)...)
}

// checkSelector reports a selector that krew refuses or that no machine matches.
func (p *krewPlatform) checkSelector() []error {
	if p.Selector == nil || len(p.Selector.MatchLabels)+len(p.Selector.MatchExpressions) == 0 {
		return []error{fmt.Errorf("%q has no selector", p.URI)}
	}
	var failures []error
	for _, key := range p.selected() {
		if key != "os" && key != "arch" {
			failures = append(failures, fmt.Errorf("%q is selected by %q, krew knows os and arch", p.URI, key))
		}
	}
	if !slices.ContainsFunc(krewMachines(), p.isFor) {
		failures = append(failures, fmt.Errorf("%q is for no machine that krew knows", p.URI))
	}
	return failures
}

// selected are the keys of the selector.
func (p *krewPlatform) selected() []string {
	keys := make([]string, 0, len(p.Selector.MatchLabels)+len(p.Selector.MatchExpressions))
	for key := range p.Selector.MatchLabels {
		keys = append(keys, key)
	}
	for _, one := range p.Selector.MatchExpressions {
		keys = append(keys, one.Key)
	}
	return keys
}

// checkFiles reports files that krew would not find in an archive, or that it has to install and does not.
func (p *krewPlatform) checkFiles(name string, packed []string) []error {
	var failures []error
	installed := make([]string, 0, len(p.Files))
	for _, file := range p.Files {
		if file.To == "" || !slices.Contains(packed, file.From) {
			failures = append(failures, fmt.Errorf("%s has no file %q that goes to %q", name, file.From, file.To))
		}
		installed = append(installed, path.Join(file.To, path.Base(file.From)))
	}
	for _, needed := range []string{p.Bin, "LICENSE", kubectlCompletion} {
		if needed == "" || !slices.Contains(installed, needed) {
			failures = append(failures, fmt.Errorf("of %s krew does not install %q", name, needed))
		}
	}
	return failures
}

// filesIn are the names of the files in an archive.
func filesIn(content []byte) ([]string, error) {
	entries, err := unpack(content)
	names := make([]string, 0, len(entries))
	for _, one := range entries {
		names = append(names, one.name)
	}
	return names, err
}
