// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package olm

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// acceptedKinds are those that a bundle of the format registry+v1 may hold, as the operator-controller of OLM v1 asks operator-registry by
// IsSupported. They are read from the source of that module, because its package needs those of container engines.
func acceptedKinds(t *testing.T) map[string]bool {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/operator-framework/operator-registry").Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(strings.TrimSpace(string(module)), "pkg", "lib", "bundle", "supported_resources.go")
	source, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants, kinds := map[string]string{}, map[string]bool{}
	ast.Inspect(source, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ValueSpec:
			if text, ok := literal(node); ok {
				constants[node.Names[0].Name] = text
			}
		case *ast.KeyValueExpr:
			if key, ok := node.Key.(*ast.Ident); ok {
				kinds[constants[key.Name]] = true
			}
		}
		return true
	})
	if !kinds[csvKind] || kinds[""] {
		t.Fatalf("%s lists the kinds %v", file, kinds)
	}
	return kinds
}

// literal is the value of a constant that is a text.
func literal(spec *ast.ValueSpec) (string, bool) {
	if len(spec.Values) != 1 {
		return "", false
	}
	value, ok := spec.Values[0].(*ast.BasicLit)
	if !ok || value.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(value.Value)
	return text, err == nil
}

const csvKind = "ClusterServiceVersion"

// registryV1 says why OLM v1 would not take a bundle: by the kinds that it accepts, and by what else it does not install: operators that do not watch all
// namespaces, that serve APIs, and that need other packages.
func registryV1(folder string, kinds map[string]bool) (complaints []string, err error) {
	files, err := fs.Glob(os.DirFS(folder), "manifests/*")
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%d manifests: %w", len(files), err)
	}
	versions := 0
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &object.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if !kinds[object.GetKind()] {
			complaints = append(complaints, fmt.Sprintf("%s is a %s", file, object.GetKind()))
		}
		if object.GetKind() != csvKind {
			continue
		}
		versions++
		said, err := installable(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		complaints = append(complaints, said...)
	}
	if versions != 1 {
		complaints = append(complaints, fmt.Sprintf("%d ClusterServiceVersions", versions))
	}
	if _, err := os.Stat(filepath.Join(folder, "metadata", "dependencies.yaml")); err == nil {
		complaints = append(complaints, "it depends on other packages")
	}
	return complaints, nil
}

// installable says what of a ClusterServiceVersion is not installed.
func installable(text []byte) (complaints []string, err error) {
	csv := &v1alpha1.ClusterServiceVersion{}
	if err := yaml.Unmarshal(text, csv); err != nil {
		return nil, err
	}
	all := false
	for _, mode := range csv.Spec.InstallModes {
		all = all || mode.Type == v1alpha1.InstallModeTypeAllNamespaces && mode.Supported
	}
	if !all {
		complaints = append(complaints, "it does not watch all namespaces")
	}
	if services := csv.Spec.APIServiceDefinitions; len(services.Owned)+len(services.Required) > 0 {
		complaints = append(complaints, "it serves or needs an APIService")
	}
	if required := csv.Spec.CustomResourceDefinitions.Required; len(required) > 0 {
		complaints = append(complaints, "it needs kinds of other packages")
	}
	return complaints, nil
}

func TestBundleIsInstallableByOLMv1(t *testing.T) {
	complaints, err := registryV1(bundleFolder, acceptedKinds(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, complaint := range complaints {
		t.Error(complaint)
	}
}

// TestTheJudgeOfRegistryV1: each fault that OLM v1 refuses is told.
func TestTheJudgeOfRegistryV1(t *testing.T) {
	csv := "manifests/lowlatency-operator.clusterserviceversion.yaml"
	for name, fault := range map[string]struct{ file, old, new, want string }{
		"a kind that is not listed": {"manifests/priority.yaml", "", "apiVersion: apps/v1\nkind: DaemonSet\n", "is a DaemonSet"},
		"a kind that is listed":     {"manifests/priority.yaml", "", "apiVersion: v1\nkind: PriorityClass\n", ""},
		"a dependency":              {"metadata/dependencies.yaml", "", "dependencies: []\n", "other packages"},
		"no mode for all namespaces": {
			csv, "supported: true\n    type: AllNamespaces", "supported: false\n    type: AllNamespaces", "all namespaces",
		},
		"an APIService": {csv, "\nspec:\n", "\nspec:\n  apiservicedefinitions: {owned: [{name: x, group: x, version: v1, kind: X}]}\n", "APIService"},
		"no version":    {csv, "kind: ClusterServiceVersion\n", "kind: Service\n", "0 ClusterServiceVersions"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.CopyFS(folder, os.DirFS(bundleFolder)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(folder, fault.file)
			text := fault.new
			if fault.old != "" {
				whole, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if text = strings.Replace(string(whole), fault.old, fault.new, 1); text == string(whole) {
					t.Fatalf("there is no %q", fault.old)
				}
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			complaints, err := registryV1(folder, acceptedKinds(t))
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.Join(complaints, "\n"); !strings.Contains(said, fault.want) || fault.want == "" && said != "" {
				t.Errorf("it says %q, want %q", said, fault.want)
			}
		})
	}
}
