// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package nodereport

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// TestAReportComesBack writes a report as the agent does and reads it as the command line does.
func TestAReportComesBack(t *testing.T) {
	found := verify.Report{
		Results: []verify.Result{
			{Check: verify.Check{ID: "cpu.online", Title: "all CPUs are on", Severity: v1alpha1.SeverityHigh}, Outcome: v1alpha1.OutcomePassed, Message: "0-7"},
			{
				Check: verify.Check{ID: "memory.ksm", Severity: v1alpha1.SeverityCritical}, Outcome: v1alpha1.OutcomeFailed, Message: "pages are merged",
				Objects:  finding.Objects{CPUs: cpus.Of(4, 5), Files: []string{"/sys/kernel/mm/ksm/run"}},
				Observed: "1", Expected: "0", Fix: "stop ksmd", Reboot: v1alpha1.RebootNotRequired,
				Decides: []string{v1alpha1.ConditionDeJittered},
			},
		},
		Skipped: []verify.Skip{{Check: "irq.delivered", Reason: "read once"}},
	}
	written := &Report{
		Node: "a", PlanHash: "p", Owners: Owners{Containers: []Container{{UID: new("u"), Container: "c", CPUs: cpus.Of(2, 3), NUMANodes: []int{1}}}},
		Hugepages: []Hugepages{{NUMANode: 1, SizeKibibytes: 2048, Total: 4, Free: 1}},
	}
	written.SetVerified(found)
	truth := verify.Truth{
		Nodes: []verify.NodeTruth{
			{
				ID: 0, Vectors: host.Known(12, "/proc/irq"), IsolatedVectors: host.Known(0, "/proc/irq"),
				Reserved: []verify.SettingTruth{{Name: "memory", Planned: "1100Mi", Configured: host.Known("1100Mi", "kubelet.conf")}},
			},
			{ID: 1, Vectors: host.Absent[int]("/proc/irq/9", "gone"), IsolatedVectors: host.Absent[int]("/proc/irq/9", "gone")},
		},
		Kubelet: []verify.SettingTruth{{Name: "cpuManagerPolicy", Planned: "static", Configured: host.Absent[string]("kubelet.conf", "no such file")}},
	}
	written.SetTruth(truth)
	data, err := json.Marshal(written)
	if err != nil {
		t.Fatal(err)
	}
	read, err := Decode(strings.NewReader(string(data)), "a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(written, read); diff != "" {
		t.Error(diff)
	}
	if want := (v1alpha1.CheckCounts{Passed: 1, Failed: 1}); read.Checks != want {
		t.Errorf("counts are %+v", read.Checks)
	}
	if diff := cmp.Diff(found, read.Verified(), cmpopts.IgnoreUnexported(verify.Check{}), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	// Of a fact that is absent, the report does not say why.
	ignored := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Source" || p.Last().String() == ".Reason" }, cmp.Ignore())
	if diff := cmp.Diff(truth, read.Truth(), ignored, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	const pages = `{"node":"a","hugepages":[{"numaNode":0,"sizeKibibytes":2048,`
	cases := map[string]struct{ text, want string }{
		"no JSON":            {"Bad Gateway", "the answer is no report: invalid character 'B' looking for beginning of value"},
		"another node":       {`{"node":"b"}`, `the report is about node "b"`},
		"CPUs that are none": {`{"node":"a","containers":[{"cpus":"x"}]}`, "the answer is no report: "},
		"more free pages than there are": {
			pages + `"total":1,"free":2}]}`, "the report has 2 free ones of 1 hugepages of 2048 KiB",
		},
		"less than none":      {pages + `"total":1,"free":-1}]}`, "the report has -1 free ones of 1 hugepages of 2048 KiB"},
		"pages without size":  {`{"node":"a","hugepages":[{}]}`, "the report has 0 free ones of 0 hugepages of 0 KiB"},
		"too many containers": {`{"node":"a","containers":[` + strings.Repeat("{},", maximumContainers) + `{}]}`, "the report has more containers"},
		"too many NUMA nodes": {`{"node":"a","numaNodes":[` + strings.Repeat("{},", v1alpha1.MaxNUMANodes) + `{}]}`, "the report has more containers"},
		"too much":            {`{"node":"a"` + strings.Repeat(" ", MaximumBytes), "the report has more than 4194304 bytes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := Decode(strings.NewReader(tc.text), "a"); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %+v and %v", got, err)
			}
		})
	}
	if _, err := Decode(iotest.ErrReader(errors.New("gone")), "a"); err == nil || err.Error() != "reading the report: gone" {
		t.Error(err)
	}
}

func TestHugepagesComeBack(t *testing.T) {
	seen := twoNodes()
	seen.NUMANodes[0].Hugepages = []topology.HugepagePool{{SizeKibibytes: 2048, Total: 4, Free: 1}, {SizeKibibytes: 1 << 20, Total: 2, Free: 2}}
	seen.NUMANodes[1].Hugepages = []topology.HugepagePool{{SizeKibibytes: 2048}}
	listed := HugepagesOf(seen)
	if want := (Hugepages{NUMANode: 1, SizeKibibytes: 2048}); len(listed) != 3 || listed[2] != want {
		t.Errorf("listed %+v", listed)
	}
	known := twoNodes()
	(&Report{Hugepages: append(listed, Hugepages{NUMANode: 9, SizeKibibytes: 4, Total: 1})}).AddHugepages(known)
	if diff := cmp.Diff(seen, known); diff != "" {
		t.Error(diff)
	}
	seen.NUMANodes[0].Hugepages = make([]topology.HugepagePool, maximumHugepages+1)
	if got := len(HugepagesOf(seen)); got != maximumHugepages {
		t.Errorf("listed %d pools", got)
	}
}

// FuzzDecode looks for reports that tell of what cannot be.
func FuzzDecode(f *testing.F) {
	f.Add(`{"node":"a","planHash":"p","results":[{"check":"cpu.online","outcome":"Passed"}],"containers":[{"cpus":"2-3"}],"hugepages":[{"sizeKibibytes":4,"total":2,"free":1}]}`)
	f.Add(`{"node":"a","time":"2026-11-21T08:00:00Z","containers":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		report, err := Decode(strings.NewReader(text), "a")
		if err != nil {
			return
		}
		known := twoNodes()
		report.AddHugepages(known)
		for _, node := range known.NUMANodes {
			for _, pool := range node.Hugepages {
				if pool.Free < 0 || pool.Free > pool.Total {
					t.Errorf("%d of %d are free", pool.Free, pool.Total)
				}
			}
		}
		if found := report.Verified(); len(found.Results) != len(report.Results) {
			t.Errorf("%d of %d results came back", len(found.Results), len(report.Results))
		}
	})
}
