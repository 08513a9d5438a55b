// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build !linux

package traffic

import "errors"

// nicStamping is none: NICs are set on Linux alone.
type nicStamping struct{ clock *int }

func openNICOfHost(string, func(string)) (*nicStamping, error) { return nil, errors.ErrUnsupported }

func (*nicStamping) putBack() error { return nil }
