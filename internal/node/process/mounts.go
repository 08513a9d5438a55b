// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package process

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/repair"
)

// mountsInterval is how often what is mounted of the host is looked at.
const mountsInterval = time.Minute

// RefuseWritableHost returns an error when something of a host that is mounted at a folder or below it can be written: for
// processes that read the host and write none of it.
func RefuseWritableHost(root string) error {
	const mayRepair = false
	return refuseHost(root, mayRepair)
}

func refuseHost(root string, mayRepair bool) error {
	mounts, err := host.MountsBelow(root)
	return errors.Join(err, refuseWritable(mounts, root, mayRepair))
}

// refuseWritable returns an error when something of a host that is mounted below a root can be written, apart from what the
// agent may repair. Root without any capability may write most files of /proc and /sys, those that make the kernel start
// programs among them; the agent is to be kept from that by its mounts, not by what it is good for.
func refuseWritable(mounts []host.Mount, root string, mayRepair bool) error {
	root = filepath.Clean(root)
	if mayRepair && root == "/" {
		// Outside of a container, on purpose.
		return nil
	}
	var writable []string
	for _, mount := range mounts {
		if !mount.ReadOnly && (!mayRepair || !isRepairable(strings.TrimPrefix(mount.Point, root))) {
			writable = append(writable, mount.Point)
		}
	}
	if len(writable) == 0 {
		return nil
	}
	slices.Sort(writable)
	return fmt.Errorf("the host is mounted writable at %s; mount it read-only, with recursiveReadOnly, which needs Kubernetes 1.31, "+
		"Linux 5.12, and containerd 2.0 or CRI-O 1.30", strings.Join(slices.Compact(writable), ", "))
}

// isRepairable reports whether a path of the host is one that repairing agents have mounted writable.
func isRepairable(path string) bool {
	return slices.ContainsFunc(append(repair.Folders(), repair.SteeringFolder), func(folder string) bool {
		return path == folder || strings.HasPrefix(path, folder+"/")
	})
}

// errReplaced ends an agent that would read a file which is no longer the host's.
var errReplaced = errors.New("replaced on the host since it was mounted; the agent ends, to be started with the new one")

// refuseReplaced returns an error when something that is mounted of the host is no longer there.
func refuseReplaced(mounts []host.Mount) error {
	for _, mount := range mounts {
		if mount.IsStale() {
			return fmt.Errorf("%s was %w", mount.Point, errReplaced)
		}
	}
	return nil
}

// watchMounts returns an error when something that is mounted of the host was replaced, and nil when the context ends.
func watchMounts(ctx context.Context, root string, every time.Duration) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		mounts, err := host.MountsBelow(root)
		if err := errors.Join(err, refuseReplaced(mounts)); err != nil {
			return err
		}
	}
}
