// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package afxdp

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/xdpclient"
)

// runClient is the program of a container. Its arguments are the way to its socket (map or socket), the path of the
// Unix socket, the interface and the queue. It prints "ready" when it can receive, and then the first frame. The other
// ways only try what a user may do: dial, list, replace.
func runClient(arguments []string) int {
	queue, err := strconv.Atoi(arguments[3])
	switch {
	case err != nil:
	case arguments[0] == "dial":
		err = dialOnly(arguments[1])
	case arguments[0] == "list":
		_, err = os.ReadDir(arguments[1])
	case arguments[0] == "replace":
		err = os.Remove(arguments[1])
	default:
		err = receiveOne(arguments[0], arguments[1], arguments[2], queue)
	}
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	return 0
}

// dialOnly connects and prints the answer.
func dialOnly(path string) error {
	client, err := xdpclient.Dial(path)
	if err != nil {
		return err
	}
	answer, _, err := client.Ask("/connect,trader-1", -1)
	fmt.Println(answer)
	return err
}

func receiveOne(way, path, name string, queue int) error {
	client, err := xdpclient.Dial(path)
	if err != nil {
		return err
	}
	if err := client.Expect("/connect,trader-1", "/host_ok"); err != nil {
		return err
	}
	memory, area, err := xdpclient.NewMemory()
	if err != nil {
		return err
	}
	var receiver *xdpclient.Receiver
	if way == "map" {
		receiver, err = receiverByMap(client, name, queue, area)
	} else {
		receiver, err = receiverOfSocket(client, name, queue, memory, area)
	}
	if err != nil {
		return err
	}
	if err := client.Expect("/fin", "/fin_ack"); err != nil {
		return err
	}
	fmt.Println("ready")
	frame, err := receiver.Next(20000)
	if err != nil {
		return err
	}
	fmt.Println("frame:", strings.TrimRight(string(frame[ethernetHeader:]), "\x00"))
	return nil
}

// receiverOfSocket asks for a socket that is bound.
func receiverOfSocket(client *xdpclient.Client, name string, queue, memory int, area []byte) (*xdpclient.Receiver, error) {
	socket, err := client.Socket(name, queue, memory)
	if err != nil {
		return nil, err
	}
	return xdpclient.NewReceiver(socket, area)
}

// receiverByMap makes a socket, maps its rings before it binds it, which every kernel allows, and enters it into the map,
// as DPDK does.
func receiverByMap(client *xdpclient.Client, name string, queue int, area []byte) (*xdpclient.Receiver, error) {
	answer, sockets, err := client.Ask("/xsk_map_fd,"+name, -1)
	if err != nil || sockets < 0 {
		return nil, fmt.Errorf("asking for the map: %q, %w", answer, err)
	}
	device, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	socket, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW, 0)
	if err != nil {
		return nil, fmt.Errorf("making a socket: %w", err)
	}
	wanted := geometry{queue, xdpclient.ChunkBytes, xdpclient.RingEntries}
	if err := makeRings(socket, area, wanted); err != nil {
		return nil, err
	}
	receiver, err := xdpclient.NewReceiver(socket, area)
	if err != nil {
		return nil, err
	}
	if err := bindQueue(socket, device.Index, wanted, true); err != nil {
		return nil, err
	}
	if err := updateElement(sockets, uint32(queue), uint32(socket)); err != nil {
		return nil, fmt.Errorf("entering the socket into the map: %w", err)
	}
	return receiver, nil
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
