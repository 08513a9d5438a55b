// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubeletconfig

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// managed has all managers on, with 1100 MiB reserved on NUMA nodes 0 and 1.
func managed() plan.KubeletPlan {
	return plan.KubeletPlan{
		CPUManagerPolicy:          "static",
		CPUManagerPolicyOptions:   map[string]string{"full-pcpus-only": "true"},
		CPUManagerReconcilePeriod: "5s",
		TopologyManagerPolicy:     "single-numa-node",
		TopologyManagerScope:      "pod",
		MemoryManagerPolicy:       "Static",
		ReservedSystemCPUs:        "0-1,40-41",
		ReservedMemory: []plan.MemoryReservation{
			{NUMANode: 0, Limits: map[string]string{"memory": "550Mi"}},
			{NUMANode: 1, Limits: map[string]string{"memory": "550Mi"}},
		},
		SystemReserved: map[string]string{"memory": "500Mi"},
		KubeReserved:   map[string]string{"memory": "500Mi"},
		EvictionHard: map[string]string{
			"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%",
		},
		Origin: plan.Origin{Source: plan.FromDefault, Detail: "spec.kubelet.resourceManagement"},
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error = %v, want one that contains %q", err, want)
	}
}

func TestKubeletConfigurationHasThePlannedFieldsOnly(t *testing.T) {
	kubelet := managed()
	kubelet.Additional = map[string]any{"maxPods": 100}
	raw, err := Print(kubelet)
	if err != nil {
		t.Fatalf("Print: %v", err)
	}
	var got map[string]any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatalf("reading the configuration: %v", err)
	}
	memory := func(quantity string) map[string]any { return map[string]any{"memory": quantity} }
	want := map[string]any{
		"apiVersion":                "kubelet.config.k8s.io/v1beta1",
		"kind":                      "KubeletConfiguration",
		"cpuManagerPolicy":          "static",
		"cpuManagerPolicyOptions":   map[string]any{"full-pcpus-only": "true"},
		"cpuManagerReconcilePeriod": "5s",
		"topologyManagerPolicy":     "single-numa-node",
		"topologyManagerScope":      "pod",
		"memoryManagerPolicy":       "Static",
		"reservedSystemCPUs":        "0-1,40-41",
		"reservedMemory": []any{
			map[string]any{"numaNode": float64(0), "limits": memory("550Mi")},
			map[string]any{"numaNode": float64(1), "limits": memory("550Mi")},
		},
		"systemReserved": memory("500Mi"),
		"kubeReserved":   memory("500Mi"),
		"evictionHard": map[string]any{
			"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%",
		},
		"maxPods": float64(100),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestKubeletConfigurationRefusals(t *testing.T) {
	additional := func(name string, value any) func(*plan.KubeletPlan) {
		return func(k *plan.KubeletPlan) { k.Additional = map[string]any{name: value} }
	}
	cases := map[string]struct {
		change func(*plan.KubeletPlan)
		want   string
	}{
		"an unknown field":             {additional("maxPod", 100), `unknown field "maxPod"`},
		"a field in other letters":     {additional("MaxPods", 100), `unknown field "MaxPods"`},
		"an unknown field further in":  {additional("logging", map[string]any{"colour": "red"}), "logging.colour"},
		"a field of the wrong type":    {additional("maxPods", "many"), "maxPods"},
		"a computed field":             {additional("reservedSystemCPUs", "0"), "reservedSystemCPUs is computed"},
		"another kind":                 {additional("kind", "KubeletConfig"), "kind is computed"},
		"a value that is no JSON":      {additional("maxPods", func() {}), "printing the kubelet configuration"},
		"an unknown CPU policy":        {func(k *plan.KubeletPlan) { k.CPUManagerPolicy = "Static" }, `cpuManagerPolicy is "Static"`},
		"an unknown memory policy":     {func(k *plan.KubeletPlan) { k.MemoryManagerPolicy = "static" }, `memoryManagerPolicy is "static"`},
		"an unknown topology policy":   {func(k *plan.KubeletPlan) { k.TopologyManagerPolicy = "strict" }, `topologyManagerPolicy is "strict"`},
		"an unknown scope":             {func(k *plan.KubeletPlan) { k.TopologyManagerScope = "node" }, `topologyManagerScope is "node"`},
		"an unknown CPU option":        {func(k *plan.KubeletPlan) { k.CPUManagerPolicyOptions["full-cores"] = "true" }, "full-cores"},
		"an unknown topology option":   {func(k *plan.KubeletPlan) { k.TopologyManagerPolicyOptions = map[string]string{"x": "1"} }, "topologyManagerPolicyOptions"},
		"options without their policy": {func(k *plan.KubeletPlan) { k.CPUManagerPolicy = "none" }, "need cpuManagerPolicy static"},
		"no reserved CPUs":             {func(k *plan.KubeletPlan) { k.ReservedSystemCPUs = "" }, "needs reserved CPUs"},
		"reserved CPUs that are none":  {func(k *plan.KubeletPlan) { k.ReservedSystemCPUs = "0-x" }, "reservedSystemCPUs"},
		"one byte too much": {
			func(k *plan.KubeletPlan) { k.ReservedMemory[0].Limits["memory"] = "576716801" }, "adds up to 1153433601",
		},
		"no reserved memory":        {func(k *plan.KubeletPlan) { k.ReservedMemory = nil }, "adds up to 0"},
		"reserved hugepages":        {func(k *plan.KubeletPlan) { k.ReservedMemory[0].Limits["hugepages-1Gi"] = "1Gi" }, "hugepages-1Gi"},
		"memory that is no amount":  {func(k *plan.KubeletPlan) { k.ReservedMemory[0].Limits["memory"] = "much" }, "quantities"},
		"no systemReserved":         {func(k *plan.KubeletPlan) { k.SystemReserved = nil }, "systemReserved[memory]"},
		"no kubeReserved":           {func(k *plan.KubeletPlan) { k.KubeReserved = map[string]string{"cpu": "1"} }, "kubeReserved[memory]"},
		"eviction at a percentage":  {func(k *plan.KubeletPlan) { k.EvictionHard["memory.available"] = "5%" }, "memory.available"},
		"a period that is no time":  {func(k *plan.KubeletPlan) { k.CPUManagerReconcilePeriod = "soon" }, "soon"},
		"eviction without a memory": {func(k *plan.KubeletPlan) { delete(k.EvictionHard, "memory.available") }, "memory.available"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kubelet := managed()
			tc.change(&kubelet)
			raw, err := Print(kubelet)
			if raw != nil {
				t.Errorf("there is a configuration: %s", raw)
			}
			wantError(t, err, tc.want)
		})
	}
}

// TestJudge: what others say beside the planned values is refused where the kubelet would refuse it (the same values are put before the
// kubelet's own code by TestKubeletRefusesWhatJudgeRefuses of test/kubelet), and nothing else is.
func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		field string
		value any
		want  string
	}{
		"nothing else":                    {"maxPods", 100, ""},
		"a field of a later release":      {"maxPodz", 100, ""},
		"pods alone are held to it":       {"enforceNodeAllocatable", []string{"pods"}, ""},
		"a gate of another part":          {"featureGates", map[string]bool{"GracefulNodeShutdown": false, "CPUManagerPolicyAlphaOptions": false}, ""},
		"a gate that is on":               {"featureGates", map[string]bool{"CPUManagerPolicyOptions": true}, ""},
		"a gate of options that none has": {"featureGates", map[string]bool{"TopologyManagerPolicyOptions": false, "CPUManagerPolicyBetaOptions": false}, ""},
		"the kubelet's control group":     {"kubeReservedCgroup", "/kube.slice", "kubeReservedCgroup is \"/kube.slice\", which the kubelet refuses"},
		"the system's control group":      {"systemReservedCgroup", "/system.slice", "systemReservedCgroup is \"/system.slice\", which the kubelet refuses"},
		"enforced for the system":         {"enforceNodeAllocatable", []string{"pods", "system-reserved"}, "enforceNodeAllocatable has system-reserved, which needs systemReservedCgroup"},
		"enforced for its CPUs":           {"enforceNodeAllocatable", []string{"kube-reserved-compressible"}, "enforceNodeAllocatable has kube-reserved-compressible, which"},
		"options whose gate is off":       {"featureGates", map[string]bool{"CPUManagerPolicyOptions": false}, "cpuManagerPolicyOptions needs the feature gate CPUManagerPolicyOptions"},
		"memory of a NUMA node twice": {
			"reservedMemory", []any{
				map[string]any{"numaNode": 0, "limits": map[string]any{"memory": "550Mi"}}, map[string]any{"numaNode": 0, "limits": map[string]any{"memory": "550Mi"}},
			}, "reservedMemory has memory of NUMA node 0 twice",
		},
		"no memory of a NUMA node": {
			"reservedMemory", []any{
				map[string]any{"numaNode": 0, "limits": map[string]any{"memory": "1100Mi"}}, map[string]any{"numaNode": 1, "limits": map[string]any{"memory": "0"}},
			}, "reservedMemory has nothing for memory of NUMA node 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := Print(managed())
			if err != nil {
				t.Fatal(err)
			}
			fields := map[string]any{}
			if err := json.Unmarshal(raw, &fields); err != nil {
				t.Fatal(err)
			}
			fields[tc.field] = tc.value
			if raw, err = json.Marshal(fields); err != nil {
				t.Fatal(err)
			}
			if err := Judge(raw); tc.want != "" {
				wantError(t, err, tc.want)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestKubeletConfigurationAcceptsUnlikeUnits(t *testing.T) {
	kubelet := managed()
	kubelet.ReservedMemory = []plan.MemoryReservation{
		{NUMANode: 0, Limits: map[string]string{"memory": "1Gi"}},
		{NUMANode: 3, Limits: map[string]string{"memory": "79691776"}},
	}
	if _, err := Print(kubelet); err != nil {
		t.Errorf("1Gi + 76Mi in bytes is 1100Mi, but: %v", err)
	}
}

// TestChecksOfThePlatform: a platform may refuse what the kubelet would take.
func TestChecksOfThePlatform(t *testing.T) {
	refuse := func(c *kubeletv1beta1.KubeletConfiguration) error {
		if c.CPUManagerPolicy == "static" {
			return errors.New("not here")
		}
		return nil
	}
	raw, err := Print(managed(), refuse)
	if raw != nil {
		t.Errorf("there is a configuration: %s", raw)
	}
	wantError(t, err, "not here")
}

func TestEmptyKubeletPlan(t *testing.T) {
	raw, err := Print(plan.KubeletPlan{})
	if err != nil {
		t.Fatalf("Print: %v", err)
	}
	if want := `{"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"KubeletConfiguration"}`; string(raw) != want {
		t.Errorf("configuration = %s, want %s", raw, want)
	}
}

// FuzzKubeletConfiguration adds arbitrary JSON, as the profile's additionalConfiguration does: what is rendered
// decodes strictly, whatever was asked for.
func FuzzPrint(f *testing.F) {
	for _, seed := range []string{
		`{"maxPods":100}`, `{"logging":{"format":"json"}}`, `{"reservedMemory":[]}`, `{"a":1,"a":2}`, `[]`,
		`{"evictionSoft":{"memory.available":"1Gi"},"registerWithTaints":[{"key":"k","effect":"NoSchedule"}]}`,
	} {
		f.Add([]byte(seed))
	}
	base := managed()
	f.Fuzz(func(t *testing.T, data []byte) {
		kubelet := base
		if json.Unmarshal(data, &kubelet.Additional) != nil {
			t.Skip("not an object")
		}
		raw, err := Print(kubelet)
		if err != nil {
			return
		}
		if _, err := decode(raw); err != nil {
			t.Errorf("rendered %s, which does not decode: %v", raw, err)
		}
		scheme := runtime.NewScheme()
		lenient := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{})
		if _, kind, err := lenient.Decode(raw, nil, &runtime.Unknown{}); err != nil || kind.Kind != Kind {
			t.Errorf("rendered kind %v, %v", kind, err)
		}
	})
}
