// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// window is the time between the two readings.
const window = 10 * time.Second

// The two ways in which the product judges a host.
const (
	asCheck = "check"
	asAgent = "agent"
)

// fleetOf keeps the booted machines of a test run.
type fleetOf struct {
	mutex  sync.Mutex
	dir    string
	booted map[string]func() (*node, error)
	sound  map[string]map[string]verify.Report
}

// newFleet boots each machine when it is first asked for.
func newFleet(t *testing.T) *fleetOf {
	return &fleetOf{dir: t.TempDir(), booted: map[string]func() (*node, error){}, sound: map[string]map[string]verify.Report{}}
}

// node is a clone of a healthy node.
func (f *fleetOf) node(t *testing.T, name string) *node {
	t.Helper()
	n, err := f.machine(name)()
	if err != nil {
		t.Fatalf("machine %s did not come up: %v", name, err)
	}
	return n.clone(t)
}

// machine boots a machine when it is first called.
func (f *fleetOf) machine(name string) func() (*node, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.booted[name] == nil {
		f.booted[name] = sync.OnceValues(func() (*node, error) {
			m, known := machines()[name]
			if !known {
				return nil, errors.New("there is none of that name")
			}
			dir := filepath.Join(f.dir, name)
			if err := os.Mkdir(dir, 0o755); err != nil {
				return nil, err
			}
			return boot(context.Background(), dir, m)
		})
	}
	return f.booted[name]
}

// healthy are the reports of the machine as it came up, given the same besides.
func (f *fleetOf) healthy(t *testing.T, name string, more func(*node, *verify.Input)) map[string]verify.Report {
	t.Helper()
	f.mutex.Lock()
	known := f.sound[name]
	f.mutex.Unlock()
	if known != nil && more == nil {
		return known
	}
	reports, err := f.node(t, name).judge(row{more: more})
	if err != nil {
		t.Fatal(err)
	}
	if more == nil {
		f.mutex.Lock()
		f.sound[name] = reports
		f.mutex.Unlock()
	}
	return reports
}

// judge lets a row happen on a node, and judges the node in both ways. A way without plan has an empty report.
func (n *node) judge(r row) (map[string]verify.Report, error) {
	if r.do != nil {
		r.do(n)
	}
	before, err := n.look(n.t.Context())
	if err != nil {
		return nil, err
	}
	if err := hosttree.Tick(n.host.Dir, window); err != nil {
		return nil, err
	}
	after, err := n.again(before, r.during)
	if err != nil {
		return nil, err
	}
	reports := map[string]verify.Report{}
	for way, wanted := range map[string]*plan.NodePlan{asCheck: before.planned.Plan, asAgent: n.plan} {
		if way == asCheck && r.more != nil {
			continue
		}
		if wanted == nil {
			reports[way] = unplanned(before)
			continue
		}
		in := verify.Input{Plan: wanted, Facts: after, Before: before.facts}
		if r.more != nil {
			r.more(n, &in)
		}
		reports[way] = verify.Evaluate(in)
	}
	return reports, nil
}

// unplanned stands for what "check" says when a host cannot be planned any more: its findings, and exit code 1.
func unplanned(read reading) verify.Report {
	var report verify.Report
	for _, finding := range read.planned.Findings {
		if finding.Severity == v1alpha1.SeverityCritical {
			report.Skipped = append(report.Skipped, verify.Skip{Check: noPlan, Reason: finding.Message})
		}
	}
	return report
}

// noPlan stands in place of a check where "check" refuses to plan the host.
const noPlan v1alpha1.CheckID = "no plan"

// result of a check in a report.
func result(report verify.Report, id v1alpha1.CheckID) (verify.Result, bool) {
	i := slices.IndexFunc(report.Results, func(r verify.Result) bool { return r.Check.ID == id })
	if i < 0 {
		return verify.Result{}, false
	}
	return report.Results[i], true
}

// isRefused is the reason why "check" refuses to plan the host.
func isRefused(report verify.Report) (reason string, refused bool) {
	i := slices.IndexFunc(report.Skipped, func(s verify.Skip) bool { return s.Check == noPlan })
	if i < 0 {
		return "", false
	}
	return report.Skipped[i].Reason, true
}

// outcomeOf tells how a fault fared in one way: what came of it, and what the check said.
func (f fault) outcomeOf(n *node, report verify.Report) (outcome, says string) {
	if reason, refused := isRefused(report); refused {
		return outcomeCaught, "no plan: " + reason
	}
	found, judged := result(report, f.want)
	switch {
	case !judged:
		return outcomeMissed, "not judged"
	case found.Outcome == v1alpha1.OutcomeUnknown && f.unknown != "", found.Outcome == v1alpha1.OutcomeFailed && f.unknown == "":
		return f.conditionsOf(n, report, found)
	case found.Outcome == v1alpha1.OutcomeUnknown:
		return outcomeUnknown, found.Message
	default:
		return outcomeMissed, string(found.Outcome) + ": " + found.Message
	}
}

// conditionsOf looks at the words and the conditions of a fault that was found.
func (f fault) conditionsOf(n *node, report verify.Report, found verify.Result) (outcome, says string) {
	message := found.Message
	filled := strings.NewReplacer("{cpu}", strconv.Itoa(n.isolated()), "{nic}", n.bypassNIC(), "{other}", n.otherNIC())
	for _, words := range f.says {
		words = filled.Replace(words)
		if !strings.Contains(message, words) {
			return outcomeWords, fmt.Sprintf("%q lacks %q", message, words)
		}
	}
	conditions := slices.Concat(f.makes, found.Decides)
	reason := lesser()[found.Check.ID]
	if found.Outcome == v1alpha1.OutcomeFailed && (len(conditions) == 0) != (reason != "") {
		return outcomeMissed, fmt.Sprintf("conditions %q are False for it; lesser: %q; %s", conditions, reason, message)
	}
	for _, condition := range conditions {
		if found.Outcome != v1alpha1.OutcomeFailed {
			break
		}
		if found := meta.FindStatusCondition(report.Conditions(1), condition); found == nil || found.Status != "False" {
			return outcomeMissed, fmt.Sprintf("condition %s is not False: %+v", condition, found)
		}
	}
	return outcomeCaught, message
}

// outcomeOf tells what a variation changed in one way, against the healthy node.
func (v variation) outcomeOf(sound, report verify.Report) (outcome, says string) {
	if reason, refused := isRefused(report); refused {
		return outcomeFalseRed, "no plan: " + reason
	}
	for _, found := range report.Results {
		before, _ := result(sound, found.Check.ID)
		if before.Outcome == found.Outcome {
			continue
		}
		says := fmt.Sprintf("%s %s: %s", found.Check.ID, found.Outcome, found.Message)
		if found.Outcome == v1alpha1.OutcomeFailed {
			return outcomeFalseRed, says
		}
		if found.Outcome == v1alpha1.OutcomeUnknown && v.unknown[found.Check.ID] == "" {
			return outcomeUnknown, says
		}
	}
	return outcomeSound, ""
}

// What comes of a row.
const (
	outcomeCaught   = "caught"
	outcomeWords    = "bad words"
	outcomeUnknown  = "Unknown"
	outcomeMissed   = "missed"
	outcomeSound    = "sound"
	outcomeFalseRed = "false red"
	outcomeOpen     = "open"
	outcomeRefused  = "refused"
)

// TestHealthy holds every machine against the plan that it came up with.
func TestHealthy(t *testing.T) {
	fleet := newFleet(t)
	for _, name := range allMachines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reports, err := fleet.node(t, name).judge(row{})
			if err != nil {
				t.Fatal(err)
			}
			for way, report := range reports {
				if reason, refused := isRefused(report); refused {
					t.Errorf("%s: no plan: %s", way, reason)
				}
				for _, found := range report.Results {
					if found.Outcome != v1alpha1.OutcomePassed {
						t.Errorf("%s: %s %s: %s", way, found.Check.ID, found.Outcome, found.Message)
					}
				}
			}
		})
	}
}

// TestFaults lets every fault happen on its machines.
func TestFaults(t *testing.T) {
	fleet, table := newFleet(t), newTable("faults")
	t.Run("rows", func(t *testing.T) {
		for _, f := range faults() {
			for _, name := range f.row().machines() {
				t.Run(f.name+"@"+name, func(t *testing.T) {
					t.Parallel()
					n := fleet.node(t, name)
					reports, err := n.judge(f.row())
					if err != nil {
						table.add(t, line{f.name, name, f.want, outcomeMissed, err.Error()})
						return
					}
					table.add(t, f.worst(n, name, reports))
				})
			}
		}
	})
	table.print(t)
}

// worst is the line of the table for a fault on a machine: caught where both ways found it.
func (f fault) worst(n *node, name string, reports map[string]verify.Report) line {
	found := line{f.name, name, f.want, outcomeCaught, ""}
	for _, way := range []string{asCheck, asAgent} {
		report, judged := reports[way]
		if !judged || way == asCheck && f.agent != "" {
			continue
		}
		outcome, says := f.outcomeOf(n, report)
		if way == asCheck && f.anew != "" && outcome != outcomeCaught {
			outcome, says = fault{want: f.anew}.outcomeOf(n, report)
		}
		if outcome != outcomeCaught {
			return line{f.name, name, f.want, outcome, way + ": " + says}
		}
		found.says = says
	}
	return found
}

// TestVariations lets every variation happen on its machines.
func TestVariations(t *testing.T) {
	fleet, table := newFleet(t), newTable("variations")
	t.Run("rows", func(t *testing.T) {
		for _, v := range variations() {
			for _, name := range v.row().machines() {
				t.Run(v.name+"@"+name, func(t *testing.T) {
					t.Parallel()
					sound := fleet.healthy(t, name, v.more)
					reports, err := fleet.node(t, name).judge(v.row())
					if err != nil {
						table.add(t, line{v.name, name, "", outcomeFalseRed, err.Error()})
						return
					}
					found := line{v.name, name, "", outcomeSound, ""}
					for way, report := range reports {
						if outcome, says := v.outcomeOf(sound[way], report); outcome != outcomeSound {
							found.outcome, found.says = outcome, way+": "+says
						}
					}
					table.add(t, found)
				})
			}
		}
	})
	table.print(t)
}
