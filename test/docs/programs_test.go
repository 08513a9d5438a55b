// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package docs

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// everywhere are the programs that commands of documents may call without a row in hack/packages.sh: builtins of bash, programs of Debian's
// essential packages, what the README asks for, and what this test brings itself, curl for pipelines among them.
func everywhere() []string {
	return []string{
		"[", "case", "cat", "cd", "command", "done", "echo", "esac", "exit", "export", "fi", "install", "mkdir", "printf", "read", "set", "test", "tee", "true",
		"go", "make",
		"curl", "gh", "helm", "kubectl", "kubectl-lowlatency",
	}
}

// What is no call in a script of bash: comments, text in quotes, lists, redirections, and the end of a line that goes on.
var noCalls = regexp.MustCompile(`\\\n|'[^']*'|"[^"$]*"|\w+\+?=\([^)]*\)|\d*>&\d|(?m:(^|\s)#.*$)`)

// What stands before a call, or instead of one.
var noProgram = regexp.MustCompile(`^([A-Za-z_]+\+?=.*|if|then|else|do|while|!|time|for)$`)

// programsOf are the programs that a script of bash calls, each once, in the order of the alphabet.
func programsOf(script string) []string {
	script = noCalls.ReplaceAllString(script, " ")
	// What $( ) calls comes after the rest of its line.
	inner := regexp.MustCompile(`\$\(([^()]*)\)`)
	for call := inner.FindStringSubmatch(script); call != nil; call = inner.FindStringSubmatch(script) {
		script = strings.Replace(script, call[0], " ", 1) + "\n" + call[1]
	}
	var names []string
	for part := range strings.FieldsFuncSeq(script, func(r rune) bool { return strings.ContainsRune("\n|&;()", r) }) {
		words := strings.Fields(part)
		for len(words) > 0 && noProgram.MatchString(words[0]) {
			if words[0] == "for" {
				words = words[:1]
			}
			words = words[1:]
		}
		if len(words) > 0 {
			names = append(names, words[0])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestProgramsOf(t *testing.T) {
	for script, want := range map[string][]string{
		"kubectl lowlatency plan -f a.yaml -o json |\n  jq -r '.[] | select(.a)'": {"jq", "kubectl"},
		"A=1 make traffic && export PATH=$PWD/bin:$PATH # jq; comment":            {"export", "make"},
		"plan $(printf -- '--root %s ' *.gz) \\\n  -o json > out 2>&1":            {"plan", "printf"},
		"a=(); for b in c d; do a+=(--root \"$b\"); done; A=$(jq . f) make x":     {"done", "jq", "make"},
		"if ! grep -q \"a; b\" file; then exit 1; fi":                             {"exit", "fi", "grep"},
		"# nothing":    nil,
		"code=0\ntrue": {"true"},
	} {
		if diff := cmp.Diff(want, programsOf(script)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", script, diff)
		}
	}
}

// TestCommandsUseKnownPrograms wants each program that a command of the documents calls to be in the row of the target that runs the
// command: make test, or make docs-test. What a pipeline calls is run by make test, too.
func TestCommandsUseKnownPrograms(t *testing.T) {
	for _, c := range allCommands(t) {
		switch r, _ := ruleOf(&c); r.need {
		case elsewhere:
		case alone:
			wantPrograms(t, c.file, (&world{}).textOf(&c), "test")
		default:
			wantPrograms(t, c.file, (&world{}).textOf(&c), "docs-test")
		}
	}
	var w workflow
	pipeline(t, "name: low latency plan", &w)
	for _, step := range w.Jobs["plan"].Steps {
		wantPrograms(t, pipelinesFile, step.Run, "test")
	}
	jobs := map[string]gitLabJob{}
	pipeline(t, "low latency plan:", &jobs)
	wantPrograms(t, pipelinesFile, strings.Join(jobs["low latency plan"].Script, "\n"), "test")
}

func wantPrograms(t *testing.T, file, script, target string) {
	t.Helper()
	all := programs(t)
	for _, name := range programsOf(script) {
		isOfTarget := func(one program) bool { return one.name == name && one.targets[target] }
		if !slices.Contains(everywhere(), name) && !slices.ContainsFunc(all, isOfTarget) {
			t.Errorf("%s calls %s, but hack/packages.sh does not look for it before make %s:\n%s", file, name, target, script)
		}
	}
}

// TestEveryTargetsProgramsAreInstalledFirst: .ci/run installs the programs of each target that it makes.
func TestEveryTargetsProgramsAreInstalledFirst(t *testing.T) {
	script := read(t, ".ci/run")
	line := regexp.MustCompile(`(?m)^step "[^"]+" hack/packages\.sh install (.+)$`).FindStringSubmatch(script)
	if line == nil {
		t.Fatal(".ci/run does not install programs")
	}
	installed := strings.Fields(line[1])
	for _, step := range regexp.MustCompile(`(?m)^step "[^"]+" make ([a-z-]+)`).FindAllStringSubmatch(script, -1) {
		for _, one := range programs(t) {
			if one.targets[step[1]] && !slices.Contains(installed, step[1]) {
				t.Errorf(".ci/run makes %s, which needs %s, and does not install its programs", step[1], one.name)
			}
		}
	}
}

// TestPackagesOfTargets: for some targets, no package of another one is installed; a target that is not there is an error.
func TestPackagesOfTargets(t *testing.T) {
	for name, c := range map[string]struct {
		arguments []string
		code      int
		want      []string
	}{
		"one target":        {[]string{"install", "test-hwloc"}, 1, []string{"hwloc-nox"}},
		"two targets":       {[]string{"install", "example-hosts", "test-hwloc"}, 1, []string{"curl", "hwloc-nox"}},
		"no such target":    {[]string{"install", "test-hwlok"}, 2, []string{"no target test-hwlok"}},
		"needs no programs": {[]string{"install", "faults"}, 0, []string{"every program is here"}},
	} {
		t.Run(name, func(t *testing.T) {
			// In a PATH of its own with what the script itself calls, nothing else is here.
			command := exec.CommandContext(t.Context(), "bash", "-c", `tools=$1; shift
for program in bash cat awk tr sort grep dirname; do ln -s "$(command -v "$program")" "$tools/"; done
PATH=$tools exec bash hack/packages.sh "$@"`, "bash", t.TempDir())
			command.Args = append(command.Args, c.arguments...)
			command.Dir = repository
			out, _ := command.CombinedOutput()
			if code := command.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d\n%s", code, c.code, out)
			}
			for _, want := range c.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("it does not say %q:\n%s", want, out)
				}
			}
			if strings.Contains(string(out), "qemu") {
				t.Errorf("packages of other targets are among them:\n%s", out)
			}
		})
	}
}
