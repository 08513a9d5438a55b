// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build promtool

package alerts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/table"
	"sigs.k8s.io/yaml"

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

// readScrapes are the series of the demo, a value a minute: the first at the end of its first act. It returns how many acts there are.
func readScrapes(t *testing.T) (all []series, acts int) {
	t.Helper()
	folder := os.Getenv("DEMO_SCRAPES")
	if folder == "" {
		t.Fatal("DEMO_SCRAPES does not name the folder with the metrics of the demo: run make dashboard")
	}
	files, err := filepath.Glob(filepath.Join(folder, "act-*.prom"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the demo has written no metrics into %s: %v", folder, err)
	}
	values := map[string][]string{}
	for act := range files {
		text, err := os.ReadFile(filepath.Join(folder, fmt.Sprintf("act-%d.prom", act+1)))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if end := strings.LastIndexByte(line, ' '); end > 0 && line[0] != '#' {
				name := line[:end]
				values[name] = append(missing(values[name], act), line[end+1:])
			}
		}
	}
	for name, seen := range values {
		all = append(all, series{name, strings.Join(missing(seen, len(files)), " ")})
	}
	slices.SortFunc(all, func(a, b series) int { return strings.Compare(a.Series, b.Series) })
	return all, len(files)
}

// missing fills up the values of a series that was not there at some scrapes.
func missing(values []string, until int) []string {
	for len(values) < until {
		values = append(values, "stale")
	}
	return values
}

// notInDemo are the panels for which the demo has nothing, with the reason.
func notInDemo() map[string]string {
	return map[string]string{"Containers with NICs, by alignment": "none: no pod takes a NIC in the demo"}
}

// TestDashboard lets the engine of Prometheus answer every query of the dashboard from what the demo's operator exposes: each must
// find something at the end of one act at least, but for those of notInDemo.
func TestDashboard(t *testing.T) {
	all, acts := readScrapes(t)
	rows := table.NewWriter()
	rows.AppendHeader(table.Row{"panel", "query", fmt.Sprintf("data after acts, of %d", acts)})
	for _, one := range readPanels(t) {
		for _, target := range one.Targets {
			var found []string
			for act := range acts {
				if answers(t, all, target.Expr, act) {
					found = append(found, strconv.Itoa(act+1))
				}
			}
			why, expected := notInDemo()[one.Title]
			rows.AppendRow(table.Row{one.Title, target.Expr, strings.Join(found, " ") + why})
			if (len(found) == 0) != expected {
				t.Errorf("%s: the demo gives data for %s after acts %v", one.Title, target.Expr, found)
			}
		}
	}
	fmt.Printf("%d series\n%s\n", len(all), rows.Render())
}

// answers reports whether a query finds anything at the end of an act.
func answers(t *testing.T, all []series, query string, act int) bool {
	t.Helper()
	dir := t.TempDir()
	file, err := yaml.Marshal(map[string]any{"evaluation_interval": "1m", "tests": []any{map[string]any{
		"interval": "1m", "input_series": all,
		"promql_expr_test": []any{map[string]any{
			"expr": "count(" + query + ") > bool 0", "eval_time": fmt.Sprintf("%dm", act),
			"exp_samples": []any{map[string]any{"labels": "{}", "value": 1}},
		}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "tests.yaml"), file)
	command := exec.Command(os.Getenv("PROMTOOL"), "test", "rules", "tests.yaml")
	command.Dir = dir
	text, err := command.CombinedOutput()
	if err != nil && !strings.Contains(string(text), "exp:") {
		t.Fatalf("promtool: %v\n%s", err, text)
	}
	return err == nil
}
