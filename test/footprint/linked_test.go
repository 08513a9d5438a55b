// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package footprint

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestWhatIsLinked guards the cause of small processes: what a program links is initialized whenever it starts, whether it
// is needed or not. The kinds of all of Kubernetes take 10 ms and 12 MiB.
func TestWhatIsLinked(t *testing.T) {
	manager := []string{
		"k8s.io/client-go/kubernetes/scheme", "k8s.io/client-go/discovery", "k8s.io/client-go/informers",
		"sigs.k8s.io/controller-runtime/pkg/client", "sigs.k8s.io/controller-runtime/pkg/manager",
	}
	cases := map[string][]string{
		"kubectl-lowlatency": manager,
		"lowlatency-agent":   append([]string{"github.com/google/cel-go/cel", "github.com/openshift/api/machineconfiguration/v1"}, manager...),
	}
	for program, unwanted := range cases {
		t.Run(program, func(t *testing.T) {
			output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "../../cmd/"+program).Output()
			if err != nil {
				t.Fatal(err)
			}
			linked := strings.Fields(string(output))
			for _, name := range unwanted {
				if slices.Contains(linked, name) {
					t.Errorf("%s is linked", name)
				}
			}
		})
	}
}

// TestRuntimeSetupNeedsNothing holds that the package which puts the first garbage collection off imports the standard library
// only: after anything else it would be initialized too late.
func TestRuntimeSetupNeedsNothing(t *testing.T) {
	const setup = "github.com/lowlatency-dev/lowlatency-operator/internal/cli/runtimesetup"
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "../../internal/cli/runtimesetup").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(output)) {
		if first, _, _ := strings.Cut(name, "/"); strings.Contains(first, ".") && name != setup {
			t.Errorf("%s is imported", name)
		}
	}
}
