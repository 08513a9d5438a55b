// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package deviceplugin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/fakekubelet"
)

// handover stands for one that cannot prepare some NICs.
type handover struct {
	mutex    sync.Mutex
	problems map[string]string
}

func (h *handover) set(problems map[string]string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.problems = problems
}

func (h *handover) Prepare(bypass.Pool, []bypass.Device) map[string]string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.problems
}

func (h *handover) Allocate(shares []bypass.Share) (bypass.Edits, error) {
	var edits bypass.Edits
	for _, share := range shares {
		if len(share.Queues) == 0 {
			return bypass.Edits{}, errors.New("the socket cannot be made: no space left on device")
		}
		edits.Mounts = append(edits.Mounts, bypass.Mount{
			HostPath: "/run/" + share.ID, ContainerPath: fmt.Sprintf("/sockets/%s/%d", share.Device.NIC.PCIAddress, share.Queues[0]),
		})
	}
	edits.Environment = []bypass.Variable{{Name: "SHARES", Value: strconv.Itoa(len(shares))}}
	return edits, nil
}

// environmentOnly are the edits of a stack without device files.
func environmentOnly(devices []bypass.Device) (bypass.Edits, error) {
	edits, err := editsOf(devices)
	return bypass.Edits{Environment: edits.Environment}, err
}

func startWithHandover(t *testing.T, devices ...bypass.Device) (*fixture, *handover) {
	t.Helper()
	f := newFixture(t)
	n := nodeWith(poolNamed("sockets", resourceX2), devices...)
	n.reading.Edits = environmentOnly
	handing := &handover{}
	f.run(&Plugin{
		Evaluate: n.evaluate, Handover: handing, KubeletFolder: f.kubelet.Folder(), CDIFolder: f.cdi, Interval: often,
	})
	return f, handing
}

// TestHandoverGivesQueues: each unit of a shared NIC is a queue, and what a container gets is made for it alone. No CDI
// device is named, because none is described.
func TestHandoverGivesQueues(t *testing.T) {
	device := shared(nic(nic0, 1, v1alpha1.NICHealthy), 2)
	device.Queues = []int{4, 10}
	f, _ := startWithHandover(t, device)
	f.awaitUnits(resourceX2, nic0+"-10", nic0+"-4")
	answer, err := f.kubelet.Allocate(t.Context(), fakekubelet.Container{Pod: "p", Name: container}, resourceX2, nic0+"-10", nic0+"-4")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/run/0000:3b:00.0-4 at /sockets/0000:3b:00.0/4 true", "/run/0000:3b:00.0-10 at /sockets/0000:3b:00.0/10 true"}
	mounts := make([]string, 0, len(answer.GetMounts()))
	for _, mount := range answer.GetMounts() {
		mounts = append(mounts, fmt.Sprintf("%s at %s %t", mount.GetHostPath(), mount.GetContainerPath(), mount.GetReadOnly()))
	}
	if diff := cmp.Diff(want, mounts); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"PCIDEVICE": nic0, "SHARES": "2"}, answer.GetEnvs()); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	if devices := answer.GetCdiDevices(); len(devices) > 0 {
		t.Errorf("CDI devices without a specification are %v", devices)
	}
	if _, err := os.Stat(filepath.Join(f.cdi, specName(resourceX2))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a specification without devices was written: %v", err)
	}
}

// TestHandoverProblems: a NIC that cannot be made ready is unhealthy, with the reason, until it can.
func TestHandoverProblems(t *testing.T) {
	device := nic(nic0, 1, v1alpha1.NICHealthy)
	device.Queues = []int{0}
	f, handing := startWithHandover(t, device)
	f.awaitUnits(resourceX2, nic0)
	handing.set(map[string]string{nic0: "Another XDP program is on its interface."})
	f.awaitUnits(resourceX2)
	if devices := f.kubelet.Devices(resourceX2); len(devices) != 1 || devices[0].GetHealth() != deviceplugin.Unhealthy {
		t.Errorf("devices are %v", devices)
	}
	_, err := f.kubelet.Allocate(t.Context(), fakekubelet.Container{Pod: "p", Name: container}, resourceX2, nic0)
	if err == nil || !strings.Contains(err.Error(), "Another XDP program is on its interface.") {
		t.Errorf("error is %v", err)
	}
	handing.set(nil)
	f.awaitUnits(resourceX2, nic0)
}

func TestHandoverFails(t *testing.T) {
	f, _ := startWithHandover(t, nic(nic0, 1, v1alpha1.NICHealthy))
	f.awaitUnits(resourceX2, nic0)
	_, err := f.kubelet.Allocate(t.Context(), fakekubelet.Container{Pod: "p", Name: container}, resourceX2, nic0)
	if err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("error is %v", err)
	}
}
