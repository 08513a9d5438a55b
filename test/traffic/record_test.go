// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux && capture

package traffic

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/hack/pictures/latencypicture"
)

// repository is above this package.
const repository = "../.."

// TestRecord measures the samples that the documents have pictures of, and keeps what was measured: make latency-pictures.
func TestRecord(t *testing.T) {
	machine := thisMachine(t)
	for _, name := range latencypicture.Samples() {
		t.Run(name, func(t *testing.T) {
			sample, err := latencypicture.ReadSample(repository, name)
			if err != nil {
				t.Fatal(err)
			}
			spec := latencypicture.Scaled(sample)
			c := newRecorded(t, spec.Kind)
			c.world.Test.Spec, c.world.Test.Name = spec, sample.Name
			c.apart()
			if !slices.Contains(c.before, "nice") {
				c.before = append([]string{"nice", "-n", "-20"}, c.before...)
			}
			c.recorded(spec.Kind)
			if c.result().Measured == nil {
				t.Fatalf("%s %s: %s", c.result().Outcome, c.result().Reason, c.result().Message)
			}
			// What is said of this run of a machine, and nothing that tells which machine it was.
			c.result().Measured.Fingerprint = v1alpha1.LatencyFingerprint{Kernel: c.result().Measured.Fingerprint.Kernel}
			kept := v1alpha1.LatencyTest{Spec: spec, Status: v1alpha1.LatencyTestStatus{Results: c.world.Test.Status.Results}}
			kept.Name, kept.Namespace = sample.Name, sample.Namespace
			if err := latencypicture.Write(repository, name, &latencypicture.Recording{Machine: machine, Test: kept}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// newRecorded is a cluster for a kind.
func newRecorded(t *testing.T, kind v1alpha1.LatencyTestKind) *cluster {
	t.Helper()
	switch kind {
	case v1alpha1.LatencyTestContainerVersusHost:
		return newComparison(t, 0)
	case v1alpha1.LatencyTestStackComparison:
		return newSocketsAndFrames(t, func(*v1alpha1.LatencyTestSpec) {})
	default:
		return newCluster(t, func(*v1alpha1.LatencyTestSpec) {})
	}
}

// recorded lets a test of a kind come to its end.
func (c *cluster) recorded(kind v1alpha1.LatencyTestKind) {
	c.t.Helper()
	switch kind {
	case v1alpha1.LatencyTestContainerVersusHost:
		c.step()
		server := c.pod()
		c.compared()
		server.kill()
	case v1alpha1.LatencyTestStackComparison:
		c.inTurns(everyJob)
	default:
		c.measures()
	}
}

// apart keeps the servers off the CPU of the clients, since both nodes are one machine, and lets them answer before other work where their pods
// have the right. It shortens the warm-up, which on a busy machine takes longer than what is measured.
func (c *cluster) apart() {
	c.t.Helper()
	if runtime.NumCPU() < 2 {
		c.t.Fatal("both ends need a CPU")
	}
	script := filepath.Join(c.t.TempDir(), "lowlatency-traffic")
	path := strings.TrimPrefix(c.program[1], "--program=")
	if err := os.WriteFile(script, []byte("#!/bin/sh\ncase $1 in\nserver) chrt -f 10 true 2>/dev/null && exec chrt -f 10 "+path+" \"$@\" cpu=1; exec "+path+" \"$@\" cpu=1 ;;\nclient) exec "+path+" \"$@\" warm-pings=500 ;;\nesac\n"), 0o700); err != nil {
		c.t.Fatal(err)
	}
	c.program[1] = "--program=" + script
}

// thisMachine describes the machine before anything is measured.
func thisMachine(t *testing.T) latencypicture.Machine {
	t.Helper()
	m := latencypicture.Machine{CPUs: runtime.NumCPU(), Kind: "physical", LoadAverage: strings.Fields(read(t, "/proc/loadavg"))[0], Processor: "unknown model"}
	for line := range strings.Lines(read(t, "/proc/cpuinfo")) {
		name, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "model name":
			m.Processor = strings.TrimSpace(value)
		case "flags":
			if strings.Contains(value, " hypervisor") {
				m.Kind = "virtual"
			}
		}
	}
	return m
}
