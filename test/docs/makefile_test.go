// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// makefile is what can be made, and what can be said about it.
type makefile struct {
	// rules are the texts of targets: what comes before them, and their recipes. variables are the texts of variables.
	rules, variables map[string]string
}

// newMakefile reads the Makefile.
func newMakefile(t *testing.T) *makefile {
	t.Helper()
	variable := regexp.MustCompile(`^(?:export )?([A-Za-z_]+) *[:?+]?=(.*)`)
	rule := regexp.MustCompile(`^([a-z0-9][a-z0-9 -]*):([^=].*)?$`)
	comment, goesOn := regexp.MustCompile(`(^| )#.*`), regexp.MustCompile("^(\t|if|else|endif)")
	m := &makefile{rules: map[string]string{}, variables: map[string]string{}}
	var names []string
	for line := range strings.Lines(strings.ReplaceAll(read(t, "Makefile"), "\\\n", " ")) {
		line = comment.ReplaceAllString(line, "")
		switch head := rule.FindStringSubmatch(strings.TrimSpace(line)); {
		case goesOn.MatchString(line):
		case head != nil:
			names = strings.Fields(head[1])
		default:
			names = nil
		}
		if set := variable.FindStringSubmatch(line); set != nil {
			m.variables[set[1]] += set[2]
		}
		for _, name := range names {
			m.rules[name] += line
		}
	}
	return m
}

// takes reports whether what is made for a target depends on a variable.
func (m *makefile) takes(target, variable string) bool {
	reached, next := map[string]bool{}, []string{m.rules[target]}
	words := regexp.MustCompile(`\$[({]([A-Za-z_]+)|[a-z0-9][a-z0-9-]*`)
	for len(next) > 0 {
		text := next[0]
		next = next[1:]
		// Of a recipe, other targets are named in the line that calls make.
		for line := range strings.Lines(text) {
			for _, word := range words.FindAllStringSubmatch(line, -1) {
				name, more := word[1], m.variables[word[1]]
				if name == "" && (!strings.HasPrefix(line, "\t") || strings.Contains(line, "$(MAKE)")) {
					name, more = word[0], m.rules[word[0]]
				}
				if name != "" && !reached[name] {
					reached[name], next = true, append(next, more)
				}
			}
		}
	}
	return reached[variable]
}

// complaint says what is wrong with the words after make; "" for nothing. What stands for words of the reader's own is passed over.
func (m *makefile) complaint(words []string) string {
	var targets, variables []string
	for _, word := range words {
		name, _, isVariable := strings.Cut(word, "=")
		switch {
		case isVariable:
			variables = append(variables, name)
		case !isBlank(word) && !strings.HasPrefix(word, "-"):
			targets = append(targets, word)
		}
	}
	for _, target := range targets {
		if _, found := m.rules[target]; !found {
			return "the Makefile has no target " + target
		}
	}
	for _, variable := range variables {
		if !slices.ContainsFunc(targets, func(target string) bool { return m.takes(target, variable) }) {
			return "nothing of " + strings.Join(targets, ", ") + " depends on " + variable
		}
	}
	return ""
}

// expect complains about what the Makefile does not have of a line of a shell, and returns how many calls of make it has.
func (m *makefile) expect(t *testing.T, where, line string) int {
	t.Helper()
	made := 0
	for _, words := range simpleCommands(line) {
		at := slices.Index(words, "make")
		if at < 0 || at == len(words)-1 {
			continue
		}
		made++
		if said := m.complaint(words[at+1:]); said != "" {
			t.Errorf("%s: %s: %s", where, line, said)
		}
	}
	return made
}

func TestMakefile(t *testing.T) {
	m := newMakefile(t)
	for line, want := range map[string]string{
		"demo PLATFORM=kubernetes ONESHOT=1": "",
		"demo PLATTFORM=kubernetes":          "nothing of demo depends on PLATTFORM",
		"demo NODES=5":                       "nothing of demo depends on NODES",
		"scale NODES=5 DOCUMENT=1":           "",
		"verify VULNDB=none":                 "",
		"verify test":                        "",
		"verify tset":                        "the Makefile has no target tset",
		"packages TARGETS=test":              "",
		"must-gather BASE_IMAGE=x IMG=y":     "",
		"test-release VERSION=1":             "nothing of test-release depends on VERSION",
		"manifests LOWLATENCY_CACHE=x":       "",
		"sign-image IMG=x RELEASE_KEY=y":     "",
		"test-must-gather …":                 "",
	} {
		if said := m.complaint(strings.Fields(line)); said != want {
			t.Errorf("make %s: %q, want %q", line, said, want)
		}
	}
}
