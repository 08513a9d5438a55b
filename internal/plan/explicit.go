// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// cpuField is a CPU list of the profile.
type cpuField struct {
	name string
	set  cpus.Set
}

func (f cpuField) path() string { return "spec.cpus.explicit." + f.name }

// planExplicit takes the CPU lists of the profile after holding them against the host. With
// multithreading disabled the lists may name sibling threads; these are in no set.
func (p *planner) planExplicit() {
	fields, ok := p.explicitLists()
	if !ok {
		return
	}
	p.checkExist(fields)
	p.checkOverlap(fields)
	set := map[string]cpus.Set{}
	for _, f := range fields {
		set[f.name] = f.set
		if p.spec.CPUs.SimultaneousMultithreading == v1alpha1.SMTDisabled {
			set[f.name] = f.set.Intersection(p.machine.usable)
		}
	}
	p.checkCovered(fields)
	p.checkOffline(set["offline"])

	c := &p.plan.CPUs
	c.Housekeeping = set["housekeeping"].Union(set["shared"])
	c.Isolated = set["isolated"].Union(set["dataPlane"])
	c.Offline, c.Shared, c.DataPlane = set["offline"], set["shared"], set["dataPlane"]
	c.Origin = Origin{Source: FromField, Detail: "spec.cpus.explicit"}
	if !c.DataPlane.IsEmpty() {
		c.DataPlaneBalancing = p.spec.CPUs.Explicit.DataPlaneLoadBalancing
	}
	if !p.blocked() {
		p.judgeSiblings()
		p.judgeDataPlane()
	}
}

// explicitLists reads the CPU lists.
func (p *planner) explicitLists() ([]cpuField, bool) {
	x := p.spec.CPUs.Explicit
	if x == nil {
		p.critical(ruleCPUList, "spec.cpus.explicit", "Give the lists, or set spec.cpus.partition to Derived.",
			"the partition is Explicit, but there are no CPU lists")
		return nil, false
	}
	var fields []cpuField
	for _, list := range []struct {
		name string
		text v1alpha1.CPUList
	}{
		{"housekeeping", x.Housekeeping}, {"isolated", x.Isolated}, {"offline", x.Offline},
		{"shared", x.Shared}, {"dataPlane", x.DataPlane},
	} {
		set, err := cpus.Parse(string(list.text))
		if err != nil {
			p.critical(ruleCPUList, "spec.cpus.explicit."+list.name, "Write the list as the kernel does, for example 0-3,8.",
				"%s", err)
			continue
		}
		fields = append(fields, cpuField{list.name, set})
	}
	return fields, !p.blocked()
}

func (p *planner) checkExist(fields []cpuField) {
	for _, f := range fields {
		if missing := f.set.Difference(p.machine.present); !missing.IsEmpty() {
			p.critical(ruleCPUsExist, f.path(), "Remove these CPUs, or exclude the node by spec.nodeSelector.",
				"CPUs %s do not exist; the node has CPUs %s", missing, p.machine.present).
				about(finding.OfCPUs(missing))
		}
	}
}

func (p *planner) checkOverlap(fields []cpuField) {
	for i, a := range fields {
		for _, b := range fields[i+1:] {
			if both := a.set.Intersection(b.set); !both.IsEmpty() {
				p.critical(ruleCPUsOverlap, b.path(), "Remove these CPUs from one of the two lists.",
					"CPUs %s are in %s, too", both, a.path()).
					about(finding.OfCPUs(both))
			}
		}
	}
}

// checkCovered: a CPU that is in no list would be neither tuned nor kept for the operating system.
func (p *planner) checkCovered(fields []cpuField) {
	listed := cpus.Set{}
	for _, f := range fields {
		listed = listed.Union(f.set)
	}
	if missing := p.machine.usable.Difference(listed); !missing.IsEmpty() {
		p.critical(ruleCPUsCovered, "spec.cpus.explicit",
			"Add them to housekeeping, isolated or offline.", "the online CPUs %s are in no list", missing).
			about(finding.OfCPUs(missing))
	}
}

func (p *planner) checkOffline(offline cpus.Set) {
	if offline.Contains(p.machine.boot) {
		p.critical(ruleBootCPU, "spec.cpus.explicit.offline", "Take other CPUs offline.",
			"CPU %d, on which the kernel boots, cannot be taken offline", p.machine.boot).
			about(finding.OfCPUs(cpus.Of(p.machine.boot)))
	}
}

// judgeSiblings: two threads of a core share its execution units and first-level caches, so a
// housekeeping thread slows its isolated sibling down.
func (p *planner) judgeSiblings() {
	var split []string
	var all cpus.Set
	for _, c := range p.machine.cores {
		if c.cpus.Overlaps(p.plan.CPUs.Housekeeping) && c.cpus.Overlaps(p.plan.CPUs.Isolated) {
			split, all = append(split, c.cpus.String()), all.Union(c.cpus)
		}
	}
	if len(split) > 0 {
		p.report(v1alpha1.SeverityHigh, ruleSplitSiblings, "spec.cpus.explicit",
			"Keep the threads of a core in one list, or set spec.cpus.simultaneousMultithreading to Disabled.",
			"housekeeping and isolated CPUs share the cores of CPUs %s", firstOf(split, 8)).
			about(finding.OfCPUs(all))
	}
}

// judgeDataPlane: the static CPU manager lets pods without exclusive CPUs use all CPUs that no pod owns,
// reserved ones included (policy_static.go of the kubelet), unless strict-cpu-reservation is set, which
// would take the housekeeping CPUs from them as well.
func (p *planner) judgeDataPlane() {
	if p.plan.CPUs.DataPlane.IsEmpty() {
		return
	}
	p.report(v1alpha1.SeverityMedium, ruleDataPlane, "spec.cpus.explicit.dataPlane",
		"Set cpuManagerPolicyOptions strict-cpu-reservation in spec.kubelet.additionalConfiguration "+
			"if no ordinary pod needs housekeeping CPUs.",
		"no pod gets CPUs %s exclusively, but the kubelet lets pods without exclusive CPUs run there", p.plan.CPUs.DataPlane).
		about(finding.OfCPUs(p.plan.CPUs.DataPlane))
}

// firstOf joins at most limit texts and says how many more there are.
func firstOf(texts []string, limit int) string {
	if len(texts) <= limit {
		return strings.Join(texts, "; ")
	}
	return strings.Join(texts[:limit], "; ") + " and others"
}
