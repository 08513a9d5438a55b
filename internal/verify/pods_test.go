// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
)

// hold makes the containers the holders of NICs on the host.
func (f fixture) hold(holders ...allocation.Holder) {
	fact := known(holders)
	f.pods.holders = &fact
}

func holder(pod string, alignment v1alpha1.Alignment, message string) allocation.Holder {
	return allocation.Holder{
		PCIAddress: "0000:3b:00.0", Container: allocation.Container{Namespace: "trading", Pod: pod, Name: "app", CPUs: list("2-3")},
		Alignment: alignment, Message: message,
	}
}

func podCases() map[v1alpha1.CheckID]checkCases {
	aligned := holder("good", v1alpha1.AlignmentAligned, "")
	split := holder("bad", v1alpha1.AlignmentSplit, "CPUs 2-3 on NUMA node 0, NIC ens2f0 (0000:3b:00.0) on NUMA node 1")
	unproven := holder("shared", v1alpha1.AlignmentUnknown, "no CPUs of its own")
	const splitMessage = "container trading/bad/app is spread over NUMA nodes: CPUs 2-3 on NUMA node 0, NIC ens2f0 (0000:3b:00.0) on NUMA node 1"
	return map[v1alpha1.CheckID]checkCases{
		"numa.pods": {
			"no pool selects the node":        {},
			"nobody holds a NIC":              {change: func(f fixture) { f.hold() }, want: v1alpha1.OutcomePassed},
			"a container that is aligned":     {change: func(f fixture) { f.hold(aligned) }, want: v1alpha1.OutcomePassed},
			"one of two containers is split":  {change: func(f fixture) { f.hold(aligned, split, unproven) }, want: v1alpha1.OutcomeFailed, wantMessage: splitMessage},
			"a container that holds two NICs": {change: func(f fixture) { f.hold(split, split) }, want: v1alpha1.OutcomeFailed, wantMessage: splitMessage},
			"a container that proves nothing": {change: func(f fixture) { f.hold(aligned, unproven) }, want: v1alpha1.OutcomeUnknown, wantMessage: "container trading/shared/app cannot be proven to be on one NUMA node: no CPUs of its own"},
			"the kubelet does not report": {change: func(f fixture) {
				fact := absent[[]allocation.Holder]("/var/lib/kubelet/pod-resources/kubelet.sock")
				f.pods.holders = &fact
			}, want: v1alpha1.OutcomeUnknown, wantMessage: "/var/lib/kubelet/pod-resources/kubelet.sock cannot be read: no such file"},
		},
	}
}
