// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bootloader

import (
	"context"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// tree is a host of nothing but files.
type tree map[string]string

func (t tree) Read(name string) (hostfile.State, error) {
	if content, found := t[name]; found {
		return hostfile.File(content, 0o644), nil
	}
	for other := range t {
		if strings.HasPrefix(other, name+"/") {
			return hostfile.NewFolder(), nil
		}
	}
	return hostfile.State{}, nil
}

func (t tree) Names(folder string) ([]string, error) {
	var names []string
	for name := range t {
		if path.Dir(name) == folder {
			names = append(names, path.Base(name))
		}
	}
	slices.Sort(names)
	return names, nil
}

func (t tree) Discard(name string) error { delete(t, name); return nil }

func (t tree) Tool(context.Context, string, ...string) error { return fs.ErrInvalid }

// debianHost is Debian 12 as its own tools set it up, with two kernels.
func debianHost(t *testing.T) tree {
	t.Helper()
	return tree{
		"/boot/grub/grub.cfg": string(golden.Get(t, "debian12-grub.cfg")),
		"/boot/grub/grubenv":  block("saved_entry=Debian\n"),
		"/etc/default/grub":   "GRUB_DEFAULT=0\n",
		"/proc/1/mounts":      "/dev/vda1 / ext4 rw 0 0\nproc /proc proc rw 0 0\n",
		"/dev/vda1":           "",
	}
}

func block(variables string) string {
	text := environmentHeader + variables
	return text + strings.Repeat("#", environmentSize-len(text))
}

func TestTrialOfDebian(t *testing.T) {
	h := debianHost(t)
	loader, err := Find(generating{tree: h})
	if err != nil {
		t.Fatal(err)
	}
	writes, err := loader.Trial(Arguments{Add: operation.AddKernelArguments("nohz=on").Arguments})
	if err != nil {
		t.Fatal(err)
	}
	if len(writes) != 1 || writes[0].Path != "/boot/grub/custom.cfg" {
		t.Fatalf("writes %+v", writes)
	}
	golden.Assert(t, string(writes[0].State.Content), "debian12-custom.cfg")
	armed, err := loader.Arm(t.Context())
	if err != nil || string(armed.State.Content) != block("saved_entry=Debian\nnext_entry=lowlatency-trial\n") {
		t.Errorf("Arm() = %q, %v", armed.State.Content, err)
	}
	before, _ := h.Read(grubEnvironment)
	h[grubEnvironment] = block("saved_entry=Debian\nnext_entry=\n")
	disarmed, err := loader.Disarmed(before)
	if err != nil || !disarmed.State.Equal(before) {
		t.Errorf("Disarmed() = %q, %v", disarmed.State.Content, err)
	}
	h[grubEnvironment] = block("saved_entry=Other\nnext_entry=\n")
	if disarmed, err = loader.Disarmed(before); err != nil || string(disarmed.State.Content) != block("saved_entry=Other\n") {
		t.Errorf("Disarmed() after others have changed it = %q, %v", disarmed.State.Content, err)
	}
}

// TestTrialOfUnrestrictedEntries: where the default entry is started without a password, the trial is.
func TestTrialOfUnrestrictedEntries(t *testing.T) {
	for _, users := range []string{"", "set superusers=\"root\"\npassword_pbkdf2 root grub.pbkdf2\n"} {
		h := debianHost(t)
		h["/boot/grub/grub.cfg"] = users + strings.ReplaceAll(h["/boot/grub/grub.cfg"], " --class os ", " --class os --unrestricted ")
		loader, err := Find(h)
		if err != nil {
			t.Fatal(err)
		}
		writes, err := loader.Trial(Arguments{Add: operation.AddKernelArguments("nohz=on").Arguments})
		if err != nil || !strings.HasPrefix(string(writes[0].State.Content), "menuentry 'Low latency: trial' --id lowlatency-trial --unrestricted {\n") {
			t.Errorf("with %q, Trial() = %+v, %v", users, writes, err)
		}
	}
}

// TestWithoutTrial: our entry goes however others have laid it out, and nothing of theirs goes with it.
func TestWithoutTrial(t *testing.T) {
	const theirs = "menuentry 'memtest' {\n\tlinux16 /memtest\n}\n"
	ours := trialStart + " {\n\tlinux /v a=1\n}\n"
	for name, tc := range map[string]struct{ content, want string }{
		"alone":                        {ours, ""},
		"between":                      {"set a=1\n" + ours + theirs, "set a=1\n" + theirs},
		"twice":                        {ours + theirs + ours, theirs},
		"with a block in it":           {trialStart + " --unrestricted {\n\tif true; then {\n\t}\n\tfi\n}\n" + theirs, theirs},
		"with spaces behind its end":   {strings.TrimSuffix(ours, "\n") + "  \n" + theirs, theirs},
		"without an end":               {strings.TrimSuffix(ours, "}\n"), strings.TrimSuffix(ours, "}\n")},
		"of another name, by somebody": {"menuentry 'Low latency: trial' --id lowlatency-trial-2 {\n}\n", "menuentry 'Low latency: trial' --id lowlatency-trial-2 {\n}\n"},
	} {
		if got := withoutTrial(tc.content); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestArmOfDebian: what grub-script-check refuses is not started.
func TestArmOfDebian(t *testing.T) {
	loader, err := Find(debianHost(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loader.Arm(t.Context()); err == nil || !strings.Contains(err.Error(), "GRUB cannot read /boot/grub/custom.cfg") {
		t.Errorf("Arm() = %v", err)
	}
}

func TestTrialIsRefused(t *testing.T) {
	add := operation.AddKernelArguments("nohz=on").Arguments
	cases := map[string]struct {
		change func(h tree)
		add    []string
		want   string
	}{
		"on LVM":               {func(h tree) { h["/proc/1/mounts"] = "/dev/mapper/vg-root / ext4 rw 0 0\n" }, add, "/boot/grub is on /dev/mapper/vg-root, a volume of LVM or RAID"},
		"on MD":                {func(h tree) { h["/proc/1/mounts"] = "/dev/vda1 / ext4 rw 0 0\n/dev/md0 /boot ext4 rw 0 0\n" }, add, "/boot/grub is on /dev/md0"},
		"on ZFS":               {func(h tree) { h["/proc/1/mounts"] = "rpool/ROOT / zfs rw 0 0\n" }, add, "/boot/grub is on zfs, to which GRUB cannot write"},
		"on btrfs":             {func(h tree) { h["/proc/1/mounts"] = "/dev/vda1 / btrfs rw 0 0\n" }, add, "/boot/grub is on btrfs, to which GRUB cannot write"},
		"on what is not known": {func(h tree) { h["/proc/1/mounts"] = "" }, add, "it is not known on which file system"},
		"with an argument of others": {func(tree) {}, operation.AddKernelArguments("root=/dev/sdb").Arguments,
			"the kernel's command line already has root=UUID=5d0c1b2a-0f0e-4c4e-9b1a-2f6a7e1d9c3b"},
		"with what GRUB does not take": {func(tree) {}, []string{"a=b;c"}, "GRUB would end the command line"},
		"with a damaged environment": {func(h tree) {
			h["/boot/grub/grubenv"] = "x"
			h["/boot/grub/grub.cfg"] = strings.Replace(h["/boot/grub/grub.cfg"], `set default="0"`, `set default="${saved_entry}"`, 1)
		}, add, "GRUB's environment is no block of 1024 bytes"},
		"with users, and a default entry for one of them": {func(h tree) {
			h["/boot/grub/grub.cfg"] = "set superusers=\"root\"\n" + h["/boot/grub/grub.cfg"]
		}, add, "GRUB has superusers and asks for a password before it starts the default entry"},
		"with users of custom.cfg": {func(h tree) { h["/boot/grub/custom.cfg"] = "  superusers=root\n" }, add, "add --unrestricted to CLASS in /etc/grub.d/10_linux"},
		"with users, below a submenu that asks": {func(h tree) {
			h["/boot/grub/grub.cfg"] = "set superusers=\"root\"\n" + strings.NewReplacer(`set default="0"`, `set default="1>0"`, " --class debian ", " --class debian --unrestricted ").Replace(h["/boot/grub/grub.cfg"])
		}, add, "asks for a password"},
		"with a default of a number that the trial would have": {inDefaultLine("9"), add, `GRUB starts the entry "9" by default, and grub.cfg has none before it reads custom.cfg`},
		"with a default behind what custom.cfg has": {func(h tree) {
			inDefaultLine("2")(h)
			h["/boot/grub/grub.cfg"] += "menuentry 'of another script' {\n\tlinux /vmlinuz ro\n}\n"
		}, add, `GRUB starts the entry "2" by default`},
		"with a default of custom.cfg": {func(h tree) {
			inDefaultLine("theirs")(h)
			h["/boot/grub/custom.cfg"] = "menuentry 'Of somebody' --id 'theirs' {\n\tlinux /vmlinuz ro\n}\n"
		}, add, `GRUB starts the entry "theirs" by default`},
		"with a default that custom.cfg sets": {func(h tree) { h["/boot/grub/custom.cfg"] = "set default=2\n" }, add, "/boot/grub/custom.cfg sets default"},
		"without custom.cfg":                  {func(h tree) { h["/boot/grub/grub.cfg"] = "menuentry 'a' {\n\tlinux /vmlinuz ro\n}\n" }, add, "reads neither custom.cfg nor next_entry"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := debianHost(t)
			tc.change(h)
			loader, err := Find(h)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = loader.Trial(Arguments{Add: tc.add}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Trial() = %v, want %q", err, tc.want)
			}
		})
	}
}

// inDefaultLine names another default.
func inDefaultLine(name string) func(h tree) {
	return func(h tree) {
		h["/boot/grub/grub.cfg"] = strings.Replace(h["/boot/grub/grub.cfg"], `set default="0"`, `set default="`+name+`"`, 1)
	}
}

// TestDefaultsThatTheTrialCannotBecome: each of these is an entry of grub.cfg, whatever custom.cfg has, or none, for which GRUB takes its first.
func TestDefaultsThatTheTrialCannotBecome(t *testing.T) {
	add := operation.AddKernelArguments("nohz=on").Arguments
	for _, name := range []string{"0", "1>0", "", "Debian GNU/Linux", "of a kernel that is gone"} {
		h := debianHost(t)
		inDefaultLine(name)(h)
		h["/boot/grub/custom.cfg"] = "menuentry 'Of somebody' --id 'theirs' {\n\tlinux /vmlinuz ro\n}\n"
		loader, err := Find(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := loader.Trial(Arguments{Add: add}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// generating is a host whose grub-mkconfig makes a text.
type generating struct {
	tree

	makes string
}

func (g generating) Tool(_ context.Context, program string, arguments ...string) error {
	if path.Base(program) == "grub-mkconfig" {
		if g.makes == "" {
			g.tree[arguments[1]+".new"] = "half"
			return fs.ErrInvalid
		}
		g.tree[arguments[1]] = g.makes
	}
	return nil
}

// inDefault changes the line of the entry that is started by default, and in no other.
func inDefault(from, to string) func(string) string {
	return func(config string) string { return strings.Replace(config, from, to, 1) }
}

// TestCheckOfDebian: an edit of what grub-mkconfig reads that nobody has run it for is refused where it is about the default entry's words.
func TestCheckOfDebian(t *testing.T) {
	add, before := operation.AddKernelArguments("nohz=on").Arguments, operation.AddKernelArguments("nohz=off").Arguments
	with := func(words string) func(string) string { return inDefault("ro  quiet", "ro  quiet "+words) }
	same := func(config string) string { return config }
	const root = "linux	/boot/vmlinuz-6.1.0-56-amd64 root=UUID=5d0c1b2a-0f0e-4c4e-9b1a-2f6a7e1d9c3b"
	cases := map[string]struct {
		has, makes func(string) string
		change     Arguments
		want       string
	}{
		"nothing":                  {same, same, Arguments{Add: add}, ""},
		"a parameter of ours":      {same, with("nohz=off"), Arguments{Add: add}, "already has nohz=off, which the plan sets, too: take it out where it was put, and nothing of it is lost (grub-mkconfig takes it from /etc/default/grub)"},
		"a word":                   {same, with("nosmt"), Arguments{Add: add}, "with nosmt, and grub.cfg has it otherwise: somebody has changed /etc/default/grub.d/50-smt.cfg and has not run update-grub"},
		"a word less":              {same, inDefault("ro  quiet", "ro"), Arguments{Add: add}, "without quiet, and grub.cfg has it otherwise: somebody has changed /etc/default/grub or a file in /etc/default/grub.d"},
		"another console":          {with("console=tty0 console=ttyS0"), with("console=ttyS0 console=tty0"), Arguments{Add: add}, "in another order"},
		"another default":          {same, inDefault(`set default="0"`, `set default="1>1"`), Arguments{Add: add}, "with single and without quiet"},
		"words in another order":   {same, inDefault("ro  quiet", "quiet ro"), Arguments{Add: add}, ""},
		"the root spelled by name": {same, inDefault(root, "linux	/boot/vmlinuz-6.1.0-56-amd64 root=/dev/vda1"), Arguments{Add: add}, ""},
		"another kernel":           {same, func(c string) string { return strings.ReplaceAll(c, "6.1.0-56", "6.1.0-60") }, Arguments{Add: add}, ""},
		"other words for recovery": {same, func(c string) string { return strings.ReplaceAll(c, "ro single", "ro single nomodeset nohz=off") }, Arguments{Add: add}, ""},
		"another system":           {same, func(c string) string { return c + "menuentry 'Other' {\n\tlinux /o root=/dev/sdb1 nohz=off\n}\n" }, Arguments{Add: add}, ""},
		"a default that is saved":  {same, inDefault(`set default="0"`, `set default="${saved_entry}"`), Arguments{Add: add}, ""},
		"ours, that grub.cfg has":  {with(strings.Join(before, " ")), with(strings.Join(before, " ")), Arguments{Add: add, Remove: before}, ""},
		"ours, that it has lost":   {same, with(strings.Join(before, " ")), Arguments{Add: add, Remove: before}, ""},
		"a tool that fails":        {same, func(string) string { return "" }, Arguments{Add: add}, "making grub.cfg: invalid argument"},
		"nothing at all":           {same, func(string) string { return "\n" }, Arguments{Add: add}, "the new grub.cfg is empty"},
		"what is given back":       {with(strings.Join(before, " ")), with("nosmt"), Arguments{Remove: before}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := debianHost(t)
			config := h[grubConfigFile]
			h[grubConfigFile] = tc.has(config)
			h["/etc/default/grub"] = "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet nohz=off\"\n"
			h["/etc/default/grub.d/50-smt.cfg"] = "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT nosmt\"\n"
			had := maps.Clone(h)
			loader, err := Find(generating{h, tc.makes(config)})
			if err != nil {
				t.Fatal(err)
			}
			err = loader.Check(t.Context(), tc.change)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("Check() = %v, want %q", err, tc.want)
			}
			if diff := cmp.Diff(had, h); diff != "" {
				t.Errorf("the host before and after (-before +after):\n%s", diff)
			}
		})
	}
}

// TestGeneratedOfDebian: what becomes permanent is the line that was tried. Taking back is not kept up by what others have put there.
func TestGeneratedOfDebian(t *testing.T) {
	add := operation.AddKernelArguments("nohz=on").Arguments
	ours := strings.Join(add, " ")
	cases := map[string]struct {
		has, makes string
		change     Arguments
		want       string
	}{
		"as tried":                     {"quiet", "quiet " + ours, Arguments{Add: add}, ""},
		"once more":                    {"quiet " + ours, "quiet " + ours, Arguments{Add: add}, ""},
		"with another of the same":     {"quiet", "quiet nohz=off " + ours, Arguments{Add: add}, "with nohz=off, and grub.cfg has it otherwise"},
		"with what was put there":      {"quiet nohz=off", "quiet nohz=off " + ours, Arguments{Add: add}, "already has nohz=off"},
		"without a word":               {"quiet", ours, Arguments{Add: add}, "without quiet"},
		"without ours":                 {"quiet", "quiet", Arguments{Add: add}, "lacks nohz=on"},
		"taken back":                   {"quiet", "quiet nosmt " + ours, Arguments{Add: add, Back: true}, ""},
		"given back":                   {"quiet " + ours, "quiet nosmt", Arguments{Remove: add}, ""},
		"given back, and not all gone": {"quiet " + ours, "quiet " + ours, Arguments{Remove: add}, "has the marker"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := debianHost(t)
			config := h[grubConfigFile]
			h[grubConfigFile] = inDefault("quiet", tc.has)(config)
			loader, err := Find(generating{h, inDefault("quiet", tc.makes)(config)})
			if err != nil {
				t.Fatal(err)
			}
			writes, err := loader.Generate(t.Context(), tc.change)
			if tc.want == "" && (err != nil || len(writes) != 1) || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("Generate() = %d writes, %v, want %q", len(writes), err, tc.want)
			}
			if _, left := h[grubGenerated]; left {
				t.Errorf("%s is left", grubGenerated)
			}
		})
	}
}

func TestUnsupportedBootLoaders(t *testing.T) {
	cases := map[string]struct {
		host tree
		want string
	}{
		"rpm-ostree":           {tree{"/ostree/deploy/fedora/x": "", "/boot/grub/grub.cfg": "", "/etc/default/grub": ""}, "rpm-ostree kargs --append-if-missing=ARGUMENT"},
		"an image":             {tree{"/efi/EFI/Linux/a.efi": "", "/efi/loader/loader.conf": ""}, "build the image anew"},
		"a Raspberry Pi":       {tree{"/boot/firmware/cmdline.txt": "console=tty1 root=a\n"}, "the only line of /boot/firmware/cmdline.txt"},
		"extlinux":             {tree{"/boot/extlinux/extlinux.conf": ""}, "the line append of /boot/extlinux/extlinux.conf"},
		"nothing that we know": {tree{}, "neither GRUB nor another known boot loader"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Find(tc.host); err == nil || !strings.Contains(err.Error(), "kernel arguments are not supported here") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Find() = %v, want %q", err, tc.want)
			}
		})
	}
}

func TestFindEntry(t *testing.T) {
	config := parseGRUBConfig(string(golden.Get(t, "debian12-grub.cfg")))
	cases := map[string]string{
		"0": "Debian GNU/Linux", "": "Debian GNU/Linux", "7": "Debian GNU/Linux", "Debian GNU/Linux": "Debian GNU/Linux",
		"1>0": "Debian GNU/Linux, with Linux 6.1.0-56-amd64",
		"1>2": "Debian GNU/Linux, with Linux 6.1.0-50-amd64",
		"gnulinux-advanced-5d0c1b2a>gnulinux-6.1.0-50-amd64-advanced-5d0c1b2a": "Debian GNU/Linux, with Linux 6.1.0-50-amd64",
		"1": "Debian GNU/Linux, with Linux 6.1.0-56-amd64",
	}
	for name, want := range cases {
		if got, err := config.find(name); err != nil || got.title != want {
			t.Errorf("find(%q) = %v, %v, want %q", name, got, err, want)
		}
	}
	if config.defaultEntry != "0" {
		t.Errorf("the default is %q", config.defaultEntry)
	}
}

func TestChangeOfArguments(t *testing.T) {
	line := []string{"root=a", "ro", "nohz=on", "quiet", "isolcpus=2", "lowlatency.boot=1"}
	got, err := Arguments{Remove: []string{"isolcpus=2", "lowlatency.boot=1"}, Add: []string{"isolcpus=4", "lowlatency.boot=2"}}.change(line)
	if diff := cmp.Diff([]string{"root=a", "ro", "nohz=on", "quiet", "isolcpus=4", "lowlatency.boot=2"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	got, err = Arguments{Remove: []string{"isolcpus=2", "lowlatency.boot=1"}}.change(line)
	if diff := cmp.Diff([]string{"root=a", "ro", "nohz=on", "quiet"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func FuzzEnvironment(f *testing.F) {
	f.Add(block("a=b\nnext_entry=\n"))
	f.Add(block("# comment\na=b\n"))
	f.Fuzz(func(t *testing.T, content string) {
		e, err := parseEnvironment([]byte(content))
		if err != nil {
			return
		}
		armed := e.set(nextEntry, trialEntry)
		text, err := armed.block()
		if err != nil {
			return
		}
		again, err := parseEnvironment(text)
		if err != nil || again.get(nextEntry) != trialEntry {
			t.Fatalf("%q is read as %+v, %v", text, again, err)
		}
	})
}

func FuzzGRUBConfig(f *testing.F) {
	f.Add("menuentry 'a' {\n\tlinux /vmlinuz ro\n}\n", "0")
	f.Add("submenu \"b\" --id c {\nmenuentry 'a' {\n}\n}\n", "c>a")
	f.Fuzz(func(t *testing.T, content, name string) {
		config := parseGRUBConfig(content)
		if found, err := config.find(name); err == nil && found.submenu {
			t.Fatal("a submenu is no entry that starts a kernel")
		}
	})
}
