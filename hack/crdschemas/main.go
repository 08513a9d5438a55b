// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command crdschemas writes the CustomResourceDefinitions of config/crd/bases as JSON files without the texts for people,
// one for each kind and named after it: what programs judge objects by, which must be read within a millisecond.
//
//	go run ./hack/crdschemas config/crd/bases config/crd/schemas
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "crdschemas:", err)
		os.Exit(1)
	}
}

func run(folders []string) error {
	if len(folders) != 2 {
		return errors.New("usage: crdschemas FROM TO")
	}
	from, to := folders[0], folders[1]
	definitions, err := filepath.Glob(filepath.Join(from, "*.yaml"))
	if err != nil || len(definitions) == 0 {
		return fmt.Errorf("no CustomResourceDefinition in %s: %w", from, err)
	}
	old, err := filepath.Glob(filepath.Join(to, "*.json"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	for _, name := range definitions {
		if err := convert(name, to); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// convert writes one definition.
func convert(name, to string) error {
	text, err := os.ReadFile(name) // #nosec G304 -- a file of this repository
	if err != nil {
		return err
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &definition); err != nil {
		return err
	}
	for i := range definition.Spec.Versions {
		removeDescriptions(definition.Spec.Versions[i].Schema.OpenAPIV3Schema)
	}
	var printed bytes.Buffer
	encoder := json.NewEncoder(&printed)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(definition); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, definition.Spec.Names.Kind+".json"), printed.Bytes(), 0o644) // #nosec G306 -- not a secret
}

// removeDescriptions removes the texts for people from a schema and all within it.
func removeDescriptions(schema *apiextensionsv1.JSONSchemaProps) {
	if schema == nil {
		return
	}
	schema.Description = ""
	for name, property := range schema.Properties {
		removeDescriptions(&property)
		schema.Properties[name] = property
	}
	if schema.Items != nil {
		removeDescriptions(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil {
		removeDescriptions(schema.AdditionalProperties.Schema)
	}
}
