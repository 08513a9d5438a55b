// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodereport"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/repair"
)

// unixPrefix begins the address of a unix socket.
const unixPrefix = "unix:"

// requestTimeout bounds how long a client may take to ask and to read.
const requestTimeout = 5 * time.Second

// report tells what a pass over the whole host has found.
func (a *Agent) report(seen Observation, drift []v1alpha1.CheckDrift) *nodereport.Report {
	full := &nodereport.Report{
		Node: a.NodeName, Time: seen.Now.Time, PlanHash: seen.PlanHash, Owners: seen.owners, Hugepages: seen.hugepages,
		Drift: append([]v1alpha1.CheckDrift{}, drift...), Repairs: append([]repair.Entry{}, a.drift.ledger.Recent()...),
	}
	full.SetVerified(*seen.Report)
	full.SetTruth(seen.truth)
	return full
}

// snapshotTimeout bounds how long taking and reading a snapshot may take.
const snapshotTimeout = 2 * time.Minute

// ReportServer serves the latest report of an agent to programs on the same machine, or in the same pod. Its zero
// value has no report yet, and no snapshots.
type ReportServer struct {
	// Snapshot writes what the agent sees of the host, or nothing and an error; nil where snapshots are not offered.
	Snapshot func(ctx context.Context, to io.Writer, disclosure host.Disclosure) error

	latest atomic.Pointer[nodereport.Report]
	// busy reports whether a snapshot is being taken.
	busy atomic.Bool
}

// Set replaces the report.
func (s *ReportServer) Set(report *nodereport.Report) { s.latest.Store(report) }

// Latest is the report, or nil before the first one. Nobody may change it.
func (s *ReportServer) Latest() *nodereport.Report { return s.latest.Load() }

// ServeHTTP answers GET of nodereport.Path with the report as JSON, and 503 before the first one; of the paths of snapshots with one that is
// taken now.
func (s *ReportServer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	report := s.Latest()
	switch {
	case request.URL.Path == nodereport.SnapshotPath && s.Snapshot != nil:
		s.serveSnapshot(w, request, host.Disclosed)
	case request.URL.Path == nodereport.RedactedSnapshotPath && s.Snapshot != nil:
		s.serveSnapshot(w, request, host.Redacted)
	case request.URL.Path != nodereport.Path:
		http.Error(w, "not found; the report is at "+nodereport.Path, http.StatusNotFound)
	case request.Method != http.MethodGet && request.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the report can only be read", http.StatusMethodNotAllowed)
	case report == nil:
		http.Error(w, "the agent has not verified a plan on this node yet", http.StatusServiceUnavailable)
	default:
		w.Header().Set("Content-Type", "application/json")
		// A client that has gone away is no fault of ours.
		_ = json.NewEncoder(w).Encode(report)
	}
}

// serveSnapshot answers with a snapshot. There is one at a time: the agent is a small process beside others that must not be disturbed.
func (s *ReportServer) serveSnapshot(w http.ResponseWriter, request *http.Request, disclosure host.Disclosure) {
	if request.Method != http.MethodGet {
		w.Header().Set("Allow", "GET")
		http.Error(w, "a snapshot can only be read", http.StatusMethodNotAllowed)
		return
	}
	if !s.busy.CompareAndSwap(false, true) {
		http.Error(w, "another snapshot is being taken; try again", http.StatusTooManyRequests)
		return
	}
	defer s.busy.Store(false)
	// What a snapshot is made of is not needed any more.
	defer debug.FreeOSMemory()
	ctx, cancel := context.WithTimeout(request.Context(), snapshotTimeout)
	defer cancel()
	// Connections that know no deadline need none.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(snapshotTimeout))
	var taken bytes.Buffer
	if err := s.Snapshot(ctx, &taken, disclosure); err != nil {
		http.Error(w, "taking a snapshot: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/gzip")
	// A client that has gone away is no fault of ours.
	_, _ = taken.WriteTo(w)
}

// Listen opens an address for a ReportServer: unix:PATH, or an address of the loopback interface with a port, such as
// 127.0.0.1:9470. Others are refused: the report names everything that is weak on the node.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	network := "unix"
	path, isPath := strings.CutPrefix(address, unixPrefix)
	if !isPath {
		network, path = "tcp", address
		parsed, err := netip.ParseAddrPort(address)
		if err != nil || !parsed.Addr().IsLoopback() {
			return nil, fmt.Errorf("the report is served on unix:PATH or on an address of the loopback interface such as 127.0.0.1:9470, not on %q", address)
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, network, path)
	if err != nil {
		return nil, fmt.Errorf("serving the report: %w", err)
	}
	return listener, nil
}

// Serve answers on a listener until the context ends, and closes it.
func (s *ReportServer) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: s, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, MaxHeaderBytes: 1 << 13}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the report: %w", err)
	}
	return nil
}
