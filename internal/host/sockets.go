// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// SocketReports is the folder in which device plugins of stack AFXDP say what they found out by trying, and what nobody
// else can see: a file with the name of each pool, see SocketReport.
const SocketReports = "/run/lowlatency/afxdp/reports"

// SocketReport is what the device plugin of one pool says: a sentence about each NIC, by PCI address, that could not be
// made ready, and under "" one about the node.
type SocketReport map[string]string

// anyNIC stands in the file for the address in a sentence about the node.
const anyNIC = "*"

// String is the content of a report's file: a line with address and sentence each, in ascending order.
func (s SocketReport) String() string {
	var text strings.Builder
	for _, address := range slices.Sorted(maps.Keys(s)) {
		subject := address
		if address == "" {
			subject = anyNIC
		}
		fmt.Fprintf(&text, "%s %s\n", subject, strings.Join(strings.Fields(s[address]), " "))
	}
	return text.String()
}

// parseSocketReport reads a file of a report.
func parseSocketReport(text string) (SocketReport, error) {
	report := SocketReport{}
	for line := range strings.Lines(text) {
		subject, sentence, _ := strings.Cut(strings.TrimSpace(line), " ")
		if sentence = strings.TrimSpace(sentence); sentence == "" {
			return nil, fmt.Errorf("not a PCI address and a sentence: %q", abbreviate(line))
		}
		if subject == anyNIC {
			subject = ""
		}
		report[subject] = sentence
	}
	return report, nil
}

// socketReports reads the reports of all pools. No folder means that no plugin of this stack had anything to say.
func (r *reader) socketReports() Fact[map[string]SocketReport] {
	names, err := r.list(SocketReports, func(e entry) bool {
		// A name with a dot is that of a file which is being written.
		return e.kind == kindFile && !strings.HasPrefix(e.name, ".")
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Absent[map[string]SocketReport](SocketReports, reasonOf(err))
	}
	reports := map[string]SocketReport{}
	for _, name := range names {
		file := SocketReports + "/" + name
		report := read(r, source[SocketReport]{file, parseSocketReport})
		if !report.Known {
			return Absent[map[string]SocketReport](file, report.Reason)
		}
		reports[name] = report.Value
	}
	return Known(reports, SocketReports)
}
