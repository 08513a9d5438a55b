// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package command

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/kubeletservice"
)

// thinking answers a question after something else has happened.
type thinking struct {
	answer    string
	meanwhile func()
}

func (t thinking) Read(into []byte) (int, error) {
	t.meanwhile()
	return copy(into, t.answer), nil
}

// TestWhoThinksKeepsNobodyFromTheHost: somebody else can change it meanwhile, and nothing is done then that nobody has agreed to.
func TestWhoThinksKeepsNobodyFromTheHost(t *testing.T) {
	const theirs = "\noperations:\n- {kind: Sysctl, name: vm.stat_interval, value: \"20\"}\n"
	h := newHost(t)
	var out bytes.Buffer
	s := h.session("", &out)
	s.in = thinking{"yes\n", func() { h.says("", "kept", "apply", "--yes", h.file(theirs)) }}
	command := s.command("test")
	command.SetArgs([]string{"--root", h.root, "apply", h.file(operations)})
	if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "the host has changed since") {
		t.Errorf("apply: %q, %v", out.String(), err)
	}
	if got := strings.TrimSpace(h.read("proc/sys/vm/stat_interval")); got != "20" {
		t.Errorf("vm.stat_interval is %s", got)
	}
	s = h.session("", &out)
	s.in = thinking{"no\n", func() { h.says("", "as it was before", "revert", "--yes") }}
	command = s.command("test")
	command.SetArgs([]string{"--root", h.root, "revert"})
	if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("revert: %q, %v", out.String(), err)
	}
}

// TestInterruptedVerification: who presses Ctrl-C while a change is verified has the host as it was, with its kubelet.
func TestInterruptedVerification(t *testing.T) {
	h := newHost(t).withKubelet(kubeletservice.Hangs())
	before := h.files()
	var out bytes.Buffer
	s := h.session("", &out)
	ctx, interrupt := context.WithCancel(t.Context())
	s.pause = func(ctx context.Context, long time.Duration) error {
		h.kubelet.Pass(long)
		interrupt()
		return ctx.Err()
	}
	command := s.command("test")
	command.SetArgs([]string{"--root", h.root, "apply", "--yes", h.file(kubeletOnly)})
	if err := command.ExecuteContext(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(out.String(), "Interrupted: what was begun is taken back.") {
		t.Errorf("apply: %q, %v", out.String(), err)
	}
	h.denies("Reason:    it was interrupted before it was verified")
	h.kubelet.Pass(time.Minute)
	if h.kubelet.Health() != nil {
		t.Errorf("the kubelet: %v", h.kubelet.Health())
	}
	h.says("", "", "revert", "--yes")
	if diff := cmp.Diff(before, h.files(), ignoreGuardFolder()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
}

// killedMachine is that of a process which is killed once a program has done its work.
type killedMachine struct {
	Machine
	at string
}

func (k killedMachine) Tool(ctx context.Context, program string, arguments ...string) error {
	err := k.Machine.Tool(ctx, program, arguments...)
	if strings.Join(arguments, " ") == k.at {
		panic("killed")
	}
	return err
}

// TestKilledWhileTheKubeletIsStopped: the unit that waits for the end of whoever works on the host puts everything back, and starts the kubelet.
func TestKilledWhileTheKubeletIsStopped(t *testing.T) {
	const follow, stop = "systemctl --no-block start lowlatency-guard-trial.service", "systemctl stop " + kubeletService
	h := newHost(t).withKubelet(kubeletservice.Healthy())
	before := h.files()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("nobody was killed")
			}
		}()
		s := h.session("", &bytes.Buffer{})
		open := s.machineOf
		s.machineOf = func(root string) Machine { return killedMachine{open(root), "stop " + kubeletService} }
		command := s.command("test")
		command.SetArgs([]string{"--root", h.root, "apply", "--yes", h.file(kubeletOnly)})
		t.Errorf("apply: %v", command.ExecuteContext(t.Context()))
	}()
	if at := slices.Index(h.tools, follow); at < 0 || at > slices.Index(h.tools, stop) || h.kubelet.Health() == nil {
		t.Fatalf("programs %q, the kubelet %v", h.tools, h.kubelet.Health())
	}
	h.says("", "", "trial")
	h.kubelet.Pass(time.Minute)
	if h.kubelet.Health() != nil {
		t.Errorf("the kubelet: %v", h.kubelet.Health())
	}
	h.denies("Reason:    it was interrupted before it was complete")
	h.says("", "", "revert", "--yes")
	if diff := cmp.Diff(before, h.files(), ignoreGuardFolder()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
}

// busyMachine is one on which another guard is at work, for some attempts to lock it.
type busyMachine struct {
	Machine
	attempts *int
}

func (b busyMachine) Lock() (func(), error) {
	if *b.attempts > 0 {
		*b.attempts--
		return nil, guard.ErrAtWork
	}
	return b.Machine.Lock()
}

// TestTheTrialWaitsForWhoIsAtWork, and is no failure of its unit.
func TestTheTrialWaitsForWhoIsAtWork(t *testing.T) {
	h := newHost(t)
	attempts, pauses := 2, 0
	h.pause = func(time.Duration) { pauses++ }
	s := h.session("", &bytes.Buffer{})
	open := s.machineOf
	s.machineOf = func(root string) Machine { return busyMachine{open(root), &attempts} }
	command := s.command("test")
	command.SetArgs([]string{"--root", h.root, "trial"})
	if err := command.ExecuteContext(t.Context()); err != nil || attempts != 0 || pauses != 2 {
		t.Errorf("trial: %v, %d attempts left, %d pauses", err, attempts, pauses)
	}
}
