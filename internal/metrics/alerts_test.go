// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package metrics

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// alertRule is a rule of a PrometheusRule.
type alertRule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// readAlerts are the rules that are deployed.
func readAlerts(t *testing.T) []alertRule {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "prometheus", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Spec struct {
			Groups []struct {
				Rules []alertRule `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var rules []alertRule
	for _, group := range file.Spec.Groups {
		rules = append(rules, group.Rules...)
	}
	if len(rules) == 0 {
		t.Fatal("there are no alerts")
	}
	return rules
}

func TestAlerts(t *testing.T) {
	for _, rule := range readAlerts(t) {
		t.Run(rule.Alert, func(t *testing.T) {
			if _, err := time.ParseDuration(rule.For); err != nil {
				t.Errorf("for: %v", err)
			}
			if rule.Labels["severity"] != "warning" && rule.Labels["severity"] != "critical" {
				t.Errorf("the severity is %q", rule.Labels["severity"])
			}
			if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Error("summary or description is missing")
			}
			checkSelectors(t, rule)
			checkRunbook(t, rule)
		})
	}
}

// checkRunbook makes sure that the rule leads to its part of docs/alerts.md.
func checkRunbook(t *testing.T, rule alertRule) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "alerts.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(text), "\n## "+rule.Alert+"\n")
	part, _, _ = strings.Cut(part, "\n## ")
	if !found || !strings.Contains(part, "**Means:**") || !strings.Contains(part, "**Do:**") {
		t.Error("docs/alerts.md does not say what the alert means and what to do")
	}
	if !strings.HasSuffix(rule.Annotations["runbook_url"], "/docs/alerts.md#"+strings.ToLower(rule.Alert)) {
		t.Errorf("runbook_url is %q", rule.Annotations["runbook_url"])
	}
}

// checkSelectors makes sure that the rule asks for metrics, labels and values that exist, and that its texts use labels
// that all of its metrics have.
func checkSelectors(t *testing.T, rule alertRule) {
	t.Helper()
	selectors := regexp.MustCompile(`(lowlatency_\w+)(?:\{([^}]*)\})?`).FindAllStringSubmatch(rule.Expr, -1)
	if len(selectors) == 0 {
		t.Fatalf("%q asks for none of our metrics", rule.Expr)
	}
	summedUp := regexp.MustCompile(`without\((\w+)\)`).FindStringSubmatch(rule.Expr)
	for _, selector := range selectors {
		labels := labelsOf(t, selector[1])
		for _, matcher := range regexp.MustCompile(`(\w+)=~?"([^"]*)"`).FindAllStringSubmatch(selector[2], -1) {
			if !slices.Contains(labels, matcher[1]) {
				t.Errorf("%s has no label %s", selector[1], matcher[1])
			}
			for id := range strings.SplitSeq(matcher[2], "|") {
				if matcher[1] == "check" && !isCheck(id) {
					t.Errorf("there is no check %s", id)
				}
			}
		}
		for _, used := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(rule.Annotations["summary"]+rule.Annotations["description"], -1) {
			if !slices.Contains(labels, used[1]) || slices.Contains(summedUp, used[1]) {
				t.Errorf("the text uses label %s, which %s does not have", used[1], selector[1])
			}
		}
	}
}

func labelsOf(t *testing.T, metric string) []string {
	t.Helper()
	for _, d := range Descriptions() {
		if d.Name == metric {
			return d.Labels
		}
	}
	t.Errorf("there is no metric %s", metric)
	return nil
}

func isCheck(id string) bool {
	return slices.ContainsFunc(verify.Catalogue(), func(check verify.Check) bool { return string(check.ID) == id })
}
