// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// defaultEviction are the kubelet's own thresholds.
func defaultEviction() map[string]string {
	return map[string]string{"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%",
		"imagefs.available": "15%", "imagefs.inodesFree": "5%"}
}

func TestKubelet(t *testing.T) {
	reserved := map[string]string{"memory": "500Mi"}
	cases := map[string]struct {
		change change
		want   KubeletPlan
	}{
		"single NUMA node by default": {func(*v1alpha1.LowLatencyNodeProfileSpec) {}, KubeletPlan{
			CPUManagerPolicy: "static", CPUManagerPolicyOptions: map[string]string{"full-pcpus-only": "true"},
			CPUManagerReconcilePeriod: "5s", TopologyManagerPolicy: "single-numa-node", TopologyManagerScope: "pod",
			MemoryManagerPolicy: "Static", ReservedSystemCPUs: "0,20,40,60",
			ReservedMemory: []MemoryReservation{{NUMANode: 0, Limits: map[string]string{"memory": "1100Mi"}}},
			SystemReserved: reserved, KubeReserved: reserved, EvictionHard: defaultEviction(),
		}},
		"restricted": {topologyPolicy(v1alpha1.TopologyRestricted), KubeletPlan{
			CPUManagerPolicy: "static", CPUManagerReconcilePeriod: "5s", TopologyManagerPolicy: "restricted",
			TopologyManagerScope: "container", MemoryManagerPolicy: "Static", ReservedSystemCPUs: "0,20,40,60",
			ReservedMemory: []MemoryReservation{{NUMANode: 0, Limits: map[string]string{"memory": "1100Mi"}}},
			SystemReserved: reserved, KubeReserved: reserved, EvictionHard: defaultEviction(),
		}},
		"best effort": {topologyPolicy(v1alpha1.TopologyBestEffort), KubeletPlan{
			CPUManagerPolicy: "static", CPUManagerReconcilePeriod: "5s", TopologyManagerPolicy: "best-effort",
			TopologyManagerScope: "container", MemoryManagerPolicy: "None", ReservedSystemCPUs: "0,20,40,60",
			SystemReserved: reserved, KubeReserved: reserved, EvictionHard: defaultEviction(),
		}},
		"no alignment": {topologyPolicy(v1alpha1.TopologyNone), KubeletPlan{
			CPUManagerPolicy: "static", CPUManagerReconcilePeriod: "5s", TopologyManagerPolicy: "none",
			MemoryManagerPolicy: "None", ReservedSystemCPUs: "0,20,40,60",
			SystemReserved: reserved, KubeReserved: reserved, EvictionHard: defaultEviction(),
		}},
		"Dynamic Resource Allocation": {func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Kubelet.ResourceManagement = v1alpha1.ResourceManagementDRA
		}, KubeletPlan{
			CPUManagerPolicy: "none", TopologyManagerPolicy: "none", MemoryManagerPolicy: "None",
			ReservedSystemCPUs: "0,20,40,60", SystemReserved: reserved, KubeReserved: reserved, EvictionHard: defaultEviction(),
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := planOf(t, xeon(), tc.change).Kubelet
			got.Origin = Origin{}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("kubelet (-want +got):\n%s", diff)
			}
		})
	}
}

func topologyPolicy(policy v1alpha1.TopologyPolicy) change {
	return func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.NUMA.TopologyPolicy = policy }
}

func TestReservedMemory(t *testing.T) {
	nearFirst := func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		s.Network.NICs = []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"ens1f0"}}}
	}
	memoryless := xeon()
	memoryless.NUMANodes[0].MemoryBytes = new(int64(0))
	onTheFirst := explicit(v1alpha1.ExplicitCPUs{Housekeeping: "0,40", Isolated: "1-39,41-79"})
	cases := map[string]struct {
		machine  *topology.Topology
		change   change
		wantNode int32
		want     string
	}{
		"where there is memory, although housekeeping is elsewhere": {memoryless, onTheFirst, 1, "1100Mi"},
		"on the first NUMA node":                                    {xeon(), solarflare, 0, "1100Mi"},
		"away from the bypass NIC":                                  {xeon(), nearFirst, 1, "1100Mi"},
		"where there is memory":                                     {memoryless, func(*v1alpha1.LowLatencyNodeProfileSpec) {}, 1, "1100Mi"},
		"where housekeeping is":                                     {xeon(), explicit(v1alpha1.ExplicitCPUs{Housekeeping: "0,20,40,60", Isolated: "1-19,21-39,41-59,61-79"}), 0, "1100Mi"},
		"where housekeeping is, on the second":                      {xeon(), explicit(v1alpha1.ExplicitCPUs{Housekeeping: "20-39,60-79", Isolated: "0-19,40-59"}), 1, "1100Mi"},
		"amounts in other units": {xeon(), func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Kubelet.SystemReservedMemory, s.Kubelet.KubeReservedMemory, s.Kubelet.EvictionHardMemory = "1Gi", "2G", "4096"
		}, 0, "3073745920"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := planOf(t, tc.machine, tc.change).Kubelet
			if len(k.ReservedMemory) != 1 || k.ReservedMemory[0].NUMANode != tc.wantNode {
				t.Fatalf("reserved %+v, want NUMA node %d", k.ReservedMemory, tc.wantNode)
			}
			checkReservedMemory(t, k)
			want, got := resource.MustParse(tc.want), resource.MustParse(k.ReservedMemory[0].Limits["memory"])
			if got.Cmp(want) != 0 {
				t.Errorf("reserved %s, want %s", got.String(), want.String())
			}
		})
	}
}

// checkReservedMemory is the kubelet's rule (validateReservedMemory in pkg/kubelet/cm/memorymanager).
func checkReservedMemory(t testingT, k KubeletPlan) {
	t.Helper()
	if k.MemoryManagerPolicy != "Static" {
		if k.ReservedMemory != nil {
			t.Fatalf("memory %v is reserved without a memory manager", k.ReservedMemory)
		}
		return
	}
	sum := resource.Quantity{}
	for _, r := range k.ReservedMemory {
		if len(r.Limits) != 1 {
			t.Fatalf("limits %v, want memory alone", r.Limits)
		}
		sum.Add(resource.MustParse(r.Limits["memory"]))
	}
	allocatable := resource.MustParse(k.SystemReserved["memory"])
	allocatable.Add(resource.MustParse(k.KubeReserved["memory"]))
	allocatable.Add(resource.MustParse(k.EvictionHard["memory.available"]))
	if !sum.Equal(allocatable) {
		t.Fatalf("reserved memory %s, but the node keeps back %s", sum.String(), allocatable.String())
	}
}

func TestKubeletFindings(t *testing.T) {
	many := layout{architecture: "amd64", vendor: "AMD", numaNodes: 12, coresPerNode: 2, threads: 1, memoryPerNode: 4 * gibibyte,
		stride: 1}.topology()
	cases := map[string]struct {
		machine *topology.Topology
		change  change
		want    []string
	}{
		"a fraction": {xeon(), func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Kubelet.SystemReservedMemory = "1m" },
			[]string{"plan.quantity Critical spec.kubelet.systemReservedMemory"}},
		"a percentage": {xeon(), func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Kubelet.EvictionHardMemory = "5%" },
			[]string{"plan.quantity Critical spec.kubelet.evictionHardMemory"}},
		"a negative amount": {xeon(), func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Kubelet.KubeReservedMemory = "-1Gi" },
			[]string{"plan.quantity Critical spec.kubelet.kubeReservedMemory"}},
		"more than the NUMA node has": {small(4, 1), func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Kubelet.KubeReservedMemory = "16Gi" },
			[]string{"plan.reserved-memory Critical spec.kubelet.systemReservedMemory"}},
		"more NUMA nodes than the topology manager likes": {many, func(*v1alpha1.LowLatencyNodeProfileSpec) {},
			[]string{"plan.housekeeping-share Low spec.cpus.derived", "plan.numa-node-count Low spec.numa.topologyPolicy"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, findingsOf(tc.machine, tc.change)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
	if got := planOf(t, many).Kubelet.TopologyManagerPolicyOptions["max-allowable-numa-nodes"]; got != "12" {
		t.Errorf("the topology manager accepts %q NUMA nodes, want 12", got)
	}
}

func configuration(text string) change {
	return func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Kubelet.AdditionalConfiguration = text }
}

func TestAdditionalConfiguration(t *testing.T) {
	cases := map[string]struct {
		text   string
		change change
		// want is the difference to the kubelet's settings without the text, as JSON.
		want string
		// wantWord is in the finding that refuses the text.
		wantWord string
	}{
		"YAML":                     {text: "maxPods: 100\nregistryBurst: 5\n", want: `{"additional":{"maxPods":100,"registryBurst":5}}`},
		"JSON":                     {text: `{"maxPods": 100}`, want: `{"additional":{"maxPods":100}}`},
		"with its kind":            {text: "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\nmaxPods: 9", want: `{"additional":{"maxPods":9}}`},
		"a key of a shared map":    {text: "systemReserved: {cpu: 500m}", want: `{"systemReserved":{"cpu":"500m","memory":"500Mi"}}`},
		"another threshold":        {text: "evictionHard: {nodefs.available: 5%}", want: `{"evictionHard":{"imagefs.available":"15%","imagefs.inodesFree":"5%","memory.available":"100Mi","nodefs.available":"5%","nodefs.inodesFree":"5%"}}`},
		"another CPU option":       {text: `cpuManagerPolicyOptions: {strict-cpu-reservation: "true"}`, want: `{"cpuManagerPolicyOptions":{"full-pcpus-only":"true","strict-cpu-reservation":"true"}}`},
		"a topology option":        {text: `topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true"}`, want: `{"topologyManagerPolicyOptions":{"prefer-closest-numa-nodes":"true"}}`},
		"an unknown field":         {text: "maxPods: 100\nmaxPod: 1", wantWord: `unknown field "maxPod"`},
		"the wrong case":           {text: "MaxPods: 100", wantWord: `unknown field "MaxPods"`},
		"a nested unknown field":   {text: "authentication: {x509: {nope: 1}}", wantWord: "authentication.x509.nope"},
		"a field twice":            {text: "maxPods: 1\nmaxPods: 2", wantWord: "maxPods"},
		"the wrong type":           {text: "maxPods: many", wantWord: "maxPods"},
		"what no platform keeps":   {text: "cgroupDriver: systemd", want: `{"additional":{"cgroupDriver":"systemd"}}`},
		"another kind":             {text: "kind: Pod", wantWord: "Pod"},
		"no mapping":               {text: "- 1", wantWord: ""},
		"not YAML":                 {text: "{", wantWord: ""},
		"a computed field":         {text: "topologyManagerPolicy: none", wantWord: "topologyManagerPolicy is decided by spec.numa.topologyPolicy"},
		"computed memory":          {text: "systemReserved: {memory: 1Gi}", wantWord: "systemReserved.memory"},
		"reserved hugepages":       {text: "kubeReserved: {hugepages-1Gi: 1Gi}", wantWord: "kubeReserved.hugepages-1Gi"},
		"a computed option":        {text: `cpuManagerPolicyOptions: {full-pcpus-only: "false"}`, wantWord: "cpuManagerPolicyOptions.full-pcpus-only"},
		"an unknown option":        {text: `cpuManagerPolicyOptions: {faster: "true"}`, wantWord: "cpuManagerPolicyOptions.faster"},
		"an option without a bool": {text: `cpuManagerPolicyOptions: {strict-cpu-reservation: "maybe"}`, wantWord: "maybe"},
		"a refused cgroup":         {text: "systemReservedCgroup: /system.slice", wantWord: "systemReservedCgroup"},
		"a field of the platform":  {text: "featureGates: {A: true}", wantWord: "featureGates is decided by the platform"},
		"options that exclude each other": {text: `cpuManagerPolicyOptions: {distribute-cpus-across-numa: "true", prefer-align-cpus-by-uncorecache: "true"}`,
			wantWord: "prefer-align-cpus-by-uncorecache and distribute-cpus-across-numa"},
		"an option behind a feature gate": {text: `cpuManagerPolicyOptions: {align-by-socket: "true"}`, wantWord: "align-by-socket is not one of"},
		"options without a manager": {text: `cpuManagerPolicyOptions: {strict-cpu-reservation: "true"}`, change: func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Kubelet.ResourceManagement = v1alpha1.ResourceManagementDRA
		}, wantWord: "strict-cpu-reservation"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.change == nil {
				tc.change = func(*v1alpha1.LowLatencyNodeProfileSpec) {}
			}
			plan, findings := New(Input{
				Profile: profileWith(tc.change, configuration(tc.text)), Topology: xeon(),
				Platform: PlatformRules{KubeletFields: []string{"clusterDNS", "featureGates"}},
			})
			if tc.want == "" {
				if len(findings) != 1 || findings[0].Rule != "plan.kubelet-configuration" || !strings.Contains(findings[0].Message, tc.wantWord) || plan != nil {
					t.Errorf("findings %s, want one with %q", describe(findings), tc.wantWord)
				}
				return
			}
			if plan == nil {
				t.Fatalf("refused: %s", describe(findings))
			}
			if got := kubeletDifference(t, planOf(t, xeon(), tc.change).Kubelet, plan.Kubelet); got != tc.want {
				t.Errorf("settings %s, want %s", got, tc.want)
			}
		})
	}
}

// kubeletDifference is the fields that differ, as JSON.
func kubeletDifference(t *testing.T, before, after KubeletPlan) string {
	t.Helper()
	left, right := fields(t, before), fields(t, after)
	for name := range right {
		if cmp.Equal(left[name], right[name]) {
			delete(right, name)
		}
	}
	data, err := json.Marshal(right)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// fields are the JSON fields of a value.
func fields(t *testing.T, value any) map[string]any {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// FuzzAdditionalConfiguration: whatever the text, the plan computes what it computes, and its reserved
// memory adds up.
func FuzzAdditionalConfiguration(f *testing.F) {
	for _, seed := range []string{"maxPods: 100", `{"maxPods": 1}`, "systemReserved: {memory: 1Gi}", "systemReserved: {cpu: 1}",
		"a: &a [*a]", "evictionHard: {memory.available: 1Gi}", "reservedMemory: []", "kind: 1", "evictionHard: 3", "{", "- 1", "\x00",
		"CPUManagerPolicy: none", "cpuManagerPolicyOptions: null", "registerWithTaints:\n- key: a\n  effect: b\n"} {
		f.Add(seed)
	}
	plain := planOf(f, xeon()).Kubelet
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 16384 {
			return
		}
		plan, findings := New(Input{Profile: profileWith(configuration(text)), Topology: xeon()})
		if (plan == nil) == (len(findings) == 0) {
			t.Fatalf("plan %v with findings %s", plan, describe(findings))
		}
		if plan == nil {
			return
		}
		checkReservedMemory(t, plan.Kubelet)
		for name := range computedFields() {
			if _, there := plan.Kubelet.Additional[name]; there {
				t.Fatalf("%q puts %s beside the computed one", text, name)
			}
		}
		if plan.Kubelet.CPUManagerPolicy != plain.CPUManagerPolicy || plan.Kubelet.ReservedSystemCPUs != plain.ReservedSystemCPUs ||
			plan.Kubelet.CPUManagerPolicyOptions["full-pcpus-only"] != "true" {
			t.Fatalf("%q changes computed settings: %+v", text, plan.Kubelet)
		}
		if _, err := json.Marshal(plan); err != nil {
			t.Fatalf("%q makes a plan that cannot be written: %v", text, err)
		}
	})
}
