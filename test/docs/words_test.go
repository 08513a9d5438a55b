// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package docs

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli"
	guard "github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/command"
)

// ourPrograms are the commands of our programs, in the order of ourNames, with all their flags: the documents are held against them.
func ourPrograms(t *testing.T) []*cobra.Command {
	t.Helper()
	all := []*cobra.Command{cli.Command(), guard.New(""), toldBy(t, "lowlatency-operator"), toldBy(t, "lowlatency-agent")}
	for _, root := range all {
		root.InitDefaultVersionFlag()
	}
	return all
}

// toldBy is what a program tells of its commands where shells complete its words, as its package cannot be imported. Its flags may have values
// and need none.
func toldBy(t *testing.T, name string) *cobra.Command {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, "./cmd/"+name)
	build.Dir, build.Env = repository, append(build.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", build, err, said)
	}
	var fill func(of *cobra.Command, words ...string)
	fill = func(of *cobra.Command, words ...string) {
		for _, flag := range completions(t, program, append(words, "--")) {
			of.Flags().String(strings.TrimPrefix(flag, "--"), "", "")
			of.Flags().Lookup(strings.TrimPrefix(flag, "--")).NoOptDefVal = " "
		}
		for _, word := range completions(t, program, append(words, "")) {
			below := &cobra.Command{Use: word, Run: func(*cobra.Command, []string) {}}
			of.AddCommand(below)
			fill(below, append(slices.Clone(words), word)...)
		}
	}
	root := &cobra.Command{Use: name}
	fill(root)
	return root
}

// completions are the words by which a program completes the last one, which is begun.
func completions(t *testing.T, program string, words []string) []string {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), program, append([]string{"__complete"}, words...)...).Output()
	if err != nil {
		t.Fatalf("%s completes %q: %v", program, words, err)
	}
	var found []string
	for line := range strings.Lines(string(said)) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if word != "" && !strings.HasPrefix(word, ":") && word != "help" && word != "completion" {
			found = append(found, word)
		}
	}
	return found
}

// complaint says what a command does not know of the words after it; "" for nothing. It may be the root of a program. What stands for words of
// the reader's own is passed over.
func complaint(of *cobra.Command, words []string) string {
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		case word == "--":
			// What follows is for another program.
			return ""
		case isBlank(word):
			if of.HasSubCommands() {
				return ""
			}
		case strings.HasPrefix(word, "-") && len(word) > 1:
			took, said := flagComplaint(of, word, words[i+1:])
			if said != "" {
				return said
			}
			i += took
		case of.HasSubCommands():
			below, said := commandBelow(of, word)
			if said != "" {
				return said
			}
			of = below
		}
	}
	return ""
}

// isBlank reports whether a word stands for words of the reader's own: NAME, <name>, [NAME], …, $name.
func isBlank(word string) bool {
	return strings.ContainsAny(word, "…$<[") || strings.Contains(word, "...") || regexp.MustCompile(`^[A-Z][A-Z=,_-]*$`).MatchString(word)
}

// commandBelow is the command that a word names, and the first of words such as apply|revert, which must all be there.
func commandBelow(of *cobra.Command, word string) (below *cobra.Command, said string) {
	for name := range strings.SplitSeq(word, "|") {
		at := slices.IndexFunc(of.Commands(), func(one *cobra.Command) bool { return one.Name() == name || one.HasAlias(name) })
		if at < 0 {
			return nil, fmt.Sprintf("%s has no command %q", of.CommandPath(), name)
		}
		if below == nil {
			below = of.Commands()[at]
		}
	}
	return below, ""
}

// flagComplaint says what is wrong with a flag, and how many of the words behind it are its value.
func flagComplaint(of *cobra.Command, word string, behind []string) (took int, said string) {
	name, value, hasValue := strings.Cut(word, "=")
	flag := flagOf(of, name)
	if flag == nil {
		return 0, fmt.Sprintf("%s has no flag %s", of.CommandPath(), name)
	}
	if !hasValue {
		// A flag may be named without its value at the end.
		if flag.NoOptDefVal != "" || len(behind) == 0 || strings.HasPrefix(behind[0], "-") {
			return 0, ""
		}
		took, value = 1, behind[0]
	}
	if isBlank(value) {
		return took, ""
	}
	for one := range strings.SplitSeq(value, "|") {
		if err := flag.Value.Set(one); err != nil {
			return took, fmt.Sprintf("%s %s %s: %v", of.CommandPath(), name, one, err)
		}
	}
	return took, ""
}

// flagOf is a flag of a command or of those above it, nil for none.
func flagOf(of *cobra.Command, name string) *pflag.Flag {
	of.InitDefaultHelpFlag()
	of.InheritedFlags() // It puts the flags of the commands above among those of the command.
	if long, isLong := strings.CutPrefix(name, "--"); isLong {
		return of.Flags().Lookup(long)
	}
	short := strings.TrimPrefix(name, "-")
	if len(short) != 1 {
		return nil
	}
	return of.Flags().ShorthandLookup(short)
}

// withBelow are a command and all below it.
func withBelow(of *cobra.Command) []*cobra.Command {
	all := append(make([]*cobra.Command, 0, 1), of)
	for _, below := range of.Commands() {
		all = append(all, withBelow(below)...)
	}
	return all
}

// expectComplaints shows what is complained about.
func expectComplaints(t *testing.T, ours []*cobra.Command) {
	t.Helper()
	for line, want := range map[string]string{
		"kubectl lowlatency plan --against main -f FILE -o json":      "",
		"kubectl lowlatency plan --against":                           "",
		"kubectl lowlatency plan --compare main":                      "kubectl lowlatency plan has no flag --compare",
		"kubectl lowlatency plan --compare":                           "kubectl lowlatency plan has no flag --compare",
		"kubectl lowlatency plan -x":                                  "kubectl lowlatency plan has no flag -x",
		"kubectl lowlatency plan -o jso":                              "must be one of text, json",
		"kubectl lowlatency plan -o=json":                             "",
		"kubectl lowlatency check --fail-on Impact|Worst -f …":        "must be one of Impact",
		"kubectl lowlatency check --root [NAME=]PATH --color=always":  "",
		"kubectl lowlatency check --color=allways":                    "must be one of auto",
		"kubectl lowlatency probe jitter --priority high":             "invalid syntax",
		"kubectl lowlatency plna":                                     `has no command "plna"`,
		"kubectl lowlatency test runn TEST":                           `has no command "runn"`,
		"kubectl-lowlatency host apply|status|revert":                 "",
		"kubectl-lowlatency host apply|statsu":                        `has no command "statsu"`,
		"make build && sudo bin/kubectl-lowlatency host apply --yess": "has no flag --yess",
		"cat a.yaml | kubectl lowlatency plan --exit-cod -f - > out":  "has no flag --exit-cod",
		"lowlatency-guard apply operations.yaml --yes":                "",
		"lowlatency-guard aply":                                       `has no command "aply"`,
		"lowlatency-operator install-guard --key-chain":               "",
		"lowlatency-operator manager --traffic-imag=x":                "has no flag --traffic-imag",
		"lowlatency-operator managers":                                `has no command "managers"`,
	} {
		said := make([]string, 0, 1)
		for _, one := range calls(line) {
			said = append(said, complaint(ours[slices.Index(ourNames(), one[0])], one[1:]))
		}
		if len(said) != 1 || (said[0] == "") != (want == "") || !strings.Contains(said[0], want) {
			t.Errorf("%s: %q, want %q", line, said, want)
		}
	}
}
