// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package traffic

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// carrier takes the datagrams of a client, of which the first is number 1, to the server, by send.
type carrier func(number int, datagram []byte, send func([]byte))

// twice makes two of each datagram.
func twice(_ int, datagram []byte, send func([]byte)) {
	send(datagram)
	send(datagram)
}

// delays keeps one datagram back until the client has given it up and sends the next one.
func delays(late int) carrier {
	var kept []byte
	return func(number int, datagram []byte, send func([]byte)) {
		if number == late {
			kept = datagram
			return
		}
		if number == late+1 {
			send(kept)
		}
		send(datagram)
	}
}

// carried is the port of a way to the server on another one, which a carrier changes.
func carried(t *testing.T, server int, carry carrier) (port int) {
	t.Helper()
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	messages, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = control.Close(), messages.Close() })
	go carryControl(control, messages, server, carry)
	return control.Addr().(*net.TCPAddr).Port
}

// carryControl takes the control connection of one client to the server, and tells the client another port for its messages.
func carryControl(control net.Listener, messages net.PacketConn, server int, carry carrier) {
	near, err := control.Accept()
	if err != nil {
		return
	}
	defer func() { _ = near.Close() }()
	far, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", server))
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	go func() {
		_, _ = io.Copy(far, near)
		_ = far.Close()
	}()
	answers := bufio.NewReader(far)
	line, err := answers.ReadString('\n')
	if err != nil {
		return
	}
	digits, rest, _ := strings.Cut(strings.TrimPrefix(line, "ok "), " ")
	port, err := strconv.Atoi(digits)
	if err != nil {
		return
	}
	go carryMessages(messages, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}, carry)
	_, _ = fmt.Fprintf(near, "ok %d %s", messages.LocalAddr().(*net.UDPAddr).Port, rest)
	_, _ = io.Copy(near, answers)
}

// carryMessages takes datagrams of one client to the server, and those of the server back.
func carryMessages(near net.PacketConn, server net.Addr, carry carrier) {
	far, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	buffer := make([]byte, 65536)
	for number := 1; ; number++ {
		n, client, err := near.ReadFrom(buffer)
		if err != nil {
			return
		}
		if number == 1 {
			go carryBack(far, near, client)
		}
		carry(number, bytes.Clone(buffer[:n]), func(datagram []byte) { _, _ = far.WriteTo(datagram, server) })
	}
}

func carryBack(far, near net.PacketConn, client net.Addr) {
	buffer := make([]byte, 65536)
	for {
		n, _, err := far.ReadFrom(buffer)
		if err != nil {
			return
		}
		_, _ = near.WriteTo(buffer[:n], client)
	}
}

// TestPingsThatComeTwiceOrLate: neither costs a later message its answer, in whichever batch. The first message of each batch is one more, whose time is not taken.
func TestPingsThatComeTwiceOrLate(t *testing.T) {
	const batch, batches = 100, 5
	for name, tc := range map[string]struct {
		size     int
		carry    carrier
		patience time.Duration
		lost     uint64
	}{
		"twice, without a number":          {0, twice, 10 * time.Second, 0},
		"twice, with a number of one byte": {1, twice, 10 * time.Second, 0},
		"twice, with a whole number":       {64, twice, 10 * time.Second, 0},
		"late, with a number of one byte":  {1, delays(batch + 1), 2 * time.Second, 1},
		"late, with a whole number":        {64, delays(batch + 1), 2 * time.Second, 1},
		"late within a batch":              {64, delays(batch / 2), 2 * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			port, log, _ := serving(t)
			r := quick(carried(t, port, tc.carry))
			r.Transport, r.Sizes, r.Timeout = latency.UDP, []int{tc.size}, tc.patience
			r.WarmUpPings, r.Batch, r.MaximumPings = 0, batch, batch*batches
			got, err := measure(t, r, latency.Budget{})
			if err != nil || len(got.Sizes) != 1 {
				t.Fatalf("%+v, %v: %s", got, err, log)
			}
			one := &got.Sizes[0]
			if diff := cmp.Diff([]uint64{tc.lost, batch*batches - tc.lost}, []uint64{one.Lost, one.Distribution.Samples}); diff != "" {
				t.Errorf("what is lost, and what is not (-want +got):\n%s%+v", diff, got.Outcome)
			}
		})
	}
}
