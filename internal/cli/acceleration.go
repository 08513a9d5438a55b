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
		return onload.Unread(ended.failure().Reason())
	}
	stacks, err := onload.ParseStackdump(ended.output)
	if err != nil {
		return onload.Unread(fmt.Sprintf("the output of onload_stackdump lots cannot be read (%v); run it in the container by hand", err))
	}
	var in onload.Container
	if onload.NeedsContainer(stacks) {
		in.Namespace = ownNamespace(ctx, run)
		in.ShowsAll = showsAllProcesses(ctx, run)
	}
	return onload.Judge(stacks, in)
}

// emptied begins a command that is to run without Onload. The tool refuses to run with LD_PRELOAD of Onload, which the
// container's environment may have, and nothing but a program of the image can take that away. "env -u" cannot: it runs
// under Onload itself, which puts the variable back when it starts another program, unless that has it, be it empty.
func emptied() []string { return []string{"env", "LD_PRELOAD="} }

// stackdumps is where the tool may be, the likeliest first: where pools mount it, and where images that were built with
// Onload have it, or else on the image's PATH.
func stackdumps() []string { return []string{bypass.StackdumpInside, onload.Tool} }

// runStackdump runs the tool in the first way in which the container has it: without Onload, or as it is in an image
// without env.
func runStackdump(ctx context.Context, run inContainer) (attempt, error) {
	last, hasEnv, err := runFirst(ctx, run, emptied())
	if err != nil || hasEnv || !last.failure().IsMissing() {
		return last, err
	}
	last, _, err = runFirst(ctx, run, nil)
	return last, err
}

// attempt is how the tool ended, and whether LD_PRELOAD was emptied for it.
type attempt struct {
	ran
	emptied bool
}

// failure is what there is to say when the exit code is not 0.
func (a attempt) failure() onload.Failure {
	return onload.Failure{ExitCode: a.exitCode, Text: a.complain + "\n" + a.output, Emptied: a.emptied}
}

// runFirst runs the tool from the first place that has it, behind other words of a command. The image has these when they
// say that the tool is missing.
func runFirst(ctx context.Context, run inContainer, before []string) (last attempt, hasBefore bool, err error) {
	for _, tool := range stackdumps() {
		ended, err := run(ctx, append(slices.Clone(before), tool, "lots"))
		if err != nil && (onload.Failure{Text: err.Error()}).IsMissing() {
			// A runtime that finds no program starts none, and says so in place of an exit code.
			ended, err = ran{exitCode: -1, complain: err.Error()}, nil
		}
		last = attempt{ended, len(before) > 0}
		failed := last.failure()
		hasBefore = hasBefore || failed.HasEnv()
		if err != nil || ended.exitCode == 0 || !failed.IsMissing() {
			return last, hasBefore, err
		}
		if len(before) > 0 && !failed.HasEnv() {
			break
		}
	}
	return last, hasBefore, nil
}

// maximumProcesses is how many processes of a container are looked into.
const maximumProcesses = 256

// showsAllProcesses reports whether whoever runs in the container may look into each of its processes: then a stack that
// none of them has open is somebody else's.
func showsAllProcesses(ctx context.Context, run inContainer) bool {
	listed, err := run(ctx, []string{"ls", "/proc"})
	if err != nil || listed.exitCode != 0 {
		return false
	}
	look := []string{"ls"}
	for name := range strings.FieldsSeq(listed.output) {
		if _, err := strconv.ParseUint(name, 10, 32); err == nil {
			look = append(look, "/proc/"+name+"/fd")
		}
	}
	if len(look) == 1 || len(look) > maximumProcesses {
		return false
	}
	// Processes that ended meanwhile, such as the first ls, are no matter; what is said of the others is that they are closed.
	looked, err := run(ctx, look)
	return err == nil && strings.Contains(looked.output, "/fd") &&
		!strings.Contains(strings.ToLower(looked.complain), "denied") && !strings.Contains(strings.ToLower(looked.complain), "permitted")
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
