// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/layout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

const (
	// mostChanges of a group of nodes are listed, and mostLetters of a value: a comment on a pull request holds 65,536.
	mostChanges, mostLetters = 40, 160
)

// Markdown draws what changes on nodes as a comment on a pull request: first what reboots and what may move nodes, then each distinct set of
// changes.
func Markdown(nodes []NodePlan, profile, against string, selection []plan.Change) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### Plan of profile %s against %s\n\n%s\n\n", code(profile), code(against), consequences(nodes))
	for _, change := range selection {
		fmt.Fprintf(&b, "**Nodes may join or leave and reboot**: %s from %s to %s; %s.\n\n", cell(change.What), value(change.From), value(change.To), cell(change.Why))
	}
	b.WriteString("| Node | Plan | Reboot | Changes |\n|---|---|---|---|\n")
	for _, node := range nodes {
		hash := "none"
		if node.Returned {
			hash = "given back"
		}
		if node.View.PlanHash != nil {
			hash = code(*node.View.PlanHash)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d |\n", cell(node.View.Node), hash, rebootWord(node), len(node.View.Changes))
	}
	for _, group := range groupChanges(nodes) {
		b.WriteString(markdownChanges(group))
	}
	b.WriteString(markdownFindings(nodes))
	return b.String()
}

// consequences says in one line what happens to how many nodes.
func consequences(nodes []NodePlan) string {
	numbers := map[string]int{}
	for _, node := range nodes {
		switch {
		case !node.isCompared():
			numbers["none"]++
		case len(node.View.Changes) == 0:
			numbers["same"]++
		default:
			numbers[string(node.View.Reboot)]++
		}
	}
	var parts []string
	for _, part := range []struct{ key, one, more string }{
		{"none", "**1 node has no plan**", "**%d nodes have no plan**"},
		{string(v1alpha1.RebootRequired), "**1 node reboots**", "**%d nodes reboot**"},
		{string(v1alpha1.RebootUnknown), "of 1 node it is not known whether it reboots", "of %d nodes it is not known whether they reboot"},
		{string(v1alpha1.RebootNotRequired), "1 node changes without a reboot", "%d nodes change without a reboot"},
		{"same", "1 node stays as it is", "%d nodes stay as they are"},
	} {
		switch n := numbers[part.key]; n {
		case 0:
		case 1:
			parts = append(parts, part.one)
		default:
			parts = append(parts, fmt.Sprintf(part.more, n))
		}
	}
	return strings.Join(parts, ", ") + "."
}

func rebootWord(node NodePlan) string {
	switch {
	case !node.isCompared():
		return "no plan"
	case len(node.View.Changes) == 0:
		return "no change"
	case node.View.Reboot == v1alpha1.RebootRequired:
		return "**Required**"
	default:
		return string(node.View.Reboot)
	}
}

// markdownChanges are the changes of some nodes, folded.
func markdownChanges(group *sameChanges) string {
	if len(group.changes) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n<details><summary>%s: %s</summary>\n\n| Change | From | To | Reboot |\n|---|---|---|---|\n",
		cell(strings.Join(group.names, ", ")), layout.Plural(len(group.changes), "change"))
	// What needs a reboot stands first.
	changes := slices.Clone(group.changes)
	slices.SortStableFunc(changes, func(a, b plan.Change) int { return rank(a) - rank(b) })
	for _, change := range changes[:min(len(changes), mostChanges)] {
		fmt.Fprintf(&b, "| %s | %s | %s | %s: %s |\n", cell(change.What), value(change.From), value(change.To), change.Reboot, cell(change.Why))
	}
	if left := len(changes) - mostChanges; left > 0 {
		fmt.Fprintf(&b, "\n… and %s.\n", layout.Plural(left, "more change"))
	}
	return b.String() + "\n</details>\n"
}

func rank(change plan.Change) int {
	return slices.Index([]v1alpha1.RebootRequirement{v1alpha1.RebootRequired, v1alpha1.RebootUnknown, v1alpha1.RebootNotRequired}, change.Reboot)
}

// markdownFindings are what cannot be met or is doubtful, each once for all its nodes.
func markdownFindings(nodes []NodePlan) string {
	var order []string
	names := map[string][]string{}
	for _, node := range nodes {
		for _, finding := range node.View.Findings {
			line := fmt.Sprintf("**%s** %s: %s %s", finding.Severity, code(finding.Field), cell(finding.Message), cell(finding.Remedy))
			if names[line] == nil {
				order = append(order, line)
			}
			names[line] = append(names[line], node.View.Node)
		}
	}
	if len(order) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n#### Findings\n\n")
	for _, line := range order {
		fmt.Fprintf(&b, "- %s (%s)\n", line, cell(strings.Join(names[line], ", ")))
	}
	return b.String()
}

// cell is a text that stays in its cell and means itself.
func cell(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`, "@", "@\u200b").Replace(text)
}

// code is a text in the letters of code.
func code(text string) string {
	text = strings.NewReplacer("`", "'", "|", `\|`).Replace(strings.Join(strings.Fields(text), " "))
	return "`" + text + "`"
}

func value(text string) string {
	if text == "" {
		return "–"
	}
	if letters := []rune(text); len(letters) > mostLetters {
		text = string(letters[:mostLetters]) + "…"
	}
	return code(text)
}
