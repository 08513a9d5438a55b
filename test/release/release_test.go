// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build release

package release

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

func TestMain(m *testing.M) {
	// The library that starts API servers would complain that nobody wants its log.
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// released is a file of the release, by what stands before and behind its version.
func released(t *testing.T, pattern string) string {
	t.Helper()
	folder := os.Getenv("RELEASE")
	if folder == "" {
		t.Fatal("RELEASE does not name the folder of a release: run make test-release")
	}
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s holds %d files %s, want one: %v", folder, len(found), pattern, err)
	}
	return found[0]
}

// run runs a program to its end, and returns what it prints.
func run(t *testing.T, environment []string, program string, arguments ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program, arguments...)
	command.Env = append(os.Environ(), environment...)
	output, err := command.CombinedOutput()
	return string(output), err
}

// must runs a program that must succeed.
func must(t *testing.T, environment []string, program string, arguments ...string) string {
	t.Helper()
	output, err := run(t, environment, program, arguments...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(arguments, " "), err, output)
	}
	return output
}

// cluster is an API server without definitions of this project, and kubectl for it.
type cluster struct {
	*testing.T
	client.Client
	environment []string
	kubectl     string
}

// startCluster starts an API server with the kinds of others that its platform may have.
func startCluster(t *testing.T, platform apiserver.Platform) *cluster {
	t.Helper()
	definitions, err := apiserver.InstallationCRDs(platform)
	if err != nil {
		t.Fatal(err)
	}
	environment, err := apiserver.Start(apiserver.Options{Platform: platform, CRDs: definitions})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := environment.WriteKubeconfig(file); err != nil {
		t.Fatal(err)
	}
	c := &cluster{t, environment.Client(), []string{"KUBECONFIG=" + file}, os.Getenv("KUBECTL")}
	c.run("delete", "-f", filepath.Join("..", "..", "config", "crd", "bases"))
	return c
}

func (c *cluster) run(arguments ...string) string {
	c.Helper()
	return must(c.T, c.environment, c.kubectl, arguments...)
}

// apply applies a file of the release as its documentation says, and expects that nothing is left to change afterwards.
func (c *cluster) apply(name string) {
	c.Helper()
	file := released(c.T, name)
	applied := c.run("apply", "--server-side", "-f", file)
	c.Logf("%s: %d objects", name, strings.Count(applied, "serverside-applied"))
	if difference, err := run(c.T, c.environment, c.kubectl, "diff", "--server-side", "-f", file); err != nil || difference != "" {
		c.Errorf("after %s was applied, kubectl diff says %v:\n%s", name, err, difference)
	}
}

// expectImage expects that the manager runs the image that the release names by its digest.
func (c *cluster) expectImage() {
	c.Helper()
	digest, err := os.ReadFile(released(c.T, "image-digest.txt"))
	if err != nil {
		c.Fatal(err)
	}
	var manager appsv1.Deployment
	key := types.NamespacedName{Namespace: "lowlatency-operator-system", Name: "lowlatency-operator-controller-manager"}
	if err := c.Get(c.Context(), key, &manager); err != nil {
		c.Fatal(err)
	}
	if got, want := manager.Spec.Template.Spec.Containers[0].Image, strings.TrimSpace(string(digest)); got != want || !strings.Contains(want, "@sha256:") {
		c.Errorf("the manager runs %s, want %s", got, want)
	}
}

func TestOpenShift(t *testing.T) {
	c := startCluster(t, apiserver.OpenShift)
	c.apply("crds.yaml")
	for _, name := range []string{"install.yaml", "install-repair.yaml"} {
		c.apply(name)
		c.expectImage()
	}
	c.run("apply", "-f", filepath.Join("..", "..", "config", "samples", "minimal.yaml"))
}

func TestKubernetes(t *testing.T) {
	c := startCluster(t, apiserver.Kubernetes)
	for _, name := range []string{"install-kubernetes.yaml", "install-kubernetes-monitoring.yaml"} {
		c.apply(name)
		c.expectImage()
	}
	c.run("-n", "lowlatency-operator-system", "get",
		"servicemonitor/lowlatency-operator-controller-manager", "prometheusrule/lowlatency-operator", "certificate/lowlatency-operator-metrics")
	c.run("get", "-f", released(t, "crds.yaml"))

	folder := t.TempDir()
	archive := released(t, fmt.Sprintf("kubectl-lowlatency-*-%s-%s.tar.gz", runtime.GOOS, runtime.GOARCH))
	must(t, nil, "tar", "-xzf", archive, "-C", folder)
	version, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(archive), "kubectl-lowlatency-"), "-")
	c.environment = append(c.environment, "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	said := c.run("lowlatency", "version", "--client")
	if !strings.HasPrefix(said, "kubectl-lowlatency v"+version+" (commit ") || strings.Contains(said, "unknown") {
		t.Errorf("the plugin says %q, want version %s with its commit", said, version)
	}
	if said, err := run(t, c.environment, c.kubectl, "lowlatency", "pool"); err == nil || !strings.Contains(said, "the cluster has no BypassNICPool") {
		t.Errorf("asked for pools of a new cluster, the plugin says %v: %s", err, said)
	}
	expectCompletion(t, c.kubectl, c.environment)
}

// expectCompletion has kubectl complete the plugin's words, which it does by the program kubectl_complete-lowlatency beside it.
func expectCompletion(t *testing.T, kubectl string, environment []string) {
	t.Helper()
	for _, tc := range []struct {
		words []string
		want  string
	}{
		{[]string{"expl"}, "explain\t"},
		{[]string{"explain", "irq"}, "irq.default-affinity\t"},
		{[]string{"plan", "--agai"}, "--against\t"},
	} {
		said := must(t, environment, kubectl, append([]string{"__complete", "lowlatency"}, tc.words...)...)
		if !strings.Contains(said, "\n"+tc.want) || strings.Contains(said, "\nplan\t") {
			t.Errorf("kubectl lowlatency %s is completed by %q, want %q among it", strings.Join(tc.words, " "), said, tc.want)
		}
	}
}

// TestGuard runs the guard of the release on this machine, which it must not change.
func TestGuard(t *testing.T) {
	folder := t.TempDir()
	archive := released(t, "lowlatency-guard-*-linux-"+runtime.GOARCH+".tar.gz")
	must(t, nil, "tar", "-xzf", archive, "-C", folder)
	version, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(archive), "lowlatency-guard-"), "-")
	said, err := run(t, nil, filepath.Join(folder, "lowlatency-guard"), "--version")
	if err != nil || !strings.Contains(said, "v"+version+" (commit ") {
		t.Errorf("the guard says %q, %v, want version %s with its commit", said, err, version)
	}
}

// TestTraffic measures over the loopback interface with the two programs of the archive for this machine.
func TestTraffic(t *testing.T) {
	folder := t.TempDir()
	must(t, nil, "tar", "-xzf", released(t, fmt.Sprintf("kubectl-lowlatency-*-linux-%s.tar.gz", runtime.GOARCH)), "-C", folder)
	program, port := filepath.Join(folder, "kubectl-lowlatency"), freePort(t)
	server := exec.Command(program, "probe", "pingpong", "--server", "--address", "127.0.0.1", "--port", port)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
	})
	var said string
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		said, err = run(t, nil, program, "probe", "pingpong", "--client", "127.0.0.1", "--port", port, "--sizes", "64", "--wait", "block", "-o", "csv")
		if err == nil {
			break
		}
	}
	if err != nil || !strings.Contains(said, "64") {
		t.Errorf("measuring says %v: %s", err, said)
	}
}

// freePort is a port that nobody listens on now.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // It was only asked for its port.
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
