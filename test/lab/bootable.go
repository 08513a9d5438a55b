// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// OpenBootableImage returns the image of machines with a boot loader on their own disk: Debian with GRUB, of this version
// of hack/lab/grub. It is built first when this user's cache does not hold it. Their kernel is Installed.
func OpenBootableImage(ctx context.Context, progress io.Writer) (*Image, error) {
	if err := Requirements(); err != nil {
		return nil, err
	}
	dir, err := built(ctx, "grub", writeKeys, progress)
	if err != nil {
		return nil, err
	}
	return loadImage(dir)
}

// BootID names the boot that the machine is in.
func (m *Machine) BootID(ctx context.Context) (string, error) {
	id, err := m.Run(ctx, "cat /proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(id), err
}

// WaitReboot waits until a machine that reboots by itself has a shell in another boot than the given one.
func (m *Machine) WaitReboot(ctx context.Context, before string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*bootLimit, fmt.Errorf("no reboot within %s", 2*bootLimit))
	defer cancel()
	for {
		asking, stop := context.WithTimeout(ctx, handshakeLimit)
		id := ""
		if m.client != nil {
			id, _ = m.BootID(asking)
		}
		stop()
		if id != "" && id != before {
			return nil
		}
		if id == "" {
			m.hangUp()
			if err := m.waitForShell(ctx, true); err != nil {
				return err
			}
			continue
		}
		if err := pause(ctx, time.Second); err != nil {
			return fmt.Errorf("machine %s: %w; its console ends with\n%s", m.spec.Name, context.Cause(ctx), m.Console(15))
		}
	}
}
