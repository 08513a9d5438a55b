// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package dradriver

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	drahealthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	registerv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/background"
)

const (
	// timeout is for machines under load; nothing waits that long when it works.
	timeout = 30 * time.Second
	// often makes the interval no part of what a test waits for.
	often = 5 * time.Millisecond
)

// fixture is a kubelet's folder and an API server.
type fixture struct {
	*testing.T

	kubelet, cdi string
	client       kubernetes.Interface
}

func newFixture(t *testing.T, claims ...*resourcev1.ResourceClaim) *fixture {
	t.Helper()
	folder, err := os.MkdirTemp("", "dra") //nolint:usetesting // A socket's path has at most 107 bytes; a folder named after a test may leave too few.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	if err := os.MkdirAll(filepath.Join(folder, registryFolder), 0o750); err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: testNode, UID: "node-uid"}})
	for _, claim := range claims {
		if err := client.Tracker().Add(claim); err != nil {
			t.Fatal(err)
		}
	}
	return &fixture{T: t, kubelet: folder, cdi: filepath.Join(folder, "cdi"), client: client}
}

// start runs a driver until the returned function is called, or the test ends.
func (f *fixture) start(n *node, change ...func(*Driver)) (stop func()) {
	f.Helper()
	d := &Driver{
		Pool: testPool, NodeName: testNode, Evaluate: n.evaluate, Containers: n.list, Client: f.client,
		KubeletFolder: f.kubelet, CDIFolder: f.cdi, Interval: often, Log: testr.New(f.T),
	}
	for _, one := range change {
		one(d)
	}
	return background.Run(f.T, "the driver", d.Run)
}

// await waits until a condition holds; the last text that it gave is told otherwise.
func (f *fixture) await(what string, condition func() (bool, string)) {
	f.Helper()
	deadline := time.Now().Add(timeout)
	for {
		ok, found := condition()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			f.Fatalf("waiting for %s: %s", what, found)
		}
		time.Sleep(often)
	}
}

// dial connects as the kubelet does: by gRPC on a unix socket.
func (f *fixture) dial(socket string) *grpc.ClientConn {
	f.Helper()
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = connection.Close() })
	return connection
}

// register finds the driver by its socket in the folder that the kubelet watches, and registers it.
func (f *fixture) register() *grpc.ClientConn {
	f.Helper()
	socket := filepath.Join(f.kubelet, registryFolder, testDriver+"-reg.sock")
	f.await("the socket of the registration", func() (bool, string) {
		_, err := os.Stat(socket)
		return err == nil, socket
	})
	registration := registerv1.NewRegistrationClient(f.dial(socket))
	info, err := registration.GetInfo(f.Context(), &registerv1.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		f.Fatal(err)
	}
	if info.GetType() != registerv1.DRAPlugin || info.GetName() != testDriver || !slices.Contains(info.GetSupportedVersions(), drav1.DRAPluginService) {
		f.Fatalf("the driver says about itself: %v", info)
	}
	if _, err := registration.NotifyRegistrationStatus(f.Context(), &registerv1.RegistrationStatus{PluginRegistered: true}); err != nil {
		f.Fatal(err)
	}
	return f.dial(info.GetEndpoint())
}

// ask is how the kubelet names a claim.
func ask(claim *resourcev1.ResourceClaim) *drav1.Claim {
	return &drav1.Claim{Namespace: claim.Namespace, Name: claim.Name, Uid: string(claim.UID)}
}

// awaitPrepared prepares a claim as soon as the driver knows its NICs.
func (f *fixture) awaitPrepared(kubelet drav1.DRAPluginClient, claim *resourcev1.ResourceClaim) *drav1.NodePrepareResourceResponse {
	f.Helper()
	var answer *drav1.NodePrepareResourceResponse
	f.await("the claim to be prepared", func() (bool, string) {
		answers, err := kubelet.NodePrepareResources(f.Context(), &drav1.NodePrepareResourcesRequest{Claims: []*drav1.Claim{ask(claim)}})
		if err != nil {
			return false, err.Error()
		}
		answer = answers.GetClaims()[string(claim.UID)]
		return answer.GetError() == "", answer.GetError()
	})
	return answer
}

// TestKubelet goes the way of a claim through the sockets, with a restart of the driver in its middle.
func TestKubelet(t *testing.T) {
	claim := claimOf(claimA, "nics", "nic=0000-3b-00-0")
	f := newFixture(t, claim)
	n := nodeWith(nicOf(nearZero, 0))
	stop := f.start(n)
	first := f.awaitPrepared(drav1.NewDRAPluginClient(f.register()), claim)
	device := first.GetDevices()[0]
	got := [][]string{{device.GetDeviceName(), device.GetPoolName()}, device.GetRequestNames(), device.GetCdiDeviceIds()}
	want := [][]string{{"0000-3b-00-0", testNode}, {"nic"}, {"lowlatency.dev/x2=" + string(claimA) + "-nic"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("prepared (-want +got):\n%s", diff)
	}
	stop()
	if sockets, err := filepath.Glob(filepath.Join(f.kubelet, registryFolder, "*")); err != nil || len(sockets) > 0 {
		t.Errorf("sockets are left: %v, %v", sockets, err)
	}
	killed := filepath.Join(f.cdi, "."+testDriver+"-"+string(claimB)+".json123")
	if err := errors.Join(os.WriteFile(killed, nil, 0o600), os.Chtimes(killed, time.Unix(0, 0), time.Unix(0, 0))); err != nil {
		t.Fatal(err)
	}
	n.set(nicOf(nearZero, 0, unhealthy))
	f.start(n)
	kubelet := drav1.NewDRAPluginClient(f.register())
	if diff := cmp.Diff(device.GetCdiDeviceIds(), f.awaitPrepared(kubelet, claim).GetDevices()[0].GetCdiDeviceIds()); diff != "" {
		t.Errorf("after a restart the claim got something else:\n%s", diff)
	}
	answers, err := kubelet.NodeUnprepareResources(t.Context(), &drav1.NodeUnprepareResourcesRequest{Claims: []*drav1.Claim{ask(claim)}})
	if err != nil || answers.GetClaims()[string(claimA)].GetError() != "" {
		t.Errorf("giving back: %v, %v", answers, err)
	}
	if files, err := os.ReadDir(f.cdi); err != nil || len(files) > 0 {
		t.Errorf("files are left: %v, %v", files, err)
	}
}

// published are the devices of the driver's slices, each with the value of its taint.
func (f *fixture) published() (devices []string, slicesFound int) {
	f.Helper()
	list, err := f.client.ResourceV1().ResourceSlices().List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b resourcev1.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
	for _, slice := range list.Items {
		if slice.Spec.Driver != testDriver || slice.Spec.Pool.Name != testNode || *slice.Spec.NodeName != testNode {
			f.Errorf("a slice is %+v", slice.Spec)
		}
		for _, device := range slice.Spec.Devices {
			var text strings.Builder
			text.WriteString(device.Name)
			for _, taint := range device.Taints {
				text.WriteString(" " + taint.Value)
			}
			devices = append(devices, text.String())
		}
	}
	return devices, len(list.Items)
}

func (f *fixture) awaitPublished(want ...string) {
	f.Helper()
	f.await(strings.Join(want, ", "), func() (bool, string) {
		found, count := f.published()
		return count > 0 && slices.Equal(found, want), strings.Join(found, ", ")
	})
}

// TestPublish follows what becomes of NICs.
func TestPublish(t *testing.T) {
	f := newFixture(t)
	n := nodeWith(nicOf(nearZero, 0), nicOf(nearOne, 1))
	f.start(n)
	f.awaitPublished("0000-3b-00-0", "0000-af-00-0")
	n.set(nicOf(nearZero, 0, unhealthy), nicOf(nearOne, 1))
	f.awaitPublished("0000-3b-00-0 Unhealthy", "0000-af-00-0")
	n.change(func(n *node) { n.err = errors.New("/proc is not there") })
	f.awaitPublished("0000-3b-00-0 Unknown", "0000-af-00-0 Unknown")
	n.set()
	f.awaitPublished()
	n.set(nicOf(nearOne, 1))
	f.awaitPublished("0000-af-00-0")
}

// TestPublishNothingWhileDraining: the slice that is left means that the driver is there.
func TestPublishNothingWhileDraining(t *testing.T) {
	claim := claimOf(claimA, "nics", "nic=0000-3b-00-0")
	f := newFixture(t, claim)
	f.start(nodeWith(nicOf(nearZero, 0)), func(d *Driver) { d.Draining = true })
	f.awaitPublished()
	f.awaitPrepared(drav1.NewDRAPluginClient(f.register()), claim)
}

// TestPublishFollowsThePoolFile: a change is noticed at once, not at the next look.
func TestPublishFollowsThePoolFile(t *testing.T) {
	f := newFixture(t)
	file := filepath.Join(t.TempDir(), "pool.json")
	n := nodeWith(nicOf(nearZero, 0))
	f.start(n, func(d *Driver) { d.PoolFile, d.Interval = file, time.Hour })
	f.awaitPublished("0000-3b-00-0")
	n.set(nicOf(nearOne, 1))
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.awaitPublished("0000-af-00-0")
}

// TestDroppedTaints: where the API server keeps no taints, a NIC that is not healthy must not look like one that is.
func TestDroppedTaints(t *testing.T) {
	d := driverOn(t, nodeWith(nicOf(nearZero, 0, unhealthy), nicOf(nearOne, 1)))
	dropped := &resourceslice.DroppedFieldsError{DesiredSlice: &resourcev1.ResourceSlice{}, ActualSlice: &resourcev1.ResourceSlice{}}
	for range 2 {
		d.HandleError(t.Context(), dropped, "publishing")
	}
	devices, known := d.devices()
	if !known || len(devices) != 1 || devices[0].Name != "0000-af-00-0" {
		t.Errorf("published are %v", devices)
	}
	select {
	case <-d.taintsDropped:
	default:
		t.Error("nobody is told to publish again")
	}
}

// TestErrors: what mends itself is logged; without its sockets the process ends, to be started again.
func TestErrors(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	d := &Driver{fatal: cancel}
	d.HandleError(ctx, errors.Join(errors.New("refused"), kubeletplugin.ErrRecoverable), "publishing")
	if ctx.Err() != nil {
		t.Fatal("an error that mends itself ended the driver")
	}
	d.HandleError(ctx, errors.New("accept: bad file descriptor"), "DRA gRPC server failed")
	if cause := context.Cause(ctx); cause == nil || cause.Error() != "DRA gRPC server failed: accept: bad file descriptor" {
		t.Errorf("the cause is %v", cause)
	}
}

// TestRunNeedsItsFolders: without them there is no point in going on.
func TestRunNeedsItsFolders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n := nodeWith()
	for folder, want := range map[string]string{file: "creating the folder of the driver's socket", t.TempDir(): "starting driver " + testDriver} {
		d := &Driver{Pool: testPool, NodeName: testNode, Evaluate: n.evaluate, Containers: n.list, Client: fake.NewClientset(), KubeletFolder: folder}
		if err := d.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}

// TestManyUnits: a slice has room for 64 devices with taints.
func TestManyUnits(t *testing.T) {
	devices := bypass.ResourceDevices(poolX2(), []bypass.Device{nicOf(nearZero, 0, sharedBy(100)), nicOf(nearOne, 1, sharedBy(30))})
	published := resources(testNode, devices).Pools[testNode].Slices
	counts := make([]int, len(published))
	for i, slice := range published {
		counts[i] = len(slice.Devices)
	}
	if want := []int{64, 64, 2}; !slices.Equal(counts, want) {
		t.Errorf("slices have %v devices, want %v", counts, want)
	}
}

// TestHealth: the kubelet is told every device, and every change.
func TestHealth(t *testing.T) {
	f := newFixture(t)
	n := nodeWith(nicOf(nearZero, 0), nicOf(nearOne, 1, unhealthy))
	f.start(n)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	stream, err := drahealthv1.NewDRAResourceHealthClient(f.register()).NodeWatchResources(ctx, &drahealthv1.NodeWatchResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	const up, down, unknown = drahealthv1.HealthStatus_HEALTHY, drahealthv1.HealthStatus_UNHEALTHY, drahealthv1.HealthStatus_UNKNOWN
	awaitHealth(t, stream, map[string]drahealthv1.HealthStatus{"0000-3b-00-0": up, "0000-af-00-0": down})
	n.set(nicOf(nearZero, 0, unhealthy), nicOf(nearOne, 1))
	awaitHealth(t, stream, map[string]drahealthv1.HealthStatus{"0000-3b-00-0": down, "0000-af-00-0": up})
	n.set(nicOf(nearZero, 0, func(device *bypass.Device) { device.Health = v1alpha1.NICUnknown }))
	awaitHealth(t, stream, map[string]drahealthv1.HealthStatus{"0000-3b-00-0": unknown})
}

func awaitHealth(t *testing.T, stream drahealthv1.DRAResourceHealth_NodeWatchResourcesClient, want map[string]drahealthv1.HealthStatus) {
	t.Helper()
	for {
		report, err := stream.Recv()
		if errors.Is(err, io.EOF) || err != nil {
			t.Fatalf("the reports ended before %v: %v", want, err)
		}
		got := map[string]drahealthv1.HealthStatus{}
		for _, device := range report.GetDevices() {
			if device.GetDevice().GetPoolName() != testNode {
				t.Errorf("a device is %v", device)
			}
			got[device.GetDevice().GetDeviceName()] = device.GetHealth()
		}
		if cmp.Equal(want, got) {
			return
		}
	}
}
