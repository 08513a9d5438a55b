// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"fmt"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

func faultsOfCPUs() []fault {
	return []fault{
		{
			name: "isolcpus is missing",
			harm: func(n *node) { n.reboot(argument("isolcpus")) },
			want: "cpu.isolated", says: []string{"in the scheduler's domains"}, makes: []string{v1alpha1.ConditionDeJittered},
		},
		{
			name: "nohz_full is missing",
			harm: func(n *node) { n.reboot(argument("nohz_full")) },
			want: "cpu.nohz-full", says: []string{"scheduler tick"}, makes: []string{v1alpha1.ConditionDeJittered},
		},
		{
			name: "process 1 may use isolated CPUs",
			harm: func(n *node) {
				n.put("/proc/1/status", fmt.Sprintf("Name:\tsystemd\nCpus_allowed_list:\t%s\n", n.plan.CPUs.Housekeeping.Union(n.plan.CPUs.Isolated)))
			},
			want: "cpu.init-affinity", says: []string{"process 1"},
		},
		{
			name: "SMT is on again", on: []string{xeonNoSMT},
			harm: func(n *node) { n.reboot(argument("nosmt")) },
			want: "cpu.smt",
		},
	}
}

func variationsOfCPUs() []variation {
	return []variation{
		{name: "the kernel says nothing about die and cluster", change: func(n *node) { n.remove("/sys/devices/system/cpu/cpu*/topology/die_id") }},
	}
}
