// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/gate"
)

// TestConditionsAreDocumented looks for every condition type and reason of the API, and for every reason of an
// event, in docs/conditions.md.
func TestConditionsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "conditions.md"))
	if err != nil {
		t.Fatal(err)
	}
	words := constants(t, filepath.Join("..", "api", "v1alpha1", "conditions.go"), "Condition", "Reason", "NodeCondition")
	for _, word := range append(append(words, gate.EventReasons()...), "Recovered") {
		if !strings.Contains(string(text), "`"+word+"`") {
			t.Errorf("docs/conditions.md does not speak of %s", word)
		}
	}
}

// constants are the values of the string constants of a file whose names begin with one of the prefixes.
func constants(t *testing.T, path string, prefixes ...string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(file, func(node ast.Node) bool {
		spec, isValue := node.(*ast.ValueSpec)
		if !isValue || !hasPrefix(spec.Names[0].Name, prefixes) {
			return true
		}
		literal, isLiteral := spec.Values[0].(*ast.BasicLit)
		if !isLiteral {
			return true
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
		return true
	})
	if len(values) < 20 {
		t.Fatalf("only %d constants were found in %s", len(values), path)
	}
	return values
}

func hasPrefix(name string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// TestReadinessRule makes sure that the sample for the node readiness controller acts on a condition that we write, and
// keeps to the rules of its API: the prefix of the taint, and a mode that follows the node.
func TestReadinessRule(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "config", "samples", "readiness", "node-readiness-rule.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var rule struct {
		Spec struct {
			Conditions []struct {
				Type           corev1.NodeConditionType `json:"type"`
				RequiredStatus corev1.ConditionStatus   `json:"requiredStatus"`
			} `json:"conditions"`
			EnforcementMode string       `json:"enforcementMode"`
			Taint           corev1.Taint `json:"taint"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &rule); err != nil {
		t.Fatal(err)
	}
	if c := rule.Spec.Conditions; len(c) != 1 || c[0].Type != v1alpha1.NodeConditionReady || c[0].RequiredStatus != corev1.ConditionTrue {
		t.Errorf("the rule acts on %+v", c)
	}
	if !strings.HasPrefix(rule.Spec.Taint.Key, "readiness.k8s.io/") || rule.Spec.Taint.Effect != corev1.TaintEffectNoSchedule {
		t.Errorf("the rule puts %+v on", rule.Spec.Taint)
	}
	if rule.Spec.EnforcementMode != "continuous" {
		t.Errorf("the rule works in mode %s", rule.Spec.EnforcementMode)
	}
}
