// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

func platformPodCases() map[v1alpha1.CheckID]checkCases {
	const file = host.RuntimeFolder + "/99-lowlatency-trading.conf"
	gives := func(cpuset string) func(fixture) {
		return func(f fixture) {
			f.plan.ContainerRuntime.WorkloadPartitioning = v1alpha1.WorkloadPartitioningEnabled
			f.facts.ManagementCPUs = host.Known(cpuset, file)
		}
	}
	kubelet := func(isThere host.Fact[bool]) func(fixture) {
		return func(f fixture) { gives("0")(f); f.facts.PlatformPods = isThere }
	}
	return map[v1alpha1.CheckID]checkCases{
		"kubelet.platform-pods": {
			"not partitioned": {want: doesNotApply},
			"the file":        {change: kubelet(known(true)), want: passes},
			"no file": {
				change: kubelet(known(false)), want: fails,
				wantMessage: host.PlatformPodsFile + " is missing: the kubelet does not tell the pods of the platform from others",
			},
			"seen from a container": {change: kubelet(host.Absent[bool](host.PlatformPodsFile, host.ReasonNotMounted)), want: doesNotApply},
			"unreadable": {
				change: kubelet(host.Absent[bool](host.PlatformPodsFile, "permission denied")), want: isUnknown, wantMessage: "permission denied",
			},
		},
		"pod.platform-cpus": {
			"not partitioned":       {want: doesNotApply},
			"by nobody's plan":      {change: func(f fixture) { f.facts.ManagementCPUs = host.Known("0-7", file) }, want: doesNotApply},
			"as planned":            {change: gives("0-1,4-5"), want: passes},
			"in another notation":   {change: gives("0,1,4,5"), want: passes},
			"fewer CPUs":            {change: gives("0"), want: passes},
			"none of their own":     {change: gives(""), want: fails, wantMessage: "CRI-O gives the pods of the platform no CPUs of their own: they run on every CPU"},
			"an isolated CPU":       {change: gives("0-2"), want: fails, wantMessage: "CRI-O lets the pods of the platform run on CPU 2, by " + file},
			"isolated CPUs only":    {change: gives("6-7"), want: fails, wantMessage: "CRI-O lets the pods of the platform run on CPUs 6-7, by " + file},
			"a CPU that is offline": {change: gives("0,8"), want: fails, wantMessage: "CRI-O lets the pods of the platform run on CPU 8, by " + file},
			"no list of CPUs":       {change: gives("all"), want: isUnknown, wantMessage: file},
			"not told": {
				change: func(f fixture) { gives("")(f); f.facts.ManagementCPUs = absent[string](host.RuntimeFolder) },
				want:   isUnknown, wantMessage: host.RuntimeFolder,
			},
		},
	}
}
