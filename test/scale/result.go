// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"net/http"
	"time"
)

// result is what was measured with a fleet of one size.
type result struct {
	Nodes   int
	First   roll
	Change  roll
	Idle    quiet
	Single  single
	Restart restart
}

// roll is a change that gives every node a new plan.
type roll struct {
	// Pools is when the last object that moves nodes was written that came before all nodes had their plans; Adopted when the
	// last node had its plan, Ready when the profile said that all of them were proven. 0 means never.
	Pools, Adopted, Ready time.Duration
	// Writes, Reads and Events are requests of the manager; PerNode counts all but those about the platform's objects.
	Writes, Reads, Events int
	PerNode               float64
	// Refused are those that the API server answered with an error, conflicts included.
	Refused int
	Cost    cost
	// Processors is what else used the processors, until the manager was quiet again.
	Processors processors
	// Resources counts writes by verb and resource.
	Resources map[string]int
	// Curve tells how many nodes had a new plan at which time.
	Curve []point
}

type point struct {
	After time.Duration
	Nodes int
}

// quiet is what happens while nothing changes.
type quiet struct {
	Writes  int
	Seconds float64
	Cost    cost
}

// single is what changes of single nodes cost.
type single struct {
	Changes, Writes, Events int
	Cost                    cost
}

// restart is a manager that starts again.
type restart struct {
	True   time.Duration
	Writes int
	Cost   cost
}

// sample notes how many nodes have a new plan.
func (r *roll) sample(after time.Duration, nodes, of int) {
	if r.Adopted == 0 && nodes == of {
		r.Adopted = after
	}
	r.Curve = append(r.Curve, point{After: after, Nodes: nodes})
}

// add takes the requests of the roll into account.
func (r *roll) add(begin time.Time, requests []request, nodes int) {
	r.Resources = map[string]int{}
	written := map[string]bool{}
	perNode := 0
	for i := range requests {
		one := &requests[i]
		switch {
		case one.isElection():
			continue
		case !one.writes():
			r.Reads++
			continue
		}
		r.count(one)
		if one.isAboutNode() {
			perNode++
		}
		// The first write of each object counts: later ones keep it as it is.
		if key := one.resource + "/" + one.name; one.carriesPlan() && !written[key] {
			written[key] = true
			r.Pools = one.at.Sub(begin)
		}
	}
	r.PerNode = float64(perNode) / float64(nodes)
}

// count counts a write.
func (r *roll) count(one *request) {
	r.Resources[one.verb+" "+one.resource]++
	r.Writes++
	if one.isEvent() {
		r.Events++
	}
	if one.code >= http.StatusBadRequest {
		r.Refused++
	}
}
