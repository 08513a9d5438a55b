// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package judges

import (
	"os"
	"strings"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

// TestNetem lets the network emulator of Debian's kernel lose, double, reorder and delay messages, and has the judges compare what was found with
// what was done: make lab-netem. Counts have to be exact. Times of an emulated machine mean little, so a delay that is off by more than its bound is
// shown, and no error.
func TestNetem(t *testing.T) {
	image, err := lab.OpenImage(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	machine := start(t, image, lab.Spec{Name: "netem", Topology: lab.Topology{Packages: 1, CoresPerPackage: 2, ThreadsPerCore: 1}, Files: programs(t)})
	if machine == nil {
		t.FailNow()
	}
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
	keep(t, result.Stdout)
}
