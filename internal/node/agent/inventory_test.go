// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/tunedhost"
)

// An agent reports the layout that its plan was made for while a CPU of the plan is offline, from what it has reported before;
// without a plan, or with nothing reported, it reports what is there.
func TestInventoryWithACPUOffline(t *testing.T) {
	h, err := tunedhost.New(t.Context(), t.TempDir(), tunedhost.Small(hosttree.Xeon()), tunedhost.Profile())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Apply(); err != nil {
		t.Fatal(err)
	}
	look := func(plan plannedState, reported *v1alpha1.Inventory) *v1alpha1.Inventory {
		t.Helper()
		a := &Agent{Root: h.Dir, Window: time.Nanosecond, plan: plan}
		seen := a.observe(t.Context(), &v1alpha1.LowLatencyNode{Status: v1alpha1.LowLatencyNodeStatus{Inventory: reported}})
		if seen.Inventory == nil {
			t.Fatal(seen.Message)
		}
		return seen.Inventory
	}
	inForce := plannedState{plan: h.Plan, hash: h.Plan.Hash()}
	whole := look(inForce, nil)
	takeOffline(t, h, h.Plan.CPUs.Housekeeping.Last())
	if diff := cmp.Diff(whole, look(inForce, whole)); diff != "" {
		t.Errorf("the inventory has changed (-before +after):\n%s", diff)
	}
	bare := look(inForce, nil)
	if bare.OfflineCPUs == "" || cmp.Equal(whole.Cores, bare.Cores) {
		t.Fatalf("offline CPUs are %q, cores %v", bare.OfflineCPUs, bare.Cores)
	}
	if diff := cmp.Diff(bare, look(plannedState{}, whole)); diff != "" {
		t.Errorf("without a plan (-want +got):\n%s", diff)
	}
}

// takeOffline removes what the kernel removes of an offline CPU's core.
func takeOffline(t *testing.T, h *tunedhost.Host, id int) {
	t.Helper()
	const root = "/sys/devices/system/cpu/"
	folder := fmt.Sprintf("%scpu%d", root, id)
	put(t, filepath.Join(h.Dir, root+"online"), setIn(t, filepath.Join(h.Dir, root+"online")).Difference(cpus.Of(id)).String())
	put(t, filepath.Join(h.Dir, root+"offline"), cpus.Of(id).String())
	put(t, filepath.Join(h.Dir, folder+"/online"), "0")
	for _, name := range []string{"topology", "cache"} {
		if err := os.RemoveAll(filepath.Join(h.Dir, folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	lists, err := filepath.Glob(filepath.Join(h.Dir, root+"cpu*/topology/*_list"))
	if err != nil || len(lists) == 0 {
		t.Fatalf("%d lists of siblings: %v", len(lists), err)
	}
	for _, full := range lists {
		if set := setIn(t, full); set.Contains(id) {
			put(t, full, set.Difference(cpus.Of(id)).String())
		}
	}
}

// setIn reads a file with a list of CPUs, and put writes one.
func setIn(t *testing.T, file string) cpus.Set {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	set, err := cpus.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func put(t *testing.T, file, content string) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(file), os.WriteFile(file, []byte(content+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
}
