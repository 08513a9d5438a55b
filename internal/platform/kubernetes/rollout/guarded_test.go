// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	check(t, f.client.Delete(t.Context(), profile))
	f.until("the profile has gone", func() string {
		if f.client.Get(t.Context(), client.ObjectKeyFromObject(profile), &v1alpha1.LowLatencyNodeProfile{}) == nil {
			return "it is there"
		}
		return f.leftovers()
	})
	after := manifests(t, hosts)
	for name := range before {
		if diff := cmp.Diff(before[name], after[name]); diff != "" {
			t.Errorf("host %s before and after (-before +after):\n%s", name, diff)
		}
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
