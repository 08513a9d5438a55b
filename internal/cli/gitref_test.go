// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
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

// selected are the nodes of profileText and poolText.
const selected = `{matchLabels: {node-role.kubernetes.io/trading: ""}}`

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
			want: []string{"profile `other` against", "**2 nodes reboot**.", "| – | `", "LowLatencyNodeProfile trading from `node-role.kubernetes.io/trading=` to –; the profile is gone"},
		},
		"other nodes are selected": {
			text: strings.Replace(profileText, selected, "{matchExpressions: [{key: tier, operator: In, values: [b, a]}]}", 1), args: []string{"--exit-code"}, code: ExitReboots,
			want: []string{
				"of 2 nodes it is not known whether they reboot.", "| Unknown | 1 |",
				"**Nodes may join or leave and reboot**: nodeSelector of LowLatencyNodeProfile trading from `node-role.kubernetes.io/trading=` to `tier in (a,b)`; ",
			},
		},
		"other nodes are selected, and a node reboots": {
			text: strings.NewReplacer("MaximumDeterminism", "LowLatency", selected, "{matchLabels: {tier: fast}}").Replace(profileText), args: []string{"--exit-code"},
			code: ExitReboots, want: []string{"**2 nodes reboot**.", "**Nodes may join or leave and reboot**"},
		},
		"other nodes are selected, and the exit code is not asked for": {
			text: strings.Replace(profileText, selected, "{matchLabels: {tier: fast}}", 1), want: []string{"**Nodes may join or leave and reboot**"},
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

// TestPlanOfAProfileThatIsGone: whoever deletes a profile reboots its nodes, whatever else is in the folder.
func TestPlanOfAProfileThatIsGone(t *testing.T) {
	host := tree(t, small("a"))
	remove := func(t *testing.T, path string) {
		t.Helper()
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		change func(t *testing.T, dir, file string)
		byFile bool
		args   []string
	}{
		"a pool is left":                {change: func(t *testing.T, _, file string) { t.Helper(); replace(t, file, poolText) }},
		"nothing is left in the folder": {change: func(t *testing.T, _, file string) { t.Helper(); remove(t, file) }},
		"the folder is gone":            {change: func(t *testing.T, dir, _ string) { t.Helper(); remove(t, dir) }},
		"the file is gone":              {change: func(t *testing.T, _, file string) { t.Helper(); remove(t, file) }, byFile: true},
		"another profile is left, not this one": {
			change: func(t *testing.T, _, file string) {
				t.Helper()
				replace(t, file, strings.Replace(profileText, "name: trading", "name: other", 1))
			},
			args: []string{"--profile", "trading"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir, file := repository(t)
			tc.change(t, dir, file)
			given := dir
			if tc.byFile {
				given = file
			}
			arguments := append([]string{"plan", "-f", given, "--root", host, "--against", "git:main", "--exit-code"}, tc.args...)
			got := run(t, "", append(arguments, "-o", "markdown")...)
			for _, want := range []string{
				"### Plan of profile `trading` against `git:main`", "**1 node reboots**.", "| a | given back | **Required** |", "| kernel argument idle | `idle=poll` | – |",
				"LowLatencyNodeProfile trading from `node-role.kubernetes.io/trading=` to –; the profile is gone; each node that it had is given back, and reboots.",
			} {
				if got.code != ExitReboots || !strings.Contains(got.out, want) {
					t.Errorf("exit code %d, standard error %q; %q is missing in:\n%s", got.code, got.err, want, got.out)
				}
			}
			if drawn := run(t, "", arguments...); drawn.code != ExitReboots || !strings.Contains(drawn.out, "given back") || !strings.Contains(drawn.out, "idle=poll") {
				t.Errorf("exit code %d, drawn as\n%s%s", drawn.code, drawn.out, drawn.err)
			}
		})
	}
}

// TestPlanTellsOfSelectionsOfPools: a pool reserves hugepages and binds drivers on the nodes that it selects.
func TestPlanTellsOfSelectionsOfPools(t *testing.T) {
	older, newer := write(t, "older.yaml", profileText+"---\n"+poolText), write(t, "newer.yaml", profileText+"---\n"+strings.Replace(poolText, selected, "{matchLabels: {nic: x2}}", 1))
	arguments := []string{"plan", "--root", tree(t, small("a")), "--exit-code", "-o", "json", "-f"}
	if got := run(t, "", append(arguments, older, "--against", older)...); got.code != 0 {
		t.Errorf("without a change the exit code is %d: %s", got.code, got.err)
	}
	got := run(t, "", append(arguments, newer, "--against", older)...)
	for _, want := range []string{`"what": "nodeSelector of BypassNICPool x2"`, `"to": "nic=x2"`, `"reboot": "Unknown"`} {
		if got.code != ExitReboots || !strings.Contains(got.out, want) {
			t.Errorf("exit code %d, standard error %q; %s is missing in:\n%s", got.code, got.err, want, got.out)
		}
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

// TestSelectorsThatMeanTheSame are the same text, and others are not.
func TestSelectorsThatMeanTheSame(t *testing.T) {
	labelled := func(labels v1alpha1.Labels, expressions ...v1alpha1.LabelExpression) v1alpha1.NodeSelector {
		return v1alpha1.NodeSelector{MatchLabels: labels, MatchExpressions: expressions}
	}
	in := func(values ...v1alpha1.LabelValue) v1alpha1.LabelExpression {
		return v1alpha1.LabelExpression{Key: "role", Operator: v1alpha1.LabelIn, Values: values}
	}
	not := v1alpha1.LabelExpression{Key: "role", Operator: v1alpha1.LabelNotIn, Values: []v1alpha1.LabelValue{"a"}}
	for name, tc := range map[string]struct {
		one, other v1alpha1.NodeSelector
		same       bool
	}{
		"one value of In":       {labelled(v1alpha1.Labels{"role": "a"}), labelled(nil, in("a")), true},
		"both":                  {labelled(v1alpha1.Labels{"role": "a"}), labelled(v1alpha1.Labels{"role": "a"}, in("a")), true},
		"a value twice":         {labelled(nil, in("b", "a")), labelled(nil, in("a", "b", "a")), true},
		"another value":         {labelled(v1alpha1.Labels{"role": "a"}), labelled(nil, in("b")), false},
		"one that contradicts":  {labelled(v1alpha1.Labels{"role": "a"}), labelled(v1alpha1.Labels{"role": "a"}, in("b")), false},
		"the opposite":          {labelled(nil, in("a")), labelled(nil, not), false},
		"the order of keys":     {labelled(v1alpha1.Labels{"role": "a", "zone": "z"}), labelled(v1alpha1.Labels{"zone": "z"}, in("a")), true},
		"one value more of one": {labelled(nil, in("a")), labelled(nil, in("a", "b")), false},
	} {
		if one, other := selectorText(tc.one), selectorText(tc.other); (one == other) != tc.same {
			t.Errorf("%s: %q and %q", name, one, other)
		}
	}
}
