// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// runtimeOf is what the planner decides for a node without shared CPUs whose interrupts stay on housekeeping CPUs.
func runtimeOf(c plan.CPUPlan) plan.ContainerRuntimePlan {
	return plan.ContainerRuntimePlan{
		InfrastructureCPUs: c.Housekeeping,
		ExecPlacement:      v1alpha1.ExecFirstCPU,
		PodRequests: []plan.PodRequest{
			plan.RequestIdleStates, plan.RequestFrequencyGovernor, plan.RequestLoadBalancing, plan.RequestCPUQuota,
		},
	}
}

func TestRuntimeFile(t *testing.T) {
	cases := map[string]struct {
		change func(*plan.NodePlan)
		want   string
	}{
		"usual": {
			change: func(*plan.NodePlan) {},
			want: `[crio.runtime]
infra_ctr_cpuset = "0"
min_injected_gomaxprocs = 4

[crio.runtime.runtimes.high-performance]
inherit_default_runtime = true
default_annotations = { "run.oci.systemd.subgroup" = "" }
exec_cpu_affinity = "first"
allowed_annotations = [
  "cpu-c-states.crio.io",
  "cpu-freq-governor.crio.io",
  "cpu-load-balancing.crio.io",
  "cpu-quota.crio.io",
]
`,
		},
		"full": {
			change: func(p *plan.NodePlan) {
				p.CPUs.Shared, p.ContainerRuntime.InfrastructureCPUs = set(t, "1"), set(t, "0-1")
				p.ContainerRuntime.ExecPlacement = v1alpha1.ExecAnyCPU
				p.ContainerRuntime.PodRequests = append(p.ContainerRuntime.PodRequests, plan.RequestSharedCPUs, plan.RequestInterrupts)
			},
			want: `[crio.runtime]
infra_ctr_cpuset = "0-1"
shared_cpuset = "1"
min_injected_gomaxprocs = 4

[crio.runtime.runtimes.high-performance]
inherit_default_runtime = true
default_annotations = { "run.oci.systemd.subgroup" = "" }
allowed_annotations = [
  "cpu-c-states.crio.io",
  "cpu-freq-governor.crio.io",
  "cpu-load-balancing.crio.io",
  "cpu-quota.crio.io",
  "cpu-shared.crio.io",
  "irq-load-balancing.crio.io",
]
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &plan.NodePlan{Profile: "trading", CPUs: plan.CPUPlan{Housekeeping: set(t, "0")}}
			p.ContainerRuntime = runtimeOf(p.CPUs)
			tc.change(p)
			got, err := runtimeFile(p)
			if err != nil {
				t.Fatal(err)
			}
			want := plan.File{Path: "/etc/crio/crio.conf.d/99-lowlatency-trading.conf", Mode: 0o644, Content: tc.want}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("file (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRequestsWithoutAnAnnotation: a request that is dropped without a message is one that pods make in vain.
func TestRequestsWithoutAnAnnotation(t *testing.T) {
	in := example(t, "trading-xeon")
	in.Plan.ContainerRuntime.PodRequests = append(in.Plan.ContainerRuntime.PodRequests, "Caches")
	_, err := MachineConfig(in)
	wantError(t, err, `CRI-O has no annotation for the request "Caches"`)
	wantError(t, err, in.MachineConfigPool.Name)
}
