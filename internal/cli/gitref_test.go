// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository is a work tree of git with one profile at the ref main, in the file trading.yaml of the folder profiles.
func repository(t *testing.T) (dir, file string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "profiles")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "trading.yaml")
	replace(t, file, profileText)
	for _, arguments := range [][]string{
		{"init", "--quiet", "--initial-branch=main", ".."}, {"add", "."},
		{"-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message=first"},
	} {
		command := exec.Command("git", append([]string{"-C", dir}, arguments...)...)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", arguments, err, out)
		}
	}
	return dir, file
}

func replace(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPlanAgainstAGitRef(t *testing.T) {
	host := tree(t, small("a"))
	other := tree(t, smaller("c"))
	cases := map[string]struct {
		text string
		args []string
		code int
		want []string
	}{
		"nothing has changed": {text: profileText, args: []string{"--exit-code"}, want: []string{"2 nodes stay as they are.", "| a | `", "| no change | 0 |"}},
		"a node reboots": {
			text: strings.ReplaceAll(profileText, "MaximumDeterminism", "LowLatency"), args: []string{"--exit-code"}, code: ExitReboots,
			want: []string{"### Plan of profile `trading` against `main`", "**2 nodes reboot**.", "| **Required** |", "<details><summary>", "| kernel argument idle |", "</details>\n"},
		},
		"a node reboots, and the exit code is not asked for": {
			text: strings.ReplaceAll(profileText, "MaximumDeterminism", "LowLatency"), want: []string{"**2 nodes reboot**."},
		},
		"no plan": {
			text: profileHead + "  memory: {defaultHugepageSize: 1Gi, hugepages: [{size: 1Gi, count: 4, numaNode: 7}]}\n",
			args: []string{"--exit-code"}, code: ExitFindings, want: []string{"**2 nodes have no plan**.", "#### Findings", "- **Critical** `spec.memory.hugepages[0]`: "},
		},
		"the profile is new": {
			text: strings.Replace(profileText, "name: trading", "name: other", 1), args: []string{"--exit-code"}, code: ExitReboots,
			want: []string{"profile `other` against", "**2 nodes reboot**.", "| – | `"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir, file := repository(t)
			replace(t, file, tc.text)
			for _, given := range []string{dir, file} {
				got := run(t, "", append([]string{"plan", "-f", given, "--root", host, "--root", other, "--against", "main", "-o", "markdown"}, tc.args...)...)
				if got.code != tc.code || got.err != "" {
					t.Errorf("exit code %d, want %d; standard error %q", got.code, tc.code, got.err)
				}
				for _, want := range tc.want {
					if !strings.Contains(got.out, want) {
						t.Errorf("%q is missing in:\n%s", want, got.out)
					}
				}
			}
		})
	}
}

func TestGitRefsThatAreNone(t *testing.T) {
	host := tree(t, small("a"))
	_, file := repository(t)
	broken := filepath.Join(filepath.Dir(file), "broken.yaml")
	cases := map[string]struct {
		args []string
		in   string
		want string
	}{
		"no ref":               {args: []string{"-f", file, "--against", "git:none"}, want: `--against "git:none": the folder of the files has no such ref of git; a shallow clone may lack it`},
		"an option of git":     {args: []string{"-f", file, "--against", "git:--upload-pack=x"}, want: "is no ref of git"},
		"the standard input":   {args: []string{"-f", "-", "--against", "git:HEAD"}, in: profileText, want: "the standard input has no history"},
		"nothing to tell":      {args: []string{"-f", file, "--exit-code"}, want: "say from what, with --against"},
		"neither file nor ref": {args: []string{"-f", file, "--against", "none.yaml"}, want: "open none.yaml: no such file or directory"},
		"twice the same":       {args: []string{"-f", file, "-f", broken}, want: "the same object is in " + file},
	}
	replace(t, broken, profileText)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, tc.in, append([]string{"plan", "--root", host}, tc.args...)...)
			if got.code != ExitUsage || !strings.Contains(got.err, tc.want) {
				t.Errorf("exit code %d, standard error %q, want %q", got.code, got.err, tc.want)
			}
		})
	}
}
