// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/installer"
)

// packageName is the name of the package in catalogs.
const packageName = "lowlatency-operator"

// trafficName is the name of the image that measures over the network among the related images.
const trafficName = "lowlatency-traffic"

// isPinned reports whether an image is named by its digest: only such a one can be mirrored.
func isPinned(image string) bool { return strings.Contains(image, "@sha256:") }

// newClusterServiceVersion adds to config/manifests/base.yaml what follows from the rest.
func newClusterServiceVersion(r release, source string, p *parts) (*unstructured.Unstructured, error) {
	csv, err := readObject(filepath.Join(source, "manifests", "base.yaml"))
	if err != nil {
		return nil, err
	}
	spec, ok := csv.Object["spec"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s/manifests/base.yaml has no spec", source)
	}
	annotations := csv.GetAnnotations()
	version, _ := spec["version"].(string)
	r.version, r.image = cmp.Or(r.version, version), cmp.Or(r.image, annotations["containerImage"])
	examples, err := almExamples(source)
	if err != nil {
		return nil, err
	}
	annotations["containerImage"] = r.image
	if annotations["operatorframework.io/suggested-namespace-template"], err = namespaceTemplate(p.namespace); err != nil {
		return nil, err
	}
	annotations["alm-examples"] = examples
	annotations["features.operators.openshift.io/disconnected"] = strconv.FormatBool(isPinned(r.image) && isPinned(r.trafficImage))
	csv.SetAnnotations(annotations)
	csv.SetName(packageName + ".v" + r.version)
	spec["version"] = r.version
	if r.replaces != "" {
		spec["replaces"] = packageName + ".v" + r.replaces
	}
	if spec["icon"], err = iconOf(source); err != nil {
		return nil, err
	}
	if err := addImages(csv, r); err != nil {
		return nil, fmt.Errorf("%s/manifests/base.yaml: %w", source, err)
	}
	spec["install"], err = install(r, p)
	if err != nil {
		return nil, err
	}
	owned, err := ownedDefinitions(p.definitions)
	spec["customresourcedefinitions"] = map[string]any{"owned": owned}
	return csv, err
}

// iconOf is what catalogs show beside the name.
func iconOf(source string) ([]any, error) {
	icon, err := os.ReadFile(filepath.Join(source, "manifests", "icon.svg"))
	if err != nil {
		return nil, err
	}
	return []any{map[string]any{"base64data": base64.StdEncoding.EncodeToString(icon), "mediatype": "image/svg+xml"}}, nil
}

// addImages adds the images of the release to the related ones.
func addImages(csv *unstructured.Unstructured, r release) error {
	related, _, err := unstructured.NestedSlice(csv.Object, "spec", "relatedImages")
	if err != nil {
		return err
	}
	images := append([]any{map[string]any{"name": packageName, "image": r.image}}, withImage(related, trafficName, r.trafficImage)...)
	return unstructured.SetNestedSlice(csv.Object, images, "spec", "relatedImages")
}

// namespaceTemplate is the Namespace that the console of OpenShift makes for the operator: one without its annotation admits no pod of ours
// in a cluster that partitions CPUs for workloads.
func namespaceTemplate(namespace *unstructured.Unstructured) (string, error) {
	if namespace == nil {
		return "", errors.New("config/manager has no Namespace for the operator")
	}
	template, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
		"name": namespace.GetName(), "labels": namespace.GetLabels(), "annotations": namespace.GetAnnotations(),
	}})
	return string(template), err
}

// withImage are related images, the one of a name as a release has it; as they are when it is empty.
func withImage(related []any, name, image string) []any {
	for _, one := range related {
		if entry, ok := one.(map[string]any); ok && entry["name"] == name && image != "" {
			entry["image"] = image
		}
	}
	return related
}

// install is the strategy: deployments with the images, and the rights of their accounts.
func install(r release, p *parts) (map[string]any, error) {
	var deployments []any
	for _, deployment := range p.deployments {
		if err := tellTrafficImage(deployment, cmp.Or(r.trafficImage, p.trafficImage)); err != nil {
			return nil, err
		}
		spec, err := json.Marshal(deployment.Object["spec"])
		if err != nil {
			return nil, err
		}
		var withImage any
		if err := json.Unmarshal([]byte(strings.ReplaceAll(string(spec), installer.SourceImage, r.image)), &withImage); err != nil {
			return nil, err
		}
		deployments = append(deployments, map[string]any{
			"name": deployment.GetName(), "label": deployment.GetLabels(), "spec": withImage,
		})
	}
	return map[string]any{"strategy": "deployment", "spec": map[string]any{
		"deployments": deployments, "clusterPermissions": permissions(p.clusterRules), "permissions": permissions(p.rules),
	}}, nil
}

// tellTrafficImage has the manager know the image that measures over the network.
func tellTrafficImage(deployment *unstructured.Unstructured, image string) error {
	if image == "" {
		return errors.New("no PodTemplate of config/manager has the image that measures over the network")
	}
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if err != nil {
		return fmt.Errorf("the Deployment %s: %w", deployment.GetName(), err)
	}
	for _, one := range containers {
		container, ok := one.(map[string]any)
		if !ok || container["name"] != "manager" {
			continue
		}
		environment, _ := container["env"].([]any)
		container["env"] = append(environment, map[string]any{"name": "RELATED_IMAGE_TRAFFIC", "value": image})
	}
	return unstructured.SetNestedSlice(deployment.Object, containers, "spec", "template", "spec", "containers")
}

func permissions(rules map[string][]rbacv1.PolicyRule) []any {
	all := make([]any, 0, len(rules))
	for _, account := range slices.Sorted(maps.Keys(rules)) {
		all = append(all, map[string]any{"serviceAccountName": account, "rules": rules[account]})
	}
	return all
}

// almExamples are the samples that the console offers, one for each kind.
func almExamples(source string) (string, error) {
	examples := make([]any, 0, 3)
	for _, name := range []string{"samples/tick-to-trade/profile.yaml", "samples/tick-to-trade/pool.yaml", "samples/qualification/jitter.yaml", "manifests/lowlatencynode.yaml"} {
		object, err := readObject(filepath.Join(source, name))
		if err != nil {
			return "", err
		}
		examples = append(examples, object.Object)
	}
	text, err := json.MarshalIndent(examples, "", "  ")
	return string(text), err
}

func readObject(path string) (*unstructured.Unstructured, error) {
	content, err := os.ReadFile(path) //nolint:gosec // A file of the source tree.
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &object.Object); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return object, nil
}
