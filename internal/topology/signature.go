// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// hashDigits is the number of hexadecimal digits of hashes and signatures.
const hashDigits = 16

// Signature returns 16 hexadecimal digits that are equal for hosts of the same layout: architecture,
// processor vendor, present CPUs, and which cores share a package, an L3 cache and a NUMA node, which are slower than others, and
// what physical NICs sit on which NUMA node. Amounts of memory, kernel, command line and hugepages do
// not count.
//
// A core counts by its first CPU alone, because a host that was booted with nosmt no longer tells
// whose siblings its offline CPUs are (the kernel removes topology/ of offline CPUs): the signature is
// the same with and without nosmt. Taking whole cores offline does change it.
func (t *Topology) Signature() string {
	first := t.firstThreads()
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n%s\npresent %s\ncores %s\n", t.Architecture, t.Vendor, t.Present, first)
	if slower := t.Efficiency.Intersection(first); !slower.IsEmpty() {
		fmt.Fprintf(&text, "efficiency %s\n", slower)
	}
	for _, members := range t.Packages {
		fmt.Fprintf(&text, "package %s\n", members.Intersection(first))
	}
	for _, members := range t.L3Domains {
		fmt.Fprintf(&text, "l3 %s\n", members.Intersection(first))
	}
	for _, node := range t.NUMANodes {
		fmt.Fprintf(&text, "node %d %s\n", node.ID, node.CPUs.Intersection(first))
	}
	for _, position := range t.nicPositions() {
		fmt.Fprintf(&text, "nic %s\n", position)
	}
	return digest([]byte(text.String()))
}

// firstThreads returns the first CPU of each core, and the online CPUs that are in no core.
func (t *Topology) firstThreads() cpus.Set {
	firsts := each(t.threads(), cpus.Set.First)
	return cpus.Of(firsts...).Union(t.WithoutCore())
}

// nicPositions says what physical NICs are on which NUMA node, in an order that does not depend on slots.
func (t *Topology) nicPositions() []string {
	positions := each(t.PhysicalNICs(), func(nic NIC) string {
		node := "unknown"
		if nic.NUMANode != nil {
			node = strconv.Itoa(*nic.NUMANode)
		}
		return fmt.Sprintf("%s:%s node %s", nic.Vendor, nic.Device, node)
	})
	slices.Sort(positions)
	return positions
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])[:hashDigits]
}
