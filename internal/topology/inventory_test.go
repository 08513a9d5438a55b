// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/crdschema"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// shape is the layout of a random host: sockets, cores, threads, interleaved or blockwise numbering, and
// CPUs that are offline.
type shape struct {
	nodes, nodesPerSocket, cores, coresPerNode, threads int
	interleaved                                         bool
	offline                                             map[int]bool
}

func randomShape(r *rand.Rand) shape {
	s := shape{
		nodesPerSocket: 1 + r.IntN(3), coresPerNode: 1 + r.IntN(8), threads: 1 + r.IntN(2),
		interleaved: r.IntN(2) == 0, offline: map[int]bool{},
	}
	s.nodes = (1 + r.IntN(4)) * s.nodesPerSocket
	s.cores = s.nodes * s.coresPerNode
	if s.threads == 2 && r.IntN(3) == 0 {
		for core := range s.cores {
			s.offline[s.cores+core] = r.IntN(2) == 0
		}
	}
	return s
}

// nodeOf is the NUMA node of a CPU, counted from 0 without gaps.
func (s shape) nodeOf(cpu int) int {
	core := cpu % s.cores
	if s.interleaved {
		return core % s.nodes
	}
	return core / s.coresPerNode
}

// members are the online CPUs that satisfy a condition.
func (s shape) members(keep func(cpu int) bool) host.Fact[cpus.Set] {
	var ids []int
	for cpu := range s.cores * s.threads {
		if keep(cpu) && !s.offline[cpu] {
			ids = append(ids, cpu)
		}
	}
	return known(cpus.Of(ids...))
}

// cpu gives the facts of a CPU; an offline one has its topology at random.
func (s shape) cpu(r *rand.Rand, id int) host.CPU {
	entry := host.CPU{ID: id, Online: known(!s.offline[id])}
	if !s.offline[id] || r.IntN(2) == 0 {
		entry.Package, entry.Core = known(s.nodeOf(id)/s.nodesPerSocket), known(id%s.cores)
	}
	if s.offline[id] {
		return entry
	}
	entry.Siblings = s.members(func(other int) bool { return other%s.cores == id%s.cores })
	entry.Caches = []host.Cache{{
		Level: known(3), Type: known("Unified"),
		SharedCPUs: s.members(func(other int) bool { return s.nodeOf(other) == s.nodeOf(id) }),
	}}
	entry.Frequency.HardwareMaximum = maybe(r, int64(3000000+id))
	return entry
}

// randomFacts makes a consistent host of random shape with facts that are absent at random, sparse
// numbers of NUMA nodes, and one that has memory only.
func randomFacts(r *rand.Rand) *host.Facts {
	s := randomShape(r)
	f := &host.Facts{
		Architecture: maybe(r, "amd64"),
		Kernel: host.Kernel{
			Release: maybe(r, "6.12.0"), RealTime: maybe(r, r.IntN(2) == 0),
			CommandLine: maybe(r, strings.Repeat("isolcpus=1 ", r.IntN(1000))),
		},
		Processor: host.Processor{
			Vendor: maybe(r, "AMD"), Model: maybe(r, strings.Repeat("EPYC ", r.IntN(60))),
			Family: maybe(r, r.IntN(70000)), ModelNumber: maybe(r, r.IntN(70000)),
			Microcode: maybe(r, strings.Repeat("0xff", r.IntN(20))), Hypervisor: maybe(r, "KVM"),
			Flags: maybe(r, []string{"constant_tsc", "nonstop_tsc"}[:r.IntN(3)]),
		},
		Firmware:         host.Firmware{BIOSVersion: maybe(r, "1.2\xff"), Product: maybe(r, strings.Repeat("R7", 90))},
		MemoryTotalBytes: maybe(r, int64(1<<34)),
		NICs:             randomNICs(r),
	}
	for id := range s.cores * s.threads {
		f.CPUs.List = append(f.CPUs.List, s.cpu(r, id))
	}
	if s.nodes == 1 && r.IntN(2) == 0 {
		return f
	}
	for node := range s.nodes {
		f.NUMANodes = append(f.NUMANodes, host.NUMANode{
			ID: 3 * node, CPUs: s.members(func(cpu int) bool { return s.nodeOf(cpu) == node }),
			MemoryTotalBytes: maybe(r, int64(1<<30)), Distances: maybe(r, make([]int, s.nodes+1)),
			Hugepages: []host.HugepagePool{{SizeKibibytes: 2048, Total: known[int64](3), Free: known[int64](1)}},
		})
	}
	f.NUMANodes = append(f.NUMANodes, host.NUMANode{ID: 100, CPUs: known(cpus.Set{})})
	return f
}

func randomNICs(r *rand.Rand) []host.NIC {
	slots, functions := r.IntN(6), r.IntN(4)
	nics := make([]host.NIC, 0, slots*(1+functions))
	for slot := range slots {
		physical := fmt.Sprintf("0000:%02x:00.0", slot)
		nics = append(nics, host.NIC{
			PCIAddress: physical, Name: maybe(r, fmt.Sprint("ens", slot)), Vendor: maybe(r, "0x1924"), Device: maybe(r, "0x0b03"),
			Driver: maybe(r, "sfc"), NUMANode: maybe(r, 0), LocalCPUs: maybe(r, cpus.Of(0)),
		})
		for function := range functions {
			nics = append(nics, host.NIC{PCIAddress: fmt.Sprintf("0000:%02x:02.%d", slot, function), PhysicalFunction: known(physical)})
		}
	}
	return nics
}

func maybe[T any](r *rand.Rand, value T) host.Fact[T] {
	if r.IntN(4) == 0 {
		return host.Absent[T]("test", "left out")
	}
	return known(value)
}

func TestInventoryRoundTrip(t *testing.T) {
	for seed := range uint64(500) {
		f := randomFacts(rand.New(rand.NewPCG(seed, 1)))
		want, err := FromFacts(f)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		inventory := Inventory(f, want)
		got, err := FromInventory(inventory)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(NUMANode{}, "Hugepages")); diff != "" {
			t.Fatalf("seed %d (-before +after):\n%s", seed, diff)
		}
		if got.Signature() != want.Signature() {
			t.Errorf("seed %d: the inventory has another signature", seed)
		}
		if again := Inventory(f, got); again.Hash != inventory.Hash {
			t.Errorf("seed %d: the inventory of the inventory has another hash", seed)
		}
	}
}

// TestEveryFieldOfANICIsInTheInventory: what is written to an inventory and not read from it, or neither, never gets from
// a node to the planner.
func TestEveryFieldOfANICIsInTheInventory(t *testing.T) {
	f := smtHost(t)
	want, err := FromFacts(f)
	if err != nil {
		t.Fatal(err)
	}
	want.NICs = []NIC{{
		PCIAddress: "0000:3b:02.0", Name: "ens1f0v0", Vendor: "1924", Device: "1b03", Driver: "sfc", NUMANode: new(1),
		LocalCPUs: cpus.Of(2, 3), PhysicalFunction: "0000:3b:00.0", MaximumVirtualFunctions: 16, Management: "the default route",
	}}
	nic := reflect.ValueOf(want.NICs[0])
	for i := range nic.NumField() {
		if nic.Field(i).IsZero() {
			t.Errorf("%s has no value in this test", nic.Type().Field(i).Name)
		}
	}
	got, err := FromInventory(Inventory(f, want))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.NICs, got.NICs); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// inventoryErrors puts an inventory before the schema of the CRD.
func inventoryErrors(t *testing.T, schemas *crdschema.Schemas, inventory *v1alpha1.Inventory) error {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.LowLatencyNode{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "LowLatencyNode"},
		ObjectMeta: metav1.ObjectMeta{Name: "node"},
		Spec:       v1alpha1.LowLatencyNodeSpec{Profile: "trading"},
		Status:     v1alpha1.LowLatencyNodeStatus{Inventory: inventory},
	})
	if err != nil {
		t.Fatal(err)
	}
	return schemas.Validate(t.Context(), &unstructured.Unstructured{Object: content}).ToAggregate()
}

// extremeFacts has text without end, a thousand CPUs in two interleaved packages and 400 NICs, the first
// half of them virtual functions.
func extremeFacts() *host.Facts {
	long := known(strings.Repeat("ü", 10000))
	f := &host.Facts{
		Architecture: long,
		Kernel:       host.Kernel{Release: long, CommandLine: long, RealTime: known(false)},
		Processor:    host.Processor{Vendor: long, Model: long, Microcode: long, Hypervisor: long},
		Firmware:     host.Firmware{BIOSVersion: long, Product: long},
	}
	for cpu := range 1024 {
		f.CPUs.List = append(f.CPUs.List, host.CPU{
			ID: cpu, Online: known(true), Siblings: known(cpus.Of(cpu)), Package: known(cpu % 2),
		})
	}
	for nic := range 400 {
		entry := host.NIC{PCIAddress: fmt.Sprintf("0000:%02x:%02x.0", nic/32, nic%32), Name: long, Vendor: long, Device: long, Driver: long}
		if nic < 200 {
			entry.PhysicalFunction = known("0000:0c:00.0")
		}
		f.NICs = append(f.NICs, entry)
	}
	return f
}

func TestInventoryStaysWithinTheBoundsOfTheAPI(t *testing.T) {
	schemas, err := crdschema.Load()
	if err != nil {
		t.Fatal(err)
	}
	inputs := map[string]*host.Facts{"extreme": extremeFacts()}
	for seed := range uint64(50) {
		inputs[fmt.Sprint("seed ", seed)] = randomFacts(rand.New(rand.NewPCG(seed, 2)))
	}
	for name, f := range inputs {
		top, err := FromFacts(f)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		inventory := Inventory(f, top)
		if err := inventoryErrors(t, schemas, inventory); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := FromInventory(inventory); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInventoryOfAnExtremeHost(t *testing.T) {
	f := extremeFacts()
	top, err := FromFacts(f)
	if err != nil {
		t.Fatal(err)
	}
	restored, err := FromInventory(Inventory(f, top))
	if err != nil {
		t.Fatal(err)
	}
	if got := len(restored.PhysicalNICs()); got != 200 || len(restored.NICs) != 256 {
		t.Errorf("%d physical NICs of %d are left; virtual functions go first", got, len(restored.NICs))
	}
	if diff := cmp.Diff(top.Packages, restored.Packages); diff != "" {
		t.Errorf("every other CPU of 1024 fits with strides (-want +got):\n%s", diff)
	}
}

func TestInventoryThatDoesNotFitIsRefused(t *testing.T) {
	const count = 4000
	r := rand.New(rand.NewPCG(1, 1))
	single := make([]Core, count*2)
	everyCPU := make([]int, count)
	for cpu := range everyCPU {
		everyCPU[cpu] = cpu
	}
	for cpu := range single {
		single[cpu].CPUs = cpus.Of(cpu)
	}
	all := cpus.Of(everyCPU...)
	random := all.Filter(func(int) bool { return r.IntN(2) == 0 })
	cases := map[string]Topology{
		"online CPUs without pattern":             {Online: random},
		"CPUs of a NUMA node without pattern":     {Online: all, NUMANodes: []NUMANode{{CPUs: random}}},
		"more cores than the API holds":           {Online: all, Cores: single},
		"local CPUs of a NIC without any pattern": {Online: all, NICs: []NIC{{LocalCPUs: random}}},
	}
	for name, top := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := FromInventory(Inventory(&host.Facts{}, &top)); err == nil || !strings.Contains(err.Error(), "onlineCPUs is empty") {
				t.Errorf("an inventory with a part of the machine passed: %v", err)
			}
		})
	}
}

// Whether the platform's pods are told from others is a fact of the host that plans are made of.
func TestWorkloadPartitioning(t *testing.T) {
	for name, tc := range map[string]struct {
		fact host.Fact[string]
		want v1alpha1.WorkloadPartitioning
	}{
		"no CPUs of their own": {host.Known("", "/etc/crio/crio.conf.d/01"), v1alpha1.WorkloadPartitioningEnabled},
		"CPUs of their own":    {host.Known("0-1", "/etc/crio/crio.conf.d/99"), v1alpha1.WorkloadPartitioningEnabled},
		"not told":             {host.Absent[string]("/etc/crio/crio.conf.d", "no such file"), ""},
	} {
		f := smtHost(t)
		f.ManagementCPUs = tc.fact
		top, err := FromFacts(f)
		if err != nil {
			t.Fatal(err)
		}
		restored, err := FromInventory(Inventory(f, top))
		if err != nil {
			t.Fatal(err)
		}
		if top.WorkloadPartitioning != tc.want || restored.WorkloadPartitioning != tc.want {
			t.Errorf("%s: %q, and %q in the inventory, want %q", name, top.WorkloadPartitioning, restored.WorkloadPartitioning, tc.want)
		}
	}
}

func TestInventoryHash(t *testing.T) {
	f := smtHost(t)
	f.Firmware.Product = known("R750")
	top, err := FromFacts(f)
	if err != nil {
		t.Fatal(err)
	}
	inventory := Inventory(f, top)
	if !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(inventory.Hash) {
		t.Errorf("hash %q is not 16 hexadecimal digits", inventory.Hash)
	}
	if again := Inventory(f, top); again.Hash != inventory.Hash {
		t.Errorf("hashes of equal inventories differ: %s and %s", again.Hash, inventory.Hash)
	}
	fields := reflect.TypeFor[v1alpha1.Inventory]()
	for i := range fields.NumField() {
		changed := inventory.DeepCopy()
		change(t, reflect.ValueOf(changed).Elem().Field(i))
		name, hash := fields.Field(i).Name, inventoryHash(changed)
		if (hash == inventory.Hash) != (name == "Hash") {
			t.Errorf("changing %s: hash %s, before %s", name, hash, inventory.Hash)
		}
	}
}

// change gives a field of an inventory another value.
func change(t *testing.T, field reflect.Value) {
	t.Helper()
	switch field.Kind() {
	case reflect.String:
		field.SetString(field.String() + "x")
	case reflect.Int32, reflect.Int64:
		field.SetInt(field.Int() + 1)
	case reflect.Slice:
		field.Set(reflect.Append(field, reflect.Zero(field.Type().Elem())))
	default:
		t.Fatalf("no change for %s", field.Kind())
	}
}

func TestFromInventoryRefuses(t *testing.T) {
	cases := map[string]struct {
		inventory v1alpha1.Inventory
		want      string
	}{
		"nothing":         {want: "onlineCPUs is empty"},
		"a bad list":      {inventory: v1alpha1.Inventory{OnlineCPUs: "0-x"}, want: "onlineCPUs"},
		"a bad core":      {inventory: v1alpha1.Inventory{OnlineCPUs: "0-1", Cores: []string{"0", "?"}}, want: "cores[1]"},
		"a core too much": {inventory: v1alpha1.Inventory{OnlineCPUs: "0-1", Cores: []string{"0", "2"}}, want: "CPUs 2, which are not present"},
		"a bad NUMA node": {
			inventory: v1alpha1.Inventory{OnlineCPUs: "0", NUMANodes: []v1alpha1.InventoryNUMANode{{ID: 5, CPUs: "-"}}},
			want:      "numaNodes[id=5].cpus",
		},
		"a NUMA node with a CPU that is not online": {
			inventory: v1alpha1.Inventory{OnlineCPUs: "0", NUMANodes: []v1alpha1.InventoryNUMANode{{ID: 3, CPUs: "0,9"}}},
			want:      "NUMA node 3 (/sys/devices/system/node/node3/cpulist) holds CPUs 9, which are not online",
		},
		"overlapping NUMA nodes": {
			inventory: v1alpha1.Inventory{OnlineCPUs: "0", NUMANodes: []v1alpha1.InventoryNUMANode{{CPUs: "0"}, {ID: 1, CPUs: "0"}}},
			want:      "CPU 0 is in the NUMA nodes 0 and 1",
		},
		"a bad NIC": {
			inventory: v1alpha1.Inventory{OnlineCPUs: "0", NICs: []v1alpha1.InventoryNIC{{PCIAddress: "0000:3b:00.0", LocalCPUs: "z"}}},
			want:      "nics[0000:3b:00.0].localCPUs",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := FromInventory(&tc.inventory); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v does not say %q", err, tc.want)
			}
		})
	}
}

func FuzzFromInventory(f *testing.F) {
	f.Add([]byte(`{"onlineCPUs":"0-3","cores":["0,2","1,3"],"numaNodes":[{"id":0,"cpus":"0-3","distances":[10]}]}`))
	f.Add([]byte(`{"onlineCPUs":"0","kernelType":"RealTime","nics":[{"pciAddress":"a","numaNode":7}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var inventory v1alpha1.Inventory
		if json.Unmarshal(data, &inventory) != nil {
			return
		}
		top, err := FromInventory(&inventory)
		if err != nil {
			return
		}
		again, err := FromInventory(Inventory(&host.Facts{}, top))
		if err != nil {
			t.Fatalf("the inventory of an accepted inventory is refused: %v", err)
		}
		if again.Signature() != top.Signature() {
			t.Fatal("the signature changed on the way")
		}
	})
}

func FuzzListText(f *testing.F) {
	f.Add("0-3,8")
	f.Add("0-1022:1/2")
	f.Add("0,1,4,5,8,9,20")
	f.Fuzz(func(t *testing.T, text string) {
		set, err := cpus.Parse(text)
		if err != nil {
			return
		}
		written := strideText(set)
		got, err := cpus.Parse(written)
		if err != nil || !got.Equal(set) {
			t.Fatalf("%s became %q, which is %s (%v)", set, written, got, err)
		}
	})
}

func TestStrideText(t *testing.T) {
	cases := map[string]string{
		"":                   "",
		"5":                  "5",
		"0-3":                "0-3",
		"0,2,4,6":            "0-6:1/2",
		"0-1,4-5,8-9":        "0-9:2/4",
		"1,3,5,7,20-23,30":   "1-7:1/2,20-23,30",
		"0-1,64-65,128,4000": "0-65:2/64,128-4000:1/3872",
	}
	for text, want := range cases {
		if got := strideText(list(t, text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func BenchmarkFromInventory(b *testing.B) {
	f := &host.Facts{}
	for cpu := range 128 {
		f.CPUs.List = append(f.CPUs.List, host.CPU{ID: cpu, Online: known(true), Siblings: known(cpus.Of(cpu%64, cpu%64+64))})
	}
	top, err := FromFacts(f)
	if err != nil {
		b.Fatal(err)
	}
	inventory := Inventory(f, top)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := FromInventory(inventory); err != nil {
			b.Fatal(err)
		}
	}
}
