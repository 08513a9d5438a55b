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
	removeAll(t, dir, filepath.Dir(merging), compaction, polling)
	packed := snapshotOf(t, dir)
	missing := func(root string, extra ...string) []string {
		return missingSettings(t, root, extra, append([]string{compaction, polling, swappiness, merging}, extra...))
	}
	const later = "/proc/sys/vm/invented_later"
	if diff := cmp.Diff([]string{compaction, merging, later}, missing(dir, later)); diff != "" {
		t.Errorf("a complete copy: %s", diff)
	}
	if diff := cmp.Diff([]string{compaction, merging}, missing(packed, later)); diff != "" {
		t.Errorf("a snapshot: %s", diff)
	}
	removeAll(t, dir, index)
	if diff := cmp.Diff([]string(nil), missing(dir, later)); diff != "" {
		t.Errorf("some copy: %s", diff)
	}
	if err := os.WriteFile(filepath.Join(dir, index), []byte(`{"complete":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	removeAll(t, dir, "sys/kernel")
	if diff := cmp.Diff([]string{compaction}, missing(dir)); diff != "" {
		t.Errorf("without sysfs: %s", diff)
	}
}

// missingSettings are those of the files that the host is said not to have, when the extra ones are asked for.
func missingSettings(t *testing.T, root string, extra, files []string) []string {
	t.Helper()
	facts, err := open(t, root).ReadWith(t.Context(), host.Request{Settings: extra})
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, file := range files {
		if facts.Setting(file).Missing {
			missing = append(missing, file)
		}
	}
	return missing
}

func removeAll(t *testing.T, root string, files ...string) {
	t.Helper()
	for _, file := range files {
		if err := os.RemoveAll(filepath.Join(root, file)); err != nil {
			t.Fatal(err)
		}
	}
}

// snapshotOf writes a snapshot of a host and returns its name.
func snapshotOf(t *testing.T, root string) string {
	t.Helper()
	var snapshot bytes.Buffer
	if err := open(t, root).Snapshot(t.Context(), &snapshot); err != nil {
		t.Fatal(err)
	}
	packed := filepath.Join(t.TempDir(), "host.tgz")
	if err := os.WriteFile(packed, snapshot.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return packed
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
