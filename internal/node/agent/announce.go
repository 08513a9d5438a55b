// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/fsnotify/fsnotify"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/uevent"
)

// announcingFolders are the folders of the host in which a change is worth a look at once: what the kubelet gave to
// pods, how it is configured, which CPUs irqbalance may use. Folders, because most of these files are replaced and
// not written to.
func announcingFolders() []string {
	return []string{
		"/var/lib/kubelet", "/var/lib/kubelet/device-plugins", "/etc/kubernetes", "/etc/sysconfig", "/etc/default",
	}
}

// announcingNames are the files in these folders that count.
func announcingNames() map[string]bool {
	return map[string]bool{
		"cpu_manager_state": true, "memory_manager_state": true, "config.yaml": true,
		"kubelet_internal_checkpoint": true, "kubelet.conf": true, "irqbalance": true,
	}
}

// announcingDevices are the subsystems of the kernel whose events are worth a look at once: CPUs that come and go,
// PCI devices that are bound to another driver, network interfaces of the agent's own network namespace.
func announcingDevices() map[string]bool {
	return map[string]bool{"cpu": true, "pci": true, "net": true}
}

// Watch returns a channel that receives a value soon after a file below the root has changed that the kernel
// announces, and after an event of the kernel about a device, until the context ends. Files of /proc and those below /sys
// announce no change that the kernel itself makes, so the passes at fixed intervals stay. The error joins what could
// not be watched; the channel then serves the rest.
func Watch(ctx context.Context, root string) (<-chan struct{}, error) {
	changed := make(chan struct{}, 1)
	return changed, errors.Join(watchFiles(ctx, root, changed), watchDevices(ctx, changed))
}

func watchFiles(ctx context.Context, root string, changed chan<- struct{}) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching files: %w", err)
	}
	watched := 0
	for _, folder := range announcingFolders() {
		// Hosts have some of these folders only.
		if watcher.Add(filepath.Join(root, folder)) == nil {
			watched++
		}
	}
	if watched == 0 {
		return errors.Join(fmt.Errorf("none of the folders whose changes are announced can be watched below %s", root), watcher.Close())
	}
	go forwardFiles(ctx, watcher, changed)
	return nil
}

// forwardFiles signals changes of the files that count, until the context ends.
func forwardFiles(ctx context.Context, watcher *fsnotify.Watcher, changed chan<- struct{}) {
	// Closing a watcher cannot lose anything.
	defer func() { _ = watcher.Close() }()
	names := announcingNames()
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-watcher.Events:
			if !open {
				return
			}
			if names[filepath.Base(event.Name)] {
				signal(changed)
			}
		case _, open := <-watcher.Errors:
			if !open {
				return
			}
			// Events were lost, so anything may have changed.
			signal(changed)
		}
	}
}

func watchDevices(ctx context.Context, changed chan<- struct{}) error {
	devices := announcingDevices()
	return uevent.Listen(ctx, func(event uevent.Event) {
		if devices[event.Subsystem] {
			signal(changed)
		}
	})
}
