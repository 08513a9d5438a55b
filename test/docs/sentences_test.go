// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package docs

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// code is what a sentence shows as such.
type code struct{ file, text string }

// codeInSentences is that of all documents outside of blocks.
func codeInSentences(t *testing.T) []code {
	t.Helper()
	spans := regexp.MustCompile("`([^`\n]+)`")
	var all []code
	for _, file := range documents(t) {
		for _, match := range spans.FindAllStringSubmatch(withoutBlocks(t, file), -1) {
			all = append(all, code{file, match[1]})
		}
	}
	return all
}

// TestWords holds the words of commands that documents name against what they call, whether the commands are run or not: our programs know commands,
// flags and values of flags, and the Makefile targets and their variables.
func TestWords(t *testing.T) {
	ours, targets := ourPrograms(t), newMakefile(t)
	t.Run("complaints", func(t *testing.T) { expectComplaints(t, ours) })
	t.Run("commands in sentences", func(t *testing.T) {
		seen := 0
		for _, one := range codeInSentences(t) {
			seen += expectCalls(t, ours, one.file, one.text) + targets.expect(t, one.file, one.text)
		}
		const few = 300
		if seen < few {
			t.Errorf("looked at %d commands only", seen)
		}
	})
	t.Run("commands of blocks", func(t *testing.T) {
		seen := 0
		for _, c := range allCommands(t) {
			where := c.file + ":" + strconv.Itoa(c.line)
			seen += expectCalls(t, ours, where, c.text) + targets.expect(t, where, c.text)
		}
		const few = 150
		if seen < few {
			t.Errorf("looked at %d commands only", seen)
		}
	})
	t.Run("flags in sentences", func(t *testing.T) { expectFlags(t, ours) })
}

// expectCalls complains about what our programs do not know of a line of a shell, and returns how many calls it has.
func expectCalls(t *testing.T, ours []*cobra.Command, where, line string) int {
	t.Helper()
	all := calls(line)
	for _, words := range all {
		if said := complaint(ours[slices.Index(ourNames(), words[0])], words[1:]); said != "" {
			t.Errorf("%s: %s: %s", where, line, said)
		}
	}
	return len(all)
}

// flagsOfOthers are flags that sentences name without the program that has them, which is none of ours, and that program.
func flagsOfOthers() map[string]string {
	return map[string]string{
		"-v": "testpmd", "--blocking-pod-selector": "kured", "--build-arg": "podman", "--cascade": "kubectl delete", "--config": "the kubelet", "--config-dir": "the kubelet",
		"--force": "kubectl delete", "--hdrh": "TRex", "--kube-reserved": "the kubelet", "--no-reload": "systemctl", "--node-labels": "the kubelet", "--raw": "sfnt-pingpong", "--register-with-taints": "the kubelet", "--root-dir": "the kubelet",
		"--rtt": "sfnt-pingpong", "--set": "helm", "--spin": "sfnt-pingpong", "--startup-taint": "the cluster autoscaler",
		"--unrestricted": "GRUB", "--vdev": "DPDK", "-w": "zftcppingpong",
	}
}

// expectFlags wants a flag that a sentence names alone, such as --against main, or behind the name of a command, such as plan --against main, to be one
// of some command of ours, which takes the value that stands beside it.
func expectFlags(t *testing.T, ours []*cobra.Command) {
	t.Helper()
	others, seen, used := flagsOfOthers(), 0, map[string]bool{}
	for _, one := range codeInSentences(t) {
		words := flagWords(one.text)
		// That page is made of the flags.
		if words == nil || one.file == "docs/cli-reference.md" {
			continue
		}
		name, _, _ := strings.Cut(words[0], "=")
		if _, isOthers := others[name]; isOthers {
			used[name] = true
			continue
		}
		known, said := knownToSome(ours, words)
		if seen++; !known {
			t.Errorf("%s: `%s` is of no command of ours: %s", one.file, one.text, said)
		}
	}
	for name, program := range others {
		if !used[name] {
			t.Errorf("no sentence names %s of %s: take it away", name, program)
		}
	}
	const few = 200
	if seen < few {
		t.Errorf("looked at %d flags only", seen)
	}
}

// flagWords are the words of code that begins with a flag, or with a word that may be a command's and is followed by a flag; else nil.
func flagWords(text string) []string {
	all := simpleCommands(text)
	if len(all) != 1 {
		return nil
	}
	words := all[0]
	if regexp.MustCompile(`^(--[a-z]|-[a-z]$)`).MatchString(words[0]) {
		return words
	}
	isFlag := func(word string) bool { return strings.HasPrefix(word, "--") }
	if !slices.ContainsFunc(words[1:], isFlag) {
		return nil
	}
	return words
}

// knownToSome reports whether some command has the flags of words; of those whose name is the first word where that is no flag.
func knownToSome(ours []*cobra.Command, words []string) (known bool, said string) {
	named := !strings.HasPrefix(words[0], "-")
	for _, root := range ours {
		// What one command has to say about a value tells more than that another one has no such flag, or takes any value.
		if said != "" && !strings.Contains(said, "has no flag") {
			return false, said
		}
		for _, one := range withBelow(root) {
			of := words
			if named {
				if one.Name() != words[0] {
					continue
				}
				of = words[1:]
			}
			complained := complaint(one, of)
			if complained == "" {
				return true, ""
			}
			if said == "" || !strings.Contains(complained, "has no flag") {
				said = complained
			}
		}
	}
	// What is no command of ours is somebody else's.
	return named && said == "", said
}
