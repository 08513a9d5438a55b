// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Place is where on a machine a finding is to be shown, as its sentence names it. A finding about the whole machine,
// such as one about a kernel parameter, has no place.
type Place struct {
	CPUs cpus.Set `json:"cpus"`
	// EveryIsolated tells that all isolated CPUs are among CPUs, so that it would say nothing to mark each.
	EveryIsolated bool `json:"everyIsolated"`
	// NICs by PCI address.
	NICs []string `json:"nics"`
	// NUMANodes that the sentence names as such.
	NUMANodes []int `json:"numaNodes"`
}

// IsNowhere tells whether the finding is about the whole machine.
func (p Place) IsNowhere() bool {
	return p.CPUs.IsEmpty() && len(p.NICs) == 0 && len(p.NUMANodes) == 0
}

// in tells whether the finding is to be shown at a NUMA node: one of its CPUs or NICs is there, or it names just the node.
func (p Place) in(node *topology.NUMANode, cores []topology.Core, nics []topology.NIC) bool {
	at := slices.ContainsFunc(nics, func(nic topology.NIC) bool { return slices.Contains(p.NICs, nic.PCIAddress) })
	return at || !p.EveryIsolated && p.CPUs.Overlaps(cpusAt(node, cores)) || slices.Contains(p.NUMANodes, node.ID)
}

// label names what of a NUMA node the finding is about: its CPUs and NICs there, or the node itself.
func (p Place) label(node *topology.NUMANode, cores []topology.Core, nics []topology.NIC) string {
	var labels []string
	switch here := p.CPUs.Intersection(cpusAt(node, cores)); {
	case p.EveryIsolated || here.IsEmpty():
	case here.Len() == 1:
		labels = append(labels, "CPU "+here.String())
	default:
		labels = append(labels, "CPUs "+here.String())
	}
	for _, nic := range nics {
		if slices.Contains(p.NICs, nic.PCIAddress) {
			labels = append(labels, nicName(nic))
		}
	}
	if len(labels) == 0 {
		return "NUMA node " + strconv.Itoa(node.ID)
	}
	return strings.Join(labels, ", ")
}

// cpusAt are the CPUs of a NUMA node with those that are off.
func cpusAt(node *topology.NUMANode, cores []topology.Core) cpus.Set {
	all := node.CPUs
	for _, core := range cores {
		all = all.Union(core.CPUs)
	}
	return all
}

// documentation is the place of a check in the documentation, where each has its identifier as an anchor.
func documentation(check v1alpha1.CheckID) string {
	const page = "https://github.com/lowlatency-dev/lowlatency-operator/blob/main/docs/checks.md#"
	return page + string(check)
}

// cpuList matches the CPUs that a sentence names: "CPU 5", "CPUs 4-5,8". Housekeeping CPUs are named for comparison.
const cpuList = `(\bhousekeeping )?\bCPUs? ([0-9]+(?:[-,][0-9]+)*)\b`

// placeOf finds what a finding names. Checks of many CPUs name them all in what was observed, and some of them at length in the
// sentence. What is unknown is so nowhere in particular, and what was waived is to be shown nowhere.
func placeOf(finding v1alpha1.Finding, t *topology.Topology, isolated cpus.Set) Place {
	place := Place{NICs: []string{}, NUMANodes: []int{}}
	if finding.Outcome != v1alpha1.OutcomeFailed {
		return place
	}
	place.CPUs = cpusIn(finding, t)
	place.EveryIsolated = !isolated.IsEmpty() && isolated.IsSubsetOf(place.CPUs)
	for _, nic := range t.NICs {
		if names(finding.Message, nic.PCIAddress) || names(finding.Message, nic.Name) || names(finding.Observed, nic.PCIAddress) {
			place.NICs = append(place.NICs, nic.PCIAddress)
		}
	}
	if place.IsNowhere() {
		place.NUMANodes = nodesIn(finding.Message, t)
	}
	return place
}

func cpusIn(finding v1alpha1.Finding, t *topology.Topology) cpus.Set {
	texts := []string{finding.Message}
	if regexp.MustCompile(`^` + cpuList + `$`).MatchString(finding.Observed) {
		texts = []string{finding.Observed}
	}
	var found cpus.Set
	for _, text := range texts {
		for _, match := range regexp.MustCompile(cpuList).FindAllStringSubmatch(text, -1) {
			if set, err := cpus.Parse(match[2]); err == nil && match[1] == "" {
				found = found.Union(set)
			}
		}
	}
	return found.Intersection(t.Online.Union(t.Offline))
}

func nodesIn(message string, t *topology.Topology) []int {
	nodes := []int{}
	for _, match := range regexp.MustCompile(`\bNUMA node ([0-9]+)\b`).FindAllStringSubmatch(message, -1) {
		id, err := strconv.Atoi(match[1])
		if _, exists := t.NUMANode(id); err == nil && exists && !slices.Contains(nodes, id) {
			nodes = append(nodes, id)
		}
	}
	return nodes
}

// names tells whether a text has the name of a NIC as a word of its own, as "i40e-ens7f0-TxRx-3" has ens7f0. Names of
// fewer than three characters could be anything.
func names(text, name string) bool {
	const least = 3
	if len(name) < least {
		return false
	}
	isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	for from := 0; ; {
		at := strings.Index(text[from:], name)
		if at < 0 {
			return false
		}
		begin, end := from+at, from+at+len(name)
		before, _ := utf8.DecodeLastRuneInString(text[:begin])
		after, _ := utf8.DecodeRuneInString(text[end:])
		if (begin == 0 || !isWord(before)) && (end == len(text) || !isWord(after)) {
			return true
		}
		from = begin + 1
	}
}
