// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bootloader

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

const (
	// environmentSize is that of GRUB's environment block: GRUB writes over the block on the disk and cannot change its size.
	environmentSize   = 1024
	environmentHeader = "# GRUB Environment Block\n"
	// nextEntry is the variable that GRUB clears before it starts what it names.
	nextEntry = "next_entry"
)

// variable is one of GRUB's environment, with its value as it stands in the file.
type variable struct{ name, value string }

// environment is GRUB's environment block. What grub-editenv of some releases writes as comments stays.
type environment struct {
	comments  []string
	variables []variable
}

func parseEnvironment(content []byte) (environment, error) {
	var e environment
	if len(content) != environmentSize || !bytes.HasPrefix(content, []byte(environmentHeader)) {
		return e, errors.New("GRUB's environment is no block of 1024 bytes that begins with its header")
	}
	text := strings.TrimRight(string(content[len(environmentHeader):]), "#")
	for line := range strings.Lines(text) {
		name, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		switch {
		case strings.HasPrefix(line, "#"):
			e.comments = append(e.comments, strings.TrimSuffix(line, "\n"))
		case !found || !strings.HasSuffix(line, "\n") || strings.HasSuffix(value, `\`):
			// A backslash continues a value on the next line: nothing that we write, and rare enough to leave alone.
			return e, fmt.Errorf("GRUB's environment has the line %q, which is not understood", line)
		default:
			e.variables = append(e.variables, variable{name, value})
		}
	}
	return e, nil
}

// get returns the value of a variable, "" where it is not set.
func (e *environment) get(name string) string {
	for _, v := range e.variables {
		if v.name == name {
			return v.value
		}
	}
	return ""
}

// set returns the environment with a variable changed or added.
func (e *environment) set(name, value string) environment {
	changed := e.without(name)
	changed.variables = append(changed.variables, variable{name, value})
	return changed
}

// without returns the environment without a variable.
func (e *environment) without(name string) environment {
	changed := environment{comments: e.comments}
	for _, v := range e.variables {
		if v.name != name {
			changed.variables = append(changed.variables, v)
		}
	}
	return changed
}

// block is the environment as GRUB reads it.
func (e *environment) block() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(environmentHeader)
	for _, comment := range e.comments {
		b.WriteString(comment + "\n")
	}
	for _, v := range e.variables {
		b.WriteString(v.name + "=" + v.value + "\n")
	}
	if b.Len() > environmentSize {
		return nil, errors.New("GRUB's environment has no room for another variable")
	}
	b.Write(bytes.Repeat([]byte("#"), environmentSize-b.Len()))
	return b.Bytes(), nil
}
