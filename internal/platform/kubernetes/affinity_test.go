// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubernetes

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// TestAffinity: control groups get the CPUs where the kernel takes them from processes once a kubelet divides CPUs.
func TestAffinity(t *testing.T) {
	cases := map[string]struct {
		change func(*host.Facts, *plan.NodePlan)
		want   bool
	}{
		"Debian 12":         {func(*host.Facts, *plan.NodePlan) {}, true},
		"an unknown kernel": {func(f *host.Facts, _ *plan.NodePlan) { f.Kernel.Release = host.Absent[string]("", "unreadable") }, true},
		"the last kernel that forgets": {
			func(f *host.Facts, _ *plan.NodePlan) { f.Kernel.Release = host.Known("6.1.99-generic", "") }, true,
		},
		"the first kernel that remembers": {
			func(f *host.Facts, _ *plan.NodePlan) { f.Kernel.Release = host.Known("6.2.0-20-generic", "") }, false,
		},
		"a host without a kubelet": {
			func(f *host.Facts, _ *plan.NodePlan) { f.Software.KubeletUnit = host.Absent[string]("", "none") }, false,
		},
		"a plan that leaves services where they are": {
			func(_ *host.Facts, p *plan.NodePlan) {
				p.KernelArguments = slices.DeleteFunc(slices.Clone(p.KernelArguments), func(a plan.Argument) bool {
					return strings.HasPrefix(a.Text, affinityArgument)
				})
			}, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			facts, planned := kubeadm(), goldenPlan(t)
			tc.change(facts, planned)
			w := &writer{plan: planned, facts: facts}
			if err := w.writeAffinity(); err != nil {
				t.Fatal(err)
			}
			var want []operation.Operation
			if tc.want {
				cpus := planned.CPUs.Housekeeping.String()
				want = []operation.Operation{
					operation.PutUnit(affinityUnit, "[Unit]\nDescription=Keep programs outside of pods on their CPUs\nAfter=systemd-modules-load.service\n"+
						"Before="+beforePods()+"\n\n[Service]\nType=oneshot\nRemainAfterExit=true\n"+
						"ExecStart=/usr/bin/systemctl set-property --runtime system.slice AllowedCPUs="+cpus+"\n"+
						"ExecStart=/usr/bin/systemctl set-property --runtime user.slice AllowedCPUs="+cpus+"\n"+
						"ExecStart=/usr/bin/systemctl set-property --runtime init.scope AllowedCPUs="+cpus+"\n"+
						"\n[Install]\nWantedBy=multi-user.target\n", operation.Enabled),
					operation.SetService(affinityUnit, operation.Started),
				}
			}
			if diff := cmp.Diff(want, w.Operations); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
		})
	}
}

// TestThreadPrioritiesWithTuneD are set by the operator's own unit with TuneD and without: Debian's cannot.
func TestThreadPrioritiesWithTuneD(t *testing.T) {
	for name, facts := range map[string]*host.Facts{"without TuneD": kubeadm(), "with TuneD": rocky()} {
		written, err := Write(goldenPlan(t), facts)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(written.Operations, func(o operation.Operation) bool { return o.Name == prioritiesUnit && o.Kind == operation.Unit }) {
			t.Errorf("%s: no unit sets the priorities of threads", name)
		}
	}
}
