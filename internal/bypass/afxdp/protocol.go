// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package afxdp

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The protocol is the one that DPDK's af_xdp driver (drivers/net/af_xdp/rte_eth_af_xdp.c, use_cni) and the pods of
// Intel's AF_XDP device plugin speak: packets of text on a Unix socket of type SOCK_SEQPACKET, each answered by one,
// files as SCM_RIGHTS:
//
//	/connect,HOSTNAME                 /host_ok
//	/version                          0.1
//	/xsk_map_fd,INTERFACE             /fd_ack and the map, or /fd_nak
//	/config_busy_poll,MICROSECONDS,BUDGET and a socket
//	                                  /config_busy_poll_ack or /config_busy_poll_nak
//	/fin                              /fin_ack, and the connection ends
//
// with one request besides, for containers that may neither make AF_XDP sockets nor call bpf:
//
//	/xsk_socket,INTERFACE,QUEUE,CHUNK,RING and a memfd
//	                                  /fd_ack and a bound socket, or /fd_nak
const (
	requestConnect  = "/connect"
	requestVersion  = "/version"
	requestMap      = "/xsk_map_fd"
	requestSocket   = "/xsk_socket"
	requestBusyPoll = "/config_busy_poll"
	requestFinish   = "/fin"

	answerConnected    = "/host_ok"
	answerUnknownHost  = "/host_nak"
	answerVersion      = "0.1"
	answerFile         = "/fd_ack"
	answerNoFile       = "/fd_nak"
	answerBusyPoll     = "/config_busy_poll_ack"
	answerNoBusyPoll   = "/config_busy_poll_nak"
	answerFinished     = "/fin_ack"
	answerNotARequest  = "/nak"
	requestLengthLimit = 128
)

// request is what a container asks for.
type request struct {
	// kind is one of the constants above.
	kind string
	// name is the host name of requestConnect, and the interface of requestMap and requestSocket.
	name string
	// numbers follow the name, as many as the kind has.
	numbers []int
}

// fieldsOf tells how many names and numbers follow a request; not known for what is none.
func fieldsOf(kind string) (names, numbers int, known bool) {
	switch kind {
	case requestVersion, requestFinish:
		return 0, 0, true
	case requestConnect, requestMap:
		return 1, 0, true
	case requestSocket:
		return 1, 3, true
	case requestBusyPoll:
		return 0, 2, true
	default:
		return 0, 0, false
	}
}

// parseRequest reads a packet. Programs in C end it with a zero byte, or send their whole buffer.
func parseRequest(packet []byte) (request, error) {
	text, _, _ := strings.Cut(string(packet), "\x00")
	parts := strings.Split(strings.TrimSpace(text), ",")
	asked := request{kind: parts[0]}
	names, numbers, known := fieldsOf(asked.kind)
	if !known {
		return request{}, fmt.Errorf("no such request: %q", text)
	}
	if len(parts) != 1+names+numbers {
		return request{}, fmt.Errorf("a request with %d fields instead of %d: %q", len(parts), 1+names+numbers, text)
	}
	if names > 0 {
		asked.name = strings.TrimSpace(parts[1])
		if asked.name == "" || strings.ContainsFunc(asked.name, isNoLetter) {
			return request{}, fmt.Errorf("a request without a name: %q", text)
		}
	}
	for _, part := range parts[1+names:] {
		number, err := strconv.ParseUint(strings.TrimSpace(part), 10, 31)
		if err != nil {
			return request{}, fmt.Errorf("a request with a number that is none: %q", text)
		}
		asked.numbers = append(asked.numbers, int(number))
	}
	return asked, nil
}

// isNoLetter finds what neither a host name nor an interface name has.
func isNoLetter(r rune) bool { return r <= ' ' || r > '~' }

// geometry is what a container wants of a socket.
type geometry struct{ queue, chunk, ring int }

// Bounds of a geometry. The kernel takes chunks from 2048 bytes up to a page.
const (
	smallestChunk, largestChunk = 2048, 4096
	smallestRing, largestRing   = 64, 8192
)

var errGeometry = errors.New("chunks are of 2048 or 4096 bytes, and rings have a power of two of 64 to 8192 entries")

// geometry reads the numbers of requestSocket.
func (r request) geometry() (geometry, error) {
	wanted := geometry{r.numbers[0], r.numbers[1], r.numbers[2]}
	if wanted.chunk != smallestChunk && wanted.chunk != largestChunk {
		return geometry{}, errGeometry
	}
	if wanted.ring < smallestRing || wanted.ring > largestRing || wanted.ring&(wanted.ring-1) != 0 {
		return geometry{}, errGeometry
	}
	return wanted, nil
}
