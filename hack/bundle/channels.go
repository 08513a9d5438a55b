// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
)

const (
	// candidate has every release.
	candidate = "candidate"
	// stable has those from 1.0 on that are not made for trying them, and is the default as soon as it has one.
	stable = "stable"
)

// channelsOf are the channels of a release, the default one last.
func channelsOf(release string) ([]string, error) {
	parsed, err := version.ParseSemantic(release)
	if err != nil {
		return nil, fmt.Errorf("version %s: %w", release, err)
	}
	if parsed.Major() == 0 || parsed.PreRelease() != "" {
		return []string{candidate}, nil
	}
	return []string{candidate, stable}, nil
}

// listed is a release as channels list it.
type listed struct {
	name, replaces string
	channels       []string
}

// list reads a release from its ClusterServiceVersion.
func list(csv *unstructured.Unstructured) (listed, error) {
	release, _, err := unstructured.NestedString(csv.Object, "spec", "version")
	if err != nil {
		return listed{}, err
	}
	replaces, _, err := unstructured.NestedString(csv.Object, "spec", "replaces")
	if err != nil {
		return listed{}, err
	}
	channels, err := channelsOf(release)
	return listed{csv.GetName(), replaces, channels}, err
}

// catalogChannels are the channels that have a release, the default one last.
func catalogChannels(releases []listed) []map[string]any {
	var all []map[string]any
	for _, name := range []string{candidate, stable} {
		if entries := entriesOf(name, releases); len(entries) > 0 {
			all = append(all, map[string]any{"schema": "olm.channel", "package": packageName, "name": name, "entries": entries})
		}
	}
	return all
}

// entriesOf are the releases of one channel, the oldest first. One that follows releases of another channel replaces the last of its own, so that
// the channel has one head, and skips those between, so that it takes over from them, too.
func entriesOf(channel string, releases []listed) []any {
	var entries []any
	var last string
	var between []any
	for _, one := range releases {
		if !slices.Contains(one.channels, channel) {
			between = append(between, one.name)
			continue
		}
		entry := map[string]any{"name": one.name}
		if one.replaces != "" {
			entry["replaces"] = one.replaces
		}
		if last != "" && len(between) > 0 {
			entry["replaces"], entry["skips"] = last, between
		}
		entries, last, between = append(entries, entry), one.name, nil
	}
	return entries
}
