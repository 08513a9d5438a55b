// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command renderdiff shows what a change of the code changes in what is applied: it renders every sample, every example
// and every imported PerformanceProfile of the tests for simulated hosts with two builds of the command line, and
// counts what differs, by kind and field.
//
//	go run ./hack/renderdiff [-old-tree DIR] OLD_BINARY NEW_BINARY [NAME=ROOT...]
//
// Further hosts are roots or archives, as for kubectl lowlatency --root. Samples come from the tree of each build,
// because the API may have changed with them; -old-tree is the present one unless it is given. The exit status is 0
// when nothing but the plan, its hash and the names made of the hash differs, else 1.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/samples"
)

func main() {
	oldTree := flag.String("old-tree", ".", "`DIR` with the samples of the old build")
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: renderdiff [-old-tree DIR] OLD_BINARY NEW_BINARY [NAME=ROOT...]")
		os.Exit(2)
	}
	same, err := run(os.Stdout, build{flag.Arg(0), *oldTree}, build{flag.Arg(1), "."}, flag.Args()[2:])
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "renderdiff:", err)
		os.Exit(2)
	case !same:
		os.Exit(1)
	}
}

// build is one build of the command line, and the tree that it was made of.
type build struct{ binary, tree string }

// run renders everything with both builds and prints what differs. It reports whether nothing but the plan does.
func run(out io.Writer, before, after build, roots []string) (same bool, err error) {
	scratch, err := os.MkdirTemp("", "renderdiff")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	hosts, err := writeHosts(scratch)
	if err != nil {
		return false, err
	}
	hosts = append(hosts, roots...)
	inputs, err := findInputs(after.tree)
	if err != nil {
		return false, err
	}
	table := newTable()
	for _, input := range inputs {
		left, err := input.prepare(before, filepath.Join(scratch, "old"))
		if err != nil {
			return false, err
		}
		right, err := input.prepare(after, filepath.Join(scratch, "new"))
		if err != nil {
			return false, err
		}
		table.text(input.name, "import", left.text, right.text)
		for _, host := range input.hosts(hosts) {
			table.render(input.name, host, before.render(left, host), after.render(right, host))
		}
	}
	return table.print(out)
}

// smallSuffix ends the names of the hosts for imported profiles.
const smallSuffix = "-small"

// machines are servers for the samples, and small ones of 16 CPUs for the PerformanceProfiles of the importer's tests,
// which name them.
func machines() []hosttree.Machine {
	servers := []hosttree.Machine{hosttree.Xeon(), hosttree.EPYC(), hosttree.Arm()}
	all := make([]hosttree.Machine, 0, 2*len(servers))
	all = append(all, servers...)
	for _, machine := range servers {
		machine.Hostname += smallSuffix
		machine.Packages, machine.NUMANodesPerPackage, machine.CoresPerNUMANode = 2, 1, 8/machine.ThreadsPerCore
		machine.CoresPerL3, machine.Distances = machine.CoresPerNUMANode, [][]int{{10, 20}, {20, 10}}
		nic := machine.NICs[0]
		nic.NUMANode = 0
		machine.NICs, machine.Disks, machine.DefaultRoute = []hosttree.NIC{nic}, nil, nic.Name
		all = append(all, machine)
	}
	return all
}

// writeHosts writes the simulated hosts and returns them as NAME=ROOT.
func writeHosts(scratch string) ([]string, error) {
	var hosts []string
	for _, machine := range machines() {
		root := filepath.Join(scratch, machine.Hostname)
		if err := os.Mkdir(root, 0o700); err != nil {
			return nil, err
		}
		if err := machine.Write(root); err != nil {
			return nil, fmt.Errorf("writing host %s: %w", machine.Hostname, err)
		}
		hosts = append(hosts, machine.Hostname+"="+root)
	}
	return hosts, nil
}

// input is a profile: files of a tree, or a PerformanceProfile of the new tree that is to be imported.
type input struct {
	name     string
	files    []string
	imported string
}

// hosts are those of a list that the input is for.
func (i input) hosts(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(host string) bool {
		name, _, _ := strings.Cut(host, "=")
		return i.imported != "" && !strings.HasSuffix(name, smallSuffix)
	})
}

// findInputs lists the profiles of the samples and examples, the pools beside the profile that they are for, and the
// PerformanceProfiles of the importer's tests.
func findInputs(tree string) ([]input, error) {
	var inputs []input
	for _, folder := range []string{"config/samples", "docs/examples"} {
		files, err := samples.Files(filepath.Join(tree, folder))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			found, err := sample(tree, file)
			if err != nil {
				return nil, err
			}
			inputs = append(inputs, found...)
		}
	}
	sources, err := filepath.Glob(filepath.Join(tree, "internal/platform/openshift/importer/testdata/*.yaml"))
	if err != nil {
		return nil, err
	}
	sources = slices.DeleteFunc(sources, func(file string) bool { return strings.HasSuffix(file, ".golden.yaml") })
	for _, file := range sources {
		inputs = append(inputs, input{name: "import of " + strings.TrimSuffix(filepath.Base(file), ".yaml"), imported: file})
	}
	return inputs, nil
}

// sample is the input made of one file: none for one without a profile or pool.
func sample(tree, file string) ([]input, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	relative, err := filepath.Rel(tree, file)
	if err != nil {
		return nil, err
	}
	switch {
	case strings.Contains(string(text), "\nkind: LowLatencyNodeProfile\n"):
		return []input{{name: relative, files: []string{relative}}}, nil
	case strings.Contains(string(text), "\nkind: BypassNICPool\n"):
		profile, err := samples.ProfileFor(file)
		if err != nil {
			return nil, err
		}
		if profile, err = filepath.Rel(tree, profile); err != nil {
			return nil, err
		}
		return []input{{name: relative, files: []string{profile, relative}}}, nil
	default:
		return nil, nil
	}
}
