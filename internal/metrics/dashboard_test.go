// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package metrics

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/metrics/dashboard"
)

func readPanels(t *testing.T) []dashboard.Panel {
	t.Helper()
	panels, err := dashboard.Read("../..")
	if err != nil {
		t.Fatal(err)
	}
	return panels
}

// TestDashboard makes sure that every panel asks for metrics, labels and checks that exist, has a type that the console of OpenShift
// draws, and writes legends from labels that are left after its sums.
func TestDashboard(t *testing.T) {
	seen := map[int]bool{}
	for _, panel := range readPanels(t) {
		t.Run(panel.Title, func(t *testing.T) {
			if seen[panel.ID] || panel.Title == "" || len(panel.Targets) == 0 {
				t.Errorf("panel %d has no ID, title or query of its own", panel.ID)
			}
			seen[panel.ID] = true
			if !slices.Contains([]string{"graph", "singlestat", "table"}, panel.Type) {
				t.Errorf("the console does not draw panels of type %s", panel.Type)
			}
			for _, target := range panel.Targets {
				checkQuery(t, target.Expr, target.LegendFormat)
			}
		})
	}
}

// checkQuery looks at all selectors of a query, at what it groups by, and at its legend.
func checkQuery(t *testing.T, query, legend string) {
	t.Helper()
	selectors := regexp.MustCompile(`(lowlatency_\w+)(?:\{([^}]*)\})?`).FindAllStringSubmatch(query, -1)
	if len(selectors) == 0 {
		t.Errorf("%q asks for none of our metrics", query)
	}
	var grouped []string
	for _, by := range regexp.MustCompile(`by \(([^)]*)\)`).FindAllStringSubmatch(query, -1) {
		grouped = strings.Split(by[1], ", ")
	}
	for _, selector := range selectors {
		labels := labelsOf(t, selector[1])
		checkMatchers(t, selector[1], selector[2], labels)
		for _, label := range grouped {
			if !slices.Contains(labels, label) {
				t.Errorf("%q groups by %s, which %s does not have", query, label, selector[1])
			}
		}
	}
	for _, used := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(legend, -1) {
		if len(grouped) > 0 && !slices.Contains(grouped, used[1]) {
			t.Errorf("the legend uses %s, which %q sums up", used[1], query)
		}
	}
}

// checkMatchers looks at the labels that a selector of a metric asks for, and at the checks that it names.
func checkMatchers(t *testing.T, metric, matchers string, labels []string) {
	t.Helper()
	for _, matcher := range regexp.MustCompile(`(\w+)=~?"([^"]*)"`).FindAllStringSubmatch(matchers, -1) {
		if !slices.Contains(labels, matcher[1]) {
			t.Errorf("%s has no label %s", metric, matcher[1])
		}
		for id := range strings.SplitSeq(matcher[2], "|") {
			if matcher[1] == "check" && !isCheck(id) {
				t.Errorf("there is no check %s", id)
			}
		}
	}
}

// TestEveryMetricIsUsedOrKnownNotToBe keeps new metrics from being forgotten in alerts and dashboard.
func TestEveryMetricIsUsedOrKnownNotToBe(t *testing.T) {
	var queries strings.Builder
	for _, rule := range readAlerts(t) {
		queries.WriteString(rule.Expr + "\n")
	}
	for _, panel := range readPanels(t) {
		for _, target := range panel.Targets {
			queries.WriteString(target.Expr + "\n")
		}
	}
	// For questions of people: how old plans are, when something changed last, what a scrape says of one node or test, and the
	// longest of messages and the ratio of two sides.
	unused := []string{
		profileShapes, nodeChecks, planAge, nodeChange, agentBeat, testCondition, testCompleted, testLongest, testRatio,
	}
	for _, d := range Descriptions() {
		if got, want := regexp.MustCompile(d.Name+`\b`).MatchString(queries.String()), !slices.Contains(unused, d.Name); got != want {
			t.Errorf("%s is used: %t, wanted %t", d.Name, got, want)
		}
	}
}
