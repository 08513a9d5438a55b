// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package deviceplugin

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
)

// manyNICs are two ports for each card, half of the cards on each NUMA node.
func manyNICs(count int) []bypass.Device {
	devices := make([]bypass.Device, 0, count)
	for i := range count {
		devices = append(devices, nic(fmt.Sprintf("0000:%02x:00.%d", i/2, i%2), i*2/count, v1alpha1.NICHealthy))
	}
	return devices
}

// BenchmarkAllocate is one container that takes all units of a pool.
func BenchmarkAllocate(b *testing.B) {
	for _, count := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("devices=%d", count), func(b *testing.B) {
			shown := &board{}
			v := inventoryOf(manyNICs(count)...)
			written := &specFolder{path: b.TempDir()}
			if err := written.write(v); err != nil {
				b.Fatal(err)
			}
			shown.Set(v)
			service := newService(resourceX2, shown, written, nil)
			request := &deviceplugin.AllocateRequest{ContainerRequests: []*deviceplugin.ContainerAllocateRequest{{DevicesIds: idsOf(v)}}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := service.Allocate(b.Context(), request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPrefer is a container that takes one unit of a pool.
func BenchmarkPrefer(b *testing.B) {
	for _, count := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("devices=%d", count), func(b *testing.B) {
			v := inventoryOf(manyNICs(count)...)
			ids := idsOf(v)
			b.ReportAllocs()
			for b.Loop() {
				if len(prefer(v, ids, nil, 1)) != 1 {
					b.Fatal("nothing was chosen")
				}
			}
		})
	}
}

// BenchmarkAllocateOverSocket is one container that takes one unit, as the kubelet asks for it.
func BenchmarkAllocateOverSocket(b *testing.B) {
	for _, count := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("devices=%d", count), func(b *testing.B) {
			f := newFixture(b)
			f.start(nodeWith(poolNamed("p", resourceX2), manyNICs(count)...))
			f.await("units", func() bool { return len(f.kubelet.Allocatable(resourceX2)) == count })
			client, err := f.kubelet.Call(resourceX2)
			if err != nil {
				b.Fatal(err)
			}
			request := &deviceplugin.AllocateRequest{ContainerRequests: []*deviceplugin.ContainerAllocateRequest{
				{DevicesIds: f.kubelet.Allocatable(resourceX2)[:1]},
			}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := client.Allocate(b.Context(), request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRegisterAgain measures from the moment at which a kubelet that has started listens to the moment at which it
// has the units.
func BenchmarkRegisterAgain(b *testing.B) {
	f := newFixture(b)
	f.start(nodeWith(poolNamed("p", resourceX2), manyNICs(16)...))
	f.await("units", func() bool { return len(f.kubelet.Allocatable(resourceX2)) == 16 })
	var total, worst time.Duration
	for b.Loop() {
		f.kubelet.Stop()
		if err := f.kubelet.Start(); err != nil {
			b.Fatal(err)
		}
		started := time.Now()
		f.await("units", func() bool { return len(f.kubelet.Allocatable(resourceX2)) == 16 })
		took := time.Since(started)
		total, worst = total+took, max(worst, took)
	}
	b.ReportMetric(float64(total.Microseconds())/float64(b.N), "µs/registration")
	b.ReportMetric(float64(worst.Microseconds()), "µs-worst")
}

// BenchmarkMemory is what a plugin that serves holds on the heap, its kubelet included.
func BenchmarkMemory(b *testing.B) {
	for _, count := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("devices=%d", count), func(b *testing.B) {
			for b.Loop() {
				before := heap()
				f := newFixture(b)
				stop := f.start(nodeWith(poolNamed("p", resourceX2), manyNICs(count)...))
				f.await("units", func() bool { return len(f.kubelet.Allocatable(resourceX2)) == count })
				b.ReportMetric(float64(heap()-before)/1024, "KiB-heap")
				stop()
				f.kubelet.Stop()
			}
		})
	}
}

func heap() int64 {
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}
