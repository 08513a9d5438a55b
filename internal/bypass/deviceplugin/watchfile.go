// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package deviceplugin

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/go-logr/logr"
)

// WatchFile signals when the file of a pool may have changed, until the returned function is called.
func WatchFile(log logr.Logger, file string) (<-chan struct{}, func(), error) {
	// The folder of the file stands for that of the sockets, too, which nobody asks for.
	watched, err := newWatch(log, filepath.Dir(file), file)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { watched.run(ctx) })
	return watched.pool, func() {
		cancel()
		running.Wait()
	}, nil
}
