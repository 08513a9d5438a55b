// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bootloader

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/systemdboot"
)

const (
	newest  = systemdboot.Entries + "/" + systemdboot.MachineID + "-6.1.0-41-amd64.conf"
	older   = systemdboot.Entries + "/" + systemdboot.MachineID + "-6.1.0-9-amd64.conf"
	sdLine  = "root=UUID=1 ro quiet"
	sdMount = "/dev/vda2 / ext4 rw 0 0\nsystemd-1 /efi autofs rw,fd=57 0 0\n/dev/vda1 /efi vfat rw,umask=0077 0 0\n"
	sdTrial = systemdboot.Entries + "/lowlatency-trial.conf"
)

// systemdBootHost is a host whose variables of the firmware are files: no firmware is played.
func systemdBootHost() tree {
	h := tree(systemdboot.Files(sdLine))
	h["/proc/1/mounts"] = sdMount
	return h
}

func planned() []string { return operation.AddKernelArguments("nohz=on", "isolcpus=2-7").Arguments }

func findLoader(t *testing.T, h tree) Loader {
	t.Helper()
	loader, err := Find(h)
	if err != nil {
		t.Fatal(err)
	}
	return loader
}

func TestTrialOfSystemdBoot(t *testing.T) {
	h := systemdBootHost()
	loader := findLoader(t, h)
	writes, err := loader.Trial(Arguments{Add: planned()})
	if err != nil || len(writes) != 1 || writes[0].Path != sdTrial {
		t.Fatalf("Trial() = %+v, %v", writes, err)
	}
	golden.Assert(t, string(writes[0].State.Content), "systemd-boot-trial.conf")
	armed, err := loader.Arm(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// What systemd-boot is told: how the variable is kept, then the name of the entry's file in UTF-16 with a zero at its end.
	want := "\x07\x00\x00\x00" + strings.Join(strings.Split("lowlatency-trial.conf", ""), "\x00") + "\x00\x00\x00"
	if armed.Path != systemdboot.OneShot || string(armed.State.Content) != want {
		t.Errorf("Arm() = %s, %q", armed.Path, armed.State.Content)
	}
}

// TestOneShotOfSystemdBoot: the variable comes and goes with the trial, and what somebody else has set stays.
func TestOneShotOfSystemdBoot(t *testing.T) {
	h := systemdBootHost()
	loader := findLoader(t, h)
	armed, err := loader.Arm(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h[armed.Path] = string(armed.State.Content)
	if again, err := loader.Arm(t.Context()); err != nil || !again.State.Equal(armed.State) {
		t.Errorf("Arm() once more = %+v, %v", again, err)
	}
	if disarmed, err := loader.Disarmed(hostfile.State{}); err != nil || disarmed.Path != armed.Path || disarmed.State.Type != hostfile.Absent {
		t.Errorf("Disarmed() = %+v, %v", disarmed, err)
	}
	h[armed.Path] = string(encodeVariable("windows.conf"))
	if _, err := loader.Arm(t.Context()); err == nil || !strings.Contains(err.Error(), `somebody else has set what systemd-boot starts next: "windows.conf"`) {
		t.Errorf("Arm() over what somebody else has set = %v", err)
	}
	if disarmed, err := loader.Disarmed(hostfile.State{}); err != nil || string(disarmed.State.Content) != h[armed.Path] {
		t.Errorf("Disarmed() of what somebody else has set = %+v, %v", disarmed, err)
	}
}

// TestPermanentOfSystemdBoot makes the arguments permanent, makes it twice, changes them, and takes them away. The entry of another
// installation, one for rescue and one of another program stay.
func TestPermanentOfSystemdBoot(t *testing.T) {
	h := systemdBootHost()
	foreign := strings.ReplaceAll(h[older], systemdboot.MachineID, "1111")
	h[systemdboot.Entries+"/1111.conf"] = strings.Replace(foreign, "/1111/6.1.0-9-amd64/linux", "/"+systemdboot.MachineID+"/6.1.0-9-amd64/linux", 1)
	h[systemdboot.Entries+"/memtest.conf"] = "title memtest\nefi /memtest.efi\n"
	h[systemdboot.Entries+"/a-rescue.conf"] = h[older]
	h[sdTrial] = h[newest]
	// Somebody's own, with the words of ours.
	h[older] = strings.Replace(h[older], "quiet", "quiet panic=10", 1)
	before := maps.Clone(h)
	loader := findLoader(t, h)
	generate := func(change Arguments) tree {
		t.Helper()
		writes, err := loader.Generate(t.Context(), change)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range writes {
			h[w.Path] = string(w.State.Content)
		}
		return maps.Clone(h)
	}
	first := generate(Arguments{Add: planned()})
	golden.Assert(t, first[newest], "systemd-boot-permanent.conf")
	golden.Assert(t, first["/etc/kernel/cmdline"], "systemd-boot-cmdline")
	var changed []string
	for name := range first {
		if first[name] != before[name] {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	if diff := cmp.Diff([]string{newest, older, "/etc/kernel/cmdline"}, changed); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(first, generate(Arguments{Add: planned()})); diff != "" {
		t.Errorf("made permanent twice (-want +got):\n%s", diff)
	}
	other := operation.AddKernelArguments("nohz=on", "isolcpus=4-7").Arguments
	second := generate(Arguments{Remove: planned(), Add: other})
	if !strings.Contains(second[newest], " "+strings.Join(other, " ")+"\n") || strings.Contains(second[newest], "isolcpus=2-7") {
		t.Errorf("with other arguments:\n%s", second[newest])
	}
	if diff := cmp.Diff(before, generate(Arguments{Remove: other})); diff != "" {
		t.Errorf("taken away (-before +after):\n%s", diff)
	}
}

func TestTrialOfSystemdBootIsRefused(t *testing.T) {
	variable := func(name, text string) func(tree) {
		return func(h tree) { h[variableFile(name)] = string(encodeVariable(text)) }
	}
	inEntry := func(name, old, changed string) func(tree) {
		return func(h tree) { h[name] = strings.ReplaceAll(h[name], old, changed) }
	}
	rename := func(name string) func(tree) {
		return func(h tree) {
			h[systemdboot.Entries+"/"+name] = h[newest]
			delete(h, newest)
		}
	}
	// byName has one entry, which has its place by its name alone.
	byName := func(h tree) {
		h[systemdboot.Entries+"/arch.conf"] = strings.Replace(h[newest], "sort-key", "#", 1)
		delete(h, newest)
		delete(h, older)
	}
	cases := map[string]struct {
		change func(h tree)
		want   string
	}{
		"nobody has said what has started the host": {func(h tree) {
			delete(h, variableFile(loaderInfo))
		}, "no loader has said that it is systemd-boot"},
		"a loader that starts nothing once":  {func(h tree) { h[variableFile(loaderFeatures)] = "\x06\x00\x00\x00\xf7\x1f\x00\x00\x00\x00\x00\x00" }, "cannot start an entry once"},
		"a loader that says nothing of it":   {func(h tree) { delete(h, variableFile(loaderFeatures)) }, "cannot start an entry once"},
		"no arguments for new kernels":       {func(h tree) { delete(h, newKernels) }, "/etc/kernel/cmdline is absent, so that a new kernel"},
		"a comment among them":               {func(h tree) { h[newKernels] = "# mine\nroot=a\n" }, "it holds a comment"},
		"an argument of others among them":   {func(h tree) { h[newKernels] = "nohz=off\n" }, "/etc/kernel/cmdline: the kernel's command line already has nohz=off"},
		"an argument of others in the entry": {inEntry(newest, "quiet", "isolcpus=1"), "already has isolcpus=1"},
		"a partition that is not mounted":    {func(h tree) { h["/proc/1/mounts"] = "/dev/vda2 / ext4 rw 0 0\n" }, "no partition is mounted there"},
		"a partition mounted read-only":      {func(h tree) { h["/proc/1/mounts"] = "/dev/vda1 /efi vfat ro 0 0\n" }, "is mounted read-only"},
		"a file system of somebody":          {func(h tree) { h["/proc/1/mounts"] = "/dev/vda1 /efi ext4 rw 0 0\n" }, "only FAT is supported"},
		"no entries": {func(h tree) {
			delete(h, newest)
			delete(h, older)
		}, "mount the boot partition"},
		"a default that is an image":            {inEntry(newest, "linux ", "uki "), "starts no kernel by its line linux"},
		"a default of another installation":     {inEntry(newest, "machine-id ", "machine-id 0"), "another installation"},
		"a default for rescue":                  {rename("z-rescue.conf"), "one for rescue"},
		"a default that is counted":             {rename(systemdboot.MachineID + "-6.1.0-41-amd64+3.conf"), "is still counted"},
		"a default that is preferred":           {variable(loaderPreferred, "a.conf"), "chosen by \"preferred\""},
		"a pattern that is none":                {variable(loaderDefault, "[a"), "the default entry is named by \"[a\""},
		"two configurations":                    {func(h tree) { h["/boot/loader/loader.conf"] = "timeout 3\n" }, "two files loader.conf"},
		"entries without an order of their own": {byName, "would no longer start"},
		"a default that any entry matches": {func(h tree) {
			h[systemdboot.Partition+"/loader/loader.conf"] = "default *\n"
			byName(h)
		}, "would no longer start"},
		"options in quotes": {func(h tree) {
			line := sdLine + " systemd.machine_id=" + systemdboot.MachineID
			h[newest] = strings.Replace(h[newest], line, `"`+line+`"`, 1)
		}, "in quotes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := systemdBootHost()
			tc.change(h)
			if _, err := findLoader(t, h).Trial(Arguments{Add: planned()}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Trial() = %v, want %q", err, tc.want)
			}
		})
	}
}

// TestRemovalOfSystemdBoot: a file that is no longer there keeps no arguments on the host.
func TestRemovalOfSystemdBoot(t *testing.T) {
	h := systemdBootHost()
	h[newest] = strings.Replace(h[newest], "quiet", "quiet "+strings.Join(planned(), " "), 1)
	delete(h, newKernels)
	writes, err := findLoader(t, h).Trial(Arguments{Remove: planned()})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(writes[0].State.Content); writes[0].Path != sdTrial || HasMarker(writes[0].State.Content) {
		t.Errorf("Trial() writes %s:\n%s", writes[0].Path, text)
	}
}

// TestDefaultOfSystemdBoot: what is tried is a copy of what would be started.
func TestDefaultOfSystemdBoot(t *testing.T) {
	variable := func(name, text string) func(tree) {
		return func(h tree) { h[variableFile(name)] = string(encodeVariable(text)) }
	}
	cases := map[string]struct {
		change func(h tree)
		want   string
	}{
		"the newest":           {func(tree) {}, "6.1.0-41"},
		"named by a variable":  {variable(loaderDefault, systemdboot.MachineID+"-6.1.0-9-AMD64.conf"), "6.1.0-9"},
		"named by a pattern":   {func(h tree) { h[systemdboot.Partition+"/loader/loader.conf"] = "# mine\ndefault *-9-*\n" }, "6.1.0-9"},
		"named, and not there": {variable(loaderDefault, "gone.conf"), "6.1.0-41"},
		"a variable counts more": {func(h tree) {
			h[systemdboot.Partition+"/loader/loader.conf"] = "default *-9-*\n"
			variable(loaderDefault, "*-41-*")(h)
		}, "6.1.0-41"},
		"the last one": {func(h tree) {
			variable(loaderDefault, "@saved")(h)
			variable(loaderLast, systemdboot.MachineID+"-6.1.0-9-amd64.conf")(h)
		}, "6.1.0-9"},
		"the newest counts as bad": {func(h tree) {
			h[systemdboot.Entries+"/"+systemdboot.MachineID+"-6.1.0-41-amd64+0-3.conf"] = h[newest]
			delete(h, newest)
		}, "6.1.0-9"},
		"the newest's kernel is gone":         {func(h tree) { delete(h, systemdboot.Partition+"/"+systemdboot.MachineID+"/6.1.0-41-amd64/linux") }, "6.1.0-9"},
		"the newest is for another processor": {func(h tree) { h[newest] += "architecture arm\n" }, "6.1.0-9"},
		"the newest has no sort-key":          {func(h tree) { h[newest] = strings.Replace(h[newest], "sort-key", "#", 1) }, "6.1.0-9"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := systemdBootHost()
			tc.change(h)
			writes, err := findLoader(t, h).Trial(Arguments{Add: planned()})
			if err != nil {
				t.Fatal(err)
			}
			if keys := entryKeys(string(writes[0].State.Content)); keys["version"] != tc.want+"-amd64" || keys["sort-key"] != "" {
				t.Errorf("the trial is %v, want %s", keys, tc.want)
			}
		})
	}
}

// TestWhoHasStarted: what the loader says counts more than files that are left.
func TestWhoHasStarted(t *testing.T) {
	h := systemdBootHost()
	maps.Copy(h, redHatHost())
	if loader := findLoader(t, h); loader.Name() != "systemd-boot" {
		t.Errorf("the loader is %s", loader.Name())
	}
	h[variableFile(loaderInfo)] = string(encodeVariable("GRUB 2.12"))
	if loader := findLoader(t, h); loader.Name() != "GRUB" {
		t.Errorf("the loader is %s", loader.Name())
	}
}

func TestCompareVersions(t *testing.T) {
	// From old to new, as the specification and the comment of systemd's function have them.
	ordered := []string{"", "abc", "abcde", "122.1", "123~rc1-1", "123", "123-a", "123-a.1", "123-1", "123-1.1", "123^post1", "123.a-1", "123.1-1", "123a-1", "00124", "124-1"}
	for i, a := range ordered {
		for j, b := range ordered {
			got := compareVersions(a, b)
			if got > 0 != (i > j) || got < 0 != (i < j) {
				t.Errorf("compareVersions(%q, %q) = %d", a, b, got)
			}
		}
	}
	if compareVersions("6.1.0-9-amd64", "6.1.0-41-amd64") >= 0 || compareVersions("123_a", "123a") != 0 || compareVersions("007", "7") != 0 {
		t.Error("numbers are compared as letters, or what is no version counts")
	}
}

func FuzzCompareVersions(f *testing.F) {
	f.Add("123~rc1-1", "123^post1")
	f.Add("--a", "~-..")
	f.Fuzz(func(t *testing.T, a, b string) {
		if one, other := compareVersions(a, b), compareVersions(b, a); one != -other || compareVersions(a, a) != 0 {
			t.Fatalf("%d, and the other way round %d", one, other)
		}
	})
}

// FuzzOptions adds arguments to an entry, adds them again, and takes them away: nothing else of it changes, to the byte.
func FuzzOptions(f *testing.F) {
	f.Add(systemdboot.Files(sdLine)[newest])
	f.Add("options a\n  options\tb  c \nlinux /x")
	f.Add("options  \noptions panic=10 a panic=10") //nolint:dupword // The key is given twice.
	f.Fuzz(func(t *testing.T, text string) {
		change := Arguments{Add: planned()}
		changed, err := change.changeOptions(text, asTheyAre)
		if err != nil || strings.Contains(text, operation.MarkerParameter) {
			return
		}
		if again, err := change.changeOptions(changed, asTheyAre); err != nil || again != changed {
			t.Fatalf("%q is changed to %q, and then to %q, %v", text, changed, again, err)
		}
		back, err := Arguments{Remove: planned()}.changeOptions(changed, asTheyAre)
		if err != nil || back != text {
			t.Fatalf("%q is changed to %q, and back to %q, %v", text, changed, back, err)
		}
	})
}

func FuzzVariable(f *testing.F) {
	f.Add("lowlatency-trial.conf")
	f.Fuzz(func(t *testing.T, text string) {
		clean := strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
		if got := decodeText(encodeVariable(clean)[attributeBytes:]); got != clean {
			t.Fatalf("%q is read as %q", clean, got)
		}
		_ = decodeText([]byte(text))
	})
}

func TestEntriesAreOrderedAsTheyAreNamed(t *testing.T) {
	counted := newMenuEntry(path.Join(systemdboot.Entries, "a+2-1.conf"), hostfile.State{})
	bad := newMenuEntry(path.Join(systemdboot.Entries, "z+0-3.conf"), hostfile.State{})
	plain := newMenuEntry(path.Join(systemdboot.Entries, "A+b.conf"), hostfile.State{})
	if counted.left != 2 || bad.left != 0 || plain.left != -1 || plain.id != "a+b.conf" || compareEntries(bad, counted) <= 0 {
		t.Errorf("%+v, %+v, %+v", counted, bad, plain)
	}
}
