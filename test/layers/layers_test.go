// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package layers keeps the linter's lists of pure packages and of wings complete, and sees to what the linter cannot:
// that pure packages read no clock, and that shipped programs hold nothing that only pretends.
package layers

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const (
	root   = "../.."
	module = "github.com/lowlatency-dev/lowlatency-operator/"
	// pureClaim is how the comment of a package claims to be pure.
	pureClaim = "It is pure"
)

// listed is a package as go list prints it.
type listed struct {
	ImportPath, Dir, Doc string
	GoFiles              []string
	Deps                 []string
}

func (p *listed) name() string { return strings.TrimPrefix(p.ImportPath, module) }

// list runs go list with patterns.
func list(t *testing.T, patterns ...string) []listed {
	t.Helper()
	command := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Doc,GoFiles,Deps"}, patterns...)...)
	command.Dir = root
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var one listed
		if err := decoder.Decode(&one); err == io.EOF {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, one)
	}
}

// rules are the files of each rule of depguard, by the name of the rule.
func rules(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]struct{ Files []string }
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for name, rule := range config.Linters.Settings.Depguard.Rules {
		for _, pattern := range rule.Files {
			if folder, ok := strings.CutPrefix(pattern, "**/"); ok {
				found[name] = append(found[name], folder)
			}
		}
	}
	return found
}

// doc is the comment of a package on one line. go list prints its first sentence only.
func doc(t *testing.T, p *listed) string {
	t.Helper()
	var texts []string
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if file.Doc != nil {
			texts = append(texts, file.Doc.Text())
		}
	}
	return strings.Join(strings.Fields(strings.Join(texts, " ")), " ")
}

// purePackages are those whose comments claim it.
func purePackages(t *testing.T) []listed {
	t.Helper()
	return slices.DeleteFunc(list(t, "./..."), func(p listed) bool { return !strings.Contains(doc(t, &p), pureClaim) })
}

func TestLinterKnowsEveryPurePackage(t *testing.T) {
	pure := purePackages(t)
	claimed := make([]string, 0, len(pure))
	for _, p := range pure {
		claimed = append(claimed, p.name()+"/*.go")
	}
	enforced := rules(t)["pure"]
	slices.Sort(enforced)
	if diff := cmp.Diff(claimed, enforced); diff != "" {
		t.Errorf("packages whose comments say %q and the rule \"pure\" of .golangci.yml differ (-claimed +enforced):\n%s", pureClaim, diff)
	}
	if len(claimed) == 0 {
		t.Error("no package claims to be pure")
	}
}

// TestPurePackagesReadNoClock: times are values there, which the linter cannot tell from the clock.
func TestPurePackagesReadNoClock(t *testing.T) {
	clock := []string{"Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer", "Sleep"}
	for _, p := range purePackages(t) {
		for _, name := range p.GoFiles {
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				selector, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := selector.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, selector.Sel.Name) {
					t.Errorf("%s: time.%s in package %s, which says that it is pure: take the time as a value",
						set.Position(selector.Pos()), selector.Sel.Name, p.name())
				}
				return true
			})
		}
	}
}

// TestEveryPackageHasAWing: a package outside all wings could import anything.
func TestEveryPackageHasAWing(t *testing.T) {
	wings := map[string][]string{}
	for name, folders := range rules(t) {
		if strings.HasPrefix(name, "wing-") {
			for _, folder := range folders {
				wings[strings.TrimSuffix(folder, "**")] = append(wings[strings.TrimSuffix(folder, "**")], name)
			}
		}
	}
	for _, p := range list(t, "./internal/...", "./controllers/...") {
		var found []string
		for folder, names := range wings {
			if strings.HasPrefix(p.name()+"/", folder) {
				found = append(found, names...)
			}
		}
		simulated := strings.HasPrefix(p.name(), "internal/sim/")
		if simulated != (len(found) == 0) || len(found) > 1 {
			t.Errorf("package %s is in wings %q of .golangci.yml; it must be in one, or in internal/sim", p.name(), found)
		}
	}
}

func TestShippedProgramsHoldNoSimulation(t *testing.T) {
	for _, program := range list(t, "./cmd/...") {
		if len(program.Deps) == 0 {
			t.Errorf("go list names no dependency of %s", program.name())
		}
		for _, dependency := range program.Deps {
			for _, folder := range []string{module + "internal/sim/", module + "test/", module + "hack/"} {
				if strings.HasPrefix(dependency, folder) {
					t.Errorf("%s holds %s, which is not for shipped programs", program.name(), dependency)
				}
			}
			if dependency == "testing" {
				t.Errorf("%s holds package testing", program.name())
			}
		}
	}
}
