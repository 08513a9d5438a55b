// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package grub plays GRUB as Debian sets it up, and as RHEL and Fedora do, with an entry for each kernel: what it reads when a machine
// starts, and what its tools write.
package grub

import "strings"

// Where GRUB and its tools keep what they read.
const (
	ConfigFile      = "/boot/grub/grub.cfg"
	CustomFile      = "/boot/grub/custom.cfg"
	EnvironmentFile = "/boot/grub/grubenv"
	ArgumentsFile   = "/etc/default/grub.d/zz-lowlatency.cfg"
	DefaultsFile    = "/etc/default/grub"
)

// environmentHeader is in front of the variables.
const environmentHeader = "# GRUB Environment Block\n"

// environmentBytes is the size of GRUB's environment, which it overwrites and never makes longer.
const environmentBytes = 1024

const configuration = `if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="0"
fi
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-1' {
	load_video
	linux	/boot/vmlinuz-6.1 LINE
	initrd	/boot/initrd.img-6.1
}
if [ -f  ${config_directory}/custom.cfg ]; then
  source ${config_directory}/custom.cfg
fi
`

// Config is grub.cfg with a line for its only entry.
func Config(line string) string { return strings.Replace(configuration, "LINE", line, 1) }

// Made is what grub-mkconfig makes of a line, what /etc/default/grub adds to it by GRUB_CMDLINE_LINUX_DEFAULT, and the file with our arguments.
func Made(line, defaults, arguments string) string {
	_, set, found := strings.Cut(defaults, `GRUB_CMDLINE_LINUX_DEFAULT="`)
	if found {
		words, _, _ := strings.Cut(set, `"`)
		line += " " + words
	}
	_, added, _ := strings.Cut(arguments, `="$GRUB_CMDLINE_LINUX_DEFAULT`)
	return Config(line + strings.TrimSuffix(added, "\"\n"))
}

// Environment is a block with variables, each a line.
func Environment(variables string) string {
	text := environmentHeader + variables
	return text + strings.Repeat("#", environmentBytes-len(text))
}

// LineOf is the line of the first entry of a configuration.
func LineOf(config string) string {
	for line := range strings.Lines(config) {
		if arguments, found := strings.CutPrefix(strings.TrimSpace(line), "linux"); found {
			return strings.Join(strings.Fields(arguments)[1:], " ")
		}
	}
	return ""
}

// Start is what GRUB does: it starts the default entry, or the trial once. It returns the line of both, that of the trial empty where
// none is to be tried, and the environment that it leaves: the variable is cleared before anything is started.
func Start(config, custom, environment string) (line, trial, left string) {
	line = LineOf(config)
	if !strings.Contains(environment, "next_entry=lowlatency-trial\n") {
		return line, "", environment
	}
	return line, LineOf(custom), Environment("next_entry=\n")
}
