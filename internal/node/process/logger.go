// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package process

import (
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// SetLogger logs as JSON lines, which every log collector reads.
func SetLogger(verbose bool) {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	log.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
}
