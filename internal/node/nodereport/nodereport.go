// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package nodereport holds what the agent of a node serves about it beyond the LowLatencyNode: all results of checks,
// the containers that own CPUs, the hugepages that are there, where interrupts are delivered and what the kubelet
// reserves and aligns. The agent writes it and the command line reads it. It is pure.
package nodereport

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/repair"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

const (
	// Path is where the report is served.
	Path = "/v1/report"
	// SnapshotPath is where a snapshot of the host is taken.
	SnapshotPath = "/v1/snapshot"
	// RedactedSnapshotPath is where one is taken with other names in the place of the host's own.
	RedactedSnapshotPath = "/v1/snapshot/redacted"
	// MaximumBytes is the size of the largest report that Decode reads: a report of 100 checks and of as many containers
	// and hugepage pools as it may hold has less than half of it.
	MaximumBytes = 4 << 20

	// maximumContainers is above what a kubelet admits (500 pods on OpenShift, 110 by default).
	maximumContainers = 1024
	// maximumHugepages is above 64 NUMA nodes with 4 sizes each.
	maximumHugepages = 256
)

// Report is everything that the latest pass over the whole host found: what the LowLatencyNode has, the checks that
// passed, those that were skipped, who owns CPUs, hugepages, and the files that were written.
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

	Owners
	// Hugepages that the host has, in the order of the NUMA nodes, at most 256 pools. Pools whose numbers cannot be read
	// are left out.
	Hugepages []Hugepages `json:"hugepages"`
	// NUMANodes tell where interrupts are delivered and what the kubelet reserves, at most 1024.
	NUMANodes []NUMANode `json:"numaNodes"`
	// Kubelet are the settings of the kubelet that align pods.
	Kubelet []Setting `json:"kubelet"`

	// Drift is that of the status.
	Drift []v1alpha1.CheckDrift `json:"drift"`
	// Repairs are the latest files that were written, or were to be written, the latest first, at most 256.
	Repairs []repair.Entry `json:"repairs"`
}

// CheckResult is the outcome of one check.
type CheckResult struct {
	finding.Finding
	Title string `json:"title"`
}

// SkippedCheck is a check that was not evaluated.
type SkippedCheck struct {
	Check  v1alpha1.CheckID `json:"check"`
	Reason string           `json:"reason"`
}

// Hugepages is the pool of one size on one NUMA node.
type Hugepages struct {
	NUMANode      int   `json:"numaNode"`
	SizeKibibytes int64 `json:"sizeKibibytes"`
	// Total is the number of pages that are there, Free that of those nobody uses.
	Total int64 `json:"total"`
	Free  int64 `json:"free"`
}

// NUMANode is the truth about one NUMA node besides CPUs, hugepages and NICs.
type NUMANode struct {
	ID int `json:"id"`
	// Vectors are the device interrupts that are delivered to CPUs of the NUMA node, IsolatedVectors those of them that are
	// delivered to isolated CPUs; null when the host does not report of every interrupt.
	Vectors         *int `json:"vectors"`
	IsolatedVectors *int `json:"isolatedVectors"`
	// Reserved is what the kubelet reserves of the memory and hugepages of the NUMA node.
	Reserved []Setting `json:"reserved"`
}

// Setting compares what was planned with what the kubelet was configured with.
type Setting struct {
	Name string `json:"name"`
	// Planned is "" where the plan leaves it.
	Planned string `json:"planned,omitempty"`
	// Configured is null when the kubelet's configuration cannot be read.
	Configured *string `json:"configured"`
}

// SetTruth fills in what decides about the NUMA placement of pods.
func (r *Report) SetTruth(truth verify.Truth) {
	r.Kubelet = settingsOf(truth.Kubelet)
	r.NUMANodes = make([]NUMANode, 0, len(truth.Nodes))
	for _, node := range shorten.List(truth.Nodes, v1alpha1.MaxNUMANodes) {
		r.NUMANodes = append(r.NUMANodes, NUMANode{
			ID: node.ID, Vectors: node.Vectors.Pointer(), IsolatedVectors: node.IsolatedVectors.Pointer(), Reserved: settingsOf(node.Reserved),
		})
	}
}

// Truth is what decides about the NUMA placement of pods. It undoes SetTruth, but for why a fact is absent.
func (r *Report) Truth() verify.Truth {
	truth := verify.Truth{Kubelet: settingTruths(r.Kubelet)}
	for _, node := range r.NUMANodes {
		truth.Nodes = append(truth.Nodes, verify.NodeTruth{
			ID: node.ID, Vectors: fact(node.Vectors), IsolatedVectors: fact(node.IsolatedVectors), Reserved: settingTruths(node.Reserved),
		})
	}
	return truth
}

func settingsOf(truths []verify.SettingTruth) []Setting {
	settings := make([]Setting, 0, len(truths))
	for _, truth := range truths {
		settings = append(settings, Setting{Name: truth.Name, Planned: truth.Planned, Configured: truth.Configured.Pointer()})
	}
	return settings
}

func settingTruths(settings []Setting) []verify.SettingTruth {
	truths := make([]verify.SettingTruth, 0, len(settings))
	for _, setting := range settings {
		truths = append(truths, verify.SettingTruth{Name: setting.Name, Planned: setting.Planned, Configured: fact(setting.Configured)})
	}
	return truths
}

// fact is what the agent knew of a value; nil is absent.
func fact[T any](value *T) host.Fact[T] {
	const source = "the report of the agent"
	if value == nil {
		return host.Absent[T](source, "the agent could not read it")
	}
	return host.Known(*value, source)
}

// SetVerified fills in what the checks have found.
func (r *Report) SetVerified(found verify.Report) {
	r.Checks = found.Counts()
	r.Results, r.Skipped = make([]CheckResult, 0, len(found.Results)), make([]SkippedCheck, 0, len(found.Skipped))
	for _, result := range found.Results {
		r.Results = append(r.Results, CheckResult{Finding: result.Finding(), Title: result.Check.Title})
	}
	for _, skip := range found.Skipped {
		r.Skipped = append(r.Skipped, SkippedCheck{skip.Check, skip.Reason})
	}
}

// Verified is what the checks have found, with no more of each check than the report has. It undoes SetVerified.
func (r *Report) Verified() verify.Report {
	found := verify.Report{}
	for _, result := range r.Results {
		found.Results = append(found.Results, verify.Result{
			Check:   verify.Check{ID: result.Check, Title: result.Title, Severity: result.Severity},
			Outcome: result.Outcome, Message: result.Message, Objects: result.Objects, Observed: result.Observed, Expected: result.Expected, Fix: result.Fix, Reboot: result.Reboot, Decides: result.Decides,
		})
	}
	for _, skip := range r.Skipped {
		found.Skipped = append(found.Skipped, verify.Skip{Check: skip.Check, Reason: skip.Reason})
	}
	return found
}

// HugepagesOf lists the hugepages of a host that was read.
func HugepagesOf(t *topology.Topology) []Hugepages {
	all := []Hugepages{}
	for _, node := range t.NUMANodes {
		for _, pool := range node.Hugepages {
			all = append(all, Hugepages{NUMANode: node.ID, SizeKibibytes: pool.SizeKibibytes, Total: pool.Total, Free: pool.Free})
		}
	}
	return shorten.List(all, maximumHugepages)
}

// AddHugepages adds the hugepages to a topology that was made from an inventory, which has none.
func (r *Report) AddHugepages(t *topology.Topology) {
	for i := range t.NUMANodes {
		node := &t.NUMANodes[i]
		for _, pool := range r.Hugepages {
			if pool.NUMANode == node.ID {
				node.Hugepages = append(node.Hugepages, topology.HugepagePool{SizeKibibytes: pool.SizeKibibytes, Total: pool.Total, Free: pool.Free})
			}
		}
	}
}

// Decode reads the report of a node. It refuses what is larger than MaximumBytes, what is about another node, and
// numbers of hugepages that cannot be.
func Decode(from io.Reader, node string) (*Report, error) {
	data, err := io.ReadAll(io.LimitReader(from, MaximumBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the report: %w", err)
	}
	if len(data) > MaximumBytes {
		return nil, fmt.Errorf("the report has more than %d bytes", MaximumBytes)
	}
	report := &Report{}
	if err := json.Unmarshal(data, report); err != nil {
		return nil, fmt.Errorf("the answer is no report: %w", err)
	}
	if report.Node != node {
		return nil, fmt.Errorf("the report is about node %q", report.Node)
	}
	if err := report.check(); err != nil {
		return nil, err
	}
	return report, nil
}

// check refuses what no agent writes.
func (r *Report) check() error {
	for _, pool := range r.Hugepages {
		if pool.SizeKibibytes <= 0 || pool.Free < 0 || pool.Total < pool.Free {
			return fmt.Errorf("the report has %d free ones of %d hugepages of %d KiB", pool.Free, pool.Total, pool.SizeKibibytes)
		}
	}
	if len(r.Containers) > maximumContainers || len(r.Hugepages) > maximumHugepages || len(r.NUMANodes) > v1alpha1.MaxNUMANodes {
		return errors.New("the report has more containers, hugepage pools or NUMA nodes than an agent lists")
	}
	return nil
}
