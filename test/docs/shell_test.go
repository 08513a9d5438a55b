// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package docs

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shellWords is what a shell takes for words, with quotes, and a semicolon.
var shellWords = regexp.MustCompile(`(?:"[^"]*"|'[^']*'|<[a-z][^<>]*>|[^\s"';]|;\S)+|;`)

// simpleCommands are the commands of a line of a shell, each by its words without quotes, comments and redirections. What $( ) calls is "$".
func simpleCommands(line string) [][]string {
	line = strings.NewReplacer(`\|`, "|", "\\\n", " ").Replace(line)
	line = regexp.MustCompile(`(?m)(^|\s)#.*$`).ReplaceAllString(line, "")
	line = regexp.MustCompile(`\$\([^()]*\)`).ReplaceAllString(line, "$$")
	separator, redirection := regexp.MustCompile(`^(\|\|?|&&?|;)$`), regexp.MustCompile(`^\d?>>?&?[^>]*$|^<$`)
	all := [][]string{nil}
	words := shellWords.FindAllString(line, -1)
	for i := 0; i < len(words); i++ {
		last := len(all) - 1
		switch word := words[i]; {
		case separator.MatchString(word):
			all = append(all, nil)
		case redirection.MatchString(word):
			if strings.HasSuffix(word, ">") || word == "<" {
				i++
			}
		default:
			all[last] = append(all[last], strings.NewReplacer(`"`, "", "'", "").Replace(word))
		}
	}
	return slices.DeleteFunc(all, func(words []string) bool { return len(words) == 0 })
}

// calls are those of our programs in a line of a shell: the name of each, and the words after it.
func calls(line string) [][]string {
	var all [][]string
	for _, words := range simpleCommands(strings.ReplaceAll(line, "kubectl lowlatency", "kubectl-lowlatency")) {
		if slices.Contains([]string{"scp", "install", "cp"}, words[0]) {
			continue
		}
		at := slices.IndexFunc(words, func(word string) bool { return slices.Contains(ourNames(), path.Base(word)) })
		if at >= 0 {
			all = append(all, append([]string{path.Base(words[at])}, words[at+1:]...))
		}
	}
	return all
}

func ourNames() []string {
	return []string{"kubectl-lowlatency", "lowlatency-guard", "lowlatency-operator", "lowlatency-agent"}
}

func TestSimpleCommands(t *testing.T) {
	for line, want := range map[string][][]string{
		"a --b c\\|d":              {{"a", "--b", "c|d"}},
		"a 'b c' --d=\"e f\" # g":  {{"a", "b c", "--d=e f"}},
		"a && sudo b | c; d":       {{"a"}, {"sudo", "b"}, {"c"}, {"d"}},
		"a > b 2>&1 c 2>/dev/null": {{"a", "c"}},
		"a <b c>/c:<d> -e":         {{"a", "<b c>/c:<d>", "-e"}},
		"a $(b --c d) \\\n  --e":   {{"a", "$", "--e"}},
		"":                         {},
	} {
		if diff := cmp.Diff(want, simpleCommands(line)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}
