// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crcluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/embedded"
)

const (
	profileName = "trading"
	// platformPace is how often the simulated machine-config operator looks at the cluster.
	platformPace = time.Second
	// samplingInterval is how often the nodes with new plans are counted.
	samplingInterval = 250 * time.Millisecond
	// idleTime is how long an operator is watched while nothing changes.
	idleTime = 30 * time.Second
)

// scene is a cluster with a simulated fleet and the operator's manager.
type scene struct {
	size    int
	limit   time.Duration
	cluster *cluster
	cached  crcluster.Cluster
	agents  *agents
	manager *manager
	result  *result
	failure chan error
}

// measure measures the manager with a fleet of a size.
func measure(ctx context.Context, binary string, size int, limit time.Duration) (measured *result, err error) {
	environment, err := runtimeSettings()
	if err != nil {
		return nil, err
	}
	started, err := startCluster(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, started.stop()) }()
	s := &scene{
		size: size, limit: limit, cluster: started, result: &result{Nodes: size}, failure: make(chan error, 8),
		manager: &manager{
			command: ownCommand(binary, environment), kubeconfig: started.kubeconfig(),
			log: filepath.Join(os.TempDir(), fmt.Sprintf("lowlatency-scale-%d.log", size)),
		},
	}
	if err := os.RemoveAll(s.manager.log); err != nil {
		return nil, fmt.Errorf("removing the log of an earlier run: %w", err)
	}
	running, stop := context.WithCancel(ctx)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer stop()
	if err := s.populate(running, &parts); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.manager.stop()) }()
	for _, phase := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"starting the manager", s.startManager}, {"the first profile", s.first}, {"a changed profile", s.change}, {"nothing", s.idle},
		{"single nodes", s.singles}, {"a restart", s.restart},
	} {
		progress("%d nodes: %s", size, phase.name)
		if err := phase.run(running); err != nil {
			return s.result, fmt.Errorf("%d nodes: %s: %w\n%s", size, phase.name, err, s.describe(ctx))
		}
	}
	return s.result, nil
}

func progress(format string, values ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", values...)
}

// populate starts the simulated platform and agents, and adds the nodes.
func (s *scene) populate(ctx context.Context, parts *sync.WaitGroup) error {
	hardware, err := inventories(ctx)
	if err != nil {
		return err
	}
	s.cached, err = crcluster.New(s.cluster.config, func(options *crcluster.Options) {
		options.Scheme = s.cluster.direct.Scheme()
		options.Cache.DefaultTransform = light
	})
	if err != nil {
		return fmt.Errorf("making a cache: %w", err)
	}
	simulated := newHosts(s.cached.GetClient())
	s.agents = newAgents(s.cached, simulated, s.size, hardware)
	platform := &embedded.MachineConfigOperator{Client: s.cached.GetClient(), Rebooter: simulated, Clock: clock.RealClock{}, Interval: platformPace}
	for _, part := range []func() error{
		func() error { return s.cached.Start(ctx) },
		func() error { return platform.Run(ctx) },
		func() error { return s.agents.run(ctx, s.cached) },
	} {
		parts.Go(func() {
			if err := part(); err != nil {
				s.failure <- err
			}
		})
	}
	names := make([]string, 0, s.size)
	for i := range s.size {
		names = append(names, fmt.Sprintf("worker-%05d", i))
	}
	return s.cluster.addNodes(ctx, names)
}

// light leaves of objects what the simulation reads, so that it takes little of the processors that it shares.
func light(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		node.Status.Images = nil
	}
	return cache.TransformStripManagedFields()(object)
}

// numberOf is the number in the name of a node.
func numberOf(name string) int {
	number, err := strconv.Atoi(strings.TrimPrefix(name, "worker-"))
	if err != nil {
		return 0
	}
	return number
}

func (s *scene) startManager(ctx context.Context) error {
	if err := s.manager.start(); err != nil {
		return err
	}
	return s.until(ctx, func() (bool, error) {
		_, err := s.manager.passes(ctx)
		return err == nil, nil
	})
}

// until waits for something that the fleet is to reach.
func (s *scene) until(ctx context.Context, so func() (bool, error)) error {
	return until(ctx, s.limit, func() (bool, error) {
		select {
		case err := <-s.failure:
			return false, fmt.Errorf("the simulation: %w", err)
		default:
			return so()
		}
	})
}

// first applies a profile that selects all nodes.
func (s *scene) first(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join("hack", "demo", "trading.yaml"))
	if err != nil {
		return fmt.Errorf("reading the profile: %w", err)
	}
	profile := &v1alpha1.LowLatencyNodeProfile{}
	if err := yaml.UnmarshalStrict(text, profile); err != nil {
		return fmt.Errorf("reading the profile: %w", err)
	}
	profile.Spec.Pools.MaximumUnavailableNodes = int32(min(max(s.size/len(machines()), 1), 1000))
	return s.roll(ctx, &s.result.First, func() error { return s.cluster.direct.Create(ctx, profile) })
}

// change adds a kernel argument.
func (s *scene) change(ctx context.Context) error {
	return s.roll(ctx, &s.result.Change, func() error {
		profile, err := s.profile(ctx)
		if err != nil {
			return err
		}
		before := profile.DeepCopy()
		profile.Spec.Kernel.AdditionalArguments = append(profile.Spec.Kernel.AdditionalArguments, "audit_backlog_limit=8192")
		return s.cluster.direct.Patch(ctx, profile, client.MergeFrom(before))
	})
}

func (s *scene) profile(ctx context.Context) (*v1alpha1.LowLatencyNodeProfile, error) {
	profile := &v1alpha1.LowLatencyNodeProfile{}
	if err := s.cluster.direct.Get(ctx, client.ObjectKey{Name: profileName}, profile); err != nil {
		return nil, fmt.Errorf("reading the profile: %w", err)
	}
	return profile, nil
}

// describe prints what the profile says, for a phase that has not ended.
func (s *scene) describe(ctx context.Context) string {
	profile, err := s.profile(ctx)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "LowLatencyNodeProfile %s: nodes %+v\n", profile.Name, profile.Status.Nodes)
	for _, c := range profile.Status.Conditions {
		fmt.Fprintf(&b, "  %s is %s, %s (generation %d of %d): %s\n", c.Type, c.Status, c.Reason, c.ObservedGeneration, profile.Generation, c.Message)
	}
	return b.String()
}

// roll does something by which all nodes get new plans, and measures until the profile is Ready.
func (s *scene) roll(ctx context.Context, into *roll, do func() error) error {
	before, err := s.manager.cost(ctx)
	if err != nil {
		return err
	}
	used, err := usedProcessors()
	if err != nil {
		return err
	}
	hashes := s.planHashes(ctx)
	begin := time.Now()
	if err := do(); err != nil {
		return err
	}
	next := begin
	waiting := s.until(ctx, func() (bool, error) {
		if now := time.Now(); now.After(next) {
			into.sample(now.Sub(begin), s.adopted(ctx, hashes), s.size)
			next = now.Add(samplingInterval)
		}
		profile, err := s.profile(ctx)
		return err == nil && into.Adopted > 0 && isReady(profile), err
	})
	if waiting == nil {
		into.Ready = time.Since(begin)
	}
	if quiet := s.expectQuiet(ctx); quiet != nil {
		waiting = errors.Join(waiting, quiet)
	}
	after, err := s.manager.cost(ctx)
	if err != nil {
		return errors.Join(waiting, err)
	}
	now, err := usedProcessors()
	if err != nil {
		return errors.Join(waiting, err)
	}
	requests, err := s.cluster.audit.since(begin)
	into.add(begin, requests, s.size)
	into.Cost, into.Processors = after.minus(before), now.minus(used)
	return errors.Join(waiting, err)
}

func isReady(profile *v1alpha1.LowLatencyNodeProfile) bool {
	ready := meta.FindStatusCondition(profile.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == profile.Generation
}

// planHashes are those of now.
func (s *scene) planHashes(ctx context.Context) map[string]bool {
	hashes := map[string]bool{"": true}
	for _, report := range s.reports(ctx) {
		hashes[report.Spec.PlanHash] = true
	}
	return hashes
}

// reports are all LowLatencyNodes, from memory.
func (s *scene) reports(ctx context.Context) []v1alpha1.LowLatencyNode {
	var all v1alpha1.LowLatencyNodeList
	if err := s.cached.GetClient().List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return all.Items
}

// adopted counts the nodes that are told a plan that was not there before, be it in force or pending until their turn, and
// that are in a machine config pool.
func (s *scene) adopted(ctx context.Context, before map[string]bool) int {
	n := 0
	for _, report := range s.reports(ctx) {
		if before[cmp.Or(report.Spec.PendingPlanHash, report.Spec.PlanHash)] {
			continue
		}
		node := &corev1.Node{}
		err := s.cached.GetClient().Get(ctx, client.ObjectKey{Name: report.Name}, node, client.UnsafeDisableDeepCopy)
		if err == nil && node.Labels[v1alpha1.LabelPool] != "" {
			n++
		}
	}
	return n
}

// expectQuiet waits until the manager has written nothing for a while.
func (s *scene) expectQuiet(ctx context.Context) error { return s.until(ctx, s.cluster.quiet()) }

// idle looks at the manager while nothing changes but the heartbeats of the agents.
func (s *scene) idle(ctx context.Context) error {
	before, err := s.manager.cost(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(idleTime):
	}
	after, err := s.manager.cost(ctx)
	if err != nil {
		return err
	}
	requests, err := s.cluster.audit.since(begin)
	s.result.Idle = quiet{
		Writes: count(requests, (*request).writes), Seconds: idleTime.Seconds(),
		Cost: after.minus(before),
	}
	return err
}

// singles lets a check fail on some nodes, one after the other.
func (s *scene) singles(ctx context.Context) error {
	const most, pause = 20, 500 * time.Millisecond
	// Not worker-00001, which restart changes.
	changes := min(most, s.size/2)
	before, err := s.manager.cost(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	for i := range changes {
		s.agents.setBroken(fmt.Sprintf("worker-%05d", i*s.size/changes), true)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	if err := s.awaitDeJittered(ctx, s.size-changes); err != nil {
		return err
	}
	if err := s.expectQuiet(ctx); err != nil {
		return err
	}
	after, err := s.manager.cost(ctx)
	if err != nil {
		return err
	}
	requests, err := s.cluster.audit.since(begin)
	s.result.Single = single{
		Changes: changes, Writes: count(requests, (*request).writes), Events: count(requests, (*request).isEvent), Cost: after.minus(before),
	}
	return err
}

// awaitDeJittered waits until the status of the profile counts so many nodes.
func (s *scene) awaitDeJittered(ctx context.Context, nodes int) error {
	return s.until(ctx, func() (bool, error) {
		profile, err := s.profile(ctx)
		return err == nil && int(profile.Status.Nodes.DeJittered) == nodes, err
	})
}

// restart changes a node while no manager runs, and starts one.
func (s *scene) restart(ctx context.Context) error {
	profile, err := s.profile(ctx)
	if err != nil {
		return err
	}
	if err := s.manager.stop(); err != nil {
		return err
	}
	s.agents.setBroken("worker-00001", true)
	if err := s.until(ctx, func() (bool, error) {
		report := &v1alpha1.LowLatencyNode{}
		err := s.cluster.direct.Get(ctx, client.ObjectKey{Name: "worker-00001"}, report)
		return err == nil && meta.IsStatusConditionFalse(report.Status.Conditions, v1alpha1.ConditionDeJittered), err
	}); err != nil {
		return err
	}
	begin := time.Now()
	if err := s.manager.start(); err != nil {
		return err
	}
	if err := s.awaitDeJittered(ctx, int(profile.Status.Nodes.DeJittered)-1); err != nil {
		return err
	}
	s.result.Restart.True = time.Since(begin)
	if err := s.expectQuiet(ctx); err != nil {
		return err
	}
	requests, err := s.cluster.audit.since(begin)
	if err != nil {
		return err
	}
	s.result.Restart.Writes = count(requests, (*request).writes)
	s.result.Restart.Cost, err = s.manager.cost(ctx)
	return err
}
