// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"context"
	"errors"
	"io"
)

// Host is a Linux host that can be read: a root directory or a snapshot.
type Host struct{}

// Open opens a host: a directory that holds proc and sys ("/", "/host", an unpacked snapshot), or a
// snapshot archive (tar, compressed with gzip or bzip2; recognised by its content).
func Open(path string) (*Host, error) { return nil, errors.New("not readable: " + path) }

// Read reads everything but files that only one plan needs.
func (h *Host) Read(ctx context.Context) (*Facts, error) { return h.ReadWith(ctx, nil) }

// ReadWith reads like Read, and the given small files of /proc/sys and /sys into Facts.Settings.
func (h *Host) ReadWith(ctx context.Context, extra []string) (*Facts, error) {
	return nil, ctx.Err()
}

// Snapshot writes what Read reads as an archive that Open reads.
func (h *Host) Snapshot(ctx context.Context, w io.Writer) error { return ctx.Err() }

// Close releases the host.
func (h *Host) Close() error { return nil }
