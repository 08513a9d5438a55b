// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package docs

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

// TestCommandsThatInstall runs the commands by which readers build the images, push them, and install the operator: a registry and an API
// server on this machine, the real kubectl, and the real helm. Images are built for this machine's architecture alone: make test-release
// builds them for all.
func TestCommandsThatInstall(t *testing.T) {
	if !*all {
		t.Skip("make docs-test runs these")
	}
	w := newWorld(t)
	w.registry(t)
	w.helm(t)
	definitions, err := apiserver.InstallationCRDs(apiserver.OpenShift)
	if err != nil {
		t.Fatal(err)
	}
	digest := "sha256:" + strings.Repeat("0a", 32)
	w.instead = append(w.instead, "<tag>", "docs", "sha256:<digest>", digest, "make image", "make image PLATFORMS=linux/$(go env GOARCH)",
		"make traffic-image", "make traffic-image PLATFORMS=linux/$(go env GOARCH)")
	var printed strings.Builder
	for _, c := range allCommands(t) {
		if r, _ := ruleOf(&c); r.need != installs {
			continue
		}
		switch {
		case strings.HasPrefix(c.text, "helm "), strings.HasPrefix(c.text, "make deploy"):
			// The definitions that the tests' API server begins with would be in the way of those that are installed.
			w.server(t, apiserver.Options{CRDs: definitions})
			w.run(t, &command{file: "install_test.go", text: "kubectl delete -f config/crd/bases"})
		case strings.Contains(c.text, "rollout status"):
			w.playKubelet(t)
		}
		printed.WriteString(w.run(t, &c))
	}
	for _, want := range []string{"lowlatency-operator:docs", "lowlatency-traffic:docs", "serverside-applied", "STATUS: deployed", "successfully rolled out"} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("no command has printed %q:\n%s", want, printed.String())
		}
	}
}

// registry runs a registry, and tells the commands its name.
func (w *world) registry(t *testing.T) {
	t.Helper()
	program := filepath.Join(w.dir, "registry")
	w.run(t, &command{file: "install_test.go", text: "go -C hack/image build -o " + program + " github.com/google/go-containerregistry/cmd/registry"})
	server := exec.CommandContext(t.Context(), program, "-port", "0")
	said, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if _, port, found := strings.Cut(lines.Text(), "serving on port "); found {
			w.instead = append(w.instead, "<registry>", "localhost:"+port)
			go func() { _, _ = io.Copy(io.Discard, said) }()
			return
		}
	}
	t.Fatalf("the registry does not say where it is: %v", lines.Err())
}

// helm builds Helm's own program, and puts it on the PATH.
func (w *world) helm(t *testing.T) {
	t.Helper()
	folder := t.TempDir()
	w.run(t, &command{file: "install_test.go", text: "go -C test/helm build -o " + filepath.Join(folder, "helm") + " helm.sh/helm/v4/cmd/helm"})
	w.env = append(w.env, "PATH="+folder+string(os.PathListSeparator)+valueOf(w.env, "PATH"))
}

// playKubelet says of the manager's pods what kubelets that run them would: nothing here runs pods, and make lab-pools does.
func (w *world) playKubelet(t *testing.T) {
	t.Helper()
	w.run(t, &command{file: "install_test.go", text: `name=$(kubectl -n lowlatency-operator-system get deployments -o name)
generation=$(kubectl -n lowlatency-operator-system get "$name" -o jsonpath='{.metadata.generation}')
kubectl -n lowlatency-operator-system patch "$name" --subresource=status --type merge -p '{"status":{"observedGeneration":'"$generation"',
"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2}}'`})
}
