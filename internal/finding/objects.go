// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package finding holds what a finding is about: the CPUs, interrupts, NICs, NUMA nodes, processes, containers and
// files of a node, as values. Plans, checks and pools say it once; status, report, drawing and JSON are projections of
// it, and nothing is read back from a sentence. It stands below plan and verify, so that every layer can carry it.
// It is pure.
package finding

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// Objects are the parts of a node that a finding is about. The zero value names none: the finding is about the node as
// a whole. Lists are ascending and without duplicates once they went through Union.
type Objects struct {
	CPUs       cpus.Set
	Interrupts []v1alpha1.Interrupt
	// NICs by PCI address.
	NICs      []string
	NUMANodes []int32
	Processes []v1alpha1.Process
	// Containers as NAMESPACE/POD/CONTAINER, or with the UID of the pod where only that is known.
	Containers []string
	// Files of the host that hold something else than planned.
	Files []string
	// Unlisted counts the objects that a bounded source, such as a status, knows of and does not list.
	Unlisted v1alpha1.ObjectCounts
}

// OfCPUs are objects that are CPUs.
func OfCPUs(set cpus.Set) Objects { return Objects{CPUs: set} }

// OfNICs are objects that are NICs, by PCI address.
func OfNICs(addresses ...string) Objects { return Objects{NICs: addresses} }

// OfNUMANodes are objects that are NUMA nodes.
func OfNUMANodes(ids ...int) Objects {
	nodes := make([]int32, 0, len(ids))
	for _, id := range ids {
		nodes = append(nodes, int32(id))
	}
	return Objects{NUMANodes: nodes}
}

// OfFiles are objects that are files.
func OfFiles(paths ...string) Objects { return Objects{Files: paths} }

// OfContainers are objects that are containers.
func OfContainers(names ...string) Objects { return Objects{Containers: names} }

// IsZero reports whether no object is named.
func (o Objects) IsZero() bool { return o.IsEmpty() }

// IsEmpty reports whether no object is named.
func (o Objects) IsEmpty() bool { return o.Counts() == v1alpha1.ObjectCounts{} }

// Counts are the numbers of objects, those that are not listed included.
func (o Objects) Counts() v1alpha1.ObjectCounts {
	return v1alpha1.ObjectCounts{
		CPUs:       int32(o.CPUs.Len()) + o.Unlisted.CPUs,
		Interrupts: int32(len(o.Interrupts)) + o.Unlisted.Interrupts,
		NICs:       int32(len(o.NICs)) + o.Unlisted.NICs,
		NUMANodes:  int32(len(o.NUMANodes)) + o.Unlisted.NUMANodes,
		Processes:  int32(len(o.Processes)) + o.Unlisted.Processes,
		Containers: int32(len(o.Containers)) + o.Unlisted.Containers,
		Files:      int32(len(o.Files)) + o.Unlisted.Files,
	}
}

// Union are the objects of all.
func Union(all ...Objects) Objects {
	var joined Objects
	for _, o := range all {
		joined.CPUs = joined.CPUs.Union(o.CPUs)
		joined.Interrupts = append(joined.Interrupts, o.Interrupts...)
		joined.NICs = append(joined.NICs, o.NICs...)
		joined.NUMANodes = append(joined.NUMANodes, o.NUMANodes...)
		joined.Processes = append(joined.Processes, o.Processes...)
		joined.Containers = append(joined.Containers, o.Containers...)
		joined.Files = append(joined.Files, o.Files...)
		joined.Unlisted = sum(joined.Unlisted, o.Unlisted)
	}
	joined.Interrupts = distinct(joined.Interrupts, compareInterrupts)
	joined.NICs = distinct(joined.NICs, cmp.Compare)
	joined.NUMANodes = distinct(joined.NUMANodes, cmp.Compare)
	joined.Processes = distinct(joined.Processes, compareProcesses)
	joined.Containers = distinct(joined.Containers, cmp.Compare)
	joined.Files = distinct(joined.Files, cmp.Compare)
	return joined
}

// distinct sorts a list and leaves each item once.
func distinct[T comparable](list []T, compare func(a, b T) int) []T {
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}

// compareInterrupts orders numbers before names, and smaller numbers first.
func compareInterrupts(a, b v1alpha1.Interrupt) int {
	return cmp.Or(cmp.Compare(kind(a.ID), kind(b.ID)), cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Handlers, b.Handlers))
}

// kind is 0 for numbers and 1 for names.
func kind(id string) int {
	if id != "" && id[0] >= '0' && id[0] <= '9' {
		return 0
	}
	return 1
}

func compareProcesses(a, b v1alpha1.Process) int {
	return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Name, b.Name))
}

func sum(a, b v1alpha1.ObjectCounts) v1alpha1.ObjectCounts {
	return v1alpha1.ObjectCounts{
		CPUs: a.CPUs + b.CPUs, Interrupts: a.Interrupts + b.Interrupts, NICs: a.NICs + b.NICs, NUMANodes: a.NUMANodes + b.NUMANodes,
		Processes: a.Processes + b.Processes, Containers: a.Containers + b.Containers, Files: a.Files + b.Files,
	}
}

// written is the JSON of objects: the lists as they are, and the numbers of all.
type written struct {
	CPUs       cpus.Set              `json:"cpus,omitzero"`
	Interrupts []v1alpha1.Interrupt  `json:"interrupts,omitempty"`
	NICs       []string              `json:"nics,omitempty"`
	NUMANodes  []int32               `json:"numaNodes,omitempty"`
	Processes  []v1alpha1.Process    `json:"processes,omitempty"`
	Containers []string              `json:"containers,omitempty"`
	Files      []string              `json:"files,omitempty"`
	Counts     v1alpha1.ObjectCounts `json:"counts"`
}

// MarshalJSON writes whole lists, and the numbers of all objects beside them. The fields are those of FindingObjects
// in a status.
func (o Objects) MarshalJSON() ([]byte, error) {
	data, err := json.Marshal(written{o.CPUs, o.Interrupts, o.NICs, o.NUMANodes, o.Processes, o.Containers, o.Files, o.Counts()})
	if err != nil {
		return nil, fmt.Errorf("writing the objects of a finding: %w", err)
	}
	return data, nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (o *Objects) UnmarshalJSON(data []byte) error {
	var w written
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("reading the objects of a finding: %w", err)
	}
	*o = Objects{w.CPUs, w.Interrupts, w.NICs, w.NUMANodes, w.Processes, w.Containers, w.Files, v1alpha1.ObjectCounts{}}
	o.Unlisted = unlisted(w.Counts, o.Counts())
	return nil
}

// unlisted is what there is beyond what is listed.
func unlisted(all, listed v1alpha1.ObjectCounts) v1alpha1.ObjectCounts {
	return v1alpha1.ObjectCounts{
		CPUs: max(0, all.CPUs-listed.CPUs), Interrupts: max(0, all.Interrupts-listed.Interrupts), NICs: max(0, all.NICs-listed.NICs),
		NUMANodes: max(0, all.NUMANodes-listed.NUMANodes), Processes: max(0, all.Processes-listed.Processes),
		Containers: max(0, all.Containers-listed.Containers), Files: max(0, all.Files-listed.Files),
	}
}
