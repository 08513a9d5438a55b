// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// documentedStates are the states of machines whose outcomes documents count, in words.
func documentedStates() map[string]string {
	return map[string]string{
		untunedState: "untuned", "as-planned": "as planned", "booted-with-the-arguments": "kernel arguments as planned, nothing else",
	}
}

// cellsOf are the conditions of a golden file and how many checks have which outcome, as cells of a table.
func cellsOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	conditions, checks, _ := strings.Cut(string(text), "\n")
	var cells []string
	for _, condition := range regexp.MustCompile(`\w+ (True|False|Unknown)`).FindAllStringSubmatch(conditions, -1) {
		cells = append(cells, condition[1])
	}
	outcomes := map[string]int{}
	for _, line := range regexp.MustCompile(`(?m)^\S+ (\w+)`).FindAllStringSubmatch(checks, -1) {
		outcomes[line[1]]++
	}
	var counts []string
	for _, outcome := range []string{"Failed", "Passed", "Unknown", "Waived"} {
		if number := outcomes[outcome]; number > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", number, strings.ToLower(outcome)))
		}
	}
	return strings.Join(append(cells, strings.Join(counts, ", ")), " | ") + " |"
}

// TestDocumentsCountTheGoldens holds the tables of README.md and docs/lab.md against what the checks say about the recorded snapshots, which
// TestRecordedKernels holds against the checks. Each table has as many rows as it should.
func TestDocumentsCountTheGoldens(t *testing.T) {
	want := map[string][]string{"README.md": {
		"| as installed | " + cellsOf(t, filepath.Join(truthFolder, "four-nodes", untunedState+".golden")),
		"| as planned, after one reboot | " + cellsOf(t, filepath.Join(truthFolder, "four-nodes", "as-planned.golden")),
	}}
	for state, words := range documentedStates() {
		files, err := filepath.Glob(filepath.Join(truthFolder, "*", state+".golden"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no machine is in the state %s: %v", state, err)
		}
		for _, file := range files {
			machine := filepath.Base(filepath.Dir(file))
			want["docs/lab.md"] = append(want["docs/lab.md"], "| `"+machine+"` | "+words+" | "+cellsOf(t, file))
		}
	}
	for document, rows := range want {
		text, err := os.ReadFile(filepath.Join("../..", document))
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if !strings.Contains(string(text), "\n"+row+"\n") {
				t.Errorf("%s does not have the row\n%s", document, row)
			}
		}
		if shown := regexp.MustCompile(`(?m)^\|.*\d passed.*\|$`).FindAllString(string(text), -1); len(shown) != len(rows) {
			t.Errorf("%s counts outcomes in %d rows, want %d:\n%s", document, len(shown), len(rows), strings.Join(shown, "\n"))
		}
	}
}
