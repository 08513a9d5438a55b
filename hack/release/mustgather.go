// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
)

// mustGather is the folder of its archive.
const mustGather = "must-gather"

// makeMustGather packs what an image for oc adm must-gather is built of. A release has no such image: its base is that of the cluster's own
// release of OpenShift, which only the administrator can name.
func (r *release) makeMustGather(context.Context) error {
	var entries []entry
	for _, one := range []struct {
		file, as string
		mode     fs.FileMode
	}{
		{"LICENSE", "LICENSE", 0o644}, {"config/must-gather/release.Dockerfile", "Dockerfile", 0o644}, {"config/must-gather/gather", "gather", 0o755},
	} {
		content, err := os.ReadFile(one.file)
		if err != nil {
			return fmt.Errorf("packing: %w", err)
		}
		entries = append(entries, entry{one.as, content, one.mode})
	}
	for _, on := range platforms() {
		if on.system != "linux" {
			continue
		}
		programs, err := r.forMustGather(on)
		if err != nil {
			return fmt.Errorf("%s: %w", on.archive(plugin, r.version), err)
		}
		entries = append(entries, programs...)
	}
	folder := mustGather + "-" + r.version
	for i := range entries {
		entries[i].name = path.Join(folder, entries[i].name)
	}
	content, err := archive(folder+".tar.gz", entries, r.source.committed)
	if err != nil {
		return err
	}
	return os.WriteFile(r.path(folder+".tar.gz"), content, 0o644) //nolint:gosec // Everybody may read it.
}

// forMustGather are the files for a platform, from the archive of the plugin: the same program that administrators run themselves.
func (r *release) forMustGather(on platform) ([]entry, error) {
	packed, err := os.ReadFile(r.path(on.archive(plugin, r.version)))
	if err != nil {
		return nil, fmt.Errorf("reading the archive: %w", err)
	}
	all, err := unpack(packed)
	if err != nil {
		return nil, fmt.Errorf("unpacking it: %w", err)
	}
	wanted := []string{plugin, "THIRD-PARTY"}
	found := slices.DeleteFunc(all, func(one entry) bool { return !slices.Contains(wanted, one.name) })
	if len(found) != len(wanted) {
		return nil, fmt.Errorf("it has not each of %q", wanted)
	}
	for i := range found {
		found[i].name = path.Join(on.architecture, found[i].name)
	}
	return found, nil
}
