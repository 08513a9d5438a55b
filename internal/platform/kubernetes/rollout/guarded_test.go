// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/agent"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodeclient"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/guardedhost"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

// withGuards has nodes whose guards and agents are the real ones, on trees of files.
func (f *fleet) withGuards(names ...string) *guardedhost.Fleet {
	f.t.Helper()
	agents, err := nodeclient.New(f.env.Config())
	check(f.t, err)
	hosts := &guardedhost.Fleet{
		Client: f.client, Dir: f.t.TempDir(), Namespace: controllers.DefaultAgentNamespace, Pace: pause, BootTime: pause,
		Agent: func(ctx context.Context, node, root string) error {
			a := &agent.Agent{
				Client: agents, NodeName: node, Namespace: namespace, Root: root, Clock: clock.RealClock{}, Interval: time.Second, FullInterval: time.Second,
				Heartbeat: agent.Heartbeat{Namespace: controllers.DefaultAgentNamespace}, Guard: guard.ReadReport,
			}
			return a.Run(ctx)
		},
	}
	for _, name := range names {
		check(f.t, hosts.Add(f.t.Context(), name, hosttree.Xeon(), map[string]string{"trading": ""}))
	}
	return hosts
}

// TestRolloutWithRealGuards brings a profile to two hosts by operator, guards and agents of the project alone, breaks it, corrects it
// and deletes it: the files of each host are what they were.
func TestRolloutWithRealGuards(t *testing.T) {
	f := newFleet(t)
	hosts := f.withGuards("n1", "n2")
	before := manifests(t, hosts)
	f.letLive(hosts)
	profile := objects.MakeProfile("trading").Selecting(v1alpha1.Labels{"trading": ""}).Obj()
	check(t, f.client.Create(t.Context(), profile))
	f.until("both hosts are proven", func() string { return f.guarded(hosts, 1, 1) })

	f.failsOnFirst(hosts)
	// The first has come back with its old line meanwhile, in one start: it was the default.
	f.until("the corrected profile is proven", func() string { return f.guarded(hosts, 3, 2) })

	f.giveBack(hosts, profile, before)
}

// TestNodesMadeAnewWithRealGuards deletes the Node of a host in the middle of its turn, and that of one whose plan is in force, and has each register
// again: nothing is done twice, and the profile can be deleted.
func TestNodesMadeAnewWithRealGuards(t *testing.T) {
	f := newFleet(t)
	hosts := f.withGuards("n1", "n2")
	before := manifests(t, hosts)
	f.letLive(hosts)
	profile := objects.MakeProfile("trading").Selecting(v1alpha1.Labels{"trading": ""}).Obj()
	check(t, f.client.Create(t.Context(), profile))
	f.until("the first host has its instruction", func() string {
		if got := f.reported("n1"); got == nil || got.Number == 0 {
			return "it has none"
		}
		return ""
	})
	f.makeAnew("n1")
	f.until("both hosts are proven", func() string { return f.guarded(hosts, 1, 1) })
	f.makeAnew("n2")
	f.until("both hosts are proven, and none has rebooted once more", func() string {
		if got := f.reported("n2"); got == nil || got.InForcePlanHash == "" {
			return "the agent of the second host has not told yet what is in force"
		}
		return f.guarded(hosts, 1, 1)
	})
	f.giveBack(hosts, profile, before)
}

// giveBack deletes the profile: the files of each host are what they were.
func (f *fleet) giveBack(hosts *guardedhost.Fleet, profile *v1alpha1.LowLatencyNodeProfile, before map[string]map[string]string) {
	f.t.Helper()
	check(f.t, f.client.Delete(f.t.Context(), profile))
	f.until("the profile has gone", func() string {
		if f.client.Get(f.t.Context(), client.ObjectKeyFromObject(profile), &v1alpha1.LowLatencyNodeProfile{}) == nil {
			return "it is there"
		}
		return f.leftovers()
	})
	after := manifests(f.t, hosts)
	for name := range before {
		if diff := cmp.Diff(before[name], after[name]); diff != "" {
			f.t.Errorf("host %s before and after (-before +after):\n%s", name, diff)
		}
	}
}

// reported is what the agent of a node says of its guard.
func (f *fleet) reported(name string) *v1alpha1.NodeEnactment {
	report := &v1alpha1.LowLatencyNode{}
	if f.client.Get(f.t.Context(), client.ObjectKey{Name: name}, report) != nil {
		return nil
	}
	return report.Status.Enactment
}

// makeAnew deletes a Node and lets its kubelet register once more: with the same name, labels and boot, and another UID.
func (f *fleet) makeAnew(name string) {
	f.t.Helper()
	node := &corev1.Node{}
	check(f.t, f.client.Get(f.t.Context(), client.ObjectKey{Name: name}, node))
	check(f.t, f.client.Delete(f.t.Context(), node))
	f.collect(node.UID)
	again := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"trading": ""}}}
	f.until("the Node is gone", func() string {
		if err := f.client.Create(f.t.Context(), again.DeepCopy()); err != nil {
			return err.Error()
		}
		return ""
	})
}

// collect plays the garbage collector: what a Node owned goes with it.
func (f *fleet) collect(owner types.UID) {
	f.t.Helper()
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.ConfigMapList{}, &coordinationv1.LeaseList{}, &v1alpha1.LowLatencyNodeList{}} {
		check(f.t, f.client.List(f.t.Context(), list))
		check(f.t, apimeta.EachListItem(list, func(item runtime.Object) error {
			object, ok := item.(client.Object)
			if !ok || !slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == owner }) {
				return nil
			}
			return client.IgnoreNotFound(f.client.Delete(f.t.Context(), object, client.GracePeriodSeconds(0)))
		}))
	}
}

// letLive lets the hosts live until the end of the test.
func (f *fleet) letLive(hosts *guardedhost.Fleet) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- hosts.Run(ctx) }()
	f.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
		if f.t.Failed() {
			f.t.Logf("n1: %s\nn2: %s", hosts.Host("n1").Said(), hosts.Host("n2").Said())
		}
	})
}

// failsOnFirst: the kernel of the first host does not come up with an argument, and another one is given.
func (f *fleet) failsOnFirst(hosts *guardedhost.Fleet) {
	f.t.Helper()
	arguments := func(argument v1alpha1.KernelArgument) {
		f.change(func(spec *v1alpha1.LowLatencyNodeProfileSpec) {
			spec.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{argument}
		})
	}
	hosts.Host("n1").ComesUp = func(line string) bool { return !strings.Contains(line, "nosuch.option=1") }
	arguments("nosuch.option=1")
	f.until("the trial has failed on the first host", func() string {
		c := f.condition(v1alpha1.ConditionDegraded)
		if c.Reason != v1alpha1.ReasonEnactmentFailed || !strings.Contains(c.Message, "node n1") || !strings.Contains(c.Message, "NotStarted") {
			return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
		}
		return f.leftovers()
	})
	arguments("audit=0")
}

func manifests(t *testing.T, hosts *guardedhost.Fleet) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	for _, name := range hosts.Names() {
		manifest, err := hosts.Host(name).Manifest()
		check(t, err)
		all[name] = manifest
	}
	return all
}

// guarded says what is missing until the profile is proven, with as many boots of both hosts.
func (f *fleet) guarded(hosts *guardedhost.Fleet, first, second int) string {
	if c := f.condition(v1alpha1.ConditionReady); c.Status != metav1.ConditionTrue {
		return "it is not ready: " + c.Message
	}
	if got := [2]int{hosts.Host("n1").Boots(), hosts.Host("n2").Boots()}; got != [2]int{first, second} {
		return fmt.Sprint("boots: ", got)
	}
	return f.leftovers()
}
