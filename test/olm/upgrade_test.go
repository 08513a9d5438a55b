// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package olm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// previousFolder is the bundle of the release before.
const previousFolder = "testdata/v0.0.1"

// definitions are the CustomResourceDefinitions of a bundle by name.
func definitions(t *testing.T, folder string) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "manifests", "customresourcedefinition_*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, definition); err != nil {
			t.Fatal(err)
		}
		all[definition.Name] = definition
	}
	return all
}

// TestUpgradeKeepsEveryObjectValid: what the previous release's definitions accept, those of this one accept, too. Operator Lifecycle Manager
// refuses an upgrade otherwise.
func TestUpgradeKeepsEveryObjectValid(t *testing.T) {
	now := definitions(t, bundleFolder)
	previous := definitions(t, previousFolder)
	if len(previous) != 4 {
		t.Fatalf("the previous release has %d definitions", len(previous))
	}
	for name, old := range previous {
		if now[name] == nil {
			t.Errorf("%s is gone", name)
			continue
		}
		for _, problem := range unsafe(old, now[name]) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// unsafe lists what an upgrade would break.
func unsafe(old, now *apiextensionsv1.CustomResourceDefinition) []string {
	var problems []string
	if old.Spec.Scope != now.Spec.Scope {
		problems = append(problems, fmt.Sprintf("the scope is %s, was %s", now.Spec.Scope, old.Spec.Scope))
	}
	for i := range old.Spec.Versions {
		version := &old.Spec.Versions[i]
		at := slices.IndexFunc(now.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version.Name })
		if at < 0 || version.Served && !now.Spec.Versions[at].Served {
			problems = append(problems, "version "+version.Name+" is no longer served")
			continue
		}
		// Only what users write must stay valid; the status is the operator's own.
		problems = append(problems, narrower("spec", spec(version), spec(&now.Spec.Versions[at]))...)
	}
	return problems
}

func spec(version *apiextensionsv1.CustomResourceDefinitionVersion) apiextensionsv1.JSONSchemaProps {
	return version.Schema.OpenAPIV3Schema.Properties["spec"]
}

// narrower lists where a schema refuses what an older one accepts.
func narrower(path string, old, now apiextensionsv1.JSONSchemaProps) []string {
	var problems []string
	if old.Type != now.Type {
		problems = append(problems, fmt.Sprintf("%s is %s, was %s", path, now.Type, old.Type))
	}
	for _, name := range now.Required {
		if !slices.Contains(old.Required, name) {
			problems = append(problems, fmt.Sprintf("%s.%s is required now", path, name))
		}
	}
	problems = append(problems, fewer(path, old, now)...)
	problems = append(problems, tighter(path, old, now)...)
	for name, property := range old.Properties {
		found, ok := now.Properties[name]
		if !ok {
			problems = append(problems, fmt.Sprintf("%s.%s is gone", path, name))
			continue
		}
		problems = append(problems, narrower(path+"."+name, property, found)...)
	}
	if old.Items != nil && now.Items != nil {
		problems = append(problems, narrower(path+"[]", *old.Items.Schema, *now.Items.Schema)...)
	}
	if old.AdditionalProperties != nil && now.AdditionalProperties != nil && old.AdditionalProperties.Schema != nil {
		problems = append(problems, narrower(path+"{}", *old.AdditionalProperties.Schema, *now.AdditionalProperties.Schema)...)
	}
	return problems
}

// fewer lists values that are gone, and patterns that are others.
func fewer(path string, old, now apiextensionsv1.JSONSchemaProps) []string {
	var problems []string
	values := make([]string, 0, len(now.Enum))
	for _, value := range now.Enum {
		values = append(values, string(value.Raw))
	}
	for _, value := range old.Enum {
		if len(values) > 0 && !slices.Contains(values, string(value.Raw)) {
			problems = append(problems, fmt.Sprintf("%s no longer takes %s", path, value.Raw))
		}
	}
	if len(old.Enum) == 0 && len(values) > 0 {
		problems = append(problems, path+" takes some values only")
	}
	if now.Pattern != "" && now.Pattern != old.Pattern {
		problems = append(problems, path+" has another pattern: show that it takes what the old one took, and make the fixture anew")
	}
	return problems
}

// tighter lists bounds that are closer than they were. That there must be at least 0 of something is no bound.
func tighter(path string, old, now apiextensionsv1.JSONSchemaProps) []string {
	var problems []string
	for name, bound := range map[string][2]*int64{
		"maxLength": {old.MaxLength, now.MaxLength}, "maxItems": {old.MaxItems, now.MaxItems}, "maxProperties": {old.MaxProperties, now.MaxProperties},
	} {
		if isLower(bound[0], bound[1]) {
			problems = append(problems, fmt.Sprintf("%s: %s is %d", path, name, *bound[1]))
		}
	}
	for name, bound := range map[string][2]*int64{
		"minLength": {old.MinLength, now.MinLength}, "minItems": {old.MinItems, now.MinItems}, "minProperties": {old.MinProperties, now.MinProperties},
	} {
		if isHigher(bound[0], bound[1]) && *bound[1] > 0 {
			problems = append(problems, fmt.Sprintf("%s: %s is %d", path, name, *bound[1]))
		}
	}
	if isLower(old.Maximum, now.Maximum) {
		problems = append(problems, fmt.Sprintf("%s: the maximum is %g", path, *now.Maximum))
	}
	if isHigher(old.Minimum, now.Minimum) {
		problems = append(problems, fmt.Sprintf("%s: the minimum is %g", path, *now.Minimum))
	}
	return problems
}

// isLower reports whether a bound is lower than it was, or new.
func isLower[T int64 | float64](old, now *T) bool { return now != nil && (old == nil || *now < *old) }

// isHigher reports whether a bound is higher than it was, or new.
func isHigher[T int64 | float64](old, now *T) bool { return now != nil && (old == nil || *now > *old) }

// TestUpgradeJudges: a change that breaks objects is found, so that silence means something.
func TestUpgradeJudges(t *testing.T) {
	const name = "lowlatencynodeprofiles.lowlatency.dev"
	for want, change := range map[string]func(*apiextensionsv1.JSONSchemaProps){
		"spec.kernel is gone":         func(spec *apiextensionsv1.JSONSchemaProps) { delete(spec.Properties, "kernel") },
		"spec.kernel is required now": func(spec *apiextensionsv1.JSONSchemaProps) { spec.Required = append(spec.Required, "kernel") },
		"spec.kernel is string, was object": func(spec *apiextensionsv1.JSONSchemaProps) {
			kernel := spec.Properties["kernel"]
			kernel.Type = "string"
			spec.Properties["kernel"] = kernel
		},
		"spec.kernel: maxProperties is 1": func(spec *apiextensionsv1.JSONSchemaProps) {
			kernel := spec.Properties["kernel"]
			kernel.MaxProperties = new(int64)
			*kernel.MaxProperties = 1
			spec.Properties["kernel"] = kernel
		},
		"spec.kernel.type no longer takes \"RealTime\"": func(spec *apiextensionsv1.JSONSchemaProps) {
			kind := spec.Properties["kernel"].Properties["type"]
			kind.Enum = slices.DeleteFunc(kind.Enum, func(value apiextensionsv1.JSON) bool { return string(value.Raw) == `"RealTime"` })
			spec.Properties["kernel"].Properties["type"] = kind
		},
	} {
		old, now := definitions(t, previousFolder)[name], definitions(t, previousFolder)[name]
		if problems := unsafe(old, now); len(problems) > 0 {
			t.Fatalf("a definition breaks itself: %v", problems)
		}
		broken := spec(&now.Spec.Versions[0])
		change(&broken)
		now.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = broken
		if problems := strings.Join(unsafe(old, now), "\n"); !strings.Contains(problems, want) {
			t.Errorf("problems are %q, want %s", problems, want)
		}
	}
}
