// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	openshift "github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
)

// rendered is what the library renders for a profile on one host.
func rendered(t *testing.T, profileText, root string, pool openshift.MachineConfigPool) string {
	t.Helper()
	var profile v1alpha1.LowLatencyNodeProfile
	if err := yaml.UnmarshalStrict([]byte(profileText), &profile); err != nil {
		t.Fatal(err)
	}
	host, err := readNode(t.Context(), root, reading{})
	if err != nil {
		t.Fatal(err)
	}
	planned, findings := plan.New(plan.Input{Profile: &profile, Topology: host.topology})
	if planned == nil {
		t.Fatalf("no plan: %+v", findings)
	}
	if pool.Name == "" {
		pool.Name = profile.Name + "-" + host.topology.Signature()[:8]
	}
	objects, err := openshift.Objects(openshift.Input{Plan: planned, MachineConfigPool: pool, Namespace: "lowlatency-operator-system"})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for i, object := range objects {
		data, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("---\n")
		if i == 0 {
			b.WriteString("# machine config pool " + pool.Name + ": " + host.name + "\n")
		}
		b.Write(data)
	}
	return b.String()
}

func TestRenderPrintsWhatTheLibraryRenders(t *testing.T) {
	host := tree(t, small("epyc"))
	existing := func(selector, labels string) string {
		return profileHead + "  pools: {management: Existing, existing: {machineConfigPoolSelector: " + selector + labels + "}}\n"
	}
	byRole := map[string]string{"machineconfiguration.openshift.io/role": "cnf"}
	byPool := map[string]string{"pools.operator.machineconfiguration.openshift.io/cnf": "", "z": "z"}
	cases := map[string]struct {
		profile string
		args    []string
		pool    openshift.MachineConfigPool
	}{
		"managed pools": {
			profile: profileHead + "  pools: {maximumUnavailableNodes: 2}\n",
			pool:    openshift.MachineConfigPool{Management: v1alpha1.PoolsManaged, MaximumUnavailableNodes: 2},
		},
		"an existing pool, named by its label": {
			profile: existing(`{"pools.operator.machineconfiguration.openshift.io/cnf": "", z: z}`, ""),
			pool:    openshift.MachineConfigPool{Name: "cnf", Management: v1alpha1.PoolsExisting, PoolSelector: byPool},
		},
		"an existing pool, named by its role": {
			profile: existing(`{machineconfiguration.openshift.io/role: cnf}`, ""),
			pool:    openshift.MachineConfigPool{Name: "cnf", Management: v1alpha1.PoolsExisting, PoolSelector: byRole},
		},
		"an existing pool, named by the role of its MachineConfigs": {
			profile: existing(`{a: b}`, `, machineConfigLabels: {machineconfiguration.openshift.io/role: cnf}`),
			pool:    openshift.MachineConfigPool{Name: "cnf", Management: v1alpha1.PoolsExisting, PoolSelector: map[string]string{"a": "b"}, MachineConfigLabels: byRole},
		},
		"an existing pool, named by hand": {
			profile: existing(`{"pools.operator.machineconfiguration.openshift.io/cnf": "", z: z}`, ""), args: []string{"--machine-config-pool", "other"},
			pool: openshift.MachineConfigPool{Name: "other", Management: v1alpha1.PoolsExisting, PoolSelector: byPool},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, tc.profile, append([]string{"render", "-f", "-", "--root", host}, tc.args...)...)
			if got.code != ExitOK || got.err != "" {
				t.Fatalf("exit code %d, standard error %q", got.code, got.err)
			}
			if diff := cmp.Diff(rendered(t, tc.profile, host, tc.pool), got.out); diff != "" {
				t.Errorf("render (-library +command):\n%s", diff)
			}
		})
	}
}

func TestRenderOfSeveralShapes(t *testing.T) {
	profile := write(t, "profile.yaml", profileHead)
	hosts := []string{"--root", tree(t, small("b")), "--root", tree(t, smaller("c")), "--root", tree(t, small("a"))}
	got := run(t, "", append([]string{"render", "-f", profile, "-o", "json"}, hosts...)...)
	if got.code != ExitOK || got.err != "" {
		t.Fatalf("exit code %d, standard error %q", got.code, got.err)
	}
	var list struct {
		Kind  string
		Items []struct{ Kind string }
	}
	if err := yaml.Unmarshal([]byte(got.out), &list); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, item := range list.Items {
		kinds[item.Kind]++
	}
	want := map[string]int{
		"MachineConfigPool": 2, "ConfigMap": 2, "RuntimeClass": 1, "MachineConfig": 2, "KubeletConfig": 2, "Tuned": 2,
	}
	if diff := cmp.Diff(want, kinds); diff != "" || list.Kind != "List" {
		t.Errorf("%s of kinds (-want +got):\n%s", list.Kind, diff)
	}
	text := run(t, "", append([]string{"render", "-f", profile}, hosts...)...)
	if !strings.Contains(text.out, ": a, b\n") || !strings.Contains(text.out, ": c\n") {
		t.Errorf("the comments do not say which nodes are in which pool:\n%.2000s", text.out)
	}
}

func TestRenderRefusesTwoShapesInOnePool(t *testing.T) {
	profile := profileHead + "  pools: {management: Existing, existing: {machineConfigPoolSelector: {a: b}}}\n"
	got := run(t, profile, "render", "-f", "-", "--root", tree(t, small("a")), "--root", tree(t, smaller("c")))
	const want = "error: spec.pools.management Existing binds to one machine config pool, which can carry one plan, but the nodes have 2: "
	if got.code != ExitUsage || !strings.HasPrefix(got.err, want) || got.out != "" {
		t.Errorf("%+v", got)
	}
}

func TestRenderLeavesOutNodesWithoutPlan(t *testing.T) {
	profile := profileHead + "  memory: {defaultHugepageSize: 1Gi, hugepages: [{size: 1Gi, count: 60, numaNode: 1}]}\n"
	poor := smaller("poor")
	poor.MemoryBytesPerNUMANode = 8 << 30
	got := run(t, profile, "render", "-f", "-", "--root", tree(t, small("rich")), "--root", tree(t, poor))
	if got.code != ExitFindings || !strings.HasPrefix(got.err, "no plan: ") || !strings.Contains(got.err, "poor") {
		t.Errorf("exit code %d, standard error %q", got.code, got.err)
	}
	if !strings.Contains(got.out, ": rich\n") || strings.Contains(got.out, "poor") {
		t.Errorf("rendered:\n%.500s", got.out)
	}
}

func TestRenderRefusesWhatThePlatformKeepsToItself(t *testing.T) {
	profile := profileHead + "  kubelet: {additionalConfiguration: \"featureGates: {A: true}\"}\n"
	for _, command := range []string{"plan", "render"} {
		got := run(t, profile, command, "-f", "-", "--root", tree(t, small("a")))
		if got.code != ExitFindings || !strings.Contains(got.out+got.err, "featureGates is decided by the platform") {
			t.Errorf("%s: %+v", command, got)
		}
	}
}
