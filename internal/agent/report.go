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
	"github.com/lowlatency-dev/lowlatency-operator/internal/repair"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// ReportPath is where the report is served.
const ReportPath = "/v1/report"

// unixPrefix begins the address of a unix socket.
const unixPrefix = "unix:"

// requestTimeout bounds how long a client may take to ask and to read.
const requestTimeout = 5 * time.Second

// Report is everything that the latest pass over the whole host found: what the LowLatencyNode has, and the checks
// that passed, those that were skipped, and the files that were written.
type Report struct {
	// Node is the name of the Node.
	Node string `json:"node"`
	// Time of the pass.
	Time time.Time `json:"time"`
	// PlanHash is the plan that the checks were evaluated for.
	PlanHash string               `json:"planHash"`
	Checks   v1alpha1.CheckCounts `json:"checks"`
	// Results of all checks that apply to the plan, in the order of the catalogue.
	Results []CheckResult `json:"results"`
	// Skipped are the checks that were not evaluated.
	Skipped []SkippedCheck `json:"skipped"`
	// Drift is that of the status.
	Drift []v1alpha1.CheckDrift `json:"drift"`
	// Repairs are the latest files that were written, or were to be written, the latest first, at most 256.
	Repairs []repair.Entry `json:"repairs"`
}

// CheckResult is the outcome of one check.
type CheckResult struct {
	Check    v1alpha1.CheckID           `json:"check"`
	Title    string                     `json:"title"`
	Severity v1alpha1.Severity          `json:"severity"`
	Outcome  v1alpha1.Outcome           `json:"outcome"`
	Message  string                     `json:"message"`
	Observed string                     `json:"observed,omitempty"`
	Expected string                     `json:"expected,omitempty"`
	Fix      string                     `json:"fix,omitempty"`
	Reboot   v1alpha1.RebootRequirement `json:"reboot,omitempty"`
}

// SkippedCheck is a check that was not evaluated.
type SkippedCheck struct {
	Check  v1alpha1.CheckID `json:"check"`
	Reason string           `json:"reason"`
}

// report tells what a pass over the whole host has found.
func (a *Agent) report(seen Observation, drift []v1alpha1.CheckDrift) *Report {
	full := &Report{
		Node: a.NodeName, Time: seen.Now.Time, PlanHash: seen.PlanHash, Checks: seen.Report.Counts(),
		Results: make([]CheckResult, 0, len(seen.Report.Results)), Skipped: make([]SkippedCheck, 0, len(seen.Report.Skipped)),
		Drift: append([]v1alpha1.CheckDrift{}, drift...), Repairs: append([]repair.Entry{}, a.drift.ledger.Recent()...),
	}
	for _, r := range seen.Report.Results {
		full.Results = append(full.Results, checkResult(r))
	}
	for _, s := range seen.Report.Skipped {
		full.Skipped = append(full.Skipped, SkippedCheck{s.Check, s.Reason})
	}
	return full
}

func checkResult(r verify.Result) CheckResult {
	return CheckResult{
		Check: r.Check.ID, Title: r.Check.Title, Severity: r.Check.Severity, Outcome: r.Outcome, Message: r.Message,
		Observed: r.Observed, Expected: r.Expected, Fix: r.Fix, Reboot: r.Reboot,
	}
}

// ReportServer serves the latest report of an agent to programs on the same machine, or in the same pod. Its zero
// value has no report yet.
type ReportServer struct{ latest atomic.Pointer[Report] }

// Set replaces the report.
func (s *ReportServer) Set(report *Report) { s.latest.Store(report) }

// ServeHTTP answers GET of ReportPath with the report as JSON, and 503 before the first one.
func (s *ReportServer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	report := s.latest.Load()
	switch {
	case request.URL.Path != ReportPath:
		http.Error(w, "not found; the report is at "+ReportPath, http.StatusNotFound)
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
