// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// change is one edit of a file: the bytes from start to end become the text.
type change struct {
	file       string
	line       int
	start, end int
	text       string
	kind       kind
	// was is what the text replaces, source the line of code that it begins in.
	was, source string
}

// kind says how the changed and the original code stand side by side in one program.
type kind int

const (
	// condition is an expression that is true or false.
	condition kind = iota
	// value is another expression, of which both sides may be evaluated.
	value
	// statement is one that is left out.
	statement
)

// both is code that does the one or the other, as the number of the change says at run time.
func (c change) both(id int) string {
	switch c.kind {
	case condition:
		return fmt.Sprintf("mutantCondition(%d, func() bool { return %s }, func() bool { return %s })", id, c.text, c.was)
	case value:
		return fmt.Sprintf("mutantValue(%d, %s, %s)", id, c.text, c.was)
	default:
		return fmt.Sprintf("if !mutantIs(%d) { %s }", id, c.was)
	}
}

// overlaps reports whether two changes touch the same code.
func (c change) overlaps(other change) bool {
	return c.file == other.file && c.start < other.end && other.start < c.end
}

// place is "file.go:12".
func (c change) place() string { return fmt.Sprintf("%s:%d", filepath.Base(c.file), c.line) }

// String says the place and the edit in one line.
func (c change) String() string {
	return fmt.Sprintf("%s: %s => %s    in: %s", c.place(), oneLine(c.was), oneLine(c.text), oneLine(c.source))
}

// oneLine is the beginning of a text, with single spaces.
func oneLine(text string) string {
	const enough = 90
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "nothing"
	}
	if len(text) > enough {
		text = text[:enough] + "…"
	}
	return text
}

// changesOf lists the changes of all files of a package but its tests and what is generated.
func changesOf(folder string) ([]change, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", folder, err)
	}
	var all []change
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(filepath.Base(file), "zz_") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a source: %w", err)
		}
		found, err := changesIn(file, source)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// finder collects the changes of one file.
type finder struct {
	file   string
	source []byte
	set    *token.FileSet
	found  []change
}

func changesIn(file string, source []byte) ([]change, error) {
	f := &finder{file: file, source: source, set: token.NewFileSet()}
	parsed, err := parser.ParseFile(f.set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parsing a source: %w", err)
	}
	ast.Inspect(parsed, f.visit)
	return f.found, nil
}

// visit adds the changes of a node; nothing is changed in imports.
func (f *finder) visit(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.BinaryExpr:
		f.operator(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.replace(n, condition, f.text(n.X))
		}
	case *ast.IfStmt:
		f.replace(n.Cond, condition, "!("+f.text(n.Cond)+")")
	case *ast.BasicLit:
		f.literal(n)
	case *ast.Ident:
		f.name(n)
	case *ast.SelectorExpr:
		f.rank(n)
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	}
	return true
}

// text is the source of a node.
func (f *finder) text(n ast.Node) string {
	return string(f.source[f.set.Position(n.Pos()).Offset:f.set.Position(n.End()).Offset])
}

// replace adds the change of a node to a text.
func (f *finder) replace(n ast.Node, kind kind, text string) {
	start, end := f.set.Position(n.Pos()), f.set.Position(n.End()).Offset
	lineStart := strings.LastIndexByte(string(f.source[:start.Offset]), '\n') + 1
	line, _, _ := strings.Cut(string(f.source[lineStart:]), "\n")
	f.found = append(f.found, change{
		file: f.file, line: start.Line, start: start.Offset, end: end, text: text, kind: kind,
		was: string(f.source[start.Offset:end]), source: line,
	})
}

// operator turns comparisons, logical and arithmetic operators into others. A product never becomes a quotient, which
// may divide by zero.
func (f *finder) operator(n *ast.BinaryExpr) {
	kind := condition
	if slices.Contains([]token.Token{token.ADD, token.SUB, token.QUO}, n.Op) {
		kind = value
	}
	for _, other := range map[token.Token][]string{
		token.EQL: {"!="}, token.NEQ: {"=="}, token.LSS: {"<=", ">="}, token.LEQ: {"<", ">"},
		token.GTR: {">=", "<="}, token.GEQ: {">", "<"}, token.LAND: {"||"}, token.LOR: {"&&"},
		token.ADD: {"-"}, token.SUB: {"+"}, token.QUO: {"*"},
	}[n.Op] {
		f.replace(n, kind, f.text(n.X)+" "+other+" "+f.text(n.Y))
	}
}

// literal makes a number one more.
func (f *finder) literal(n *ast.BasicLit) {
	if number, err := strconv.Atoi(n.Value); n.Kind == token.INT && err == nil {
		f.replace(n, value, strconv.Itoa(number+1))
	}
}

// name turns truth values and impacts into others.
func (f *finder) name(n *ast.Ident) {
	if other := map[string]string{
		"true": "false", "false": "true",
		"ImpactWork": "ImpactNone", "ImpactSpeed": "ImpactNone", "ImpactPlacement": "ImpactNone", "ImpactPlan": "ImpactNone", "ImpactNone": "ImpactWork",
	}[n.Name]; other != "" {
		f.replace(n, value, other)
	}
}

// rank makes constants of severity lower, and the lowest one higher; outcomes become others.
func (f *finder) rank(n *ast.SelectorExpr) {
	if other := map[string]string{
		"SeverityCritical": "SeverityLow", "SeverityHigh": "SeverityLow", "SeverityMedium": "SeverityLow", "SeverityLow": "SeverityHigh",
		"OutcomeFailed": "OutcomePassed", "OutcomeUnknown": "OutcomePassed", "OutcomePassed": "OutcomeFailed",
		"RebootRequired": "RebootNotRequired", "RebootNotRequired": "RebootRequired",
		"ConditionDeJittered": "ConditionNUMAAligned", "ConditionNUMAAligned": "ConditionDeJittered",
		"ConditionTrue": "ConditionFalse", "ConditionFalse": "ConditionTrue", "ConditionUnknown": "ConditionTrue",
	}[n.Sel.Name]; other != "" {
		f.replace(n, value, f.text(n.X)+"."+other)
	}
}

// statements leaves out statements that can be left out: calls, assignments, and what ends a turn of a loop.
func (f *finder) statements(list []ast.Stmt) {
	for _, candidate := range list {
		switch s := candidate.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt:
			f.replace(s, statement, "")
		case *ast.BranchStmt:
			f.replace(s, statement, "")
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				f.replace(s, statement, "")
			}
		}
	}
}
