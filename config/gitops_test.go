// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package config_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

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
