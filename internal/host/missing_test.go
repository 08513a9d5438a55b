// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// What a copy of a host lacks is missing on the host only if the copy says so: a complete one of everything, a snapshot of
// what was looked for.
func TestMissingSettings(t *testing.T) {
	const (
		merging    = "/sys/kernel/mm/ksm/run"
		compaction = "/proc/sys/vm/compaction_proactiveness"
		polling    = "/proc/sys/net/core/busy_poll"
		swappiness = "/proc/sys/vm/swappiness"
		index      = "lowlatency-snapshot.json"
	)
	dir := t.TempDir()
	if err := hosttree.Xeon().Write(dir); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Dir(merging), compaction, polling} {
		if err := os.RemoveAll(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	var snapshot bytes.Buffer
	packed := filepath.Join(t.TempDir(), "host.tgz")
	opened := open(t, dir)
	if err := opened.Snapshot(t.Context(), &snapshot); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(packed, snapshot.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := func(root string, extra ...string) []string {
		facts, err := open(t, root).ReadWith(t.Context(), host.Request{Settings: extra})
		if err != nil {
			t.Fatal(err)
		}
		var files []string
		for _, file := range append([]string{compaction, polling, swappiness, merging}, extra...) {
			if fact := facts.Setting(file); fact.Missing {
				files = append(files, file)
			}
		}
		return files
	}
	const later = "/proc/sys/vm/invented_later"
	if diff := cmp.Diff([]string{compaction, merging, later}, missing(dir, later)); diff != "" {
		t.Errorf("a complete copy: %s", diff)
	}
	if diff := cmp.Diff([]string{compaction, merging}, missing(packed, later)); diff != "" {
		t.Errorf("a snapshot: %s", diff)
	}
	if err := os.Remove(filepath.Join(dir, index)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string(nil), missing(dir, later)); diff != "" {
		t.Errorf("some copy: %s", diff)
	}
	if err := os.WriteFile(filepath.Join(dir, index), []byte(`{"complete":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "sys/kernel")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{compaction}, missing(dir)); diff != "" {
		t.Errorf("without sysfs: %s", diff)
	}
}

func open(t *testing.T, root string) *host.Host {
	t.Helper()
	opened, err := host.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return opened
}
