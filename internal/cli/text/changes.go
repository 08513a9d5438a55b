// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// sameChanges are nodes with the same changes.
type sameChanges struct {
	names   []string
	changes []plan.Change
}

// differences draws the changes, once for nodes with the same ones.
func differences(nodes []NodePlan, against string, palette Palette, columns int) string {
	from := against
	if against == "running" {
		from = "what runs now"
	}
	var b strings.Builder
	for _, group := range groupChanges(nodes) {
		title := fmt.Sprintf("changes from %s to this plan on %s", from, strings.Join(group.names, ", "))
		b.WriteString("\n" + strings.Join(wrap(palette.Title(title), "  ", columns), "\n") + "\n")
		if len(group.changes) == 0 {
			b.WriteString("  none\n")
			continue
		}
		b.WriteString(changeTable(group.changes, palette, columns))
	}
	return b.String()
}

func groupChanges(nodes []NodePlan) []*sameChanges {
	var groups []*sameChanges
	for _, node := range nodes {
		if !node.isCompared() {
			continue
		}
		i := slices.IndexFunc(groups, func(g *sameChanges) bool { return slices.Equal(g.changes, node.View.Changes) })
		if i < 0 {
			groups, i = append(groups, &sameChanges{changes: node.View.Changes}), len(groups)
		}
		groups[i].names = append(groups[i].names, node.View.Node)
	}
	return groups
}

// changeTable draws changes below the reason why they need a reboot or not. Those whose present value
// is not known come last.
func changeTable(changes []plan.Change, palette Palette, columns int) string {
	var parts []section
	for _, unknown := range []bool{false, true} {
		for _, change := range changes {
			if isUnknown(change) != unknown {
				continue
			}
			title := reason(change, palette)
			i := slices.IndexFunc(parts, func(s section) bool { return s.title == title })
			if i < 0 {
				parts, i = append(parts, section{title: title}), len(parts)
			}
			parts[i].rows = append(parts[i].rows, []string{change.What, orDash(change.From), orDash(change.To)})
		}
	}
	return sections([]string{"CHANGE", "FROM", "TO"}, parts, palette, columns)
}

// isUnknown reports whether the present value could not be read.
func isUnknown(change plan.Change) bool { return change.From == "unknown" }

func reason(change plan.Change, palette Palette) string {
	switch {
	case isUnknown(change) && change.Reboot == v1alpha1.RebootNotRequired:
		return "the host does not report what it has now; no reboot"
	case isUnknown(change):
		return palette.Warn("the host does not report what it has now") + "; a change needs a reboot"
	case change.Reboot == v1alpha1.RebootRequired:
		return palette.Warn("reboot") + ": " + change.Why
	case change.Reboot == v1alpha1.RebootNotRequired:
		return palette.Good("no reboot") + ": " + change.Why
	default:
		return "reboot not known: " + change.Why
	}
}
