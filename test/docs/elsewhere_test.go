// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package docs

import (
	"regexp"
	"strings"
	"testing"
)

// elsewhereFile has the table of commands that are not run here, below elsewhereHeading.
const elsewhereFile, elsewhereHeading = "CONTRIBUTING.md", "## Commands of the documents"

// excuse is a row of that table.
type excuse struct {
	// row is as it stands there, command what it is about; matches is that command, in which "…" stands for any characters.
	row     string
	command string
	matches *regexp.Regexp
	// proof is what runs the command instead: a target, .ci/run or a test; "nobody" for none.
	proof string
}

// excuses are the rows of the table.
func excuses(t *testing.T) []excuse {
	t.Helper()
	_, section, found := strings.Cut(read(t, elsewhereFile), "\n"+elsewhereHeading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", elsewhereFile, elsewhereHeading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	const command, proof, why = 1, 2, 3
	var all []excuse
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.ReplaceAll(strings.TrimSpace(line), `\|`, "\x00"), "|")
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		if len(cells) <= why || strings.TrimSpace(cells[why]) == "" {
			t.Errorf("%s: the row says no reason: %s", elsewhereFile, line)
			continue
		}
		pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.Trim(strings.TrimSpace(cells[command]), "`")), "…", ".*")
		all = append(all, excuse{
			row:     strings.TrimSpace(line),
			command: strings.Trim(strings.TrimSpace(cells[command]), "`"),
			matches: regexp.MustCompile(`(?s)^` + strings.ReplaceAll(pattern, "\x00", `\|`) + `\s*(#.*)?$`),
			proof:   strings.Trim(strings.TrimSpace(cells[proof]), "`"),
		})
	}
	return all
}

// excuseOf is the place of the first row for a command; -1 for none.
func excuseOf(all []excuse, c *command) int {
	for i := range all {
		if all[i].matches.MatchString(c.text) {
			return i
		}
	}
	return -1
}

// TestExcuses keeps the table of commands that are not run here true: no rule runs what has a row, each row has a command in some
// document, and what is said to run the command exists and is itself run: before a change lands, or by make acceptance.
func TestExcuses(t *testing.T) {
	all, used, run := excuses(t), map[int]bool{}, 0
	for _, c := range allCommands(t) {
		place := excuseOf(all, &c)
		r, _ := ruleOf(&c)
		if excused := place >= 0; excused != (r.need == elsewhere) {
			t.Errorf("%s:%d: %s: has a row in %s: %v; has the need elsewhere: %v", c.file, c.line, c.text, elsewhereFile, excused, r.need == elsewhere)
		}
		if used[place] = true; place < 0 {
			run++
		}
	}
	nobody := 0
	for i, one := range all {
		if !used[i] {
			t.Errorf("%s: no document has the command: take the row away\n%s", elsewhereFile, one.row)
		}
		if complaint := one.proofComplaint(t); complaint != "" {
			t.Errorf("%s: %s\n%s", elsewhereFile, complaint, one.row)
		}
		if one.proof == "nobody" {
			nobody++
		}
	}
	t.Logf("%d of %d commands are run; %d rows name what runs others, and %d what nobody runs", run, len(allCommands(t)), len(all)-nobody, nobody)
}

// proofComplaint says what is wrong with what is said to run the command; "" for nothing.
func (e *excuse) proofComplaint(t *testing.T) string {
	t.Helper()
	target, isTarget := strings.CutPrefix(e.proof, "make ")
	switch {
	case e.proof == "nobody":
		return ""
	case e.proof == ".ci/run":
		made := regexp.MustCompile(`\bmake ([a-z-]+)`).FindStringSubmatch(e.command)
		if made == nil || !regexp.MustCompile(`(?m)^step .* make `+made[1]+`( |$)`).MatchString(read(t, ".ci/run")) {
			return ".ci/run has no step that runs it"
		}
	case isTarget:
		if !strings.Contains(read(t, "hack/acceptance.sh"), "\n"+target+" ") && !strings.Contains(read(t, ".ci/run"), " make "+target) {
			return "neither hack/acceptance.sh nor .ci/run has the target " + target
		}
	case !strings.Contains(testSources(t), "func "+e.proof+"("):
		return "there is no test " + e.proof
	}
	return ""
}

// TestComplaintsAboutProofs complains about rows that .ci/run, acceptance and the tests do not keep.
func TestComplaintsAboutProofs(t *testing.T) {
	for _, tc := range []struct {
		command, proof string
		holds          bool
	}{
		{"make test", ".ci/run", true}, {"sudo … make lab-short", ".ci/run", true}, {"make verify", ".ci/run", true},
		{"make mistakes", ".ci/run", false}, {"make lab", ".ci/run", false}, {"make tes", ".ci/run", false}, {"kubectl lowlatency host apply …", ".ci/run", false},
		{"make scale", "make scale", true}, {"make scale", "make scales", false},
		{"base64 -d SHA256SUMS.sig …", "TestSignatures", true}, {"base64 -d SHA256SUMS.sig …", "TestSignaturesOfNobody", false},
	} {
		one := excuse{command: tc.command, proof: tc.proof}
		if complaint := one.proofComplaint(t); (complaint == "") != tc.holds {
			t.Errorf("%s by %s: %q", tc.command, tc.proof, complaint)
		}
	}
}
