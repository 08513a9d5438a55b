// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package crdschema

import (
	"strconv"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/lowlatency-dev/lowlatency-operator/config/crd"
)

// screen evaluates CEL rules on untyped values. An API server compiles each rule for the type of its field and estimates
// what it may cost, which is needed once, when the CustomResourceDefinition is accepted, and takes ten times as long as
// evaluating it. The screen finds out whether all rules hold; what breaks one, or what the screen cannot evaluate, is left
// to the API server's own validator, which has the sentences.
type screen struct {
	env *celgo.Env
	// trees are the encoded syntax trees of the rules that were known when this program was built, by the quoted rule.
	trees map[string]string
	// programs are nil for rules that cannot be evaluated here.
	programs map[string]celgo.Program
	// budget is what evaluating all rules of an object may still cost.
	budget int64
}

// stringsVersion is that of the functions on strings that an API server knows (k8s.io/apiserver/pkg/cel/environment).
const stringsVersion = 2

func newScreen() (*screen, error) {
	env, err := celgo.NewEnv(celgo.Variable("self", celgo.DynType), ext.Strings(ext.StringsVersion(stringsVersion)))
	if err != nil {
		return nil, err
	}
	return &screen{
		env: env, trees: ruleTrees(crd.RuleTrees()), programs: map[string]celgo.Program{}, budget: celconfig.RuntimeCELCostBudget,
	}, nil
}

// obeysRules reports whether an object certainly obeys all rules of its schema.
func obeysRules(schema *structuralschema.Structural, object map[string]any) bool {
	s, err := newScreen()
	return err == nil && s.passes(schema, object)
}

// passes reports whether the value certainly obeys all rules of its schema.
func (s *screen) passes(schema *structuralschema.Structural, value any) bool {
	if hasNestedRules(schema) || !s.obeys(schema.XValidations, value) {
		return false
	}
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if !s.memberPasses(schema, name, member) {
				return false
			}
		}
	case []any:
		for _, element := range value {
			if schema.Items != nil && !s.passes(schema.Items, element) {
				return false
			}
		}
	}
	return true
}

func (s *screen) memberPasses(schema *structuralschema.Structural, name string, member any) bool {
	if property, ok := schema.Properties[name]; ok {
		return s.passes(&property, member)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Structural != nil {
		return s.passes(schema.AdditionalProperties.Structural, member)
	}
	return true
}

// hasNestedRules reports whether a schema has rules at a place where the screen does not look.
func hasNestedRules(schema *structuralschema.Structural) bool {
	return schema.XEmbeddedResource || schema.ValueValidation != nil && len(schema.ValueValidation.AllOf) > 0
}

func (s *screen) obeys(rules apiextensionsv1.ValidationRules, value any) bool {
	for _, rule := range rules {
		if !isTransition(rule) && !s.holds(rule.Rule, value) {
			return false
		}
	}
	return true
}

// isTransition reports whether a rule compares a value with its predecessor. What is created has none.
func isTransition(rule apiextensionsv1.ValidationRule) bool {
	return strings.Contains(rule.Rule, "oldSelf") && rule.OptionalOldSelf == nil
}

// holds reports whether the rule certainly holds for the value.
func (s *screen) holds(rule string, value any) bool {
	if isExcused(rule, value) {
		// What evaluating it would cost is less than it has characters.
		s.budget -= int64(len(rule))
		return s.budget >= 0
	}
	program := s.program(rule)
	if program == nil {
		return false
	}
	result, details, err := program.Eval(map[string]any{"self": value})
	if err != nil || details == nil || details.ActualCost() == nil {
		return false
	}
	s.budget -= int64(*details.ActualCost())
	held, ok := result.Value().(bool)
	return ok && held && s.budget >= 0
}

// isExcused reports whether a rule holds because a field is absent of which it speaks: it begins with alternatives of the
// form !has(self.field), and one of them is true. Parsing a rule takes much longer than all else that is done with it. A
// rule with a condition (a ? b : c), which is weaker than an alternative, is not looked at.
func isExcused(rule string, value any) bool {
	if strings.Contains(rule, "?") {
		return false
	}
	for {
		asked, ok := strings.CutPrefix(rule, "!has(self.")
		if !ok {
			return false
		}
		var field string
		if field, rule, ok = strings.Cut(asked, ") || "); !ok || strings.ContainsFunc(field, isNoFieldName) {
			return false
		}
		if lacks(value, field) {
			return true
		}
	}
}

func isNoFieldName(c rune) bool {
	return c != '.' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
}

// lacks reports whether an object has all but the last of the fields of a path, and not the last.
func lacks(value any, path string) bool {
	for {
		object, ok := value.(map[string]any)
		if !ok {
			return false
		}
		name, rest, more := strings.Cut(path, ".")
		member, found := object[name]
		if !found || !more {
			return !found && !more
		}
		value, path = member, rest
	}
}

// program makes a rule ready to be evaluated. Names with two underscores are left out: in a typed object they stand for names that are reserved.
func (s *screen) program(rule string) celgo.Program {
	program, ok := s.programs[rule]
	if ok || strings.Contains(rule, "__") {
		return program
	}
	if parsed := s.parse(rule); parsed != nil {
		if made, err := s.env.Program(parsed, celgo.CostLimit(celconfig.PerCallLimit)); err == nil {
			program = made
		}
	}
	s.programs[rule] = program
	return program
}

// parse is the syntax tree of a rule: the one that was made with the definitions, else what the parser makes of the rule, nil if that
// fails.
func (s *screen) parse(rule string) *celgo.Ast {
	if known := tree(s.trees[strconv.Quote(rule)]); known != nil {
		return known
	}
	parsed, issues := s.env.Parse(rule)
	if issues.Err() != nil {
		return nil
	}
	return parsed
}
