// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// witness sees every frame of streams that arrives at an interface, before any socket of a program does, and counts by itself.
type witness struct {
	socket int
	// ending is set when the last message has been sent.
	ending atomic.Bool
	done   chan struct{}
	err    error
	// seen are the numbers of messages that have come.
	seen map[uint64]bool
	// highest is the highest number until now; reordered are messages that came after one with a higher number, for the first time.
	highest   uint64
	reordered uint64
}

// witnessBuffer holds the frames of seconds.
const witnessBuffer = 64 << 20

// watch begins to count at an interface of a network namespace.
func watch(namespace, device string) (*witness, error) {
	socket, err := packetSocket(namespace, device)
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", device, err)
	}
	w := &witness{socket: socket, done: make(chan struct{}), seen: map[uint64]bool{}}
	go w.run()
	return w, nil
}

// packetSocket opens a socket for all frames of IPv4 at an interface of a network namespace. The thread that was there ends with its goroutine.
func packetSocket(namespace, device string) (int, error) {
	type opened struct {
		socket int
		err    error
	}
	result := make(chan opened)
	go func() {
		runtime.LockOSThread()
		socket, err := openPacketSocket(namespace, device)
		result <- opened{socket, err}
	}()
	one := <-result
	return one.socket, one.err
}

func openPacketSocket(namespace, device string) (int, error) {
	file, err := os.Open("/run/netns/" + namespace)
	if err != nil {
		return -1, err
	}
	defer func() { _ = file.Close() }()
	if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
		return -1, err
	}
	ipv4 := int(binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_IP)))
	// Until it is bound to the interface it takes nothing.
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	index, err := interfaceIndex(socket, device)
	if err == nil {
		err = errors.Join(
			unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, witnessBuffer),
			unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}),
			unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: uint16(ipv4), Ifindex: index}))
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(socket))
	}
	return socket, nil
}

func interfaceIndex(socket int, device string) (int, error) {
	request, err := unix.NewIfreq(device)
	if err != nil {
		return 0, err
	}
	if err := unix.IoctlIfreq(socket, unix.SIOCGIFINDEX, request); err != nil {
		return 0, err
	}
	return int(request.Uint32()), nil
}

func (w *witness) run() {
	defer close(w.done)
	packet := make([]byte, 2048)
	for {
		n, from, err := unix.Recvfrom(w.socket, packet, 0)
		switch {
		case err == unix.EAGAIN || err == unix.EINTR:
			if w.ending.Load() {
				return
			}
		case err != nil:
			w.err = fmt.Errorf("watching the way: %w", err)
			return
		default:
			if link, is := from.(*unix.SockaddrLinklayer); is && link.Pkttype != unix.PACKET_OUTGOING && ofStream(packet[:n]) {
				w.count(numberOf(packet))
			}
		}
	}
}

// numberOf is the number of a message within its stream, below the number of the stream in the same field.
func numberOf(packet []byte) uint64 {
	const headers, numbers = 28, 1<<48 - 1
	return binary.LittleEndian.Uint64(packet[headers:]) & numbers
}

// count takes a message.
func (w *witness) count(number uint64) {
	if !w.seen[number] && len(w.seen) > 0 && number < w.highest {
		w.reordered++
	}
	w.seen[number] = true
	w.highest = max(w.highest, number)
}

// gaps are runs of messages, of so many that were sent, that never came.
func (w *witness) gaps(sent uint64) uint64 {
	all, inGap := uint64(0), false
	for number := range sent {
		if !w.seen[number] && !inGap {
			all++
		}
		inGap = !w.seen[number]
	}
	return all
}

// end waits until nothing comes any more. A witness that had no room for a frame is none.
func (w *witness) end() error {
	w.ending.Store(true)
	<-w.done
	counted, err := unix.GetsockoptTpacketStats(w.socket, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err == nil && counted.Drops > 0 {
		err = fmt.Errorf("the witness missed %d of %d frames", counted.Drops, counted.Packets)
	}
	return errors.Join(w.err, err, unix.Close(w.socket))
}
