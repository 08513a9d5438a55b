// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package traffic

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// doubledAnswers is a server of datagrams whose way back makes several of an answer, or none.
type doubledAnswers struct {
	// copies of the answer to each message of a stream that wants one, and of no bytes, in the order in which they come.
	copies func(message int) int
	// isStream says that what comes is a stream.
	isStream atomic.Bool
}

// serve answers one client, on the port that it gives.
func (d *doubledAnswers) serve(t *testing.T) int {
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
	go d.answer(messages)
	go d.converse(control, messages.LocalAddr().(*net.UDPAddr).Port)
	return control.Addr().(*net.TCPAddr).Port
}

// converse is the control connection of a server that counts nothing.
func (d *doubledAnswers) converse(control net.Listener, port int) {
	connection, err := control.Accept()
	if err != nil {
		return
	}
	defer func() { _ = connection.Close() }()
	lines := bufio.NewReader(connection)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		switch word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "ping", "stream":
			d.isStream.Store(word == "stream")
			_, _ = io.WriteString(connection, "ready\n")
		case "end":
			_, _ = io.WriteString(connection, "received 0 0 0 0 0 0 0 0 0\n")
		case "counts":
			_, _ = io.WriteString(connection, "counts 10 -1 0 0\n")
		case "counters":
			_, _ = io.WriteString(connection, "counters "+notCounted+"\n")
		default:
			_, _ = fmt.Fprintf(connection, "ok %d 3 far 6.1\nintroduced\nopen\n", port)
		}
	}
}

func (d *doubledAnswers) answer(messages net.PacketConn) {
	buffer := make([]byte, 65536)
	for wanted := 0; ; {
		n, from, err := messages.ReadFrom(buffer)
		if err != nil {
			return
		}
		copies := 1
		switch {
		case d.isStream.Load() && binary.LittleEndian.Uint64(buffer)>>63 == 0:
			// The highest bit of the number of a message in a stream asks for an answer.
			continue
		case d.isStream.Load() || n == 0:
			copies = d.copies(wanted)
			wanted++
		}
		for range copies {
			_, _ = messages.WriteTo(buffer[:n], from)
		}
	}
}

// TestAnswersThatComeTwice stand for none that are lost.
func TestAnswersThatComeTwice(t *testing.T) {
	const wanted, lost = 200, 20
	r := slow((&doubledAnswers{copies: func(message int) int {
		if message%10 == 3 {
			return 0
		}
		return 2
	}}).serve(t))
	r.Rates, r.Timeout = []uint64{wanted}, time.Second
	got, err := MeasureRates(t.Context(), os.Getenv(sanitizedVariable), r, latency.Budget{}, func(Progress) {})
	if err != nil || len(got.Rates) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if one := got.Rates[0]; one.AnswersWanted != wanted || one.AnswersLost != lost || one.FromIntended.Samples != wanted-lost {
		t.Errorf("of %d answers %d are lost, and %d are samples", one.AnswersWanted, one.AnswersLost, one.FromIntended.Samples)
	}
}

// TestAnswersOfNoBytes: one that comes twice is not that to the next message, of which nothing would tell it.
func TestAnswersOfNoBytes(t *testing.T) {
	r := quick((&doubledAnswers{copies: func(message int) int {
		if message == 5 {
			return 2
		}
		return 1
	}}).serve(t))
	r.Transport, r.Sizes, r.WarmUpPings, r.Batch, r.MaximumPings = latency.UDP, []int{0}, 0, 50, 50
	got, err := measure(t, r, latency.Budget{})
	if err != nil || len(got.Sizes) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if one := got.Sizes[0]; one.Stray != 1 || one.Lost != 0 || one.Distribution.Samples != 50 {
		t.Errorf("%+v", one)
	}
}
