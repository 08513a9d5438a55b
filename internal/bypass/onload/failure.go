// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package onload

import (
	"cmp"
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
	// exitSignal is what is added to the number of the signal that ended a program.
	exitSignal = 128
)

// What the numbers of signals are called, by which tools end that find something wrong with the node or with their image
// (signal(7); the numbers are the same on x86 and Arm).
const (
	signalAborted   = 6
	signalBus       = 7
	signalKilled    = 9
	signalForbidden = 31
)

func signalName(number int) string {
	names := map[int]string{
		4: "SIGILL, an instruction that the processor does not have", signalAborted: "SIGABRT, an abort by itself",
		signalBus: "SIGBUS, an access to memory that is not there", 8: "SIGFPE, an arithmetic error", signalKilled: "SIGKILL",
		11: "SIGSEGV, an access to memory that is not its own", 13: "SIGPIPE, nobody reads its output", 15: "SIGTERM",
		signalForbidden: "SIGSYS, a system call that is forbidden",
	}
	return cmp.Or(names[number], fmt.Sprintf("signal %d", number))
}

// Failure is how a run of the tool ended that printed no stacks.
type Failure struct {
	ExitCode int
	// Text is what it wrote to its standard error, or what the container runtime says in place of starting it.
	Text string
	// Emptied means that env started it with an empty LD_PRELOAD.
	Emptied bool
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

// HasEnv reports whether the failure is one of which env itself tells, so that the image has it: it begins its complaints with its
// name.
func (f Failure) HasEnv() bool {
	for line := range strings.Lines(f.Text) {
		if strings.HasPrefix(line, "env: ") {
			return true
		}
	}
	return false
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
		return f.preloaded()
	case strings.Contains(f.Text, missingLibrary):
		return "onload_stackdump does not start (" + f.line(missingLibrary) + "); add the library to the image, or build Onload without libpcap"
	case f.IsMissing():
		return "the container has no onload_stackdump; add it to the image beside libonload.so, or for a pool with userSpace.source " +
			"HostPath to usr/bin below the node's folder, and start the container again"
	case f.ExitCode == exitNotExecutable:
		return "the container has onload_stackdump and may not execute it (" + f.line("") + "); see the file's mode, and that the image is of " +
			"the node's architecture"
	case f.ExitCode > exitSignal:
		return f.signaled(f.ExitCode - exitSignal)
	default:
		return fmt.Sprintf("onload_stackdump ended with exit code %d (%s); run it in the container by hand", f.ExitCode, f.line(""))
	}
}

// preloaded is about a tool that refuses to run because Onload was loaded into it.
func (f Failure) preloaded() string {
	if f.Emptied {
		return "onload_stackdump does not run under Onload, and does so although it was started with an empty LD_PRELOAD; see that the " +
			"image has no /etc/ld.so.preload that names libonload.so"
	}
	return "onload_stackdump does not run with LD_PRELOAD, which the container sets, and the container runtime found no command env " +
		"that would empty it; add env (coreutils or busybox) to the image"
}

// signaled is about a tool that was ended by a signal: the shells' notation of exit codes, which container runtimes share.
func (f Failure) signaled(number int) string {
	ended := fmt.Sprintf("onload_stackdump was ended by %s (exit code %d", signalName(number), f.ExitCode)
	if f.line("") != wordless {
		ended += "; " + f.line("")
	}
	ended += ")"
	switch {
	case number == signalAborted && strings.Contains(f.Text, "strerror:"):
		return "onload_stackdump was aborted, as it is when it may not open /dev/onload (" + f.line("strerror:") + "); see that the file's " +
			"mode is 0666 and that the container was given it"
	case number == signalBus:
		return ended + ", as it is when the control plane of the container's network namespace is dead; look on the node for the " +
			"onload_cp_server of this pod and why it ended: the next stack that is made in the pod starts it again"
	case number == signalKilled:
		return ended + "; see whether the container reached its limit of memory"
	case number == signalForbidden:
		return ended + "; see the container's seccomp profile"
	default:
		return ended + "; run it in the container by hand"
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

// wordless stands for a text that says nothing.
const wordless = "without a word about it"

// line is the first line of the text that holds a word, without what a terminal would obey.
func (f Failure) line(word string) string {
	for line := range strings.Lines(f.Text) {
		if line = strings.TrimSpace(line); line != "" && strings.Contains(line, word) {
			return clean(line)
		}
	}
	return wordless
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
