// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/coreos"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// StartAgent runs the agent of one node, reading the host below root, until the context ends.
type StartAgent func(ctx context.Context, node, root string) error

// Fleet is a set of nodes with simulated hosts. On every host that is up runs a real agent.
type Fleet struct {
	Client client.Client
	// Dir holds one tree per host.
	Dir   string
	Agent StartAgent
	Clock clock.WithTicker
	// BootTime is how long a host stays away when it reboots.
	BootTime time.Duration

	mutex   sync.Mutex
	members map[string]*member
	agents  sync.WaitGroup
}

// member is one node of a fleet.
type member struct {
	host *coreos.Host
	// root is the folder that the agent reads; "/" for the real host.
	root    string
	stop    context.CancelFunc
	reboots int
	// tuned is the profile in force, given the one that the Node Tuning Operator has handed over last.
	tuned, given Profile
}

// Add builds the host tree of a machine, boots it untuned and registers the node.
func (f *Fleet) Add(ctx context.Context, name string, machine hosttree.Machine, labels map[string]string) error {
	machine.Hostname = name
	dir := filepath.Join(f.Dir, name)
	if err := machine.Write(dir); err != nil {
		return fmt.Errorf("building host %s: %w", name, err)
	}
	host := &coreos.Host{Name: name, Dir: dir, BaseCommandLine: machine.BaseCommandLine()}
	if err := host.Boot(ctx, &mcfgv1.MachineConfig{}); err != nil {
		return err
	}
	return f.register(ctx, name, &member{host: host, root: dir}, machine.Architecture, labels)
}

// AddRealHost registers the machine on which this program runs. Nothing ever changes it: a reboot of
// this node leaves it as it is.
func (f *Fleet) AddRealHost(ctx context.Context, name, architecture string, labels map[string]string) error {
	return f.register(ctx, name, &member{root: "/"}, architecture, labels)
}

// register creates the Node object and starts the agent.
func (f *Fleet) register(ctx context.Context, name string, m *member, architecture string, labels map[string]string) error {
	all := map[string]string{
		"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": architecture,
		"node-role.kubernetes.io/worker": "",
	}
	maps.Copy(all, labels)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: all, Annotations: map[string]string{annotationState: stateDone},
	}}
	if err := f.Client.Create(ctx, node); err != nil {
		return fmt.Errorf("creating Node %q: %w", name, err)
	}
	if err := f.reportBoot(ctx, name, m.root); err != nil {
		return err
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.members == nil {
		f.members = map[string]*member{}
	}
	f.members[name] = m
	f.startAgent(ctx, name, m)
	return nil
}

// reportBoot puts the identifier of the host's boot into the status of its Node, as a kubelet does when it starts. A Node that
// has gone is left alone.
func (f *Fleet) reportBoot(ctx context.Context, name, root string) error {
	boot, err := os.ReadFile(filepath.Join(root, "proc/sys/kernel/random/boot_id"))
	if err != nil {
		return fmt.Errorf("reading which boot of host %s this is: %w", name, err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := fmt.Appendf(nil, `{"status":{"nodeInfo":{"bootID":%q}}}`, strings.TrimSpace(string(boot)))
	if err := f.Client.Status().Patch(ctx, node, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reporting the boot of Node %q: %w", name, err)
	}
	return nil
}

// startAgent runs the agent until stop is called. An agent that fails is started again, as its
// DaemonSet would.
func (f *Fleet) startAgent(ctx context.Context, name string, m *member) {
	agentCtx, cancel := context.WithCancel(ctx)
	m.stop = cancel
	f.agents.Go(func() {
		for agentCtx.Err() == nil {
			if err := f.Agent(agentCtx, name, m.root); err == nil {
				return
			}
			f.Clock.Sleep(time.Second)
		}
	})
}

// StopAgent ends the agent of a node, as when its pod is evicted; until StartAgent or a reboot there is none.
func (f *Fleet) StopAgent(name string) error {
	m, err := f.member(name)
	if err != nil {
		return err
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	m.stop()
	return nil
}

// StartAgent starts the agent of a node anew, whether or not one runs.
func (f *Fleet) StartAgent(ctx context.Context, name string) error {
	m, err := f.member(name)
	if err != nil {
		return err
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	m.stop()
	f.startAgent(ctx, name, m)
	return nil
}

// Remove takes a node out of the cluster for good, with its simulated host.
func (f *Fleet) Remove(ctx context.Context, name string) error {
	m, err := f.member(name)
	if err != nil {
		return err
	}
	f.mutex.Lock()
	m.stop()
	delete(f.members, name)
	f.mutex.Unlock()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := f.Client.Delete(ctx, node); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Node %q: %w", name, err)
	}
	if m.host == nil {
		return nil
	}
	if err := os.RemoveAll(m.host.Dir); err != nil {
		return fmt.Errorf("removing host %s: %w", name, err)
	}
	return nil
}

// Wait returns when all agents have ended after the context of Add ended.
func (f *Fleet) Wait() { f.agents.Wait() }

// Names returns the names of the nodes in ascending order.
func (f *Fleet) Names() []string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return slices.Sorted(maps.Keys(f.members))
}

// Root returns the folder that the agent of a node reads.
func (f *Fleet) Root(name string) (string, error) {
	m, err := f.member(name)
	if err != nil {
		return "", err
	}
	return m.root, nil
}

// Reboots returns how often a node has rebooted since it was added.
func (f *Fleet) Reboots(name string) int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if m := f.members[name]; m != nil {
		return m.reboots
	}
	return 0
}

func (f *Fleet) member(name string) (*member, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	m := f.members[name]
	if m == nil {
		return nil, fmt.Errorf("the fleet has no node %s", name)
	}
	return m, nil
}

// Reboot takes a simulated host down and lets it come up with a rendered configuration; its kubelet reports the new boot. The
// agent is away meanwhile. The real host is left as it is.
func (f *Fleet) Reboot(ctx context.Context, name string, rendered *mcfgv1.MachineConfig) error {
	m, err := f.member(name)
	if err != nil || m.host == nil {
		return err
	}
	m.stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("rebooting host %s: %w", name, ctx.Err())
	case <-f.Clock.After(f.BootTime):
	}
	if err := f.boot(ctx, name, m, rendered); err != nil {
		return err
	}
	if err := f.reportBoot(ctx, name, m.root); err != nil {
		return err
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.members[name] == m {
		f.startAgent(ctx, name, m)
	}
	return nil
}

// boot lets a host come up, unless it has left the fleet.
func (f *Fleet) boot(ctx context.Context, name string, m *member, rendered *mcfgv1.MachineConfig) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.members[name] != m {
		return nil
	}
	m.reboots++
	if err := m.host.Boot(ctx, rendered); err != nil {
		return err
	}
	m.tuned = m.given
	return m.host.ApplyTuned(m.tuned.Text)
}

// Tune hands a TuneD profile to a node; it is applied at once, unless it is deferred and the node has one of that name, and
// after every reboot. The same profile again changes nothing, and so does one for a node that has gone.
func (f *Fleet) Tune(name string, profile Profile) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	m := f.members[name]
	if m == nil || m.host == nil {
		return nil
	}
	m.given = profile
	if m.tuned.Text == profile.Text || profile.Deferred && m.tuned.Name == profile.Name {
		return nil
	}
	m.tuned = profile
	return m.host.ApplyTuned(profile.Text)
}
