// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

const movedIRQ = "IRQ 142 (i40e-ens7f0-TxRx-3) is delivered to isolated CPU 5; wanted 0-1; irqbalance (process 812) may use isolated CPUs 2-7"

func TestDriftIsAnnounced(t *testing.T) {
	drift := func(drifted, repaired int64, unrepaired ...string) []v1alpha1.CheckDrift {
		return []v1alpha1.CheckDrift{{Check: "irq.effective-affinity", Drifted: drifted, Repaired: repaired, Message: movedIRQ, Unrepaired: unrepaired}}
	}
	cases := map[string]struct {
		before, after []v1alpha1.CheckDrift
		other         bool
		want          []string
	}{
		"nothing new":               {before: drift(1, 1), after: drift(1, 1)},
		"the first drift":           {after: drift(1, 0), want: []string{"Warning Drifted irq.effective-affinity: " + movedIRQ}},
		"one more":                  {before: drift(1, 0), after: drift(2, 0), want: []string{"Warning Drifted irq.effective-affinity: " + movedIRQ}},
		"put back":                  {before: drift(1, 0), after: drift(1, 2), want: []string{"Normal Repaired irq.effective-affinity: the agent put back 2 of its files, after: " + movedIRQ}},
		"given up":                  {before: drift(4, 3), after: drift(4, 3, "IRQ 142: contested"), want: []string{"Warning Unrepaired irq.effective-affinity: IRQ 142: contested"}},
		"still given up":            {before: drift(4, 3, "IRQ 142: contested"), after: drift(4, 3, "IRQ 142: contested")},
		"another object, same name": {after: drift(1, 0), other: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			report := func(uid types.UID, drift []v1alpha1.CheckDrift) *v1alpha1.LowLatencyNode {
				return &v1alpha1.LowLatencyNode{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: uid}, Status: v1alpha1.LowLatencyNodeStatus{Drift: drift}}
			}
			before := report("1", tc.before)
			if tc.other {
				before.UID = "2"
			}
			recorder := events.NewFakeRecorder(8)
			announceReports(recorder).Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: report("1", tc.after)}, nil)
			close(recorder.Events)
			var got []string
			for told := range recorder.Events {
				got = append(got, told)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestForeignChangesAreAnnounced as events of the Node, which outlives the report.
func TestForeignChangesAreAnnounced(t *testing.T) {
	report := func(differences ...string) *v1alpha1.LowLatencyNode {
		return &v1alpha1.LowLatencyNode{
			ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "1", OwnerReferences: []metav1.OwnerReference{{Kind: "Node", Name: "n", UID: "2"}}},
			Status:     v1alpha1.LowLatencyNodeStatus{Enactment: &v1alpha1.NodeEnactment{Phase: v1alpha1.EnactmentInForce, Differences: differences}},
		}
	}
	recorder := events.NewFakeRecorder(8)
	announceReports(recorder).Update(t.Context(), event.UpdateEvent{ObjectOld: report("a"), ObjectNew: report("a", "/etc/x is absent")}, nil)
	close(recorder.Events)
	var got []string
	for told := range recorder.Events {
		got = append(got, told)
	}
	if len(got) != 1 || !strings.HasPrefix(got[0], "Warning HostDiffers /etc/x is absent") {
		t.Errorf("%q", got)
	}
	if node := nodeOf(report()); node.Name != "n" || node.UID != "2" {
		t.Errorf("the event is about %+v", node.ObjectMeta)
	}
}

// TestEventsHaveAConnectionOfTheirOwn: a thousand events take no request from the writes, and reach the API server as they do.
func TestEventsHaveAConnectionOfTheirOwn(t *testing.T) {
	manager := &rest.Config{Host: "https://api", BearerToken: "token", QPS: -1}
	own := eventConnection(manager)
	if own.QPS != eventsPerSecond || own.Burst != eventBurst || own.Host != manager.Host || own.BearerToken != manager.BearerToken {
		t.Errorf("events go out by %+v", own)
	}
	if manager.QPS != -1 || manager.Dial != nil {
		t.Errorf("the manager's own connection has become %+v", manager)
	}
	transports := map[http.RoundTripper]bool{}
	for _, config := range []*rest.Config{manager, manager, own} {
		transport, err := rest.TransportFor(&rest.Config{Host: config.Host, Dial: config.Dial})
		if err != nil {
			t.Fatal(err)
		}
		transports[transport] = true
	}
	if len(transports) != 2 {
		t.Errorf("there are %d connections, want one for events and one for all else", len(transports))
	}
}
