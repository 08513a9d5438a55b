// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package olm

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"github.com/operator-framework/api/pkg/manifests"
	operators "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// scored is a bundle as scorecard sees it.
type scored struct {
	bundle   *manifests.Bundle
	examples []unstructured.Unstructured
}

// scorecard are the checks of operator-sdk scorecard by their names. They stand here by their rules, because operator-sdk keeps its own
// where no other module can import them. They are stricter in this: what scorecard only suggests is an error, and every kind that
// the bundle owns must be among the examples, without which scorecard passes over it.
func scorecard() map[string]func(scored) []string {
	return map[string]func(scored) []string{
		"basic-check-spec":         examplesHaveSpecs,
		"olm-bundle-validation":    defaultValidators,
		"olm-crds-have-validation": fieldsAreInSchemas,
		"olm-crds-have-resources":  kindsHaveResources,
		"olm-spec-descriptors":     specsAreDescribed,
		"olm-status-descriptors":   statusesAreDescribed,
	}
}

// score reads a bundle.
func score(folder string) (scored, error) {
	bundle, err := manifests.GetBundleFromDir(filepath.Join(folder, "manifests"))
	if err != nil {
		return scored{}, err
	}
	s := scored{bundle: bundle}
	if err := json.Unmarshal([]byte(bundle.CSV.GetAnnotations()["alm-examples"]), &s.examples); err != nil {
		return scored{}, fmt.Errorf("alm-examples: %w", err)
	}
	return s, nil
}

// part is the spec or the status of an object.
func part(object unstructured.Unstructured, name string) map[string]any {
	fields, _, _ := unstructured.NestedMap(object.Object, name)
	return fields
}

// owned are the descriptions of kinds and versions.
func owned(s scored) map[string]operators.CRDDescription {
	all := map[string]operators.CRDDescription{}
	for _, description := range s.bundle.CSV.Spec.CustomResourceDefinitions.Owned {
		all[description.Kind+"/"+description.Version] = description
	}
	return all
}

// ofExample is the key of an example in owned.
func ofExample(example unstructured.Unstructured) string {
	return example.GetKind() + "/" + example.GroupVersionKind().Version
}

func examplesHaveSpecs(s scored) []string {
	var problems []string
	seen := map[string]bool{}
	for _, example := range s.examples {
		seen[ofExample(example)] = true
		if example.Object["spec"] == nil {
			problems = append(problems, example.GetName()+" has no spec")
		}
	}
	for kind := range owned(s) {
		if !seen[kind] {
			problems = append(problems, "there is no example of "+kind)
		}
	}
	return problems
}

func defaultValidators(s scored) []string {
	objects := make([]any, 0, 2+len(s.bundle.V1CRDs))
	objects = append(objects, s.bundle, s.bundle.CSV)
	for _, definition := range s.bundle.V1CRDs {
		objects = append(objects, definition)
	}
	var problems []string
	for _, result := range validation.DefaultBundleValidators.Validate(objects...) {
		for _, one := range append(result.Errors, result.Warnings...) {
			if !strings.Contains(one.Error(), misread) {
				problems = append(problems, one.Error())
			}
		}
	}
	return problems
}

func fieldsAreInSchemas(s scored) []string {
	schemas := map[string]*apiextensionsv1.JSONSchemaProps{}
	for _, definition := range s.bundle.V1CRDs {
		for i := range definition.Spec.Versions {
			if version := &definition.Spec.Versions[i]; version.Schema != nil {
				schemas[definition.Spec.Names.Kind+"/"+version.Name] = version.Schema.OpenAPIV3Schema
			}
		}
	}
	var problems []string
	for _, example := range s.examples {
		schema := schemas[ofExample(example)]
		if schema == nil {
			problems = append(problems, ofExample(example)+" has no schema")
			continue
		}
		for _, name := range []string{"spec", "status"} {
			for field := range part(example, name) {
				if _, ok := schema.Properties[name].Properties[field]; !ok {
					problems = append(problems, fmt.Sprintf("%s.%s of %s is not in the schema", name, field, ofExample(example)))
				}
			}
		}
	}
	return problems
}

func kindsHaveResources(s scored) []string {
	var problems []string
	for kind, description := range owned(s) {
		if len(description.Resources) == 0 {
			problems = append(problems, kind+" has no resources")
		}
	}
	return problems
}

func specsAreDescribed(s scored) []string {
	var problems []string
	for _, example := range s.examples {
		description, ok := owned(s)[ofExample(example)]
		if !ok {
			problems = append(problems, ofExample(example)+" is not owned")
		}
		for field := range part(example, "spec") {
			if !slices.ContainsFunc(description.SpecDescriptors, func(one operators.SpecDescriptor) bool { return one.Path == field }) {
				problems = append(problems, fmt.Sprintf("spec.%s of %s has no descriptor", field, ofExample(example)))
			}
		}
	}
	return problems
}

// statusesAreDescribed does not wait for an example with a status, as scorecard does: it takes the descriptors of every kind.
func statusesAreDescribed(s scored) []string {
	var problems []string
	for kind, description := range owned(s) {
		if len(description.StatusDescriptors) == 0 {
			problems = append(problems, kind+" has no descriptor of a status")
		}
	}
	for _, example := range s.examples {
		if _, ok := owned(s)[ofExample(example)]; !ok {
			problems = append(problems, ofExample(example)+" is not owned")
		}
	}
	return problems
}

func TestScorecard(t *testing.T) {
	s, err := score(bundleFolder)
	if err != nil {
		t.Fatal(err)
	}
	for name, check := range scorecard() {
		for _, problem := range check(s) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// TestScorecardIsTheConfigured: operator-sdk scorecard, which reads the configuration in the bundle, runs the same checks.
func TestScorecardIsTheConfigured(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(bundleFolder, "tests", "scorecard", "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var configuration v1alpha3.Configuration
	if err := yaml.UnmarshalStrict(content, &configuration); err != nil {
		t.Fatal(err)
	}
	var configured []string
	for _, stage := range configuration.Stages {
		for _, test := range stage.Tests {
			configured = append(configured, test.Entrypoint[len(test.Entrypoint)-1])
		}
	}
	slices.Sort(configured)
	if checks := slices.Sorted(maps.Keys(scorecard())); !slices.Equal(configured, checks) {
		t.Errorf("the configuration runs %v, the test %v", configured, checks)
	}
}

// TestScorecardJudges: each check finds the fault that it is for.
func TestScorecardJudges(t *testing.T) {
	for name, fault := range map[string]struct {
		want string
		seed func(scored)
	}{
		"basic-check-spec":         {" has no spec", func(s scored) { delete(s.examples[0].Object, "spec") }},
		"olm-bundle-validation":    {"DisplayName", func(s scored) { s.bundle.CSV.Spec.DisplayName = "" }},
		"olm-crds-have-validation": {"spec.invented of ", func(s scored) { s.examples[0].Object["spec"] = map[string]any{"invented": true} }},
		"olm-crds-have-resources":  {" has no resources", func(s scored) { s.bundle.CSV.Spec.CustomResourceDefinitions.Owned[0].Resources = nil }},
		"olm-spec-descriptors": {" has no descriptor", func(s scored) {
			for i := range s.bundle.CSV.Spec.CustomResourceDefinitions.Owned {
				s.bundle.CSV.Spec.CustomResourceDefinitions.Owned[i].SpecDescriptors = nil
			}
		}},
		"olm-status-descriptors": {" has no descriptor of a status", func(s scored) { s.bundle.CSV.Spec.CustomResourceDefinitions.Owned[0].StatusDescriptors = nil }},
	} {
		s, err := score(bundleFolder)
		if err != nil {
			t.Fatal(err)
		}
		fault.seed(s)
		if problems := strings.Join(scorecard()[name](s), "\n"); !strings.Contains(problems, fault.want) {
			t.Errorf("%s says %q of a bundle with its fault, want %q", name, problems, fault.want)
		}
	}
}
