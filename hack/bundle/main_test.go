// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lowlatency-dev/lowlatency-operator/hack/kustomization"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/crdschema"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/installer"
)

func divided(t *testing.T) *parts {
	t.Helper()
	objects, err := kustomization.Build("../../config/olm")
	if err != nil {
		t.Fatal(err)
	}
	p, err := divide(objects)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestNothingIsLost: whatever kustomize deploys on OpenShift, Operator Lifecycle Manager or the installer does.
func TestNothingIsLost(t *testing.T) {
	p := divided(t)
	known := map[string]bool{"Namespace//lowlatency-operator-system": true}
	for _, objects := range [][]*unstructured.Unstructured{p.definitions, p.bundled, p.deployments, p.installed} {
		for _, object := range objects {
			known[object.GetKind()+"/"+object.GetName()] = true
		}
	}
	for account := range p.clusterRules {
		known["ServiceAccount/"+account] = true
	}
	deployed, err := kustomization.Build("../../config/openshift")
	if err != nil {
		t.Fatal(err)
	}
	// Rights of the manager that the ClusterServiceVersion states.
	for _, name := range []string{"manager-role", "metrics-auth", "leader-election"} {
		for _, kind := range []string{"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"} {
			known[kind+"/lowlatency-operator-"+name] = true
		}
	}
	known["Namespace/lowlatency-operator-system"] = true
	// The image in it is told to the manager.
	known["PodTemplate/lowlatency-operator-traffic-image"] = p.trafficImage == installer.SourceTrafficImage
	for _, object := range deployed {
		if !known[object.GetKind()+"/"+object.GetName()] {
			t.Errorf("%s is nobody's", key(object))
		}
	}
	if manager := p.clusterRules["lowlatency-operator-controller-manager"]; len(manager) == 0 || len(p.rules["lowlatency-operator-controller-manager"]) == 0 {
		t.Errorf("the manager has the rights %v and %v", manager, p.rules)
	}
}

// TestTheInstallerNamesWhatItWrites: none of its rights is for every object of a kind, and it reads nothing but its owner.
func TestTheInstallerNamesWhatItWrites(t *testing.T) {
	for _, rule := range divided(t).clusterRules[installerAccount] {
		if len(rule.ResourceNames) == 0 || len(rule.Resources) != 1 || strings.Contains(strings.Join(rule.Verbs, " "), "*") {
			t.Errorf("the rule is too wide: %+v", rule)
		}
		if rule.Verbs[0] == "get" && rule.Resources[0] != "customresourcedefinitions" {
			t.Errorf("the installer reads %+v", rule)
		}
	}
}

func TestExamplesAreValid(t *testing.T) {
	text, err := almExamples("../../config")
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := crdschema.Load()
	if err != nil {
		t.Fatal(err)
	}
	var examples []map[string]any
	if err := json.Unmarshal([]byte(text), &examples); err != nil || len(examples) != 4 {
		t.Fatalf("%d examples, %v", len(examples), err)
	}
	for _, example := range examples {
		if problems := schemas.Validate(t.Context(), &unstructured.Unstructured{Object: example}); problems != nil {
			t.Errorf("%s: %v", example["kind"], problems)
		}
	}
}

// TestEveryFieldIsDescribed: no field of spec or status, at whatever depth, is missing in the console, and each has a text.
func TestEveryFieldIsDescribed(t *testing.T) {
	p := divided(t)
	owned, err := ownedDefinitions(p.definitions)
	if err != nil {
		t.Fatal(err)
	}
	for i, object := range p.definitions {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &crd); err != nil {
			t.Fatal(err)
		}
		definition, ok := owned[i].(map[string]any)
		if !ok {
			t.Fatalf("%T", owned[i])
		}
		for part, list := range map[string]string{"spec": "specDescriptors", "status": "statusDescriptors"} {
			paths := describedPaths(t, definition[list])
			fields := map[string]bool{}
			addFields(fields, "", crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[part])
			if len(fields) == 0 {
				t.Errorf("%s has no %s", crd.Spec.Names.Kind, part)
			}
			if diff := cmp.Diff(fields, paths); diff != "" {
				t.Errorf("the %s of %s (-fields +described):\n%s", part, crd.Spec.Names.Kind, diff)
			}
		}
	}
}

// addFields adds the path of each field below a schema, as a descriptor names it. What the console shows as a whole, by a form of its own, is one.
func addFields(all map[string]bool, path string, schema apiextensionsv1.JSONSchemaProps) {
	for schema.Items != nil {
		path, schema = path+"[0]", *schema.Items.Schema
	}
	if path == "conditions[0]" || path == "nodeSelector" || strings.HasSuffix(path, ".conditions[0]") || strings.HasSuffix(path, ".nodeSelector") {
		return
	}
	for name, field := range schema.Properties {
		at := strings.TrimPrefix(path+"."+name, ".")
		all[at] = true
		addFields(all, at, field)
	}
}

// describedPaths are the paths of descriptors, which must have texts.
func describedPaths(t *testing.T, list any) map[string]bool {
	t.Helper()
	paths := map[string]bool{}
	all, _ := list.([]any)
	for _, one := range all {
		descriptor, _ := one.(map[string]any)
		path, _ := descriptor["path"].(string)
		paths[path] = true
		if descriptor["description"] == "" || descriptor["displayName"] == "" {
			t.Errorf("%s has no text", path)
		}
	}
	return paths
}

func TestRelease(t *testing.T) {
	output := t.TempDir()
	image := "registry.example.com/operator@sha256:" + strings.Repeat("0a", 32)
	traffic := "registry.example.com/traffic@sha256:" + strings.Repeat("0b", 32)
	if err := run(release{version: "1.2.3", image: image, trafficImage: traffic, replaces: "1.2.2"}, "../../config", output, ""); err != nil {
		t.Fatal(err)
	}
	csv, err := readObject(filepath.Join(output, "manifests", "lowlatency-operator.clusterserviceversion.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"metadata/name": "lowlatency-operator.v1.2.3", "spec/version": "1.2.3", "spec/replaces": "lowlatency-operator.v1.2.2",
	} {
		if got, _, err := unstructured.NestedString(csv.Object, strings.Split(path, "/")...); got != want || err != nil {
			t.Errorf("%s is %q, want %q: %v", path, got, want, err)
		}
	}
	if got := csv.GetAnnotations()["features.operators.openshift.io/disconnected"]; got != "true" {
		t.Errorf("disconnected is %q for an image by digest", got)
	}
	text, err := os.ReadFile(filepath.Join(output, "manifests", "lowlatency-operator.clusterserviceversion.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	expectRelatedImages(t, csv, image, traffic)
	expectNamespace(t, csv)
	if told := strings.Count(string(text), "- name: RELATED_IMAGE_TRAFFIC\n                  value: "+traffic+"\n"); told != 1 {
		t.Errorf("%d containers are told the image that measures over the network, want one", told)
	}
	if strings.Contains(string(text), "controller:latest") || strings.Count(string(text), image) != 4 {
		t.Errorf("the image stands in %d places, want two deployments, an annotation and relatedImages", strings.Count(string(text), image))
	}
}

// expectNamespace wants the console to make the namespace of the operator as config/manager has it.
func expectNamespace(t *testing.T, csv *unstructured.Unstructured) {
	t.Helper()
	var suggested unstructured.Unstructured
	if err := suggested.UnmarshalJSON([]byte(csv.GetAnnotations()["operatorframework.io/suggested-namespace-template"])); err != nil {
		t.Fatal(err)
	}
	want, err := readObject("../../config/manager/namespace.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if suggested.GetKind() != "Namespace" || suggested.GetName() != want.GetName() || suggested.GetName() != csv.GetAnnotations()["operatorframework.io/suggested-namespace"] {
		t.Errorf("the console would make %s %s", suggested.GetKind(), suggested.GetName())
	}
	if diff := cmp.Diff(want.GetAnnotations(), suggested.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-config +bundle):\n%s", diff)
	}
	for label, value := range want.GetLabels() {
		if suggested.GetLabels()[label] != value {
			t.Errorf("the namespace has the labels %v, without %s=%s", suggested.GetLabels(), label, value)
		}
	}
}

// expectRelatedImages are what a mirror takes over.
func expectRelatedImages(t *testing.T, csv *unstructured.Unstructured, image, traffic string) {
	t.Helper()
	related, _, err := unstructured.NestedSlice(csv.Object, "spec", "relatedImages")
	want := []any{
		map[string]any{"name": "lowlatency-operator", "image": image}, map[string]any{"name": "lowlatency-traffic", "image": traffic},
	}
	if diff := cmp.Diff(want, related); diff != "" || err != nil {
		t.Errorf("related images, %v (-want +got):\n%s", err, diff)
	}
}

// TestHalfPinned: a bundle of which one image has a tag is not for disconnected clusters.
func TestHalfPinned(t *testing.T) {
	half := t.TempDir()
	if err := run(release{version: "1.2.3", image: "registry.example.com/operator@sha256:" + strings.Repeat("0a", 32)}, "../../config", half, ""); err != nil {
		t.Fatal(err)
	}
	tagged, err := readObject(filepath.Join(half, "manifests", "lowlatency-operator.clusterserviceversion.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if got := tagged.GetAnnotations()["features.operators.openshift.io/disconnected"]; got != "false" {
		t.Errorf("disconnected is %q where the second image has a tag", got)
	}
}

func TestWords(t *testing.T) {
	for name, want := range map[string]string{
		"memory": "Memory", "keepNearBypassNICs": "Keep Near Bypass NICs", "BypassNICPool": "Bypass NIC Pool", "planHash": "Plan Hash",
		"numaNode": "NUMA Node", "pciAddresses": "PCI Addresses", "vfio": "VFIO", "nics": "NICs",
	} {
		if got := words(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestFirstSentence(t *testing.T) {
	for text, want := range map[string]string{
		"a is b. c is d.":        "a is b.",
		"a is\n b":               "a is b",
		strings.Repeat("a", 400): strings.Repeat("a", 299) + "…",
	} {
		if got := firstSentence(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCatalog(t *testing.T) {
	folder := t.TempDir()
	older, newer := filepath.Join(folder, "older"), filepath.Join(folder, "newer")
	for output, r := range map[string]release{older: {version: "1.2.2"}, newer: {version: "1.2.3", replaces: "1.2.2"}} {
		if err := run(r, "../../config", output, ""); err != nil {
			t.Fatal(err)
		}
	}
	for image, want := range map[string][]string{
		"":                             {"olm.bundle.object", `image: ""`},
		"registry.example.com/bundles": {"olm.csv.metadata", "image: registry.example.com/bundles:v1.2.2", "image: registry.example.com/bundles:v1.2.3"},
	} {
		if err := writeCatalog(folder, image, []string{older, newer}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(folder, packageName, "catalog.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range append(want, "replaces: lowlatency-operator.v1.2.2", "defaultChannel: stable", "kind: BypassNICPool") {
			if !strings.Contains(string(text), part) {
				t.Errorf("the catalog with image %q has no %q", image, part)
			}
		}
	}
}

// TestReplaced: a new bundle beside older ones is a successor, so that the channel has one head.
func TestReplaced(t *testing.T) {
	older := t.TempDir()
	if err := run(release{version: "1.2.2"}, "../../config", older, ""); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		told  string
		older []string
		want  string
	}{
		"none before": {"", nil, ""}, "told": {"1.2.1", []string{older}, "1.2.1"}, "not told": {"", []string{"another", older}, "1.2.2"},
	} {
		if got, err := replaced(tc.told, tc.older); got != tc.want || err != nil {
			t.Errorf("%s: it replaces %q, %v, want %q", name, got, err, tc.want)
		}
	}
}

// TestChannels: stable has releases from 1.0 on alone, each channel has one head, and everybody finds the way to it.
func TestChannels(t *testing.T) {
	releases := make([]listed, 0, 5)
	before := ""
	for _, version := range []string{"0.9.0", "1.0.0", "1.1.0-rc.1", "1.1.0-rc.2", "1.1.0", "1.2.0"} {
		channels, err := channelsOf(version)
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, listed{version, before, channels})
		before = version
	}
	entry := func(name, replaces string, skips ...any) any {
		all := map[string]any{"name": name}
		if replaces != "" {
			all["replaces"] = replaces
		}
		if len(skips) > 0 {
			all["skips"] = skips
		}
		return all
	}
	for name, tc := range map[string]struct {
		releases   []listed
		candidates []any
		stables    []any
	}{
		"before 1.0": {releases[:1], []any{entry("0.9.0", "")}, nil},
		"1.0":        {releases[:2], []any{entry("0.9.0", ""), entry("1.0.0", "0.9.0")}, []any{entry("1.0.0", "0.9.0")}},
		"later": {
			releases,
			[]any{
				entry("0.9.0", ""), entry("1.0.0", "0.9.0"), entry("1.1.0-rc.1", "1.0.0"), entry("1.1.0-rc.2", "1.1.0-rc.1"),
				entry("1.1.0", "1.1.0-rc.2"), entry("1.2.0", "1.1.0"),
			},
			[]any{entry("1.0.0", "0.9.0"), entry("1.1.0", "1.0.0", "1.1.0-rc.1", "1.1.0-rc.2"), entry("1.2.0", "1.1.0")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			channel := func(name string, entries []any) map[string]any {
				return map[string]any{"schema": "olm.channel", "package": packageName, "name": name, "entries": entries}
			}
			want := []map[string]any{channel("candidate", tc.candidates)}
			if tc.stables != nil {
				want = append(want, channel("stable", tc.stables))
			}
			if diff := cmp.Diff(want, catalogChannels(tc.releases)); diff != "" {
				t.Errorf("channels (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := channelsOf("latest"); err == nil {
		t.Error("latest is a version")
	}
}

// TestABundleNamesItsChannels in its annotations, which are also the labels of its image.
func TestABundleNamesItsChannels(t *testing.T) {
	for version, want := range map[string][2]string{"0.1.0": {"candidate", "candidate"}, "1.0.0-rc.1": {"candidate", "candidate"}, "1.0.0": {"candidate,stable", "stable"}} {
		output := t.TempDir()
		if err := run(release{version: version}, "../../config", output, ""); err != nil {
			t.Fatal(err)
		}
		labels, err := os.ReadFile(filepath.Join(output, "bundle.Dockerfile"))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"channels.v1=" + want[0], "channel.default.v1=" + want[1]} {
			if !strings.Contains(string(labels), "LABEL operators.operatorframework.io.bundle."+line+"\n") {
				t.Errorf("the bundle of %s has no label that ends with %s", version, line)
			}
		}
	}
}
