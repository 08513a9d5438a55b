// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bootloader

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// Entries of the Boot Loader Specification, of type 1: a file for each, with a key and its value on each line.
const (
	entryEnding = ".conf"
	// newKernels is where kernel-install takes the arguments of a new kernel's entry from.
	newKernels = "/etc/kernel/cmdline"
)

var (
	optionsLine = regexp.MustCompile(`^[ \t]*options[ \t]+`)
	spacedWord  = regexp.MustCompile(`\s*\S+`)
)

// due is what of a change has to be done to a line: arguments of ours are looked for where their marker stands, so that the same words
// of others stay, and what was changed already is the same when it is changed again.
func (a Arguments) due(line []string) Arguments {
	due := Arguments{Add: a.Add}
	for _, ours := range [][]string{a.Remove, a.Add} {
		if marker := operation.MarkerOf(ours); marker != "" && slices.Contains(line, marker) {
			due.Remove = append(due.Remove, ours...)
		}
	}
	return due
}

// dueIn returns a line of arguments with what is due of the change made.
func (a Arguments) dueIn(line []string) ([]string, error) { return a.due(line).change(line) }

// edit changes the arguments in a text and nothing else of it: spaces and line breaks stay. Left are those that are to be removed
// and are not in it.
func (a Arguments) edit(text string) (edited string, left []string) {
	var words []string
	end := 0
	for _, at := range spacedWord.FindAllStringIndex(text, -1) {
		words, end = append(words, text[at[0]:at[1]]), at[1]
	}
	behind := text[end:]
	for _, ours := range slices.Backward(a.Remove) {
		// Ours stand behind those of others.
		found := -1
		for i, word := range words {
			if strings.TrimSpace(word) == ours {
				found = i
			}
		}
		if found < 0 {
			left = append([]string{ours}, left...)
			continue
		}
		words = slices.Delete(words, found, found+1)
	}
	for _, argument := range a.Add {
		if len(words) > 0 {
			argument = " " + argument
		}
		words = append(words, argument)
	}
	return strings.Join(words, "") + behind, left
}

// changeText changes a text that is nothing but arguments, such as /etc/kernel/cmdline.
func (a Arguments) changeText(text string) (string, error) {
	words := strings.Fields(text)
	if slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, "#") }) {
		return "", errors.New("it holds a comment, which kernel-install of some releases takes for arguments: take it out")
	}
	due := a.due(words)
	if _, err := due.change(words); err != nil {
		return "", err
	}
	edited, _ := due.edit(text)
	return edited, nil
}

// changeOptions changes the arguments of an entry, and nothing else of it. A loader takes the lines with options together; what it
// takes for a variable in them, expand adds.
func (a Arguments) changeOptions(text string, expand func([]string) []string) (string, error) {
	lines := strings.SplitAfter(text, "\n")
	var options []int
	var words []string
	for i, line := range lines {
		key := optionsLine.FindString(line)
		if key == "" {
			continue
		}
		value := strings.Fields(line[len(key):])
		if len(value) > 0 && strings.HasPrefix(value[0], `"`) && strings.HasSuffix(value[len(value)-1], `"`) {
			return "", errors.New("an entry has its options in quotes, which loaders read in different ways: take them off")
		}
		options, words = append(options, i), append(words, value...)
	}
	if len(options) == 0 {
		return "", errors.New("an entry has no line options, so that its kernel would be started without arguments")
	}
	due := a.due(words)
	if _, err := due.change(expand(words)); err != nil {
		return "", err
	}
	// Ours go behind all others, and are there when they are looked for.
	for _, i := range slices.Backward(options) {
		key := optionsLine.FindString(lines[i])
		edited, left := due.edit(lines[i][len(key):])
		lines[i], due = key+edited, Arguments{Remove: left}
	}
	return strings.Join(lines, ""), nil
}

// appendOptions adds words behind all options of an entry.
func appendOptions(text string, words []string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range slices.Backward(lines) {
		if key := optionsLine.FindString(line); key != "" {
			edited, _ := Arguments{Add: words}.edit(line[len(key):])
			lines[i] = key + edited
			break
		}
	}
	return strings.Join(lines, "")
}

// entryKeys are the keys of an entry with their values: of a key that is given twice, the last one.
func entryKeys(text string) map[string]string {
	keys := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if i := strings.IndexAny(line, " \t"); i > 0 && line[0] != '#' {
			keys[line[:i]] = strings.TrimSpace(line[i:])
		}
	}
	return keys
}

// asTrial names an entry for people, and takes away what gives it a place in front of others.
func asTrial(text string) string {
	var b strings.Builder
	b.WriteString("title Low latency: trial\n")
	for line := range strings.Lines(text) {
		key, _, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(line, "\t", " ")), " ")
		if key != "title" && key != "sort-key" {
			b.WriteString(line)
		}
	}
	return b.String()
}
