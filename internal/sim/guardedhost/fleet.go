// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guardedhost

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes/rollout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// Fleet are nodes of an API server with such hosts. It plays the kubelets: it runs the pod that hands an instruction over, tells which
// boot a host is in, and starts the agents.
type Fleet struct {
	Client client.Client
	// Dir holds one tree for each host.
	Dir string
	// Namespace is that of the pods that hand instructions over.
	Namespace string
	// Agent runs the agent of a node until its context ends.
	Agent func(ctx context.Context, node, root string) error
	// Pace is the interval between two looks, BootTime how long a host is away when it reboots.
	Pace, BootTime time.Duration

	members map[string]*member
	running sync.WaitGroup
}

// member is one node.
type member struct {
	*Host

	name string
	// handled is the pod that has handed an instruction over last.
	handled types.UID
	stop    context.CancelFunc
	// renewed is when the kubelet has renewed its Lease last.
	renewed time.Time
}

// renewalPause is how long a kubelet waits before it renews its Lease again: ten seconds for a real one.
const renewalPause = time.Second

// Add installs a host and registers its node.
func (f *Fleet) Add(ctx context.Context, name string, machine hosttree.Machine, labels map[string]string) error {
	machine.Hostname = name
	h, err := Install(filepath.Join(f.Dir, name), machine)
	if err != nil {
		return fmt.Errorf("building host %s: %w", name, err)
	}
	all := map[string]string{"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": machine.Architecture}
	maps.Copy(all, labels)
	if err := f.Client.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all}}); err != nil {
		return fmt.Errorf("creating Node %q: %w", name, err)
	}
	m := &member{Host: h, name: name}
	if f.members == nil {
		f.members = map[string]*member{}
	}
	f.members[name] = m
	return f.report(ctx, m, corev1.ConditionTrue)
}

// Names are those of the nodes, ascending.
func (f *Fleet) Names() []string { return slices.Sorted(maps.Keys(f.members)) }

// Host is that of a node; nil where there is none.
func (f *Fleet) Host(name string) *Host {
	if m := f.members[name]; m != nil {
		return m.Host
	}
	return nil
}

// Run lets all nodes live until the context ends. It returns the first thing that a played part has failed in.
func (f *Fleet) Run(ctx context.Context) error {
	failures := make(chan error, len(f.members))
	for _, m := range f.members {
		f.startAgent(ctx, m)
		f.running.Go(func() { failures <- f.live(ctx, m) })
	}
	problems := make([]error, 0, len(f.members))
	for range f.members {
		problems = append(problems, <-failures)
	}
	f.running.Wait()
	return errors.Join(problems...)
}

// startAgent runs the agent, and again when it fails, as its DaemonSet would.
func (f *Fleet) startAgent(ctx context.Context, m *member) {
	ctx, m.stop = context.WithCancel(ctx)
	f.running.Go(func() {
		for ctx.Err() == nil {
			if err := f.Agent(ctx, m.name, m.Dir); err == nil {
				return
			}
			wait(ctx, time.Second)
		}
	})
}

// wait reports whether the time has passed before the context has ended.
func wait(ctx context.Context, long time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(long):
		return true
	}
}

func (f *Fleet) live(ctx context.Context, m *member) error {
	for wait(ctx, f.Pace) {
		if err := f.look(ctx, m); err != nil && ctx.Err() == nil {
			return fmt.Errorf("node %s: %w", m.name, err)
		}
	}
	return nil
}

// look does what there is to do on one node.
func (f *Fleet) look(ctx context.Context, m *member) error {
	if err := f.handOver(ctx, m); err != nil {
		return err
	}
	if m.IsRebooting() {
		return f.reboot(ctx, m)
	}
	if err := m.Live(ctx); err != nil {
		return err
	}
	return f.renew(ctx, m)
}

// renew renews the Lease by which a kubelet says that it lives. One that is not healthy does not.
func (f *Fleet) renew(ctx context.Context, m *member) error {
	isHealthy := m.kubelet.Health() == nil
	if !isHealthy || time.Since(m.renewed) < renewalPause {
		return nil
	}
	m.renewed = time.Now()
	return RenewLease(ctx, f.Client, m.name)
}

// RenewLease writes what a kubelet writes to show that it lives.
func RenewLease(ctx context.Context, writer client.Client, node string) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node}}
	_, err := controllerutil.CreateOrUpdate(ctx, writer, lease, func() error {
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = &node, new(metav1.NowMicro())
		return nil
	})
	// The API server makes the namespace some time after its start.
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("renewing the Lease of node %s: %w", node, err)
	}
	return nil
}

// reboot takes the host down and lets it come up; its agent is away meanwhile.
func (f *Fleet) reboot(ctx context.Context, m *member) error {
	m.stop()
	if err := f.report(ctx, m, corev1.ConditionFalse); err != nil || !wait(ctx, f.BootTime) {
		return err
	}
	if err := m.Live(ctx); err != nil {
		return err
	}
	if err := f.report(ctx, m, corev1.ConditionTrue); err != nil {
		return err
	}
	f.startAgent(ctx, m)
	return nil
}

// report writes what a kubelet says of its node.
func (f *Fleet) report(ctx context.Context, m *member, ready corev1.ConditionStatus) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node := &corev1.Node{}
		if err := f.Client.Get(ctx, client.ObjectKey{Name: m.name}, node); err != nil {
			return err
		}
		node.Status.NodeInfo.BootID = strings.TrimSpace(m.read("/proc/sys/kernel/random/boot_id"))
		// What others say in conditions stays.
		node.Status.Conditions = append(slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady }),
			corev1.NodeCondition{Type: corev1.NodeReady, Status: ready})
		return f.Client.Status().Update(ctx, node)
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reporting the node: %w", err)
	}
	return nil
}

// handOver runs the pod that hands an instruction over, once for each.
func (f *Fleet) handOver(ctx context.Context, m *member) error {
	of := client.ObjectKey{Namespace: f.Namespace, Name: "enact-" + m.name}
	pod, configMap, node := &corev1.Pod{}, &corev1.ConfigMap{}, &corev1.Node{}
	for _, object := range []client.Object{pod, configMap} {
		if err := f.Client.Get(ctx, of, object); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	switch err := f.Client.Get(ctx, client.ObjectKey{Name: m.name}, node); {
	case apierrors.IsNotFound(err):
		// Its kubelet registers it once more.
		return nil
	case err != nil:
		return fmt.Errorf("reading the node: %w", err)
	}
	isOfAnother := pod.Annotations[v1alpha1.AnnotationNumber] != configMap.Annotations[v1alpha1.AnnotationNumber]
	if pod.UID == m.handled || isOfAnother || pod.DeletionTimestamp != nil {
		return nil
	}
	m.handled = pod.UID
	if err := f.setPhase(ctx, pod, corev1.PodRunning); err != nil {
		return err
	}
	chain, err := instruction.ParseChain(configMap.BinaryData[rollout.KeyChainEntry])
	if err != nil {
		return fmt.Errorf("reading the chain of keys: %w", err)
	}
	delivery := guard.Delivery{
		Chain:   chain,
		Program: []byte("lowlatency-guard"), Instruction: configMap.BinaryData[rollout.InstructionEntry],
		Trust: guard.Trust{Key: configMap.BinaryData[rollout.PublicKeyEntry], Node: m.name, NodeUID: string(node.UID)},
	}
	f.running.Go(func() {
		_, err := m.Deliver(ctx, delivery)
		phase, ended := endOf(err)
		// The operator may have removed the pod by now.
		_ = f.setPhase(ctx, pod, phase, ended...)
	})
	return nil
}

// endOf is what a kubelet says of the pod when its program has ended: one that failed is started again after a while.
func endOf(err error) (corev1.PodPhase, []corev1.ContainerStatus) {
	if err == nil {
		return corev1.PodSucceeded, nil
	}
	ended := &corev1.ContainerStateTerminated{ExitCode: 1, Message: "error: " + err.Error()}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		ended.ExitCode = int32(coded.ExitCode()) //nolint:gosec // An exit code is below 256.
	}
	return corev1.PodRunning, []corev1.ContainerStatus{{
		Name: "install-guard", LastTerminationState: corev1.ContainerState{Terminated: ended},
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off restarting failed container"}},
	}}
}

func (f *Fleet) setPhase(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase, containers ...corev1.ContainerStatus) error {
	now := &corev1.Pod{}
	err := f.Client.Get(ctx, client.ObjectKeyFromObject(pod), now)
	if err == nil && now.UID == pod.UID {
		now.Status.Phase, now.Status.ContainerStatuses = phase, containers
		err = f.Client.Status().Update(ctx, now)
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("reporting Pod %s: %w", pod.Name, err)
	}
	return nil
}
