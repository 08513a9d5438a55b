// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// openPackets makes a pair of connected sockets of packets: one that the program of a server inherits, and one for this process.
func openPackets() (program *os.File, here net.Conn, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	program, own := os.NewFile(uintptr(pair[0]), "program"), os.NewFile(uintptr(pair[1]), "counters")
	defer func() { _ = own.Close() }()
	if here, err = net.FileConn(own); err != nil {
		_ = program.Close()
		return nil, nil, fmt.Errorf("opening a socket of packets: %w", err)
	}
	return program, here, nil
}
