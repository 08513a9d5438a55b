// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
)

// problem is something that will not mend itself.
type problem struct {
	// reason is a condition reason.
	reason string
	// node is the name of the node concerned; "" when it is about more than nodes.
	node string
	// text is a sentence that names the object, and the node by anyNode.
	text string
}

// message is the sentence about the node.
func (p problem) message() string { return onNode(p.text, p.node) }

// Identifiers of findings that are neither planning rules nor checks.
const (
	checkOverlap  = "profile.overlap"
	checkPlatform = "platform.failure"
	checkPool     = "platform.pool"
	checkPeer     = "platform.performance-profile"
)

// gravity orders the reasons of problems: what makes all others moot comes first.
func gravity(reason string) int {
	return slices.Index([]string{
		v1alpha1.ReasonDeleting,
		v1alpha1.ReasonProfilesOverlap,
		v1alpha1.ReasonPerformanceProfileConflict,
		v1alpha1.ReasonPoolConflict,
		v1alpha1.ReasonPlanImpossible,
		v1alpha1.ReasonPlatformFailed,
		v1alpha1.ReasonChecksFailed,
	}, reason)
}

// findProblems lists the problems, the gravest first, then by node and message.
func findProblems(s *summary) []problem {
	var problems []problem
	if s.overdue {
		problems = append(problems, problem{
			reason: v1alpha1.ReasonDeleting,
			text:   "giving the nodes back takes longer than it should: " + s.returning.Waiting,
		})
	}
	for i := range s.members {
		problems = append(problems, memberProblems(&s.members[i])...)
	}
	for _, conflict := range s.outcome.Conflicts {
		problems = append(problems, problem{reason: conflict.Reason, node: conflict.Node, text: conflict.Message})
	}
	for _, pool := range s.outcome.Groups {
		if pool.Phase == fleet.PhaseFailed {
			problems = append(problems, problem{reason: v1alpha1.ReasonPlatformFailed, text: pool.Message})
		}
	}
	slices.SortFunc(problems, func(a, b problem) int {
		return cmp.Or(cmp.Compare(gravity(a.reason), gravity(b.reason)),
			cmp.Compare(a.node, b.node), cmp.Compare(a.text, b.text))
	})
	return problems
}

// memberProblems are the problems of one node.
func memberProblems(m *member) []problem {
	switch {
	case len(m.rivals) > 0:
		return []problem{{reason: v1alpha1.ReasonProfilesOverlap, node: m.name(), text: overlapText(m)}}
	case m.planned != nil && m.plan() == nil:
		return []problem{{reason: v1alpha1.ReasonPlanImpossible, node: m.name(), text: impossibleText(m)}}
	case m.isInForce():
		return failedChecks(m)
	default:
		return nil
	}
}

func overlapText(m *member) string {
	return fmt.Sprintf("node %s is selected by profile %s, too, and is left as it is: narrow spec.nodeSelector of one of them",
		anyNode, strings.Join(m.rivals, ", "))
}

func impossibleText(m *member) string {
	for _, finding := range m.planned.findings {
		if finding.severity == v1alpha1.SeverityCritical {
			return finding.text
		}
	}
	return "node " + anyNode + " has no plan"
}

// failedChecks reports a node that has the plan in force and yet contradicts it: nothing is under way that
// would change that.
func failedChecks(m *member) []problem {
	for _, kind := range []string{v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned} {
		if m.status(kind) == metav1.ConditionFalse {
			text := nodeMessage(anyNode, m.current(kind))
			return []problem{{reason: v1alpha1.ReasonChecksFailed, node: m.name(), text: text}}
		}
	}
	return nil
}

// nodeMessage is what a condition says, with the name of the node.
func nodeMessage(node string, condition metav1.Condition) string {
	return "node " + node + ": " + condition.Message
}

// findings are those of all nodes, the most severe first. One that several nodes share is told once, for the
// first of them, with the number of the others.
func (s *summary) findings() []v1alpha1.ProfileFinding {
	nodes := map[sharedFinding][]string{}
	for i := range s.members {
		m := &s.members[i]
		for _, finding := range memberFindings(m) {
			nodes[finding] = append(nodes[finding], m.name())
		}
	}
	for _, p := range s.problems {
		if check := platformCheck(p.reason); check != "" {
			group := sharedFinding{check: check, severity: v1alpha1.SeverityCritical, text: p.text}
			nodes[group] = append(nodes[group], p.node)
		}
	}
	findings := make([]v1alpha1.ProfileFinding, 0, len(nodes))
	for finding, names := range nodes {
		more := andMore(len(names) - 1)
		findings = append(findings, v1alpha1.ProfileFinding{
			Node: names[0], Check: finding.check, Severity: finding.severity,
			Message: shorten(onNode(finding.text, names[0]), maximumMessage-len(more)) + more,
		})
	}
	slices.SortFunc(findings, func(a, b v1alpha1.ProfileFinding) int {
		return cmp.Or(cmp.Compare(severityRank(a.Severity), severityRank(b.Severity)),
			cmp.Compare(a.Check, b.Check), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Message, b.Message))
	})
	return bounded(findings, maximumFindings)
}

// memberFindings are what cannot be met on the node, and what its kernel contradicts.
func memberFindings(m *member) []sharedFinding {
	if m.planned == nil {
		return nil
	}
	if m.plan() == nil || m.report.Status.VerifiedPlanHash != m.planHash() || len(m.report.Status.Findings) == 0 {
		return m.planned.findings
	}
	findings := slices.Clone(m.planned.findings)
	for i := range m.report.Status.Findings {
		if finding := &m.report.Status.Findings[i]; finding.Outcome == v1alpha1.OutcomeFailed {
			findings = append(findings, sharedFinding{
				check: string(finding.Check), severity: finding.Severity, text: finding.Message,
			})
		}
	}
	return findings
}

// platformCheck is the identifier under which a problem of this reason is listed among the findings; "" when
// the nodes' own findings say it.
func platformCheck(reason string) string {
	return map[string]string{
		v1alpha1.ReasonProfilesOverlap:            checkOverlap,
		v1alpha1.ReasonPerformanceProfileConflict: checkPeer,
		v1alpha1.ReasonPoolConflict:               checkPool,
		v1alpha1.ReasonPlatformFailed:             checkPlatform,
	}[reason]
}

// severityRank orders severities, the most severe first.
func severityRank(severity v1alpha1.Severity) int {
	return slices.Index([]v1alpha1.Severity{
		v1alpha1.SeverityCritical, v1alpha1.SeverityHigh, v1alpha1.SeverityMedium, v1alpha1.SeverityLow,
	}, severity)
}
