// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/cluster"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/embedded"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

const (
	profileName = "trading"
	realHost    = "this-machine"
	// pace of the simulated platform: fast enough for a demo, slow enough to watch.
	pace     = 300 * time.Millisecond
	bootTime = 2 * time.Second
	// agentPace is how often an agent looks at all of its host: where an interrupt is delivered is not seen at every look.
	agentPace = 5 * time.Second
)

// stage is everything that runs during the demo.
type stage struct {
	narrator   *narrator
	dir        string
	kubeconfig string
	cluster    *cluster.Cluster
	client     client.Client
	fleet      *embedded.Fleet
	machines   map[string]string
}

// newStage starts the API server and gives the demo a folder of its own.
func newStage(ctx context.Context, narrator *narrator) (*stage, error) {
	dir, err := os.MkdirTemp("", "lowlatency-demo-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for the demo: %w", err)
	}
	s := &stage{narrator: narrator, dir: dir, machines: map[string]string{}, kubeconfig: filepath.Join(dir, "kubeconfig")}
	s.cluster, err = cluster.Start(ctx, cluster.Options{
		Dir: dir, Pace: pace, BootTime: bootTime, AgentPace: cluster.AgentPace{Interval: time.Second, FullInterval: agentPace}, PluginInterval: pluginPace,
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s.client, s.fleet = s.cluster.Client, s.cluster.Fleet
	if err := s.cluster.WriteKubeconfig(s.kubeconfig); err != nil {
		return nil, errors.Join(err, s.cluster.Close(), os.RemoveAll(dir))
	}
	return s, nil
}

// close ends everything and removes what the demo left on disk.
func (s *stage) close() error {
	if err := errors.Join(s.cluster.Close(), os.RemoveAll(s.dir)); err != nil {
		return fmt.Errorf("cleaning up: %w", err)
	}
	return nil
}

// untilPoolSeen waits until the operator has seen the pool.
func (s *stage) untilPoolSeen(ctx context.Context) error {
	return s.await(ctx, "the operator has seen the pool", func() bool {
		var pool v1alpha1.BypassNICPool
		err := s.client.Get(ctx, client.ObjectKey{Name: poolName}, &pool)
		return err == nil && pool.Status.ObservedGeneration == pool.Generation
	})
}

// addMachines builds the fleet.
func (s *stage) addMachines(ctx context.Context) error {
	trading := map[string]string{"node-role.kubernetes.io/trading": ""}
	for _, group := range []struct {
		prefix, text string
		machine      hosttree.Machine
		count        int
	}{
		{"xeon", "2 x Xeon, SMT", hosttree.Xeon(), 3},
		{"epyc", "2 x EPYC, 8 NUMA nodes", hosttree.EPYC(), 3},
		{"arm", "arm64 server", hosttree.Arm(), 2},
	} {
		for i := range group.count {
			name := fmt.Sprintf("%s-%d", group.prefix, i+1)
			if err := s.fleet.Add(ctx, name, withOnload(group.machine), trading); err != nil {
				return err
			}
			s.machines[name] = group.text
			s.narrator.say("%-12s %s", name, group.text)
		}
	}
	s.machines[realHost] = "real: the machine this runs on, read-only"
	s.narrator.say("%-12s %s", realHost, s.machines[realHost])
	return s.fleet.AddRealHost(ctx, realHost, runtime.GOARCH, map[string]string{"lowlatency.dev/demo": "real-host"})
}
