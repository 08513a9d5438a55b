// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package enactment

import (
	"fmt"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// stopped says why no further node of a profile gets its plan, by the first node that is a reason; "" when the rollout goes on. A failure
// stops it until it is known to be corrected, or no node is to have the plan any more: that its report is gone, or cannot be read any
// more, is no correction. Nodes are given back all the same.
func stopped(nodes []Node, profile string) string {
	wanted := map[string]bool{}
	for i := range nodes {
		if n := &nodes[i]; n.Profile == profile && n.isToHaveAPlan() {
			wanted[n.Wanted.PlanHash] = true
		}
	}
	first, why := "", ""
	for i := range nodes {
		n := &nodes[i]
		if n.Profile != profile || first != "" && first < n.Name {
			continue
		}
		if because := n.stops(wanted); because != "" {
			first, why = n.Name, because
		}
	}
	return why
}

func (n *Node) isToHaveAPlan() bool { return n.Wanted != nil && n.Wanted.Action == Enact }

// stops says why a node keeps others from getting their plans, which are wanted; "" when it does not.
func (n *Node) stops(wanted map[string]bool) string {
	switch {
	case n.Wanted != nil && n.Wanted.Action == Remove:
		return ""
	case n.IsUnheard:
		return fmt.Sprintf("no agent says whether the plan has failed on node %s; to go on without knowing, take the label %s off it", n.Name, v1alpha1.LabelPool)
	case n.hidesAttempt(wanted):
		return fmt.Sprintf("nobody knows whether the plan has failed on node %s: %s", n.Name, n.unread())
	case n.isTriedAgain():
		return fmt.Sprintf("the plan has failed on node %s, where another attempt comes first", n.Name)
	case n.hasFailed(), n.Wanted == nil && n.isAbout(wanted) && n.hasFailedWith(n.report().PlanHash):
		return "the plan has failed on node " + n.Name
	default:
		return ""
	}
}

// isAbout reports whether the guard speaks of the plan that the node is to have, or of one that others are to have where nobody knows now
// which one it is.
func (n *Node) isAbout(wanted map[string]bool) bool {
	if n.isToHaveAPlan() {
		return n.report().PlanHash == n.Wanted.PlanHash
	}
	return wanted[n.report().PlanHash]
}

// hidesAttempt reports whether a plan that is wanted was tried, or may have been, on a node whose guard says something that nobody can
// read: it may have failed, before or since. Without a report from before, what the operator has there may be such a plan.
func (n *Node) hidesAttempt(wanted map[string]bool) bool {
	report := n.report()
	if !n.isUnreadable() || n.isToHaveAPlan() && report.InForcePlanHash == n.Wanted.PlanHash {
		return false
	}
	if report.Number == 0 && n.IsChanged || n.isHandedOver(wanted) {
		return true
	}
	return report.Number != 0 && n.isAbout(wanted) && report.InForcePlanHash != report.PlanHash
}

// isHandedOver reports whether the guard may have taken an instruction to enact a plan that is wanted.
func (n *Node) isHandedOver(wanted map[string]bool) bool {
	return n.Issued != nil && n.Issued.Delivered && n.Issued.Action == Enact && wanted[n.Issued.PlanHash]
}

// isTriedAgain reports whether somebody has asked for another attempt at what has failed on the node, of which nothing is known yet.
func (n *Node) isTriedAgain() bool {
	report := n.report()
	if n.Retry == 0 || !n.isToHaveAPlan() || report.PlanHash != n.Wanted.PlanHash || n.isDone() {
		return false
	}
	return n.isRetry() && n.hasFailedWith(n.Wanted.PlanHash) || report.Number > n.Retry && n.isWorking()
}
