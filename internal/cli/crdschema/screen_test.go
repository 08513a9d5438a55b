// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package crdschema

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/lowlatency-dev/lowlatency-operator/config/crd"
	simsamples "github.com/lowlatency-dev/lowlatency-operator/internal/sim/samples"
)

// TestRulesAreJudgedAsByTheWholeValidator breaks every field of every sample in several ways. The short ways, screening and
// compiling only what is needed, must come to what the API server's validator with all rules comes to.
func TestRulesAreJudgedAsByTheWholeValidator(t *testing.T) {
	whole := map[*kind]*cel.Validator{}
	broken := 0
	judged := samples(t)
	for _, name := range slices.Sorted(maps.Keys(judged)) {
		k := judged[name].kind
		if whole[k] == nil {
			whole[k] = cel.NewValidator(k.structural, true, celconfig.PerCallLimit)
		}
		varied := variations(judged[name].object["spec"])
		for _, how := range slices.Sorted(maps.Keys(varied)) {
			object := maps.Clone(judged[name].object)
			object["spec"] = varied[how]
			want := brokenRules(t, whole[k], k, object)
			if held := obeysRules(k.structural, object); held && len(want) > 0 {
				t.Errorf("%s, %s: it passes the screen, but %s", name, how, want)
			}
			if len(want) == 0 {
				continue
			}
			// Compiling takes long, so not every broken object is compared.
			if broken++; broken%8 != 0 {
				continue
			}
			got := brokenRules(t, cel.NewValidator(withRulesFor(k.structural, []any{object}), true, celconfig.PerCallLimit), k, object)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, how, diff)
			}
		}
	}
	if broken < 100 {
		t.Errorf("only %d variations break a rule: that proves little", broken)
	}
}

// brokenRules are the sentences of a validator about an object, sorted.
func brokenRules(t *testing.T, rules *cel.Validator, k *kind, object map[string]any) []string {
	t.Helper()
	errs, _ := rules.Validate(t.Context(), nil, k.structural, object, nil, celconfig.RuntimeCELCostBudget)
	sentences := make([]string, 0, len(errs))
	for _, err := range errs {
		sentences = append(sentences, err.Error())
	}
	slices.Sort(sentences)
	return sentences
}

// TestSamplesPassTheScreen: a valid object costs no compilation for its types.
func TestSamplesPassTheScreen(t *testing.T) {
	for name, sample := range samples(t) {
		if !obeysRules(sample.kind.structural, sample.object) {
			t.Errorf("%s does not pass", name)
		}
	}
}

// TestNoFieldIsLostWithTheDescriptions: what the binary holds has the fields of the definitions that are applied.
func TestNoFieldIsLostWithTheDescriptions(t *testing.T) {
	schemas, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Collect(maps.Values(schemas.unread)) {
		if err := schemas.add(name); err != nil {
			t.Fatal(err)
		}
	}
	if len(schemas.kinds) == 0 {
		t.Fatal("no kind")
	}
	for gvk, k := range schemas.kinds {
		if fields := countFields(k.structural); fields < 50 {
			t.Errorf("%s has %d fields only", gvk.Kind, fields)
		}
	}
}

func countFields(schema *structuralschema.Structural) int {
	count := len(schema.Properties)
	for name := range schema.Properties {
		property := schema.Properties[name]
		count += countFields(&property)
	}
	if schema.Items != nil {
		count += countFields(schema.Items)
	}
	return count
}

// sample is an object with its kind.
type sample struct {
	kind   *kind
	object map[string]any
}

// samples are the objects of config/samples and docs/examples that have a CustomResourceDefinition here.
func samples(t *testing.T) map[string]sample {
	t.Helper()
	schemas, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]sample{}
	for _, folder := range []string{"../../../config/samples", "../../../docs/examples"} {
		files, err := simsamples.Files(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for part := range strings.SplitSeq(string(text), "\n---\n") {
				read := object(t, part)
				k, err := schemas.find(read.GroupVersionKind())
				if err != nil {
					t.Fatal(err)
				}
				if k != nil {
					found[file+" "+read.GetName()] = sample{k, read.Object}
				}
			}
		}
	}
	if len(found) < 8 {
		t.Fatalf("only %d samples were found", len(found))
	}
	return found
}

// variations are copies of a value, each with one change.
func variations(value any) map[string]any {
	all := map[string]any{"as it is": value}
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			without := maps.Clone(value)
			delete(without, name)
			all["without "+name] = without
			for how, changed := range variations(value[name]) {
				with := maps.Clone(value)
				with[name] = changed
				all[name+": "+how] = with
			}
		}
	case []any:
		all["twice"] = append(slices.Clone(value), value...)
		all["empty"] = []any{}
		for i := range value {
			for how, changed := range variations(value[i]) {
				with := slices.Clone(value)
				with[i] = changed
				all[fmt.Sprintf("%d: %s", i, how)] = with
			}
		}
	case string:
		all["with blanks"] = value + " $(x)"
		all["another word"] = "Explicit"
	case int64:
		all["negative"] = -value
	}
	return all
}

// TestIsExcused lists what may be decided without parsing a rule.
func TestIsExcused(t *testing.T) {
	value := map[string]any{"here": map[string]any{"within": "a"}, "null": nil, "text": "a"}
	cases := map[string]bool{
		"!has(self.missing) || false":                              true,
		"!has(self.here) || !has(self.missing) || false":           true,
		"!has(self.here) || !has(self.here.missing) || false":      true,
		"!has(self.missing) || has(self.here) && false":            true,
		"!has(self.here) || false":                                 false,
		"!has(self.here.within) || false":                          false,
		"!has(self.null) || false":                                 false,
		"!has(self.text.missing) || false":                         false,
		"!has(self.missing.within) || false":                       false,
		"!has(self.missing) || true ? false : true":                false,
		"!has(self.missing)":                                       false,
		"!has(self.missing) && false":                              false,
		"!has(self.missing) == false && (has(self.here) || false)": false,
		"has(self.missing) || false":                               false,
		"(!has(self.missing) || false) && false":                   false,
		"!has(self.here) || (!has(self.missing) || true) && false": false,
	}
	for rule, want := range cases {
		if got := isExcused(rule, value); got != want {
			t.Errorf("isExcused(%s) = %t, want %t", rule, got, want)
		}
	}
	if isExcused("!has(self.missing) || false", "text") {
		t.Error("a text lacks no field")
	}
}

// TestRuleTrees: the trees that the binary holds are what the parser makes of the rules, of all of them and no others.
func TestRuleTrees(t *testing.T) {
	schemas, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Collect(maps.Values(schemas.unread)) {
		if err := schemas.add(name); err != nil {
			t.Fatal(err)
		}
	}
	rules := make([]string, 0, len(schemas.unread)+len(schemas.kinds))
	for _, k := range schemas.kinds {
		rules = append(rules, rulesIn(k.structural)...)
	}
	want, err := FormatRuleTrees(rules)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, crd.RuleTrees()); diff != "" {
		t.Errorf("make manifests (-want +got):\n%s", diff)
	}
	s, err := newScreen()
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		if tree(s.trees[strconv.Quote(rule)]) == nil {
			t.Errorf("no tree for %s", rule)
		}
	}
}

func rulesIn(schema *structuralschema.Structural) []string {
	rules := make([]string, 0, len(schema.XValidations))
	for _, rule := range schema.XValidations {
		rules = append(rules, rule.Rule)
	}
	for name := range schema.Properties {
		property := schema.Properties[name]
		rules = append(rules, rulesIn(&property)...)
	}
	if schema.Items != nil {
		rules = append(rules, rulesIn(schema.Items)...)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Structural != nil {
		rules = append(rules, rulesIn(schema.AdditionalProperties.Structural)...)
	}
	return rules
}

// TestParse: rules without a tree are parsed, and what is no rule is none.
func TestParse(t *testing.T) {
	s, err := newScreen()
	if err != nil {
		t.Fatal(err)
	}
	s.trees = map[string]string{`"true"`: "!", `"false"`: "AAAA", `"1 == 1"`: ""}
	for rule, want := range map[string]bool{"true": true, "false": true, "1 == 1": true, "self.a == 2": true, "1 ==": false} {
		if got := s.parse(rule) != nil; got != want {
			t.Errorf("%s is parsed: %t, want %t", rule, got, want)
		}
	}
}
