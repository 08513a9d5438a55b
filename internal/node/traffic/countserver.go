// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// longestQuestion bounds what the program of a server asks, in bytes.
const longestQuestion = 64

// cpuCounter counts on the CPU of a server's program while that answers a client.
type cpuCounter struct {
	host *host.Host
	cpu  int
	// number is that of the measurement which has begun, and begun what the CPU had counted then; nil for none.
	number uint64
	begun  *begunCounting
}

// answerQuestions answers the program of a server over a socket of packets until its end is closed. Where it cannot answer, the program tells its client so.
func (c *cpuCounter) answerQuestions(ctx context.Context, program io.ReadWriter) {
	packet := make([]byte, longestQuestion)
	for {
		n, err := program.Read(packet)
		if err != nil || n == 0 {
			return
		}
		answer, err := c.answer(ctx, string(packet[:n]))
		if err != nil {
			return
		}
		if _, err := io.WriteString(program, answer); err != nil {
			return
		}
	}
}

// answer is what the program is told: "begin N" is answered when the CPU was read, and "end N" with what it has counted since.
func (c *cpuCounter) answer(ctx context.Context, question string) (string, error) {
	word, number, err := parseQuestion(question)
	if err != nil {
		return "", err
	}
	if word == "begin" {
		c.number = number
		if c.cpu >= 0 {
			c.begun, err = beginCounting(ctx, c.host, c.cpu)
		}
		return fmt.Sprintf("begun %d ", number), err
	}
	counts, err := c.end(ctx, number)
	if err != nil {
		return "", err
	}
	text, err := encodeCounts(counts)
	return fmt.Sprintf("counted %d %s", number, text), err
}

// end is what was counted over a measurement, or why nothing was.
func (c *cpuCounter) end(ctx context.Context, number uint64) (latency.Counts, error) {
	switch {
	case c.cpu < 0:
		return latency.Counts{CPU: c.cpu, Unknown: "the server is kept to no CPU"}, nil
	case c.begun == nil || c.number != number:
		return latency.Counts{CPU: c.cpu, Unknown: "the server has not said when the measurement began"}, nil
	}
	return c.begun.end(ctx, c.host)
}

// parseQuestion reads a word and the number of a measurement.
func parseQuestion(question string) (asked string, number uint64, err error) {
	asked, digits, _ := strings.Cut(question, " ")
	number, err = strconv.ParseUint(digits, 10, 64)
	if err != nil || (asked != "begin" && asked != "end") {
		return "", 0, fmt.Errorf("%q is no question about a measurement", printable(question))
	}
	return asked, number, nil
}
