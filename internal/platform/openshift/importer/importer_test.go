// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package importer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/crdschema"
)

// sources are the PerformanceProfiles of testdata by name.
func sources(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := map[string][]byte{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if strings.HasSuffix(name, ".golden") {
			continue
		}
		if documents[name], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if len(documents) == 0 {
		t.Fatal("testdata holds no PerformanceProfile")
	}
	return documents
}

// invalidFields are the sentences of the CRD about an imported profile.
func invalidFields(t testing.TB, schemas *crdschema.Schemas, profile *v1alpha1.LowLatencyNodeProfile) []string {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(profile)
	if err != nil {
		t.Fatal(err)
	}
	errs := schemas.Validate(t.Context(), &unstructured.Unstructured{Object: content})
	sentences := make([]string, 0, len(errs))
	for _, err := range errs {
		sentences = append(sentences, err.Error())
	}
	return sentences
}

func TestFromPerformanceProfile(t *testing.T) {
	schemas, err := crdschema.Load()
	if err != nil {
		t.Fatal(err)
	}
	for name, document := range sources(t) {
		t.Run(name, func(t *testing.T) {
			profile, remarks, err := FromPerformanceProfile(document)
			if err != nil {
				t.Fatal(err)
			}
			if sentences := invalidFields(t, schemas, profile); len(sentences) > 0 {
				t.Errorf("the CRD refuses the profile: %s", strings.Join(sentences, "; "))
			}
			data, err := yaml.Marshal(profile)
			if err != nil {
				t.Fatal(err)
			}
			got := "# " + strings.Join(remarks, "\n# ") + "\n" + string(data)
			golden.Assert(t, got, name+".golden.yaml")
		})
	}
}

func TestFromPerformanceProfileRefuses(t *testing.T) {
	const head = "apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\nmetadata: {name: a}\n"
	spec := func(more string) string {
		return head + "spec:\n  nodeSelector: {node-role.kubernetes.io/a: ''}\n  cpu: {reserved: 0-1, isolated: 2-3}\n" + more
	}
	cases := map[string]struct {
		document, want string
	}{
		"no YAML":             {"\t", "reading YAML: yaml: found character that cannot start any token"},
		"a key twice":         {"kind: A\nkind: B\n", `reading YAML: yaml: unmarshal errors:` + "\n" + `  line 2: key "kind" already set in map`},
		"another kind":        {"apiVersion: v1\nkind: Pod\n", `kind: "Pod" of "v1" is not a PerformanceProfile of performance.openshift.io`},
		"another group":       {"apiVersion: a.b/v2\nkind: PerformanceProfile\n", `kind: "PerformanceProfile" of "a.b/v2" is not a PerformanceProfile of performance.openshift.io`},
		"a newer version":     {"apiVersion: performance.openshift.io/v3\nkind: PerformanceProfile\n", `apiVersion: "performance.openshift.io/v3" is none of performance.openshift.io/v2, v1 and v1alpha1`},
		"no name":             {"apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\n", "metadata.name: a PerformanceProfile has a name"},
		"a text for a number": {spec("  hugepages: {pages: [{count: many}]}\n"), "spec.hugepages.pages.count: it must be of type int32, not string"},
		"a text for a list":   {spec("  additionalKernelArgs: quiet\n"), "spec.additionalKernelArgs: it must be of type list, not string"},
		"a list for an object": {
			spec("  numa: []\n"), "spec.numa: it must be of type object, not array",
		},
		"no node selector": {head + "spec:\n  cpu: {reserved: 0-1, isolated: 2-3}\n", "spec.nodeSelector: a PerformanceProfile selects nodes by one label; there is none"},
		"a node selector without role": {
			head + "spec:\n  nodeSelector: {a: b}\n  cpu: {reserved: 0-1, isolated: 2-3}\n",
			`spec.nodeSelector: "a" is not one label of the form domain/role, so the machine config pool is not known; set spec.machineConfigLabel and spec.machineConfigPoolSelector`,
		},
		"no CPUs":          {head + "spec: {nodeSelector: {a/b: ''}}\n", "spec.cpu: a PerformanceProfile names its reserved and isolated CPUs"},
		"no reserved CPUs": {head + "spec: {nodeSelector: {a/b: ''}, cpu: {isolated: 0-1}}\n", "spec.cpu.reserved: a PerformanceProfile names at least one CPU here"},
		"CPUs that are none": {
			head + "spec: {nodeSelector: {a/b: ''}, cpu: {reserved: 0-x, isolated: 0-1}}\n",
			`spec.cpu.reserved: CPU list "0-x": "x" is not a CPU number`,
		},
		"CPUs of the wrong type": {
			head + "spec: {nodeSelector: {a/b: ''}, cpu: {reserved: true, isolated: 0-1}}\n",
			`reading a PerformanceProfile: a CPU list is a text such as "0-3,8", not true`,
		},
		"CPUs in two lists": {
			head + "spec: {nodeSelector: {a/b: ''}, cpu: {reserved: 0-3, isolated: '2,3,4'}}\n",
			"spec.cpu: reserved and isolated both hold the CPUs 2-3",
		},
		"a page size":               {spec("  kernelPageSize: 16k\n"), `spec.kernelPageSize: "16k" is neither 4k nor 64k`},
		"a hugepage size":           {spec("  hugepages: {defaultHugepagesSize: 4M}\n"), `spec.hugepages.defaultHugepagesSize: "4M" is none of the sizes 16G, 1G, 2M, 32M, 512M, 64k`},
		"a hugepage size of a page": {spec("  hugepages: {defaultHugepagesSize: 2M, pages: [{size: 2Mi, count: 1}]}\n"), `spec.hugepages.pages[0].size: "2Mi" is none of the sizes 16G, 1G, 2M, 32M, 512M, 64k`},
		"no default hugepage size":  {spec("  hugepages: {pages: [{size: 2M, count: 1}]}\n"), "spec.hugepages.defaultHugepagesSize: it must be set when spec.hugepages.pages is set"},
		"a topology policy":         {spec("  numa: {topologyPolicy: strict}\n"), `spec.numa.topologyPolicy: "strict" is none of none, best-effort, restricted and single-numa-node`},
		"both power hints":          {spec("  workloadHints: {highPowerConsumption: true, perPodPowerManagement: true}\n"), "spec.workloadHints: highPowerConsumption and perPodPowerManagement cannot both be true"},
		"a real-time kernel only":   {spec("  realTimeKernel: {enabled: true}\n  workloadHints: {realTime: false}\n"), "spec.workloadHints.realTime: it cannot be false while spec.realTimeKernel.enabled is true"},
		"one frequency":             {spec("  hardwareTuning: {isolatedCpuFreq: 2500000}\n"), "spec.hardwareTuning.reservedCpuFreq: both frequencies must be set, in kHz and above 0"},
		"a frequency of 0":          {spec("  hardwareTuning: {isolatedCpuFreq: 0, reservedCpuFreq: 1}\n"), "spec.hardwareTuning.isolatedCpuFreq: both frequencies must be set, in kHz and above 0"},
		"an empty device":           {spec("  net: {userLevelNetworking: true, devices: [{}]}\n"), "spec.net.devices[0]: it names no interface, vendor or device"},
		"a vendor":                  {spec("  net: {userLevelNetworking: true, devices: [{vendorID: '8086'}]}\n"), `spec.net.devices[0].vendorID: "8086" is not 0x and four hexadecimal digits`},
		"a device without vendor":   {spec("  net: {userLevelNetworking: true, devices: [{deviceID: '0x158b'}]}\n"), "spec.net.devices[0].deviceID: it may be set only together with vendorID"},
		"many devices":              {spec("  net: {userLevelNetworking: true, devices: [" + strings.Repeat("{interfaceName: a},", 33) + "]}\n"), "spec.net.devices: there are 33; a LowLatencyNodeProfile takes at most 32"},
		"many kernel arguments":     {spec("  additionalKernelArgs: ['" + strings.Repeat("console=tty0 ", 1) + manyArguments(65) + "']\n"), "spec.additionalKernelArgs: there are 67 arguments; a LowLatencyNodeProfile takes at most 64"},
		"a very long command line":  {spec("  additionalKernelArgs: ['" + strings.Repeat("a", 9000) + "']\n"), "spec.additionalKernelArgs: kernel command line of 9000 bytes is longer than 8192, more than any kernel accepts"},
		"a broken kubelet fragment": {strings.Replace(spec(""), "{name: a}", "{name: a, annotations: {kubeletconfig.experimental: '{'}}", 1), "metadata.annotations[kubeletconfig.experimental]: reading a KubeletConfiguration: unexpected end of JSON input"},
		"a kubelet field wrongly typed": {
			strings.Replace(spec(""), "{name: a}", "{name: a, annotations: {kubeletconfig.experimental: '{\"maxPods\": \"many\"}'}}", 1),
			"metadata.annotations[kubeletconfig.experimental]: reading a KubeletConfiguration: json: cannot unmarshal string into Go struct field KubeletConfiguration.maxPods of type int32",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			profile, _, err := FromPerformanceProfile([]byte(tc.document))
			if err == nil {
				t.Fatalf("FromPerformanceProfile accepted it: %+v", profile.Spec)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// manyArguments makes different kernel arguments.
func manyArguments(count int) string {
	var b strings.Builder
	for i := range count {
		b.WriteString("a" + strings.Repeat("b", i) + " ")
	}
	return strings.TrimSpace(b.String())
}

func FuzzFromPerformanceProfile(f *testing.F) {
	schemas, err := crdschema.Load()
	if err != nil {
		f.Fatal(err)
	}
	for _, document := range sources(f) {
		f.Add(document)
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		profile, remarks, err := FromPerformanceProfile(document)
		if err != nil {
			return
		}
		for _, remark := range remarks {
			if remark == "" {
				t.Error("an empty remark")
			}
		}
		// The CRD may refuse what a PerformanceProfile allows, but judging it must not fail.
		invalidFields(t, schemas, profile)
	})
}
