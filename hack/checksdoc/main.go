// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command checksdoc prints docs/checks.md, the manual of the checks, from the catalogue that the agent
// runs:
//
//	go run ./hack/checksdoc > docs/checks.md
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

const introduction = `# Checks

<!-- Printed by hack/checksdoc from internal/verify. Edit the catalogue, not this file. -->

The agent on each node asks the running kernel whether the plan is in force. Each check has one of three
outcomes: **Passed** when the kernel satisfies it, **Failed** when the kernel contradicts it, **Unknown** when
the host does not give the facts. A missing file is never a pass. Checks that the plan does not ask for are
left out of the counts. A check listed in ` + "`spec.verification.waivedChecks`" + ` is **Waived** when it does not pass.

A condition of LowLatencyNode is False when one of its *critical* checks failed, else Unknown when one of them is
unknown, else True. Checks of lower severity are findings and decide nothing. Checks marked *window* compare
the counters of two readings; they are left out where a host is read once only, as by the command line.
`

func main() {
	if err := printDocument(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "checksdoc:", err)
		os.Exit(1)
	}
}

// printDocument writes the whole document.
func printDocument(w io.Writer) error {
	var b strings.Builder
	b.WriteString(introduction)
	printSummary(&b)
	for _, check := range verify.Catalogue() {
		printCheck(&b, check)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the document: %w", err)
	}
	return nil
}

func printSummary(b *strings.Builder) {
	b.WriteString("\n| Check | Severity | Conditions | It passes when |\n|---|---|---|---|\n")
	for _, check := range verify.Catalogue() {
		fmt.Fprintf(b, "| [%s](#%s) | %s | %s | %s |\n", check.ID, anchor(string(check.ID)), severity(check), conditions(check), check.Title)
	}
}

// anchor is the fragment that renderers of Markdown make of a heading: dots are dropped.
func anchor(heading string) string { return strings.ReplaceAll(heading, ".", "") }

func severity(check verify.Check) string {
	if check.Window {
		return string(check.Severity) + ", window"
	}
	return string(check.Severity)
}

func conditions(check verify.Check) string { return strings.Join(check.Conditions, ", ") }

func printCheck(b *strings.Builder, check verify.Check) {
	fmt.Fprintf(b, "\n## %s\n\n%s.\n\n", check.ID, check.Title)
	rows := [][2]string{
		{"Severity", severity(check)},
		{"Conditions", conditions(check)},
		{"Applies when", check.Applies},
		{"What it costs", check.Why},
		{"Reads", code(check.Reads)},
		{"Way out", check.Fix},
		{"Reboot", reboot(check.Reboot)},
		{"Source", check.Source},
	}
	rows = slices.DeleteFunc(rows, func(row [2]string) bool { return row[1] == "" })
	for _, row := range rows {
		fmt.Fprintf(b, "- **%s:** %s\n", row[0], row[1])
	}
}

func code(texts []string) string {
	quoted := make([]string, 0, len(texts))
	for _, text := range texts {
		quoted = append(quoted, "`"+text+"`")
	}
	return strings.Join(quoted, ", ")
}

func reboot(requirement v1alpha1.RebootRequirement) string {
	switch requirement {
	case v1alpha1.RebootRequired:
		return "the way out takes effect after a reboot"
	case v1alpha1.RebootNotRequired:
		return "not needed"
	default:
		return "not known"
	}
}
