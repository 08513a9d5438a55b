// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/importer"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/samples"
)

// asked is what files ask for: a profile, alone or with a pool.
type asked struct {
	profile *v1alpha1.LowLatencyNodeProfile
	pools   []*v1alpha1.BypassNICPool
}

// documents are the objects of one kind in the YAML files below a folder, by file and place in it.
func documents[T any](t *testing.T, folder, kind string) map[string]*T {
	t.Helper()
	files, err := samples.Files(filepath.Join("..", "..", folder))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*T{}
	for _, file := range files {
		for i, text := range strings.Split(read(t, file), "\n---\n") {
			var object T
			if !strings.Contains("\n"+text, "\nkind: "+kind+"\n") {
				continue
			}
			if err := yaml.UnmarshalStrict([]byte(text), &object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "../../"), ".yaml")
			if i > 0 {
				name += fmt.Sprintf(" (%d)", i+1)
			}
			found[name] = &object
		}
	}
	return found
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// allAsked are the samples, the examples of the documentation, and the imported PerformanceProfiles.
func allAsked(t *testing.T) map[string]asked {
	t.Helper()
	all := map[string]asked{}
	for _, folder := range []string{"config/samples", "docs/examples"} {
		for name, profile := range documents[v1alpha1.LowLatencyNodeProfile](t, folder, "LowLatencyNodeProfile") {
			all[name] = asked{profile: profile}
		}
	}
	for name, pool := range documents[v1alpha1.BypassNICPool](t, "config/samples", "BypassNICPool") {
		// The machines have none of the NICs that most samples name.
		pool.Spec.NICs = onloadPool().Spec.NICs
		all[name] = asked{profile: trading(), pools: []*v1alpha1.BypassNICPool{pool}}
	}
	files, err := filepath.Glob("../../internal/platform/openshift/importer/testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".golden.yaml") {
			continue
		}
		profile, _, err := importer.FromPerformanceProfile([]byte(read(t, file)))
		if err != nil {
			t.Fatalf("importing %s: %v", file, err)
		}
		all["import of "+strings.TrimSuffix(filepath.Base(file), ".yaml")] = asked{profile: profile}
	}
	return all
}

// planMachines are the machines that everything is planned on, with all their cores.
func planMachines() map[string]hosttree.Machine {
	all := map[string]hosttree.Machine{
		xeon: fewQueues(hosttree.Xeon()), epyc: fewQueues(hosttree.EPYC()), arm: fewQueues(hosttree.Arm()), edge: singleSocket(),
		"epyc-caches": wideCaches(), "xeon-small": small(hosttree.Xeon()),
	}
	for name, hardware := range all {
		all[name] = withIOMMU(hardware)
	}
	return all
}

// fitting writes the CPUs of an explicit partition anew, so that they are those of the machine: the first core of each
// NUMA node is for housekeeping.
func (a asked) fitting(hardware hosttree.Machine) asked {
	explicit := a.profile.Spec.CPUs.Explicit
	if explicit == nil {
		return a
	}
	profile := a.profile.DeepCopy()
	cores := hardware.Packages * hardware.NUMANodesPerPackage * hardware.CoresPerNUMANode
	var first, rest cpus.Set
	for id := range cores * hardware.ThreadsPerCore {
		if id%cores%hardware.CoresPerNUMANode == 0 {
			first = first.Union(cpus.Of(id))
		} else {
			rest = rest.Union(cpus.Of(id))
		}
	}
	profile.Spec.CPUs.Explicit = &v1alpha1.ExplicitCPUs{Housekeeping: v1alpha1.CPUList(first.String()), Isolated: v1alpha1.CPUList(rest.String())}
	return asked{profile, a.pools}
}

// cost is what a partition costs: cores asked for and given, CPUs that are left, caches of level 3 that both share.
func cost(n *node) string {
	given, caches := map[string]bool{}, map[string]bool{}
	for _, id := range n.plan.CPUs.Housekeeping.IDs() {
		given[strings.TrimSpace(n.text(cpu(id, "topology/thread_siblings_list")))] = true
		if file := cpu(id, "cache/index3/shared_cpu_list"); n.exists(file) {
			shared := strings.TrimSpace(n.text(file))
			if set, err := cpus.Parse(shared); err == nil && set.Overlaps(n.plan.CPUs.Isolated) {
				caches[shared] = true
			}
		}
	}
	partition, wanted := cmp.Or(n.profile.Spec.CPUs.Partition, v1alpha1.PartitionDerived), "-"
	if derived := n.profile.Spec.CPUs.Derived; derived != nil && derived.HousekeepingCores > 0 {
		wanted = strconv.Itoa(int(derived.HousekeepingCores))
	}
	return fmt.Sprintf("%-8s housekeeping cores asked %-2s given %2d, CPUs %3d; isolated %3d; shared L3 %d", partition, wanted, len(given),
		n.plan.CPUs.Housekeeping.Len(), n.plan.CPUs.Isolated.Len(), len(caches))
}

// TestPlans plans all that samples, examples and imports ask for on every machine, boots what is accepted, and holds each
// host against its own plan.
func TestPlans(t *testing.T) {
	all, hosts := allAsked(t), planMachines()
	table := newTable("plans")
	t.Run("rows", func(t *testing.T) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			for _, on := range oneOrAll(name, slices.Sorted(maps.Keys(hosts))) {
				t.Run(name+"@"+on, func(t *testing.T) {
					t.Parallel()
					table.add(t, bootAsked(t, name, on, all[name], hosts[on]))
				})
			}
		}
	})
	table.print(t)
}

// bootAsked plans, boots and judges one profile on one machine.
func bootAsked(t *testing.T, name, on string, wanted asked, hardware hosttree.Machine) line {
	t.Helper()
	n, err := boot(t.Context(), t.TempDir(), machine{hardware, wanted.profile, wanted.pools})
	if err != nil {
		fitted := wanted.fitting(hardware)
		n, err = boot(t.Context(), t.TempDir(), machine{hardware, fitted.profile, fitted.pools})
	}
	if err != nil {
		if strings.HasPrefix(err.Error(), "no plan: ") {
			return line{name, on, "", outcomeRefused, err.Error()}
		}
		return line{name, on, "", outcomeMissed, err.Error()}
	}
	if len(wanted.pools) != len(n.plan.BypassPools) {
		return line{name, on, "", outcomeMissed, "the plan takes no NIC for the pool"}
	}
	n.t = t
	reports, err := n.judge(row{})
	if err != nil {
		t.Fatal(err)
	}
	for way, report := range reports {
		for _, found := range report.Results {
			if found.Outcome == v1alpha1.OutcomeFailed {
				return line{name, on, found.Check.ID, outcomeFalseRed, way + ": " + found.Message}
			}
		}
	}
	return line{name, on, "", outcomeSound, cost(n)}
}
