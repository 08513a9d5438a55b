// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestKubeletListens: whatever has become of a kubelet, the next look at its node leaves one that listens.
func TestKubeletListens(t *testing.T) {
	first := &member{}
	fleet := &Fleet{members: map[string]*member{"n": first}}
	k := &Kubelets{Fleet: fleet, Dir: shortFolder(t)}
	socket := k.PodResources("n")
	listens := func(when string) {
		t.Helper()
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if err := connection.Close(); err != nil {
			t.Error(err)
		}
	}
	start := func(machine *member) *simulatedKubelet {
		t.Helper()
		kubelet, err := k.kubeletOf("n", machine)
		if err != nil {
			t.Fatal(err)
		}
		return kubelet
	}
	start(first)
	listens("at first")

	// A folder in the place of the socket keeps the kubelet from starting after a reboot.
	first.reboots++
	if err := errors.Join(os.Remove(socket), os.MkdirAll(filepath.Join(socket, "obstacle"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := k.kubeletOf("n", first); err == nil {
		t.Fatal("the kubelet has started although it could not listen")
	}
	if err := os.RemoveAll(socket); err != nil {
		t.Fatal(err)
	}
	old := start(first)
	listens("after a start that has failed")

	// A plugin of the former machine has ended when the kubelet of the next one starts.
	podCtx, stop := context.WithCancel(t.Context())
	pod := &pluginPod{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(pod.ended)
		<-podCtx.Done()
	}()
	old.pods["x2"] = pod
	second := &member{reboots: 1}
	fleet.members["n"] = second
	if next := start(second); next == old || len(next.pods) > 0 {
		t.Error("the machine that has replaced another has its kubelet")
	}
	listens("on the machine that has replaced the first")
	if podCtx.Err() == nil {
		t.Error("a plugin of the former machine runs")
	}
	k.kubelets["n"].end()
}

// shortFolder is a folder for unix sockets, whose paths must be short.
func shortFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kl-") //nolint:usetesting // Its folders have long names.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
