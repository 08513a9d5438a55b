// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package finding

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

func TestUnion(t *testing.T) {
	got := Union(
		Objects{Interrupts: []v1alpha1.Interrupt{{ID: "NMI"}, {ID: "142", Handlers: "sfc"}, {ID: "9"}}, Processes: []v1alpha1.Process{{PID: 9, Thread: 10}}},
		Objects{Interrupts: []v1alpha1.Interrupt{{ID: "9"}}, Processes: []v1alpha1.Process{{PID: 9, Name: "a"}, {PID: 9, Thread: 10}}},
		OfCPUs(cpus.Of(3)), OfCPUs(cpus.Of(2, 3)), OfNICs("b", "a"), OfNICs("b"), OfNUMANodes(1, 0), OfNUMANodes(1), OfFiles("/b", "/a", "/b"),
		OfContainers("n/p/b", "n/p/a", "n/p/b"), Objects{Unlisted: v1alpha1.ObjectCounts{CPUs: 7}},
	)
	want := Objects{
		CPUs: cpus.Of(2, 3), Interrupts: []v1alpha1.Interrupt{{ID: "9"}, {ID: "142", Handlers: "sfc"}, {ID: "NMI"}}, NICs: []string{"a", "b"},
		NUMANodes: []int32{0, 1}, Processes: []v1alpha1.Process{{PID: 9, Name: "a"}, {PID: 9, Thread: 10}}, Containers: []string{"n/p/a", "n/p/b"},
		Files: []string{"/a", "/b"}, Unlisted: v1alpha1.ObjectCounts{CPUs: 7},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("union (-want +got):\n%s", diff)
	}
	counts := v1alpha1.ObjectCounts{CPUs: 9, Interrupts: 3, NICs: 2, NUMANodes: 2, Processes: 2, Containers: 2, Files: 2}
	if diff := cmp.Diff(counts, got.Counts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if !Union().IsEmpty() || got.IsEmpty() || (Objects{Unlisted: v1alpha1.ObjectCounts{Files: 1}}).IsEmpty() {
		t.Error("what is empty is not, or the other way round")
	}
}

// TestUnionLeavesItsOperandsAlone has operands whose lists have room behind them.
func TestUnionLeavesItsOperandsAlone(t *testing.T) {
	list := append(make([]string, 0, 8), "c", "b")
	Union(OfNICs(list...), OfNICs("a"))
	if diff := cmp.Diff([]string{"c", "b"}, list); diff != "" {
		t.Error(diff)
	}
}

// crowd has more of everything than a status lists.
func crowd() Objects {
	var o Objects
	for i := range 100 {
		o.Interrupts = append(o.Interrupts, v1alpha1.Interrupt{ID: strconv.Itoa(i), Handlers: strings.Repeat("é", 100)})
		o.NICs = append(o.NICs, fmt.Sprintf("0000:%02x:00.0", i))
		o.NUMANodes = append(o.NUMANodes, int32(i))
		o.Processes = append(o.Processes, v1alpha1.Process{PID: int32(i), Name: strings.Repeat("n", 100)})
		o.Containers = append(o.Containers, strconv.Itoa(i)+strings.Repeat("c", 600))
		o.Files = append(o.Files, strconv.Itoa(i)+strings.Repeat("f", 600))
	}
	ids := make([]int, 0, 1000)
	for i := range 1000 {
		ids = append(ids, 2*i)
	}
	o.CPUs = cpus.Of(ids...)
	return o
}

func TestStatusIsBoundedAndCountsAll(t *testing.T) {
	all := crowd()
	bounded := all.Status()
	if diff := cmp.Diff(all.Counts(), bounded.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	lengths := []int{
		len(bounded.Interrupts), len(bounded.NICs), len(bounded.NUMANodes), len(bounded.Processes), len(bounded.Containers), len(bounded.Files),
		len(bounded.Interrupts[0].Handlers), len(bounded.Processes[0].Name), len(bounded.Containers[0]), len(bounded.Files[0]),
	}
	if diff := cmp.Diff([]int{32, 32, 64, 16, 16, 16, 127, 64, 512, 256}, lengths); diff != "" {
		t.Errorf("lengths (-want +got):\n%s", diff)
	}
	set, err := cpus.Parse(bounded.CPUs)
	if err != nil || len(bounded.CPUs) > v1alpha1.MaxCPUListLength || !set.IsSubsetOf(all.CPUs) || set.Len() < 200 {
		t.Errorf("CPUs %q, %v", bounded.CPUs, err)
	}
	if len(all.Interrupts[0].Handlers) != 200 || len(all.Files[0]) != 601 {
		t.Error("the objects themselves were cut")
	}
}

func TestAStatusKeepsTheCounts(t *testing.T) {
	all := crowd()
	back := OfStatus(all.Status())
	if diff := cmp.Diff(all.Counts(), back.Counts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if back.Unlisted.CPUs != int32(1000-back.CPUs.Len()) || back.Unlisted.Files != 84 {
		t.Errorf("unlisted %+v", back.Unlisted)
	}
}

func TestStatusOfNoObject(t *testing.T) {
	if got := (Objects{}).Status(); got != nil {
		t.Errorf("got %+v", got)
	}
	if got := OfStatus(nil); !got.IsEmpty() {
		t.Errorf("got %+v", got)
	}
	if got := OfStatus(&v1alpha1.FindingObjects{CPUs: "x"}); !got.IsEmpty() {
		t.Errorf("got %+v", got)
	}
}

func TestJSON(t *testing.T) {
	for name, tc := range map[string]struct {
		objects Objects
		want    string
	}{
		"none": {Objects{}, `{"counts":{}}`},
		"some": {
			Objects{CPUs: cpus.Of(2, 3), NUMANodes: []int32{0}, Interrupts: []v1alpha1.Interrupt{{ID: "8", Handlers: "rtc0"}}, Unlisted: v1alpha1.ObjectCounts{Interrupts: 2}},
			`{"cpus":"2-3","interrupts":[{"id":"8","handlers":"rtc0"}],"numaNodes":[0],"counts":{"cpus":2,"interrupts":3,"numaNodes":1}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(tc.objects)
			if err != nil || string(data) != tc.want {
				t.Errorf("got %s, %v", data, err)
			}
			var back Objects
			if err := json.Unmarshal(data, &back); err != nil || !cmp.Equal(tc.objects, back) {
				t.Errorf("read back %+v, %v", back, err)
			}
		})
	}
	// The JSON of the command line and that of a status have the same fields.
	line, err := json.Marshal(OfStatus(crowd().Status()))
	if err != nil {
		t.Fatal(err)
	}
	status, err := json.Marshal(crowd().Status())
	if err != nil || string(line) != string(status) {
		t.Errorf("the fields differ: %v\n%s\n%s", err, line, status)
	}
	var broken Objects
	if err := json.Unmarshal([]byte(`{"cpus":"x"}`), &broken); err == nil {
		t.Error("a list of CPUs that is none was read")
	}
}
