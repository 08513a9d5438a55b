// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package afxdp

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	testChunk  = 4096
	testChunks = 64
	testRing   = 64
)

// runClient is the program of a container. Its arguments are the way to its socket (map or socket), the path of the
// Unix socket, the interface and the queue. It prints "ready" when it can receive, and then the first frame.
func runClient(arguments []string) int {
	queue, err := strconv.Atoi(arguments[3])
	if err == nil {
		err = receiveOne(arguments[0], arguments[1], arguments[2], queue)
	}
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	return 0
}

func receiveOne(way, path, name string, queue int) error {
	client, err := dial(path)
	if err != nil {
		return err
	}
	if answer, _, err := client.ask("/connect,trader-1", -1); err != nil || answer != "/host_ok" {
		return fmt.Errorf("connecting: %q, %w", answer, err)
	}
	memory, area, err := newMemory()
	if err != nil {
		return err
	}
	var socket int
	if way == "map" {
		socket, err = client.socketOfMap(name, queue, area)
	} else {
		socket, err = client.ownSocket(name, queue, memory)
	}
	if err != nil {
		return err
	}
	if answer, _, err := client.ask("/fin", -1); err != nil || answer != "/fin_ack" {
		return fmt.Errorf("finishing: %q, %w", answer, err)
	}
	return receive(socket, area)
}

// client speaks the protocol.
type client struct{ connection *net.UnixConn }

func dial(path string) (*client, error) {
	connection, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	return &client{connection}, err
}

// ask sends a request, with a file unless that is negative, and returns the answer and its file, -1 for none.
func (c *client) ask(text string, file int) (string, int, error) {
	var rights []byte
	if file >= 0 {
		rights = unix.UnixRights(file)
	}
	if _, _, err := c.connection.WriteMsgUnix([]byte(text), rights, nil); err != nil {
		return "", -1, err
	}
	packet, control := make([]byte, 128), make([]byte, unix.CmsgSpace(4))
	length, controlLength, _, _, err := c.connection.ReadMsgUnix(packet, control)
	if err != nil {
		return "", -1, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:controlLength])
	if err != nil || len(messages) == 0 {
		return string(packet[:length]), -1, err
	}
	files, err := unix.ParseUnixRights(&messages[0])
	return string(packet[:length]), files[0], err
}

// newMemory is a memfd with all its pages.
func newMemory() (int, []byte, error) {
	file, err := unix.MemfdCreate("frames", 0)
	if err != nil {
		return -1, nil, err
	}
	if err := unix.Ftruncate(file, testChunk*testChunks); err != nil {
		return -1, nil, err
	}
	area, err := unix.Mmap(file, 0, testChunk*testChunks, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	clear(area)
	return file, area, err
}

// ownSocket asks for a socket that is ready.
func (c *client) ownSocket(name string, queue, memory int) (int, error) {
	answer, socket, err := c.ask(fmt.Sprintf("/xsk_socket,%s,%d,%d,%d", name, queue, testChunk, testRing), memory)
	if err != nil || socket < 0 {
		return -1, fmt.Errorf("asking for a socket: %q, %w", answer, err)
	}
	return socket, nil
}

// socketOfMap makes a socket and enters it into the map, as DPDK does.
func (c *client) socketOfMap(name string, queue int, area []byte) (int, error) {
	answer, sockets, err := c.ask("/xsk_map_fd,"+name, -1)
	if err != nil || sockets < 0 {
		return -1, fmt.Errorf("asking for the map: %q, %w", answer, err)
	}
	device, err := net.InterfaceByName(name)
	if err != nil {
		return -1, err
	}
	socket, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW, 0)
	if err != nil {
		return -1, fmt.Errorf("making a socket: %w", err)
	}
	if err := setUp(socket, area, device.Index, geometry{queue, testChunk, testRing}, true); err != nil {
		return -1, err
	}
	if err := updateElement(sockets, uint32(queue), uint32(socket)); err != nil {
		return -1, fmt.Errorf("entering the socket into the map: %w", err)
	}
	return socket, nil
}

// updateElement is BPF_MAP_UPDATE_ELEM without any library: what a program without privileges may do.
func updateElement(sockets int, key, value uint32) error {
	attributes := struct {
		file       uint32
		_          uint32
		key, value uint64
		flags      uint64
	}{file: uint32(sockets), key: uint64(uintptr(unsafe.Pointer(&key))), value: uint64(uintptr(unsafe.Pointer(&value)))}
	const mapUpdateElement = 2
	_, _, errno := unix.Syscall(unix.SYS_BPF, mapUpdateElement, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes))
	if errno != 0 {
		return errno
	}
	return nil
}

// receive gives the kernel all chunks, says that it is ready and prints the first frame.
func receive(socket int, area []byte) error {
	var offsets unix.XDPMmapOffsets
	size := uint32(unsafe.Sizeof(offsets))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(socket), unix.SOL_XDP, unix.XDP_MMAP_OFFSETS,
		uintptr(unsafe.Pointer(&offsets)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return fmt.Errorf("asking for the offsets of the rings: %w", errno)
	}
	fill, err := unix.Mmap(socket, unix.XDP_UMEM_PGOFF_FILL_RING, int(offsets.Fr.Desc)+testRing*8,
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("mapping the fill ring: %w", err)
	}
	received, err := unix.Mmap(socket, unix.XDP_PGOFF_RX_RING, int(offsets.Rx.Desc)+testRing*16,
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("mapping the ring of frames: %w", err)
	}
	for chunk := range testRing {
		*(*uint64)(unsafe.Pointer(&fill[int(offsets.Fr.Desc)+chunk*8])) = uint64(chunk * testChunk)
	}
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&fill[offsets.Fr.Producer])), testRing)
	fmt.Println("ready")
	ready := []unix.PollFd{{Fd: int32(socket), Events: unix.POLLIN}}
	if count, err := unix.Poll(ready, 20000); err != nil || count == 0 {
		return errors.Join(errors.New("no frame came"), err)
	}
	if atomic.LoadUint32((*uint32)(unsafe.Pointer(&received[offsets.Rx.Producer]))) == 0 {
		return errors.New("the ring of frames is empty")
	}
	frame := (*unix.XDPDesc)(unsafe.Pointer(&received[offsets.Rx.Desc]))
	fmt.Println("frame:", strings.TrimRight(string(area[frame.Addr+ethernetHeader:][:frame.Len-ethernetHeader]), "\x00"))
	return nil
}
