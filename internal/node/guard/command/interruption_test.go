// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package command

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
