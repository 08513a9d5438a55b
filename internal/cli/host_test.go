// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/ordinaryhost"
)

// playedGuard is a program that keeps its words and what it is to carry out, and ends with a code.
func playedGuard(t *testing.T, code string) (program, dir string) {
	t.Helper()
	dir = t.TempDir()
	program = filepath.Join(dir, "lowlatency-guard")
	script := "#!/bin/sh\necho \"$@\" >" + dir + "/words\n[ \"$3\" != apply ] || cp \"$4\" " + dir + "/given\necho the guard has spoken\nexit " + code + "\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return program, dir
}

// plainServer is a host without a kubelet.
func plainServer(t *testing.T) string {
	t.Helper()
	with := ordinaryhost.Debian()
	for file := range with.Files {
		if strings.Contains(file, "kubelet") {
			delete(with.Files, file)
		}
	}
	with.Services, with.Kubelet = nil, nil
	root := ordinaryTree(t, "server", with)
	if err := os.RemoveAll(filepath.Join(root, "var/lib/kubelet")); err != nil {
		t.Fatal(err)
	}
	return root
}

func readText(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(content))
}

// given is what the guard was to carry out.
type given struct {
	Operations []operation.Operation `json:"operations"`
	Plan       *plan.NodePlan        `json:"plan"`
}

// TestHostApply: the guard gets what render prints for it, and a host without a kubelet all but the kubelet's part.
func TestHostApply(t *testing.T) {
	profile := write(t, "profile.yaml", profileHead)
	for name, root := range map[string]string{"a node": ordinaryTree(t, "debian", ordinaryhost.Debian()), "a plain server": plainServer(t)} {
		t.Run(name, func(t *testing.T) {
			program, dir := playedGuard(t, "0")
			got := run(t, "", "host", "apply", "-f", profile, "--root", root, "--guard", program, "--yes", "--no-reboot")
			if got.code != ExitOK || !strings.Contains(got.out, "the guard has spoken") {
				t.Fatalf("%+v", got)
			}
			expectWords(t, dir, root)
			operations := givenTo(t, dir)
			isServer := name == "a plain server"
			if tells := strings.Contains(got.err, "the host has no kubelet"); tells != isServer || writesKubelet(operations) == isServer {
				t.Errorf("%s; the kubelet is written: %t", got.err, writesKubelet(operations))
			}
		})
	}
}

// expectWords asserts how the guard was started.
func expectWords(t *testing.T, dir, root string) {
	t.Helper()
	words := readText(t, filepath.Join(dir, "words"))
	if !strings.HasPrefix(words, "--root "+root+" apply ") || !strings.HasSuffix(words, "--deadline 10m0s --yes --no-reboot") {
		t.Errorf("the guard is started with %s", words)
	}
}

// givenTo are the operations that the guard was given, with the plan that it verifies.
func givenTo(t *testing.T, dir string) []operation.Operation {
	t.Helper()
	var what given
	if err := yaml.Unmarshal([]byte(readText(t, filepath.Join(dir, "given"))), &what); err != nil {
		t.Fatal(err)
	}
	if err := operation.Validate(what.Operations); err != nil || what.Plan == nil || len(what.Operations) == 0 {
		t.Errorf("%d operations: %v", len(what.Operations), err)
	}
	return what.Operations
}

func writesKubelet(operations []operation.Operation) bool {
	for i := range operations {
		if operations[i].Kind == operation.KubeletDropIn {
			return true
		}
	}
	return false
}

// TestHostRefuses: the guard is not started where nobody can answer it, where a kubelet may be, and without a guard.
func TestHostRefuses(t *testing.T) {
	profile := write(t, "profile.yaml", profileHead)
	microK8s := plainServer(t)
	if err := os.MkdirAll(filepath.Join(microK8s, "var/snap/microk8s"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		in   string
		args []string
		code int
		says string
	}{
		"a question that nobody can answer": {profileHead, []string{"-f", "-", "--root", plainServer(t)}, ExitUsage, "give a file, or --yes"},
		"another kubelet":                   {"", []string{"-f", profile, "--root", microK8s}, ExitFindings, "folder"},
		"a node of OpenShift":               {"", []string{"-f", profile, "--root", tree(t, small("coreos"))}, ExitUsage, "machine-config operator"},
	} {
		t.Run(name, func(t *testing.T) {
			program, dir := playedGuard(t, "0")
			got := run(t, tc.in, append([]string{"host", "apply", "--guard", program}, tc.args...)...)
			if got.code != tc.code || !strings.Contains(got.err, tc.says) {
				t.Errorf("%+v", got)
			}
			if _, err := os.Stat(filepath.Join(dir, "words")); !os.IsNotExist(err) {
				t.Errorf("the guard was started: %v", err)
			}
		})
	}
	if got := run(t, "", "host", "status", "--guard", filepath.Join(t.TempDir(), "none")); got.code != ExitUsage || !strings.Contains(got.err, "running the guard") {
		t.Errorf("%+v", got)
	}
}

// TestHostStatusAndRevert: the words and the exit code are the guard's.
func TestHostStatusAndRevert(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"status"}, "--root / status"},
		{[]string{"revert", "--yes"}, "--root / revert --yes"},
	} {
		program, dir := playedGuard(t, "1")
		got := run(t, "", append([]string{"host", tc.args[0], "--guard", program}, tc.args[1:]...)...)
		if words := readText(t, filepath.Join(dir, "words")); got.code != ExitFindings || words != tc.want {
			t.Errorf("%q ends with %d", words, got.code)
		}
	}
}
