// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build !linux

package uevent

import (
	"context"
	"errors"
)

// Listen exists on Linux only.
func Listen(context.Context, func(Event)) error { return errors.ErrUnsupported }
