// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"sync"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/onload"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/stackdump"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
)

const (
	// stacksTimeout bounds all that is done in one container.
	stacksTimeout = 10 * time.Second
	// stacksAtOnce is in how many containers something runs at the same time.
	stacksAtOnce = 4
)

// withAcceleration adds to pools of a cluster whether the programs that hold their NICs are accelerated. A container that
// cannot be asked is no error: its verdict says why.
func withAcceleration(ctx context.Context, pools []view.Pool, access *clusterAccess) ([]view.Pool, error) {
	config, err := access.config()
	if err != nil {
		return nil, err
	}
	core, err := access.connectCore()
	if err != nil {
		return nil, err
	}
	verdicts := askContainers(ctx, containersWithStackdump(pools), func(user view.PoolUser) stackdump.Run {
		return containerOf(config, core, user.Namespace, user.Pod, user.Container)
	})
	known := make([]view.Pool, 0, len(pools))
	for _, pool := range pools {
		known = append(known, pool.WithAcceleration(func(user view.PoolUser) *view.PoolAcceleration {
			if !bypass.StackOf(pool.Stack).HasStackdump {
				return view.OfVerdict(onload.NotUsed(string(pool.Stack)))
			}
			return view.OfVerdict(verdicts[user.Name()])
		}))
	}
	return known, nil
}

// containersWithStackdump are the containers that hold NICs of pools whose stack onload_stackdump tells about, each once.
func containersWithStackdump(pools []view.Pool) map[string]view.PoolUser {
	containers := map[string]view.PoolUser{}
	for _, pool := range pools {
		if !bypass.StackOf(pool.Stack).HasStackdump {
			continue
		}
		for _, node := range pool.Nodes {
			for _, user := range node.Containers() {
				containers[user.Name()] = user
			}
		}
	}
	return containers
}

// askContainers judges all containers, a few at a time.
func askContainers(ctx context.Context, containers map[string]view.PoolUser, of func(view.PoolUser) stackdump.Run) map[string]onload.Verdict {
	var (
		verdicts = make(map[string]onload.Verdict, len(containers))
		mutex    sync.Mutex
		asked    sync.WaitGroup
		room     = make(chan struct{}, stacksAtOnce)
	)
	for name, user := range containers {
		room <- struct{}{}
		asked.Go(func() {
			defer func() { <-room }()
			verdict := stackdump.Ask(ctx, of(user), stacksTimeout)
			mutex.Lock()
			defer mutex.Unlock()
			verdicts[name] = verdict
		})
	}
	asked.Wait()
	return verdicts
}
