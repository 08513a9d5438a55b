// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package config_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/hack/kustomization"
)

// waves are the sync waves of objects by kind and name.
func waves(t *testing.T, folder string) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, object := range layout(t, folder) {
		wave, err := strconv.Atoi(object.GetAnnotations()["argocd.argoproj.io/sync-wave"])
		if err != nil {
			t.Errorf("%s %s has no sync wave: %v", object.GetKind(), object.GetName(), err)
		}
		all[object.GetKind()+" "+object.GetName()] = wave
	}
	return all
}

func layout(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := kustomization.Build("gitops/" + folder)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// TestLayoutForArgoCD: operator before nodes, canary before production, and a profile together with its pools, so that nodes reboot once.
func TestLayoutForArgoCD(t *testing.T) {
	applications := map[string]int{"Application lowlatency-operator": 0, "Application lowlatency-nodes": 1}
	for folder, want := range map[string]map[string]int{
		"apps": applications, "apps-helm": applications,
		"nodes": {
			"LowLatencyNodeProfile trading-canary": 0, "BypassNICPool x2-canary": 0, "LowLatencyNodeProfile trading": 1, "BypassNICPool x2": 1,
		},
	} {
		if diff := cmp.Diff(want, waves(t, folder)); diff != "" {
			t.Errorf("sync waves in config/gitops/%s (-want +got):\n%s", folder, diff)
		}
	}
}

// moved is a file of config/gitops as docs/gitops.md says to write it for another repository and namespace.
func moved(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("gitops/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if name == "root.yaml" || name == "apps/kustomization.yaml" {
		return []byte(strings.NewReplacer("namespace: argocd", "namespace: openshift-gitops", "https://github.com/lowlatency-dev/", "https://git.example.com/").Replace(string(text)))
	}
	return text
}

// movedLayout is a copy of the folders of applications, with what is moved.
func movedLayout(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for _, name := range []string{"root.yaml", "apps/kustomization.yaml", "apps/nodes.yaml", "apps/operator.yaml", "apps-helm/kustomization.yaml"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), moved(t, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestLayoutHasOneRepositoryAndOneNamespace: whoever takes it over sets both in root.yaml and in apps/kustomization.yaml, and nowhere else.
func TestLayoutHasOneRepositoryAndOneNamespace(t *testing.T) {
	copied, root := movedLayout(t), &unstructured.Unstructured{}
	if err := yaml.Unmarshal(moved(t, "root.yaml"), root); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"apps", "apps-helm"} {
		applications, err := kustomization.Build(filepath.Join(copied, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, application := range append(applications, root) {
			repository, _, _ := unstructured.NestedString(application.Object, "spec", "source", "repoURL")
			if application.GetNamespace() != "openshift-gitops" || repository != "https://git.example.com/lowlatency-operator" {
				t.Errorf("%s: %s is in namespace %q and follows %q", folder, application.GetName(), application.GetNamespace(), repository)
			}
		}
	}
}

// TestLayoutSharesNoResourceName: a resource name belongs to one pool, so the pool of a later wave with the name of an earlier one would hand out
// nothing.
func TestLayoutSharesNoResourceName(t *testing.T) {
	pools := map[string]string{}
	for _, object := range layout(t, "nodes") {
		name, found, _ := unstructured.NestedString(object.Object, "spec", "resourceName")
		if !found {
			continue
		}
		if other := pools[name]; other != "" {
			t.Errorf("pools %s and %s have the resource name %s", other, object.GetName(), name)
		}
		pools[name] = object.GetName()
	}
	if len(pools) < 2 {
		t.Errorf("there are the pools %v", pools)
	}
}

// TestLayoutNamesWhatIsThere: paths, the package of the Subscription and the fields of our kinds.
func TestLayoutNamesWhatIsThere(t *testing.T) {
	for _, folder := range []string{"apps", "apps-helm"} {
		for _, object := range layout(t, folder) {
			path, _, _ := unstructured.NestedString(object.Object, "spec", "source", "path")
			if path == "config/helm" {
				continue
			}
			if _, err := kustomization.Build("../" + path); err != nil {
				t.Errorf("%s of %s: %v", object.GetName(), folder, err)
			}
		}
	}
	for _, object := range layout(t, "operator") {
		if name, _, _ := unstructured.NestedString(object.Object, "spec", "name"); object.GetKind() == "Subscription" && name != "lowlatency-operator" {
			t.Errorf("the Subscription is to %q", name)
		}
	}
	for _, object := range layout(t, "nodes") {
		var into any = &v1alpha1.LowLatencyNodeProfile{}
		if object.GetKind() == "BypassNICPool" {
			into = &v1alpha1.BypassNICPool{}
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}
