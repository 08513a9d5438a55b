// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// settingIs compares a small file with its planned value.
func (s *state) settingIs(path, want string) verdict {
	fact := s.facts.Setting(path)
	if fact.Missing {
		return withoutSetting(path, want)
	}
	return judge(fact, want, func(found string) verdict {
		if setting.Same(path, found, want) {
			return passed(found)
		}
		return failed(fmt.Sprintf("%s is %s, not %s", path, orNone(found), orNone(want)), found, want).about(finding.OfFiles(path))
	})
}

// withoutSetting judges a kernel that does not have a file.
func withoutSetting(path, want string) verdict {
	const observed = "the kernel was built without it"
	if setting.HoldsWithout(path, want) {
		return passed(observed)
	}
	found := failed(fmt.Sprintf("the running kernel has no %s, which is to be %s", path, orNone(want)), observed, want).about(finding.OfFiles(path))
	found.fix = "Take it out of the profile if this kernel cannot have it; a parameter of a kernel module appears when the module is loaded."
	return found
}

// plannedSysctl is a check of one kernel parameter, if the plan sets it.
func plannedSysctl(name string) func(*state) verdict {
	return func(s *state) verdict {
		want, ok := s.sysctl(name)
		if !ok {
			return notApplicable()
		}
		return s.settingIs(host.SysctlPath(name), want)
	}
}

// sysctl returns the planned value of a kernel parameter.
func (s *state) sysctl(name string) (string, bool) { return lookup(s.plan.Sysctls, name) }

// sysfs returns the planned value of a file below /sys.
func (s *state) sysfs(path string) (string, bool) { return lookup(s.plan.Sysfs, path) }

func lookup(settings []plan.Setting, name string) (string, bool) {
	for _, planned := range settings {
		if planned.Name == name {
			return planned.Value, true
		}
	}
	return "", false
}

// otherSysctlsArePlanned judges the planned kernel parameters that have no check of their own.
func otherSysctlsArePlanned(s *state) verdict {
	return s.othersArePlanned(s.plan.Sysctls, host.SysctlPath)
}

// otherSysfsFilesArePlanned judges the planned files below /sys that have no check of their own.
func otherSysfsFilesArePlanned(s *state) verdict {
	return s.othersArePlanned(s.plan.Sysfs, func(path string) string { return path })
}

func (s *state) othersArePlanned(settings []plan.Setting, path func(string) string) verdict {
	var verdicts []verdict
	for _, planned := range settings {
		if file := path(planned.Name); !s.isOwned(file) {
			verdicts = append(verdicts, s.settingIs(file, planned.Value))
		}
	}
	joined := worst(verdicts...)
	if joined.outcome == v1alpha1.OutcomePassed {
		return passed(fmt.Sprintf("%d as planned", len(verdicts)))
	}
	return joined
}

// maskSetting reads a setting in mask format.
func (s *state) maskSetting(path string) host.Fact[cpus.Set] {
	return parseSetting(s.facts.Setting(path), cpus.ParseMask)
}

// cpuListSetting reads a setting in list format.
func (s *state) cpuListSetting(path string) host.Fact[cpus.Set] {
	return parseSetting(s.facts.Setting(path), cpus.Parse)
}

// parseSetting interprets a small file; what cannot be interpreted is absent.
func parseSetting[T any](text host.Fact[string], parse func(string) (T, error)) host.Fact[T] {
	value, ok := text.Get()
	if !ok {
		return host.Absent[T](text.Source, text.Reason)
	}
	parsed, err := parse(value)
	if _, isNumber := errors.AsType[*strconv.NumError](err); isNumber {
		return host.Absent[T](text.Source, fmt.Sprintf("not a number: %q", value))
	}
	if err != nil {
		return host.Absent[T](text.Source, err.Error())
	}
	return host.Known(parsed, text.Source)
}

// orNone keeps an empty value readable in a sentence.
func orNone(value string) string {
	if value == "" {
		return "empty"
	}
	return value
}

// Requests is what the checks of a plan read of a host beyond what host.Read reads for every plan.
func Requests(p *plan.NodePlan) host.Request {
	units := make([]string, 0, len(p.StopServices))
	for _, service := range p.StopServices {
		units = append(units, service.Name)
	}
	return host.Request{
		Settings: SettingPaths(p), Tasks: p.CPUs.Isolated, Units: units, LatencyHolders: p.Power.IdleStates == v1alpha1.IdleShallowByQoS,
	}
}

// SettingPaths are the files below /proc/sys and /sys that the checks of a plan read beyond those that
// host.Read reads for every plan, ascending: the planned settings, and the latency limit of each
// isolated CPU.
func SettingPaths(p *plan.NodePlan) []string {
	paths := make([]string, 0, len(p.Sysctls)+len(p.Sysfs)+p.CPUs.Isolated.Len())
	for _, sysctl := range p.Sysctls {
		paths = append(paths, host.SysctlPath(sysctl.Name))
	}
	for _, file := range p.Sysfs {
		paths = append(paths, file.Name)
	}
	for _, id := range p.CPUs.Isolated.IDs() {
		paths = append(paths, latencyLimitPath(id))
	}
	if !p.CPUs.DataPlane.IsEmpty() {
		paths = append(paths, settingDataPlane)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
