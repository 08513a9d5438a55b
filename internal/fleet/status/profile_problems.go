// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// problem is something that will not solve itself.
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
	checkObject   = "platform.object"
	checkRuntime  = "platform.runtime-class"
	checkRelease  = "profile.release"
	checkTests    = "profile.qualification"

	checkHost      = "platform.host"
	checkEnactment = "platform.enactment"
	checkDrain     = "platform.drain"
	checkForeign   = "platform.foreign-change"
)

// rank orders the reasons of problems: what makes all others moot comes first.
func rank(reason string) int {
	return slices.Index([]string{
		v1alpha1.ReasonDeleting,
		v1alpha1.ReasonProfilesOverlap,
		v1alpha1.ReasonPerformanceProfileConflict,
		v1alpha1.ReasonRuntimeClassConflict,
		v1alpha1.ReasonMachineConfigPoolConflict,
		v1alpha1.ReasonObjectConflict,
		v1alpha1.ReasonPlanImpossible,
		v1alpha1.ReasonReleaseHeld,
		v1alpha1.ReasonHostRefused,
		v1alpha1.ReasonEnactmentFailed,
		v1alpha1.ReasonPlatformFailed,
		v1alpha1.ReasonRenderingLate,
		v1alpha1.ReasonDrainBlocked,
		v1alpha1.ReasonEnactmentLate,
		v1alpha1.ReasonChecksFailed,
		v1alpha1.ReasonQualificationFailed,
	}, reason)
}

// findProblems lists the problems, the most severe first, then by node and message.
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
		problems = append(problems, s.failedTests(&s.members[i])...)
	}
	if s.release.IsHeld() {
		problems = append(problems, problem{reason: v1alpha1.ReasonReleaseHeld, about: always(heldRelease(&s.release))})
	}
	for _, conflict := range s.outcome.Conflicts {
		problems = append(problems, problem{reason: conflict.Reason, node: conflict.Node, about: always(conflict.Message)})
	}
	for _, group := range s.outcome.Groups {
		if group.Phase == fleet.PhaseFailed {
			problems = append(problems, problem{reason: cmp.Or(group.Reason, v1alpha1.ReasonPlatformFailed), about: always(group.Message)})
		}
	}
	slices.SortFunc(problems, func(a, b problem) int {
		return cmp.Or(cmp.Compare(rank(a.reason), rank(b.reason)),
			cmp.Compare(a.node, b.node), cmp.Compare(a.message(), b.message()))
	})
	return problems
}

// memberProblems are the problems of one node.
func memberProblems(m *fleet.Member) []problem {
	switch {
	case len(m.OtherProfiles) > 0:
		return []problem{{reason: v1alpha1.ReasonProfilesOverlap, node: m.Name(), about: overlap(m)}}
	case m.Planned != nil && m.Plan() == nil:
		return append([]problem{{reason: v1alpha1.ReasonPlanImpossible, node: m.Name(), about: impossibility(m)}}, failedChecks(m)...)
	default:
		return failedChecks(m)
	}
}

// heldRelease names the nodes that stay, and what lets them go.
func heldRelease(r *fleet.Release) string {
	return fmt.Sprintf("%d of the %d nodes that the profile governs are no longer selected (%s), and %d may leave at once: "+
		"none is released, all keep their plan; correct spec.nodeSelector or the labels of the nodes, or set "+
		"spec.rollout.maximumReleasedNodes to %d to let them go", len(r.Nodes), r.Governed, fleet.Names(r.Nodes), r.Limit, len(r.Nodes))
}

func overlap(m *fleet.Member) sentence {
	others := strings.Join(m.OtherProfiles, ", ")
	return func(node string) string {
		return fmt.Sprintf("node %s is selected by profile %s, too, and is left as it is: narrow spec.nodeSelector of one of them",
			node, others)
	}
}

func impossibility(m *fleet.Member) sentence {
	for _, finding := range m.Planned.Findings {
		if finding.Severity == v1alpha1.SeverityCritical {
			return finding.Sentence
		}
	}
	return func(node string) string { return "node " + node + " has no plan" }
}

// failedChecks reports a node that has the plan by which it is judged in force and yet contradicts it: nothing is under way
// that would change that.
func failedChecks(m *fleet.Member) []problem {
	if !m.IsSettled() {
		return nil
	}
	for _, kind := range []string{v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned} {
		if m.Status(kind) == metav1.ConditionFalse {
			condition := m.Current(kind)
			about := func(node string) string { return nodeMessage(node, condition) }
			return []problem{{reason: v1alpha1.ReasonChecksFailed, node: m.Name(), about: about}}
		}
	}
	return nil
}

// failedTests reports a node that has failed a test which the profile names.
func (s *summary) failedTests(m *fleet.Member) []problem {
	unmet := s.unqualified[m.Name()]
	if unmet.Reason != v1alpha1.ReasonQualificationFailed {
		return nil
	}
	about := func(node string) string { return nodeMessage(node, unmet) }
	return []problem{{reason: v1alpha1.ReasonQualificationFailed, node: m.Name(), about: about}}
}

// nodeMessage is what a condition says, with the name of the node.
func nodeMessage(node string, condition metav1.Condition) string {
	return "node " + node + ": " + condition.Message
}

// findings are those of all nodes, the most severe first. One that several nodes share is told once, for the
// first of them, with the number of the others.
func (s *summary) findings() []v1alpha1.ProfileFinding {
	var found findingGroups
	for i := range s.members {
		found.addMember(&s.members[i])
	}
	for _, p := range s.problems {
		if check := platformCheck(p.reason); check != "" {
			found.add(p.node, findingKey{check: check, severity: v1alpha1.SeverityCritical, text: p.about("")}, p.about)
		}
	}
	for _, test := range s.idleTests {
		about := func(string) string {
			return fmt.Sprintf("LatencyTest %s, which spec.verification.qualification names, selects none of the nodes of the profile, so that none needs it: correct its spec.nodes, or name another", test)
		}
		found.add("", findingKey{check: checkTests, severity: v1alpha1.SeverityMedium, text: about("")}, about)
	}
	findings := make([]v1alpha1.ProfileFinding, 0, len(found.all))
	for key, group := range found.all {
		findings = append(findings, v1alpha1.ProfileFinding{
			Node: group.first, Check: key.check, Severity: key.severity,
			Message: shorten.With(group.about(group.first), andMore(group.others), v1alpha1.MaxFindingMessageLength),
			Objects: group.objects,
		})
	}
	slices.SortFunc(findings, func(a, b v1alpha1.ProfileFinding) int {
		return cmp.Or(cmp.Compare(severityRank(a.Severity), severityRank(b.Severity)),
			cmp.Compare(a.Check, b.Check), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Message, b.Message))
	})
	return shorten.List(findings, v1alpha1.MaxProfileFindings)
}

// findingKey is equal for findings that read alike on all nodes that have them. Printing them for each of thousands of
// nodes would cost more than everything else.
type findingKey struct {
	check    string
	severity v1alpha1.Severity
	// planned is set for a finding of planning, text for others.
	planned plan.FindingKey
	text    string
}

// findingGroup are the nodes that share a finding. The objects are those of the first node.
type findingGroup struct {
	first   string
	others  int
	about   sentence
	objects *v1alpha1.FindingObjects
}

// findingGroups are findings with the nodes that have them. The zero value is empty.
type findingGroups struct{ all map[findingKey]*findingGroup }

// add counts one more node with a finding, and reports the group if the node is its first.
func (g *findingGroups) add(node string, key findingKey, about sentence) *findingGroup {
	if group := g.all[key]; group != nil {
		group.others++
		return nil
	}
	if g.all == nil {
		g.all = map[findingKey]*findingGroup{}
	}
	group := &findingGroup{first: node, about: about}
	g.all[key] = group
	return group
}

// addForeign adds what others have changed on the host. It is what the guard has found, whichever plan the node is judged by.
func (g *findingGroups) addForeign(m *fleet.Member) {
	if m.Report == nil || m.Report.Status.Enactment == nil {
		return
	}
	for _, difference := range m.Report.Status.Enactment.Differences {
		g.add(m.Name(), findingKey{check: checkForeign, severity: v1alpha1.SeverityHigh, text: difference}, always(difference))
	}
}

// addMember adds what cannot be met on the node, and what its kernel contradicts.
func (g *findingGroups) addMember(m *fleet.Member) {
	g.addForeign(m)
	if m.Planned == nil {
		return
	}
	for _, finding := range m.Planned.Findings {
		key := findingKey{check: finding.Rule, severity: finding.Severity, planned: finding.Key()}
		if group := g.add(m.Name(), key, finding.Sentence); group != nil {
			group.objects = finding.Objects.Status()
		}
	}
	if judged := m.Judged().Hash; judged == "" || m.Report.Status.VerifiedPlanHash != judged {
		return
	}
	for i := range m.Report.Status.Findings {
		if finding := &m.Report.Status.Findings[i]; finding.Outcome == v1alpha1.OutcomeFailed {
			key := findingKey{check: string(finding.Check), severity: finding.Severity, text: finding.Message}
			if group := g.add(m.Name(), key, always(finding.Message)); group != nil {
				group.objects = finding.Objects
			}
		}
	}
}

// platformCheck is the identifier under which a problem of this reason is listed among the findings; "" when
// the nodes' own findings say it.
func platformCheck(reason string) string {
	return map[string]string{
		v1alpha1.ReasonProfilesOverlap:            checkOverlap,
		v1alpha1.ReasonPerformanceProfileConflict: checkPeer,
		v1alpha1.ReasonRuntimeClassConflict:       checkRuntime,
		v1alpha1.ReasonMachineConfigPoolConflict:  checkPool,
		v1alpha1.ReasonObjectConflict:             checkObject,
		v1alpha1.ReasonPlatformFailed:             checkPlatform,
		v1alpha1.ReasonRenderingLate:              checkPlatform,
		v1alpha1.ReasonHostRefused:                checkHost,
		v1alpha1.ReasonEnactmentFailed:            checkEnactment,
		v1alpha1.ReasonEnactmentLate:              checkEnactment,
		v1alpha1.ReasonDrainBlocked:               checkDrain,
		v1alpha1.ReasonReleaseHeld:                checkRelease,
	}[reason]
}

// severityRank orders severities, the most severe first.
func severityRank(severity v1alpha1.Severity) int {
	return slices.Index([]v1alpha1.Severity{
		v1alpha1.SeverityCritical, v1alpha1.SeverityHigh, v1alpha1.SeverityMedium, v1alpha1.SeverityLow,
	}, severity)
}
