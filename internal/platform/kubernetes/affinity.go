// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubernetes

import (
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/release"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

const (
	affinityUnit     = "lowlatency-cpu-affinity.service"
	affinityArgument = "systemd.cpu_affinity="
)

// writeAffinity keeps programs outside of pods on the CPUs of the command line where the kernel forgets them. The kubelet turns the
// cpuset controller on, and a kernel before 6.2 then lets every process on all CPUs of its control group, whatever it had asked for
// (Linux da019032819a; systemd/systemd#23748). So the control groups get these CPUs. It is done at each boot by systemctl, because
// systemd before 253 reads files about init.scope after it has made that control group.
func (w *writer) writeAffinity() error {
	cpus := plannedAffinity(w.plan)
	running, _ := release.Parse(w.facts.Kernel.Release.Value)
	if cpus == "" || running.AtLeast(6, 2) || !w.facts.Software.KubeletUnit.Known {
		return nil
	}
	var commands []string
	for _, group := range []string{"system.slice", "user.slice", "init.scope"} {
		commands = append(commands, "/usr/bin/systemctl set-property --runtime "+group+" AllowedCPUs="+cpus)
	}
	w.oneshot(affinityUnit, "Keep programs outside of pods on their CPUs", commands...)
	return nil
}

func plannedAffinity(p *plan.NodePlan) string {
	for _, argument := range p.KernelArguments {
		if cpus, found := strings.CutPrefix(argument.Text, affinityArgument); found {
			return cpus
		}
	}
	return ""
}
