// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package uevent

import (
	"context"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// timeout is far beyond what a message within one machine takes.
const timeout = 30 * time.Second

// A pair of unix sockets stands for the kernel: what comes from another sender than port 0 does not count.
func TestMessagesOfOtherProgramsDoNotCount(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 10_000}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		receive(ctx, pair[0], func(event Event) { t.Errorf("received %+v", event) })
		close(ended)
	}()
	if err := unix.Send(pair[1], []byte("bind@/devices/x\x00SUBSYSTEM=pci\x00"), 0); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(timeout)
	for waiting := 1; waiting > 0; {
		if waiting, err = unix.IoctlGetInt(pair[0], unix.SIOCINQ); err != nil || time.Now().After(deadline) {
			t.Fatalf("the message stays in its queue: %v", err)
		}
	}
	stop()
	select {
	case <-ended:
	case <-time.After(timeout):
		t.Error("the receiver does not end with its context")
	}
	if err := unix.Close(pair[1]); err != nil {
		t.Error(err)
	}
}

// The kernel sends an event of a device again when it is asked to through the device's file uevent.
func TestEventsOfTheKernelAreReceived(t *testing.T) {
	const trigger = "/sys/devices/system/cpu/cpu0/uevent"
	file, err := os.OpenFile(trigger, os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("the kernel's events cannot be caused here: %v", err)
	}
	defer func() { _ = file.Close() }()
	received := make(chan Event, 16)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if err := Listen(ctx, func(event Event) {
		select {
		case received <- event:
		default:
		}
	}); err != nil {
		t.Skipf("no events here: %v", err)
	}
	if _, err := file.WriteString("change\n"); err != nil {
		t.Skipf("the kernel's events cannot be caused here: %v", err)
	}
	deadline := time.After(timeout)
	for {
		select {
		case event := <-received:
			if event.Subsystem == "cpu" && event.Action == "change" {
				return
			}
		case <-deadline:
			t.Skip("the kernel sends no events into this network namespace")
		}
	}
}
