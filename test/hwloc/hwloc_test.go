// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package hwloc compares the project's view of a machine with that of hwloc's lstopo, an independent
// judge: packages, cores, online CPUs, NUMA nodes with their memory, and L3 caches.
//
// It runs on trees of internal/hosttree and on the machine itself, and on every directory or archive that
// the variable LLN_HWLOC_DUMPS names, separated as in PATH:
//
//	LLN_HWLOC_DUMPS=node1.tar.gz:dumps/node2 make test-hwloc
//
// Without lstopo (Debian's hwloc or hwloc-nox) there is nothing to compare with, and it is skipped.
package hwloc

import (
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

const dumpsVariable = "LLN_HWLOC_DUMPS"

// object is an object of lstopo's XML output.
type object struct {
	Type        string   `xml:"type,attr"`
	Index       int      `xml:"os_index,attr"`
	CPUs        string   `xml:"cpuset,attr"`
	LocalMemory int64    `xml:"local_memory,attr"`
	Children    []object `xml:"object"`
}

// machine is what both sides say, in words that compare well. Only online CPUs count: lstopo shows no others.
type machine struct {
	Online                     string
	Packages, Cores, L3Domains []string
	NUMANodes                  map[int]numaNode
}

// numaNode is a NUMA node. The CPUs of a memory-only one are left out: lstopo attaches it to CPUs that are
// near, while the kernel says that it has none.
type numaNode struct {
	CPUs        string
	MemoryBytes int64
}

func TestTopologyAgreesWithLstopo(t *testing.T) {
	lstopo, err := exec.LookPath("lstopo-no-graphics")
	if err != nil {
		if os.Getenv(dumpsVariable) != "" {
			t.Fatalf("%s is set, but lstopo-no-graphics is not installed: %v", dumpsVariable, err)
		}
		t.Skip("lstopo-no-graphics is not installed")
	}
	for name, path := range inputs(t) {
		t.Run(name, func(t *testing.T) {
			ours := ourView(t, path)
			theirs := lstopoView(t, lstopo, unpacked(t, path), ours)
			if diff := cmp.Diff(theirs, ours); diff != "" {
				t.Errorf("(-lstopo +topology):\n%s", diff)
			}
		})
	}
}

// inputs are the hosts to compare, by name.
func inputs(t *testing.T) map[string]string {
	t.Helper()
	if dumps := os.Getenv(dumpsVariable); dumps != "" {
		named := map[string]string{}
		for _, path := range filepath.SplitList(dumps) {
			named[filepath.Base(path)] = path
		}
		return named
	}
	interleaved := hosttree.Xeon()
	interleaved.Numbering = hosttree.NumberingInterleaved
	named := map[string]string{
		"this machine":                   "/",
		"two sockets with SMT":           tree(t, hosttree.Xeon(), hosttree.BootOptions{}),
		"two sockets booted with nosmt":  tree(t, hosttree.Xeon(), hosttree.BootOptions{CommandLine: "nosmt"}),
		"interleaved numbering":          tree(t, interleaved, hosttree.BootOptions{}),
		"eight NUMA nodes":               tree(t, hosttree.EPYC(), hosttree.BootOptions{}),
		"eight NUMA nodes, CPUs offline": tree(t, hosttree.EPYC(), hosttree.BootOptions{Offline: "3,8-15,72-79,100"}),
		"arm64 without L3 cache":         tree(t, hosttree.Arm(), hosttree.BootOptions{}),
	}
	return named
}

func tree(t *testing.T, m hosttree.Machine, options hosttree.BootOptions) string {
	t.Helper()
	dir := t.TempDir()
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := hosttree.Boot(dir, options); err != nil {
		t.Fatal(err)
	}
	return dir
}

// ourView reads the host as the agent and the command line do.
func ourView(t *testing.T, path string) machine {
	t.Helper()
	h, err := host.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := h.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	top, err := topology.FromFacts(facts)
	if err != nil {
		t.Fatal(err)
	}
	m := machine{
		Online: top.Online.String(), Packages: online(top, top.Packages), L3Domains: online(top, top.L3Domains),
		NUMANodes: map[int]numaNode{},
	}
	cores := make([]cpus.Set, 0, len(top.Cores))
	for _, core := range top.Cores {
		cores = append(cores, core.CPUs)
	}
	m.Cores = online(top, cores)
	for _, node := range top.NUMANodes {
		entry := numaNode{CPUs: node.CPUs.String()}
		if node.MemoryBytes != nil {
			entry.MemoryBytes = *node.MemoryBytes
		}
		m.NUMANodes[node.ID] = entry
	}
	return m
}

// online writes the online CPUs of each set, sets without any left out.
func online(top *topology.Topology, sets []cpus.Set) []string {
	var texts []string
	for _, set := range sets {
		if on := set.Intersection(top.Online); !on.IsEmpty() {
			texts = append(texts, on.String())
		}
	}
	slices.Sort(texts)
	return texts
}

// lstopoView lets lstopo look at a tree. It shows what cgroups of the dumped process forbid, too, and the
// memory of GPUs, which the kernel counts as NUMA nodes.
func lstopoView(t *testing.T, lstopo, dir string, ours machine) machine {
	t.Helper()
	command := exec.CommandContext(t.Context(), lstopo, "--input", dir, "--no-io", "--disallowed", "--output-format", "xml", "-")
	command.Env = append(os.Environ(), "HWLOC_HIDE_ERRORS=2", "HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES=1")
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	var root struct {
		Objects []object `xml:"object"`
	}
	if err := xml.Unmarshal(output, &root); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	m := machine{NUMANodes: map[int]numaNode{}}
	var all cpus.Set
	visit(root.Objects, func(o object) {
		set := bitmap(t, o.CPUs)
		switch o.Type {
		case "Package":
			m.Packages = append(m.Packages, set.String())
		case "Core":
			m.Cores = append(m.Cores, set.String())
		case "L3Cache":
			m.L3Domains = append(m.L3Domains, set.String())
		case "PU":
			all = all.Union(set)
		case "NUMANode":
			node := numaNode{CPUs: set.String(), MemoryBytes: o.LocalMemory}
			if own, known := ours.NUMANodes[o.Index]; known && own.CPUs == "" {
				node.CPUs = ""
			}
			m.NUMANodes[o.Index] = node
		}
	})
	m.Online = all.String()
	for _, texts := range [][]string{m.Packages, m.Cores, m.L3Domains} {
		slices.Sort(texts)
	}
	return m
}

func visit(objects []object, see func(object)) {
	for _, o := range objects {
		see(o)
		visit(o.Children, see)
	}
}

// bitmap reads hwloc's notation of a set: "0x0000000f,,0xff000000", groups of 32 bits, the highest first;
// an empty group is 0.
func bitmap(t *testing.T, text string) cpus.Set {
	t.Helper()
	var ids []int
	groups := strings.Split(text, ",")
	for i, group := range groups {
		if group == "" {
			continue
		}
		bits, err := strconv.ParseUint(strings.TrimPrefix(group, "0x"), 16, 32)
		if err != nil {
			t.Fatalf("lstopo's set %q: %v", text, err)
		}
		for bit := range 32 {
			if bits&(1<<bit) != 0 {
				ids = append(ids, (len(groups)-1-i)*32+bit)
			}
		}
	}
	return cpus.Of(ids...)
}

// unpacked returns the directory that holds /sys of a dump, unpacking an archive.
func unpacked(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if !info.IsDir() {
		dir := t.TempDir()
		if output, err := exec.CommandContext(t.Context(), "tar", "-xf", path, "-C", dir).CombinedOutput(); err != nil {
			t.Fatalf("unpacking %s: %v: %s", path, err, output)
		}
		path = dir
	}
	for _, candidate := range []string{"sys", "*/sys"} {
		if found, err := filepath.Glob(filepath.Join(path, candidate)); err == nil && len(found) > 0 {
			return filepath.Dir(found[0])
		}
	}
	t.Fatal(fmt.Errorf("%s holds no sys folder", path))
	return ""
}
