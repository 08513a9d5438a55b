// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubelet

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	_ "unsafe" // For go:linkname.

	"github.com/go-logr/logr"
	cadvisorapi "github.com/google/cadvisor/lib/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// newManagerImpl is devicemanager.NewManagerImpl with another path than that of the kubelet of this machine.
//
//go:linkname newManagerImpl k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func newManagerImpl(
	logger logr.Logger, socket string, topology []cadvisorapi.Node, affinity topologymanager.Store,
) (*devicemanager.ManagerImpl, error)

// Devices is the part of a kubelet that decides which devices a pod gets: the kubelet's own device manager and its
// topology manager with the policy single-numa-node, on a machine.
type Devices struct {
	// Manager is the device manager.
	Manager *devicemanager.ManagerImpl

	affinity topologymanager.Manager
	mutex    sync.Mutex
	pods     []*corev1.Pod
}

// StartDevices starts the managers as a starting kubelet does. The folder stands for /var/lib/kubelet; its path must be
// short, because it holds sockets. The pods are those that ran when the kubelet before this one ended.
func StartDevices(folder string, machine *cadvisorapi.MachineInfo, pods ...*corev1.Pod) (*Devices, error) {
	logger := logr.Discard()
	affinity, err := topologymanager.NewManager(logger, machine.Topology, topologymanager.PolicySingleNumaNode, "container", nil)
	if err != nil {
		return nil, fmt.Errorf("creating the topology manager: %w", err)
	}
	manager, err := newManagerImpl(logger, filepath.Join(folder, "device-plugins", "kubelet.sock"), machine.Topology, affinity)
	if err != nil {
		return nil, fmt.Errorf("creating the device manager: %w", err)
	}
	affinity.AddHintProvider(logger, manager)
	devices := &Devices{Manager: manager, affinity: affinity, pods: pods}
	ready := config.NewSourcesReady(func(sets.Set[string]) bool { return true })
	if err := manager.Start(logger, devices.active, ready, containermap.NewContainerMap(), sets.New[string]()); err != nil {
		return nil, fmt.Errorf("starting the device manager: %w", err)
	}
	return devices, nil
}

// Stop ends the managers as the end of a kubelet does.
func (d *Devices) Stop() error { return d.Manager.Stop(logr.Discard()) }

// Admit gives a pod its devices, aligned by the topology manager. The error is the kubelet's reason to refuse the pod.
func (d *Devices) Admit(ctx context.Context, pod *corev1.Pod) error {
	d.mutex.Lock()
	d.pods = append(d.pods, pod)
	d.mutex.Unlock()
	result := d.affinity.Admit(ctx, &lifecycle.PodAdmitAttributes{Pod: pod, Operation: lifecycle.AddOperation})
	if !result.Admit {
		d.Remove(pod)
		return fmt.Errorf("%s: %s", result.Reason, result.Message)
	}
	return nil
}

// Remove ends a pod.
func (d *Devices) Remove(pod *corev1.Pod) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	var left []*corev1.Pod
	for _, other := range d.pods {
		if other.UID != pod.UID {
			left = append(left, other)
		}
	}
	d.pods = left
}

// Allocatable is how many units of a resource the kubelet reports in its node's status.allocatable.
func (d *Devices) Allocatable(resource string) int64 {
	_, allocatable, _ := d.Manager.GetCapacity(logr.Discard())
	quantity := allocatable[corev1.ResourceName(resource)]
	return quantity.Value()
}

func (d *Devices) active() []*corev1.Pod {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return append([]*corev1.Pod(nil), d.pods...)
}
