// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
)

// Files of transparent hugepages (Documentation/admin-guide/mm/transhuge.rst): one for memory of programs, one for shared
// memory, and, since Linux 6.8, both for each size.
const (
	settingTHP       = transparentFolder + "/enabled"
	settingTHPShared = transparentFolder + "/shmem_enabled"
	settingTHPSizes  = transparentFolder + "/hugepages-*/enabled"
	settingTHPShares = transparentFolder + "/hugepages-*/shmem_enabled"

	transparentFolder = "/sys/kernel/mm/transparent_hugepage"
	modeNever         = "never"
	modeInherit       = "inherit"
)

// transparentHugepagesArePlanned takes the wanted mode from the planned file or kernel argument. A size that has a switch of
// its own may do without hugepages, or what all sizes do.
func transparentHugepagesArePlanned(s *state) verdict {
	want, ok := s.sysfs(settingTHP)
	if !ok {
		want, ok = s.planned.Get("transparent_hugepage")
	}
	if !ok {
		return notApplicable()
	}
	whole := s.settingIs(settingTHP, want)
	verdicts := []verdict{whole}
	for _, file := range s.transparentFiles() {
		verdicts = append(verdicts, s.transparentFileIs(file, want))
	}
	if joined := worst(verdicts...); joined.outcome != v1alpha1.OutcomePassed {
		return joined
	}
	return whole
}

// transparentFiles are the switches besides the one that the plan names, ascending.
func (s *state) transparentFiles() []string {
	return slices.Sorted(func(yield func(string) bool) {
		for file := range maps.Keys(s.facts.Settings) {
			if isTransparentSwitch(file) && !yield(file) {
				return
			}
		}
	})
}

func isTransparentSwitch(file string) bool {
	if file == settingTHPShared {
		return true
	}
	folder, name := path.Split(file)
	return strings.HasPrefix(folder, transparentFolder+"/hugepages-") && (name == "enabled" || name == path.Base(settingTHPShared))
}

// transparentFileIs judges one switch. Shared memory is a matter of its own: only a plan that wants no transparent hugepages
// at all speaks of it. A switch that cannot be read counts only where there is one.
func (s *state) transparentFileIs(file, want string) verdict {
	fact := s.facts.Setting(file)
	found, ok := fact.Get()
	shared := path.Base(file) == path.Base(settingTHPShared)
	switch mode := setting.Selected(found); {
	case !ok && fact.Reason == reasonMissing, shared && want != modeNever:
		return notApplicable()
	case !ok:
		return unknown(fact.Source, fact.Reason, want)
	case mode == want, mode == modeNever, mode == modeInherit, mode == "deny":
		return passed(mode)
	default:
		return failed(fmt.Sprintf("%s is %s, not %s", file, orNone(found), want), found, want).about(finding.OfFiles(file))
	}
}

// transparentDeviations are the switches besides the planned one that give programs hugepages which the plan does without.
func (s *state) transparentDeviations() []Deviation {
	want, ok := s.sysfs(settingTHP)
	if !ok {
		return nil
	}
	var found []Deviation
	for _, file := range s.transparentFiles() {
		if s.transparentFileIs(file, want).outcome != v1alpha1.OutcomeFailed {
			continue
		}
		observed, _ := s.facts.Setting(file).Get()
		found = append(found, Deviation{transparentCheck, file, file, setting.Selected(observed), modeNever})
	}
	return found
}

const transparentCheck v1alpha1.CheckID = "memory.transparent-hugepages"
