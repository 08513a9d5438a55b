// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// stampingWords is who has stamped messages where; "" for nobody.
func stampingWords(by *latency.Stamping) string {
	switch {
	case by == nil:
		return ""
	case by.By == latency.StampedByNIC && by.Clock != nil:
		return fmt.Sprintf("NIC %s, by its clock /dev/ptp%d", by.Interface, *by.Clock)
	case by.By == latency.StampedByNIC:
		return fmt.Sprintf("NIC %s, by its own clock", by.Interface)
	default:
		return fmt.Sprintf("kernel, at interface %s, by CLOCK_REALTIME", by.Interface)
	}
}

// latencyStamps are two rows for each size: what passed between who stamps and the server, and what the client's own host added. Nothing where messages were
// not to be stamped.
func latencyStamps(b *strings.Builder, result *latency.Result) {
	if result.Setup.Stamping == nil {
		return
	}
	var rows [][]string
	for i := range result.Sizes {
		s := result.Sizes[i].Stamps
		if s == nil {
			continue
		}
		for _, part := range []struct {
			name string
			of   *latency.Distribution
		}{{"wire", &s.Wire}, {"host", &s.Host}} {
			row := append(make([]string, 0, 10), "#"+strconv.Itoa(result.Sizes[i].Bytes), part.name)
			for _, percent := range latency.Ladder() {
				row = append(row, ladderCell(part.of, percent))
			}
			rows = append(rows, append(row, strconv.FormatUint(part.of.Samples, 10), strconv.FormatUint(s.Missing(), 10)))
		}
	}
	fmt.Fprintf(b, "# stamps: %s; reporting: %s, in nanoseconds\n", stampingWords(result.Setup.Stamping), Reported(result))
	b.WriteString("# wire: from the stamp of a message to that of its answer, with the network and the server's host; host: the rest, which the client's host took between program and stamp\n")
	header := append(make([]string, 0, 10), "#size", "part")
	for _, percent := range latency.Ladder() {
		header = append(header, formatPercent(percent))
	}
	b.WriteString(rightAligned(append(header, "stamped", "missing"), rows))
}
