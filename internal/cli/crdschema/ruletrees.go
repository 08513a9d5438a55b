// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package crdschema

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	celgo "github.com/google/cel-go/cel"
	exprpb "google.golang.org/genproto/googleapis/api/expr/v1alpha1"
	"google.golang.org/protobuf/proto"
)

// FormatRuleTrees parses CEL rules and writes the syntax tree of each beside it, one a line: the rule quoted, a tab, and the tree as
// CEL's own message in base64. Reading a tree takes a tenth of the time of parsing its rule.
func FormatRuleTrees(rules []string) (string, error) {
	env, err := celgo.NewEnv()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, rule := range slices.Compact(slices.Sorted(slices.Values(rules))) {
		parsed, issues := env.Parse(rule)
		if issues.Err() != nil {
			return "", fmt.Errorf("parsing the rule %s: %w", rule, issues.Err())
		}
		tree, err := celgo.AstToParsedExpr(parsed)
		if err != nil {
			return "", fmt.Errorf("writing the tree of the rule %s: %w", rule, err)
		}
		// Where in its text each part of the rule stands is for messages that are not printed from here.
		tree.SourceInfo = nil
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(tree)
		if err != nil {
			return "", fmt.Errorf("writing the tree of the rule %s: %w", rule, err)
		}
		fmt.Fprintf(&text, "%s\t%s\n", strconv.Quote(rule), base64.StdEncoding.EncodeToString(data))
	}
	return text.String(), nil
}

// ruleTrees are the encoded trees in a text of FormatRuleTrees, by the quoted rule.
func ruleTrees(text string) map[string]string {
	trees := make(map[string]string, strings.Count(text, "\n"))
	for line := range strings.Lines(text) {
		if rule, tree, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok {
			trees[rule] = tree
		}
	}
	return trees
}

// tree reads an encoded tree; nil when it is none.
func tree(encoded string) *celgo.Ast {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(data) == 0 {
		return nil
	}
	var parsed exprpb.ParsedExpr
	if err := proto.Unmarshal(data, &parsed); err != nil {
		return nil
	}
	return celgo.ParsedExprToAst(&parsed)
}
