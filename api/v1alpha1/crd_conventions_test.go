// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1_test

import (
	"encoding/json"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// conventions returns what every place in our schemas must keep to; each function says whether it is broken.
func conventions() map[string]func(node) bool {
	return map[string]func(node) bool{
		"a boolean cannot grow a third value: use an enum":          isType("boolean"),
		"a float has no exact value: use an integer with a unit":    isType("number"),
		"int-or-string says one thing in two ways: use one of them": func(n node) bool { return n.schema.XIntOrString },
		"a schema default changes what users wrote and can never change itself": func(n node) bool {
			return n.schema.Default != nil
		},
		"free-form content cannot be validated": func(n node) bool {
			return ptr.Deref(n.schema.XPreserveUnknownFields, false) || n.schema.XEmbeddedResource
		},
		"an object names its fields or is a map": func(n node) bool {
			return n.schema.Type == "object" && len(n.schema.Properties) == 0 && n.schema.AdditionalProperties == nil
		},
		"a string has a maxLength, an enum or a format of fixed length": unboundedString,
		"a list has maxItems":                            unboundedList,
		"a list says how it merges":                      func(n node) bool { return n.schema.Type == "array" && n.schema.XListType == nil },
		"a map has maxProperties":                        unboundedMap,
		"an integer has a minimum and a maximum":         unboundedInteger,
		"a bound survives the JSON number of a client":   inexactBound,
		"a field has a description":                      undescribed,
		"a description begins with the field's own name": misnamed,
		"an enum value is written in UpperCamelCase":     oddEnum,
		"a rule's message is a sentence":                 oddMessage,
	}
}

func isType(name string) func(node) bool {
	return func(n node) bool { return n.schema.Type == name }
}

// restrictions are the schema itself and the parts that controller-gen moves to allOf when a type and a field
// restrict the same value.
func restrictions(n node) []apiextensionsv1.JSONSchemaProps {
	return append([]apiextensionsv1.JSONSchemaProps{n.schema}, n.schema.AllOf...)
}

func unboundedString(n node) bool {
	return n.schema.Type == "string" && !slices.ContainsFunc(restrictions(n), func(s apiextensionsv1.JSONSchemaProps) bool {
		return s.MaxLength != nil || len(s.Enum) > 0 || s.Format == "date-time"
	})
}

func unboundedList(n node) bool {
	return n.schema.Type == "array" && !slices.ContainsFunc(restrictions(n), func(s apiextensionsv1.JSONSchemaProps) bool {
		return s.MaxItems != nil
	})
}

func unboundedMap(n node) bool {
	return n.schema.AdditionalProperties != nil && !slices.ContainsFunc(restrictions(n), func(s apiextensionsv1.JSONSchemaProps) bool {
		return s.MaxProperties != nil
	})
}

func unboundedInteger(n node) bool {
	return n.schema.Type == "integer" && !slices.ContainsFunc(restrictions(n), func(s apiextensionsv1.JSONSchemaProps) bool {
		return s.Minimum != nil && s.Maximum != nil
	})
}

// inexactBound finds integers beyond the range in which every JSON implementation is exact.
func inexactBound(n node) bool {
	const exact = 1<<53 - 1
	return math.Abs(ptr.Deref(n.schema.Maximum, 0)) > exact || math.Abs(ptr.Deref(n.schema.Minimum, 0)) > exact
}

func undescribed(n node) bool {
	return n.property != "" && strings.TrimSpace(n.schema.Description) == ""
}

func misnamed(n node) bool {
	return n.property != "" && !strings.HasPrefix(n.schema.Description, n.property+" ")
}

func oddEnum(n node) bool {
	wanted := regexp.MustCompile(`^[A-Z0-9][A-Za-z0-9]*$`)
	return slices.ContainsFunc(n.schema.Enum, func(value apiextensionsv1.JSON) bool {
		var text string
		return json.Unmarshal(value.Raw, &text) != nil || !wanted.MatchString(text)
	})
}

func oddMessage(n node) bool {
	return slices.ContainsFunc(n.schema.XValidations, func(rule apiextensionsv1.ValidationRule) bool {
		return !strings.HasSuffix(rule.Message, ".") || !strings.Contains(rule.Message, " ")
	})
}

// broken returns the conventions that a place does not keep to.
func broken(n node) []string {
	if n.foreign {
		return nil
	}
	var names []string
	for name, isBroken := range conventions() {
		if isBroken(n) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func TestCRDsKeepToTheConventions(t *testing.T) {
	for kind, schema := range schemas(t) {
		t.Run(kind, func(t *testing.T) {
			visited := 0
			walk(schema, func(n node) {
				visited++
				for _, convention := range broken(n) {
					t.Errorf("%s: %s", n.path, convention)
				}
			})
			if visited < 20 {
				t.Errorf("only %d places were visited", visited)
			}
		})
	}
}

func TestCRDsAreFoundByUsers(t *testing.T) {
	wantShortName := map[string]string{"LowLatencyNodeProfile": "llnp", "LowLatencyNode": "lln", "BypassNICPool": "bnp", "LatencyTest": "lt"}
	crds := readCRDs(t)
	if len(crds) != len(wantShortName) {
		t.Errorf("%d CRDs, want %d", len(crds), len(wantShortName))
	}
	for kind, crd := range crds {
		t.Run(kind, func(t *testing.T) {
			names := crd.Spec.Names
			if !slices.Contains(names.ShortNames, wantShortName[kind]) || !slices.Contains(names.Categories, "lowlatency") {
				t.Errorf("short names %v, categories %v, want %s and lowlatency", names.ShortNames, names.Categories, wantShortName[kind])
			}
			for _, version := range crd.Spec.Versions {
				columns := version.AdditionalPrinterColumns
				if len(columns) == 0 || columns[len(columns)-1].Name != "Age" {
					t.Errorf("%s: print columns do not end with Age", version.Name)
				}
				if version.Subresources == nil || version.Subresources.Status == nil {
					t.Errorf("%s has no status subresource", version.Name)
				}
				if !strings.HasPrefix(version.Schema.OpenAPIV3Schema.Description, kind+" ") {
					t.Errorf("%s: the description does not begin with %s", version.Name, kind)
				}
			}
		})
	}
}

// offence is a schema that breaks conventions.
type offence struct {
	schema apiextensionsv1.JSONSchemaProps
	want   []string
}

// offences breaks each convention at least once.
func offences() map[string]offence {
	return map[string]offence{
		"a boolean": {
			schema: described(apiextensionsv1.JSONSchemaProps{Type: "boolean"}),
			want:   []string{"a boolean cannot grow a third value: use an enum"},
		},
		"a float": {
			schema: described(apiextensionsv1.JSONSchemaProps{Type: "number"}),
			want:   []string{"a float has no exact value: use an integer with a unit"},
		},
		"a port that may be a name": {
			schema: described(apiextensionsv1.JSONSchemaProps{XIntOrString: true}),
			want:   []string{"int-or-string says one thing in two ways: use one of them"},
		},
		"a default": {
			schema: described(shortString(apiextensionsv1.JSONSchemaProps{Default: &apiextensionsv1.JSON{Raw: []byte(`"a"`)}})),
			want:   []string{"a schema default changes what users wrote and can never change itself"},
		},
		"anything goes": {
			schema: described(apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}),
			want:   []string{"an object names its fields or is a map", "free-form content cannot be validated"},
		},
		"a string of any length": {
			schema: described(apiextensionsv1.JSONSchemaProps{Type: "string"}),
			want:   []string{"a string has a maxLength, an enum or a format of fixed length"},
		},
		"a list of any length": {
			schema: described(apiextensionsv1.JSONSchemaProps{Type: "array"}),
			want:   []string{"a list has maxItems", "a list says how it merges"},
		},
		"a map of any size": {
			schema: described(apiextensionsv1.JSONSchemaProps{
				Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true},
			}),
			want: []string{"a map has maxProperties"},
		},
		"an integer with one bound": {
			schema: described(apiextensionsv1.JSONSchemaProps{Type: "integer", Minimum: new(0.0)}),
			want:   []string{"an integer has a minimum and a maximum"},
		},
		"a bound beyond 2^53": {
			schema: described(apiextensionsv1.JSONSchemaProps{Type: "integer", Minimum: new(0.0), Maximum: new(0x1p62)}),
			want:   []string{"a bound survives the JSON number of a client"},
		},
		"no description": {
			schema: shortString(apiextensionsv1.JSONSchemaProps{}),
			want:   []string{"a description begins with the field's own name", "a field has a description"},
		},
		"a description in Go's notation": {
			schema: shortString(apiextensionsv1.JSONSchemaProps{Description: "X is described."}),
			want:   []string{"a description begins with the field's own name"},
		},
		"an enum value in lower case": {
			schema: described(apiextensionsv1.JSONSchemaProps{Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"off"`)}}}),
			want:   []string{"an enum value is written in UpperCamelCase"},
		},
		"a rule without a sentence": {
			schema: described(shortString(apiextensionsv1.JSONSchemaProps{XValidations: apiextensionsv1.ValidationRules{{Rule: "self != ''"}}})),
			want:   []string{"a rule's message is a sentence"},
		},
	}
}

func described(schema apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	schema.Description = "x is described."
	return schema
}

func shortString(schema apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	schema.Type, schema.MaxLength = "string", new(int64(1))
	return schema
}

func TestConventionsAreNoticed(t *testing.T) {
	noticed := map[string]bool{}
	for name, tc := range offences() {
		t.Run(name, func(t *testing.T) {
			got := broken(node{path: "spec.x", property: "x", schema: tc.schema})
			if !slices.Equal(got, tc.want) {
				t.Errorf("broken conventions are %q, want %q", got, tc.want)
			}
			for _, convention := range got {
				noticed[convention] = true
			}
		})
	}
	for convention := range conventions() {
		if !noticed[convention] {
			t.Errorf("no case breaks %q", convention)
		}
	}
}

// TestKindsAreNamed holds PROJECT, which kubebuilder reads, and the package comment, which go doc prints, against the
// CRDs.
func TestKindsAreNamed(t *testing.T) {
	project, err := os.ReadFile("../../PROJECT")
	if err != nil {
		t.Fatal(err)
	}
	comment, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for kind := range readCRDs(t) {
		if !strings.Contains(string(project), "\n  kind: "+kind+"\n") {
			t.Errorf("PROJECT does not name %s", kind)
		}
		if !strings.Contains(string(comment), "//   - "+kind+": ") {
			t.Errorf("the package comment does not name %s", kind)
		}
	}
}
