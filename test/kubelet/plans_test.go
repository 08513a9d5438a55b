// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubelet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/utils/cpuset"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubeletconfig"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// attempts is the number of random profiles on random machines.
const attempts = 1500

// TestKubeletTakesEveryPlan plans random profiles for random machines. Whatever plan comes out, the kubelet starts with
// it and gives exactly the isolated CPUs to pods, without those of the data plane.
func TestKubeletTakesEveryPlan(t *testing.T) {
	planned := 0
	managers := map[string]int{}
	for seed := range uint64(attempts) {
		r := rand.New(rand.NewPCG(seed, 0))
		host := randomLayout(r).topology()
		addOddNodes(r, host)
		profile := randomProfile(r, host)
		p, findings := plan.New(plan.Input{Profile: profile, Topology: host})
		if p == nil {
			if len(findings) == 0 {
				t.Errorf("seed %d: neither a plan nor a finding", seed)
			}
			continue
		}
		planned++
		managers[p.Kubelet.CPUManagerPolicy+" "+p.Kubelet.MemoryManagerPolicy+" "+p.Kubelet.TopologyManagerPolicy]++
		if err := judgePlan(p, host, t.TempDir()); err != nil {
			t.Errorf("seed %d: %v\nspec: %+v", seed, err, profile.Spec)
		}
		if t.Failed() && planned > 20 {
			t.Fatalf("stopping at seed %d", seed)
		}
	}
	if planned < attempts/3 || len(managers) < 5 {
		t.Errorf("%d of %d profiles could be planned, with the managers %v: too few to mean anything", planned, attempts, managers)
	}
	t.Logf("%d plans, managers %v", planned, managers)
}

// judgePlan renders the plan and has the kubelet start with it on the host as it is after the reboot.
func judgePlan(p *plan.NodePlan, host *topology.Topology, directory string) error {
	if _, err := manifests.Objects(manifests.Input{Plan: p, MachineConfigPool: manifests.MachineConfigPool{Name: "pool"}, Namespace: "lowlatency"}); err != nil {
		return fmt.Errorf("rendering: %w", err)
	}
	configuration, err := manifests.KubeletConfiguration(p.Kubelet)
	if err != nil {
		return fmt.Errorf("rendering the kubelet configuration: %w", err)
	}
	booted := *host
	booted.Online = p.CPUs.Housekeeping.Union(p.CPUs.Isolated)
	given, err := Judge(configuration, MachineInfo(&booted), directory)
	if err != nil {
		return fmt.Errorf("the kubelet refuses %s: %w", configuration, err)
	}
	if err := judgeMerged(p, &booted, directory); err != nil {
		return err
	}
	if p.Kubelet.CPUManagerPolicy != "static" {
		return nil
	}
	if want := cpuset.New(p.CPUs.Isolated.Difference(p.CPUs.DataPlane).IDs()...); !given.Equals(want) {
		return fmt.Errorf("the kubelet gives CPUs %s to pods, want %s", given, want)
	}
	return nil
}

// judgeMerged writes the plan for a host of kubeadm, and has the kubelet start with what its files come to together.
func judgeMerged(p *plan.NodePlan, booted *topology.Topology, directory string) error {
	facts := &host.Facts{}
	facts.Software.KubeletUnit = host.Known("kubelet.service", "")
	facts.Software.KubeletConfigArguments = host.Known("--config=/var/lib/kubelet/config.yaml", "")
	facts.Kubelet.File = host.Known("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupDriver: systemd\n"+
		"cpuManagerPolicy: static\ncpuManagerPolicyOptions: {strict-cpu-reservation: \"true\"}\nreservedSystemCPUs: \"0\"\n"+
		"memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\nevictionHard: {pid.available: 10%}\n", "")
	facts.Kubelet.DropIns = host.Known([]host.KubeletDropIn(nil), "")
	written, err := kubernetes.Write(p, facts)
	if err != nil {
		return fmt.Errorf("writing for a host of kubeadm: %w", err)
	}
	if written.KubeletConfiguration == "" {
		return errors.New("what the kubelet makes of its files was not computed")
	}
	if _, err := Judge([]byte(written.KubeletConfiguration), MachineInfo(booted), directory); err != nil {
		return fmt.Errorf("the kubelet refuses what its files come to: %s: %w", written.KubeletConfiguration, err)
	}
	return nil
}

// TestKubeletRefusesWhatJudgeRefuses puts a merged configuration with what others say before the kubelet's code and before ours: they agree.
func TestKubeletRefusesWhatJudgeRefuses(t *testing.T) {
	const merged = `{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "cpuManagerPolicy": "static", "reservedSystemCPUs": "0",
		"containerRuntimeEndpoint": "unix:///run/x.sock", "cpuManagerPolicyOptions": {"distribute-cpus-across-numa": "true"},
		"memoryManagerPolicy": "Static", "systemReserved": {"memory": "1Gi"}, "kubeReserved": {"memory": "1Gi"}, "evictionHard": {"memory.available": "1Gi"},
		"reservedMemory": [{"numaNode": 0, "limits": {"memory": "3Gi"}}]%s}`
	machine := MachineInfo(layout{
		packages: 2, nodesPerPackage: 1, coresPerNode: 8, threads: 1, memoryPerNode: 64 << 30, vendor: "Intel", architecture: "amd64",
	}.topology())
	for name, tc := range map[string]struct {
		more    string
		refused bool
	}{
		"nothing":                        {"", false},
		"a limit of pods":                {`, "maxPods": 30`, false},
		"pods alone are held to it":      {`, "enforceNodeAllocatable": ["pods"]`, false},
		"a control group of the kubelet": {`, "kubeReservedCgroup": "/kube.slice"`, true},
		"a control group of the system":  {`, "systemReservedCgroup": "/system.slice"`, true},
		"enforced without one":           {`, "enforceNodeAllocatable": ["pods", "system-reserved"]`, true},
		"enforced for CPUs without one":  {`, "enforceNodeAllocatable": ["pods", "kube-reserved-compressible"]`, true},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := fmt.Appendf(nil, merged, tc.more)
			_, theirs := Judge(configuration, machine, t.TempDir())
			ours := kubeletconfig.Judge(configuration)
			if theirs != nil != tc.refused || ours != nil != tc.refused {
				t.Errorf("the kubelet: %v\nours: %v", theirs, ours)
			}
		})
	}
}

// randomLayout is a machine of one to twelve NUMA nodes.
func randomLayout(r *rand.Rand) layout {
	l := layout{
		packages:        pick(r, 1, 2, 2, 4),
		nodesPerPackage: pick(r, 1, 1, 2, 3, 4),
		coresPerNode:    pick(r, 2, 4, 8, 16, 24),
		threads:         pick(r, 1, 2),
		memoryPerNode:   pick(r, int64(4), 16, 64, 256) << 30,
		vendor:          pick(r, "Intel", "AMD", "ARM"),
		architecture:    "amd64",
	}
	if l.vendor == "ARM" {
		l.architecture, l.threads = "arm64", 1
	}
	return l
}

// addOddNodes gives some machines a NUMA node without CPUs, as memory expanders are, or one without memory.
func addOddNodes(r *rand.Rand, host *topology.Topology) {
	switch r.IntN(6) {
	case 0:
		memory := int64(128 << 30)
		host.NUMANodes = append(host.NUMANodes, topology.NUMANode{
			ID: len(host.NUMANodes) + r.IntN(2), MemoryBytes: &memory, HugepageSizes: []int64{2048, 1048576},
		})
	case 1:
		none := int64(0)
		host.NUMANodes[r.IntN(len(host.NUMANodes))].MemoryBytes = &none
	}
}

// randomProfile sets about half of what bears on the kubelet; what is not set is left to the defaults.
func randomProfile(r *rand.Rand, host *topology.Topology) *v1alpha1.LowLatencyNodeProfile {
	profile := &v1alpha1.LowLatencyNodeProfile{}
	profile.Name = "random"
	s := &profile.Spec
	s.NodeSelector.MatchLabels = v1alpha1.Labels{"random": ""}
	s.CPUs.SimultaneousMultithreading = pick(r, "", v1alpha1.SMTKept, v1alpha1.SMTDisabled)
	if r.IntN(3) == 0 {
		s.CPUs.Partition, s.CPUs.Explicit = v1alpha1.PartitionExplicit, randomLists(r, host)
	} else {
		s.CPUs.Derived = &v1alpha1.DerivedCPUs{
			HousekeepingCores: pick(r, int32(0), 1, 2, 3),
			Spread:            pick(r, "", v1alpha1.SpreadPerNUMANode, v1alpha1.SpreadFirstNUMANode),
			SharedCaches:      pick(r, "", v1alpha1.CacheSharingAllowed, v1alpha1.CacheSharingAvoided),
		}
	}
	s.NUMA.TopologyPolicy = pick(r, "", v1alpha1.TopologyNone, v1alpha1.TopologyBestEffort,
		v1alpha1.TopologyRestricted, v1alpha1.TopologySingleNUMANode)
	s.NUMA.Scope = pick(r, "", v1alpha1.TopologyScopeContainer, v1alpha1.TopologyScopePod)
	s.Kubelet = v1alpha1.KubeletSpec{
		ResourceManagement:   pick(r, "", "", "", v1alpha1.ResourceManagementKubelet, v1alpha1.ResourceManagementDRA),
		FullCores:            pick(r, "", v1alpha1.FullCoresRequired, v1alpha1.FullCoresNotRequired),
		SystemReservedMemory: randomMemory(r), KubeReservedMemory: randomMemory(r), EvictionHardMemory: randomMemory(r),
		AdditionalConfiguration: pick(r, additionalConfigurations()...),
	}
	if r.IntN(3) == 0 {
		s.Memory.DefaultHugepageSize = "2Mi"
		s.Memory.Hugepages = []v1alpha1.HugepageReservation{{
			Size: "2Mi", Count: 64, Placement: pick(r, "", v1alpha1.HugepagesSpread, v1alpha1.HugepagesEveryNUMANode),
		}}
	}
	return profile
}

// additionalConfigurations are settings that meet computed ones in the same maps, and some that do not.
func additionalConfigurations() []string {
	return []string{
		"", "", "", "maxPods: 100\npodPidsLimit: 4096\n", `{"serializeImagePulls": false}`,
		`cpuManagerPolicyOptions: {distribute-cpus-across-numa: "true"}`,
		`cpuManagerPolicyOptions: {strict-cpu-reservation: "true", prefer-align-cpus-by-uncorecache: "true"}`,
		`cpuManagerPolicyOptions: {distribute-cpus-across-numa: "true", prefer-align-cpus-by-uncorecache: "true"}`,

		`cpuManagerPolicyOptions: {strict-cpu-reservation: "perhaps"}`,
		`topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true"}`,
		`topologyManagerPolicyOptions: {max-allowable-numa-nodes: "4"}`,
		"systemReserved: {cpu: 500m, ephemeral-storage: 1Gi}\nkubeReserved: {cpu: 500m}\n",
		"evictionHard: {nodefs.available: 5%, pid.available: 10%}\n",
		"evictionSoft: {memory.available: 1Gi}\nevictionSoftGracePeriod: {memory.available: 1m}\n",
	}
}

// randomMemory has amounts in several units, so that sums have to be computed and not compared as text.
func randomMemory(r *rand.Rand) v1alpha1.MemoryQuantity {
	return pick[v1alpha1.MemoryQuantity](r, "", "100Mi", "1Gi", "1000M", "786432Ki", "123456789")
}

// randomLists divides the cores: the first of each NUMA node keep house, some others may be the data plane's.
func randomLists(r *rand.Rand, host *topology.Topology) *v1alpha1.ExplicitCPUs {
	house, data, isolated := host.Online.Difference(host.Online), host.Online.Difference(host.Online), host.Online
	for _, node := range host.NUMANodes {
		if cores := host.CoresOf(node.ID); len(cores) > 0 {
			house = house.Union(cores[0].CPUs)
		}
	}
	isolated = isolated.Difference(house)
	if cores := host.CoresOf(host.NUMANodes[0].ID); r.IntN(2) == 0 && len(cores) > 3 {
		data = cores[1].CPUs
		isolated = isolated.Difference(data)
	}
	return &v1alpha1.ExplicitCPUs{
		Housekeeping: v1alpha1.CPUList(house.String()), Isolated: v1alpha1.CPUList(isolated.String()),
		DataPlane: v1alpha1.CPUList(data.String()),
	}
}

func pick[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }
