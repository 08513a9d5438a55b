// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package helm puts the chart before Helm: lint, templates under every set of values compared with what kustomize builds, and a release
// on a real API server.
package helm

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/hack/kustomization"
)

const (
	chartFolder  = "../../config/helm"
	configFolder = "../../config"
	image        = "ghcr.io/lowlatency-dev/lowlatency-operator:v0.1.0"
)

func TestLint(t *testing.T) {
	result := action.NewLint().Run([]string{chartFolder}, nil)
	if result.TotalChartsLinted != 1 {
		t.Fatalf("linted %d charts", result.TotalChartsLinted)
	}
	for _, message := range result.Messages {
		// An icon is a URL from which user interfaces load a picture.
		if !strings.Contains(message.Error(), "icon is recommended") {
			t.Error(message)
		}
	}
}

// TestLintJudges: a chart with a fault does not pass, so that silence means something.
func TestLintJudges(t *testing.T) {
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(chartFolder)); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(folder, "templates", "broken.yaml")
	if err := os.WriteFile(broken, []byte("kind: {{ .Values.absent.deeper }}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if result := action.NewLint().Run([]string{folder}, nil); len(result.Errors) == 0 {
		t.Error("lint finds nothing")
	}
}

// render is what "helm template" prints.
func render(t *testing.T, namespace string, values map[string]any) ([]*unstructured.Unstructured, error) {
	t.Helper()
	loaded, err := loader.Load(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	install := action.NewInstall(action.NewConfiguration())
	install.DryRunStrategy, install.ReleaseName, install.Namespace = action.DryRunClient, "lowlatency", namespace
	if install.KubeVersion, err = common.ParseKubeVersion("v1.37.1"); err != nil {
		t.Fatal(err)
	}
	released, err := install.Run(loaded, values)
	if err != nil {
		return nil, err
	}
	accessor, err := release.NewAccessor(released)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, accessor.Manifest()), nil
}

func decode(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := yaml.ToJSON(document)
		if err != nil {
			t.Fatal(err)
		}
		if string(content) == "null" {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(content); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
}

// byName are objects by what identifies them, without what only one of the two ways of installing writes.
func byName(objects []*unstructured.Unstructured) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, object := range objects {
		labels := object.GetLabels()
		delete(labels, "app.kubernetes.io/managed-by")
		object.SetLabels(labels)
		if annotations := object.GetAnnotations(); annotations["helm.sh/resource-policy"] == "keep" && object.GetKind() == "CustomResourceDefinition" {
			delete(annotations, "helm.sh/resource-policy")
			object.SetAnnotations(annotations)
		}
		all[strings.Join([]string{object.GetKind(), object.GetNamespace(), object.GetName()}, "/")] = object.Object
	}
	return all
}

// TestTemplatesAreWhatKustomizeBuilds: the chart has no truth of its own.
func TestTemplatesAreWhatKustomizeBuilds(t *testing.T) {
	for _, tc := range []struct {
		folder, component string
		values            map[string]any
		beside            []string
	}{
		{"default", "enactment", map[string]any{"platform": "Kubernetes", "monitoring": "Disabled", "enactment": "Enabled"}, nil},
		{"openshift", "", nil, nil},
		{"openshift-repair", "", map[string]any{"agents": "Repair"}, nil},
		{"default", "", map[string]any{"platform": "Kubernetes", "monitoring": "Disabled"}, nil},
		// What nobody has asked for is what runs without more.
		{"default", "", map[string]any{"platform": "Kubernetes"}, nil},
		{"default", "enactment", map[string]any{"platform": "Kubernetes", "enactment": "Enabled"}, nil},
		{"default", "agent-k3s", map[string]any{"platform": "K3s"}, nil},
		{"repair", "", map[string]any{"platform": "Kubernetes", "monitoring": "Disabled", "agents": "Repair"}, nil},
		{"default", "prometheus", map[string]any{"platform": "Kubernetes", "monitoring": "Enabled"}, nil},
		{"default", "prometheus-cert-manager", map[string]any{"platform": "Kubernetes", "monitoring": "CertManager"}, nil},
		{"repair", "prometheus-unverified", map[string]any{"platform": "Kubernetes", "monitoring": "Unverified", "agents": "Repair"}, nil},
		{"openshift", "", map[string]any{"dashboard": "Console"}, []string{"dashboard"}},
		{"default", "agent-k3s", map[string]any{"platform": "K3s", "monitoring": "Disabled"}, nil},
		{"default", "agent-rke2", map[string]any{"platform": "RKE2", "monitoring": "Disabled"}, nil},
		{"default", "", map[string]any{"platform": "Kubernetes", "monitoring": "Disabled", "dashboard": "Grafana"}, []string{"dashboard-grafana"}},
	} {
		t.Run(strings.Join(append([]string{tc.folder, tc.component}, tc.beside...), " "), func(t *testing.T) {
			got, err := render(t, "default", tc.values)
			if err != nil {
				t.Fatal(err)
			}
			want, err := kustomization.BuildOverlay(configFolder, kustomization.Overlay{
				Resources: append([]string{tc.folder}, tc.beside...), Components: components(tc.component),
				Images: []kustomization.Image{{Name: "controller", NewName: strings.Split(image, ":")[0], NewTag: strings.Split(image, ":")[1]}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(byName(want), byName(got)); diff != "" {
				t.Errorf("objects (-kustomize +helm):\n%s", diff)
			}
			if len(got) < 50 {
				t.Errorf("there are %d objects only", len(got))
			}
		})
	}
}

// components are the one that is named, or none.
func components(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

func TestValues(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	objects, err := render(t, "here", map[string]any{
		"image":      map[string]any{"repository": "registry.example.com:5000/team/operator", "digest": digest},
		"namespaces": map[string]any{"operator": "here", "agents": "there"},
		"crds":       "Skip",
	})
	if err != nil {
		t.Fatal(err)
	}
	namespaces := map[string]bool{}
	for _, object := range objects {
		namespaces[object.GetNamespace()] = true
		switch object.GetKind() {
		case "CustomResourceDefinition":
			t.Errorf("there is %s", object.GetName())
		case "Namespace":
			if object.GetName() != "there" {
				t.Errorf("there is namespace %s, which is that of the release", object.GetName())
			}
		case "Deployment", "DaemonSet":
			containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
			container, _ := containers[0].(map[string]any)
			if container["image"] != "registry.example.com:5000/team/operator@"+digest {
				t.Errorf("%s runs %s", object.GetName(), container["image"])
			}
			arguments, _ := container["args"].([]any)
			wanted := map[string]string{"Deployment": "--agent-namespace=there", "DaemonSet": "--namespace=here"}[object.GetKind()]
			if !slices.Contains(arguments, any(wanted)) {
				t.Errorf("%s is started with %v, want %s", object.GetName(), arguments, wanted)
			}
		}
	}
	delete(namespaces, "")
	if diff := cmp.Diff(map[string]bool{"here": true, "there": true}, namespaces); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
}

// TestNamespacesAreTexts: --set-string namespaces.operator=2024 is a name, and no number, wherever it stands.
func TestNamespacesAreTexts(t *testing.T) {
	objects, err := render(t, "default", map[string]any{"namespaces": map[string]any{"operator": "2024", "agents": "424242"}})
	if err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`[:,\[](2024|424242)[,}\]]`)
	for _, object := range objects {
		content, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if found := number.Find(content); found != nil {
			t.Errorf("%s %s has the number %s", object.GetKind(), object.GetName(), found)
		}
	}
	if !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "Deployment" && o.GetNamespace() == "2024"
	}) {
		t.Error("there is no Deployment in the namespace 2024")
	}
}

// TestMonitoringLabels: what Prometheus is to find has the labels by which it looks, besides those of the chart, and nothing else has them.
func TestMonitoringLabels(t *testing.T) {
	objects, err := render(t, "default", map[string]any{"monitoringLabels": map[string]any{"release": "monitoring", "team": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	var labelled []string
	for _, object := range objects {
		labels := object.GetLabels()
		if _, found := labels["release"]; !found {
			continue
		}
		labelled = append(labelled, object.GetKind())
		if labels["release"] != "monitoring" || labels["team"] != "1" || labels["app.kubernetes.io/name"] != "lowlatency-operator" {
			t.Errorf("%s has the labels %v", object.GetKind(), labels)
		}
	}
	slices.Sort(labelled)
	if diff := cmp.Diff([]string{"PrometheusRule", "ServiceMonitor"}, labelled); diff != "" {
		t.Errorf("objects with the labels (-want +got):\n%s", diff)
	}
}

// TestImagePullSecrets: every ServiceAccount names them, since pods take them from theirs, and nothing else does. Without the value no object
// has such a field.
func TestImagePullSecrets(t *testing.T) {
	for name, tc := range map[string]struct {
		secrets []any
		want    []any
	}{
		"none": {nil, nil},
		"two":  {[]any{map[string]any{"name": "registry"}, map[string]any{"name": "2"}}, []any{map[string]any{"name": "registry"}, map[string]any{"name": "2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{"platform": "Kubernetes", "enactment": "Enabled"}
			if tc.secrets != nil {
				values["imagePullSecrets"] = tc.secrets
			}
			objects, err := render(t, "default", values)
			if err != nil {
				t.Fatal(err)
			}
			accounts := 0
			for _, object := range objects {
				got, _, _ := unstructured.NestedSlice(object.Object, "imagePullSecrets")
				want := []any(nil)
				if object.GetKind() == "ServiceAccount" {
					accounts++
					want = tc.want
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s %s (-want +got):\n%s", object.GetKind(), object.GetName(), diff)
				}
			}
			if accounts < 6 {
				t.Errorf("the chart has %d ServiceAccounts", accounts)
			}
		})
	}
}

// TestDashboard: the ConfigMap has the dashboard byte for byte, although its legends are written as Helm's templates are; where and with
// which label says who reads it. It is nobody's unless it is asked for.
func TestDashboard(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(configFolder, "dashboard", "lowlatency.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(source), "{{") {
		t.Fatal("the dashboard has no legend with braces: what this test is for is gone")
	}
	for value, want := range map[string][]string{
		"Disabled": nil,
		"Console":  {"openshift-config-managed", "console.openshift.io/dashboard", "true"},
		"Grafana":  {"here", "grafana_dashboard", "1"},
	} {
		t.Run(value, func(t *testing.T) {
			objects, err := render(t, "default", map[string]any{"dashboard": value, "namespaces": map[string]any{"operator": "here"}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, object := range objects {
				if object.GetKind() != "ConfigMap" || object.GetName() != "lowlatency-dashboard" {
					continue
				}
				labels := object.GetLabels()
				delete(labels, "app.kubernetes.io/name")
				got = append(got, object.GetNamespace())
				for name, value := range labels {
					got = append(got, name, value)
				}
				if text, _, _ := unstructured.NestedString(object.Object, "data", "lowlatency.json"); text != string(source) {
					t.Errorf("the dashboard (-config +chart):\n%s", cmp.Diff(string(source), text))
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("namespace and label (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBadValuesAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		values map[string]any
		want   string
	}{
		"a platform that is none":     {map[string]any{"platform": "openshift"}, "platform"},
		"monitoring by somebody":      {map[string]any{"monitoring": "LetsEncrypt"}, "monitoring"},
		"a label of the chart's own":  {map[string]any{"monitoringLabels": map[string]any{"app.kubernetes.io/name": "x"}}, "app.kubernetes.io/name"},
		"a secret without a name":     {map[string]any{"imagePullSecrets": []any{"registry"}}, "imagePullSecrets"},
		"a label that is no text":     {map[string]any{"monitoringLabels": map[string]any{"release": true}}, "release"},
		"a value that is none":        {map[string]any{"replicas": 3}, "replicas"},
		"a digest that is none":       {map[string]any{"image": map[string]any{"digest": "latest"}}, "digest"},
		"a namespace that is none":    {map[string]any{"namespaces": map[string]any{"operator": "A b"}}, "operator"},
		"an enactment that is none":   {map[string]any{"enactment": "true"}, "enactment"},
		"ordinary hosts on OpenShift": {map[string]any{"enactment": "Enabled"}, "machine-config operator"},
		"a dashboard for nobody":      {map[string]any{"dashboard": "Enabled"}, "dashboard"},
		"a console on Kubernetes":     {map[string]any{"platform": "Kubernetes", "dashboard": "Console"}, "part of OpenShift"},
		"one namespace for both":      {map[string]any{"namespaces": map[string]any{"operator": "one", "agents": "one"}}, "are the same"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := render(t, "default", tc.values); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one with %q", err, tc.want)
			}
		})
	}
}
