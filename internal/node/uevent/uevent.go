// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package uevent receives the events of the kernel about devices: CPUs that come and go, PCI devices that are bound to a
// driver. The kernel sends events of devices that belong to no network namespace into all of them, those of network
// interfaces only into that of the interface (lib/kobject_uevent.c, kobject_uevent_net_broadcast).
package uevent

import (
	"errors"
	"strings"
)

// Event is one message of the kernel.
type Event struct {
	// Action such as add, remove, bind, unbind, online, offline, change.
	Action string
	// Device is its path below /sys.
	Device string
	// Subsystem such as pci, cpu or net; "" when the kernel does not say.
	Subsystem string
}

// errNoEvent says that a message is not of the kernel's form.
var errNoEvent = errors.New("not a message of the form ACTION@DEVICE, KEY=VALUE…")

// Parse reads a message: ACTION@DEVICE and variables KEY=VALUE, each ended by a zero byte. Messages of udev, which
// begin with "libudev", are refused.
func Parse(message []byte) (Event, error) {
	head, rest, _ := strings.Cut(string(message), "\x00")
	action, device, found := strings.Cut(head, "@")
	if !found || action == "" || !strings.HasPrefix(device, "/") {
		return Event{}, errNoEvent
	}
	event := Event{Action: action, Device: device}
	for variable := range strings.SplitSeq(rest, "\x00") {
		if value, ok := strings.CutPrefix(variable, "SUBSYSTEM="); ok {
			event.Subsystem = value
		}
	}
	return event, nil
}
