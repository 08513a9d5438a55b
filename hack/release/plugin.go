// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

const (
	plugin = "kubectl-lowlatency"
	// kubectlCompletion is the program by which kubectl completes the plugin's words.
	kubectlCompletion = "kubectl_complete-lowlatency"
)

// platform is one that the plugin of kubectl runs on.
type platform struct{ system, architecture string }

// platforms are those with an archive of the plugin.
func platforms() []platform {
	return []platform{{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}}
}

// archive is the name of a program's archive.
func (p platform) archive(program, version string) string {
	return fmt.Sprintf("%s-%s-%s-%s.tar.gz", program, version, p.system, p.architecture)
}

// materials is the name of a program's bill of materials.
func (p platform) materials(program string) string {
	return fmt.Sprintf("%s-%s-%s.spdx.json", program, p.system, p.architecture)
}

// makePlugins builds the plugin for every platform, and the manifest by which krew installs it.
func (r *release) makePlugins(ctx context.Context) error {
	scratch, err := os.MkdirTemp("", "release-")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // Only temporary files are left.
	shared, err := completions(ctx, scratch)
	if err != nil {
		return err
	}
	sums := map[platform]string{}
	for _, one := range platforms() {
		if sums[one], err = r.makePlugin(ctx, one, scratch, shared); err != nil {
			return fmt.Errorf("%s/%s: %w", one.system, one.architecture, err)
		}
	}
	return r.writeKrew(sums)
}

// writeKrew writes the manifest by which krew installs the plugin.
func (r *release) writeKrew(sums map[platform]string) error {
	content, err := yaml.Marshal(r.krew(sums))
	if err != nil {
		return fmt.Errorf("writing the manifest of krew: %w", err)
	}
	return os.WriteFile(r.path(krewFile), content, 0o644) //nolint:gosec // Everybody may read it.
}

// completions are the files that all archives have: the licence and completion for shells and for kubectl.
func completions(ctx context.Context, scratch string) ([]entry, error) {
	host := filepath.Join(scratch, "host")
	if _, err := run(ctx, []string{"CGO_ENABLED=0", "GOFLAGS="}, "go", "build", "-trimpath", "-o", host, "./cmd/"+plugin); err != nil {
		return nil, err
	}
	licence, err := os.ReadFile("LICENSE")
	if err != nil {
		return nil, fmt.Errorf("packing the plugin: %w", err)
	}
	completion, err := os.ReadFile("hack/" + kubectlCompletion)
	if err != nil {
		return nil, fmt.Errorf("packing the plugin: %w", err)
	}
	entries := []entry{{"LICENSE", licence, 0o644}, {kubectlCompletion, completion, 0o755}}
	for _, shell := range []string{"bash", "fish", "zsh"} {
		text, err := run(ctx, nil, host, "completion", shell)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{"completion/" + plugin + "." + shell, []byte(text), 0o644})
	}
	return entries, nil
}

// makePlugin builds one archive with its bill of materials, and returns the sum of the archive.
func (r *release) makePlugin(ctx context.Context, on platform, scratch string, shared []entry) (string, error) {
	entries, err := r.buildProgram(ctx, plugin, on, filepath.Join(scratch, on.system+"-"+on.architecture), r.path(on.materials(plugin)))
	if err != nil {
		return "", err
	}
	name := on.archive(plugin, r.version)
	packed, err := archive(name, append(entries, shared...), r.source.committed)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(packed)
	return hex.EncodeToString(sum[:]), os.WriteFile(r.path(name), packed, 0o644) //nolint:gosec // Everybody may read it.
}

// krew is the manifest by which krew installs the plugin.
func (r *release) krew(sums map[platform]string) map[string]any {
	all := make([]any, 0, len(sums))
	for _, one := range platforms() {
		names := append(one.programs(plugin), "LICENSE", "THIRD-PARTY", kubectlCompletion)
		files := make([]any, 0, len(names))
		for _, name := range names {
			files = append(files, map[string]any{"from": name, "to": "."})
		}
		all = append(all, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"os": one.system, "arch": one.architecture}},
			"uri":      "https://github.com/lowlatency-dev/lowlatency-operator/releases/download/v" + r.version + "/" + one.archive(plugin, r.version),
			"sha256":   sums[one], "bin": one.programs(plugin)[0], "files": files,
		})
	}
	return map[string]any{
		"apiVersion": krewVersion, "kind": "Plugin",
		"metadata": map[string]any{"name": krewName},
		"spec": map[string]any{
			"version": "v" + r.version, "homepage": "https://github.com/lowlatency-dev/lowlatency-operator",
			"shortDescription": "Plan and prove nodes for low latency",
			"description": "Shows what profiles and pools of the Low Latency Node Operator make of nodes, before and after: topology, plan,\n" +
				"rendered manifests and checks, on a cluster, on snapshots of hosts, or on this machine.\n",
			// krew links the plugin alone into the PATH.
			"caveats": "So that kubectl on Linux or macOS completes the plugin's words, put this program into the PATH, too:\n" +
				"  cp ${KREW_ROOT:-$HOME/.krew}/store/" + krewName + "/v" + r.version + "/" + kubectlCompletion + " ${KREW_ROOT:-$HOME/.krew}/bin/\n",
			"platforms": all,
		},
	}
}
