// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package dradriver

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	specs "tags.cncf.io/container-device-interface/specs-go"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// driverOn is a driver that has looked at a node once.
func driverOn(t *testing.T, n *node) *Driver {
	t.Helper()
	d := &Driver{
		Pool: testPool, NodeName: testNode, Evaluate: n.evaluate, Containers: n.list, CDIFolder: filepath.Join(t.TempDir(), "cdi"),
	}
	d.taintsDropped = make(chan struct{}, 1)
	d.observe(t.Context())
	return d
}

// prepareOne prepares one claim as the kubelet asks for it.
func prepareOne(t *testing.T, d *Driver, claim *resourcev1.ResourceClaim) kubeletplugin.PrepareResult {
	t.Helper()
	results, err := d.PrepareResourceClaims(t.Context(), []*resourcev1.ResourceClaim{claim})
	if err != nil || len(results) != 1 {
		t.Fatalf("%d results, %v", len(results), err)
	}
	return results[claim.UID]
}

func readSpec(t *testing.T, d *Driver, uid types.UID) specs.Spec {
	t.Helper()
	text, err := os.ReadFile(d.specs().file(uid))
	if err != nil {
		t.Fatal(err)
	}
	var spec specs.Spec
	if err := json.Unmarshal(text, &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

func given(request, device string, cdi ...string) kubeletplugin.Device {
	return kubeletplugin.Device{Requests: []string{request}, PoolName: testNode, DeviceName: device, CDIDeviceIDs: cdi}
}

// TestPrepare: one CDI device for each request, with the edits of all its NICs together.
func TestPrepare(t *testing.T) {
	d := driverOn(t, nodeWith(nicOf(nearZero, 0), nicOf(nearZeroB, 0), nicOf(nearOne, 1)))
	claim := claimOf(claimA, "nics", "pair=0000-3b-00-0", "other/fast=0000-af-00-0", "pair=0000-3b-00-1")
	claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
		resourcev1.DeviceRequestAllocationResult{Request: "gpu", Driver: "gpu.example", Pool: testNode, Device: "gpu-0"})
	got := prepareOne(t, d, claim)
	want := kubeletplugin.PrepareResult{Devices: []kubeletplugin.Device{
		given("pair", "0000-3b-00-0", "lowlatency.dev/x2="+string(claimA)+"-pair"), given("pair", "0000-3b-00-1"),
		given("other", "0000-af-00-0", "lowlatency.dev/x2="+string(claimA)+"-other"),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	mounts := []*specs.Mount{{HostPath: "/opt/onload/lib", ContainerPath: "/opt/onload/lib", Options: []string{"ro", "nosuid", "nodev", "bind"}}}
	wantSpec := specs.Spec{
		Version: "0.6.0", Kind: "lowlatency.dev/x2", Annotations: map[string]string{v1alpha1.AnnotationClaim: "trading/nics"},
		Devices: []specs.Device{
			{
				Name:        string(claimA) + "-pair",
				Annotations: map[string]string{v1alpha1.AnnotationRequest: "pair", v1alpha1.AnnotationDevices: "0000-3b-00-0,0000-3b-00-1"},
				ContainerEdits: specs.ContainerEdits{
					Env: []string{"PCIDEVICE_X2=" + nearZero + "," + nearZeroB}, Mounts: mounts,
					DeviceNodes: []*specs.DeviceNode{{Path: "/dev/nic-" + nearZero, Permissions: "rw"}, {Path: "/dev/nic-" + nearZeroB, Permissions: "rw"}},
				},
			},
			{
				Name:        string(claimA) + "-other",
				Annotations: map[string]string{v1alpha1.AnnotationRequest: "other", v1alpha1.AnnotationDevices: "0000-af-00-0"},
				ContainerEdits: specs.ContainerEdits{
					Env: []string{"PCIDEVICE_X2=" + nearOne}, Mounts: mounts,
					DeviceNodes: []*specs.DeviceNode{{Path: "/dev/nic-" + nearOne, Permissions: "rw"}},
				},
			},
		},
	}
	if diff := cmp.Diff(wantSpec, readSpec(t, d, claimA)); diff != "" {
		t.Errorf("specification (-want +got):\n%s", diff)
	}
}

// TestPrepareAgain: a prepared claim is answered alike by another process, even when its NIC has become unhealthy, until
// it is given back.
func TestPrepareAgain(t *testing.T) {
	n := nodeWith(nicOf(nearZero, 0))
	first := driverOn(t, n)
	claim := claimOf(claimA, "nics", "nic=0000-3b-00-0")
	want := prepareOne(t, first, claim)
	n.set(nicOf(nearZero, 0, unhealthy))
	second := driverOn(t, n)
	second.CDIFolder = first.CDIFolder
	if diff := cmp.Diff(want, prepareOne(t, second, claim)); diff != "" || want.Err != nil {
		t.Errorf("the second answer differs (-first +second):\n%s", diff)
	}
	giveBack := []kubeletplugin.NamespacedObject{{UID: claimA, NamespacedName: types.NamespacedName{Namespace: "trading", Name: "nics"}}}
	for range 2 {
		results, err := second.UnprepareResourceClaims(t.Context(), giveBack)
		if failure, told := results[claimA]; err != nil || failure != nil || !told {
			t.Fatalf("giving back: %v, %v", results, err)
		}
	}
	if files, err := os.ReadDir(first.CDIFolder); err != nil || len(files) > 0 {
		t.Errorf("files are left: %v, %v", files, err)
	}
	if again := prepareOne(t, second, claim); again.Err == nil {
		t.Error("an unhealthy NIC was given to a claim that was not prepared")
	}
}

func TestPrepareRefuses(t *testing.T) {
	healthy := nicOf(nearZero, 0)
	vfio := nicOf(nearOne, 1, func(device *bypass.Device) { device.NIC.Driver.Value = "vfio-pci" })
	byPlugin := host.Known([]allocation.Container{{Namespace: "trading", Pod: "old", Name: "main", Devices: []allocation.HeldDevices{
		{Resource: "lowlatency.dev/x2", IDs: []string{nearZero}},
	}}}, "")
	one := claimOf(claimA, "nics", "nic=0000-3b-00-0")
	changed := func(by func(*resourcev1.AllocationResult)) *resourcev1.ResourceClaim {
		claim := one.DeepCopy()
		by(claim.Status.Allocation)
		return claim
	}
	cases := map[string]struct {
		node  *node
		claim *resourcev1.ResourceClaim
		want  string
	}{
		"an unhealthy NIC":        {nodeWith(nicOf(nearZero, 0, unhealthy)), one, `device "0000-3b-00-0" cannot be handed out: The link is down.`},
		"a NIC that is gone":      {nodeWith(), one, `device "0000-3b-00-0" is not on this node`},
		"a share that is gone":    {nodeWith(nicOf(nearZero, 0, sharedBy(2))), claimOf(claimA, "nics", "nic=0000-3b-00-0-2"), "is not on this node"},
		"NICs without edits":      {nodeWith(vfio), claimOf(claimA, "nics", "nic=0000-af-00-0"), "0000-af-00-0 cannot be handed out: the IOMMU group is not known"},
		"held by a plugin":        {&node{reading: nodeWith(healthy).reading, containers: byPlugin}, one, "is held by container trading/old/main"},
		"a kubelet that is out":   {&node{reading: nodeWith(healthy).reading, containers: host.Absent[[]allocation.Container]("kubelet.sock", "no such file")}, one, "does not report who holds"},
		"a host that is not read": {&node{err: errors.New("/proc is not there")}, one, "have not been judged yet"},
		"another node": {
			nodeWith(healthy), changed(func(a *resourcev1.AllocationResult) { a.Devices.Results[0].Pool = "node-2" }),
			"device 0000-3b-00-0 of pool node-2, which is not on node node-1",
		},
		"administrative access": {
			nodeWith(healthy), changed(func(a *resourcev1.AllocationResult) { a.Devices.Results[0].AdminAccess = new(true) }),
			"administrative access",
		},
		"another driver": {
			nodeWith(healthy), changed(func(a *resourcev1.AllocationResult) { a.Devices.Results[0].Driver = "gpu.example" }),
			"claim trading/nics has no device of driver x2.bypass.lowlatency.dev",
		},
		"parameters": {
			nodeWith(healthy), changed(func(a *resourcev1.AllocationResult) {
				a.Devices.Config = []resourcev1.DeviceAllocationConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{
					Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: testDriver, Parameters: runtime.RawExtension{Raw: []byte("{}")}},
				}}}
			}), "which takes none; remove config",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := driverOn(t, tc.node)
			got := prepareOne(t, d, tc.claim)
			if got.Err == nil || !strings.Contains(got.Err.Error(), tc.want) || got.Devices != nil {
				t.Errorf("result is %+v, want an error with %q", got, tc.want)
			}
			if files, err := filepath.Glob(filepath.Join(d.CDIFolder, "*")); err != nil || len(files) > 0 {
				t.Errorf("files are left: %v, %v", files, err)
			}
		})
	}
}

// TestPrepareIsTheLastDefence: a device of a prepared claim is given to no other one, a share of the same NIC is.
func TestPrepareIsTheLastDefence(t *testing.T) {
	d := driverOn(t, nodeWith(nicOf(nearZero, 0, sharedBy(2))))
	if first := prepareOne(t, d, claimOf(claimA, "first", "nic=0000-3b-00-0-0")); first.Err != nil {
		t.Fatal(first.Err)
	}
	same := prepareOne(t, d, claimOf(claimB, "second", "nic=0000-3b-00-0-0"))
	if same.Err == nil || same.Err.Error() != "device 0000-3b-00-0-0 is held by claim trading/first still, so claim trading/second cannot have it" {
		t.Errorf("error is %v", same.Err)
	}
	if other := prepareOne(t, d, claimOf(claimB, "second", "nic=0000-3b-00-0-1")); other.Err != nil {
		t.Errorf("the other share: %v", other.Err)
	}
}

// TestPrepareAfterAFailure: a host that cannot be read any more gives nothing new.
func TestPrepareAfterAFailure(t *testing.T) {
	n := nodeWith(nicOf(nearZero, 0))
	d := driverOn(t, n)
	n.change(func(n *node) { n.err = errors.New("/proc/interrupts makes no sense") })
	d.observe(t.Context())
	if got := prepareOne(t, d, claimOf(claimA, "nics", "nic=0000-3b-00-0")); got.Err == nil || got.Err.Error() != "/proc/interrupts makes no sense" {
		t.Errorf("error is %v", got.Err)
	}
	published, known := d.devices()
	if !known || len(published) != 1 || len(published[0].Taints) != 1 || published[0].Taints[0].Value != "Unknown" {
		t.Errorf("published are %+v, %v", published, known)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	n.set()
	d.observe(canceled)
	if after, _ := d.devices(); len(after) != 1 {
		t.Errorf("a look that was interrupted changed the devices: %v", after)
	}
}

// TestDamagedSpecification: nobody guesses what a file means that nobody can read.
func TestDamagedSpecification(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"no JSON":             {"{", "cannot be read"},
		"no claim":            {`{"devices": []}`, "does not say what it is for"},
		"a device of another": {`{"annotations": {"lowlatency.dev/claim": "a/b"}, "devices": [{"name": "other"}]}`, `has device "other", which is not of claim`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := driverOn(t, nodeWith(nicOf(nearZero, 0)))
			if err := os.MkdirAll(d.CDIFolder, 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(d.specs().file(claimB), []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got := prepareOne(t, d, claimOf(claimA, "nics", "nic=0000-3b-00-0"))
			if got.Err == nil || !strings.Contains(got.Err.Error(), tc.want) || !strings.Contains(got.Err.Error(), "remove the file") {
				t.Errorf("error is %v, want %q", got.Err, tc.want)
			}
		})
	}
}

func FuzzParseClaim(f *testing.F) {
	f.Add([]byte(`{"annotations": {"lowlatency.dev/claim": "a/b"}, "devices": [{"name": "u-r", "annotations": {"lowlatency.dev/request": "r", "lowlatency.dev/devices": "0000-3b-00-0"}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		claim, err := parseClaim("u", text)
		if err != nil {
			return
		}
		if claim.claim == "" || len(claim.requests) == 0 || !claim.sameDevices(&claim) {
			t.Errorf("%q gives %+v", text, claim)
		}
		for _, request := range claim.requests {
			if len(request.devices) == 0 {
				t.Errorf("%q gives a request without a device", text)
			}
		}
	})
}
