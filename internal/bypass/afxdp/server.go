// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package afxdp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

const (
	// sessionLimit is the number of connections of one container at a time.
	sessionLimit = 8
	// idleLimit ends a connection on which nothing is asked. DPDK makes one for each port and ends it at once.
	idleLimit = 5 * time.Minute
)

// server answers the container of one allocation. Who connects is not asked for a name that could be believed: the
// socket is in a folder that only this container has.
type server struct {
	allocation allocation
	// mapRings tries what the container must be able to do with a socket.
	mapRings func(socket int) error
	log      logr.Logger
}

// run accepts connections until the context ends.
func (s *server) run(ctx context.Context, listener *net.UnixListener) {
	var sessions sync.WaitGroup
	defer sessions.Wait()
	places := make(chan struct{}, sessionLimit)
	for {
		connection, err := listener.AcceptUnix()
		if ctx.Err() != nil {
			if err == nil {
				_ = connection.Close()
			}
			return
		}
		if err != nil {
			s.log.Error(err, "A container cannot connect; trying again")
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			continue
		}
		select {
		case places <- struct{}{}:
			sessions.Go(func() {
				s.serve(ctx, connection)
				<-places
			})
		default:
			s.log.Info("Too many connections of one container")
			_ = connection.Close()
		}
	}
}

// session is one connection.
type session struct {
	*server

	connection *net.UnixConn
	connected  bool
}

// serve answers one connection until it or the context ends.
func (s *server) serve(ctx context.Context, connection *net.UnixConn) {
	defer func() { _ = connection.Close() }()
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	one := &session{server: s, connection: connection}
	for {
		packet, files, err := one.receive()
		if err != nil || len(packet) == 0 {
			closeAll(files)
			return
		}
		goOn := one.answer(packet, files)
		closeAll(files)
		if !goOn {
			return
		}
	}
}

// receive reads a packet and the files that came with it.
func (s *session) receive() ([]byte, []int, error) {
	if err := s.connection.SetDeadline(time.Now().Add(idleLimit)); err != nil {
		return nil, nil, fmt.Errorf("waiting for a request: %w", err)
	}
	packet := make([]byte, requestLengthLimit)
	control := make([]byte, unix.CmsgSpace(4*4))
	length, controlLength, _, _, err := s.connection.ReadMsgUnix(packet, control)
	if err != nil {
		return nil, nil, fmt.Errorf("reading a request: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:controlLength])
	if err != nil {
		return nil, nil, fmt.Errorf("reading the files of a request: %w", err)
	}
	var files []int
	for i := range messages {
		if rights, err := unix.ParseUnixRights(&messages[i]); err == nil {
			files = append(files, rights...)
		}
	}
	return packet[:length], files, nil
}

func closeAll(files []int) {
	for _, file := range files {
		_ = unix.Close(file)
	}
}

// answer answers one request and reports whether there may be another.
func (s *session) answer(packet []byte, files []int) bool {
	asked, err := parseRequest(packet)
	switch {
	case err != nil:
		s.log.Info("Not a request of AF_XDP", "reason", err.Error())
		return s.send(answerNotARequest, -1)
	case !s.connected && asked.kind != requestConnect:
		_ = s.send(answerUnknownHost, -1)
		return false
	}
	switch asked.kind {
	case requestConnect:
		s.connected = true
		s.log.Info("Connected", "hostname", asked.name, "units", s.allocation.Units)
		return s.send(answerConnected, -1)
	case requestVersion:
		return s.send(answerVersion, -1)
	case requestMap:
		return s.giveMap(asked)
	case requestSocket:
		return s.giveSocket(asked, files)
	case requestBusyPoll:
		return s.busyPoll(asked, files)
	default:
		_ = s.send(answerFinished, -1)
		return false
	}
}

// send sends an answer, with a file unless that is negative.
func (s *session) send(text string, file int) bool {
	var rights []byte
	if file >= 0 {
		rights = unix.UnixRights(file)
	}
	_, _, err := s.connection.WriteMsgUnix([]byte(text), rights, nil)
	return err == nil
}

func (s *session) giveMap(asked request) bool {
	held := s.allocation.nic(asked.name)
	if held == nil {
		s.log.Info("A map of a NIC that the container does not hold", "interface", asked.name)
		return s.send(answerNoFile, -1)
	}
	s.log.Info("Handed over the map of sockets", "interface", held.Name, "queues", held.Queues)
	return s.send(answerFile, held.sockets.FD())
}

// giveSocket makes a socket on a queue of the container, over the container's memory.
func (s *session) giveSocket(asked request, files []int) bool {
	socket, err := s.makeSocket(asked, files)
	if err != nil {
		s.log.Info("No socket for the container", "interface", asked.name, "reason", err.Error())
		return s.send(answerNoFile, -1)
	}
	defer func() { _ = unix.Close(socket) }()
	s.log.Info("Handed over a socket", "interface", asked.name, "queue", asked.numbers[0])
	return s.send(answerFile, socket)
}

func (s *session) makeSocket(asked request, files []int) (int, error) {
	wanted, err := asked.geometry()
	if err != nil {
		return -1, err
	}
	held := s.allocation.nic(asked.name)
	if held == nil || !slices.Contains(held.Queues, wanted.queue) {
		return -1, fmt.Errorf("the container does not hold queue %d of %s", wanted.queue, asked.name)
	}
	if len(files) != 1 {
		return -1, fmt.Errorf("a socket needs the file of its memory, and %d files came", len(files))
	}
	device, err := net.InterfaceByName(held.Name)
	if err != nil {
		return -1, fmt.Errorf("interface %s is not in the network namespace of the node: %w", held.Name, err)
	}
	copies := s.allocation.ZeroCopy == v1alpha1.ZeroCopyPreferred
	socket, err := newSocket(files[0], device.Index, wanted, copies)
	if err != nil {
		return -1, err
	}
	// Before it takes frames away from the kernel.
	if err := s.mapRings(socket); err != nil {
		return -1, errors.Join(err, unix.Close(socket))
	}
	if err := held.sockets.Put(uint32(wanted.queue), uint32(socket)); err != nil {
		return -1, errors.Join(fmt.Errorf("entering the socket into its map: %w", err), unix.Close(socket))
	}
	return socket, nil
}

// busyPoll sets what needs CAP_NET_ADMIN on an AF_XDP socket of the container: SO_PREFER_BUSY_POLL, SO_BUSY_POLL and
// SO_BUSY_POLL_BUDGET (Documentation/networking/napi.rst).
func (s *session) busyPoll(asked request, files []int) bool {
	if len(files) != 1 {
		return s.send(answerNoBusyPoll, -1)
	}
	domain, err := unix.GetsockoptInt(files[0], unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err == nil && domain != unix.AF_XDP {
		err = os.ErrInvalid
	}
	for option, value := range map[int]int{
		unix.SO_PREFER_BUSY_POLL: 1, unix.SO_BUSY_POLL: asked.numbers[0], unix.SO_BUSY_POLL_BUDGET: asked.numbers[1],
	} {
		if err == nil {
			err = unix.SetsockoptInt(files[0], unix.SOL_SOCKET, option, value)
		}
	}
	if err != nil {
		s.log.Info("Busy polling was not set", "reason", err.Error())
		return s.send(answerNoBusyPoll, -1)
	}
	return s.send(answerBusyPoll, -1)
}
