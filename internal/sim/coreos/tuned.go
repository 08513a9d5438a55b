// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package coreos

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/ini.v1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// ApplyTuned changes the running kernel of the host as the TuneD daemon would for a profile text: the
// sections sysctl, sysfs, vm and cpu, whose effect is a file of /proc/sys or /sys, and the groups of the section scheduler,
// whose effect is the priority of threads of the kernel. Sections that start
// or stop programs have no effect on a tree and are passed over.
func (h *Host) ApplyTuned(profile string) error {
	parsed, err := ini.LoadSources(ini.LoadOptions{IgnoreInlineComment: true, SkipUnrecognizableLines: true}, []byte(profile))
	if err != nil {
		return fmt.Errorf("reading the TuneD profile of host %s: %w", h.Name, err)
	}
	for _, setting := range tunedSettings(parsed) {
		if err := h.writeSettings(setting.path, setting.value); err != nil {
			return fmt.Errorf("TuneD on host %s: %w", h.Name, err)
		}
	}
	if err := h.prioritize(parsed.Section("scheduler")); err != nil {
		return fmt.Errorf("TuneD on host %s: %w", h.Name, err)
	}
	if err := h.forceLatency(parsed.Section("cpu").Key("force_latency").Value()); err != nil {
		return fmt.Errorf("TuneD on host %s: %w", h.Name, err)
	}
	return nil
}

// prioritize gives the threads of each group their priority. An option group.NAME is RULE_PRIORITY:SCHEDULER:PRIORITY:AFFINITY:REGEX;
// f is the policy FIFO, and threads of the kernel have their name in brackets (plugin_scheduler.py, _get_processes).
func (h *Host) prioritize(section *ini.Section) error {
	const parts = 5
	for _, key := range section.Keys() {
		rule := strings.SplitN(key.Value(), ":", parts)
		if !strings.HasPrefix(key.Name(), "group.") {
			continue
		}
		if len(rule) != parts || rule[1] != "f" {
			return fmt.Errorf("%s=%s: only rules of five parts with the policy FIFO have an effect here", key.Name(), key.Value())
		}
		priority, err := strconv.Atoi(rule[2])
		if err != nil {
			return fmt.Errorf("%s: %w", key.Name(), err)
		}
		expression, err := regexp.Compile(rule[4])
		if err != nil {
			return fmt.Errorf("%s: %w", key.Name(), err)
		}
		if _, err := hosttree.Prioritize(h.Dir, func(name string) bool { return expression.MatchString("[" + name + "]") }, priority); err != nil {
			return err
		}
	}
	return nil
}

// forceLatency holds /dev/cpu_dma_latency as TuneD's cpu plugin does: with the latency of the first state that the
// processor has among cstate.id:1|3, or with a number of microseconds (plugin_cpu.py, _parse_latency).
func (h *Host) forceLatency(option string) error {
	for wanted := range strings.SplitSeq(option, "|") {
		id, isState := strings.CutPrefix(wanted, "cstate.id:")
		limit := wanted
		if isState {
			text, err := os.ReadFile(filepath.Join(h.Dir, "sys/devices/system/cpu/cpu0/cpuidle/state"+id, "latency"))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return fmt.Errorf("forcing the latency: %w", err)
			}
			limit = strings.TrimSpace(string(text))
		}
		if limit == "" {
			return nil
		}
		return hosttree.WriteSetting(h.Dir, "/dev/cpu_dma_latency", limit)
	}
	return nil
}

type tunedSetting struct{ path, value string }

// tunedSettings lists the files that a profile sets. TuneD's sysctl section takes names with dots, its
// sysfs section takes paths with shell wildcards.
func tunedSettings(profile *ini.File) []tunedSetting {
	var settings []tunedSetting
	for _, key := range profile.Section("sysctl").Keys() {
		settings = append(settings, tunedSetting{host.SysctlPath(key.Name()), key.Value()})
	}
	for _, key := range profile.Section("sysfs").Keys() {
		settings = append(settings, tunedSetting{key.Name(), key.Value()})
	}
	for _, rule := range tunedPluginFiles() {
		section, err := profile.GetSection(rule.section)
		if err != nil || !section.HasKey(rule.option) {
			continue
		}
		value := section.Key(rule.option).Value()
		if number, ok := rule.numbers[value]; ok {
			value = number
		}
		settings = append(settings, tunedSetting{rule.path, value})
	}
	return settings
}

type tunedPluginFile struct {
	section, option, path string
	// numbers are what the kernel reads back for words that TuneD takes.
	numbers map[string]string
}

// tunedPluginFiles are the options of TuneD's plugins whose effect is one value in files of /sys
// (redhat-performance/tuned, tuned/plugins/plugin_vm.py and plugin_cpu.py).
func tunedPluginFiles() []tunedPluginFile {
	const cpu = "/sys/devices/system/cpu/"
	return []tunedPluginFile{
		{section: "vm", option: "transparent_hugepages", path: "/sys/kernel/mm/transparent_hugepage/enabled"},
		{section: "cpu", option: "governor", path: cpu + "cpu*/cpufreq/scaling_governor"},
		// intel_pstate and amd_pstate, in active mode, prefer performance as soon as the governor is
		// performance (drivers/cpufreq/intel_pstate.c, intel_pstate_hwp_set).
		{section: "cpu", option: "governor", path: cpu + "cpu*/cpufreq/energy_performance_preference"},
		{section: "cpu", option: "energy_performance_preference", path: cpu + "cpu*/cpufreq/energy_performance_preference"},
		{section: "cpu", option: "energy_perf_bias", path: cpu + "cpu*/power/energy_perf_bias", numbers: map[string]string{"performance": "0", "normal": "6", "powersave": "15"}},
		{section: "cpu", option: "min_perf_pct", path: cpu + "intel_pstate/min_perf_pct"},
		{section: "cpu", option: "no_turbo", path: cpu + "intel_pstate/no_turbo"},
	}
}

// writeSettings writes a value to every file of the tree that a path with wildcards names. A file that
// the host does not have is passed over, as TuneD does with a warning.
func (h *Host) writeSettings(pattern, value string) error {
	matches, err := filepath.Glob(filepath.Join(h.Dir, relative(pattern)))
	if err != nil {
		return fmt.Errorf("path %s: %w", pattern, err)
	}
	for _, match := range matches {
		name := "/" + strings.TrimPrefix(match, h.Dir+"/")
		if err := hosttree.WriteSetting(h.Dir, name, value); err != nil {
			return fmt.Errorf("setting %s: %w", name, err)
		}
	}
	return nil
}
