// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build !linux

package agent

import (
	"errors"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cpus"
)

// PinProcess exists on Linux only.
func PinProcess(cpus.Set) error { return errors.ErrUnsupported }
