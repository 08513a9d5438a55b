// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bootloader

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

const (
	kernel9 = "5f1e2d3c4b5a69788796a5b4c3d2e1f0-5.14.0-503.el9.x86_64"
	options = "options root=/dev/mapper/rhel-root ro crashkernel=1G-4G:192M rhgb quiet"
)

// redHatTrial adds an argument on that host, after a change.
func redHatTrial(t *testing.T, change func(h tree)) ([]Write, error) {
	t.Helper()
	h := redHatHost()
	change(h)
	loader, err := Find(h)
	if err != nil {
		t.Fatal(err)
	}
	return loader.Trial(Arguments{Add: operation.AddKernelArguments("nohz=on").Arguments})
}

// redHatConfig is what decides about the default in a grub.cfg of grub2-mkconfig, with the script 08_fallback_counting.
const redHatConfig = `if [ "${next_entry}" ] ; then
   set default="${next_entry}"
else
   set default="${saved_entry}"
fi
if [ -n "${boot_counter}" -a "${boot_success}" = "0" ]; then
  if  [ "${boot_counter}" = "0" -o "${boot_counter}" = "-1" ]; then
    set default=1
    set boot_counter=-1
  else
    decrement boot_counter
  fi
  save_env boot_counter
fi
blscfg
`

// redHatHost is a host as RHEL 9 and its rebuilds set it up: /boot on a partition of its own, the root on LVM.
func redHatHost() tree {
	entry := func(version string) string {
		return "title Linux (" + version + ")\nversion " + version + "\nlinux /vmlinuz-" + version + "\ninitrd /initramfs-" + version +
			".img $tuned_initrd\n" + options + "\ngrub_users $grub_users\ngrub_arg --unrestricted\ngrub_class rhel\n"
	}
	return tree{
		"/boot/grub2/grub.cfg":                      redHatConfig,
		"/boot/grub2/grubenv":                       block("saved_entry=" + kernel9 + "\nboot_success=1\n"),
		"/boot/loader/entries/" + kernel9 + ".conf": entry("5.14.0-503.el9.x86_64"),
		"/boot/loader/entries/5f1e-5.14.0-427.conf": entry("5.14.0-427.el9.x86_64"),
		"/boot/loader/entries/5f1e-0-rescue.conf":   entry("0-rescue"),
		"/etc/kernel/cmdline":                       "root=/dev/mapper/rhel-root ro rhgb quiet\n",
		"/etc/default/grub":                         "GRUB_ENABLE_BLSCFG=true\n",
		"/proc/1/mounts":                            "/dev/mapper/rhel-root / xfs rw 0 0\n/dev/vda2 /boot xfs rw 0 0\n",
		"/dev/vda2":                                 "",
		"/usr/bin/dracut":                           "",
	}
}

// TestDefaultOfRedHat: where GRUB may start an entry by its number, a trial that has failed could be the one.
func TestDefaultOfRedHat(t *testing.T) {
	instead := func(line string) func(h tree) {
		return func(h tree) {
			h["/boot/grub2/grub.cfg"] = strings.Replace(redHatConfig, `   set default="${saved_entry}"`, line, 1)
		}
	}
	for name, tc := range map[string]struct {
		change func(h tree)
		want   string
	}{
		"saved":                        {func(tree) {}, ""},
		"saved, in other quotes":       {instead("\tset default='${saved_entry}' "), ""},
		"GRUB_DEFAULT=0":               {instead(`   set default="0"`), "sets default to 0"},
		"the name of an entry":         {instead(`   set default="` + kernel9 + `"`), "sets default to " + kernel9},
		"no default at all":            {instead(""), "never reads saved_entry"},
		"another one in custom.cfg":    {func(h tree) { h["/boot/grub2/custom.cfg"] = "set default=0\n" }, "sets default to 0"},
		"entries alone in custom.cfg":  {func(h tree) { h["/boot/grub2/custom.cfg"] = "menuentry 'rescue' {\n}\n" }, ""},
		"without the word set":         {func(h tree) { h["/boot/grub2/custom.cfg"] = "default=0\n" }, "sets default to 0"},
		"within a line":                {func(h tree) { h["/boot/grub2/grub.cfg"] += "if true; then set default=3; fi\n" }, "sets default to 3"},
		"a remark":                     {func(h tree) { h["/boot/grub2/grub.cfg"] += "# set default=3\n" }, ""},
		"another variable":             {func(h tree) { h["/boot/grub2/grub.cfg"] += "set default_kernelopts=\"root=x default_hugepagesz=1G\"\n" }, ""},
		"starts that are counted":      {func(h tree) { h["/boot/grub2/grubenv"] = block("saved_entry=" + kernel9 + "\nboot_counter=2\n") }, "sets default to 1"},
		"one of somebody behind saved": {func(h tree) { h["/boot/grub2/grub.cfg"] += "set default=2\n" }, "sets default to 2"},
	} {
		_, err := redHatTrial(t, tc.change)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "GRUB_DEFAULT=saved")) {
			t.Errorf("%s: Trial() = %v, want %q", name, err, tc.want)
		}
	}
}

// TestKernelsToComeOfRedHat: a new kernel takes what happens to run, where no file says what it is to be started with.
func TestKernelsToComeOfRedHat(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(h tree)
		refused bool
	}{
		"a file":  {func(tree) {}, false},
		"no file": {func(h tree) { delete(h, "/etc/kernel/cmdline") }, true},
		"no file, but kernelopts": {func(h tree) {
			delete(h, "/etc/kernel/cmdline")
			start := "/boot/loader/entries/" + kernel9 + ".conf"
			h[start] = strings.Replace(h[start], options, "options $kernelopts $tuned_params", 1)
		}, false},
	} {
		_, err := redHatTrial(t, tc.change)
		if tc.refused != (err != nil) || err != nil && !strings.Contains(err.Error(), "/etc/kernel/cmdline is absent, so that a new kernel would be installed with") {
			t.Errorf("%s: Trial() = %v", name, err)
		}
	}
}

// TestWayBackOfRedHat: what has become of the boot loader's files since keeps no arguments from being taken away.
func TestWayBackOfRedHat(t *testing.T) {
	h := redHatHost()
	add := operation.AddKernelArguments("nohz=on").Arguments
	start := "/boot/loader/entries/" + kernel9 + ".conf"
	h[start] = strings.Replace(h[start], options, options+" "+strings.Join(add, " "), 1)
	h["/boot/grub2/grub.cfg"] = strings.Replace(redHatConfig, `"${saved_entry}"`, "0", 1)
	delete(h, "/etc/kernel/cmdline")
	loader, err := Find(h)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loader.Trial(Arguments{Remove: add}); err != nil {
		t.Error(err)
	}
	if _, err := loader.Trial(Arguments{Add: []string{"nohz=off"}, Remove: add}); err == nil {
		t.Error("other arguments are tried")
	}
}

// TestPasswordOfRedHat: a host that asks for a password before it starts its default entry does not come back by itself.
func TestPasswordOfRedHat(t *testing.T) {
	const start = "/boot/loader/entries/" + kernel9 + ".conf"
	asking := func(h tree) { h[start] = strings.Replace(h[start], "grub_arg --unrestricted\n", "", 1) }
	byFile := "if [ -n \"${GRUB2_PASSWORD}\" ]; then\n  set superusers=\"root\"\nfi\n"
	for name, tc := range map[string]struct {
		change  func(h tree)
		refused bool
	}{
		"no password":                  {func(h tree) { asking(h); h["/boot/grub2/grub.cfg"] += byFile }, false},
		"one for changes alone":        {func(h tree) { h["/boot/grub2/user.cfg"] = "GRUB2_PASSWORD=grub.pbkdf2\n" }, false},
		"one for each start":           {func(h tree) { asking(h); h["/boot/grub2/user.cfg"] = "GRUB2_PASSWORD=grub.pbkdf2\n" }, true},
		"one that grub.cfg has itself": {func(h tree) { asking(h); h["/boot/grub2/grub.cfg"] += "set superusers=\"root\"\n" }, true},
	} {
		_, err := redHatTrial(t, tc.change)
		if tc.refused != (err != nil) || err != nil && !strings.Contains(err.Error(), `add the line "grub_arg --unrestricted" to `+start) {
			t.Errorf("%s: Trial() = %v", name, err)
		}
	}
}

func TestTrialOfRedHat(t *testing.T) {
	h := redHatHost()
	loader, err := Find(h)
	if err != nil {
		t.Fatal(err)
	}
	add := operation.AddKernelArguments("nohz=on").Arguments
	writes, err := loader.Trial(Arguments{Add: add})
	if err != nil || len(writes) != 1 || writes[0].Path != "/boot/loader/entries/lowlatency-trial.conf" {
		t.Fatalf("Trial() = %+v, %v", writes, err)
	}
	want := strings.Replace(h["/boot/loader/entries/"+kernel9+".conf"], options, options+" "+strings.Join(add, " ")+" rd.shell=0 rd.emergency=reboot", 1)
	want = strings.Replace(want, "title Linux (5.14.0-503.el9.x86_64)", "title Low latency: trial", 1)
	if diff := cmp.Diff(want, string(writes[0].State.Content)); diff != "" {
		t.Errorf("the trial's entry (-want +got):\n%s", diff)
	}
	armed, err := loader.Arm(t.Context())
	if err != nil || armed.Path != "/boot/grub2/grubenv" || !strings.Contains(string(armed.State.Content), "\nnext_entry=lowlatency-trial\n") {
		t.Errorf("Arm() = %+v, %v", armed, err)
	}
}

// TestTrialsWithDracut: the initial memory disk of a trial that does not find the root reboots. Nothing that stays has the words.
func TestTrialsWithDracut(t *testing.T) {
	add := operation.AddKernelArguments("nohz=on").Arguments
	const words = " rd.shell=0 rd.emergency=reboot\n"
	lines := systemdBootHost()
	lines[newest] = strings.Replace(lines[newest], "linux ", "options rd.shell=1\nlinux ", 1)
	for name, h := range map[string]tree{"Debian": debianHost(t), "systemd-boot": systemdBootHost(), "two lines of options": lines} {
		t.Run(name, func(t *testing.T) {
			text := func() string {
				t.Helper()
				writes, err := findLoader(t, h).Trial(Arguments{Add: add})
				if err != nil || len(writes) != 1 {
					t.Fatalf("Trial() = %+v, %v", writes, err)
				}
				return string(writes[0].State.Content)
			}
			without := text()
			h["/usr/bin/dracut"] = ""
			// The marker is the last argument of the plan, and the words stand behind it.
			marker := operation.MarkerOf(add)
			if diff := cmp.Diff(strings.Replace(without, marker+"\n", marker+words, 1), text()); diff != "" || strings.Contains(without, words) {
				t.Errorf("the trial's entry (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPermanentOfRedHat makes the arguments permanent, makes it twice, and takes them away.
func TestPermanentOfRedHat(t *testing.T) {
	h := redHatHost()
	before := redHatHost()
	h["/boot/loader/entries/lowlatency-trial.conf"] = "options x\n"
	before["/boot/loader/entries/lowlatency-trial.conf"] = "options x\n"
	loader, err := Find(h)
	if err != nil {
		t.Fatal(err)
	}
	add := operation.AddKernelArguments("nohz=on").Arguments
	generate := func(change Arguments) {
		t.Helper()
		writes, err := loader.Generate(t.Context(), change)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range writes {
			h[w.Path] = string(w.State.Content)
		}
	}
	generate(Arguments{Add: add})
	text := " " + strings.Join(add, " ")
	want := redHatHost()
	for _, name := range []string{"/boot/loader/entries/" + kernel9 + ".conf", "/boot/loader/entries/5f1e-5.14.0-427.conf"} {
		want[name] = strings.Replace(want[name], options, options+text, 1)
	}
	want["/etc/kernel/cmdline"] = "root=/dev/mapper/rhel-root ro rhgb quiet" + text + "\n"
	want["/boot/loader/entries/lowlatency-trial.conf"] = "options x\n"
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("made permanent (-want +got):\n%s", diff)
	}
	generate(Arguments{Add: add})
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("made permanent twice (-want +got):\n%s", diff)
	}
	generate(Arguments{Remove: add})
	if diff := cmp.Diff(before, h); diff != "" {
		t.Errorf("taken away (-before +after):\n%s", diff)
	}
}

func TestTrialOfRedHatIsRefused(t *testing.T) {
	add := operation.AddKernelArguments("nohz=on").Arguments
	cases := map[string]struct {
		change func(h tree)
		add    []string
		want   string
	}{
		"no default that is named": {func(h tree) { h["/boot/grub2/grubenv"] = block("") }, add, "name one with grub2-set-default"},
		"a default that is gone":   {func(h tree) { h["/boot/grub2/grubenv"] = block("saved_entry=gone\n") }, add, "name one with grub2-set-default"},
		"/boot on LVM":             {func(h tree) { h["/proc/1/mounts"] = "/dev/mapper/rhel-root / xfs rw 0 0\n" }, add, "a volume of LVM or RAID"},
		"an argument of others":    {func(tree) {}, operation.AddKernelArguments("crashkernel=1G").Arguments, "already has crashkernel=1G-4G:192M"},
		"a grub.cfg of somebody":   {func(h tree) { h["/boot/grub2/grub.cfg"] = "blscfg\n" }, add, "does not read next_entry"},
		"an entry without a line":  {func(h tree) { h["/boot/loader/entries/"+kernel9+".conf"] = "title x\n" }, add, "has no line options"},
		"an argument in a variable": {func(h tree) {
			h["/boot/loader/entries/"+kernel9+".conf"] = "options $kernelopts\n"
			h["/boot/grub2/grubenv"] = block("saved_entry=" + kernel9 + "\nkernelopts=root=a nohz=off\n")
		}, add, "already has nohz=off"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := redHatHost()
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

// TestCheckOfEntries: words of others are found before anything is written wherever Generate would put ours beside them, and nowhere else.
func TestCheckOfEntries(t *testing.T) {
	in := func(name, from, to string) func(tree) {
		return func(h tree) { h[name] = strings.Replace(h[name], from, to, 1) }
	}
	const (
		other  = "/boot/loader/entries/5f1e-5.14.0-427.conf"
		rescue = "/boot/loader/entries/5f1e-0-rescue.conf"
		first  = "/boot/loader/entries/" + kernel9 + ".conf"
		tuned  = "quiet $tuned_params"
	)
	set := func(variables string) func(tree) {
		return func(h tree) {
			in(first, "quiet", tuned)(h)
			h["/boot/grub2/grubenv"] = block("saved_entry=" + kernel9 + "\n" + variables)
		}
	}
	cases := map[string]struct {
		host   tree
		change func(h tree)
		want   string
	}{
		"nothing":                        {redHatHost(), func(tree) {}, ""},
		"for kernels to come":            {redHatHost(), in(newKernels, "quiet", "quiet nohz=off"), newKernels + ": the kernel's command line already has nohz=off"},
		"in another entry":               {redHatHost(), in(other, "quiet", "quiet nohz=off"), other + ": the kernel's command line already has nohz=off"},
		"in an entry for rescue":         {redHatHost(), in(rescue, "quiet", "quiet nohz=off"), ""},
		"in a variable of TuneD":         {redHatHost(), set("tuned_params=skew_tick=1 nohz=off\n"), "already has nohz=off"},
		"in a variable that is not used": {redHatHost(), set("others=nohz=off\n"), ""},
		"in braces":                      {redHatHost(), func(h tree) { set("tuned_params=nohz=off\n")(h); in(first, "$tuned_params", "${tuned_params}")(h) }, "already has nohz=off"},
		"in a variable of grub.cfg":      {redHatHost(), func(h tree) { set("")(h); h["/boot/grub2/grub.cfg"] += "set tuned_params=\"nohz=off\"\n" }, "already has nohz=off"},
		"in grub.cfg, and the block counts": {redHatHost(), func(h tree) {
			set("tuned_params=a\n")(h)
			h["/boot/grub2/grub.cfg"] += "set tuned_params=\"nohz=off\"\n"
		}, ""},
		"systemd-boot":                   {systemdBootHost(), func(tree) {}, ""},
		"systemd-boot, in another entry": {systemdBootHost(), in(older, "quiet", "quiet nohz=off"), older + ": the kernel's command line already has nohz=off"},
		"systemd-boot, of another system": {systemdBootHost(), func(h tree) {
			in(older, "quiet", "quiet nohz=off")(h)
			in(older, "machine-id ", "machine-id 0")(h)
		}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.change(tc.host)
			had := maps.Clone(tc.host)
			err := findLoader(t, tc.host).Check(t.Context(), Arguments{Add: operation.AddKernelArguments("nohz=on").Arguments})
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("Check() = %v, want %q", err, tc.want)
			}
			if diff := cmp.Diff(had, tc.host); diff != "" {
				t.Errorf("the host before and after (-before +after):\n%s", diff)
			}
		})
	}
}
