// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	guard = "lowlatency-guard"
	// traffic is the C program that the plugin starts to measure over the network. It finds it beside itself.
	traffic = "lowlatency-traffic"
)

// programs are the files of programs in an archive with one of them, which comes first.
func (p platform) programs(name string) []string {
	switch {
	case p.system == "windows":
		return []string{name + ".exe"}
	case p.system == "linux" && name == plugin:
		return []string{name, traffic}
	}
	return []string{name}
}

// guardPlatforms are those of hosts.
func guardPlatforms() []platform { return []platform{{"linux", "amd64"}, {"linux", "arm64"}} }

// makeGuards builds the guard for hosts that no operator brings it to; for the others it is in the operator's image.
func (r *release) makeGuards(ctx context.Context) error {
	scratch, err := os.MkdirTemp("", "release-")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // Only temporary files are left.
	licence, err := os.ReadFile("LICENSE")
	if err != nil {
		return fmt.Errorf("packing the guard: %w", err)
	}
	for _, on := range guardPlatforms() {
		entries, err := r.buildProgram(ctx, guard, on, filepath.Join(scratch, on.architecture), r.path(on.materials(guard)))
		if err != nil {
			return fmt.Errorf("%s/%s: %w", on.system, on.architecture, err)
		}
		name := on.archive(guard, r.version)
		packed, err := archive(name, append(entries, entry{"LICENSE", licence, 0o644}), r.source.committed)
		if err != nil {
			return err
		}
		if err := os.WriteFile(r.path(name), packed, 0o644); err != nil { //nolint:gosec // Everybody may read it.
			return fmt.Errorf("packing the guard: %w", err)
		}
	}
	return nil
}

// buildProgram builds a program into a folder, with those that belong beside it, and writes their bill of materials. It returns the files for
// an archive: the programs, and the licences of their parts.
func (r *release) buildProgram(ctx context.Context, name string, on platform, folder, materials string) ([]entry, error) {
	files := on.programs(name)
	built, texts := filepath.Join(folder, files[0]), filepath.Join(folder, "THIRD-PARTY")
	environment := []string{"CGO_ENABLED=0", "GOFLAGS=", "GOOS=" + on.system, "GOARCH=" + on.architecture}
	if _, err := run(ctx, environment, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.release="+r.source.stated(r.version),
		"-o", built, "./cmd/"+name); err != nil {
		return nil, err
	}
	here, err := filepath.Abs(".")
	if err != nil {
		return nil, fmt.Errorf("finding the source: %w", err)
	}
	if materials, err = filepath.Abs(materials); err != nil {
		return nil, fmt.Errorf("finding the folder: %w", err)
	}
	arguments := []string{"run", "-C", "hack/image", ".", "-source", here, "-version", "v" + r.version,
		"-platforms", on.system + "/" + on.architecture, "-program", built, "-materials", materials, "-licences", texts}
	if len(files) > 1 {
		arguments = append(arguments, "-beside", filepath.Join(folder, files[1]))
	}
	if _, err := run(ctx, nil, "go", arguments...); err != nil {
		return nil, err
	}
	entries := make([]entry, 0, len(files)+1)
	for _, file := range append(files, filepath.Base(texts)) {
		content, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
		mode := fs.FileMode(0o755)
		if file == filepath.Base(texts) {
			mode = 0o644
		}
		entries = append(entries, entry{file, content, mode})
	}
	return entries, nil
}
