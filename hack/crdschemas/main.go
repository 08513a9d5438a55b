// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command crdschemas writes the CustomResourceDefinitions of config/crd/bases as JSON files without the texts for people,
// one for each kind and named after it: what programs judge objects by, which must be read within a millisecond. Beside them it
// writes the syntax trees of the CEL rules, because parsing those takes longer still.
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

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/crdschema"
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
	var rules []string
	for _, name := range definitions {
		found, err := convert(name, to)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		rules = append(rules, found...)
	}
	trees, err := crdschema.FormatRuleTrees(rules)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "rules.txt"), []byte(trees), 0o644) // #nosec G306 -- not a secret
}

// convert writes one definition, and returns the rules in it.
func convert(name, to string) (rules []string, err error) {
	text, err := os.ReadFile(name) // #nosec G304 -- a file of this repository
	if err != nil {
		return nil, err
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &definition); err != nil {
		return nil, err
	}
	for i := range definition.Spec.Versions {
		schema := definition.Spec.Versions[i].Schema.OpenAPIV3Schema
		removeDescriptions(schema)
		rules = append(rules, rulesOf(schema)...)
	}
	var printed bytes.Buffer
	encoder := json.NewEncoder(&printed)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(definition); err != nil {
		return nil, err
	}
	return rules, os.WriteFile(filepath.Join(to, definition.Spec.Names.Kind+".json"), printed.Bytes(), 0o644) // #nosec G306 -- not a secret
}

// rulesOf are the CEL rules of a schema and of all within it.
func rulesOf(schema *apiextensionsv1.JSONSchemaProps) []string {
	if schema == nil {
		return nil
	}
	rules := make([]string, 0, len(schema.XValidations))
	for _, rule := range schema.XValidations {
		rules = append(rules, rule.Rule)
	}
	for name := range schema.Properties {
		property := schema.Properties[name]
		rules = append(rules, rulesOf(&property)...)
	}
	if schema.Items != nil {
		rules = append(rules, rulesOf(schema.Items.Schema)...)
	}
	if schema.AdditionalProperties != nil {
		rules = append(rules, rulesOf(schema.AdditionalProperties.Schema)...)
	}
	return rules
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
