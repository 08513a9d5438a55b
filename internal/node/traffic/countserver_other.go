// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build !linux

package traffic

import (
	"errors"
	"net"
	"os"
)

// openPackets makes nothing: only Linux has the counters.
func openPackets() (program *os.File, here net.Conn, err error) {
	return nil, nil, errors.ErrUnsupported
}
