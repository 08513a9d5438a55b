// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package deviceplugin

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"gotest.tools/v3/golden"
	specs "tags.cncf.io/container-device-interface/specs-go"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/fakekubelet"
)

func readSpec(t *testing.T, folder, resource string) specs.Spec {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, specName(resource)))
	if err != nil {
		t.Fatal(err)
	}
	var spec specs.Spec
	if err := json.Unmarshal(content, &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestAllocate(t *testing.T) {
	f := newFixture(t)
	f.start(nodeWith(
		poolNamed("trading", resourceX2), shared(nic(nic0, 0, v1alpha1.NICHealthy), 2), nic(nic1, 1, v1alpha1.NICHealthy),
		nic("0000:d8:00.0", 1, v1alpha1.NICUnhealthy, "The link is down.", "The control plane is gone."),
	))
	f.awaitUnits(resourceX2, nic0+"-0", nic0+"-1", nic1)
	cases := map[string]struct {
		ids       []string
		wantCDI   []string
		wantEnvs  map[string]string
		wantError string
	}{
		"one unit": {
			ids:      []string{nic0 + "-1"},
			wantCDI:  []string{"lowlatency.dev/x2=" + nic0 + "-1"},
			wantEnvs: map[string]string{"PCIDEVICE": nic0},
		},
		"several units, two of one NIC": {
			ids:      []string{nic1, nic0 + "-1", nic0 + "-0"},
			wantCDI:  []string{"lowlatency.dev/x2=" + nic0 + "-0", "lowlatency.dev/x2=" + nic0 + "-1", "lowlatency.dev/x2=" + nic1},
			wantEnvs: map[string]string{"PCIDEVICE": nic0 + "," + nic1},
		},
		"unhealthy": {
			ids: []string{nic1, "0000:d8:00.0"},
			wantError: `device "0000:d8:00.0" of lowlatency.dev/x2 cannot be handed out: ` +
				`The link is down. The control plane is gone.`,
		},
		"unknown": {
			ids: []string{"0000:99:00.0"},
			wantError: `lowlatency.dev/x2 has no device "0000:99:00.0" on this node: the NIC is gone or no longer belongs ` +
				`to BypassNICPool "trading"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			answer, err := f.kubelet.Allocate(t.Context(), fakekubelet.Container{Pod: name, Name: container}, resourceX2, tc.ids...)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Fatalf("error is %v, want %s", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var devices []string
			for _, device := range answer.GetCdiDevices() {
				devices = append(devices, device.GetName())
			}
			if diff := cmp.Diff(tc.wantCDI, devices); diff != "" {
				t.Errorf("CDI devices (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantEnvs, answer.GetEnvs()); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAllocateRestoresTheSpecification: somebody has emptied /var/run/cdi.
func TestAllocateRestores(t *testing.T) {
	f := newFixture(t)
	folder := filepath.Join(f.cdi, "made", "when", "needed")
	n := nodeWith(poolNamed("p", resourceX2), nic(nic0, 0, v1alpha1.NICHealthy))
	shown := &board{}
	written := &specFolder{path: folder}
	service := newService(resourceX2, shown, written, nil)
	if _, err := service.Allocate(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "not been judged yet") {
		t.Errorf("error before the first reading is %v", err)
	}
	(&observer{evaluate: n.evaluate, specs: written, board: shown}).once(t.Context())
	path := filepath.Join(folder, specName(resourceX2))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := service.Allocate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the specification is not there again: %v", err)
	}
}

func TestEditsThatFail(t *testing.T) {
	f := newFixture(t)
	n := nodeWith(poolNamed("p", resourceX2), nic(nic0, 0, v1alpha1.NICHealthy), nic(nic1, 0, v1alpha1.NICHealthy))
	n.reading.Edits = func(devices []bypass.Device) (bypass.Edits, error) {
		if devices[0].NIC.PCIAddress == nic1 {
			return bypass.Edits{}, errors.New("/opt/onload has no libonload.so")
		}
		return editsOf(devices)
	}
	f.start(n)
	f.awaitUnits(resourceX2, nic0)
	_, err := f.kubelet.Allocate(t.Context(), fakekubelet.Container{Pod: "p", Name: container}, resourceX2, nic1)
	if err == nil || !strings.Contains(err.Error(), "/opt/onload has no libonload.so") {
		t.Errorf("error is %v, want the reason", err)
	}
	if devices := readSpec(t, f.cdi, resourceX2).Devices; len(devices) != 1 || devices[0].Name != nic0 {
		t.Errorf("the specification has %+v, want the one NIC that can be used", devices)
	}
}

func TestSpecification(t *testing.T) {
	n := nodeWith(
		poolNamed("trading", resourceX2), shared(nic(nic0, 0, v1alpha1.NICHealthy), 2), nic(nic1, 1, v1alpha1.NICUnhealthy),
	)
	folder := t.TempDir()
	written := &specFolder{path: folder}
	if err := written.write(newInventory(n.reading, nil)); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(folder, "lowlatency.dev-x2.json"))
	if err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, string(content), "specification.json")
	spec := readSpec(t, folder, resourceX2)
	if err := specs.ValidateVersion(&spec); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("the folder has %v, %v", left, err)
	}
}

// TestLeftovers: what a process that was killed was writing goes, and what others write stays.
func TestLeftovers(t *testing.T) {
	folder := t.TempDir()
	killed, others := filepath.Join(folder, "."+specName(resourceX2)+"123"), filepath.Join(folder, ".nvidia.com-gpu.json123")
	for _, file := range []string{killed, others} {
		must(t, os.WriteFile(file, nil, 0o600))
		must(t, os.Chtimes(file, time.Unix(0, 0), time.Unix(0, 0)))
	}
	n := nodeWith(poolNamed("p", resourceX2), nic(nic0, 0, v1alpha1.NICHealthy))
	must(t, (&specFolder{path: folder}).write(newInventory(n.reading, nil)))
	if _, err := os.Stat(killed); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the leftover is still there: %v", err)
	}
	if _, err := os.Stat(others); err != nil {
		t.Error(err)
	}
}

func TestSpecificationFollowsTheUnits(t *testing.T) {
	folder := t.TempDir()
	written := &specFolder{path: folder}
	path := filepath.Join(folder, specName(resourceX2))
	n := nodeWith(poolNamed("p", resourceX2), nic(nic0, 0, v1alpha1.NICHealthy))
	write := func() {
		t.Helper()
		if err := written.write(newInventory(n.reading, nil)); err != nil {
			t.Fatal(err)
		}
	}
	write()
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	write()
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("an equal specification is written again: %v", err)
	}
	n.set()
	write()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a specification without devices stays: %v", err)
	}
	write()
	if err := written.ensure(); err != nil {
		t.Error(err)
	}
}

// TestUnwritable: without a specification no runtime can resolve what Allocate answers, so nothing is handed out.
func TestUnwritable(t *testing.T) {
	f := newFixture(t)
	f.cdi = filepath.Join(f.cdi, "folder")
	n := nodeWith(poolNamed("p", resourceX2), nic(nic0, 0, v1alpha1.NICHealthy))
	f.start(n)
	f.awaitUnits(resourceX2, nic0)
	// In one step, because the plugin writes into the folder, and makes it when it is missing.
	file := f.cdi + ".file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, f.cdi, unix.RENAME_EXCHANGE); err != nil {
		t.Fatal(err)
	}
	f.awaitUnits(resourceX2)
	_, err := f.kubelet.Allocate(t.Context(), fakekubelet.Container{Pod: "p", Name: container}, resourceX2, nic0)
	if err == nil || !strings.Contains(err.Error(), f.cdi) {
		t.Errorf("error is %v, want one that names the folder", err)
	}
	if err := os.Remove(f.cdi); err != nil {
		t.Fatal(err)
	}
	f.awaitUnits(resourceX2, nic0)
}

func TestSpecName(t *testing.T) {
	cases := map[string]struct{ resource, want string }{
		"as it is":        {"lowlatency.dev/x2", "lowlatency.dev-x2.json"},
		"name of a digit": {"lowlatency.dev/25g", "lowlatency.dev-nic-25g.json"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := specName(tc.resource); got != tc.want {
				t.Errorf("file is %s, want %s", got, tc.want)
			}
		})
	}
}
