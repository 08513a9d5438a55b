// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package uevent

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	// kernelGroup is the multicast group of the kernel's own messages; those of udev have another.
	kernelGroup = 1
	// messageSize is more than a message can have (UEVENT_BUFFER_SIZE is 2048, and the head).
	messageSize = 8192
)

// Listen calls handle for each event of the kernel until the context ends. It returns at once; handle is called on a
// goroutine of its own and must not block. Where events were lost because they came too fast, handle gets an Event of
// subsystem "pci" without a device, as anything may have changed.
func Listen(ctx context.Context, handle func(Event)) error {
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return fmt.Errorf("opening a socket for the kernel's events about devices: %w", err)
	}
	// The receiver wakes up at times to see whether it is to end.
	err = errors.Join(unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}),
		unix.Bind(socket, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: kernelGroup}))
	if err != nil {
		return errors.Join(fmt.Errorf("listening to the kernel's events about devices: %w", err), unix.Close(socket))
	}
	go receive(ctx, socket, handle)
	return nil
}

// receive reads messages until the context ends or the socket breaks.
func receive(ctx context.Context, socket int, handle func(Event)) {
	// Closing a socket that was only read from loses nothing.
	defer func() { _ = unix.Close(socket) }()
	buffer := make([]byte, messageSize)
	for ctx.Err() == nil {
		n, from, err := unix.Recvfrom(socket, buffer, 0)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOBUFS):
			handle(Event{Action: "change", Subsystem: "pci"})
			continue
		case err != nil:
			return
		}
		// Only the kernel has port 0; any program may send to the group.
		if sender, ok := from.(*unix.SockaddrNetlink); !ok || sender.Pid != 0 {
			continue
		}
		if event, err := Parse(buffer[:n]); err == nil {
			handle(event)
		}
	}
}
