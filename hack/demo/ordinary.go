// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodeclient"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes/rollout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/cluster"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/guardedhost"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

//go:embed ordinary.yaml
var ordinaryYAML string

const (
	// firstNode gets its turn first, and does not come up with badArgument.
	firstNode   = "arm-1"
	badArgument = "nosuch.option=1"
)

// ordinaryStage is a cluster of ordinary hosts: everything that runs during this story.
type ordinaryStage struct {
	narrator    *narrator
	dir         string
	environment *apiserver.Environment
	client      client.Client
	fleet       *guardedhost.Fleet
	machines    map[string]string
	before      map[string]map[string]string
	running     sync.WaitGroup
	failures    chan error
}

// runOrdinary tells the story of ordinary hosts. Nothing is kept running: at its end, the operator has left.
func runOrdinary(ctx context.Context, narrator *narrator) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	s, err := newOrdinaryStage(narrator)
	if err != nil {
		cancel()
		return err
	}
	defer func() {
		cancel()
		s.running.Wait()
		err = errors.Join(err, s.environment.Stop(), os.RemoveAll(s.dir))
	}()
	for _, act := range ordinaryActs() {
		narrator.heading(act.title, act.text)
		if err := act.play(ctx, s); err != nil {
			return err
		}
	}
	narrator.say("\nThe final state is as promised: nothing of the operator is left on any host.")
	return nil
}

// ordinaryAct is one part of the story.
type ordinaryAct struct {
	title, text string
	play        func(ctx context.Context, s *ordinaryStage) error
}

func ordinaryActs() []ordinaryAct {
	return []ordinaryAct{
		{"A cluster without OpenShift, a profile", `A real etcd and kube-apiserver run on this machine. Behind them are three simulated hosts with
			Debian and kubeadm, trees of files. Operator, agents and the guard on each host are the real programs' code: the operator cordons a
			node, signs an instruction, and the guard writes it into the tree, tries the kernel arguments with one start, verifies and keeps them.
			Simulated are GRUB, the kernels that come up, systemd and the kubelets.`, playOrdinaryRollout},
		{"A kernel that does not come up", `Somebody adds an argument with which the kernel of ` + firstNode + ` does not start.`, playBadArgument},
		{"The correction", `The argument is replaced by one that works.`, playOrdinaryCorrection},
		{"The way back", `The profile is deleted. Every host becomes what it was, file by file, and the guard leaves it.`, playRemoval},
	}
}

func newOrdinaryStage(narrator *narrator) (*ordinaryStage, error) {
	dir, err := os.MkdirTemp("", "lowlatency-demo-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for the demo: %w", err)
	}
	s := &ordinaryStage{narrator: narrator, dir: dir, machines: map[string]string{}, failures: make(chan error, 2)}
	if s.environment, err = apiserver.Start(apiserver.Options{Platform: apiserver.Kubernetes}); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the API server: %w", err), os.RemoveAll(dir))
	}
	if err := s.connect(); err != nil {
		return nil, errors.Join(err, s.environment.Stop(), os.RemoveAll(dir))
	}
	return s, nil
}

func (s *ordinaryStage) connect() error {
	scheme, err := controllers.Scheme()
	if err != nil {
		return fmt.Errorf("building the scheme: %w", err)
	}
	connection := s.environment.Config()
	connection.QPS = -1
	if s.client, err = client.New(connection, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	agents, err := nodeclient.New(connection)
	if err != nil {
		return fmt.Errorf("creating the client of the agents: %w", err)
	}
	s.fleet = &guardedhost.Fleet{
		Client: s.client, Dir: filepath.Join(s.dir, "hosts"), Namespace: controllers.DefaultAgentNamespace, Pace: pace, BootTime: bootTime,
		Agent: func(ctx context.Context, node, root string) error {
			a := cluster.NewAgent(agents, node, root, "", cluster.AgentPace{Interval: time.Second, FullInterval: agentPace})
			a.Guard = guard.ReadReport
			return a.Run(ctx)
		},
	}
	return nil
}

// playOrdinaryRollout brings a cluster up and follows one profile until every node is proven.
func playOrdinaryRollout(ctx context.Context, s *ordinaryStage) error {
	s.narrator.done("API server is up: %s", s.environment.Config().Host)
	if err := s.prepare(ctx); err != nil {
		return err
	}
	s.narrator.done("%d nodes joined", len(s.fleet.Names()))
	s.start("the simulated hosts", func() error { return s.fleet.Run(ctx) })
	s.start("the operator", func() error {
		return cluster.RunOperator(ctx, s.environment.Config(), platform.Kubernetes)
	})
	s.narrator.say("\nOne LowLatencyNodeProfile governs all three:")
	s.narrator.block("\n" + specOf(ordinaryYAML))
	profile, err := parseProfile(ordinaryYAML)
	if err != nil {
		return err
	}
	if err := s.client.Create(ctx, profile); err != nil {
		return fmt.Errorf("creating the profile: %w", err)
	}
	s.narrator.printf("\n")
	if err := s.watch(ctx, "every node is de-jittered and NUMA-aligned, one after the other", allGreen); err != nil {
		return err
	}
	return s.rebooted(map[string]int{firstNode: 1, "epyc-1": 1, "xeon-1": 1})
}

// rebooted judges how often each host has come up.
func (s *ordinaryStage) rebooted(want map[string]int) error {
	got := map[string]int{}
	for _, name := range s.fleet.Names() {
		got[name] = s.fleet.Host(name).Boots()
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("the nodes have rebooted %v times, but one change must cost one reboot: %v", got, want)
	}
	return nil
}

// start runs a part of the cluster in the background.
func (s *ordinaryStage) start(name string, run func() error) {
	s.running.Go(func() {
		if err := run(); err != nil {
			s.failures <- fmt.Errorf("%s: %w", name, err)
		}
	})
}

func (s *ordinaryStage) failure() error {
	select {
	case err := <-s.failures:
		return err
	default:
		return nil
	}
}

// prepare makes namespaces and hosts, and remembers all files of these.
func (s *ordinaryStage) prepare(ctx context.Context) error {
	for _, name := range []string{cluster.Namespace, controllers.DefaultAgentNamespace} {
		labels := map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}
		if err := s.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}); err != nil {
			return fmt.Errorf("preparing the cluster: %w", err)
		}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: controllers.DefaultAgentNamespace, Name: rollout.Account}}
	if err := s.client.Create(ctx, account); err != nil {
		return fmt.Errorf("preparing the cluster: %w", err)
	}
	for _, of := range []struct {
		name, text string
		machine    hosttree.Machine
	}{{firstNode, "arm64 server", hosttree.Arm()}, {"epyc-1", "2 x EPYC, 8 NUMA nodes", hosttree.EPYC()}, {"xeon-1", "2 x Xeon, SMT", hosttree.Xeon()}} {
		if err := s.fleet.Add(ctx, of.name, of.machine, map[string]string{"node-role.kubernetes.io/trading": ""}); err != nil {
			return err
		}
		s.machines[of.name] = of.text
		s.narrator.say("%-12s %s, Debian with kubeadm, containerd and GRUB", of.name, of.text)
	}
	var err error
	s.before, err = s.manifests()
	return err
}

func (s *ordinaryStage) manifests() (map[string]map[string]string, error) {
	all := map[string]map[string]string{}
	for _, name := range s.fleet.Names() {
		manifest, err := s.fleet.Host(name).Manifest()
		if err != nil {
			return nil, err
		}
		all[name] = manifest
	}
	return all, nil
}

// change changes the arguments of the profile.
func (s *ordinaryStage) change(ctx context.Context, argument v1alpha1.KernelArgument) error {
	patch := fmt.Appendf(nil, `{"spec":{"kernel":{"additionalArguments":[%q]}}}`, argument)
	profile := &v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: profileName}}
	if err := s.client.Patch(ctx, profile, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("changing the profile: %w", err)
	}
	s.narrator.say("kubectl patch llnp %s --type merge -p '%s'\n", profileName, patch)
	return nil
}

func playBadArgument(ctx context.Context, s *ordinaryStage) error {
	s.fleet.Host(firstNode).ComesUp = func(line string) bool { return !strings.Contains(line, badArgument) }
	if err := s.change(ctx, badArgument); err != nil {
		return err
	}
	err := s.watch(ctx, "the profile names the node, which is back on its old line by itself", func(v view) bool {
		c := condition(v.profile.Status.Conditions, v1alpha1.ConditionDegraded)
		return c != nil && c.Reason == v1alpha1.ReasonEnactmentFailed && strings.Contains(c.Message, firstNode) && s.isAtRest(v)
	})
	if err != nil {
		return err
	}
	v, err := s.look(ctx)
	if err != nil {
		return err
	}
	s.narrator.paragraph(condition(v.profile.Status.Conditions, v1alpha1.ConditionDegraded).Message)
	return nil
}

func (s *ordinaryStage) isAtRest(v view) bool {
	return !slices.ContainsFunc(v.rows, func(r nodeRow) bool { return r.platform != "up" })
}

func playOrdinaryCorrection(ctx context.Context, s *ordinaryStage) error {
	if err := s.change(ctx, "audit=0"); err != nil {
		return err
	}
	return s.watch(ctx, "every node is proven again", allGreen)
}

// playRemoval deletes the profile, and compares each file of each host with what was there before.
func playRemoval(ctx context.Context, s *ordinaryStage) error {
	profile := &v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: profileName}}
	if err := s.client.Delete(ctx, profile); err != nil {
		return fmt.Errorf("deleting the profile: %w", err)
	}
	s.narrator.say("kubectl delete llnp %s\n", profileName)
	screen := s.narrator.screen()
	with := follow{failure: s.failure, look: func(ctx context.Context) (view, error) {
		v, err := s.look(ctx)
		if apierrors.IsNotFound(err) {
			return view{}, nil
		}
		if err == nil {
			screen.show(v.summary(), profileTable(v, s.narrator.columns()))
		}
		return v, err
	}}
	if err := until(ctx, s.narrator, with, "the profile has gone", func(v view) bool { return v.profile.Name == "" }); err != nil {
		return err
	}
	screen.finish()
	after, err := s.manifests()
	if err != nil {
		return err
	}
	for _, name := range s.fleet.Names() {
		if !maps.Equal(s.before[name], after[name]) {
			return fmt.Errorf("host %s is not what it was before", name)
		}
		s.narrator.done("%s: %d files, folders and links are as they were before", name, len(after[name]))
	}
	return nil
}

func (s *ordinaryStage) watch(ctx context.Context, goal string, reached func(view) bool) error {
	return watch(ctx, s.narrator, follow{look: s.look, failure: s.failure}, goal, reached)
}

// look reads the profile and its nodes.
func (s *ordinaryStage) look(ctx context.Context) (view, error) {
	v := view{third: "guard"}
	if err := s.client.Get(ctx, client.ObjectKey{Name: profileName}, &v.profile); err != nil {
		return v, fmt.Errorf("reading the profile: %w", err)
	}
	for _, name := range s.fleet.Names() {
		var node corev1.Node
		if err := s.client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
			return v, fmt.Errorf("reading Node %q: %w", name, err)
		}
		row := nodeRow{name: name, machine: s.machines[name], reboots: s.fleet.Host(name).Boots(), platform: ordinaryState(&node)}
		report := &v1alpha1.LowLatencyNode{}
		if err := s.client.Get(ctx, client.ObjectKey{Name: name}, report); err == nil {
			row.node = report
			if report.Status.Enactment != nil {
				row.third = string(report.Status.Enactment.Phase)
			}
		}
		v.rows = append(v.rows, row)
	}
	return v, nil
}

// ordinaryState is what happens to a node, in one word.
func ordinaryState(node *corev1.Node) string {
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	switch {
	case !ready:
		return "rebooting"
	case node.Spec.Unschedulable:
		return "cordoned"
	default:
		return "up"
	}
}
