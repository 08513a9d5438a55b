// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cmdline_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
)

func flag(name string) cmdline.Arg { return cmdline.Arg{Name: name} }

func value(name, value string) cmdline.Arg {
	return cmdline.Arg{Name: name, Value: value, HasValue: true}
}

func parse(t *testing.T, line string) cmdline.Line {
	t.Helper()
	parsed, err := cmdline.Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestParse(t *testing.T) {
	cases := map[string]struct {
		line     string
		want     []cmdline.Arg
		wantInit []cmdline.Arg
	}{
		"empty":                  {line: ""},
		"white space":            {line: " \t\n\v\f\r "},
		"flag":                   {line: "quiet", want: []cmdline.Arg{flag("quiet")}},
		"value":                  {line: "nohz=on\n", want: []cmdline.Arg{value("nohz", "on")}},
		"empty value":            {line: "init= quiet", want: []cmdline.Arg{value("init", ""), flag("quiet")}},
		"equals in the value":    {line: "root=UUID=4cea-8954", want: []cmdline.Arg{value("root", "UUID=4cea-8954")}},
		"much white space":       {line: "  a=1 \t b\n", want: []cmdline.Arg{value("a", "1"), flag("b")}},
		"repeated":               {line: "skew_tick=1 quiet skew_tick=0", want: []cmdline.Arg{value("skew_tick", "1"), flag("quiet"), value("skew_tick", "0")}},
		"quoted value":           {line: `dyndbg="file a.c +p" quiet`, want: []cmdline.Arg{value("dyndbg", "file a.c +p"), flag("quiet")}},
		"quoted argument":        {line: `"dyndbg=file a.c +p" quiet`, want: []cmdline.Arg{value("dyndbg", "file a.c +p"), flag("quiet")}},
		"quoted flag":            {line: `"quiet" splash`, want: []cmdline.Arg{flag("quiet"), flag("splash")}},
		"quoted flag with space": {line: `"a b"`, want: []cmdline.Arg{flag("a b")}},
		"empty quotes":           {line: `"" a`, want: []cmdline.Arg{flag(""), flag("a")}},
		"empty quoted value":     {line: `a="" b`, want: []cmdline.Arg{value("a", ""), flag("b")}},
		"quotes inside a value":  {line: `a=b" "c d`, want: []cmdline.Arg{value("a", `b" "c`), flag("d")}},
		"open quote":             {line: `a="b c`, want: []cmdline.Arg{value("a", "b c")}},
		"only an open quote":     {line: `a="`, want: []cmdline.Arg{value("a", "")}},
		"quote behind a value":   {line: `a=b"`, want: []cmdline.Arg{value("a", `b"`)}},
		"both quoted":            {line: `"a="b c" d`, want: []cmdline.Arg{value("a", "b"), flag(`c" d`)}},
		"equals first":           {line: "=a b", want: []cmdline.Arg{flag("=a"), flag("b")}},
		"equals first and later": {line: "=a=b", want: []cmdline.Arg{value("=a", "b")}},
		"for init":               {line: "quiet -- --switch nohz=on --", want: []cmdline.Arg{flag("quiet")}, wantInit: []cmdline.Arg{flag("--switch"), value("nohz", "on"), flag("--")}},
		"dashes with a value":    {line: "--=1 a", want: []cmdline.Arg{value("--", "1"), flag("a")}},
		"quoted dashes":          {line: `"--" a`, wantInit: []cmdline.Arg{flag("a")}},
		"longer dashes":          {line: "--- a", want: []cmdline.Arg{flag("---"), flag("a")}},
		"not ASCII":              {line: "name=Zürich a", want: []cmdline.Arg{value("name", "Zürich"), flag("a")}},
		"as long as can be":      {line: strings.Repeat("a", cmdline.MaxLength), want: []cmdline.Arg{flag(strings.Repeat("a", cmdline.MaxLength))}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			line := parse(t, tc.line)
			if diff := cmp.Diff(tc.want, line.Args()); diff != "" {
				t.Errorf("kernel arguments (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantInit, line.InitArgs()); diff != "" {
				t.Errorf("init arguments (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	cases := map[string]struct{ line, wantMessage string }{
		"too long": {strings.Repeat("a", cmdline.MaxLength+1), "8193 bytes is longer than 8192"},
		"NUL byte": {"quiet\x00nohz=on", "NUL byte at offset 5"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if line, err := cmdline.Parse(tc.line); err == nil || !strings.Contains(err.Error(), tc.wantMessage) {
				t.Errorf("got %v, %v; want an error with %q", line, err, tc.wantMessage)
			}
		})
	}
}

func TestText(t *testing.T) {
	cases := map[string]struct {
		arg  cmdline.Arg
		want string
	}{
		"flag":                {flag("quiet"), "quiet"},
		"value":               {value("nohz", "on"), "nohz=on"},
		"empty value":         {value("nohz", ""), "nohz="},
		"white space":         {value("dyndbg", "file a.c +p"), `dyndbg="file a.c +p"`},
		"white space in name": {flag("a b"), `"a b"`},
		"white space in both": {value("a b", "c d"), `"a b=c d"`},
		"nothing":             {flag(""), `""`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.arg.Text(); got != tc.want {
				t.Errorf("Text() = %s, want %s", got, tc.want)
			}
			if got := parse(t, tc.arg.Text()).Args(); !slices.Equal(got, []cmdline.Arg{tc.arg}) {
				t.Errorf("%s was read back as %+v", tc.want, got)
			}
		})
	}
}

func TestGetAndAll(t *testing.T) {
	line := parse(t, "isolcpus=1 quiet rcu-nocbs=2 isolcpus=3 rcu_nocbs=4 quiet=5 quiet -- isolcpus=6")
	cases := map[string]struct {
		wantValue string
		wantFound bool
		wantAll   []cmdline.Arg
	}{
		"isolcpus":  {"3", true, []cmdline.Arg{value("isolcpus", "1"), value("isolcpus", "3")}},
		"rcu_nocbs": {"4", true, []cmdline.Arg{value("rcu-nocbs", "2"), value("rcu_nocbs", "4")}},
		"rcu-nocbs": {"4", true, []cmdline.Arg{value("rcu-nocbs", "2"), value("rcu_nocbs", "4")}},
		"quiet":     {"", true, []cmdline.Arg{flag("quiet"), value("quiet", "5"), flag("quiet")}},
		"isolcpu":   {"", false, nil},
		"ISOLCPUS":  {"", false, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, found := line.Get(name); got != tc.wantValue || found != tc.wantFound {
				t.Errorf("Get = %q, %t, want %q, %t", got, found, tc.wantValue, tc.wantFound)
			}
			if diff := cmp.Diff(tc.wantAll, line.All(name)); diff != "" {
				t.Errorf("All (-want +got):\n%s", diff)
			}
		})
	}
}

func TestContains(t *testing.T) {
	line := parse(t, `nohz=on nosmt isolcpus=managed_irq,2-79 isolcpus=domain,4 dyndbg="a b" -- single`)
	for text, want := range map[string]bool{
		"nohz=on":                   true,
		"nosmt":                     true,
		"nosmt=":                    false,
		"nosmt=force":               false,
		"nohz":                      false,
		"nohz=off":                  false,
		"isolcpus=managed_irq,2-79": true,
		"isolcpus=domain,4":         true,
		"isolcpus=managed_irq":      false,
		"nosmt nohz=on":             true,
		"nosmt quiet":               false,
		`"dyndbg=a b"`:              true,
		"single":                    false,
		"":                          false,
		" ":                         false,
		"-- nohz=on":                false,
		"nohz=on\x00":               false,
	} {
		if got := line.Contains(text); got != want {
			t.Errorf("Contains(%q) = %t, want %t", text, got, want)
		}
	}
}

func TestArgsAreACopy(t *testing.T) {
	line := parse(t, "a=1 -- b")
	line.Args()[0].Value = "2"
	line.InitArgs()[0].Name = "c"
	if !line.Contains("a=1") || line.InitArgs()[0].Name != "b" {
		t.Error("a caller changed the line")
	}
}

// FuzzParse checks that what is read means the same when it is written and read again, as long as no
// quote is part of a value: the kernel has no way to write those.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "quiet", "nohz=on nohz_full=2-79 rcu_nocbs=2-79 isolcpus=domain,managed_irq,2-79", `dyndbg="file a.c +p" x`,
		`"a=b c" d`, `a="b`, `a=b" "c`, "=a", "a=", `""`, `"`, `"="`, "--", "a -- b", "--=1", "a\x00b", "a\tb\nc", "a=\xa0b",
		`"a="b c" d`, strings.Repeat("a ", 5000), "BOOT_IMAGE=(hd0,gpt3)/boot/vmlinuz root=UUID=1-2 rw",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		line, err := cmdline.Parse(text)
		if err != nil {
			return
		}
		for _, arg := range line.Args() {
			again, err := cmdline.Parse(arg.Text())
			if err != nil || !slices.Equal(again.Args(), []cmdline.Arg{arg}) {
				t.Errorf("%+v was written as %s and read as %+v, %v", arg, arg.Text(), again.Args(), err)
			}
			if !line.Contains(arg.Text()) || len(line.All(arg.Name)) == 0 {
				t.Errorf("%q does not contain %s", text, arg.Text())
			}
			if _, found := line.Get(arg.Name); !found {
				t.Errorf("%q has no %s", text, arg.Name)
			}
		}
	})
}
