// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package latencypicture draws what LatencyTests of config/samples/qualification have measured on one machine, and says what of a sample is
// another there.
package latencypicture

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

const (
	// samples and recorded are folders below the repository.
	samples  = "config/samples/qualification"
	recorded = "hack/pictures/recorded"
	// measuredNode and serverNode are the names of the nodes of a recording.
	measuredNode, serverNode = "near", "far"
	// MeasuredPool is the pool of the node that is measured where a sample has one: a pool of this machine has one interface.
	MeasuredPool = measuredNode + "-sockets"
	// ServerPool is that of the server's node.
	ServerPool = serverNode + "-sockets"
	// ServerAddress is the address of the server's interface.
	ServerAddress = "10.98.1.2"
)

// Recording is what a LatencyTest has measured, and on which machine.
type Recording struct {
	Machine Machine              `json:"machine"`
	Test    v1alpha1.LatencyTest `json:"test"`
}

// Machine is what the numbers of a recording depend on besides the kernel, which the test has.
type Machine struct {
	// Processor is its model, and CPUs how many of them it has.
	Processor string `json:"processor"`
	CPUs      int    `json:"cpus"`
	// Kind is "virtual" or "physical".
	Kind string `json:"kind"`
	// LoadAverage is that of the minute before anything was measured, so that it is the work of others.
	LoadAverage string `json:"loadAverage"`
}

// Samples are the names of the samples that are drawn, which are those of their files.
func Samples() []string {
	return []string{"ping-pong", "rate-sweep", "load-search", "container-versus-host", "frames-beside-kernel"}
}

// ReadSample reads the test of a sample below a repository.
func ReadSample(repository, name string) (*v1alpha1.LatencyTest, error) {
	text, err := os.ReadFile(filepath.Join(repository, samples, name+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the sample: %w", err)
	}
	test := &v1alpha1.LatencyTest{}
	if err := yaml.UnmarshalStrict(text, test); err != nil {
		return nil, fmt.Errorf("reading the sample %s: %w", name, err)
	}
	return test, nil
}

// Scaled is the spec of a sample as it is measured on one machine: on nodes that are network namespaces, in seconds instead of minutes, by ends that sleep
// while they wait, since other programs want the CPUs, too.
func Scaled(sample *v1alpha1.LatencyTest) v1alpha1.LatencyTestSpec {
	spec := *sample.Spec.DeepCopy()
	spec.Nodes = v1alpha1.LatencyTestNodes{Names: []string{measuredNode}}
	spec.Traffic.Server.NodeNames = []string{serverNode}
	spec.RepeatAfterHours, spec.Traffic.Waiting = 0, v1alpha1.WaitingBlock
	const seconds = 1
	switch {
	case spec.LoadSearch != nil:
		scaleSearch(&spec)
	case spec.RateSweep != nil:
		spec.DurationSeconds = seconds * int32(len(spec.RateSweep.MessagesPerSecond))
	default:
		spec.DurationSeconds = seconds * int32(len(spec.PingPong.Sizes))
	}
	if spec.StackComparison != nil {
		placeSides(spec.StackComparison)
	}
	return spec
}

// scaleSearch shortens the trials of a search, so that the rates of its answer lie further apart, and makes it once. A rate passes by its loss alone: latencies of a
// machine that is busy are within no bound of the sample.
func scaleSearch(spec *v1alpha1.LatencyTestSpec) {
	const sniff, trial, confirm, longest, granularity, probes = 1, 3, 6, 90, 50, 5000
	l := spec.LoadSearch
	l.SniffSeconds, l.TrialSeconds, l.ConfirmSeconds, l.ProbesPerSecond = sniff, trial, confirm, probes
	l.GranularityPartsPerThousand, l.Percentiles, l.Growth = granularity, nil, nil
	spec.DurationSeconds, spec.Repetitions = longest, 1
}

// placeSides gives the sides the pools and the address of the two nodes.
func placeSides(comparison *v1alpha1.StackComparison) {
	for i := range comparison.Sides {
		side := &comparison.Sides[i]
		side.Client.BypassNICPool, side.Server.BypassNICPool = MeasuredPool, ServerPool
		if side.Server.Address != "" {
			side.Server.Address = ServerAddress + "/24"
		}
	}
}

// fileOf is the file of a recording below a repository.
func fileOf(repository, name string) string {
	return filepath.Join(repository, recorded, "latency-"+name+".json")
}

// Read reads a recording below a repository.
func Read(repository, name string) (*Recording, error) {
	text, err := os.ReadFile(fileOf(repository, name))
	if err != nil {
		return nil, fmt.Errorf("reading a recorded measurement: %w", err)
	}
	r := &Recording{}
	if err := yaml.UnmarshalStrict(text, r); err != nil {
		return nil, fmt.Errorf("reading the recorded measurement %s: %w", name, err)
	}
	if len(r.Test.Status.Results) != 1 || r.Test.Status.Results[0].Measured == nil || r.Test.Status.Results[0].Measured.Network == nil {
		return nil, fmt.Errorf("the recorded measurement %s has no node with a result over the network", name)
	}
	return r, nil
}

// Write keeps a recording below a repository.
func Write(repository, name string, r *Recording) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("writing a measurement: %w", err)
	}
	if err := os.WriteFile(fileOf(repository, name), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("keeping a measurement: %w", err)
	}
	return nil
}

// File is the name of the picture of a sample.
func File(name string) string { return "latency-" + name + ".svg" }
