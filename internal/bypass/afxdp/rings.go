// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package afxdp

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// errBoundRings refuses requestSocket on a kernel whose xsk_mmap (net/xdp/xsk.c) knows sockets only that are not bound yet.
// Commit 5f5a7d8d8bd4 ("xsk: allow remap of fill and/or completion rings") of Linux 6.4 changed that. The answer of the kernel
// counts and not its version, for distributions bring such a change to older ones.
var errBoundRings = errors.New("this kernel lets no program map the rings of a socket that is bound (Linux does since 6.4), so " +
	requestSocket + " is of no use here: boot a newer kernel, or let the program ask for the map of sockets with " + requestMap)

// mapBoundRings maps a ring of a bound socket and lets it go again: what a container must be able to do with it.
func mapBoundRings(socket int) error {
	ring, err := unix.Mmap(socket, unix.XDP_UMEM_PGOFF_FILL_RING, os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	switch {
	case errors.Is(err, unix.EBUSY):
		return errBoundRings
	case err != nil:
		return fmt.Errorf("mapping a ring of a bound socket: %w", err)
	}
	if err := unix.Munmap(ring); err != nil {
		return fmt.Errorf("giving a ring of a bound socket back: %w", err)
	}
	return nil
}

// tryBoundRings does so with a socket on the loopback interface: no map leads a frame to it, and no frame leaves by it.
// errBoundRings is the kernel's no; another error says that it could not be asked.
func tryBoundRings(mapRings func(socket int) error) (err error) {
	loopback, err := loopbackIndex()
	if err != nil {
		return err
	}
	memory, err := smallMemory()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(memory)) }()
	socket, err := newSocket(memory, loopback, geometry{queue: 0, chunk: smallestChunk, ring: smallestRing}, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(socket)) }()
	return mapRings(socket)
}

func loopbackIndex() (int, error) {
	all, err := net.Interfaces()
	if err != nil {
		return 0, fmt.Errorf("looking for the loopback interface: %w", err)
	}
	for _, device := range all {
		if device.Flags&net.FlagLoopback != 0 {
			return device.Index, nil
		}
	}
	return 0, errors.New("there is no loopback interface in the network namespace of the device plugin")
}

// smallMemory is a memfd of one page, which is there.
func smallMemory() (int, error) {
	memory, err := unix.MemfdCreate("afxdp-test", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("making the memory of a socket: %w", err)
	}
	if _, err := unix.Write(memory, make([]byte, os.Getpagesize())); err != nil {
		return -1, errors.Join(fmt.Errorf("filling the memory of a socket: %w", err), unix.Close(memory))
	}
	return memory, nil
}
