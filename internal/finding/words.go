// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package finding

import (
	"fmt"
	"strconv"
	"strings"
)

// named is how many objects of one kind Words name; of more, it says the number.
const named = 4

// Words name the objects in one line: all CPUs, and of the other kinds the few that there are or their number. Files
// are left to the sentence. It is "" when there is no object.
func (o Objects) Words() string {
	counts := o.Counts()
	interrupts := make([]string, 0, named)
	for _, interrupt := range o.Interrupts[:min(named, len(o.Interrupts))] {
		interrupts = append(interrupts, interrupt.ID)
	}
	processes := make([]string, 0, named)
	for _, process := range o.Processes[:min(named, len(o.Processes))] {
		processes = append(processes, fmt.Sprintf("%s (%d)", process.Name, process.PID))
	}
	nodes := make([]string, 0, len(o.NUMANodes))
	for _, node := range o.NUMANodes {
		nodes = append(nodes, strconv.Itoa(int(node)))
	}
	var parts []string
	if !o.CPUs.IsEmpty() {
		list := noun("CPU", counts.CPUs) + " " + o.CPUs.String()
		if o.Unlisted.CPUs > 0 {
			list += fmt.Sprintf(" and %d more", o.Unlisted.CPUs)
		}
		parts = append(parts, list)
	}
	for _, kind := range []struct {
		noun  string
		list  []string
		count int32
	}{
		{"interrupt", interrupts, counts.Interrupts}, {"NIC", o.NICs, counts.NICs}, {"NUMA node", nodes, counts.NUMANodes},
		{"process", processes, counts.Processes}, {"container", o.Containers, counts.Containers},
	} {
		if words := few(kind.noun, kind.list, kind.count); words != "" {
			parts = append(parts, words)
		}
	}
	return strings.Join(parts, " · ")
}

// Beside are the words that stand beside a sentence: those of several kinds of objects, or of several objects other than
// CPUs, of which sentences name the first few. It is "" where the sentence names all.
func (o Objects) Beside() string {
	counts := o.Counts()
	kinds, most := 0, int32(0)
	for _, count := range []int32{counts.Interrupts, counts.NICs, counts.NUMANodes, counts.Processes, counts.Containers} {
		kinds += int(min(1, count))
		most = max(most, count)
	}
	if most < 2 && kinds+int(min(1, counts.CPUs)) < 2 {
		return ""
	}
	return o.Words()
}

// few names some objects if they are not too many, else it counts them.
func few(one string, list []string, count int32) string {
	switch {
	case count == 0:
		return ""
	case int(count) > min(named, len(list)):
		return fmt.Sprintf("%d %s", count, noun(one, count))
	}
	return noun(one, count) + " " + strings.Join(list, ", ")
}

// noun agrees with a number.
func noun(one string, count int32) string {
	switch {
	case count == 1:
		return one
	case strings.HasSuffix(one, "s"):
		return one + "es"
	}
	return one + "s"
}
