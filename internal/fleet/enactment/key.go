// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package enactment

import "time"

// MoveKey is what becomes of a host whose guard takes instructions of a key from before: it is told the one after it. Nothing else of the
// host changes, so that the node is neither cordoned nor counted among those that are not available.
const MoveKey Action = "MoveKey"

// keysAtOnce is how many nodes of a profile are told of a key at a time.
const keysAtOnce = 10

// isToldOfKey tells that a pod is to tell the guard of a key, or does so.
func (n *Node) isToldOfKey() bool {
	return n.Issued != nil && n.Issued.Action == MoveKey
}

// needsKey tells that the guard is to be told of a key, and that nothing else is being done on the node.
func (n *Node) needsKey() bool {
	return n.HasFormerKey && !n.isBegun() && !n.isWorking() && !n.isUnreadable() && n.IsReady && n.IsReporting
}

// moveKey goes on with a node that is told of a key.
func (n *Node) moveKey(now time.Time) (Step, State) {
	state := State{Node: n.Name, Stage: StageTold, Message: "its guard is told of the operator's key"}
	if !n.HasFormerKey {
		return Step{Node: n.Name, Verb: Withdraw}, state
	}
	if now.Sub(n.Issued.Since) >= handOverLimit {
		state.Stage, state.Message = StageLate, "its guard has not taken the operator's key: see the pod that tells it, in the namespace of the agents"
	}
	return Step{Node: n.Name, Verb: HandOver}, state
}

// tellKeys begins to tell guards of the key, as many as may be told at a time.
func (d *Decision) tellKeys(nodes []Node, limits Limits, now time.Time) {
	told := 0
	for i := range nodes {
		if nodes[i].Profile == limits.Profile && nodes[i].isToldOfKey() {
			told++
		}
	}
	for i := range nodes {
		n := &nodes[i]
		if n.Profile != limits.Profile || n.isToldOfKey() || !n.needsKey() || !limits.MayBegin || told >= keysAtOnce {
			continue
		}
		told++
		d.add(Step{Node: n.Name, Verb: TellKey, Number: now.Unix()})
	}
}
