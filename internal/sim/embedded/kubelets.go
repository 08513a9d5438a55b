// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/atomicfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/coreos"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/fakekubelet"
)

// StartPlugin runs the device plugin of a pool on one node until the context ends. It reads the pool from a file, and
// registers in the kubelet's folder.
type StartPlugin func(ctx context.Context, plugin PluginOnNode) error

// PluginOnNode says where a device plugin finds what it needs.
type PluginOnNode struct {
	Node, Root, PoolFile, KubeletFolder, CDIFolder string
}

// Kubelets simulates what a kubelet does for device plugins on every simulated node: it runs the pods of the pools'
// DaemonSets, takes the registrations of their plugins on a real unix socket, and puts what they advertise into the
// Node's allocatable. No container is ever created.
type Kubelets struct {
	Client client.Client
	Fleet  *Fleet
	// Dir holds a folder for each kubelet. Its path must be short, as that of a unix socket has at most 107 bytes.
	Dir    string
	Plugin StartPlugin
	Clock  clock.WithTicker
	// Interval between two looks at the cluster.
	Interval time.Duration

	mutex    sync.Mutex
	kubelets map[string]*simulatedKubelet
	plugins  sync.WaitGroup
}

// simulatedKubelet is the kubelet of one node with the pods that it runs.
type simulatedKubelet struct {
	kubelet *fakekubelet.Kubelet
	dir     string
	// machine is the one on which it runs: another one may come under the same name.
	machine *member
	// boots is how often the node had rebooted when the kubelet started.
	boots int
	pods  map[string]*pluginPod
	// resources are those that a plugin has served since the kubelet was there.
	resources map[corev1.ResourceName]bool
}

// pluginPod is the device plugin of a pool on one node.
type pluginPod struct {
	stop context.CancelFunc
	// ended is closed when it has ended.
	ended    chan struct{}
	resource corev1.ResourceName
}

// Run works until the context ends, and then stops every plugin.
func (k *Kubelets) Run(ctx context.Context) error {
	err := repeat(ctx, k.Clock, k.Interval, k.Once)
	k.plugins.Wait()
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, kubelet := range k.kubelets {
		kubelet.kubelet.Stop()
	}
	return err
}

// PodResources is the socket on which the kubelet of a node tells who holds what.
func (k *Kubelets) PodResources(node string) string {
	return fakekubelet.New(filepath.Join(k.Dir, node)).PodResourcesSocket()
}

// Once runs what should run on every node, and reports what its plugins advertise.
func (k *Kubelets) Once(ctx context.Context) error {
	var daemonSets appsv1.DaemonSetList
	if err := k.Client.List(ctx, &daemonSets, client.HasLabels{v1alpha1.LabelBypassPool}); err != nil {
		return fmt.Errorf("listing DaemonSets: %w", err)
	}
	var nodes corev1.NodeList
	if err := k.Client.List(ctx, &nodes); err != nil {
		return fmt.Errorf("listing Nodes: %w", err)
	}
	k.forgetGone(nodes.Items)
	ready := map[string]int32{}
	wanted := map[string]int32{}
	// What fails on one node holds up no other.
	var failures []error
	for i := range nodes.Items {
		m, err := k.Fleet.member(nodes.Items[i].Name)
		if err != nil || m.host == nil {
			continue
		}
		chosen, err := k.selecting(&nodes.Items[i], daemonSets.Items)
		if err != nil {
			return err
		}
		failures = append(failures, k.onNode(ctx, m, &nodes.Items[i], chosen))
		for _, daemonSet := range chosen {
			wanted[daemonSet.Name]++
			ready[daemonSet.Name] += k.connected(nodes.Items[i].Name, daemonSet.Name)
		}
	}
	for i := range daemonSets.Items {
		if err := k.reportPods(ctx, &daemonSets.Items[i], wanted[daemonSets.Items[i].Name], ready[daemonSets.Items[i].Name]); err != nil {
			return err
		}
	}
	return errors.Join(failures...)
}

// forgetGone stops the kubelets of nodes that are no more, and their plugins.
func (k *Kubelets) forgetGone(nodes []corev1.Node) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for name, gone := range k.kubelets {
		if slices.ContainsFunc(nodes, func(node corev1.Node) bool { return node.Name == name }) {
			continue
		}
		gone.end()
		delete(k.kubelets, name)
	}
}

// end stops the kubelet and what it runs, and returns when all has ended: what comes next finds no socket of it that would
// disappear.
func (k *simulatedKubelet) end() {
	for _, pod := range k.pods {
		pod.stop()
		<-pod.ended
	}
	k.kubelet.Stop()
}

// selecting are the DaemonSets that want a device plugin on the node. DRA drivers are not run.
func (k *Kubelets) selecting(node *corev1.Node, all []appsv1.DaemonSet) ([]*appsv1.DaemonSet, error) {
	var chosen []*appsv1.DaemonSet
	for i := range all {
		pod := &corev1.Pod{Spec: all[i].Spec.Template.Spec}
		matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
		if err != nil {
			return nil, fmt.Errorf("DaemonSet %s: its node affinity: %w", all[i].Name, err)
		}
		if dynamic, _ := manifests.IsDriver(&all[i]); matches && !dynamic && all[i].DeletionTimestamp.IsZero() {
			chosen = append(chosen, &all[i])
		}
	}
	return chosen, nil
}

// onNode makes one kubelet run exactly the given DaemonSets, and offer the CPUs of its configuration.
func (k *Kubelets) onNode(ctx context.Context, machine *member, node *corev1.Node, daemonSets []*appsv1.DaemonSet) error {
	kubelet, err := k.kubeletOf(node.Name, machine)
	if err != nil {
		return err
	}
	if err := kubelet.offerCPUs(machine.host); err != nil {
		return err
	}
	for name, pod := range kubelet.pods {
		if !slices.ContainsFunc(daemonSets, func(d *appsv1.DaemonSet) bool { return d.Name == name }) {
			pod.stop()
			k.mutex.Lock()
			delete(kubelet.pods, name)
			k.mutex.Unlock()
		}
	}
	for _, daemonSet := range daemonSets {
		if err := k.runPod(ctx, node.Name, kubelet, daemonSet); err != nil {
			return err
		}
	}
	return k.reportAllocatable(ctx, node, kubelet)
}

// kubeletOf starts the kubelet of a node, or starts it again after the node has rebooted. A machine that has replaced another
// has a kubelet of its own. What fails to start is started the next time.
func (k *Kubelets) kubeletOf(name string, machine *member) (*simulatedKubelet, error) {
	boots := k.Fleet.Reboots(name)
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.kubelets == nil {
		k.kubelets = map[string]*simulatedKubelet{}
	}
	found := k.kubelets[name]
	if found != nil && found.machine != machine {
		found.end()
		delete(k.kubelets, name)
		found = nil
	}
	if found == nil {
		dir := filepath.Join(k.Dir, name)
		found = &simulatedKubelet{
			kubelet: fakekubelet.New(dir), dir: dir, machine: machine, boots: boots,
			pods: map[string]*pluginPod{}, resources: map[corev1.ResourceName]bool{},
		}
		if err := found.kubelet.Start(); err != nil {
			return nil, fmt.Errorf("starting the simulated kubelet of node %s: %w", name, err)
		}
		k.kubelets[name] = found
	}
	if found.boots != boots {
		if err := found.kubelet.Restart(); err != nil {
			return nil, fmt.Errorf("starting the simulated kubelet of node %s again: %w", name, err)
		}
		found.boots = boots
	}
	return found, nil
}

// offerCPUs says which CPUs the kubelet may give to one container alone.
func (k *simulatedKubelet) offerCPUs(of *coreos.Host) error {
	offered, err := of.AllocatableCPUs()
	if err != nil {
		return fmt.Errorf("the CPUs that a simulated kubelet offers: %w", err)
	}
	ids := make([]int64, 0, offered.Len())
	for _, id := range offered.IDs() {
		ids = append(ids, int64(id))
	}
	k.kubelet.SetAllocatable(ids)
	return nil
}

// runPod gives the device plugin its file, and starts it if it does not run.
func (k *Kubelets) runPod(ctx context.Context, node string, kubelet *simulatedKubelet, daemonSet *appsv1.DaemonSet) error {
	var config corev1.ConfigMap
	if err := k.Client.Get(ctx, client.ObjectKeyFromObject(daemonSet), &config); err != nil {
		return fmt.Errorf("reading ConfigMap %s, which a pod on node %s mounts: %w", daemonSet.Name, node, err)
	}
	content := config.Data[v1alpha1.PoolKey]
	pool, err := bypass.ParsePool([]byte(content))
	if err != nil {
		return fmt.Errorf("ConfigMap %s: %w", daemonSet.Name, err)
	}
	file := filepath.Join(kubelet.dir, daemonSet.Name, v1alpha1.PoolKey)
	if err := writeIfChanged(file, content); err != nil {
		return fmt.Errorf("mounting ConfigMap %s on node %s: %w", daemonSet.Name, node, err)
	}
	served := corev1.ResourceName(pool.Spec.ResourceName)
	kubelet.resources[served] = true
	if pod := kubelet.pods[daemonSet.Name]; pod != nil {
		pod.resource = served
		return nil
	}
	return k.startPod(ctx, node, kubelet, daemonSet.Name, &pluginPod{resource: served}, file)
}

// startPod starts the device plugin of a DaemonSet.
func (k *Kubelets) startPod(ctx context.Context, node string, kubelet *simulatedKubelet, daemonSet string, pod *pluginPod, file string) error {
	root, err := k.Fleet.Root(node)
	if err != nil {
		return err
	}
	cdi := filepath.Join(kubelet.dir, "cdi")
	if err := os.MkdirAll(cdi, 0o755); err != nil {
		return fmt.Errorf("creating the folder of CDI specifications of node %s: %w", node, err)
	}
	plugin := PluginOnNode{Node: node, Root: root, PoolFile: file, KubeletFolder: kubelet.kubelet.Folder(), CDIFolder: cdi}
	podCtx, stop := context.WithCancel(ctx)
	pod.stop, pod.ended = stop, make(chan struct{})
	k.mutex.Lock()
	kubelet.pods[daemonSet] = pod
	k.mutex.Unlock()
	k.plugins.Go(func() {
		defer close(pod.ended)
		k.keepRunning(podCtx, plugin)
	})
	return nil
}

// keepRunning starts a plugin that has failed again, as its DaemonSet would.
func (k *Kubelets) keepRunning(ctx context.Context, plugin PluginOnNode) {
	for ctx.Err() == nil {
		if err := k.Plugin(ctx, plugin); err == nil {
			return
		}
		k.Clock.Sleep(time.Second)
	}
}

// connected is 1 when the plugin of a DaemonSet on a node is registered, else 0.
func (k *Kubelets) connected(node, daemonSet string) int32 {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	kubelet := k.kubelets[node]
	if kubelet == nil || kubelet.pods[daemonSet] == nil {
		return 0
	}
	return int32(min(1, kubelet.kubelet.Connected(string(kubelet.pods[daemonSet].resource)))) //nolint:gosec // 0 or 1.
}

// reportAllocatable puts what the plugins advertise into the status of the Node.
func (k *Kubelets) reportAllocatable(ctx context.Context, node *corev1.Node, kubelet *simulatedKubelet) error {
	before := node.DeepCopy()
	if node.Status.Allocatable == nil {
		node.Status.Allocatable, node.Status.Capacity = corev1.ResourceList{}, corev1.ResourceList{}
	}
	for served := range kubelet.resources {
		name := string(served)
		if kubelet.kubelet.Lists(name) == 0 {
			continue
		}
		node.Status.Capacity[served] = *resource.NewQuantity(int64(len(kubelet.kubelet.Devices(name))), resource.DecimalSI)
		node.Status.Allocatable[served] = *resource.NewQuantity(int64(len(kubelet.kubelet.Allocatable(name))), resource.DecimalSI)
	}
	if sameResources(before.Status.Allocatable, node.Status.Allocatable) && sameResources(before.Status.Capacity, node.Status.Capacity) {
		return nil
	}
	if err := k.Client.Status().Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("reporting what is allocatable on node %s: %w", node.Name, err)
	}
	return nil
}

func sameResources(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, quantity := range a {
		if other, ok := b[name]; !ok || quantity.Cmp(other) != 0 {
			return false
		}
	}
	return true
}

// reportPods writes the status of a DaemonSet.
func (k *Kubelets) reportPods(ctx context.Context, daemonSet *appsv1.DaemonSet, wanted, ready int32) error {
	before := daemonSet.DeepCopy()
	status := &daemonSet.Status
	status.ObservedGeneration = daemonSet.Generation
	status.DesiredNumberScheduled, status.CurrentNumberScheduled, status.UpdatedNumberScheduled = wanted, wanted, wanted
	status.NumberReady, status.NumberAvailable, status.NumberUnavailable = ready, ready, wanted-ready
	if before.Status.DesiredNumberScheduled == wanted && before.Status.NumberReady == ready &&
		before.Status.ObservedGeneration == daemonSet.Generation {
		return nil
	}
	if err := k.Client.Status().Patch(ctx, daemonSet, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("reporting the pods of DaemonSet %s: %w", daemonSet.Name, err)
	}
	return nil
}

// writeIfChanged writes a file whose readers watch it, and only when its content is another.
func writeIfChanged(path, content string) error {
	found, err := os.ReadFile(path)
	if err == nil && string(found) == content {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("creating the folder of %s: %w", path, err)
	}
	return atomicfile.Replace(path, []byte(content), 0o600)
}
