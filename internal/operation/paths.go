// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package operation

import (
	"path"
	"strings"
)

// place is a folder and the names that files in it may have.
type place struct {
	// folder as a pattern of path.Match. With a slash at its end it holds the folders below it, too.
	folder string
	// name as a pattern of path.Match.
	name string
}

// ours is part of the name of every file in a folder that others write to.
const ours = "*lowlatency*"

// places are where operations of a kind may write or remove files. What is not here is refused, whoever asks for it.
func places() map[Kind][]place {
	return map[Kind][]place{
		File: {
			{"/etc/lowlatency", "*"},
			{"/etc/modprobe.d", ours + ".conf"},
			{"/etc/modules-load.d", ours + ".conf"},
			{"/etc/sysctl.d", ours + ".conf"},
			{"/etc/systemd/system.conf.d", ours + ".conf"},
			{"/etc/tmpfiles.d", ours + ".conf"},
			{"/etc/tuned/" + ours, "*.sh"},
			{"/etc/udev/rules.d", ours + ".rules"},
			{"/usr/local/bin", "lowlatency-*"},
		},
		Unit:          {{unitFolder, "*"}},
		DropIn:        {{unitFolder + "/*.d", ours + ".conf"}},
		TuneDProfile:  {{tunedFolder + "/" + ours, "tuned.conf"}, {tunedFolder + "/profiles/" + ours, "tuned.conf"}},
		RuntimeDropIn: {{"/etc/crio/crio.conf.d", ours + ".conf"}},
		KubeletDropIn: {
			{"/etc/kubernetes/kubelet.conf.d", ours + ".conf"},
			{"/etc/kubernetes/kubelet/config.json.d", ours + ".conf"},
			{"/etc/kubernetes/kubelet/kubelet.conf.d", ours + ".conf"},
			{"/etc/rancher/*/kubelet.conf.d", ours + ".conf"},
			{"/var/lib/kubelet/config.d", ours + ".conf"},
			{"/var/lib/kubelet/kubelet.conf.d", ours + ".conf"},
			{"/var/lib/rancher/*/agent/etc/kubelet.conf.d", ours + ".conf"},
		},
		StateFile: {
			{"/var/lib/kubelet", "cpu_manager_state"},
			{"/var/lib/kubelet", "dra_manager_state"},
			{"/var/lib/kubelet", "memory_manager_state"},
		},
		Sysfs: {
			{"/proc/irq", "default_smp_affinity"},
			{"/sys/bus/workqueue/devices/", "*"},
			{"/sys/devices/system/cpu/", "*"},
			{"/sys/devices/system/machinecheck/", "*"},
			{"/sys/devices/system/node/", "*"},
			{"/sys/devices/virtual/workqueue/", "*"},
			{"/sys/kernel/mm/", "*"},
			{"/sys/module/", "*"},
		},
	}
}

// Allowed reports whether operations of a kind may write to a path or remove it.
func Allowed(kind Kind, name string) bool {
	if name != path.Clean(name) || !path.IsAbs(name) {
		return false
	}
	for _, p := range places()[kind] {
		if p.holds(name) {
			return true
		}
	}
	return false
}

func (p place) holds(name string) bool {
	if !matches(p.name, path.Base(name)) {
		return false
	}
	if strings.HasSuffix(p.folder, "/") {
		return strings.HasPrefix(name, p.folder)
	}
	return matches(p.folder, path.Dir(name))
}

// matches takes a pattern of the table, of which a test knows that it is well formed.
func matches(pattern, name string) bool {
	found, err := path.Match(pattern, name)
	return found && err == nil
}
