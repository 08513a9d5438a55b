// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package olm

import (
	"fmt"
	"os"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/property"
)

// refused is what OLM v1 says against an upgrade from one definition to another: its preflight check for CustomResourceDefinitions is
// crdify with these settings.
func refused(t *testing.T, old, now *apiextensionsv1.CustomResourceDefinition) []string {
	t.Helper()
	judge, err := runner.New(&config.Config{
		Conversion:           config.ConversionPolicyIgnore,
		UnhandledEnforcement: config.EnforcementPolicyError,
		Validations: []config.ValidationConfig{
			{Name: "description", Enforcement: config.EnforcementPolicyNone},
			{Name: "enum", Enforcement: config.EnforcementPolicyError, Configuration: map[string]any{"additionPolicy": property.AdditionPolicyAllow}},
		},
	}, runner.DefaultRegistry())
	if err != nil {
		t.Fatal(err)
	}
	results := judge.Run(old, now)
	problems := errorsOf("", results.CRDValidation)
	for _, versions := range []map[string]map[string][]validations.ComparisonResult{results.SameVersionValidation, results.ServedVersionValidation} {
		for version, properties := range versions {
			for field, compared := range properties {
				problems = append(problems, errorsOf(version+" "+field+" ", compared)...)
			}
		}
	}
	return problems
}

func errorsOf(where string, results []validations.ComparisonResult) []string {
	var all []string
	for _, result := range results {
		for _, one := range result.Errors {
			all = append(all, fmt.Sprintf("%s%s: %s", where, result.Name, one))
		}
	}
	return all
}

// withoutRules leaves the CEL rules of a definition out: the judge refuses each new one without reading it, also one about a field that was not there
// before.
func withoutRules(definition *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	for i := range definition.Spec.Versions {
		definition.Spec.Versions[i].Schema.OpenAPIV3Schema = plain(definition.Spec.Versions[i].Schema.OpenAPIV3Schema)
	}
	return definition
}

func plain(schema *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	schema.XValidations = nil
	for name, property := range schema.Properties {
		schema.Properties[name] = *plain(&property)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		schema.Items.Schema = plain(schema.Items.Schema)
	}
	return schema
}

// TestUpgradeIsSafeForOLMv1: but for new rules, the judge of OLM v1 takes the definitions after those of the bundle before.
func TestUpgradeIsSafeForOLMv1(t *testing.T) {
	now := definitions(t, bundleFolder)
	for name, old := range definitions(t, previousFolder) {
		for _, problem := range refused(t, withoutRules(old), withoutRules(now[name])) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// rules are the CEL rules of a definition, each as its place and its text.
func rules(definition *apiextensionsv1.CustomResourceDefinition) map[string]bool {
	all := map[string]bool{}
	for i := range definition.Spec.Versions {
		version := &definition.Spec.Versions[i]
		collectRules(version.Name, version.Schema.OpenAPIV3Schema, all)
	}
	return all
}

func collectRules(place string, schema *apiextensionsv1.JSONSchemaProps, into map[string]bool) {
	for _, rule := range schema.XValidations {
		into[place+" "+rule.Rule] = true
	}
	for name, property := range schema.Properties {
		collectRules(place+"."+name, &property, into)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		collectRules(place+"[]", schema.Items.Schema, into)
	}
}

// TestNewRulesAreTold: where the definitions have a rule that those of the bundle before lack, for which OLM v1 refuses an upgrade, the changes say
// what to set before it.
func TestNewRulesAreTold(t *testing.T) {
	changes, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	_, latest, _ := strings.Cut(string(changes), "### Before you upgrade")
	latest, _, _ = strings.Cut(latest, "###")
	added, now := 0, definitions(t, bundleFolder)
	for name, old := range definitions(t, previousFolder) {
		before := rules(old)
		if len(before) == 0 {
			t.Fatalf("%s of the bundle before has no rule", name)
		}
		for rule := range rules(now[name]) {
			if !before[rule] {
				added++
			}
		}
	}
	isTold := strings.Contains(latest, "crdUpgradeSafety")
	if isTold != (added > 0) {
		t.Errorf("%d rules are new, and \"Before you upgrade\" speaks of crdUpgradeSafety: %t", added, isTold)
	}
}

// TestTheJudgeOfOLMv1: what nobody may change is refused, in spec and status alike.
func TestTheJudgeOfOLMv1(t *testing.T) {
	const name = "latencytests.lowlatency.dev"
	for fault, change := range map[string]func(*apiextensionsv1.CustomResourceDefinition){
		"another scope": func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Scope = apiextensionsv1.ClusterScoped },
		"a stored version is gone": func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Versions[0].Name = "v1beta1"
		},
		"a new required field": func(d *apiextensionsv1.CustomResourceDefinition) {
			root := d.Spec.Versions[0].Schema.OpenAPIV3Schema
			spec := root.Properties["spec"]
			spec.Required = append(spec.Required, "run")
			root.Properties["spec"] = spec
		},
		"a default in the status": func(d *apiextensionsv1.CustomResourceDefinition) {
			status := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
			field := status.Properties["observedGeneration"]
			field.Default = &apiextensionsv1.JSON{Raw: []byte("1")}
			status.Properties["observedGeneration"] = field
		},
		"a new rule": func(d *apiextensionsv1.CustomResourceDefinition) {
			root := d.Spec.Versions[0].Schema.OpenAPIV3Schema
			root.XValidations = append(root.XValidations, apiextensionsv1.ValidationRule{Rule: "has(self.spec)", Message: "spec must be set."})
		},
		"a field that is gone": func(d *apiextensionsv1.CustomResourceDefinition) {
			delete(d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "run")
		},
	} {
		t.Run(fault, func(t *testing.T) {
			changed, before := definitions(t, bundleFolder)[name], definitions(t, bundleFolder)[name]
			before.Status.StoredVersions = []string{before.Spec.Versions[0].Name}
			change(changed)
			if len(refused(t, before, changed)) == 0 {
				t.Error("the judge takes it")
			}
		})
	}
}
