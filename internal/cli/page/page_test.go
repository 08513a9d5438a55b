// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package page

import (
	"html/template"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodereport"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

func at(minute int) time.Time { return time.Date(2026, 1, 2, 3, minute, 5, 0, time.UTC) }

// nodeOf is a node with everything that a page shows. The words stand where a host or a cluster could put any.
func nodeOf(words string) view.Node {
	top := &topology.Topology{
		Model: words, KernelRelease: words, Packages: []cpus.Set{cpus.Of(0, 1, 2, 3)}, Online: cpus.Of(0, 1, 2, 3),
		NUMANodes: []topology.NUMANode{{ID: 0, CPUs: cpus.Of(0, 1, 2, 3), Hugepages: []topology.HugepagePool{{SizeKibibytes: 2048, Total: 3, Free: 1}}}},
		NICs:      []topology.NIC{{PCIAddress: "0000:01:00.0", Name: words, NUMANode: new(0)}},
	}
	for id := range 4 {
		top.Cores = append(top.Cores, topology.Core{CPUs: cpus.Of(id)})
	}
	planned := &plan.NodePlan{CPUs: plan.CPUPlan{Housekeeping: cpus.Of(0), Isolated: cpus.Of(1, 2, 3)}}
	planned.Hugepages = []plan.HugepagePlan{{SizeKibibytes: 2048, Count: 5, NUMANode: new(0)}}
	pool := view.Pool{Pool: words, Stack: v1alpha1.StackType("Onload"), ResourceName: words, Nodes: []view.PoolNode{{Problem: &words, NICs: []view.PoolNIC{
		{PCIAddress: "0000:01:00.0", Name: &words, Health: v1alpha1.NICUnhealthy, Reasons: []string{words}, Units: 2, NUMANode: new(0),
			Users: []view.PoolUser{{Namespace: "ns", Pod: words, Container: "app", Alignment: v1alpha1.AlignmentSplit, Message: &words}}},
		{PCIAddress: "0000:02:00.0", Health: v1alpha1.NICHealthy, ModuleVersion: &words}, {PCIAddress: "0000:03:00.0", Health: v1alpha1.NICUnknown},
	}}, {Node: "b"}}}
	object := &v1alpha1.LowLatencyNode{}
	object.Status.Checks = &v1alpha1.CheckCounts{Passed: 7, Failed: 1, Unknown: 1}
	object.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "ChecksFailed", Message: words, LastTransitionTime: metav1.NewTime(at(1))}}
	object.Status.Findings = []v1alpha1.Finding{
		{Check: "test.failed", Outcome: v1alpha1.OutcomeFailed, Severity: v1alpha1.SeverityCritical, Message: "CPU 2: " + words, Objects: finding.OfCPUs(cpus.Of(2)).Status(), Observed: words, Expected: words, Fix: words, Reboot: v1alpha1.RebootRequired, Decides: []string{words, "NUMAAligned"}},
		{Check: "test.unknown", Outcome: v1alpha1.OutcomeUnknown, Severity: v1alpha1.SeverityLow, Message: words},
	}
	object.Status.Drift = []v1alpha1.CheckDrift{{Check: "test.failed", Drifted: 3, Repaired: 2, Message: words, Unrepaired: []string{words}}}
	object.Status.Enactment = &v1alpha1.NodeEnactment{Differences: []string{words}}
	object.Status.Transitions = []v1alpha1.NodeTransition{{Time: metav1.NewTime(at(2)), Condition: "DeJittered", From: "True", To: "False", Reason: "ChecksFailed", Check: "test.failed", Message: words}}
	v := view.OfStatus(view.NodeInput{
		Name: words, Profile: words, Topology: top, Plan: planned, Pools: []view.Pool{pool},
		PlanFindings: []plan.Finding{{Rule: "plan.x", Severity: v1alpha1.SeverityLow, Field: words, Message: words, Remedy: words}},
		Containers:   []nodereport.Container{{Namespace: new("ns"), Pod: &words, Container: "app", CPUs: cpus.Of(1), NUMANodes: []int{0, 1}}},
		Jitter: &jitter.Result{ThresholdNanoseconds: 1000, Scheduling: words, CPUs: []jitter.CPUResult{{
			CPU: 1, DurationNanoseconds: 1e9, MaximumNanoseconds: 5000, Histogram: []jitter.Bucket{{FromNanoseconds: 1024, ToNanoseconds: 2048, Count: 3}},
			Worst: []jitter.Interruption{{AtNanoseconds: 5, LengthNanoseconds: 5000, Causes: []counted.Event{{Name: words, Count: 1}}}},
		}}},
	}, object)
	v.Problems = append(v.Problems, words)
	v.Passed, v.ReportTime = []v1alpha1.CheckID{"test.passed", "test.passed-too"}, new(at(20))
	v.Skipped = []view.Skip{{Check: "test.skipped", Reason: words}}
	v.WindowSeconds = new(10.0)
	return v
}

func write(t *testing.T, v *view.Node) string {
	t.Helper()
	written, err := HTML(v, at(30))
	if err != nil {
		t.Fatal(err)
	}
	return written
}

func TestPage(t *testing.T) {
	v := nodeOf("words")
	golden.Assert(t, write(t, &v), "page.html")
}

// tags are the elements of a page in their order.
func tags(page string) []string {
	return regexp.MustCompile(`<[a-zA-Z!/]+`).FindAllString(page, -1)
}

// TestHostileNames puts markup where hosts and clusters put names: the page has the same elements as without.
func TestHostileNames(t *testing.T) {
	plain := nodeOf("words")
	hostile := nodeOf(`</title></style></svg><script>alert(1)</script><img src=x onerror=alert(1)>"'` + "\x00\xff")
	got := write(t, &hostile)
	if diff := cmp.Diff(tags(write(t, &plain)), tags(got)); diff != "" {
		t.Errorf("elements of the page (-plain +hostile):\n%s", diff)
	}
	for _, forbidden := range []string{"<script", "<img", "onerror=alert(1)>\""} {
		if strings.Contains(got, forbidden) {
			t.Errorf("the page holds %q", forbidden)
		}
	}
}

// TestThePageLoadsNothing looks for whatever a browser would fetch without being asked.
func TestThePageLoadsNothing(t *testing.T) {
	v := nodeOf("words")
	got := write(t, &v)
	for _, pattern := range []string{`\bsrc=`, `<link\b`, `@import`, `url\((?:[^#])`, `<script`, `<iframe`, `xlink:href`} {
		if found := regexp.MustCompile(pattern).FindString(got); found != "" {
			t.Errorf("the page holds %q", found)
		}
	}
	for _, link := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(got, -1) {
		if !strings.HasPrefix(link[1], "https://github.com/lowlatency-dev/lowlatency-operator/blob/main/docs/checks.md#") {
			t.Errorf("the page links to %s", link[1])
		}
	}
}

// TestTheCatalogueIsQuoted shows a finding of a check that exists.
func TestTheCatalogueIsQuoted(t *testing.T) {
	check := verify.Catalogue()[0]
	failed, others := explain([]view.NodeFinding{
		{Finding: finding.Finding{Check: check.ID, Outcome: v1alpha1.OutcomeFailed}}, {Finding: finding.Finding{Check: check.ID, Outcome: v1alpha1.OutcomeWaived}},
	})
	if len(failed) != 1 || len(others) != 1 || failed[0].Title != check.Title || failed[0].Why != check.Why {
		t.Errorf("got %+v and %+v, want one of each with %q and %q", failed, others, check.Title, check.Why)
	}
}

// TestListsBreakAfterCommas wants that a browser may break a list of CPUs after a comma, and that nothing in it is markup.
func TestListsBreakAfterCommas(t *testing.T) {
	if got, want := list(`0-3,8 <b>`), template.HTML(`<span class="nw">0-3</span>,<wbr>8 &lt;b&gt;`); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestDrawingsMoveOnAPhone tests that every drawing is in a box that moves it sideways where the window is narrow: shrunk to the window,
// its letters would be 3 pixels high.
func TestDrawingsMoveOnAPhone(t *testing.T) {
	v := nodeOf("words")
	for name, page := range map[string]string{"node": write(t, &v), "hardware": Hardware(&v)} {
		drawings := strings.Count(page, "<svg")
		if boxes := len(regexp.MustCompile(`class="[a-z ]*drawing" [^>]*>\s*<svg`).FindAllString(page, -1)); drawings == 0 || boxes != drawings {
			t.Errorf("%s: %d of %d drawings are in a box", name, boxes, drawings)
		}
		if !regexp.MustCompile(`@media \(max-width:820px\)\{.*\.drawing\{overflow-x:auto`).MatchString(page) {
			t.Errorf("%s: the boxes do not move", name)
		}
	}
}
