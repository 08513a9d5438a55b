// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package pools_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

// kubectl is the program of the Kubernetes release that the lab has, which the target builds once for this machine.
func kubectl(t *testing.T) string {
	t.Helper()
	versions, err := os.ReadFile("../../../hack/versions.env")
	must(t, err)
	version := regexp.MustCompile(`(?m)^KUBERNETES_VERSION=(.+)$`).FindSubmatch(versions)
	if version == nil {
		t.Fatal("hack/versions.env names no KUBERNETES_VERSION")
	}
	cache, err := apiserver.CacheFolder()
	must(t, err)
	path, err := exec.LookPath(filepath.Join(cache, "bin", "kubectl-"+string(version[1]), "kubectl"))
	if err != nil {
		t.Fatalf("%v: run the test by its make target", err)
	}
	return path
}

// kubectlApply gives an object to kubectl apply, as people do.
func (s *scene) kubectlApply(t *testing.T, object client.Object) {
	t.Helper()
	kind, err := apiutil.GVKForObject(object, s.api.Scheme())
	must(t, err)
	object.GetObjectKind().SetGroupVersionKind(kind)
	text, err := yaml.Marshal(object)
	must(t, err)
	command := exec.CommandContext(t.Context(), kubectl(t), "--kubeconfig", s.admin, "apply", "-f", "-")
	command.Stdin = bytes.NewReader(text)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("kubectl apply: %v: %s\n%s", err, out, text)
	}
}
