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
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// problem is something that will not mend itself.
type problem struct {
	// reason is a condition reason.
	reason string
	// node is the name of the node concerned; "" when it is about more than nodes.
	node string
	// about says it of a node.
	about sentence
}

// message is the sentence about the node.
func (p problem) message() string { return p.about(p.node) }

// sentence says something of the node of the given name. What reads alike without a name, several nodes share.
type sentence func(node string) string

// always is a sentence that does not name the node.
func always(text string) sentence { return func(string) string { return text } }

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
			about:  always("giving the nodes back takes longer than it should: " + s.returning.Waiting),
		})
	}
	for i := range s.members {
		problems = append(problems, memberProblems(&s.members[i])...)
	}
	for _, conflict := range s.outcome.Conflicts {
		problems = append(problems, problem{reason: conflict.Reason, node: conflict.Node, about: always(conflict.Message)})
	}
	for _, pool := range s.outcome.Groups {
		if pool.Phase == fleet.PhaseFailed {
			problems = append(problems, problem{reason: v1alpha1.ReasonPlatformFailed, about: always(pool.Message)})
		}
	}
	slices.SortFunc(problems, func(a, b problem) int {
		return cmp.Or(cmp.Compare(gravity(a.reason), gravity(b.reason)),
			cmp.Compare(a.node, b.node), cmp.Compare(a.message(), b.message()))
	})
	return problems
}

// memberProblems are the problems of one node.
func memberProblems(m *member) []problem {
	switch {
	case len(m.rivals) > 0:
		return []problem{{reason: v1alpha1.ReasonProfilesOverlap, node: m.name(), about: overlap(m)}}
	case m.planned != nil && m.plan() == nil:
		return []problem{{reason: v1alpha1.ReasonPlanImpossible, node: m.name(), about: impossibility(m)}}
	case m.isInForce():
		return failedChecks(m)
	default:
		return nil
	}
}

func overlap(m *member) sentence {
	others := strings.Join(m.rivals, ", ")
	return func(node string) string {
		return fmt.Sprintf("node %s is selected by profile %s, too, and is left as it is: narrow spec.nodeSelector of one of them",
			node, others)
	}
}

func impossibility(m *member) sentence {
	for _, finding := range m.planned.findings {
		if finding.Severity == v1alpha1.SeverityCritical {
			return finding.Sentence
		}
	}
	return func(node string) string { return "node " + node + " has no plan" }
}

// failedChecks reports a node that has the plan in force and yet contradicts it: nothing is under way that
// would change that.
func failedChecks(m *member) []problem {
	for _, kind := range []string{v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned} {
		if m.status(kind) == metav1.ConditionFalse {
			condition := m.current(kind)
			about := func(node string) string { return nodeMessage(node, condition) }
			return []problem{{reason: v1alpha1.ReasonChecksFailed, node: m.name(), about: about}}
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
	var all []memberFinding
	for i := range s.members {
		all = append(all, memberFindings(&s.members[i])...)
	}
	for _, p := range s.problems {
		if check := platformCheck(p.reason); check != "" {
			all = append(all, memberFinding{node: p.node, check: check, severity: v1alpha1.SeverityCritical, about: p.about})
		}
	}
	type key struct {
		check    string
		severity v1alpha1.Severity
		text     string
	}
	groups := map[key][]memberFinding{}
	for _, f := range all {
		same := key{check: f.check, severity: f.severity, text: f.about("")}
		groups[same] = append(groups[same], f)
	}
	findings := make([]v1alpha1.ProfileFinding, 0, len(groups))
	for _, group := range groups {
		findings = append(findings, group[0].shared(len(group)-1))
	}
	slices.SortFunc(findings, func(a, b v1alpha1.ProfileFinding) int {
		return cmp.Or(cmp.Compare(severityRank(a.Severity), severityRank(b.Severity)),
			cmp.Compare(a.Check, b.Check), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Message, b.Message))
	})
	return shorten.List(findings, v1alpha1.MaxProfileFindings)
}

// memberFinding is a finding about one node.
type memberFinding struct {
	node, check string
	severity    v1alpha1.Severity
	about       sentence
}

// shared is the finding in the status of a profile, with the number of other nodes that have it.
func (f memberFinding) shared(others int) v1alpha1.ProfileFinding {
	more := andMore(others)
	return v1alpha1.ProfileFinding{
		Node: f.node, Check: f.check, Severity: f.severity,
		Message: shorten.With(f.about(f.node), more, v1alpha1.MaxFindingMessageLength),
	}
}

// memberFindings are what cannot be met on the node, and what its kernel contradicts.
func memberFindings(m *member) []memberFinding {
	if m.planned == nil {
		return nil
	}
	findings := make([]memberFinding, 0, len(m.planned.findings))
	for _, finding := range m.planned.findings {
		findings = append(findings, memberFinding{
			node: m.name(), check: finding.Rule, severity: finding.Severity, about: finding.Sentence,
		})
	}
	if m.plan() == nil || m.report.Status.VerifiedPlanHash != m.planHash() {
		return findings
	}
	for i := range m.report.Status.Findings {
		if finding := &m.report.Status.Findings[i]; finding.Outcome == v1alpha1.OutcomeFailed {
			findings = append(findings, memberFinding{
				node: m.name(), check: string(finding.Check), severity: finding.Severity, about: always(finding.Message),
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
