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

// start boots a machine with Debian's kernel and this folder; nil when it does not come up. It may be called while another one boots.
func start(t *testing.T, image *lab.Image, spec lab.Spec) *lab.Machine {
	spec.Boot.Kernel, spec.Topology.MebibytesPerNode = lab.Standard, 1024
	machine, err := image.Start(context.WithoutCancel(t.Context()), spec, os.Stderr)
	if err != nil {
		t.Error(err)
		return nil
	}
	t.Cleanup(func() {
		if err := machine.Stop(); err != nil {
			t.Error(err)
		}
	})
	return machine
}

// programs is a folder with the judges and the program that they judge.
func programs(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	build(t, filepath.Join(folder, "judge"), "./test/latency")
	if err := lab.AddTrafficProgram(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
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

// build makes a static program of a package of this repository.
func build(t *testing.T, program, of string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, of)
	command.Dir, command.Env = repository, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", of, err, out)
	}
}

// keep writes the table of a test into the file LAB_TABLE.
func keep(t *testing.T, table string) {
	t.Helper()
	if file := os.Getenv("LAB_TABLE"); file != "" {
		if err := os.WriteFile(file, []byte(table), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// carry puts programs of this machine, which a target of make needs, into a folder, with the libraries that they load and the loader itself: those of the machine may be older.
func carry(t *testing.T, target, folder string, names ...string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(folder, filepath.Base(carried)), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		program, err := exec.LookPath(name)
		if err != nil {
			t.Fatalf("%s is missing: make packages TARGETS=%s installs it: %v", name, target, err)
		}
		out, err := exec.CommandContext(t.Context(), "ldd", program).Output()
		if err != nil {
			t.Fatalf("asking which libraries %s loads: %v", name, err)
		}
		loader, libraries := loaded(string(out))
		if loader == "" {
			t.Fatalf("%s has no loader: %s", name, out)
		}
		for _, file := range append(libraries, loader, program) {
			copyProgram(t, file, filepath.Join(folder, filepath.Base(carried), filepath.Base(file)))
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(starter(carried, loader, name)), 0o755); err != nil { //nolint:gosec // A program that the machine runs.
			t.Fatal(err)
		}
	}
}

func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o755) //nolint:gosec // A program that the machine runs.
	}
	if err != nil {
		t.Fatal(err)
	}
}
