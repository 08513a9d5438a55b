// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// link carries packets between two tunnels, and impairs those of streams on their way to the server. It knows exactly what it did. It stands for
// tc netem, which kernels of small machines often lack.
type link struct {
	near, far int
	mutex     sync.Mutex
	way       impairment
	done      injected
	chance    *rand.Rand
	held      []byte
	inGap     bool
}

// impairment is what is done to messages, as shares, and by how much all packets are delayed on their way to the server.
type impairment struct {
	loss, duplicate, swap float64
	delay                 time.Duration
}

// injected is what was done.
type injected struct{ lost, duplicated, swapped, gaps, messages uint64 }

func newLink(ctx context.Context, near, far string) (*link, error) {
	l := &link{chance: rand.New(rand.NewPCG(13, 3))}
	var err error
	if l.near, err = tunnel(ctx, "t0", near, linkNear); err != nil {
		return nil, err
	}
	if l.far, err = tunnel(ctx, "t1", far, linkServer); err != nil {
		return nil, err
	}
	go l.carry(l.near, l.far, l.toServer)
	go l.carry(l.far, l.near, func(packet []byte) { _, _ = unix.Write(l.near, packet) })
	return l, nil
}

// tunnel makes an interface whose packets this program carries, and moves it into a namespace.
func tunnel(ctx context.Context, suffix, namespace, address string) (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("opening /dev/net/tun: %w", err)
	}
	name := fmt.Sprintf("ll%d%s", os.Getpid()%1_000_000, suffix)
	request, err := unix.NewIfreq(name)
	if err != nil {
		return -1, err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return -1, fmt.Errorf("making the tunnel %s: %w", name, err)
	}
	for _, command := range []string{
		"link set " + name + " netns " + namespace, "-n " + namespace + " addr add " + address + "/24 dev " + name, "-n " + namespace + " link set " + name + " up",
	} {
		if err := ip(ctx, command); err != nil {
			return -1, err
		}
	}
	return fd, nil
}

// carry takes packets from one end until it is closed.
func (l *link) carry(from, _ int, give func([]byte)) {
	runtime.LockOSThread()
	buffer := make([]byte, 65536)
	for {
		n, err := unix.Read(from, buffer)
		if err != nil && err != unix.EINTR {
			return
		}
		if n > 0 {
			give(buffer[:n])
		}
	}
}

// set changes what is done, and forgets what was.
func (l *link) set(way impairment) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.way, l.done, l.inGap = way, injected{}, false
}

func (l *link) did() injected {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.done
}

// toServer passes a packet on, or does to it what it is to do. One packet is under way at a time where there is a delay, so that nothing is
// overtaken.
func (l *link) toServer(packet []byte) {
	start := time.Now()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for l.way.delay > 0 && time.Since(start) < l.way.delay {
		// Sleeping takes longer than it is told to.
		if left := l.way.delay - time.Since(start); left > time.Millisecond {
			time.Sleep(left - time.Millisecond)
		}
	}
	if !ofStream(packet) {
		_, _ = unix.Write(l.far, packet)
		return
	}
	l.done.messages++
	if l.chance.Float64() < l.way.loss {
		l.done.lost++
		if !l.inGap {
			l.done.gaps++
		}
		l.inGap = true
		return
	}
	l.inGap = false
	if l.held == nil && l.chance.Float64() < l.way.swap {
		l.held = append([]byte{}, packet...)
		return
	}
	_, _ = unix.Write(l.far, packet)
	if l.held != nil {
		_, _ = unix.Write(l.far, l.held)
		l.done.swapped++
		l.held = nil
	}
	if l.chance.Float64() < l.way.duplicate {
		_, _ = unix.Write(l.far, packet)
		l.done.duplicated++
	}
}

// flush lets go what is held: the last message of a stream has none after it.
func (l *link) flush() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.held != nil {
		_, _ = unix.Write(l.far, l.held)
		l.held = nil
	}
}

// ofStream tells messages of a stream by the number of the stream in their header from pings and from the control connection.
func ofStream(packet []byte) bool {
	const ipv4, udp, version, header = 20, 8, 0x45, 24
	if len(packet) < ipv4+udp+header || packet[0] != version || packet[9] != unix.IPPROTO_UDP {
		return false
	}
	return binary.LittleEndian.Uint64(packet[ipv4+udp:])>>48&0xff != 0
}
