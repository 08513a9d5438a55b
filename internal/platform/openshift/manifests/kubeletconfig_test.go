// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"

	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

func TestKubeletConfigurationHasThePlannedFieldsOnly(t *testing.T) {
	raw, err := KubeletConfiguration(example(t, "perpod-epyc").Plan.Kubelet)
	if err != nil {
		t.Fatalf("KubeletConfiguration: %v", err)
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
		"topologyManagerPolicy":     "restricted",
		"topologyManagerScope":      "container",
		"memoryManagerPolicy":       "Static",
		"reservedSystemCPUs":        "0,8,16,24,32,40,48,56,64,72,80,88,96,104,112,120",
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
		"a field of the platform":      {additional("cgroupDriver", "cgroupfs"), "cgroupDriver belongs"},
		"feature gates":                {additional("featureGates", map[string]any{"X": true}), "featureGates belongs"},
		"cluster DNS":                  {additional("clusterDNS", []any{"10.0.0.1"}), "clusterDNS belongs"},
		"cluster domain":               {additional("clusterDomain", "x"), "clusterDomain belongs"},
		"swap":                         {additional("failSwapOn", false), "failSwapOn belongs"},
		"swap behaviour":               {additional("memorySwap", map[string]any{"swapBehavior": "NoSwap"}), "swapBehavior belongs"},
		"static pods":                  {additional("staticPodPath", "/x"), "staticPodPath belongs"},
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
			kubelet := example(t, "trading-xeon").Plan.Kubelet
			tc.change(&kubelet)
			raw, err := KubeletConfiguration(kubelet)
			if raw != nil {
				t.Errorf("there is a configuration: %s", raw)
			}
			wantError(t, err, tc.want)
		})
	}
}

func TestKubeletConfigurationAcceptsUnlikeUnits(t *testing.T) {
	kubelet := example(t, "trading-xeon").Plan.Kubelet
	kubelet.ReservedMemory = []plan.MemoryReservation{
		{NUMANode: 0, Limits: map[string]string{"memory": "1Gi"}},
		{NUMANode: 3, Limits: map[string]string{"memory": "79691776"}},
	}
	if _, err := KubeletConfiguration(kubelet); err != nil {
		t.Errorf("1Gi + 76Mi in bytes is 1100Mi, but: %v", err)
	}
}

func TestEmptyKubeletPlan(t *testing.T) {
	raw, err := KubeletConfiguration(plan.KubeletPlan{})
	if err != nil {
		t.Fatalf("KubeletConfiguration: %v", err)
	}
	if want := `{"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"KubeletConfiguration"}`; string(raw) != want {
		t.Errorf("configuration = %s, want %s", raw, want)
	}
}

// FuzzKubeletConfiguration adds arbitrary JSON, as the profile's additionalConfiguration does: what is rendered
// decodes strictly, whatever was asked for.
func FuzzKubeletConfiguration(f *testing.F) {
	for _, seed := range []string{
		`{"maxPods":100}`, `{"logging":{"format":"json"}}`, `{"reservedMemory":[]}`, `{"a":1,"a":2}`, `[]`,
		`{"evictionSoft":{"memory.available":"1Gi"},"registerWithTaints":[{"key":"k","effect":"NoSchedule"}]}`,
	} {
		f.Add([]byte(seed))
	}
	base := example(f, "trading-xeon").Plan.Kubelet
	f.Fuzz(func(t *testing.T, data []byte) {
		kubelet := base
		if json.Unmarshal(data, &kubelet.Additional) != nil {
			t.Skip("not an object")
		}
		raw, err := KubeletConfiguration(kubelet)
		if err != nil {
			return
		}
		if _, err := decodeKubeletConfiguration(raw); err != nil {
			t.Errorf("rendered %s, which does not decode: %v", raw, err)
		}
		scheme := runtime.NewScheme()
		lenient := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{})
		if _, kind, err := lenient.Decode(raw, nil, &runtime.Unknown{}); err != nil || kind.Kind != kubeletKind {
			t.Errorf("rendered kind %v, %v", kind, err)
		}
	})
}
