// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// admitting is a kubelet that gives a container more with each question, until it gives nothing more.
type admitting struct {
	podresourcesv1.UnimplementedPodResourcesListerServer

	mutex   sync.Mutex
	answers []*podresourcesv1.ContainerResources
	asked   int
}

func (k *admitting) List(context.Context, *podresourcesv1.ListPodResourcesRequest) (*podresourcesv1.ListPodResourcesResponse, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	given := k.answers[min(k.asked, len(k.answers)-1)]
	k.asked++
	return &podresourcesv1.ListPodResourcesResponse{PodResources: []*podresourcesv1.PodResources{
		{Namespace: "trading", Name: "feed", Containers: []*podresourcesv1.ContainerResources{given}},
	}}, nil
}

// asks lets the agent ask once, while its clock goes on whenever it waits.
func asks(t *testing.T, a *Agent, clock *clocktesting.FakeClock) cpus.Set {
	t.Helper()
	done := make(chan struct{})
	var stepping sync.WaitGroup
	stepping.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				if clock.HasWaiters() {
					clock.Step(admissionPause)
				}
			}
		}
	})
	containers := a.containers(t.Context())
	close(done)
	stepping.Wait()
	if !containers.Known || len(containers.Value) != 1 {
		t.Fatalf("the kubelet's answer is %+v", containers)
	}
	return containers.Value[0].CPUs
}

func TestAdmission(t *testing.T) {
	device := []*podresourcesv1.ContainerDevices{{ResourceName: "lowlatency.dev/x2", DeviceIds: []string{"0000:3b:00.0"}}}
	memory := []*podresourcesv1.ContainerMemory{{MemoryType: "memory", Size: 1 << 20}}
	none := &podresourcesv1.ContainerResources{Name: "app"}
	devices := &podresourcesv1.ContainerResources{Name: "app", Devices: device}
	withCPUs := &podresourcesv1.ContainerResources{Name: "app", Devices: device, CpuIds: []int64{2, 3}}
	all := &podresourcesv1.ContainerResources{Name: "app", Devices: device, CpuIds: []int64{2, 3}, Memory: memory}
	cases := map[string]struct {
		pools   int
		answers []*podresourcesv1.ContainerResources
		// wantAsked are the questions of two passes, one after the other.
		wantAsked [2]int
		wantCPUs  cpus.Set
	}{
		"all is given":                               {1, []*podresourcesv1.ContainerResources{all}, [2]int{1, 1}, cpus.Of(2, 3)},
		"CPUs and memory follow":                     {1, []*podresourcesv1.ContainerResources{devices, withCPUs, all}, [2]int{3, 1}, cpus.Of(2, 3)},
		"no pool selects the node":                   {0, []*podresourcesv1.ContainerResources{devices}, [2]int{1, 1}, cpus.Set{}},
		"no device":                                  {1, []*podresourcesv1.ContainerResources{none}, [2]int{1, 1}, cpus.Set{}},
		"it has no CPUs of its own":                  {1, []*podresourcesv1.ContainerResources{devices}, [2]int{1 + admissionQuestions, 1}, cpus.Set{}},
		"a kubelet that pins no memory":              {1, []*podresourcesv1.ContainerResources{withCPUs}, [2]int{1 + admissionQuestions, 1}, cpus.Of(2, 3)},
		"a pod of the same name comes after it":      {1, []*podresourcesv1.ContainerResources{all, devices, all}, [2]int{1, 2}, cpus.Of(2, 3)},
		"the same, where the kubelet pins no memory": {1, []*podresourcesv1.ContainerResources{withCPUs, withCPUs, withCPUs, withCPUs, devices, withCPUs}, [2]int{4, 2}, cpus.Of(2, 3)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "kubelet.sock")
			listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			kubelet, server := &admitting{answers: tc.answers}, grpc.NewServer()
			podresourcesv1.RegisterPodResourcesListerServer(server, kubelet)
			ended := make(chan error, 1)
			go func() { ended <- server.Serve(listener) }()
			clock := clocktesting.NewFakeClock(time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC))
			a := &Agent{PodResources: socket, Clock: clock, pools: make([]poolState, tc.pools)}
			asks(t, a, clock)
			first := kubelet.asked
			given := asks(t, a, clock)
			server.Stop()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.wantAsked, [2]int{first, kubelet.asked - first}); diff != "" {
				t.Errorf("questions of two passes, -want +got:\n%s", diff)
			}
			if given.String() != tc.wantCPUs.String() {
				t.Errorf("CPUs %s, want %s", given, tc.wantCPUs)
			}
		})
	}
}
