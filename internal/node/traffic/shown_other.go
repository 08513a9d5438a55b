// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build !linux

package traffic

import (
	"errors"
	"os"
)

// openShown makes no memory: the program runs on Linux alone.
func openShown() (*os.File, error) { return nil, errors.ErrUnsupported }
