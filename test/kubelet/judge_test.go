// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubelet

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/cpuset"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
)

// goldenMachines are the machines that the plans behind the golden files of internal/platform/openshift/manifests were written for.
func goldenMachines() map[string]layout {
	return map[string]layout{
		"trading-xeon":      {vendor: "Intel", architecture: "amd64", packages: 2, nodesPerPackage: 1, coresPerNode: 20, threads: 2, memoryPerNode: 96 << 30},
		"perpod-epyc":       {vendor: "AMD", architecture: "amd64", packages: 2, nodesPerPackage: 4, coresPerNode: 16, threads: 1, memoryPerNode: 64 << 30},
		"realtime-existing": {vendor: "Intel", architecture: "amd64", packages: 1, nodesPerPackage: 1, coresPerNode: 32, threads: 1, memoryPerNode: 128 << 30},
		"arm-64k":           {vendor: "ARM", architecture: "arm64", packages: 2, nodesPerPackage: 1, coresPerNode: 64, threads: 1, memoryPerNode: 256 << 30},
	}
}

// TestKubeletTakesTheGoldenFiles judges every KubeletConfig among the golden files, and fails on a golden file without a
// machine, so that none is left out.
func TestKubeletTakesTheGoldenFiles(t *testing.T) {
	folder := filepath.Join("..", "..", "internal", "platform", "openshift", "manifests", "testdata")
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("golden files in %s: %v, %v", folder, files, err)
	}
	for _, file := range files {
		if !hasKubeletConfig(t, file) {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			machine, known := goldenMachines()[name]
			if !known {
				t.Fatalf("no machine for the golden file %s", file)
			}
			configuration, kept := goldenConfiguration(t, file)
			given, err := Judge(configuration, MachineInfo(machine.topology()), t.TempDir())
			if err != nil {
				t.Fatalf("the kubelet refuses %s: %v", configuration, err)
			}
			if kept.Intersection(given).Size() > 0 {
				t.Errorf("the kubelet gives CPUs %s to pods, of which %s are reserved", given, kept)
			}
		})
	}
}

// hasKubeletConfig reports whether a golden file holds a KubeletConfig; a pool of machines that exists already has its own.
func hasKubeletConfig(t *testing.T, file string) bool {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(content), "\nkind: KubeletConfig\n")
}

// goldenConfiguration reads the kubelet configuration out of a golden file, and the CPUs that no pod may get exclusively.
func goldenConfiguration(t *testing.T, file string) (configuration []byte, kept cpuset.CPUSet) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(content), "---\n") {
		var object struct {
			Kind string `json:"kind"`
			Spec struct {
				KubeletConfig json.RawMessage `json:"kubeletConfig"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		if object.Kind == "KubeletConfig" {
			return object.Spec.KubeletConfig, reservedCPUs(t, object.Spec.KubeletConfig)
		}
	}
	t.Fatalf("%s has no KubeletConfig", file)
	return nil, kept
}

// reservedCPUs are those of the static policy; the policy none keeps none.
func reservedCPUs(t *testing.T, configuration []byte) cpuset.CPUSet {
	t.Helper()
	var fields struct {
		CPUManagerPolicy   string `json:"cpuManagerPolicy"`
		ReservedSystemCPUs string `json:"reservedSystemCPUs"`
	}
	if err := json.Unmarshal(configuration, &fields); err != nil {
		t.Fatal(err)
	}
	if fields.CPUManagerPolicy != "static" {
		return cpuset.New()
	}
	reserved, err := cpuset.Parse(fields.ReservedSystemCPUs)
	if err != nil {
		t.Fatal(err)
	}
	return reserved
}

// TestBadConfigurationsAreRefusedTwice changes a configuration that passes. The kubelet's refusal shows that Judge can
// fail, and the renderer's that such a configuration never gets that far.
func TestBadConfigurationsAreRefusedTwice(t *testing.T) {
	cases := map[string]struct {
		change      func(*plan.KubeletPlan)
		wantKubelet string
	}{
		"one byte too much is reserved": {
			func(k *plan.KubeletPlan) { k.ReservedMemory[0].Limits["memory"] = "576716801" }, "is not equal to the value",
		},
		"one byte too little is reserved": {
			func(k *plan.KubeletPlan) { k.ReservedMemory[0].Limits["memory"] = "576716799" }, "is not equal to the value",
		},
		"no memory is reserved by NUMA node": {
			func(k *plan.KubeletPlan) { k.ReservedMemory = nil }, "is not equal to the value",
		},
		"hugepages are reserved": {
			func(k *plan.KubeletPlan) { k.ReservedMemory[0].Limits["hugepages-1Gi"] = "1Gi" }, "is not equal to the value",
		},
		"an unknown key": {
			func(k *plan.KubeletPlan) { k.Additional = map[string]any{"cpuManager": "static"} }, "unknown field",
		},
		"an unknown CPU manager policy": {
			func(k *plan.KubeletPlan) { k.CPUManagerPolicy, k.CPUManagerPolicyOptions = "dynamic", nil }, "unknown policy",
		},
		"an unknown option of the CPU manager": {
			func(k *plan.KubeletPlan) { k.CPUManagerPolicyOptions["whole-cores"] = "true" }, "unknown CPU Manager Policy option",
		},
		"an option of the CPU manager behind a feature gate": {
			func(k *plan.KubeletPlan) { k.CPUManagerPolicyOptions["align-by-socket"] = "true" }, "Alpha-level Options not enabled",
		},
		"an option without the static policy": {
			func(k *plan.KubeletPlan) { k.CPUManagerPolicy = "none" }, "none policy",
		},
		"no reserved CPUs": {
			func(k *plan.KubeletPlan) { k.ReservedSystemCPUs = "" }, "to be greater than zero",
		},
		"an unknown topology policy": {
			func(k *plan.KubeletPlan) { k.TopologyManagerPolicy = "SingleNUMANode" }, "topologyManagerPolicy",
		},
		"an unknown option of the topology manager": {
			func(k *plan.KubeletPlan) { k.TopologyManagerPolicyOptions = map[string]string{"near": "true"} }, "unknown Topology Manager Policy option",
		},
		"an unknown scope": {
			func(k *plan.KubeletPlan) { k.TopologyManagerScope = "Pod" }, "topologyManagerScope",
		},
		"an unknown memory manager policy": {
			func(k *plan.KubeletPlan) { k.MemoryManagerPolicy = "static" }, "unknown policy",
		},
	}
	machine := MachineInfo(goldenMachines()["trading-xeon"].topology())
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			good := kubeletPlan()
			if _, err := Judge(unchecked(t, good), machine, t.TempDir()); err != nil {
				t.Fatalf("the kubelet refuses the unchanged configuration: %v", err)
			}
			tc.change(&good)
			if _, err := Judge(unchecked(t, good), machine, t.TempDir()); err == nil || !strings.Contains(err.Error(), tc.wantKubelet) {
				t.Errorf("the kubelet says %v, want %q", err, tc.wantKubelet)
			}
			if configuration, err := manifests.KubeletConfiguration(good); err == nil {
				t.Errorf("it is rendered: %s", configuration)
			}
		})
	}
}

// TestMachinesThatDoNotFit has good configurations on a machine that they were not made for: what the renderer cannot
// know, and the planner must.
func TestMachinesThatDoNotFit(t *testing.T) {
	small := layout{packages: 1, nodesPerPackage: 1, coresPerNode: 4, threads: 1, memoryPerNode: 8 << 30}
	many := layout{packages: 3, nodesPerPackage: 4, coresPerNode: 8, threads: 2, memoryPerNode: 8 << 30}
	cases := map[string]struct {
		machine layout
		change  func(*plan.KubeletPlan)
		want    string
	}{
		"reserved CPUs that do not exist": {small, func(*plan.KubeletPlan) {}, "not a subset of the online CPUs"},
		"a NUMA node that does not exist": {
			small, func(k *plan.KubeletPlan) { k.ReservedSystemCPUs = "0" }, "NUMA node 1 that does not exist",
		},
		"more NUMA nodes than the topology manager takes by itself": {
			many, func(*plan.KubeletPlan) {}, "more than 8 NUMA Nodes",
		},
		"no CPU left for pods": {
			small, func(k *plan.KubeletPlan) {
				k.ReservedSystemCPUs = "0-3"
				k.ReservedMemory = []plan.MemoryReservation{{Limits: map[string]string{"memory": "1100Mi"}}}
			}, "no CPU for pods",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kubelet := kubeletPlan()
			tc.change(&kubelet)
			configuration, err := manifests.KubeletConfiguration(kubelet)
			if err != nil {
				t.Fatalf("KubeletConfiguration: %v", err)
			}
			if _, err := Judge(configuration, MachineInfo(tc.machine.topology()), t.TempDir()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the kubelet says %v, want %q", err, tc.want)
			}
		})
	}
}

// kubeletPlan fits a machine with two NUMA nodes and 80 CPUs.
func kubeletPlan() plan.KubeletPlan {
	return plan.KubeletPlan{
		CPUManagerPolicy:        "static",
		CPUManagerPolicyOptions: map[string]string{"full-pcpus-only": "true"},
		TopologyManagerPolicy:   "single-numa-node",
		TopologyManagerScope:    "pod",
		MemoryManagerPolicy:     "Static",
		ReservedSystemCPUs:      "0-1,40-41",
		ReservedMemory: []plan.MemoryReservation{
			{NUMANode: 0, Limits: map[string]string{"memory": "550Mi"}},
			{NUMANode: 1, Limits: map[string]string{"memory": "550Mi"}},
		},
		SystemReserved: map[string]string{"memory": "500Mi"},
		KubeReserved:   map[string]string{"memory": "500Mi"},
		EvictionHard:   map[string]string{"memory.available": "100Mi"},
	}
}

// unchecked prints a kubelet plan without the renderer's checks.
func unchecked(t *testing.T, kubelet plan.KubeletPlan) []byte {
	t.Helper()
	additional := kubelet.Additional
	kubelet.Additional = nil
	raw, err := json.Marshal(kubelet)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "origin")
	fields["apiVersion"], fields["kind"] = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"
	maps.Copy(fields, additional)
	if raw, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	return raw
}
