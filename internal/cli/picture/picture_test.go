// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package picture

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodereport"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// machine has two packages, with one NUMA node and one NIC each, and so many cores of two threads.
func machine(cores int) *topology.Topology {
	t := &topology.Topology{Model: "Processor", Architecture: "amd64", Packages: make([]cpus.Set, 2)}
	for id := range cores {
		node := id * 2 / cores
		core := cpus.Of(id, id+cores)
		t.Cores = append(t.Cores, topology.Core{CPUs: core, NUMANode: node, Package: node, L3: id / 4})
		t.Packages[node] = t.Packages[node].Union(core)
		t.Online = t.Online.Union(core)
	}
	for node := range 2 {
		t.NUMANodes = append(t.NUMANodes, topology.NUMANode{
			ID: node, CPUs: t.Packages[node], MemoryBytes: new(int64(64 << 30)),
			Hugepages: []topology.HugepagePool{{SizeKibibytes: 2048, Total: 40, Free: 10}},
		})
		t.NICs = append(t.NICs, topology.NIC{PCIAddress: fmt.Sprintf("0000:%d1:00.0", node), Name: fmt.Sprintf("ens%df0", node), Driver: "sfc", NUMANode: &node})
	}
	return t
}

// planFor isolates all but the first core of each NUMA node, and wants 50 hugepages on the first.
func planFor(t *topology.Topology) *plan.NodePlan {
	p := &plan.NodePlan{Profile: "trading", Hugepages: []plan.HugepagePlan{{Size: "2Mi", SizeKibibytes: 2048, Count: 50, NUMANode: new(0)}}}
	for _, node := range t.NUMANodes {
		first := t.CoresOf(node.ID)[0].CPUs
		p.CPUs.Housekeeping = p.CPUs.Housekeeping.Union(first)
		p.CPUs.Isolated = p.CPUs.Isolated.Union(node.CPUs.Difference(first))
	}
	return p
}

// nodeOf is the machine with containers, a pool and findings. The words stand where a cluster could put any.
func nodeOf(t *topology.Topology, words string) view.Node {
	pool := view.Pool{Pool: words, Nodes: []view.PoolNode{{Node: "a", NICs: []view.PoolNIC{{
		PCIAddress: "0000:01:00.0", Health: v1alpha1.NICUnhealthy, Units: 3, Users: []view.PoolUser{{Pod: words}},
	}}}}}
	in := view.NodeInput{
		Name: words, Profile: words, Topology: t, Plan: planFor(t), Pools: []view.Pool{pool},
		Containers: []nodereport.Container{{Namespace: new("ns"), Pod: &words, Container: "app", CPUs: cpus.Of(2)}},
	}
	object := &v1alpha1.LowLatencyNode{}
	object.Status.Checks = &v1alpha1.CheckCounts{Passed: 3, Failed: 4}
	failed := func(check v1alpha1.CheckID, message string, about finding.Objects) v1alpha1.Finding {
		return v1alpha1.Finding{Check: check, Outcome: v1alpha1.OutcomeFailed, Severity: v1alpha1.SeverityCritical, Message: message, Objects: about.Status()}
	}
	object.Status.Findings = []v1alpha1.Finding{
		failed("irq.effective-affinity", "IRQ 49 ("+words+"-0) is delivered to isolated CPU 3; wanted 0",
			finding.Objects{CPUs: cpus.Of(3), Interrupts: []v1alpha1.Interrupt{{ID: "49"}}}),
		failed("numa.nic-locality", "NIC ens1f0 (0000:11:00.0) is on NUMA node 1, planned is 0", finding.OfNICs("0000:11:00.0")),
		failed("kernel.type", "the kernel is "+words, finding.Objects{}),
		failed("cpu.isolated", "isolated CPUs "+in.Plan.CPUs.Isolated.String()+" are in the scheduler's domains", finding.OfCPUs(in.Plan.CPUs.Isolated)),
	}
	return view.OfStatus(in, object)
}

func TestPicture(t *testing.T) {
	for name, cores := range map[string]int{"small.svg": 8, "crowd.svg": 128} {
		v := nodeOf(machine(cores), "trading-1")
		golden.Assert(t, SVG(&v), name)
	}
}

// elements counts the elements of a document by name, and collects its text.
func elements(t *testing.T, document string) (map[string]int, string) {
	t.Helper()
	counts := map[string]int{}
	var text strings.Builder
	for decoder := xml.NewDecoder(strings.NewReader(document)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return counts, text.String()
		}
		if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			counts[token.Name.Local]++
		case xml.CharData:
			text.Write(token)
		}
	}
}

// TestHostileNames puts markup and what XML does not allow where hosts and clusters put names.
func TestHostileNames(t *testing.T) {
	plainView := nodeOf(machine(8), "x")
	plain, _ := elements(t, SVG(&plainView))
	hostile := "</text><script>alert(1)</script>\x00\x1b[31m\"'&\xff"
	top := machine(8)
	top.NICs[0].Name, top.NICs[1].Driver, top.Model = hostile, hostile, hostile
	v := nodeOf(top, hostile)
	for _, document := range []string{SVG(&v), Machine(&v)} {
		counts, text := elements(t, document)
		for _, name := range []string{"script", "a", "image", "foreignObject"} {
			if counts[name] > 0 {
				t.Errorf("the picture has an element %s", name)
			}
		}
		if counts["rect"] != plain["rect"] && document == SVG(&v) {
			t.Errorf("the picture has %d rectangles, without markup in names it has %d", counts["rect"], plain["rect"])
		}
		if !strings.Contains(text, "<script>") {
			t.Error("the name is not shown as it is")
		}
	}
}

// TestNothingIsLost draws every CPU, whatever their number, inside of the picture.
func TestNothingIsLost(t *testing.T) {
	for _, cores := range []int{2, 8, 40, 64, 128, 256} {
		top := machine(cores)
		v := nodeOf(top, "a")
		_, text := elements(t, SVG(&v))
		for _, cpu := range top.Online.IDs() {
			if !strings.Contains(text, fmt.Sprintf("CPU %d · ", cpu)) {
				t.Fatalf("with %d cores, CPU %d is missing", cores, cpu)
			}
		}
	}
}

func TestPictureOfALittleKnownHost(t *testing.T) {
	top := &topology.Topology{
		Online: cpus.Of(0, 1, 2), Offline: cpus.Of(3), Cores: []topology.Core{{CPUs: cpus.Of(0, 1), L3: -1, Package: -1}},
		NUMANodes: []topology.NUMANode{{ID: 0, CPUs: cpus.Of(0, 1, 2)}, {ID: 4, MemoryBytes: new(int64(1 << 30))}},
		NICs:      []topology.NIC{{PCIAddress: "0000:00:03.0", Management: "the default route"}},
	}
	v := view.OfStatus(view.NodeInput{Name: "a", Profile: "p", Topology: top}, &v1alpha1.LowLatencyNode{})
	_, text := elements(t, SVG(&v))
	for _, want := range []string{
		"NUMA node 4 · no CPUs · 1 GiB", "NICs whose NUMA node the firmware does not report", "carries the default route",
		"CPUs whose core the host does not report: 2-3", "in no set of the plan 0-2", "offline 3",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in: %s", want, text)
		}
	}
}
