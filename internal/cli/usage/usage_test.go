// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package usage

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestChoice(t *testing.T) {
	cases := map[string]struct{ set, want, err string }{
		"a word":                      {"svg", "svg", ""},
		"a word in capitals":          {"SVG", "svg", ""},
		"a mistyped word":             {"txet", "text", "must be one of text, svg, t=... (did you mean text?)"},
		"a value of the other kind":   {"t=1", "t=1", ""},
		"a bad value of the kind":     {"t=", "t=", "nothing behind t="},
		"a word like none of allowed": {"xyz", "text", "must be one of text, svg, t=..."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			choice := &Choice{Value: "text", Allowed: []string{"text", "svg"}, OtherNames: []string{"t=..."}, Other: func(value string) (bool, error) {
				rest, isOther := strings.CutPrefix(value, "t=")
				if isOther && rest == "" {
					return true, errors.New("nothing behind t=")
				}
				return isOther, nil
			}}
			said := ""
			if err := choice.Set(tc.set); err != nil {
				said = err.Error()
			}
			if choice.String() != tc.want || said != tc.err {
				t.Errorf("%q, %q; want %q, %q", choice, said, tc.want, tc.err)
			}
		})
	}
}

func TestGroup(t *testing.T) {
	nothing := func(*cobra.Command, []string) error { return nil }
	child := &cobra.Command{Use: "child", Args: NoArguments, RunE: nothing}
	child.Flags().StringP("filename", "f", "", "")
	child.Flags().Bool("window", false, "")
	child.Flags().Bool("windy", false, "")
	_ = child.Flags().MarkHidden("windy")
	group := Group(&cobra.Command{Use: "group", SilenceErrors: true, SilenceUsage: true})
	group.AddCommand(child, &cobra.Command{Use: "other", Args: NoArguments, RunE: nothing})
	group.SetOut(io.Discard)
	for line, want := range map[string]string{
		"":               "",
		"child":          "",
		"chld":           `there is no command "chld" (did you mean child?); see group --help`,
		"child --wind":   "unknown flag: --wind (did you mean --window?); see group child --help",
		"child --zzzzzz": "unknown flag: --zzzzzz; see group child --help",
		"child file":     `child takes no arguments, and "file" is one; a file is given by -f; see group child --help`,
		"other file":     `other takes no arguments, and "file" is one; see group other --help`,
	} {
		group.SetArgs(append([]string{}, strings.Fields(line)...))
		said := ""
		if err := group.Execute(); err != nil {
			said = err.Error()
		}
		if said != want {
			t.Errorf("group %s says %q, want %q", line, said, want)
		}
	}
}
