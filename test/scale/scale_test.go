// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recordedRequests are lines as kube-apiserver writes them, of a change of two nodes.
const recordedRequests = `{"verb":"patch","objectRef":{"resource":"machineconfigs","name":"50-lowlatency-a"},"responseStatus":{"code":200},"stageTimestamp":"2026-11-22T10:00:01.5Z"}
{"verb":"get","objectRef":{"resource":"machineconfigs","name":"rendered-a"},"responseStatus":{"code":200},"stageTimestamp":"2026-11-22T10:00:01.6Z"}
{"verb":"watch","objectRef":{"resource":"nodes"},"responseStatus":{"code":200},"stageTimestamp":"2026-11-22T10:00:01.7Z"}
{"verb":"patch","objectRef":{"resource":"lowlatencynodes","name":"n1"},"responseStatus":{"code":200},"stageTimestamp":"2026-11-22T10:00:02Z"}
{"verb":"patch","objectRef":{"resource":"nodes","subresource":"status","name":"n1"},"responseStatus":{"code":409},"stageTimestamp":"2026-11-22T10:00:03Z"}
{"verb":"create","objectRef":{"resource":"events","name":"trading.1"},"responseStatus":{"code":201},"stageTimestamp":"2026-11-22T10:00:04Z"}
{"verb":"update","objectRef":{"resource":"leases","name":"manager.lowlatency.dev"},"responseStatus":{"code":200},"stageTimestamp":"2026-11-22T10:00:05Z"}
{"verb":"patch","objectRef":{"resource":"machineconfigs","name":"50-lowlatency-a"},"responseStatus":{"code":200},"stageTimestamp":"2026-11-22T10:00:06Z"}
`

func TestRequestsAreCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	log := &auditLog{path: path}
	if found, err := log.requests(); err != nil || len(found) > 0 {
		t.Fatalf("requests() = %v, %v before the API server has recorded any", found, err)
	}
	// The end of the last line is not written yet.
	if err := os.WriteFile(path, []byte(recordedRequests+`{"verb":`), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	requests, err := log.since(begin)
	if err != nil {
		t.Fatal(err)
	}
	var got roll
	got.add(begin, requests, 2)
	want := roll{
		Pools: 1500 * time.Millisecond, Writes: 5, Reads: 1, Events: 1, PerNode: 1.5, Refused: 1,
		Resources: map[string]int{"patch machineconfigs": 2, "patch lowlatencynodes": 1, "patch nodes/status": 1, "create events": 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("add() mismatch (-want +got):\n%s", diff)
	}
	if later, err := log.since(begin.Add(5500 * time.Millisecond)); err != nil || len(later) != 1 {
		t.Errorf("since() = %v, %v, want the last request", later, err)
	}
}

func TestAdoptionIsSampled(t *testing.T) {
	var r roll
	for i, nodes := range []int{0, 3, 5, 5} {
		r.sample(time.Duration(i)*time.Second, nodes, 5)
	}
	if r.Adopted != 2*time.Second || len(r.Curve) != 4 {
		t.Errorf("sample() = %+v, want all nodes after 2 s", r)
	}
}

func TestChartsAreXML(t *testing.T) {
	results := []*result{
		{Nodes: 500, Change: roll{Pools: time.Second, Adopted: 4 * time.Second, Curve: []point{{time.Second, 20}, {4 * time.Second, 500}}}},
		{Nodes: 1000},
	}
	for name, picture := range charts(results) {
		decoder := xml.NewDecoder(strings.NewReader(picture))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	if text := table(results); strings.Count(text, "\n") != len(rows())+2 || !strings.Contains(text, "| 4.0 s | - |") {
		t.Errorf("table() is\n%s", text)
	}
}

func TestGridSteps(t *testing.T) {
	for extent, want := range map[float64]float64{1: 0.2, 4: 1, 100: 20, 130: 50, 5000: 1000} {
		if got := step(extent); got != want {
			t.Errorf("step(%g) = %g, want %g", extent, got, want)
		}
	}
}

func TestProcessesAreTold(t *testing.T) {
	// As the kernel prints it.
	const text = "4242 (kube-apiserver) S 17 4242 17 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 11 0 1 2 3"
	got, err := parseProcess(text)
	if err != nil {
		t.Fatal(err)
	}
	want := process{pid: 4242, parent: 17, name: "kube-apiserver", used: 3 * time.Second}
	if got != want {
		t.Errorf("parseProcess() = %+v, want %+v", got, want)
	}
	for self, part := range map[int]string{4242: partSimulation, 17: "kube-apiserver", 1: ""} {
		if got := got.part(self); got != part {
			t.Errorf("part(%d) = %q, want %q", self, got, part)
		}
	}
	if _, err := parseProcess("1 (init) S 0"); err == nil {
		t.Error("parseProcess() takes half a line")
	}
}

// TestDocumentationIsUpToDate draws the recorded results again, and compares table and curves with the documentation's.
func TestDocumentationIsUpToDate(t *testing.T) {
	const repository = "../.."
	results, err := load(filepath.Join(repository, recordedResults))
	if err != nil {
		t.Fatal(err)
	}
	path, page, err := figures(repository, results)
	if err != nil {
		t.Fatal(err)
	}
	drawn := map[string]string{path: string(page)}
	for name, picture := range charts(results) {
		drawn[filepath.Join(repository, "docs", "images", name)] = picture
	}
	for path, want := range drawn {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is not what %s gives: make pictures (-want +got):\n%s", path, recordedResults, diff)
		}
	}
}
