// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodereport"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

func TestListenKeepsToTheMachine(t *testing.T) {
	socket := "unix:" + filepath.Join(t.TempDir(), "agent.sock")
	for _, address := range []string{socket, "127.0.0.1:0", "[::1]:0"} {
		listener, err := Listen(t.Context(), address)
		if err != nil {
			if strings.HasPrefix(address, "[") {
				t.Logf("no IPv6 here: %v", err)
				continue
			}
			t.Fatal(err)
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, address := range []string{":9470", "0.0.0.0:9470", "192.0.2.1:9470", "localhost", "", "unix:/nowhere/at/all.sock"} {
		if listener, err := Listen(t.Context(), address); err == nil {
			t.Errorf("%q is accepted as %s", address, listener.Addr())
		}
	}
}

// get asks a server on a unix socket.
func get(t *testing.T, socket, method, path string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	request, err := http.NewRequestWithContext(t.Context(), method, "http://agent"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestTheReportCanBeReadAndNothingElse(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "agent.sock")
	listener, err := Listen(t.Context(), "unix:"+socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &ReportServer{}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()

	if code, text := get(t, socket, http.MethodGet, nodereport.Path); code != http.StatusServiceUnavailable || !strings.Contains(text, "not verified a plan") {
		t.Errorf("before the first report: %d %s", code, text)
	}
	report := verified(v1alpha1.OutcomeFailed)
	report.Skipped = []verify.Skip{{Check: "irq.delivered", Reason: "read once"}}
	a := &Agent{NodeName: "worker-1"}
	seen := Observation{
		PlanHash: "p1", Report: report, Now: at(1),
		owners: nodereport.Owners{Containers: []nodereport.Container{{
			Namespace: new("trading"), Pod: new("engine-0"), Container: "engine", CPUs: cpus.Of(2, 3, 5), NUMANodes: []int{0},
		}}},
		hugepages: []nodereport.Hugepages{{NUMANode: 1, SizeKibibytes: 2048, Total: 400, Free: 160}},
		truth: verify.Truth{
			Nodes: []verify.NodeTruth{{
				ID: 1, Vectors: host.Known(12, "/proc/irq"), IsolatedVectors: host.Absent[int]("/proc/irq/9", "gone"),
				Reserved: []verify.SettingTruth{{Name: "memory", Planned: "1100Mi", Configured: host.Known("1100Mi", "kubelet.conf")}},
			}},
			Kubelet: []verify.SettingTruth{{Name: "cpuManagerPolicy", Planned: "static", Configured: host.Absent[string]("kubelet.conf", "no such file")}},
		},
	}
	server.Set(a.report(seen, []v1alpha1.CheckDrift{{Check: "test.check", Drifted: 2}}))
	code, text := get(t, socket, http.MethodGet, nodereport.Path)
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"node": "worker-1", "time": "2026-11-21T08:01:00Z", "planHash": "p1",
		"checks": map[string]any{"passed": 0.0, "failed": 1.0, "unknown": 0.0, "waived": 0.0},
		"results": []any{map[string]any{
			"check": "test.check", "title": "", "severity": "Critical", "outcome": "Failed", "message": "CPU 5 is busy",
			"decides": []any{"Applied", "DeJittered", "NUMAAligned"},
		}},
		"skipped": []any{map[string]any{"check": "irq.delivered", "reason": "read once"}},
		"containers": []any{map[string]any{
			"namespace": "trading", "pod": "engine-0", "uid": nil, "container": "engine", "cpus": "2-3,5", "numaNodes": []any{0.0},
		}},
		"hugepages": []any{map[string]any{"numaNode": 1.0, "sizeKibibytes": 2048.0, "total": 400.0, "free": 160.0}},
		"numaNodes": []any{map[string]any{
			"id": 1.0, "vectors": 12.0, "isolatedVectors": nil,
			"reserved": []any{map[string]any{"name": "memory", "planned": "1100Mi", "configured": "1100Mi"}},
		}},
		"kubelet": []any{map[string]any{"name": "cpuManagerPolicy", "planned": "static", "configured": nil}},
		"drift":   []any{map[string]any{"check": "test.check", "drifted": 2.0, "repaired": 0.0}},
		"repairs": []any{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if code, _ := get(t, socket, http.MethodPost, nodereport.Path); code != http.StatusMethodNotAllowed {
		t.Errorf("POST is answered with %d", code)
	}
	if code, _ := get(t, socket, http.MethodGet, nodereport.SnapshotPath); code != http.StatusNotFound {
		t.Errorf("without snapshots, their path is answered with %d", code)
	}
	if code, _ := get(t, socket, http.MethodGet, "/"); code != http.StatusNotFound {
		t.Errorf("another path is answered with %d", code)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// TestSnapshots takes snapshots, one at a time, with the names of the host or without.
func TestSnapshots(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "agent.sock")
	listener, err := Listen(t.Context(), "unix:"+socket)
	if err != nil {
		t.Fatal(err)
	}
	begun, release := make(chan struct{}), make(chan struct{})
	server := &ReportServer{Snapshot: func(_ context.Context, to io.Writer, disclosure host.Disclosure) error {
		if disclosure == host.Redacted {
			_, err := io.WriteString(to, "without names")
			return err
		}
		close(begun)
		<-release
		return errors.New("the disk is gone")
	}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	if code, text := get(t, socket, http.MethodGet, nodereport.RedactedSnapshotPath); code != http.StatusOK || text != "without names" {
		t.Errorf("redacted: %d %s", code, text)
	}
	if code, _ := get(t, socket, http.MethodPost, nodereport.SnapshotPath); code != http.StatusMethodNotAllowed {
		t.Errorf("POST is answered with %d", code)
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		if code, text := get(t, socket, http.MethodGet, nodereport.SnapshotPath); code != http.StatusInternalServerError || !strings.Contains(text, "the disk is gone") {
			t.Errorf("a snapshot that fails: %d %s", code, text)
		}
	}()
	<-begun
	if code, _ := get(t, socket, http.MethodGet, nodereport.RedactedSnapshotPath); code != http.StatusTooManyRequests {
		t.Errorf("a second snapshot is answered with %d", code)
	}
	close(release)
	<-answered
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
