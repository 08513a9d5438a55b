// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package stackdump asks a container whether its program is accelerated by Onload: it runs onload_stackdump there, in the first
// way in which the image has it, and has package onload judge what that prints. How something is run in a container is its
// caller's: the command line does so through the API server.
package stackdump

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/onload"
)

// ErrTooMuch ends a program that writes more than it is asked for.
var ErrTooMuch = errors.New("it writes too much")

// Ended is how a program in a container ended.
type Ended struct {
	ExitCode int
	// Output and Complaint are what it wrote to its standard output and to its standard error.
	Output, Complaint string
}

// Run runs a program in one container, without a terminal and without input. It fails when the program was not
// run to its end.
type Run func(ctx context.Context, command []string) (Ended, error)

// Ask reads the stacks of one container within a time, and judges them.
func Ask(ctx context.Context, run Run, within time.Duration) onload.Verdict {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	ended, err := runStackdump(ctx, run)
	switch {
	case errors.Is(err, ErrTooMuch):
		return onload.Unread(fmt.Sprintf("onload_stackdump lots wrote more than %d bytes; run it in the container by hand", onload.MaximumBytes))
	case errors.Is(err, context.DeadlineExceeded):
		return onload.Unread(fmt.Sprintf("onload_stackdump lots did not end within %s; run it in the container by hand", within))
	case err != nil:
		return onload.Unreached(err.Error())
	case ended.ExitCode != 0:
		return onload.Unread(ended.failure().Reason())
	}
	stacks, err := onload.ParseStackdump(ended.Output)
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
func runStackdump(ctx context.Context, run Run) (attempt, error) {
	last, hasEnv, err := runFirst(ctx, run, emptied())
	if err != nil || hasEnv || !last.failure().IsMissing() {
		return last, err
	}
	last, _, err = runFirst(ctx, run, nil)
	return last, err
}

// attempt is how the tool ended, and whether LD_PRELOAD was emptied for it.
type attempt struct {
	Ended
	emptied bool
}

// failure is what there is to say when the exit code is not 0.
func (a attempt) failure() onload.Failure {
	return onload.Failure{ExitCode: a.ExitCode, Text: a.Complaint + "\n" + a.Output, Emptied: a.emptied}
}

// runFirst runs the tool from the first place that has it, behind other words of a command. The image has these when they
// say that the tool is missing.
func runFirst(ctx context.Context, run Run, before []string) (last attempt, hasBefore bool, err error) {
	for _, tool := range stackdumps() {
		ended, err := run(ctx, append(slices.Clone(before), tool, "lots"))
		if err != nil && (onload.Failure{Text: err.Error()}).IsMissing() {
			// A runtime that finds no program starts none, and says so in place of an exit code.
			ended, err = Ended{ExitCode: -1, Complaint: err.Error()}, nil
		}
		last = attempt{ended, len(before) > 0}
		failed := last.failure()
		hasBefore = hasBefore || failed.HasEnv()
		if err != nil || ended.ExitCode == 0 || !failed.IsMissing() {
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
func showsAllProcesses(ctx context.Context, run Run) bool {
	listed, err := run(ctx, []string{"ls", "/proc"})
	if err != nil || listed.ExitCode != 0 {
		return false
	}
	look := []string{"ls"}
	for name := range strings.FieldsSeq(listed.Output) {
		if _, err := strconv.ParseUint(name, 10, 32); err == nil {
			look = append(look, "/proc/"+name+"/fd")
		}
	}
	if len(look) == 1 || len(look) > maximumProcesses {
		return false
	}
	// Processes that ended meanwhile, such as the first ls, are no matter; what is said of the others is that they are closed.
	looked, err := run(ctx, look)
	return err == nil && strings.Contains(looked.Output, "/fd") &&
		!strings.Contains(strings.ToLower(looked.Complaint), "denied") && !strings.Contains(strings.ToLower(looked.Complaint), "permitted")
}

// ownNamespace is the number of the container's network namespace; nil when it cannot be told.
func ownNamespace(ctx context.Context, run Run) *uint64 {
	ended, err := run(ctx, []string{"readlink", "/proc/self/ns/net"})
	if err != nil || ended.ExitCode != 0 {
		return nil
	}
	number, isNamespace := strings.CutPrefix(strings.TrimSpace(ended.Output), "net:[")
	value, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 32)
	if err != nil || !isNamespace {
		return nil
	}
	return &value
}
