// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

// Package xdpclient is the program of a container that receives frames by AF_XDP, for tests: it speaks the protocol of
// docs/pools.md and reads the rings of its socket without any library.
package xdpclient

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// ChunkBytes is the room for one frame.
	ChunkBytes = 4096
	// RingEntries is the length of both rings.
	RingEntries = 64
)

// Client is a connection to the device plugin.
type Client struct{ connection *net.UnixConn }

// Dial connects to the Unix socket of an interface.
func Dial(path string) (*Client, error) {
	connection, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("connecting to the device plugin: %w", err)
	}
	return &Client{connection}, nil
}

// Close ends the connection; sockets and maps that came over it stay.
func (c *Client) Close() error { return c.connection.Close() }

// Ask sends a request, with a file unless that is negative, and returns the answer and its file, -1 for none.
func (c *Client) Ask(text string, file int) (string, int, error) {
	var rights []byte
	if file >= 0 {
		rights = unix.UnixRights(file)
	}
	if _, _, err := c.connection.WriteMsgUnix([]byte(text), rights, nil); err != nil {
		return "", -1, fmt.Errorf("sending %q: %w", text, err)
	}
	packet, control := make([]byte, 128), make([]byte, unix.CmsgSpace(4))
	length, controlLength, _, _, err := c.connection.ReadMsgUnix(packet, control)
	if err != nil {
		return "", -1, fmt.Errorf("receiving the answer to %q: %w", text, err)
	}
	answer := string(packet[:length])
	messages, err := unix.ParseSocketControlMessage(control[:controlLength])
	if err != nil || len(messages) == 0 {
		return answer, -1, err
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return answer, -1, fmt.Errorf("receiving the file with %q: %w", answer, err)
	}
	return answer, files[0], nil
}

// Expect asks without files and wants an answer.
func (c *Client) Expect(question, want string) error {
	if answer, _, err := c.Ask(question, -1); err != nil || answer != want {
		return errors.Join(fmt.Errorf("%q was answered with %q, want %q", question, answer, want), err)
	}
	return nil
}

// NewMemory is a memfd with RingEntries chunks, all of which are there, and where it is mapped.
func NewMemory() (file int, area []byte, err error) {
	file, err = unix.MemfdCreate("frames", 0)
	if err != nil {
		return -1, nil, fmt.Errorf("making the memory of frames: %w", err)
	}
	if err := unix.Ftruncate(file, ChunkBytes*RingEntries); err != nil {
		return -1, nil, fmt.Errorf("making the memory of frames: %w", err)
	}
	area, err = unix.Mmap(file, 0, ChunkBytes*RingEntries, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return -1, nil, fmt.Errorf("mapping the memory of frames: %w", err)
	}
	clear(area)
	return file, area, nil
}

// Socket asks for a socket that is ready, for a queue of an interface and a memory.
func (c *Client) Socket(name string, queue, memory int) (int, error) {
	answer, socket, err := c.Ask(fmt.Sprintf("/xsk_socket,%s,%d,%d,%d", name, queue, ChunkBytes, RingEntries), memory)
	if err != nil || socket < 0 {
		return -1, errors.Join(fmt.Errorf("asking for a socket: %q", answer), err)
	}
	return socket, nil
}

// Receiver reads the frames of a socket.
type Receiver struct {
	socket   int
	area     []byte
	received []byte
	offsets  unix.XDPMmapOffsets
	taken    uint32
}

// NewReceiver maps the rings of a socket and gives the kernel all chunks of its memory.
func NewReceiver(socket int, area []byte) (*Receiver, error) {
	r := &Receiver{socket: socket, area: area}
	size := uint32(unsafe.Sizeof(r.offsets))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(socket), unix.SOL_XDP, unix.XDP_MMAP_OFFSETS,
		uintptr(unsafe.Pointer(&r.offsets)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return nil, fmt.Errorf("asking for the offsets of the rings: %w", errno)
	}
	fill, err := unix.Mmap(socket, unix.XDP_UMEM_PGOFF_FILL_RING, int(r.offsets.Fr.Desc)+RingEntries*8,
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("mapping the fill ring: %w", err)
	}
	r.received, err = unix.Mmap(socket, unix.XDP_PGOFF_RX_RING, int(r.offsets.Rx.Desc)+RingEntries*16,
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("mapping the ring of frames: %w", err)
	}
	for chunk := range RingEntries {
		*(*uint64)(unsafe.Pointer(&fill[int(r.offsets.Fr.Desc)+chunk*8])) = uint64(chunk * ChunkBytes)
	}
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&fill[r.offsets.Fr.Producer])), RingEntries)
	return r, nil
}

// Next waits for a frame, at most RingEntries in all: chunks are not given back. The time is in milliseconds, -1 for no
// end.
func (r *Receiver) Next(milliseconds int) ([]byte, error) {
	producer := (*uint32)(unsafe.Pointer(&r.received[r.offsets.Rx.Producer]))
	if r.taken >= RingEntries {
		return nil, errors.New("all chunks are taken")
	}
	if atomic.LoadUint32(producer) == r.taken {
		ready := []unix.PollFd{{Fd: int32(r.socket), Events: unix.POLLIN}}
		if count, err := poll(ready, milliseconds); err != nil || count == 0 {
			return nil, errors.Join(errors.New("no frame came"), err)
		}
	}
	if atomic.LoadUint32(producer) == r.taken {
		return nil, errors.New("the ring of frames is empty")
	}
	frame := (*unix.XDPDesc)(unsafe.Pointer(&r.received[int(r.offsets.Rx.Desc)+int(r.taken%RingEntries)*16]))
	r.taken++
	return r.area[frame.Addr:][:frame.Len], nil
}

// poll goes on after the signals of Go's scheduler.
func poll(files []unix.PollFd, milliseconds int) (int, error) {
	for {
		count, err := unix.Poll(files, milliseconds)
		if !errors.Is(err, unix.EINTR) {
			return count, err
		}
	}
}
