// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package mistakes

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// revised gives an object the revision of its write.
func revised(name string, revision int64) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, ResourceVersion: strconv.FormatInt(revision, 10)}
}

// nodeAt is the write of a Node with the taint or without.
func nodeAt(revision int64, tainted bool) event {
	node := &corev1.Node{ObjectMeta: revised("n", revision)}
	if tainted {
		node.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintUnverified, Effect: corev1.TaintEffectNoSchedule}}
	}
	return event{revision: revision, object: node}
}

// reportAt is the write of a LowLatencyNode that proves its plan or does not.
func reportAt(revision int64, status metav1.ConditionStatus) event {
	report := &v1alpha1.LowLatencyNode{ObjectMeta: revised("n", revision)}
	report.Spec.PlanHash, report.Status.VerifiedPlanHash, report.Status.BootID = "p", "p", "b"
	for _, kind := range []string{v1alpha1.ConditionApplied, v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned} {
		report.Status.Conditions = append(report.Status.Conditions, metav1.Condition{Type: kind, Status: status})
	}
	return event{revision: revision, object: report}
}

// tell sends a request through a ledger to a server that answers with a text.
func tell(t *testing.T, l *ledger, method, path, body string, status int, answer string) {
	t.Helper()
	next := roundTripper(func(r *http.Request) (*http.Response, error) {
		if text, err := io.ReadAll(r.Body); err != nil || string(text) != body {
			t.Errorf("the server got %q, %v, want %q", text, err, body)
		}
		return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(answer))}, nil
	})
	response, err := l.over(next).RoundTrip(httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // It is in memory.
	if text, err := io.ReadAll(response.Body); err != nil || string(text) != answer {
		t.Errorf("the manager got %q, %v, want %q", text, err, answer)
	}
}

func TestTaintOfAnInstant(t *testing.T) {
	const (
		report = "/apis/lowlatency.dev/v1alpha1/lowlatencynodes/n"
		taint  = `{"metadata":{"resourceVersion":"10"},"spec":{"taints":[{"key":"k"}]}}`
	)
	read := func(revision string) func(*testing.T, *ledger) {
		return func(t *testing.T, l *ledger) {
			t.Helper()
			tell(t, l, http.MethodGet, report, "", http.StatusOK, `{"metadata":{"resourceVersion":"`+revision+`"}}`)
		}
	}
	wrote := func(body string) func(*testing.T, *ledger) {
		return func(t *testing.T, l *ledger) {
			t.Helper()
			tell(t, l, http.MethodPatch, "/api/v1/nodes/n", body, http.StatusOK, "{}")
		}
	}
	missed := func(t *testing.T, l *ledger) {
		t.Helper()
		tell(t, l, http.MethodGet, report, "", http.StatusNotFound, "{}")
	}
	do := func(all ...func(*testing.T, *ledger)) []func(*testing.T, *ledger) { return all }
	pending, proven := reportAt(20, metav1.ConditionUnknown), reportAt(30, metav1.ConditionTrue)
	cases := map[string]struct {
		requests []func(*testing.T, *ledger)
		then     []event
		wrong    bool
	}{
		"read before the proof, and lifted":               {requests: do(read("20"), wrote(taint)), then: []event{nodeAt(50, false)}},
		"missing before the proof, and lifted":            {requests: do(missed, wrote(taint)), then: []event{nodeAt(50, false)}},
		"read before the proof, and the next check fails": {requests: do(read("20"), wrote(taint)), then: []event{reportAt(50, metav1.ConditionFalse)}},
		"read before the proof, and left there":           {requests: do(read("20"), wrote(taint)), wrong: true},
		"read after the proof":                            {requests: do(read("30"), wrote(taint)), then: []event{nodeAt(50, false)}, wrong: true},
		"read before and after the proof":                 {requests: do(read("20"), read("30"), wrote(taint)), then: []event{nodeAt(50, false)}, wrong: true},
		"not read":                                        {requests: do(wrote(taint)), then: []event{nodeAt(50, false)}, wrong: true},
		"read for another taint": {
			requests: do(read("20"), wrote(strings.Replace(taint, "10", "9", 1)), wrote(taint)), then: []event{nodeAt(50, false)}, wrong: true,
		},
		"read for a taint that is written without a lock": {
			requests: do(read("20"), wrote(`{"spec":{"taints":[]}}`)), then: []event{nodeAt(50, false)}, wrong: true,
		},
		"read before the proof was repeated": {
			requests: do(read("30"), wrote(taint)), then: []event{reportAt(35, metav1.ConditionTrue), nodeAt(50, false)}, wrong: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := newObserver()
			for _, request := range tc.requests {
				request(t, o.ledger)
			}
			o.events = append([]event{nodeAt(10, false), pending, proven, nodeAt(40, true)}, tc.then...)
			sum := o.account()
			if len(sum.taints) != 1 {
				t.Fatalf("%d taints, want one", len(sum.taints))
			}
			if got := sum.taints[0].doubt != ""; got != tc.wrong {
				t.Errorf("the taint is wrong: %v (%s), want %v", got, sum.taints[0].doubt, tc.wrong)
			}
		})
	}
}

// TestTaintOfAPlan: a node may be judged by a plan that was brought to it, and by no other.
func TestTaintOfAPlan(t *testing.T) {
	reboots := func(revision int64, state string) event {
		e := nodeAt(revision, false)
		e.object.SetAnnotations(map[string]string{stateOfNode: state})
		return e
	}
	judged := func(revision int64, boot, by, proven string) event {
		e := reportAt(revision, metav1.ConditionTrue)
		report := e.object.(*v1alpha1.LowLatencyNode) //nolint:forcetypeassert // It is one.
		report.Spec.PlanHash, report.Status.VerifiedPlanHash, report.Status.BootID = by, proven, boot
		return e
	}
	before := []event{nodeAt(10, false), judged(20, "b1", "p", "p")}
	cases := map[string]struct {
		then  []event
		wrong bool
	}{
		"brought by a reboot of which the manager learned late": {then: []event{
			reboots(30, "Working"), reboots(31, "Done"), judged(32, "b2", "p", "p"), judged(33, "b2", "q", "p"), nodeAt(34, true), judged(35, "b2", "q", "q"),
		}},
		"brought without a reboot": {then: []event{judged(33, "b1", "q", "p"), nodeAt(34, true), judged(35, "b1", "q", "q")}},
		"brought by a later reboot": {wrong: true, then: []event{
			judged(33, "b1", "q", "p"), nodeAt(34, true), reboots(35, "Working"), reboots(36, "Done"), judged(37, "b2", "q", "q"),
		}},
		"brought by a later reboot, after one for another plan": {wrong: true, then: []event{
			reboots(30, "Working"), reboots(31, "Done"), judged(32, "b2", "p", "p"), judged(33, "b2", "q", "p"), nodeAt(34, true),
			reboots(35, "Working"), reboots(36, "Done"), judged(37, "b3", "q", "q"),
		}},
		"never brought": {wrong: true, then: []event{judged(33, "b1", "q", "p"), nodeAt(34, true), judged(35, "b1", "p", "p")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := newObserver()
			o.events = slices.Concat(before, tc.then)
			sum := o.account()
			if len(sum.taints) != 1 {
				t.Fatalf("%d taints, want one", len(sum.taints))
			}
			if got := sum.taints[0].doubt != ""; got != tc.wrong {
				t.Errorf("the taint is wrong: %v (%s), want %v", got, sum.taints[0].doubt, tc.wrong)
			}
		})
	}
}

// TestTaintOfAStart: a node that proves its plan may be tainted until the kubelet has advertised what its pools have, once in a boot.
func TestTaintOfAStart(t *testing.T) {
	cases := map[string]struct {
		advertised, units int64
		started           string
		health            v1alpha1.NICHealth
		wrong             bool
	}{
		"nothing is advertised":          {units: 2, health: v1alpha1.NICHealthy},
		"too little is advertised":       {units: 2, advertised: 1, health: v1alpha1.NICHealthy, started: "the boot before"},
		"all is advertised":              {units: 2, advertised: 2, health: v1alpha1.NICHealthy, wrong: true},
		"all was advertised in the boot": {units: 2, health: v1alpha1.NICHealthy, started: "b", wrong: true},
		"no NIC is healthy":              {units: 2, health: v1alpha1.NICUnhealthy, wrong: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pool := &v1alpha1.BypassNICPool{ObjectMeta: revised("x2", 5)}
			pool.Spec.ResourceName = "lowlatency.dev/x2"
			proven := reportAt(30, metav1.ConditionTrue)
			report := proven.object.(*v1alpha1.LowLatencyNode) //nolint:forcetypeassert // It is one.
			report.Spec.BypassPools = []string{"x2"}
			report.Status.BypassNICs = []v1alpha1.NodeBypassNIC{{Pool: "x2", PCIAddress: "0000:17:00.0", Health: tc.health, Units: int32(tc.units)}} //nolint:gosec // Small.
			tainted := nodeAt(40, true)
			node := tainted.object.(*corev1.Node) //nolint:forcetypeassert // It is one.
			node.Status.NodeInfo.BootID = "b"
			node.Annotations = map[string]string{v1alpha1.AnnotationStarted: tc.started}
			node.Status.Allocatable = corev1.ResourceList{"lowlatency.dev/x2": *resource.NewQuantity(tc.advertised, resource.DecimalSI)}
			o := newObserver()
			o.events = []event{{revision: 5, object: pool}, nodeAt(10, false), proven, tainted}
			sum := o.account()
			if len(sum.taints) != 1 {
				t.Fatalf("%d taints, want one", len(sum.taints))
			}
			if got := sum.taints[0].doubt != ""; got != tc.wrong {
				t.Errorf("the taint is wrong: %v (%s), want %v", got, sum.taints[0].doubt, tc.wrong)
			}
		})
	}
}

func TestStatusSpeaksOfItsTime(t *testing.T) {
	labelled := func(revision int64, labels map[string]string, deleted bool) event {
		node := &corev1.Node{ObjectMeta: revised("n", revision)}
		node.Labels = labels
		return event{revision: revision, object: node, deleted: deleted}
	}
	o := newObserver()
	role := map[string]string{"role": "", "other": "x"}
	o.known.nodes["n"] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: role}}
	// The watches of two kinds tell in no order.
	o.events = []event{labelled(30, role, false), labelled(20, nil, false), labelled(40, role, true), nodeAt(25, false)}
	selector := v1alpha1.NodeSelector{MatchLabels: v1alpha1.Labels{"role": ""}}
	for revision, want := range map[int64]bool{10: true, 20: false, 29: false, 30: true, 39: true, 40: false} {
		if got := o.wasSelected(selector, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, revision); got != want {
			t.Errorf("wasSelected() at revision %d = %v, want %v", revision, got, want)
		}
	}
	if o.wasSelected(selector, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "unknown"}}, 50) {
		t.Error("a node that nobody has told of was selected")
	}
	if o.wasSelected(selector, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "of another machine"}}, 30) {
		t.Error("what was said of a machine counts for the one that has replaced it")
	}
}
