// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package lab_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

// poolMachine has an IOMMU, a NIC with virtual functions and two without.
func poolMachine() lab.Spec {
	return lab.Spec{
		Name:     "lab",
		Topology: lab.Topology{Packages: 2, CoresPerPackage: 2, ThreadsPerCore: 1, NUMANodes: 2, MebibytesPerNode: 1024},
		NICs: []lab.NIC{
			{ID: "nic0", Model: lab.E1000e, NUMANode: 0},
			{ID: "nic1", Model: lab.Igb, NUMANode: 1},
			{ID: "nic2", Model: lab.E1000e, NUMANode: 1},
		},
		Boot:  lab.Boot{Kernel: lab.Standard},
		IOMMU: lab.Present,
	}
}

// poolSteps are what is true on the machine of poolMachine after it has booted with its pools, and how to see it.
// The functions of the NIC behind bridge N are at its bus.
func poolSteps() []struct{ name, command, want string } {
	driver := func(device string) string {
		return "basename $(readlink /sys/bus/pci/devices/" + device + "/driver)"
	}
	const pages = "cat /sys/devices/system/node/node%d/hugepages/hugepages-2048kB/nr_hugepages"
	return []struct{ name, command, want string }{
		{"virtual functions of the igb", "cat /sys/bus/pci/devices/0000:41:00.0/sriov_numvfs", "2"},
		{"driver of the igb", driver("0000:41:00.0"), "igb"},
		{"driver of virtual function 0", driver("0000:41:00.0/virtfn0"), "vfio-pci"},
		{"driver of virtual function 1", driver("0000:41:00.0/virtfn1"), "vfio-pci"},
		{"driver of the NIC that is handed out whole", driver("0000:21:00.0"), "vfio-pci"},
		{"driver of the NIC that is nobody's", driver("0000:42:00.0"), "e1000e"},
		{"hugepages near the whole NIC", fmt.Sprintf(pages, 0), "8"},
		{"hugepages near the igb", fmt.Sprintf(pages, 1), "16"},
		{
			"units that failed",
			"systemctl list-units --state=failed --plain --no-legend | wc -l", "0",
		},
		{
			"CPUs of the igb's interrupts after its interface came up",
			"ip link set $(ls /sys/bus/pci/devices/0000:41:00.0/net) up; sleep 8; cd /sys/bus/pci/devices/0000:41:00.0/msi_irqs; " +
				"for i in *; do cat /proc/irq/$i/smp_affinity_list; done | sort -u", "2",
		},
	}
}

// grants are what a container gets that asks for one unit of each pool.
type grant struct {
	resource string
	healthy  int
	// numa is the NUMA node of every unit.
	numa int64
}

// kubeletSaw is what the program fakekubelet prints.
type kubeletSaw struct {
	Devices []struct {
		ID       string
		Health   string `json:"health"`
		Topology struct {
			Nodes []struct {
				ID int64 `json:"ID"`
			} `json:"nodes"`
		} `json:"topology"`
	}
	Admitted []string
	Answer   struct {
		Devices []struct {
			HostPath string `json:"host_path"`
		} `json:"devices"`
		Envs map[string]string `json:"envs"`
	}
}

func (k kubeletSaw) paths() []string {
	var paths []string
	for _, device := range k.Answer.Devices {
		paths = append(paths, device.HostPath)
	}
	return paths
}

// TestPools gives a real kernel the plan of two pools and asks the device plugin what it hands to a kubelet.
func TestPools(t *testing.T) {
	const profile = "testdata/pools-profile.yaml"
	table := &outcomeTable{since: time.Now()}
	t.Cleanup(table.print)
	n := startNode(t, poolMachine(), profile)
	table.add("boot untuned, IOMMU", "shell")
	pools := readPools(t)
	n.apply(n.planPools(profile, pools), lab.Standard)
	table.add("plan two pools, apply, reboot", "shell")
	for _, step := range poolSteps() {
		got := strings.TrimSpace(n.run(step.command))
		if got != step.want {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
		table.add(step.name, strings.ReplaceAll(got, "\n", " "))
	}
	for i, g := range []grant{{"lowlatency.dev/functions", 2, 1}, {"lowlatency.dev/whole", 1, 0}} {
		n.servePool(pools[i])
		t.Run(g.resource, func(t *testing.T) { n.admit(t, g, table) })
	}
	t.Run("a virtual function loses its driver", func(t *testing.T) {
		n.run("f=$(basename $(readlink /sys/bus/pci/devices/0000:41:00.0/virtfn0)); echo $f >/sys/bus/pci/drivers/vfio-pci/unbind")
		n.admit(t, grant{"lowlatency.dev/functions", 1, 1}, table)
	})
}

// readPools reads the BypassNICPools of testdata.
func readPools(t *testing.T) []*v1alpha1.BypassNICPool {
	t.Helper()
	text, err := os.ReadFile("testdata/pools.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var pools []*v1alpha1.BypassNICPool
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		pool := &v1alpha1.BypassNICPool{}
		if err := yaml.UnmarshalStrict(document, pool); err != nil {
			t.Fatal(err)
		}
		pools = append(pools, pool)
	}
	return pools
}

// planPools plans the machine from a snapshot, as the operator does from what the agent reports.
func (n *node) planPools(profile string, pools []*v1alpha1.BypassNICPool) nodePlan {
	n.t.Helper()
	text, err := os.ReadFile(profile)
	n.must(err)
	wanted := &v1alpha1.LowLatencyNodeProfile{}
	n.must(yaml.UnmarshalStrict(text, wanted))
	machine := n.topology()
	input := plan.Input{Profile: wanted, Node: "lab", Topology: machine}
	for i, nics := range bypass.Shares(pools, machine.NICs) {
		input.Pools = append(input.Pools, plan.Pool{Name: pools[i].Name, Spec: &pools[i].Spec, NICs: nics})
	}
	planned, findings := plan.New(input)
	if planned == nil {
		n.t.Fatalf("no plan: %+v", findings)
	}
	for _, finding := range findings {
		n.t.Logf("finding: %s %s", finding.Severity, finding.Message)
	}
	result := nodePlan{Housekeeping: planned.CPUs.Housekeeping.String(), Isolated: planned.CPUs.Isolated.String()}
	for _, argument := range planned.KernelArguments {
		result.KernelArguments = append(result.KernelArguments, argument.Text)
	}
	for _, file := range planned.Files {
		result.Files = append(result.Files, planFile{Path: file.Path, Mode: fmt.Sprintf("%04o", file.Mode), Content: file.Content})
	}
	for _, unit := range planned.Units {
		result.Units = append(result.Units, planUnit{
			Name: unit.Name, Content: unit.Content, Enabled: unit.Enabled, Masked: unit.Masked, DropIns: unit.DropIns,
		})
	}
	return result
}

// topology of the machine, from a snapshot.
func (n *node) topology() *topology.Topology {
	n.t.Helper()
	opened, err := host.Open(n.snapshot())
	n.must(err)
	facts, err := opened.Read(n.t.Context())
	n.must(err)
	n.must(opened.Close())
	machine, err := topology.FromFacts(facts)
	n.must(err)
	return machine
}

// servePool starts the device plugin of a pool in the machine.
func (n *node) servePool(pool *v1alpha1.BypassNICPool) {
	n.t.Helper()
	text, err := json.Marshal(bypass.Pool{Name: pool.Name, Generation: 1, Spec: pool.Spec})
	n.must(err)
	file := "/root/" + pool.Name + ".json"
	n.must(n.WriteFile(n.t.Context(), file, string(text), 0o644))
	n.run("mkdir -p /var/lib/kubelet/device-plugins /var/run/cdi; systemd-run --unit=plugin-" + pool.Name +
		" lowlatency-operator device-plugin --root=/ --node-name=lab --interval=2s --verbose --pool-file=" + file)
	if _, err := n.Run(n.t.Context(), "[ -x /usr/local/bin/fakekubelet ]"); err == nil {
		return
	}
	program := filepath.Join(n.t.TempDir(), "fakekubelet")
	command := exec.CommandContext(n.t.Context(), "go", "build", "-trimpath", "-o", program,
		"github.com/lowlatency-dev/lowlatency-operator/test/lab/fakekubelet")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		n.t.Fatalf("building the fake kubelet: %v\n%s", err, out)
	}
	n.must(n.CopyTo(n.t.Context(), program, "/usr/local/bin/fakekubelet"))
}

// admit asks the fake kubelet for one unit of a resource.
func (n *node) admit(t *testing.T, g grant, table *outcomeTable) {
	result, err := n.Execute(t.Context(), fmt.Sprintf("fakekubelet -resource %s -healthy %d -admit 1", g.resource, g.healthy))
	if err != nil {
		t.Fatal(err)
	}
	var saw kubeletSaw
	if err := json.Unmarshal([]byte(result.Stdout), &saw); err != nil || result.ExitCode != 0 {
		journal, _ := n.Run(t.Context(), "journalctl -u 'plugin-*' --no-pager | tail -40")
		t.Fatalf("the fake kubelet ended with %d: %s%s\n%s", result.ExitCode, result.Stderr, result.Stdout, journal)
	}
	for _, device := range saw.Devices {
		if len(device.Topology.Nodes) != 1 || device.Topology.Nodes[0].ID != g.numa {
			t.Errorf("%s has topology %+v, want NUMA node %d", device.ID, device.Topology, g.numa)
		}
	}
	if len(saw.Admitted) != 1 {
		t.Fatalf("the container got %v, want one unit", saw.Admitted)
	}
	group := strings.TrimSpace(n.run("basename $(readlink /sys/bus/pci/devices/" + saw.Admitted[0] + "/iommu_group)"))
	if diff := cmp.Diff([]string{"/dev/vfio/" + group, "/dev/vfio/vfio"}, saw.paths()); diff != "" {
		t.Errorf("device files of the container (-want +got):\n%s", diff)
	}
	n.run("test -c /dev/vfio/" + group)
	table.add(t.Name(), fmt.Sprintf("%d of %d healthy; container gets %s: %s", g.healthy, len(saw.Devices), saw.Admitted[0], strings.Join(saw.paths(), " ")))
}
