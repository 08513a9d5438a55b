// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// project is the folder of the repository.
const project = "../.."

func readProject(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(project, path))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestStacksAreThoseOfTheAPI: each value of the enumeration has one row, and each row is a value.
func TestStacksAreThoseOfTheAPI(t *testing.T) {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(readProject(t, "config/crd/bases/lowlatency.dev_bypassnicpools.yaml"), &definition); err != nil {
		t.Fatal(err)
	}
	spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	stack := spec.Properties["stack"]
	values := stack.Properties["type"].Enum
	want, got := make([]string, 0, len(values)), make([]string, 0, len(values))
	for _, value := range values {
		want = append(want, strings.Trim(string(value.Raw), `"`))
	}
	for _, row := range Stacks() {
		got = append(got, string(row.Type))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spec.stack.type in the API and the table of stacks (-API +table):\n%s", diff)
	}
}

// TestEverySectionHasAStack: each member of the union belongs to one row.
func TestEverySectionHasAStack(t *testing.T) {
	union := reflect.TypeFor[v1alpha1.BypassStack]()
	var found []v1alpha1.StackType
	for i := range union.NumField() {
		field := union.Field(i)
		if field.Type.Kind() != reflect.Pointer {
			continue
		}
		var spec v1alpha1.BypassStack
		reflect.ValueOf(&spec).Elem().Field(i).Set(reflect.New(field.Type.Elem()))
		sections := sectionsOf(&spec)
		if len(sections) != 1 {
			t.Errorf("spec.stack.%s is the section of %d stacks, want one", field.Name, len(sections))
			continue
		}
		found = append(found, sections[0].Type)
		if sections[0].needs(&spec).nodesForAll && len(sections[0].needs(&spec).nodes) == 0 {
			t.Errorf("stack %s wants device files that are open to everybody and names none", sections[0].Type)
		}
	}
	slices.Sort(found)
	if len(slices.Compact(found)) != len(Stacks()) {
		t.Errorf("the sections of the API are those of stacks %v, want one for each of the table", found)
	}
}

// TestNeedsOfStacks: what each stack needs of a node, beside its code. A change of it is a decision about all pools of the
// stack, and shows in the diff.
func TestNeedsOfStacks(t *testing.T) {
	var b strings.Builder
	for _, row := range Stacks() {
		var spec v1alpha1.BypassStack
		section := reflect.ValueOf(&spec).Elem().FieldByName(string(row.Type))
		section.Set(reflect.New(section.Type().Elem()))
		needed := reflect.ValueOf(row.needs(&spec))
		fmt.Fprintf(&b, "%s\n", row.Type)
		for i := range needed.NumField() {
			if field := needed.Field(i); !field.IsZero() {
				fmt.Fprintf(&b, "\t%s: %v\n", needed.Type().Field(i).Name, field)
			}
		}
	}
	golden.Assert(t, b.String(), "needs.txt")
}

// TestStacksAreShown: each stack has a sample that is applied with the others, and a section in the guide.
func TestStacksAreShown(t *testing.T) {
	guide := "\n" + string(readProject(t, "docs/pools.md"))
	for _, row := range Stacks() {
		if !strings.Contains(guide, "\n### "+row.Section+"\n") {
			t.Errorf("docs/pools.md has no section %q about stack %s", row.Section, row.Type)
		}
		folder, file := path.Split("config/samples/" + row.Sample)
		if !strings.Contains(string(readProject(t, folder+"kustomization.yaml")), "\n- "+file+"\n") {
			t.Errorf("%skustomization.yaml does not name %q of stack %s", folder, file, row.Type)
		}
		var pool v1alpha1.BypassNICPool
		if err := yaml.UnmarshalStrict(readProject(t, "config/samples/"+row.Sample), &pool); err != nil {
			t.Errorf("sample of stack %s: %v", row.Type, err)
			continue
		}
		if got := stackOf(&pool.Spec).Type; got != row.Type || !hasSection(&pool.Spec.Stack) {
			t.Errorf("config/samples/%s is a pool of stack %s, want %s", row.Sample, got, row.Type)
		}
	}
}

func TestStackOf(t *testing.T) {
	for _, row := range Stacks() {
		if got := StackOf(row.Type); got.Type != row.Type || got.Sample != row.Sample {
			t.Errorf("StackOf(%s) is the row of %s", row.Type, got.Type)
		}
	}
	if got := StackOf("Carrier pigeon"); got.Type != "" {
		t.Errorf("an unknown stack has the row of %s", got.Type)
	}
}

// TestNobodyComparesStacks: what differs between stacks is in their rows. Besides the files of the rows, only the API,
// tests, and what pretends for them name a stack.
func TestNobodyComparesStacks(t *testing.T) {
	types := map[string]bool{}
	for _, row := range Stacks() {
		types["Stack"+string(row.Type)] = true
	}
	for _, path := range sources(t, "cmd", "controllers", "internal") {
		if strings.HasPrefix(path, filepath.Join(project, "internal/bypass/stack_")) {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok && types[selector.Sel.Name] {
				t.Errorf("%s names %s: put what differs into the row of the stack", files.Position(n.Pos()), selector.Sel.Name)
			}
			return true
		})
	}
}

// sources are the files of the project's code in folders, without tests and what pretends.
func sources(t *testing.T, folders ...string) []string {
	t.Helper()
	var found []string
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(project, folder), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Name() == "sim" {
				return fs.SkipDir
			}
			if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
