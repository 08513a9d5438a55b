// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package repair

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFolders: all that may be written is below the folders that are mounted writable, and each of these is needed.
func TestFolders(t *testing.T) {
	// The files as they are behind the links of /sys/bus and /sys/class.
	files := map[string]string{
		"/proc/irq/1/smp_affinity_list":                         "",
		"/proc/irq/default_smp_affinity":                        "",
		"/sys/devices/virtual/workqueue/cpumask":                "",
		"/sys/bus/workqueue/devices/writeback/cpumask":          "/sys/devices/virtual/workqueue/writeback/cpumask",
		"/sys/class/net/ens1/queues/rx-0/rps_cpus":              "/sys/devices/pci0000:3a/0000:3b:00.0/net/ens1/queues/rx-0/rps_cpus",
		"/sys/kernel/mm/transparent_hugepage/enabled":           "",
		"/sys/kernel/mm/ksm/run":                                "",
		"/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "/sys/devices/system/cpu/cpufreq/policy1/scaling_governor",
		"/sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq": "/sys/devices/system/cpu/cpufreq/policy1/scaling_max_freq",
		"/sys/devices/system/cpu/intel_pstate/no_turbo":         "",
		"/proc/sys/vm/swappiness":                               "",
	}
	for _, folder := range Folders() {
		if strings.HasPrefix(folder, "/proc/sys/kernel/") {
			files[folder] = ""
		}
	}
	needed := neededFolders(t, files)
	for _, folder := range Folders() {
		if !needed[folder] {
			t.Errorf("%s is mounted writable for nothing", folder)
		}
	}
	for _, rule := range rules() {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(files)), regexp.MustCompile(`^(?:`+rule.file+`)$`).MatchString) {
			t.Errorf("no file stands for the rule %s", rule.file)
		}
	}
}

// neededFolders are the writable folders in which the files are, each of which may be written.
func neededFolders(t *testing.T, files map[string]string) map[string]bool {
	t.Helper()
	needed := map[string]bool{}
	for file, real := range files {
		real = cmp.Or(real, file)
		if !slices.ContainsFunc(rules(), func(r rule) bool { return regexp.MustCompile(`^(?:` + r.file + `)$`).MatchString(file) }) {
			t.Errorf("%s may not be written", file)
		}
		at := slices.IndexFunc(Folders(), func(folder string) bool { return real == folder || strings.HasPrefix(real, folder+"/") })
		switch {
		case at >= 0:
			needed[Folders()[at]] = true
		case !strings.HasPrefix(real, SteeringFolder+"/") || !strings.HasSuffix(file, "/rps_cpus"):
			t.Errorf("%s is in no folder that is mounted writable", file)
		}
	}
	return needed
}

// TestNamedOneByOne: every parameter of the rule for /proc/sys/kernel is mounted, and nothing beside it.
func TestNamedOneByOne(t *testing.T) {
	const folder = "/proc/sys/kernel/"
	for _, rule := range rules() {
		list, isKernel := strings.CutPrefix(rule.file, folder)
		if !isKernel {
			continue
		}
		want := strings.Split(strings.Trim(list, "()"), "|")
		var got []string
		for _, file := range Folders() {
			if name, ok := strings.CutPrefix(file, folder); ok {
				got = append(got, name)
			}
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("mounted are %v, want %v", got, want)
		}
	}
}
