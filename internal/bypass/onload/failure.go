// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package onload

import (
	"fmt"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// Tool is Onload's tool that prints stacks and their counters.
const Tool = "onload_stackdump"

const (
	// exitNotExecutable and exitNotFound are the exit codes with which env and shells say that a program cannot be
	// started, or is not there.
	exitNotExecutable = 126
	exitNotFound      = 127
	// exitAborted is that of a program that called abort, as tools of Onload do after an error they did not expect.
	exitAborted = 134
)

// Failure is how a run of the tool ended that printed no stacks.
type Failure struct {
	ExitCode int
	// Text is what it wrote to its standard error, or what the container runtime says in place of starting it.
	Text string
}

// IsMissing reports whether the program was not found in the image. Runtimes start no process then, and say so in words of
// their own: "executable file not found in $PATH" (runc), "No such file or directory" (crun, env). A library that is
// missing is another thing.
func (f Failure) IsMissing() bool {
	if strings.Contains(f.Text, missingLibrary) {
		return false
	}
	return f.ExitCode == exitNotFound || f.ExitCode == exitNotExecutable && strings.Contains(f.Text, "not found") ||
		strings.Contains(f.Text, "executable file") && strings.Contains(f.Text, "not found") ||
		strings.Contains(f.Text, "stat ") && strings.Contains(f.Text, "no such file or directory")
}

// missingLibrary is how the dynamic linker begins its complaint.
const missingLibrary = "error while loading shared libraries: "

// Reason says in one sentence why the tool printed no stacks, and what to do. Its messages are those of
// libstack_mappings_init of src/tools/ip/libstack.c, and of main of stackdump.c.
func (f Failure) Reason() string {
	switch {
	case f.isOneOf("rc=-79)", "rc=-22)"):
		return "onload_stackdump is of another build than the kernel module (" + f.line("rc=-") + "); give the container user files of the " +
			"module's build: its program runs on kernel sockets with those of another"
	case f.isOneOf("rc=-2)", "rc=-6)"):
		return "onload_stackdump cannot open /dev/onload (" + f.line("rc=-") + "); load the module onload on the node, and see that the " +
			"container was given the device file: its program runs on kernel sockets without either"
	case strings.Contains(f.Text, "under onload acceleration"):
		return "onload_stackdump does not run with LD_PRELOAD, which the container sets, and the image has no command env that would take " +
			"it away; add env (coreutils or busybox) to the image"
	case strings.Contains(f.Text, missingLibrary):
		return "onload_stackdump does not start (" + f.line(missingLibrary) + "); add the library to the image, or build Onload without libpcap"
	case f.IsMissing():
		return "the container has no onload_stackdump; add it to the image beside libonload.so, or for a pool with userSpace.source " +
			"HostPath to usr/bin below the node's folder, and start the container again"
	case f.ExitCode == exitAborted:
		return "onload_stackdump was aborted, as it is when it may not open /dev/onload (" + f.line("strerror:") + "); see that the file's " +
			"mode is 0666 and that the container was given it"
	default:
		return fmt.Sprintf("onload_stackdump ended with exit code %d (%s); run it in the container by hand", f.ExitCode, f.line(""))
	}
}

// Unreached is the verdict when nothing could be run in the container, with what was said of it.
func Unreached(why string) Verdict {
	return Unread("onload_stackdump could not be run in the container (" + Failure{Text: why}.line("") + "); see that you may create pods/exec in " +
		"its namespace, and that the container runs")
}

func (f Failure) isOneOf(texts ...string) bool {
	for _, text := range texts {
		if strings.Contains(f.Text, text) {
			return true
		}
	}
	return false
}

// line is the first line of the text that holds a word, without what a terminal would obey.
func (f Failure) line(word string) string {
	for line := range strings.Lines(f.Text) {
		if line = strings.TrimSpace(line); line != "" && strings.Contains(line, word) {
			return clean(line)
		}
	}
	return "without a word about it"
}

// maximumLine bounds what a sentence cites, in bytes.
const maximumLine = 256

// clean keeps what can be printed of a text of unknown origin.
func clean(text string) string {
	kept := strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return -1
		}
		return c
	}, text)
	return shorten.Sentence(kept, maximumLine)
}
