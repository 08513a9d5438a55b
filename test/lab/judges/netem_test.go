// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package judges

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

// repository is above this package.
const repository = "../../.."

// TestNetem lets the network emulator of Debian's kernel lose, double, reorder and delay messages, and has the judges compare what was found with
// what was done: make lab-netem. Counts have to be exact. Times of an emulated machine mean little, so a delay that is off by more than its bound is
// shown, and no error.
func TestNetem(t *testing.T) {
	image, err := lab.OpenImage(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	machine, err := image.Start(context.WithoutCancel(t.Context()), lab.Spec{
		Name:     "netem",
		Topology: lab.Topology{Packages: 1, CoresPerPackage: 2, ThreadsPerCore: 1, MebibytesPerNode: 1024},
		Boot:     lab.Boot{Kernel: lab.Standard},
		Files:    programs(t),
	}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := machine.Stop(); err != nil {
			t.Error(err)
		}
	})
	result, err := machine.Execute(t.Context(), "modprobe sch_netem && modprobe tun && "+lab.FilesPath+"/judge -program "+lab.FilesPath+"/lowlatency-traffic -only netem")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("on kernel %s:\n%s", kernelOf(t, machine), result.Stdout)
	if result.ExitCode != 0 {
		t.Errorf("the judges end with %d: %s", result.ExitCode, result.Stderr)
	}
	for _, what := range []string{"lost of", "lost of 20000 messages in bursts", "gaps, with", "duplicates of", "reordered of", "delay that netem added"} {
		if !strings.Contains(result.Stdout, what) {
			t.Errorf("nothing is said of %q", what)
		}
	}
	if table := os.Getenv("LAB_TABLE"); table != "" {
		if err := os.WriteFile(table, []byte(result.Stdout), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// programs is a folder with the judges and the program that they judge.
func programs(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", filepath.Join(folder, "judge"), "./test/latency")
	build.Dir, build.Env = repository, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the judges: %v\n%s", err, out)
	}
	traffic := exec.CommandContext(t.Context(), "hack/traffic.sh")
	traffic.Dir, traffic.Stderr = repository, os.Stderr
	out, err := traffic.Output()
	if err != nil {
		t.Fatal(err)
	}
	copyProgram(t, strings.TrimSpace(string(out)), filepath.Join(folder, "lowlatency-traffic"))
	return folder
}

func kernelOf(t *testing.T, machine *lab.Machine) string {
	t.Helper()
	release, err := machine.Run(t.Context(), "uname -r")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(release)
}
