// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

func TestPause(t *testing.T) {
	cases := map[string]struct{ cost, want time.Duration }{
		"a pass that costs nothing":    {0, 0},
		"a pass over some nodes":       {4 * time.Millisecond, 36 * time.Millisecond},
		"a pass over a large fleet":    {100 * time.Millisecond, 900 * time.Millisecond},
		"a pass over an endless fleet": {time.Hour, maximumPause},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
			p := newPace(now)
			decided := p.measure("trading")
			now.SetTime(now.Now().Add(tc.cost))
			decided()
			if got := p.pause("trading"); got != tc.want {
				t.Errorf("pause() = %s, want %s", got, tc.want)
			}
			if got := p.pause("another"); got != 0 {
				t.Errorf("pause() of another object = %s, want none", got)
			}
			p.forget("trading")
			if got := p.pause("trading"); got != 0 {
				t.Errorf("pause() of an object that is gone = %s, want none", got)
			}
		})
	}
}

// addition is what was added to a queue.
type addition struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	request reconcile.Request
	after   time.Duration
}

func (a *addition) AddAfter(request reconcile.Request, after time.Duration) {
	a.request, a.after = request, after
}

func TestChangesOfNodesWait(t *testing.T) {
	p := newPace(clocktesting.NewFakePassiveClock(time.Unix(1000, 0)))
	p.costs["trading"] = 20 * time.Millisecond
	report := objects.MakeReport("n", "trading").Obj()
	want := addition{request: requestFor("trading"), after: paceShare * 20 * time.Millisecond}
	handler := p.of(profileOfReport)
	for name, handle := range map[string]func(*addition){
		"created": func(q *addition) { handler.Create(t.Context(), event.CreateEvent{Object: report}, q) },
		"updated": func(q *addition) {
			handler.Update(t.Context(), event.UpdateEvent{ObjectOld: report, ObjectNew: report}, q)
		},
		"deleted": func(q *addition) { handler.Delete(t.Context(), event.DeleteEvent{Object: report}, q) },
	} {
		var got addition
		if handle(&got); got != want {
			t.Errorf("a LowLatencyNode that is %s adds %v after %s, want %v after %s", name, got.request, got.after, want.request, want.after)
		}
	}
}
