// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package cmdline reads a Linux kernel command line by the kernel's own rules, so that what a host was
// booted with can be compared with what it should have been booted with. It is pure.
package cmdline

import (
	"fmt"
	"slices"
	"strings"
)

// MaxLength is the longest command line in bytes that is accepted: twice the largest COMMAND_LINE_SIZE
// of the kernel (4096, arch/s390; x86 and arm64 have 2048). Anything longer was not read from a kernel.
const MaxLength = 8192

// Arg is one argument: "nohz=on" has a value, "nosmt" has none, "quiet=" has an empty one.
type Arg struct {
	Name, Value string
	HasValue    bool
}

// Text returns the argument as it is written on a command line, in quotes where white space demands it. What it returns is
// read as this argument, wherever on a line it stands; only one that holds a quote which is never closed must be the last, as
// it was where it came from.
func (a Arg) Text() string {
	plain, valueInQuotes := a.Name, a.Name
	if a.HasValue {
		plain, valueInQuotes = a.Name+"="+a.Value, a.Name+`="`+a.Value
	}
	// The kernel drops the second quote where it is the last character only: some values need no second one.
	ways := []string{
		plain, valueInQuotes + `"`, `"` + plain + `"`,
		valueInQuotes, `"` + plain, `"` + valueInQuotes, `"` + valueInQuotes + `"`,
	}
	for _, after := range []string{" x", ""} {
		for _, text := range ways {
			if a.isReadFrom(text, after) {
				return text
			}
		}
	}
	return `"` + plain + `"`
}

// isReadFrom reports whether a text is read as this argument when something follows it on the line.
func (a Arg) isReadFrom(text, after string) bool {
	if text != skipSpace(text) || text == "" {
		return false
	}
	read, rest := next(text + after)
	return read == a && rest == skipSpace(after)
}

// is reports whether both are the same argument with the same value.
func (a Arg) is(b Arg) bool {
	return sameName(a.Name, b.Name) && a.HasValue == b.HasValue && a.Value == b.Value
}

// Line is a command line. The zero Line is empty.
type Line struct {
	kernel, init []Arg
}

// Parse reads a command line as parse_args and next_arg of the kernel do (kernel/params.c,
// lib/cmdline.c): white space separates arguments, double quotes around a value or around a whole
// argument protect white space, and what follows "--" belongs to the init process. A quote that is never
// closed reaches to the end of the line, as in the kernel. It is an error if the line is longer than
// MaxLength or holds a NUL byte.
func Parse(line string) (Line, error) {
	if len(line) > MaxLength {
		return Line{}, fmt.Errorf("kernel command line of %d bytes is longer than %d, more than any kernel accepts",
			len(line), MaxLength)
	}
	if at := strings.IndexByte(line, 0); at >= 0 {
		return Line{}, fmt.Errorf("kernel command line holds a NUL byte at offset %d", at)
	}
	var parsed Line
	target := &parsed.kernel
	for rest := skipSpace(line); rest != ""; {
		var arg Arg
		arg, rest = next(rest)
		if arg == (Arg{Name: "--"}) && target == &parsed.kernel {
			target = &parsed.init
			continue
		}
		*target = append(*target, arg)
	}
	return parsed, nil
}

// next takes the first argument off a line that does not begin with white space. It follows next_arg of
// lib/cmdline.c step by step, oddities included: an "=" at the very beginning belongs to the name.
func next(line string) (arg Arg, rest string) {
	quoted := line[0] == '"'
	if quoted {
		line = line[1:]
	}
	end, equals := scan(line, quoted)
	text, rest := line[:end], skipSpace(line[end:])
	if equals == 0 {
		return Arg{Name: trimQuote(text, quoted)}, rest
	}
	value := text[equals+1:]
	valueQuoted := strings.HasPrefix(value, `"`)
	value = trimQuote(strings.TrimPrefix(value, `"`), quoted || valueQuoted)
	return Arg{Name: text[:equals], Value: value, HasValue: true}, rest
}

// scan returns where the first argument ends and where its first "=" is; 0 if there is none.
func scan(line string, inQuote bool) (end, equals int) {
	for i, c := range []byte(line) {
		switch {
		case isSpace(rune(c)) && !inQuote:
			return i, equals
		case c == '"':
			inQuote = !inQuote
		case c == '=' && equals == 0:
			equals = i
		}
	}
	return len(line), equals
}

// trimQuote drops the closing quote of what was opened with one.
func trimQuote(text string, quoted bool) string {
	if quoted {
		return strings.TrimSuffix(text, `"`)
	}
	return text
}

func skipSpace(line string) string { return strings.TrimLeftFunc(line, isSpace) }

// isSpace is the kernel's isspace for ASCII.
func isSpace(r rune) bool { return r == ' ' || r >= '\t' && r <= '\r' }

// Args returns the kernel's arguments in their order, those that are repeated included.
func (l Line) Args() []Arg { return slices.Clone(l.kernel) }

// InitArgs returns what follows "--": the arguments that the kernel hands to the init process unread.
func (l Line) InitArgs() []Arg { return slices.Clone(l.init) }

// Get returns the value of the last argument of that name, which is the one that most kernel parameters
// obey when they are repeated, and whether there is one. The value of an argument without a value is "".
func (l Line) Get(name string) (string, bool) {
	for _, arg := range slices.Backward(l.kernel) {
		if sameName(arg.Name, name) {
			return arg.Value, true
		}
	}
	return "", false
}

// All returns every argument of that name in the order of the line.
func (l Line) All(name string) []Arg {
	var all []Arg
	for _, arg := range l.kernel {
		if sameName(arg.Name, name) {
			all = append(all, arg)
		}
	}
	return all
}

// Contains reports whether the kernel's arguments include every argument of the text, each with the same
// value: Contains("nohz=on nosmt"). An empty or unreadable text is contained in no line.
func (l Line) Contains(text string) bool {
	wanted, err := Parse(text)
	if err != nil || len(wanted.kernel) == 0 {
		return false
	}
	for _, arg := range wanted.kernel {
		if !slices.ContainsFunc(l.kernel, arg.is) {
			return false
		}
	}
	return true
}

// sameName compares as parameq of kernel/params.c does: "-" and "_" are the same character.
func sameName(a, b string) bool { return underscored(a) == underscored(b) }
