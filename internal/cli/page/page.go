// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package page writes one HTML page about a node: the picture, what each NUMA node offers, findings with remedies,
// conditions, NICs of pools with their users, jitter. The page loads nothing and runs no script. It is pure.
package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/layout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/picture"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

//go:embed page.html.tmpl
var source string

// content is what the template is filled with.
type content struct {
	Node     *view.Node
	Headline []string
	// Machine and Plot are complete SVG documents, which escape what they are made of themselves.
	Machine, Plot  template.HTML
	Failed, Others []explained
	Written        metav1.Time
	// Misfit tells that the profile does not fit the host, so that there is no plan.
	Misfit bool
}

// explained is a finding with what the catalogue says about its check.
type explained struct {
	view.NodeFinding
	Title, Why string
}

// HTML writes the page. The time is that of writing.
func HTML(v *view.Node, written time.Time) (string, error) {
	parsed, err := template.New("page").Funcs(functions()).Parse(source)
	if err != nil {
		return "", fmt.Errorf("reading the template of the page: %w", err)
	}
	filled := content{Node: v, Machine: template.HTML(picture.Machine(v)), Written: metav1.NewTime(written), Misfit: v.IsMisfit()}
	for _, parts := range layout.Headline(v.Topology()) {
		filled.Headline = append(filled.Headline, strings.Join(parts, layout.Separator))
	}
	if v.Jitter != nil {
		filled.Plot = template.HTML(jitter.Plot(v.Jitter))
	}
	filled.Failed, filled.Others = explain(v.Findings)
	var b strings.Builder
	if err := parsed.Execute(&b, filled); err != nil {
		return "", fmt.Errorf("writing the page: %w", err)
	}
	return b.String(), nil
}

// Hardware writes the page of a machine of which nothing is asked: its drawing, which shrinks with the window until it could not be read, and then moves sideways.
func Hardware(v *view.Node) string {
	return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>` + template.HTMLEscapeString(v.Node) + `: hardware</title>
<style>body{margin:0 auto;max-width:1290px}svg{max-width:100%;height:auto}@media (max-width:820px){.drawing{overflow-x:auto}svg{max-width:none}}</style>
</head>
<body>
<section class="drawing" aria-label="machine" tabindex="0">
` + picture.SVG(v) + `</section>
</body>
</html>
`
}

// explain splits findings into failed and other ones.
func explain(findings []view.NodeFinding) (failed, others []explained) {
	checks := map[v1alpha1.CheckID]verify.Check{}
	for _, check := range verify.Catalogue() {
		checks[check.ID] = check
	}
	for _, finding := range findings {
		check := checks[finding.Check]
		found := explained{finding, check.Title, check.Why}
		if finding.Outcome == v1alpha1.OutcomeFailed {
			failed = append(failed, found)
		} else {
			others = append(others, found)
		}
	}
	return failed, others
}

// list is a text whose lists break after commas, and nowhere else.
func list(text any) template.HTML {
	escaped := strings.ReplaceAll(template.HTMLEscapeString(fmt.Sprint(text)), ",", ",<wbr>")
	// Some browsers know no place to break "0-3,8-11", others one after each dash.
	return template.HTML(regexp.MustCompile(`\d+-\d+`).ReplaceAllString(escaped, `<span class="nw">$0</span>`))
}

// functions are what the template calls.
func functions() template.FuncMap {
	const form = "2006-01-02 15:04:05 UTC"
	return template.FuncMap{
		"instant":   func(t *time.Time) string { return t.UTC().Format(form) },
		"stamp":     func(t metav1.Time) string { return t.UTC().Format(form) },
		"kibibytes": func(size int64) string { return layout.Bytes(size * 1024) },
		"list":      list,
		"missing":   func(s view.HugepageState) bool { return s.Shares(100).Missing > 0 },
		"deref":     func(number *int) int { return *number },
		"unused": func(nic view.PoolNIC) string {
			if nic.Users == nil {
				return "?"
			}
			return "-"
		},
		"text": func(text *string) string {
			if text == nil {
				return "-"
			}
			return *text
		},
		"health": func(health v1alpha1.NICHealth) string {
			switch health {
			case v1alpha1.NICHealthy:
				return "good"
			case v1alpha1.NICUnhealthy:
				return "bad"
			default:
				return "warn"
			}
		},
	}
}
