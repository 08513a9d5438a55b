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
)

// TestConditionsAreDocumented looks for every condition type and reason of the API, and for every reason of an
// event, in docs/conditions.md.
func TestConditionsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "conditions.md"))
	if err != nil {
		t.Fatal(err)
	}
	words := constants(t, filepath.Join("..", "api", "v1alpha1", "conditions.go"), "Condition", "Reason", "NodeCondition")
	for _, m := range mirroredConditions() {
		words = append(words, m.proven, m.disproven, m.proven+"Unknown")
	}
	for _, word := range append(words, "GateClosed", "GateOpened", "Recovered") {
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
