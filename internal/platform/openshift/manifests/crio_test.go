// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/crioconfig"
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

// crioCase is a change of the usual plan, and the file that comes of it.
type crioCase struct {
	change func(*plan.NodePlan)
	want   string
}

// Both files of a cluster with CPU partitioning have the housekeeping CPUs; no other cluster gets the one that tells the
// kubelet, which would begin to count CPUs of platform pods by it.
func TestWorkloadFile(t *testing.T) {
	const file = "/etc/kubernetes/openshift-workload-pinning"
	p := &plan.NodePlan{Profile: "trading", CPUs: plan.CPUPlan{Housekeeping: set(t, "0-1,8-9"), Isolated: set(t, "2-7")}}
	for partitioning, want := range map[v1alpha1.WorkloadPartitioning]string{
		"": "", v1alpha1.WorkloadPartitioningEnabled: "{\"management\": {\"cpuset\": \"0-1,8-9\"}}\n",
	} {
		p.ContainerRuntime = runtimeOf(p.CPUs)
		p.ContainerRuntime.WorkloadPartitioning = partitioning
		files, err := hostFiles(p)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range files {
			if f.Path == file {
				got = f.Content
			}
		}
		if got != want {
			t.Errorf("partitioning %q: %q, want %q", partitioning, got, want)
		}
	}
}

func TestRuntimeFile(t *testing.T) {
	cases := map[string]crioCase{
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
	cases["in a cluster with CPU partitioning"] = crioCase{
		change: func(p *plan.NodePlan) { p.ContainerRuntime.WorkloadPartitioning = v1alpha1.WorkloadPartitioningEnabled },
		want: cases["usual"].want + `
[crio.runtime.workloads.management]
activation_annotation = "target.workload.openshift.io/management"
annotation_prefix = "resources.workload.openshift.io"
resources = { "cpushares" = 0, "cpuset" = "0" }
`,
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &plan.NodePlan{Profile: "trading", CPUs: plan.CPUPlan{Housekeeping: set(t, "0")}}
			p.ContainerRuntime = runtimeOf(p.CPUs)
			tc.change(p)
			got, err := crioconfig.File(p)
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
