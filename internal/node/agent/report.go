// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
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

// ReportServer serves the latest report of an agent to programs on the same machine, or in the same pod. Its zero
// value has no report yet.
type ReportServer struct {
	latest atomic.Pointer[nodereport.Report]
}

// Set replaces the report.
func (s *ReportServer) Set(report *nodereport.Report) { s.latest.Store(report) }

// ServeHTTP answers GET of nodereport.Path with the report as JSON, and 503 before the first one.
func (s *ReportServer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	report := s.latest.Load()
	switch {
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
