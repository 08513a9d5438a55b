// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package footprint

import (
	"os"
	"os/exec"
	"path/filepath"
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
		// It starts before the kubelet and talks to nobody.
		"lowlatency-guard": append([]string{
			"github.com/prometheus/client_golang/prometheus", "google.golang.org/protobuf/proto", "k8s.io/api/core/v1", "k8s.io/client-go/rest",
			"k8s.io/kubelet/config/v1beta1",
		}, manager...),
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

// TestTheGuardIsSmall: it stays on every host that is tuned, and a pod carries it there.
func TestTheGuardIsSmall(t *testing.T) {
	const maximum = 15 << 20
	program := filepath.Join(t.TempDir(), "lowlatency-guard")
	command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "../../cmd/lowlatency-guard")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building the guard: %v: %s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the guard has %.1f MiB", float64(info.Size())/(1<<20))
	if info.Size() >= maximum {
		t.Errorf("the guard has %d bytes, and must have less than %d", info.Size(), maximum)
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
