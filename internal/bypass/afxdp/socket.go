// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package afxdp

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// memoryLimit is the most memory of one socket. It is pinned, and counts for the container that filled it.
	memoryLimit = 1 << 30
	// sectorSize is the unit of st_blocks.
	sectorSize = 512
	// busyQueueLimit is how long a queue may be busy: the kernel gives it back some time after the last socket on it was closed, when nobody
	// reads the list of sockets any more (xp_put_pool of net/xdp/xsk_buff_pool.c), and only when it gets the lock of all interfaces, so that a program
	// that starts again would be refused. It is less than programs wait for an answer.
	busyQueueLimit = 5 * time.Second
	busyQueuePause = 10 * time.Millisecond
)

// newSocket makes an AF_XDP socket over the memory of a memfd and binds it to a queue. Nothing that needs a privilege
// is left for whoever gets it: the rings and the memory are mapped from the two files, and a bound socket can be bound
// to no other interface (xsk_bind of net/xdp/xsk.c). The rings for frames to receive, to send, to fill and to complete
// are all of one size.
func newSocket(memory, device int, wanted geometry, copies bool) (socket int, err error) {
	area, err := mapMemory(memory, wanted.chunk)
	if err != nil {
		return -1, err
	}
	// The socket keeps the pages; the mapping is not needed any more.
	defer func() { err = errors.Join(err, unix.Munmap(area)) }()
	socket, err = unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("making an AF_XDP socket: %w", err)
	}
	err = makeRings(socket, area, wanted)
	if err == nil {
		err = bindQueue(socket, device, wanted, copies)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(socket))
	}
	return socket, nil
}

// mapMemory maps a memfd whose pages are all there. Pages that the kernel had to add would count for this process
// instead of the container.
func mapMemory(memory, chunk int) ([]byte, error) {
	var system unix.Statfs_t
	var status unix.Stat_t
	if err := errors.Join(unix.Fstatfs(memory, &system), unix.Fstat(memory, &status)); err != nil {
		return nil, fmt.Errorf("looking at the memory of a socket: %w", err)
	}
	switch {
	case system.Type != unix.TMPFS_MAGIC && system.Type != unix.HUGETLBFS_MAGIC:
		return nil, errors.New("the memory of a socket must be a memfd")
	case status.Size <= 0 || status.Size > memoryLimit || status.Size%int64(chunk) != 0:
		return nil, fmt.Errorf("the memory of a socket must be a multiple of %d bytes and at most %d, and has %d",
			chunk, memoryLimit, status.Size)
	case status.Blocks*sectorSize < status.Size:
		return nil, errors.New("the memory of a socket is not all there; write to every page of it first")
	}
	area, err := unix.Mmap(memory, 0, int(status.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping the memory of a socket: %w", err)
	}
	return area, nil
}

// makeRings registers the memory of a socket and makes its rings.
func makeRings(socket int, area []byte, wanted geometry) error {
	registration := unix.XDPUmemReg{
		Addr: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(area)))), Len: uint64(len(area)), Size: uint32(wanted.chunk),
	}
	if err := setOption(socket, unix.XDP_UMEM_REG, unsafe.Pointer(&registration), unsafe.Sizeof(registration)); err != nil {
		return fmt.Errorf("registering the memory of a socket (the device plugin needs CAP_IPC_LOCK): %w", err)
	}
	for _, ring := range []int{unix.XDP_UMEM_FILL_RING, unix.XDP_UMEM_COMPLETION_RING, unix.XDP_RX_RING, unix.XDP_TX_RING} {
		if err := unix.SetsockoptInt(socket, unix.SOL_XDP, ring, wanted.ring); err != nil {
			return fmt.Errorf("making a ring of a socket: %w", err)
		}
	}
	return nil
}

// bindQueue binds a socket with rings to a queue of an interface.
func bindQueue(socket, device int, wanted geometry, copies bool) error {
	bound := &unix.SockaddrXDP{Flags: unix.XDP_USE_NEED_WAKEUP, Ifindex: uint32(device), QueueID: uint32(wanted.queue)}
	if !copies {
		bound.Flags |= unix.XDP_ZEROCOPY
	}
	err := unix.Bind(socket, bound)
	for until := time.Now().Add(busyQueueLimit); errors.Is(err, unix.EBUSY) && time.Now().Before(until); err = unix.Bind(socket, bound) {
		time.Sleep(busyQueuePause)
	}
	if err != nil {
		return fmt.Errorf("binding a socket to queue %d of interface number %d, zero copy %t: %w", wanted.queue, device, !copies, err)
	}
	return nil
}

func setOption(socket, option int, value unsafe.Pointer, size uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(socket), unix.SOL_XDP, uintptr(option), uintptr(value), size, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
