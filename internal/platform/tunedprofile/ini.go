// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package tunedprofile

import (
	"fmt"
	"strings"
)

// section is one section of a TuneD profile; its options keep their order.
type section struct {
	name    string
	options []option
	// bare sections are printed without options: naming the plugin is what switches it on.
	bare bool
}

type option struct {
	name, value string
}

func (s *section) set(name, value string) { s.options = append(s.options, option{name, value}) }

// printProfile prints sections in the dialect of TuneD's own reader (tuned/profiles/loader.py), leaving out those
// without options unless they are bare. TuneD expands variables, cuts values at # and reads indented lines as continuations, so a name or
// value that would be read back as anything but itself is an error.
func printProfile(sections []section) (string, error) {
	var text strings.Builder
	for _, s := range sections {
		if len(s.options) == 0 && !s.bare {
			continue
		}
		if text.Len() > 0 {
			text.WriteByte('\n')
		}
		fmt.Fprintf(&text, "[%s]\n", s.name)
		seen := map[string]bool{}
		for _, o := range s.options {
			if err := checkOption(o); err != nil {
				return "", fmt.Errorf("section [%s] of the TuneD profile: %w", s.name, err)
			}
			if seen[o.name] {
				return "", fmt.Errorf("section [%s] of the TuneD profile: %s is set twice", s.name, o.name)
			}
			seen[o.name] = true
			fmt.Fprintf(&text, "%s=%s\n", o.name, o.value)
		}
	}
	return text.String(), nil
}

func checkOption(o option) error {
	switch {
	case o.name == "" || strings.ContainsAny(o.name, "=#;[]${} \t"):
		return fmt.Errorf("%q cannot be the name of an option", o.name)
	case o.value == "" || o.value != strings.TrimSpace(o.value):
		return fmt.Errorf("value %q of %s is empty or begins or ends with white space", o.value, o.name)
	case strings.Contains(o.value, "#") || strings.Contains(o.value, "${"):
		return fmt.Errorf("value %q of %s contains a comment or a variable", o.value, o.name)
	case strings.HasPrefix(o.value, ">") || strings.HasPrefix(o.value, "<"):
		return fmt.Errorf("value %q of %s begins with a comparison", o.value, o.name)
	case strings.ContainsFunc(o.name+o.value, controlCharacter):
		return fmt.Errorf("%q=%q contains a control character", o.name, o.value)
	}
	return nil
}

func controlCharacter(r rune) bool {
	return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029
}
