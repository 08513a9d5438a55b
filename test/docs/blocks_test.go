// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package docs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const repository = "../.."

// block is a fenced block of a document.
type block struct {
	// file is below the repository; line is that of the first line within the fence.
	file     string
	line     int
	language string
	lines    []string
}

// command is what a reader types, with what the document shows of its output; shown is nil when it shows nothing.
type command struct {
	file  string
	line  int
	text  string
	shown []string
}

// documents are the files for users and contributors, below the repository.
func documents(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/guides/*.md", "config/samples/*.md"} {
		found, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			name, err := filepath.Rel(repository, file)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, filepath.ToSlash(name))
		}
	}
	if len(files) < 25 {
		t.Fatalf("found %d documents only", len(files))
	}
	return files
}

// read is the text of a file of the repository.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocksOf are the fenced blocks of a document. Every fence of ours begins a line, has three backticks and is closed.
func blocksOf(t *testing.T, file, text string) []block {
	t.Helper()
	var blocks []block
	var open *block
	for i, line := range strings.Split(text, "\n") {
		info, fence := strings.CutPrefix(line, "```")
		switch {
		case !fence && strings.HasPrefix(strings.TrimSpace(line), "```"):
			t.Errorf("%s:%d: the fence does not begin the line", file, i+1)
		case !fence && open != nil:
			open.lines = append(open.lines, line)
		case fence && open == nil:
			open = &block{file: file, line: i + 2, language: info}
		case fence:
			blocks, open = append(blocks, *open), nil
		}
	}
	if open != nil {
		t.Errorf("%s:%d: the block has no end", file, open.line)
	}
	return blocks
}

// allBlocks are those of all documents.
func allBlocks(t *testing.T) []block {
	t.Helper()
	var blocks []block //nolint:prealloc // How many there are is what is found out.
	for _, file := range documents(t) {
		blocks = append(blocks, blocksOf(t, file, read(t, file))...)
	}
	return blocks
}

// commands are those of a block: of "sh" each line that is no comment, of "console" each line after a prompt, with what follows. A
// line that ends with a backslash or a pipe goes on in the next one.
func (b *block) commands() []command {
	var commands []command
	continued := false
	for i, line := range b.lines {
		prompted := strings.HasPrefix(line, "$ ")
		switch {
		case continued:
			last := &commands[len(commands)-1]
			last.text += "\n" + line
			continued = goesOn(line)
		case b.language == "console" && !prompted:
			if len(commands) > 0 {
				last := &commands[len(commands)-1]
				last.shown = append(last.shown, line)
			}
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		default:
			commands = append(commands, command{file: b.file, line: b.line + i, text: strings.TrimPrefix(line, "$ ")})
			continued = goesOn(line)
		}
	}
	return commands
}

func goesOn(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasSuffix(line, `\`) || strings.HasSuffix(line, "|")
}

// allCommands are those of all documents.
func allCommands(t *testing.T) []command {
	t.Helper()
	var commands []command
	for _, b := range allBlocks(t) {
		if b.language == "sh" || b.language == "console" {
			commands = append(commands, b.commands()...)
		}
	}
	if len(commands) < 60 {
		t.Fatalf("found %d commands only", len(commands))
	}
	return commands
}

// TestBlocksHaveALanguage keeps commands from hiding in blocks that nobody runs: "text" is what programs print.
func TestBlocksHaveALanguage(t *testing.T) {
	known := []string{"text", "sh", "console", "yaml", "dockerfile"}
	for _, b := range allBlocks(t) {
		if !slices.Contains(known, b.language) {
			t.Errorf("%s:%d: the language %q is not one of %q", b.file, b.line, b.language, known)
		}
		if b.language != "text" {
			continue
		}
		for i, line := range b.lines {
			for _, begin := range []string{"$ ", "kubectl ", "kubectl-lowlatency ", "make ", "go run ", "oc ", "helm ", "ssh ", "scp ", "sudo ", "lowlatency-guard ", "lowlatency-operator "} {
				if strings.HasPrefix(line, begin) {
					t.Errorf("%s:%d: a command in a block of text; it is sh, or console with its output", b.file, b.line+i)
				}
			}
		}
	}
}

// TestWhatChangesAMachineStandsAlone keeps what changes and reboots the reader's machine out of blocks of commands that only look: people copy
// blocks whole.
func TestWhatChangesAMachineStandsAlone(t *testing.T) {
	seen := 0
	for _, b := range allBlocks(t) {
		if b.language != "sh" {
			continue
		}
		looks, changes := 0, 0
		for _, c := range b.commands() {
			if r, _ := ruleOf(&c); r.need == alone {
				looks++
			}
			if strings.Contains(c.text, "kubectl-lowlatency host apply") || strings.Contains(c.text, "kubectl lowlatency host apply") {
				changes++
			}
		}
		if seen += changes; looks > 0 && changes > 0 {
			t.Errorf("%s:%d: the block has commands that look, and one that changes the machine", b.file, b.line)
		}
	}
	if seen == 0 {
		t.Error("no command changes a machine")
	}
}

func TestCommandsOfABlock(t *testing.T) {
	blocks := blocksOf(t, "x.md", "text\n```sh\n# why\na \\\n  b\n\nc |\n  d  # end\n```\n```console\n$ a |\n  b\nout\n\n$ c\n```\n")
	var got []command
	for _, b := range blocks {
		got = append(got, b.commands()...)
	}
	want := []command{
		{"x.md", 4, "a \\\n  b", nil}, {"x.md", 7, "c |\n  d  # end", nil},
		{"x.md", 11, "a |\n  b", []string{"out", ""}}, {"x.md", 15, "c", nil},
	}
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		if got[i].line != want[i].line || got[i].text != want[i].text || !slices.Equal(got[i].shown, want[i].shown) {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
}
