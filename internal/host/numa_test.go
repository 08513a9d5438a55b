// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"fmt"
	"strings"
	"testing"
)

// nodeFiles puts a prefix before the names of files below /sys/devices/system/node.
func nodeFiles(tree files) files {
	prefixed := files{}
	for name, content := range tree {
		prefixed["sys/devices/system/node/"+name] = content
	}
	return prefixed
}

func TestNUMANodes(t *testing.T) {
	ten := files{}
	for i := range 10 {
		ten[fmt.Sprintf("node%d/cpulist", i)] = fmt.Sprintln(i)
	}
	cases := map[string]struct {
		tree files
		want []string
	}{
		"two":              {files{"node0/cpulist": "0-1\n", "node0/distance": "10 21\n", "node1/cpulist": "2-3\n", "node1/distance": "21 10\n"}, []string{"0: 0-1 [10 21]", "1: 2-3 [21 10]"}},
		"memory only":      {files{"node0/cpulist": "0-3", "node0/distance": "10 17", "node1/cpulist": "\n", "node1/distance": "17 10"}, []string{"0: 0-3 [10 17]", "1:  [17 10]"}},
		"more than eight":  {ten, numbered(10, "%[1]d: %[1]d absent: no such file")},
		"sparse numbers":   {files{"node0/cpulist": "0", "node33/cpulist": "1", "node8/cpulist": "2", "possible": "0-63"}, []string{"0: 0 " + missing(1), "8: 2 " + missing(1), "33: 1 " + missing(1)}},
		"mask only":        {files{"node0/cpumap": "00000000,0000000f\n"}, []string{"0: 0-3 " + missing(1)}},
		"no CPU files":     {files{"node0/meminfo": ""}, []string{"0: " + missing(2)}},
		"wrong distances":  {files{"node0/cpulist": "0", "node0/distance": "ten", "node1/cpulist": "1", "node1/distance": "", "node2/cpulist": "2", "node2/distance": "10 -1"}, []string{`0: 0 absent: not a number: "ten"`, "1: 1 absent: no distances", "2: 2 absent: the kernel reports -1"}},
		"endless distance": {files{"node0/cpulist": "0", "node0/distance": strings.Repeat("10 ", maxNUMANodes+1)}, []string{"0: 0 absent: holds more than 1024 entries"}},
		"no NUMA":          {nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			nodes := readAll(t, nodeFiles(tc.tree)).NUMANodes
			got := make([]string, 0, len(nodes))
			for _, node := range nodes {
				got = append(got, fmt.Sprintf("%d: %s %s", node.ID, shown(node.CPUs), shown(node.Distances)))
			}
			if strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

func TestMemory(t *testing.T) {
	cases := map[string]struct {
		host, node          string
		wantHost, wantTotal string
	}{
		"sound":     {"MemTotal:       1024 kB\nMemFree:  1 kB\n", "Node 0 MemTotal:       512 kB\nNode 0 MemFree:        256 kB\n", "1048576", "524288"},
		"other key": {"HighMemTotal: 1 kB\n", "Node 0 MemTotal: 1 kB\n", "absent: no line MemTotal", "1024"},
		"no number": {"MemTotal: much\n", "Node 0 MemTotal: -1 kB\n", `absent: not a number: "much"`, `absent: not an amount of memory: "-1"`},
		"too much":  {"MemTotal: 1 kB\n", "Node 0 MemTotal: 9223372036854775807 kB\n", "1024", `absent: not an amount of memory: "9223372036854775807"`},
		"empty":     {"", "", "absent: no line MemTotal", "absent: no line MemTotal"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			facts := readAll(t, nodeFiles(files{"node0/cpulist": "0", "node0/meminfo": tc.node}).with(files{"proc/meminfo": tc.host}))
			expect(t, "the memory", facts.MemoryTotalBytes, tc.wantHost)
			expect(t, "the memory of node 0", facts.NUMANodes[0].MemoryTotalBytes, tc.wantTotal)
		})
	}
}

func TestHugepages(t *testing.T) {
	pools := func(root string) files {
		return files{
			root + "hugepages-1048576kB/nr_hugepages":   "16",
			root + "hugepages-1048576kB/free_hugepages": "15",
			root + "hugepages-2048kB/nr_hugepages":      "400\n",
			root + "hugepages-2048kB/free_hugepages":    "many",
			root + "hugepages-2048kB/surplus_hugepages": "1\n",
			root + "hugepages-2MB/nr_hugepages":         "1",
			root + "hugepages-02048kB/nr_hugepages":     "1",
		}
	}
	facts := readAll(t, pools("sys/kernel/mm/hugepages/").with(pools("sys/devices/system/node/node0/hugepages/")))
	for where, got := range map[string][]HugepagePool{"host": facts.Hugepages, "NUMA node": facts.NUMANodes[0].Hugepages} {
		if len(got) != 2 || got[0].SizeKibibytes != 2048 || got[1].SizeKibibytes != 1048576 {
			t.Fatalf("%s: read %+v", where, got)
		}
		expect(t, where, got[0].Total, "400")
		expect(t, where, got[0].Free, `absent: not a number: "many"`)
		expect(t, where, got[0].Surplus, "1")
		expect(t, where, got[1].Free, "15")
		expect(t, where, got[1].Surplus, "absent: no such file")
	}
}
