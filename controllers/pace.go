// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// paceShare is how many times as long as a pass the pause before the next one is: passes over a fleet of which one node or
	// another changes all the time take a tenth of a processor.
	paceShare = 9
	// maximumPause is how late the status of a profile or a pool may tell of one node.
	maximumPause = 3 * time.Second
)

// pace holds back passes over all nodes of a profile or pool that the change of a single node asks for, so that one pass
// takes in what many nodes say: by as much longer as a pass costs more. What a user or the platform changes does not wait.
type pace struct {
	clock clock.PassiveClock
	mutex sync.Mutex
	costs map[string]time.Duration
}

func newPace(clock clock.PassiveClock) *pace {
	return &pace{clock: clock, costs: map[string]time.Duration{}}
}

// measure begins to measure a pass; what it returns is to be called when all is decided and nothing written yet.
func (p *pace) measure(name string) (decided func()) {
	begin := p.clock.Now()
	return func() {
		cost := p.clock.Since(begin)
		p.mutex.Lock()
		defer p.mutex.Unlock()
		p.costs[name] = cost
	}
}

// forget forgets an object that is gone.
func (p *pace) forget(name string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.costs, name)
}

// pause is how long the change of a single node waits for others.
func (p *pace) pause(name string) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return min(paceShare*p.costs[name], maximumPause)
}

// of is the handler of events of single nodes, which concern the objects that the mapping returns.
func (p *pace) of(mapping handler.MapFunc) handler.EventHandler {
	plain := handler.EnqueueRequestsFromMapFunc(mapping)
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { plain.Create(ctx, e, pacedQueue{q, p}) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { plain.Update(ctx, e, pacedQueue{q, p}) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { plain.Delete(ctx, e, pacedQueue{q, p}) },
	}
}

// pacedQueue adds what is to be reconciled after a pause. A request that waits already keeps its time.
type pacedQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	pace *pace
}

func (q pacedQueue) Add(request reconcile.Request) { q.AddAfter(request, q.pace.pause(request.Name)) }
