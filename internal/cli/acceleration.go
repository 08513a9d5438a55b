// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/onload"
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
	verdicts := askContainers(ctx, containersWithStackdump(pools), func(user view.PoolUser) inContainer {
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
func askContainers(ctx context.Context, containers map[string]view.PoolUser, of func(view.PoolUser) inContainer) map[string]onload.Verdict {
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
			verdict := askContainer(ctx, of(user))
			mutex.Lock()
			defer mutex.Unlock()
			verdicts[name] = verdict
		})
	}
	asked.Wait()
	return verdicts
}

// askContainer reads the stacks of one container, and judges them.
func askContainer(ctx context.Context, run inContainer) onload.Verdict {
	ctx, cancel := context.WithTimeout(ctx, stacksTimeout)
	defer cancel()
	ended, err := runStackdump(ctx, run)
	switch {
	case errors.Is(err, errTooMuch):
		return onload.Unread(fmt.Sprintf("onload_stackdump lots wrote more than %d bytes; run it in the container by hand", onload.MaximumBytes))
	case errors.Is(err, context.DeadlineExceeded):
		return onload.Unread(fmt.Sprintf("onload_stackdump lots did not end within %s; run it in the container by hand", stacksTimeout))
	case err != nil:
		return onload.Unreached(err.Error())
	case ended.exitCode != 0:
		return onload.Unread(failureOf(ended).Reason())
	}
	stacks, err := onload.ParseStackdump(ended.output)
	if err != nil {
		return onload.Unread(fmt.Sprintf("the output of onload_stackdump lots cannot be read (%v); run it in the container by hand", err))
	}
	var own *uint64
	if onload.NeedsNamespace(stacks) {
		own = ownNamespace(ctx, run)
	}
	return onload.Judge(stacks, own)
}

// stackdumpCommands are the ways to run the tool, the best first. It refuses to run with LD_PRELOAD of Onload, which the
// container's environment may have; nothing but a program of the image can take that away. The tool is where pools
// mount it, and where images that were built with Onload have it, or else on the image's PATH.
func stackdumpCommands() [][]string {
	const dump = "lots"
	without := []string{"env", "-u", "LD_PRELOAD"}
	return [][]string{
		append(slices.Clone(without), bypass.StackdumpInside, dump), append(slices.Clone(without), onload.Tool, dump),
		{bypass.StackdumpInside, dump}, {onload.Tool, dump},
	}
}

// runStackdump runs the tool in the first way in which the container has it.
func runStackdump(ctx context.Context, run inContainer) (ran, error) {
	var ended ran
	for _, command := range stackdumpCommands() {
		var err error
		ended, err = run(ctx, command)
		if err != nil && (onload.Failure{Text: err.Error()}).IsMissing() {
			// A runtime that finds no program starts none, and says so in place of an exit code.
			ended, err = ran{exitCode: -1, complain: err.Error()}, nil
		}
		if err != nil || ended.exitCode == 0 || !failureOf(ended).IsMissing() {
			return ended, err
		}
	}
	return ended, nil
}

func failureOf(ended ran) onload.Failure {
	return onload.Failure{ExitCode: ended.exitCode, Text: ended.complain + "\n" + ended.output}
}

// ownNamespace is the number of the container's network namespace; nil when it cannot be told.
func ownNamespace(ctx context.Context, run inContainer) *uint64 {
	ended, err := run(ctx, []string{"readlink", "/proc/self/ns/net"})
	if err != nil || ended.exitCode != 0 {
		return nil
	}
	number, isNamespace := strings.CutPrefix(strings.TrimSpace(ended.output), "net:[")
	value, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 32)
	if err != nil || !isNamespace {
		return nil
	}
	return &value
}
