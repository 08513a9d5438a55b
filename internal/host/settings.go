// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"path"
	"strings"
)

// SysctlPath returns the file of a sysctl: kernel.timer_migration is /proc/sys/kernel/timer_migration. As
// in sysctl.d(5), dots and slashes change places if the first separator is a dot, so that
// net.ipv4.conf.enp3s0/200.forwarding names the interface enp3s0.200.
func SysctlPath(name string) string {
	if first := strings.IndexAny(name, "./"); first >= 0 && name[first] == '.' {
		name = strings.Map(swapSeparators, name)
	}
	return "/proc/sys" + path.Clean("/"+name)
}

func swapSeparators(r rune) rune {
	switch r {
	case '.':
		return '/'
	case '/':
		return '.'
	}
	return r
}
