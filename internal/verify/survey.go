// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"

	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// answer is what one CPU answers to a check's question: what is wrong with it ("" when nothing is), or
// why the fact is absent. What is wrong follows "CPUs 2-5: ".
type answer struct {
	wrong          string
	absent         bool
	source, reason string
}

// about turns a fact of a CPU into an answer. The rule returns what is wrong with the value, or "".
func about[T any](fact host.Fact[T], rule func(T) string) answer {
	value, ok := fact.Get()
	if !ok {
		return answer{absent: true, source: fact.Source, reason: fact.Reason}
	}
	return answer{wrong: rule(value)}
}

// survey collects the answers of CPUs, grouped by what is wrong, so that a hundred CPUs with the same
// fault make one sentence.
type survey struct {
	faults  []string
	faulty  map[string][]int
	all     []int
	absent  []int
	missing answer
}

func (v *survey) add(id int, a answer) {
	switch {
	case a.absent:
		if len(v.absent) == 0 {
			v.missing = a
		}
		v.absent = append(v.absent, id)
	case a.wrong != "":
		if v.faulty[a.wrong] == nil {
			v.faults = append(v.faults, a.wrong)
		}
		v.faulty[a.wrong] = append(v.faulty[a.wrong], id)
		v.all = append(v.all, id)
	}
}

func (v *survey) verdict(set cpus.Set, expected string) verdict {
	switch {
	case len(v.faults) > 0:
		return failed(v.sentence(), cpus.Of(v.all...).Name(), expected).about(finding.OfCPUs(cpus.Of(v.all...)))
	case len(v.absent) > 0:
		found := unknown(v.missing.source, v.missing.reason, expected)
		if len(v.absent) > 1 {
			found.message += fmt.Sprintf(", nor those of %d more CPUs of %s", len(v.absent)-1, cpus.Of(v.absent...))
		}
		return found.about(finding.OfCPUs(cpus.Of(v.absent...)))
	}
	return passed(set.Name())
}

func (v *survey) sentence() string {
	sentences := make([]string, 0, len(v.faults))
	for _, fault := range v.faults {
		sentences = append(sentences, cpus.Of(v.faulty[fault]...).Name()+": "+fault)
	}
	return enumerate(sentences)
}

// surveyCPUs asks every CPU of a set that is not offline the same question: of a CPU that is, the kernel takes away what its
// folder says about the core, the frequency and the idle states, and cpu.online says that it is gone. A CPU that the host does
// not list gives no answer.
func (s *state) surveyCPUs(set cpus.Set, expected string, ask func(*host.CPU) answer) verdict {
	return s.surveyAll(set.Filter(func(id int) bool {
		cpu, listed := s.cpuByID[id]
		return !listed || !cpu.Online.Known || cpu.Online.Value
	}), expected, ask)
}

// surveyAll asks those that are offline, too.
func (s *state) surveyAll(set cpus.Set, expected string, ask func(*host.CPU) answer) verdict {
	v := survey{faulty: map[string][]int{}}
	for _, id := range set.IDs() {
		cpu, ok := s.cpuByID[id]
		if !ok {
			v.add(id, answer{absent: true, source: fmt.Sprintf("/sys/devices/system/cpu/cpu%d", id), reason: "no such CPU"})
			continue
		}
		v.add(id, ask(cpu))
	}
	return v.verdict(set, expected)
}
