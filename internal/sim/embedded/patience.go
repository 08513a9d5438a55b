// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"sync"
	"time"
)

// patience knows since when each node is to have a configuration that it does not have yet. The zero value waits for
// nothing.
type patience struct {
	mutex sync.Mutex
	delay time.Duration
	since map[string]wish
}

// wish is a configuration that a node is to have.
type wish struct {
	config string
	since  time.Time
}

func (p *patience) set(delay time.Duration) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.delay, p.since = delay, nil
}

// isOver reports whether the node has been about to get the configuration for the delay.
func (p *patience) isOver(node, config string, now time.Time) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.delay == 0 {
		return true
	}
	known := p.since[node]
	if known.config != config {
		if p.since == nil {
			p.since = map[string]wish{}
		}
		p.since[node] = wish{config: config, since: now}
		return false
	}
	return now.Sub(known.since) >= p.delay
}
