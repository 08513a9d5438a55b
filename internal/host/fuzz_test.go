// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"archive/tar"
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// FuzzSnapshot reads archives of any content. Whatever it makes of one, it must not panic or hang, must
// stay within the limits, and must read its own snapshot of it as it read the original.
func FuzzSnapshot(f *testing.F) {
	for _, seed := range snapshotSeeds(f) {
		f.Add(seed)
		f.Add(zip(f, seed))
	}
	f.Add([]byte("BZh9"))
	limits := archiveLimits{stream: 4 << 20, kept: 1 << 20, file: 256 << 10, nodes: 5000, name: 1024}
	f.Fuzz(func(t *testing.T, content []byte) {
		read, err := readArchive(bytes.NewReader(content), limits)
		if err != nil {
			return
		}
		if len(read.nodes) > limits.nodes+1 {
			t.Fatalf("%d nodes", len(read.nodes))
		}
		root, err := rootOf(read)
		if err != nil {
			return
		}
		compareWithSnapshot(t, &Host{path: "fuzzed", tree: root})
	})
}

func compareWithSnapshot(t *testing.T, h *Host) {
	t.Helper()
	facts, err := h.Read(t.Context())
	if err != nil {
		if !strings.Contains(err.Error(), ": /") {
			t.Fatalf("the error names no file: %v", err)
		}
		return
	}
	var taken bytes.Buffer
	must(t, h.Snapshot(t.Context(), &taken))
	copied, err := readArchive(bytes.NewReader(taken.Bytes()), defaultArchiveLimits())
	must(t, err)
	root, err := rootOf(copied)
	must(t, err)
	again, err := (&Host{path: "snapshot", tree: root}).Read(t.Context())
	must(t, err)
	if diff := cmp.Diff(facts, again); diff != "" {
		t.Fatalf("the snapshot gives other facts (-archive +snapshot):\n%s", diff)
	}
}

// snapshotSeeds are archives from which fuzzing starts.
func snapshotSeeds(f *testing.F) [][]byte {
	small := files{
		"proc/cmdline": "quiet", "proc/cpuinfo": intelCPUInfo, "proc/interrupts": x86Interrupts, "proc/1/comm": "init",
		"proc/7/comm": "irqbalance", "proc/7/environ": "IRQBALANCE_BANNED_CPUS=f\x00", "proc/irq/16/smp_affinity_list": "0-1",
		"proc/self": linkTo + "7", "proc/7/smaps": "KernelPageSize: 4 kB\n",
		"sys/devices/system/cpu/online": "0-1", "sys/devices/system/cpu/cpu0/cache/index0/size": "32K",
		"sys/devices/system/cpu/cpu0/cpufreq": linkTo + "../cpufreq/policy0", "sys/devices/system/cpu/cpufreq/policy0/scaling_driver": "x",
		"sys/devices/system/node/node0/cpumap": "3", "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "1",
	}.with(onloadHost(), routedHost())
	nic := pciDevice(nicA, "0x020000", files{"virtfn0": linkTo + "../" + vfA0, "driver": linkTo + "../../drivers/x"}).
		with(netDevice("eth0", nicA, "/virtio0", files{"speed": "-1"}))
	loops := files{"proc/version": linkTo + "version", "sys/class": linkTo + "/sys/class/net", "sys/bus": linkTo + "../../..", "sys/x": linkTo + "/"}
	odd := packHeaders(f, []tar.Header{
		{Name: "./host/proc/irq", Typeflag: tar.TypeFifo}, {Name: "host//sys/./x", Typeflag: tar.TypeLink, Linkname: "host/proc/irq"},
		{Name: "host/sys/devices", Typeflag: tar.TypeChar}, {Name: "host/" + indexFile, Typeflag: tar.TypeReg, Size: 43},
	}, func(string) string { return `{"unreadable": {"/proc/cmdline": "because"}}`[:43] })
	return [][]byte{
		small.pack(f, ""), small.pack(f, "./top/"), nic.pack(f, ""), loops.pack(f, ""), odd,
		small.with(nic).pack(f, "")[:2000], files{"proc/../sys/x": ""}.pack(f, ""),
	}
}

// FuzzHost replaces any file of a sound host by any content or link. Unlike a damaged archive, that gets
// past the checksums of tar and into every parser.
func FuzzHost(f *testing.F) {
	sound := xeon{cpus: 2, irqs: 2}.files().with(files{
		"proc/7/comm": "irqbalance", "proc/7/environ": "IRQBALANCE_BANNED_CPUS=f\x00", "proc/7/status": "Cpus_allowed_list: 0",
	})
	seeded := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(sound)) {
		// One file of each name is enough: those of other CPUs are read by the same code.
		if base := path.Base(name); !seeded[base] {
			seeded[base] = true
			f.Add(name, sound[name])
		}
	}
	for _, content := range []string{"", "-1", "0-99", "(null)", "99999999999999999999", "\xff\x00", linkTo + "/", linkTo + ".", linkTo + "../../../../..", "x: y"} {
		for _, name := range []string{"sys/devices/system/cpu/present", "sys/devices/system/cpu/cpu1", "sys/class/net/eth9", "proc/interrupts", "proc/self", indexFile} {
			f.Add(name, content)
		}
	}
	f.Fuzz(func(t *testing.T, name, content string) {
		if name = path.Clean(name); !isPossibleName(name, content) {
			return
		}
		tree := newMemoryTree()
		for sound, content := range sound {
			if sound != name && !strings.HasPrefix(sound, name+"/") && !strings.HasPrefix(name, sound+"/") {
				addFuzzed(t, tree, sound, content)
			}
		}
		addFuzzed(t, tree, name, content)
		if isHost(tree) {
			compareWithSnapshot(t, &Host{path: "fuzzed", tree: tree})
		}
	})
}

// isPossibleName reports whether a file system or an archive could hold the file.
func isPossibleName(name, content string) bool {
	isLink := strings.HasPrefix(content, linkTo)
	return utf8.ValidString(name) && !strings.ContainsRune(name, 0) && !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "..") &&
		(!isLink || !strings.ContainsRune(content, 0))
}

func addFuzzed(t *testing.T, tree *memoryTree, name, content string) {
	t.Helper()
	added := &memoryNode{node: node{kind: kindFile, size: int64(len(content))}, content: content}
	if target, isLink := strings.CutPrefix(content, linkTo); isLink {
		added = &memoryNode{node: node{kind: kindLink, target: target}}
	}
	if name != "." {
		must(t, tree.add(name, added))
	}
}
