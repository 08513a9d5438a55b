// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build !linux

package jitter

import (
	"context"
	"errors"
	"io"
)

var errNoLinux = errors.New("measuring jitter needs Linux")

// Run exists on Linux only.
func Run(context.Context, Options) (*Result, error) { return nil, errNoLinux }

// Serve exists on Linux only.
func Serve(io.Reader, io.Writer) error { return errNoLinux }
