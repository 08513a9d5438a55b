// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/manifest"
)

func TestObjectsOrder(t *testing.T) {
	cases := map[string]struct {
		management v1alpha1.PoolManagement
		wantKinds  []string
	}{
		"a managed pool comes first": {
			management: v1alpha1.PoolsManaged,
			wantKinds:  []string{"MachineConfigPool", "ConfigMap", "RuntimeClass", "MachineConfig", "KubeletConfig", "Tuned"},
		},
		"pools are managed unless stated otherwise": {
			wantKinds: []string{"MachineConfigPool", "ConfigMap", "RuntimeClass", "MachineConfig", "KubeletConfig", "Tuned"},
		},
		"an existing pool is left to its owner": {
			management: v1alpha1.PoolsExisting,
			wantKinds:  []string{"ConfigMap", "RuntimeClass", "MachineConfig", "KubeletConfig", "Tuned"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := example(t, "realtime-existing")
			in.MachineConfigPool.Management = tc.management
			objects := render(t, in)
			kinds := make([]string, 0, len(objects))
			for _, object := range objects {
				kinds = append(kinds, object.GetKind())
			}
			if diff := cmp.Diff(tc.wantKinds, kinds); diff != "" {
				t.Errorf("kinds (-want +got):\n%s", diff)
			}
		})
	}
}

func render(t testing.TB, in Input) []*unstructured.Unstructured {
	t.Helper()
	objects, err := Objects(in)
	if err != nil {
		t.Fatalf("Objects: %v", err)
	}
	return objects
}

func find(t testing.TB, objects []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == kind {
			return object
		}
	}
	t.Fatalf("no %s among %d objects", kind, len(objects))
	return nil
}

// TestObjectsCarryOnlyWhatIsMeant makes sure that server-side apply will own no field that nobody set.
func TestObjectsCarryOnlyWhatIsMeant(t *testing.T) {
	for name, in := range plannedExamples(t) {
		t.Run(name, func(t *testing.T) {
			for _, object := range render(t, in) {
				if _, has := object.Object["status"]; has {
					t.Errorf("%s has a status", object.GetKind())
				}
				if object.GetAPIVersion() == "" || object.GetName() == "" {
					t.Errorf("%s has apiVersion %q and name %q", object.GetKind(), object.GetAPIVersion(), object.GetName())
				}
				for _, path := range emptyFields("", object.Object) {
					if !strings.Contains(path, "pools.operator.machineconfiguration.openshift.io/") {
						t.Errorf("%s has the empty field %s", object.GetKind(), path)
					}
				}
			}
		})
	}
}

// emptyFields lists the paths of nulls, empty strings, empty lists, empty objects and falses.
func emptyFields(path string, value any) []string {
	switch value := value.(type) {
	case nil:
		return []string{path}
	case string, bool:
		if value == "" || value == false {
			return []string{path}
		}
	case map[string]any:
		if len(value) == 0 {
			return []string{path}
		}
		var paths []string
		for key, field := range value {
			paths = append(paths, emptyFields(path+"."+key, field)...)
		}
		return paths
	case []any:
		if len(value) == 0 {
			return []string{path}
		}
		var paths []string
		for _, element := range value {
			paths = append(paths, emptyFields(path+"[]", element)...)
		}
		return paths
	}
	return nil
}

func TestObjectsAreTheSameEveryTime(t *testing.T) {
	for name := range plannedExamples(t) {
		first, err := manifest.YAML(render(t, example(t, name)))
		if err != nil {
			t.Fatalf("YAML: %v", err)
		}
		for range 20 {
			again, err := manifest.YAML(render(t, example(t, name)))
			if err != nil {
				t.Fatalf("YAML: %v", err)
			}
			if string(first) != string(again) {
				t.Fatalf("%s renders differently: %s", name, cmp.Diff(string(first), string(again)))
			}
		}
	}
}

func TestChildrenAreLabelled(t *testing.T) {
	in := example(t, "trading-xeon")
	want := map[string]string{
		"app.kubernetes.io/name":       "lowlatency-operator",
		"app.kubernetes.io/part-of":    "lowlatency-operator",
		"app.kubernetes.io/managed-by": "lowlatency-operator",
		"lowlatency.dev/profile":       "trading",
	}
	components := map[string]bool{}
	for _, object := range render(t, in) {
		labels := object.GetLabels()
		for key, value := range want {
			if labels[key] != value {
				t.Errorf("%s has label %s=%q, want %q", object.GetKind(), key, labels[key], value)
			}
		}
		components[labels["app.kubernetes.io/component"]] = true
		wantHash := in.Plan.Hash()
		if object.GetKind() == "RuntimeClass" {
			wantHash = ""
		}
		if got := object.GetAnnotations()[v1alpha1.AnnotationPlanHash]; got != wantHash {
			t.Errorf("%s has plan hash %q, want %q", object.GetKind(), got, wantHash)
		}
	}
	if len(components) != 6 {
		t.Errorf("6 objects have the components %v, want 6 different ones", components)
	}
}

func TestBadInputIsRefused(t *testing.T) {
	const everyKind, poolKinds, planKind = 6, 4, 1
	cases := map[string]struct {
		change func(*Input)
		want   string
		// wantRefusals is the number of kinds that need what is bad.
		wantRefusals int
	}{
		"no plan": {func(in *Input) { in.Plan = nil }, "without a plan", everyKind},
		"a profile of 64 letters": {
			func(in *Input) { in.Plan.Profile = strings.Repeat("a", 64) }, "profile name", everyKind,
		},
		"a profile in capitals":    {func(in *Input) { in.Plan.Profile = "Trading" }, "profile name", everyKind},
		"no pool name":             {func(in *Input) { in.MachineConfigPool.Name = "" }, "pool name", poolKinds},
		"a pool name with a slash": {func(in *Input) { in.MachineConfigPool.Name = "a/b" }, "pool name", poolKinds},
		"a pool name of 64 letters": {
			func(in *Input) { in.MachineConfigPool.Name = strings.Repeat("a", 64) }, "pool name", poolKinds,
		},
		"an existing pool, unnamed": {
			func(in *Input) { in.MachineConfigPool.Management = v1alpha1.PoolsExisting }, "needs labels", poolKinds,
		},
		"a label with a space": {
			func(in *Input) { in.MachineConfigPool.MachineConfigLabels = map[string]string{"a b": ""} }, "MachineConfig label", poolKinds,
		},
		"a label value with a space": {
			func(in *Input) { in.MachineConfigPool.MachineConfigLabels = map[string]string{"a": "b c"} }, "MachineConfig label a", poolKinds,
		},
		"no namespace": {func(in *Input) { in.Namespace = "" }, "operator namespace", planKind},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := example(t, "trading-xeon")
			tc.change(&in)
			objects, err := Objects(in)
			if objects != nil {
				t.Errorf("Objects returned %d objects besides an error", len(objects))
			}
			wantError(t, err, tc.want)
			if refused := refusingKinds(t, in, tc.want); refused != tc.wantRefusals {
				t.Errorf("%d kinds refuse the input, want %d", refused, tc.wantRefusals)
			}
		})
	}
}

// refusingKinds calls every function of the package by itself and counts those that refuse the input.
func refusingKinds(t *testing.T, in Input, want string) int {
	t.Helper()
	kinds := []func(Input) (runtime.Object, error){
		object(machineConfigPool), object(planConfigMap), object(RuntimeClass), object(MachineConfig),
		object(KubeletConfig), object(Tuned),
	}
	refused := 0
	for _, kind := range kinds {
		if _, err := kind(in); err != nil {
			wantError(t, err, want)
			refused++
		}
	}
	return refused
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error = %v, want one that contains %q", err, want)
	}
}

// TestObjectsStopAtTheFirstBadKind has plans that only one kind can refuse.
func TestObjectsStopAtTheFirstBadKind(t *testing.T) {
	cases := map[string]struct {
		change func(*Input)
		want   string
	}{
		"MachineConfig": {func(in *Input) { in.Plan.KernelArguments = arguments("two words") }, "white space"},
		"KubeletConfig": {func(in *Input) { in.Plan.Kubelet.CPUManagerPolicy = "dynamic" }, "cpuManagerPolicy"},
		"Tuned":         {func(in *Input) { in.Plan.Sysctls = settings("vm.swappiness", "1\n[script]") }, "control character"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := example(t, "trading-xeon")
			tc.change(&in)
			_, err := Objects(in)
			wantError(t, err, tc.want)
			wantError(t, err, in.MachineConfigPool.Name)
		})
	}
}

func TestMachineConfigPool(t *testing.T) {
	t.Run("an existing pool cannot be rendered", func(t *testing.T) {
		_, err := machineConfigPool(example(t, "realtime-existing"))
		wantError(t, err, "not managed")
	})
	t.Run("paused is stated only while the operator holds the pool", func(t *testing.T) {
		for _, paused := range []bool{false, true} {
			in := example(t, "trading-xeon")
			in.MachineConfigPool.Paused = paused
			got, stated, err := unstructured.NestedBool(find(t, render(t, in), "MachineConfigPool").Object, "spec", "paused")
			if err != nil || stated != paused || got != paused {
				t.Errorf("paused %t renders as %t, stated %t, %v", paused, got, stated, err)
			}
		}
	})
	t.Run("the platform's default limit stays", func(t *testing.T) {
		in := example(t, "arm-64k")
		if _, stated, _ := unstructured.NestedFieldNoCopy(find(t, render(t, in), "MachineConfigPool").Object, "spec", "maxUnavailable"); stated {
			t.Errorf("maxUnavailable is stated without having been asked for")
		}
	})
}

// TestRuntimeClassDependsOnTheProfileAlone guards against two pools of one profile overwriting each other's object
// forever.
func TestRuntimeClassDependsOnTheProfileAlone(t *testing.T) {
	one, other := example(t, "trading-xeon"), example(t, "perpod-epyc")
	other.Plan.Profile = one.Plan.Profile
	if diff := cmp.Diff(find(t, render(t, one), "RuntimeClass"), find(t, render(t, other), "RuntimeClass")); diff != "" {
		t.Errorf("RuntimeClasses of two machine config pools of one profile differ:\n%s", diff)
	}
}

func BenchmarkObjects(b *testing.B) {
	for name, in := range plannedExamples(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Objects(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestRuntimeClassKeepsTheNameOfAnImport: pods that name the RuntimeClass of a PerformanceProfile need no change.
func TestRuntimeClassKeepsTheNameOfAnImport(t *testing.T) {
	in := example(t, "trading-xeon")
	for given, want := range map[string]string{"": "lowlatency-trading", "performance-cnf": "performance-cnf"} {
		in.Plan.ContainerRuntime.RuntimeClassName = given
		class, err := RuntimeClass(in)
		if err != nil || class.Name != want || class.Handler != "high-performance" {
			t.Errorf("RuntimeClass %+v, %v, want %s", class, err, want)
		}
	}
}
