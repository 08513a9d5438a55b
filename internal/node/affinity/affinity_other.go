// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build !linux

// Package affinity keeps this process to a set of CPUs.
package affinity

import (
	"errors"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// KeepTo exists on Linux only.
func KeepTo(cpus.Set) error { return errors.ErrUnsupported }

// Own exists on Linux only.
func Own() (cpus.Set, error) { return cpus.Set{}, errors.ErrUnsupported }
