// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/layout"
)

const (
	// crowd is the number of CPUs from which on a node is drawn with a letter for each CPU instead of its number.
	crowd = 192
	// lettersInRow is the most letters that stand beside one label.
	lettersInRow = 16
)

// letterRows draws the CPUs of cores as letters, behind the numbers of the first and the last: those that share an L3
// cache together, with the second threads of the cores in a row of their own.
func (m *machine) letterRows(groups []layout.Group, columns int) []string {
	var labels, letters []string
	for _, group := range groups {
		for _, ids := range threadRows(group) {
			for len(ids) > 0 {
				row := ids[:min(lettersInRow, len(ids))]
				labels, letters = append(labels, span(row)), append(letters, m.letterRow(row))
				ids = ids[len(row):]
			}
		}
	}
	label, row := widest(labels), widest(letters)
	pieces := make([]string, 0, len(labels))
	for i := range labels {
		pieces = append(pieces, m.palette.Faint(padLeft(labels[i], label))+" "+padRight(letters[i], row))
	}
	return flow(pieces, "  ", columns)
}

func (m *machine) letterRow(ids []int) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(m.letter(id))
	}
	return b.String()
}

// threadRows are the first threads of all cores, then their second, and so on.
func threadRows(group layout.Group) [][]int {
	var rows [][]int
	for _, core := range group.Cores {
		for i, id := range core.CPUs.IDs() {
			if i == len(rows) {
				rows = append(rows, nil)
			}
			rows[i] = append(rows[i], id)
		}
	}
	return rows
}

// span names the first and the last of some CPUs.
func span(ids []int) string {
	if len(ids) == 1 {
		return strconv.Itoa(ids[0])
	}
	last := ids[len(ids)-1]
	if last-ids[0] == len(ids)-1 {
		return fmt.Sprintf("%d-%d", ids[0], last)
	}
	return fmt.Sprintf("%d…%d", ids[0], last)
}

func widest(texts []string) int {
	most := 0
	for _, text := range texts {
		most = max(most, width(text))
	}
	return most
}
