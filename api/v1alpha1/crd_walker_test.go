// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// crdFolder is where controller-gen puts the CRDs of this package.
const crdFolder = "../../config/crd/bases"

// readCRDs returns the generated CRDs by kind.
func readCRDs(t testing.TB) map[string]apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(crdFolder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRD in %s (%v)", crdFolder, err)
	}
	crds := map[string]apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("reading a CRD: %v", err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(content, &crd); err != nil {
			t.Fatalf("parsing %s: %v", file, err)
		}
		crds[crd.Spec.Names.Kind] = crd
	}
	return crds
}

// node is one place in the schema of a kind.
type node struct {
	// path from the object, such as spec.memory.hugepages.items.size.
	path string
	// property is the JSON name, empty for the items of a list, the values of a map and the object itself.
	property string
	// foreign is set below metav1.Condition, whose schema belongs to Kubernetes.
	foreign bool
	schema  apiextensionsv1.JSONSchemaProps
}

// walk visits every place in a schema in the order of paths, except what the API server itself defines:
// apiVersion, kind and metadata.
func walk(root apiextensionsv1.JSONSchemaProps, visit func(node)) {
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		root.Properties = maps.Clone(root.Properties)
		delete(root.Properties, name)
	}
	walkNode(node{schema: root}, visit)
}

func walkNode(n node, visit func(node)) {
	visit(n)
	for _, name := range slices.Sorted(maps.Keys(n.schema.Properties)) {
		walkNode(node{path: join(n.path, name), property: name, foreign: n.foreign, schema: n.schema.Properties[name]}, visit)
	}
	if n.schema.Items != nil && n.schema.Items.Schema != nil {
		foreign := n.foreign || n.path == "status.conditions"
		walkNode(node{path: join(n.path, "items"), foreign: foreign, schema: *n.schema.Items.Schema}, visit)
	}
	if values := n.schema.AdditionalProperties; values != nil && values.Schema != nil {
		walkNode(node{path: join(n.path, "*"), foreign: n.foreign, schema: *values.Schema}, visit)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// schemas returns the schema of each version of each CRD, by kind and version.
func schemas(t testing.TB) map[string]apiextensionsv1.JSONSchemaProps {
	t.Helper()
	all := map[string]apiextensionsv1.JSONSchemaProps{}
	for kind, crd := range readCRDs(t) {
		for _, version := range crd.Spec.Versions {
			all[kind+" "+version.Name] = *version.Schema.OpenAPIV3Schema
		}
	}
	return all
}
