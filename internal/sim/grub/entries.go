// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package grub

import "strings"

// Where GRUB of RHEL and Fedora keeps what it reads.
const (
	EntriesFolder          = "/boot/loader/entries"
	EntriesEnvironmentFile = "/boot/grub2/grubenv"
	// DefaultID names the entry that is started by default.
	DefaultID = "5f1e2d3c4b5a69788796a5b4c3d2e1f0-5.14.0-503.11.1.el9_5.x86_64"
)

// EntriesFiles are those of a host of RHEL 9 with two kernels and an entry for rescue: /boot is a partition of its own, the root is on LVM.
func EntriesFiles(line string) map[string]string {
	const machine = "5f1e2d3c4b5a69788796a5b4c3d2e1f0"
	files := map[string]string{
		"/boot/grub2/grub.cfg": "if [ -f ${config_directory}/grubenv ]; then\n  load_env -f ${config_directory}/grubenv\nfi\nif [ \"${next_entry}\" ] ; then\n" +
			"   set default=\"${next_entry}\"\n   set next_entry=\n   save_env next_entry\n   set boot_once=true\nelse\n   set default=\"${saved_entry}\"\nfi\ninsmod blscfg\n" + "blscfg\n",
		EntriesEnvironmentFile: Environment("saved_entry=" + DefaultID + "\nmenu_auto_hide=1\nboot_success=1\nboot_indeterminate=0\n"),
		"/etc/kernel/cmdline":  line + "\n",
		"/etc/default/grub":    "GRUB_DEFAULT=saved\nGRUB_ENABLE_BLSCFG=true\n",
		"/proc/1/mounts":       "/dev/mapper/rhel-root / xfs rw,seclabel 0 0\n/dev/vda2 /boot xfs rw,seclabel 0 0\n",
		"/dev/vda2":            "",
	}
	for _, version := range []string{"5.14.0-427.42.1.el9_4.x86_64", "5.14.0-503.11.1.el9_5.x86_64", "0-rescue"} {
		id := machine + "-" + version
		files[EntriesFolder+"/"+id+".conf"] = "title Red Hat Enterprise Linux (" + version + ") 9.5 (Plow)\nversion " + version + "\nlinux /vmlinuz-" + version +
			"\ninitrd /initramfs-" + version + ".img $tuned_initrd\noptions " + line + " $tuned_params\ngrub_users $grub_users\ngrub_arg --unrestricted\ngrub_class rhel\n"
	}
	return files
}

// StartEntries is what GRUB does with entries, by their names: it starts what saved_entry names, or the trial once. Its environment is left
// without what it has started.
func StartEntries(entries map[string]string, environment string) (line, trial, left string) {
	saved, next := "", ""
	for variable := range strings.Lines(environment) {
		name, value, _ := strings.Cut(strings.TrimSuffix(variable, "\n"), "=")
		switch name {
		case "saved_entry":
			saved = value
		case "next_entry":
			next = value
		}
	}
	line = optionsOf(entries[saved])
	if next == "" {
		return line, "", environment
	}
	cleared := strings.TrimRight(strings.Replace(environment, "next_entry="+next+"\n", "next_entry=\n", 1), "#")
	return line, optionsOf(entries[next]), Environment(strings.TrimPrefix(cleared, environmentHeader))
}

// optionsOf are the arguments of an entry, without the variables that TuneD may set.
func optionsOf(entry string) string {
	for line := range strings.Lines(entry) {
		if options, found := strings.CutPrefix(line, "options "); found {
			return strings.Join(strings.Fields(strings.ReplaceAll(options, "$tuned_params", "")), " ")
		}
	}
	return ""
}
