// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package mistakes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/cluster"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

const (
	profileName = "trading"
	poolName    = "x2"
	// tradingLabel is on every node of the fleet but the spare one.
	tradingLabel = "node-role.kubernetes.io/trading"
	// pace of the simulated platform, and how long a host takes to reboot.
	pace     = 150 * time.Millisecond
	bootTime = 400 * time.Millisecond
	// firstPatience is how long the beginning may take in any case.
	firstPatience = 150 * time.Second
)

// world is a cluster with an operator, a profile and a pool in force, and what is seen of it.
type world struct {
	*cluster.Cluster
	ctx      context.Context
	observer *observer
	// link is the operator's way to the API server; stopOperator ends the operator.
	link         *link
	stopOperator func()
	// end ends everything, once.
	end func() error
	// dead are the nodes whose agent was stopped.
	dead map[string]bool
	// machines by node.
	machines map[string]hosttree.Machine
}

// newWorld starts the cluster and waits until profile and pool are in force.
func newWorld(t *testing.T) (*world, error) {
	t.Helper()
	return newWorldWith(t, cluster.Options{}, (*world).startOperator)
}

// newWorldWith does so with options of its own for what is not about speed, and a way to start the operator. It ends with
// the test.
func newWorldWith(t *testing.T, options cluster.Options, operate func(*world) error) (*world, error) {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "mk-") //nolint:usetesting // Paths of unix sockets must be short.
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w := &world{ctx: ctx, dead: map[string]bool{}, machines: map[string]hosttree.Machine{}, observer: newObserver(), link: newLink()}
	options.Dir, options.Pace, options.BootTime = dir, pace, bootTime
	options.AgentPace, options.PluginInterval = agentPace(), 2*time.Second
	w.Cluster, err = cluster.Start(ctx, options)
	if err != nil {
		cancel()
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	w.end = sync.OnceValue(func() error {
		failure := w.Failure()
		cancel()
		return errors.Join(failure, w.Close(), os.RemoveAll(dir))
	})
	t.Cleanup(func() { w.close(t) })
	return w, w.populate(operate)
}

// agentPace is quick: a kubelet that is late after a reboot must not cost two minutes.
func agentPace() cluster.AgentPace {
	return cluster.AgentPace{Interval: time.Second, FullInterval: 4 * time.Second, Window: 200 * time.Millisecond}
}

// close ends everything.
func (w *world) close(t *testing.T) {
	t.Helper()
	if err := w.end(); err != nil {
		t.Error(err)
	}
}

// populate adds nodes, operator, profile and pool.
func (w *world) populate(operate func(*world) error) error {
	w.observer.watch(w)
	for name, machine := range map[string]hosttree.Machine{
		"xeon-1": hosttree.Xeon().Small(), "xeon-2": hosttree.Xeon().Small(), "epyc-1": hosttree.EPYC().Small(),
	} {
		w.machines[name] = machine
		if err := w.Fleet.Add(w.ctx, name, machine, map[string]string{tradingLabel: ""}); err != nil {
			return err
		}
	}
	w.machines["spare"] = hosttree.Xeon().Small()
	if err := w.Fleet.Add(w.ctx, "spare", w.machines["spare"], nil); err != nil {
		return err
	}
	w.StartPlatform(w.ctx)
	if err := operate(w); err != nil {
		return err
	}
	for _, object := range []client.Object{baseProfile(), basePool()} {
		if err := w.Client.Create(w.ctx, object); err != nil {
			return fmt.Errorf("creating what is in force at the beginning: %w", err)
		}
	}
	if err := w.awaitGreen(max(*patience, firstPatience)); err != nil {
		return fmt.Errorf("bringing profile and pool into force: %w", err)
	}
	w.observer.begin()
	return nil
}

// startOperator starts the manager over a new link.
func (w *world) startOperator() error {
	w.link = newLink()
	w.observer.news.restart()
	stop, err := w.StartOperator(w.ctx, func(next http.RoundTripper) http.RoundTripper {
		return w.observer.news.atManager(w.link.over(w.observer.news.atServer(w.observer.ledger.over(next))))
	})
	if err != nil {
		return err
	}
	w.stopOperator = stop
	return nil
}

// baseProfile is the profile that is in force when a history begins and ends.
func baseProfile() *v1alpha1.LowLatencyNodeProfile {
	profile := &v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: profileName}}
	spec := &profile.Spec
	spec.NodeSelector.MatchLabels = v1alpha1.Labels{tradingLabel: ""}
	spec.Pools.MaximumUnavailableNodes = 4
	spec.Memory.DefaultHugepageSize = "1Gi"
	spec.Memory.Hugepages = []v1alpha1.HugepageReservation{{Size: "1Gi", Count: 2}}
	spec.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{"audit=0"}
	spec.Network.NICs = []v1alpha1.NICSelector{{Vendor: "1924"}}
	spec.Verification.Gate = v1alpha1.GateTaint
	return profile
}

// basePool is the pool that is in force when a history begins and ends.
func basePool() *v1alpha1.BypassNICPool { return onloadPool(poolName, "lowlatency.dev/x2") }

// onloadPool takes the Solarflare NICs of all nodes of the fleet.
func onloadPool(name, resource string) *v1alpha1.BypassNICPool {
	pool := &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	spec := &pool.Spec
	spec.NodeSelector.MatchLabels = v1alpha1.Labels{tradingLabel: ""}
	spec.NICs = []v1alpha1.NICSelector{{Vendor: "1924", Devices: []v1alpha1.PCIID{"0b03"}}}
	spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackOnload, Onload: &v1alpha1.OnloadStack{
		UserSpace: v1alpha1.UserSpaceSpec{Source: v1alpha1.UserSpaceHostPath, HostPath: "/opt/onload"},
	}}
	spec.ResourceName = resource
	spec.Hugepages = []v1alpha1.NICHugepages{{Size: "2Mi", CountPerNIC: 8}}
	return pool
}

// editProfile changes the spec of the profile as a user does.
func (w *world) editProfile(change func(*v1alpha1.LowLatencyNodeProfileSpec)) error {
	profile := &v1alpha1.LowLatencyNodeProfile{}
	if err := w.Client.Get(w.ctx, client.ObjectKey{Name: profileName}, profile); err != nil {
		return fmt.Errorf("reading the profile: %w", err)
	}
	before := profile.DeepCopy()
	change(&profile.Spec)
	if err := w.Client.Patch(w.ctx, profile, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("changing the profile: %w", err)
	}
	return nil
}

// editPool changes the spec of the pool as a user does.
func (w *world) editPool(change func(*v1alpha1.BypassNICPoolSpec)) error {
	pool := &v1alpha1.BypassNICPool{}
	if err := w.Client.Get(w.ctx, client.ObjectKey{Name: poolName}, pool); err != nil {
		return fmt.Errorf("reading the pool: %w", err)
	}
	before := pool.DeepCopy()
	change(&pool.Spec)
	if err := w.Client.Patch(w.ctx, pool, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("changing the pool: %w", err)
	}
	return nil
}

// create makes an object.
func (w *world) create(object client.Object) error {
	if err := w.Client.Create(w.ctx, object); err != nil {
		return fmt.Errorf("creating %s: %w", object.GetName(), err)
	}
	return nil
}

// remove deletes an object, if it is there.
func (w *world) remove(object client.Object) error {
	if err := w.Client.Delete(w.ctx, object); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s: %w", object.GetName(), err)
	}
	return nil
}

// label sets labels of a node; an empty list of values takes them away.
func (w *world) label(name string, set map[string]*string) error {
	node := &corev1.Node{}
	if err := w.Client.Get(w.ctx, client.ObjectKey{Name: name}, node); err != nil {
		return fmt.Errorf("reading Node %s: %w", name, err)
	}
	before := node.DeepCopy()
	for key, value := range set {
		delete(node.Labels, key)
		if value != nil {
			node.Labels[key] = *value
		}
	}
	if err := w.Client.Patch(w.ctx, node, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("labelling Node %s: %w", name, err)
	}
	return nil
}

// pauseMachineConfigPools is what an administrator does before a maintenance.
func (w *world) pauseMachineConfigPools(paused bool) error {
	var pools mcfgv1.MachineConfigPoolList
	if err := w.Client.List(w.ctx, &pools, client.HasLabels{v1alpha1.LabelProfile}); err != nil {
		return fmt.Errorf("listing MachineConfigPools: %w", err)
	}
	for i := range pools.Items {
		before := pools.Items[i].DeepCopy()
		pools.Items[i].Spec.Paused = paused
		if err := w.Client.Patch(w.ctx, &pools.Items[i], client.MergeFrom(before), client.FieldOwner("kubectl-patch")); err != nil {
			return fmt.Errorf("pausing MachineConfigPool %s: %w", pools.Items[i].Name, err)
		}
	}
	return nil
}

// restore brings back what was in force at the beginning: the correction that ends every history.
func (w *world) restore() error {
	const kinds = 3
	failures := make([]error, 0, len(w.machines)+kinds)
	for node := range w.machines {
		failures = append(failures, w.restoreNode(node))
	}
	// What was done to pools last is undone first.
	failures = append(failures, w.restorePools(), w.restoreProfiles(), w.pauseMachineConfigPools(false))
	return errors.Join(failures...)
}

// restoreNode gives a node its labels and its agent back.
func (w *world) restoreNode(name string) error {
	empty := ""
	labels := map[string]*string{tradingLabel: &empty, "role": nil}
	if name == "spare" {
		labels[tradingLabel] = nil
	}
	if !slices.Contains(w.Fleet.Names(), name) {
		set := map[string]string{tradingLabel: ""}
		if name == "spare" {
			set = nil
		}
		return w.Fleet.Add(w.ctx, name, w.machines[name], set)
	}
	if w.dead[name] {
		delete(w.dead, name)
		if err := w.Fleet.StartAgent(w.ctx, name); err != nil {
			return err
		}
	}
	return w.label(name, labels)
}

// restoreProfiles leaves the base profile as the only one.
func (w *world) restoreProfiles() error {
	var profiles v1alpha1.LowLatencyNodeProfileList
	if err := w.Client.List(w.ctx, &profiles); err != nil {
		return fmt.Errorf("listing profiles: %w", err)
	}
	found := false
	for i := range profiles.Items {
		profile := &profiles.Items[i]
		if profile.Name != profileName {
			if err := w.remove(profile); err != nil {
				return err
			}
			continue
		}
		found = profile.DeletionTimestamp.IsZero()
		if found {
			if err := w.editProfile(func(spec *v1alpha1.LowLatencyNodeProfileSpec) { *spec = baseProfile().Spec }); err != nil {
				return err
			}
		}
	}
	if found {
		return nil
	}
	return w.recreate(baseProfile())
}

// restorePools leaves the base pool as the only one. Pools of others go first, so that the base one meets no conflict.
func (w *world) restorePools() error {
	var pools v1alpha1.BypassNICPoolList
	if err := w.Client.List(w.ctx, &pools); err != nil {
		return fmt.Errorf("listing pools: %w", err)
	}
	wanted, found := basePool(), false
	for i := range pools.Items {
		pool := &pools.Items[i]
		if pool.Name != poolName || !pool.DeletionTimestamp.IsZero() || pool.Spec.ResourceName != wanted.Spec.ResourceName {
			if err := w.remove(pool); err != nil {
				return err
			}
			continue
		}
		found = true
		if err := w.editPool(func(spec *v1alpha1.BypassNICPoolSpec) { *spec = wanted.Spec }); err != nil {
			return err
		}
	}
	if found {
		return nil
	}
	return w.recreate(wanted)
}

// recreate makes an object as soon as the one of the same name, which is being deleted, has gone.
func (w *world) recreate(object client.Object) error {
	deadline := time.Now().Add(*patience)
	for {
		err := w.Client.Create(w.ctx, object)
		if err == nil {
			return nil
		}
		if !apierrors.IsAlreadyExists(err) || time.Now().After(deadline) {
			return fmt.Errorf("creating %s again: %w", object.GetName(), err)
		}
		object.SetResourceVersion("")
		time.Sleep(pace)
	}
}

// collectRendered deletes rendered configurations that nothing refers to, which the platform would keep for a while.
func (w *world) collectRendered() error {
	var configs mcfgv1.MachineConfigList
	var pools mcfgv1.MachineConfigPoolList
	var nodes corev1.NodeList
	for _, list := range []client.ObjectList{&configs, &pools, &nodes} {
		if err := w.Client.List(w.ctx, list); err != nil {
			return fmt.Errorf("listing what the platform has rendered: %w", err)
		}
	}
	used := map[string]bool{}
	for i := range pools.Items {
		used[pools.Items[i].Spec.Configuration.Name], used[pools.Items[i].Status.Configuration.Name] = true, true
	}
	for i := range nodes.Items {
		used[nodes.Items[i].Annotations[currentConfig]], used[nodes.Items[i].Annotations[desiredConfig]] = true, true
	}
	for i := range configs.Items {
		if strings.HasPrefix(configs.Items[i].Name, "rendered-") && !used[configs.Items[i].Name] {
			if err := w.remove(&configs.Items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
