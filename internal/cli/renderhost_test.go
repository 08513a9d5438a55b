// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/rendering"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/ordinaryhost"
)

// ordinaryTree is the tree of a host with an ordinary distribution.
func ordinaryTree(t *testing.T, name string, with ordinaryhost.Distribution) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := ordinaryhost.Install(dir, small(name), with, "", ""); err != nil {
		t.Fatal(err)
	}
	return dir
}

func paths(host rendering.HostWriting) []string {
	names := make([]string, 0, len(host.Files))
	for _, file := range host.Files {
		names = append(names, file.Path)
	}
	return names
}

func expectWritten(t *testing.T, host rendering.HostWriting, file string) {
	t.Helper()
	if !slices.Contains(paths(host), file) || len(host.KernelArguments) == 0 || host.Refused {
		t.Errorf("hosts %v: %v with %v, want %s", host.Nodes, paths(host), host.KernelArguments, file)
	}
}

// TestRenderOfOrdinaryHosts: the platform is that of the hosts, and what is written is printed with its paths.
func TestRenderOfOrdinaryHosts(t *testing.T) {
	debian, rocky := ordinaryTree(t, "debian", ordinaryhost.Debian()), ordinaryTree(t, "rocky", ordinaryhost.Rocky())
	got := run(t, profileHead, "render", "-f", "-", "-o", "json", "--root", debian, "--root", rocky)
	if got.code != ExitOK || got.err != "" {
		t.Fatalf("exit code %d, standard error %q", got.code, got.err)
	}
	var list struct {
		Items []struct{ Kind string }
		Hosts []rendering.HostWriting
	}
	if err := yaml.Unmarshal([]byte(got.out), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Hosts) != 2 || len(list.Items) != 2 {
		t.Fatalf("%d hosts and %d objects, want a plan and a RuntimeClass for two hosts", len(list.Hosts), len(list.Items))
	}
	for i, want := range []string{"/var/lib/kubelet/kubelet.conf.d/90-lowlatency.conf", "/etc/tuned/lowlatency-trading/tuned.conf"} {
		expectWritten(t, list.Hosts[i], want)
	}
	text := run(t, profileHead, "render", "-f", "-", "--root", debian)
	if !strings.Contains(text.out, "---\n# written on debian\n") || !strings.Contains(text.out, "\nkernelArguments:\n- ") {
		t.Errorf("rendered:\n%.3000s", text.out)
	}
}

// TestRenderOfFiles: what comes to hosts is readable on both platforms, and has no object of a cluster.
func TestRenderOfFiles(t *testing.T) {
	for name, want := range map[string]struct{ root, file string }{
		"OpenShift":  {tree(t, small("coreos")), "- content: |"},
		"Kubernetes": {ordinaryTree(t, "debian", ordinaryhost.Debian()), "path: /var/lib/kubelet/kubelet.conf.d/90-lowlatency.conf\n"},
	} {
		got := run(t, profileHead, "render", "-f", "-", "-o", "files", "--root", want.root)
		if got.code != ExitOK || !strings.HasPrefix(got.out, "---\n# written on ") || !strings.Contains(got.out, "\nkernelArguments:\n- ") ||
			!strings.Contains(got.out, want.file) || strings.Contains(got.out, "base64") || strings.Contains(got.out, "\nkind: ") {
			t.Errorf("%s: exit code %d, %s\n%.3000s", name, got.code, got.err, got.out)
		}
	}
}

// TestRenderOfOperations: what the guard takes is valid, and is that of one host.
func TestRenderOfOperations(t *testing.T) {
	debian, rocky := ordinaryTree(t, "debian", ordinaryhost.Debian()), ordinaryTree(t, "rocky", ordinaryhost.Rocky())
	got := run(t, profileHead, "render", "-f", "-", "-o", "operations", "--root", debian)
	if got.code != ExitOK || got.err != "" {
		t.Fatalf("exit code %d, standard error %q", got.code, got.err)
	}
	var list struct {
		Operations []operation.Operation `json:"operations"`
	}
	if err := yaml.UnmarshalStrict([]byte(got.out), &list); err != nil {
		t.Fatal(err)
	}
	if err := operation.Validate(list.Operations); err != nil || len(list.Operations) == 0 {
		t.Errorf("%d operations: %v", len(list.Operations), err)
	}
	for _, roots := range [][]string{{"--root", debian, "--root", rocky}, {"--root", tree(t, small("coreos"))}} {
		got := run(t, profileHead, append([]string{"render", "-f", "-", "-o", "operations"}, roots...)...)
		if got.code != ExitUsage || !strings.Contains(got.err, "on one host of Kubernetes") || got.out != "" {
			t.Errorf("%+v", got)
		}
	}
}

func TestRenderChoosesThePlatform(t *testing.T) {
	debian, coreOS := ordinaryTree(t, "debian", ordinaryhost.Debian()), tree(t, small("coreos"))
	named := run(t, profileHead, "render", "-f", "-", "--root", debian, "--platform", "OpenShift")
	if named.code != ExitOK || !strings.Contains(named.out, "kind: MachineConfig\n") {
		t.Errorf("%+v", named)
	}
	both := run(t, profileHead, "render", "-f", "-", "--root", debian, "--root", coreOS)
	if both.code != ExitUsage || !strings.Contains(both.err, "name the platform with --platform") {
		t.Errorf("%+v", both)
	}
	other := run(t, profileHead, "render", "-f", "-", "--root", debian, "--platform", "nomad")
	if other.code != ExitUsage || !strings.Contains(other.err, "must be one of openshift, kubernetes") {
		t.Errorf("%+v", other)
	}
}

// TestRenderRefusesHosts: what stands in the way is printed, and nothing else.
func TestRenderRefusesHosts(t *testing.T) {
	with := ordinaryhost.Debian()
	with.Kubelet = append(with.Kubelet, "--system-reserved=memory=1Gi")
	debian := ordinaryTree(t, "debian", with)
	if got := run(t, profileHead, "render", "-f", "-", "-o", "operations", "--root", debian); got.code != ExitFindings || got.out != "" ||
		!strings.Contains(got.err, "nothing may be written on debian: ") {
		t.Errorf("%+v", got)
	}
	got := run(t, profileHead, "render", "-f", "-", "--root", debian)
	if got.code != ExitFindings || !strings.Contains(got.out, "refused: true") || strings.Contains(got.out, "files:") ||
		!strings.Contains(got.out, "--system-reserved=memory=1Gi") {
		t.Errorf("%+v", got)
	}
}

// TestRenderOfAnUnreadKubelet: a host whose kubelet's configuration nobody can read is rendered, with a finding, and not for a guard.
func TestRenderOfAnUnreadKubelet(t *testing.T) {
	debian := ordinaryTree(t, "debian", ordinaryhost.Debian())
	if err := os.Remove(filepath.Join(debian, "var/lib/kubelet/config.yaml")); err != nil {
		t.Fatal(err)
	}
	got := run(t, profileHead, "render", "-f", "-", "--root", debian)
	told := strings.Join(strings.Fields(got.out), " ")
	if got.code != ExitOK || !strings.Contains(got.out, "files:") || !strings.Contains(told, "was not checked, and nothing is written") ||
		strings.Contains(got.out, "refused:") {
		t.Errorf("%+v", got)
	}
	got = run(t, profileHead, "render", "-f", "-", "-o", "operations", "--root", debian)
	if got.code != ExitFindings || got.out != "" || !strings.Contains(got.err, "nothing may be written on debian: Critical: the kubelet: /var/lib/kubelet/config.yaml") {
		t.Errorf("%+v", got)
	}
}
