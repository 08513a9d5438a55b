// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package deviceplugin

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
)

// lookAgain is how often the sockets are looked at without any event: the kernel drops events when there are too many,
// and a folder that is made again is no longer the one that is watched.
const lookAgain = 5 * time.Second

// watch tells when the sockets or the pool may have changed.
type watch struct {
	// sockets is the folder of the sockets.
	sockets string
	// poolFolder is the folder of the pool's file; "" for none. The folder is watched and not the file, because the
	// kubelet puts a new version of a ConfigMap in place by renaming a link beside it.
	poolFolder string
	log        logr.Logger
	events     *fsnotify.Watcher
	// socketsChanged and pool hold one signal each.
	socketsChanged, pool chan struct{}
}

// newWatch watches from now on. The folder of the sockets must exist: a plugin cannot make it for the kubelet.
func newWatch(log logr.Logger, sockets, poolFile string) (*watch, error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("making an inotify instance: %w", err)
	}
	watched := &watch{
		sockets: sockets, log: log, events: events, socketsChanged: make(chan struct{}, 1), pool: make(chan struct{}, 1),
	}
	folders := []string{sockets}
	if poolFile != "" {
		watched.poolFolder = filepath.Dir(poolFile)
		folders = append(folders, watched.poolFolder)
	}
	for _, folder := range folders {
		if err := events.Add(folder); err != nil {
			_ = events.Close()
			return nil, fmt.Errorf("watching %s: %w", folder, err)
		}
	}
	return watched, nil
}

// run passes events on until the context ends.
func (w *watch) run(ctx context.Context) {
	defer func() { _ = w.events.Close() }()
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-w.events.Events:
			w.pass(event)
		case err := <-w.events.Errors:
			w.log.Error(err, "Events were lost; looking at the files instead")
			signal(w.socketsChanged)
			signal(w.pool)
		}
	}
}

// pass tells whom an event concerns. The making of our own sockets concerns nobody.
func (w *watch) pass(event fsnotify.Event) {
	switch filepath.Dir(event.Name) {
	case w.poolFolder:
		signal(w.pool)
	case w.sockets:
		if filepath.Base(event.Name) == kubeletSocket || event.Has(fsnotify.Remove) {
			signal(w.socketsChanged)
		}
	}
}

// signal leaves a signal unless one is there.
func signal(signals chan<- struct{}) {
	select {
	case signals <- struct{}{}:
	default:
	}
}
