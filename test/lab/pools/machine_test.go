// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package pools_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

const (
	// nodeName is the machine's host name and the name of its Node.
	nodeName = "lab"
	// kernel is one with PREEMPT_RT whose AF_XDP sockets may be mapped by those who get them; the one of the image may not.
	kernel = lab.RealTimeBackports
)

// poolMachine has 2 NUMA nodes with a whole NIC on each, a NIC with virtual functions, and one on each that is nobody's. Where no NIC is handed out, no NIC has
// virtual functions, which an older QEMU does not know: it lets each emulated processor have a thread of its own, and the newer one does not.
func (s *scene) poolMachine(files string) lab.Spec {
	second := lab.Igb
	if !s.handsOut {
		second = lab.E1000e
	}
	return lab.Spec{
		Name:     nodeName,
		Topology: lab.Topology{Packages: 2, CoresPerPackage: 4, ThreadsPerCore: 1, NUMANodes: 2, MebibytesPerNode: 1536},
		NICs: []lab.NIC{
			{ID: "nic0", Model: lab.E1000e, NUMANode: 0},
			{ID: "nic1", Model: second, NUMANode: 1},
			{ID: "nic2", Model: lab.E1000e, NUMANode: 1},
			{ID: "nic3", Model: lab.Virtio, NUMANode: 1},
			{ID: "nic4", Model: lab.Virtio, NUMANode: 0},
		},
		Boot:  lab.Boot{Kernel: kernel, Arguments: slotArguments()},
		IOMMU: lab.Present,
		Files: files,
	}
}

// slotArguments let a NIC be unplugged. A kernel with PREEMPT_RT runs both halves of pciehp's interrupt handler in
// threads, and irq_wake_thread (kernel/irq/manage.c of Linux 6.1) then wakes the wrong one: a slot whose button was pressed
// blinks for ever. A thread that polls does not.
func slotArguments() []string { return []string{"pciehp.pciehp_poll_mode=1"} }

// fact is what a command on the machine says when all is well.
type fact struct{ name, command, want string }

// kernelFacts are true of the machine after it has booted with its plan, and how to see them.
func (s *scene) kernelFacts() []fact {
	facts := []fact{
		{"kernel with PREEMPT_RT", "cat /sys/kernel/realtime", "1"},
		{"isolated CPUs", "cat /sys/devices/system/cpu/isolated", "1-3,5-7"},
		{"driver of the NIC that is nobody's", driverOf("0000:43:00.0"), "virtio-pci"},
		{"units that failed", "systemctl list-units --state=failed --plain --no-legend | wc -l", "0"},
	}
	if s.handsOut {
		facts = append(facts, nicFacts()...)
	}
	return facts
}

// nicFacts are those of NICs that are handed out. The functions of the NIC behind bridge N are at its bus.
func nicFacts() []fact {
	return []fact{
		{"virtual functions of the igb", "cat /sys/bus/pci/devices/0000:41:00.0/sriov_numvfs", "2"},
		{"driver of the igb", driverOf("0000:41:00.0"), "igb"},
		{"driver of virtual function 0", driverOf("0000:41:00.0/virtfn0"), "vfio-pci"},
		{"driver of virtual function 1", driverOf("0000:41:00.0/virtfn1"), "vfio-pci"},
		{"driver of the whole NIC on NUMA node 0", driverOf("0000:21:00.0"), "vfio-pci"},
		{"driver of the whole NIC on NUMA node 1", driverOf("0000:42:00.0"), "vfio-pci"},
	}
}

func driverOf(device string) string {
	return "basename $(readlink /sys/bus/pci/devices/" + device + "/driver)"
}

// hugepageFacts become true when the kubelet starts, which requires the units that reserve them for NICs that are handed out.
func (s *scene) hugepageFacts() []fact {
	if !s.handsOut {
		return nil
	}
	const pages = "cat /sys/devices/system/node/node%d/hugepages/hugepages-2048kB/nr_hugepages"
	return []fact{
		{"hugepages on NUMA node 0", fmt.Sprintf(pages, 0), "16"},
		{"hugepages on NUMA node 1", fmt.Sprintf(pages, 1), "32"},
	}
}

// readProfile reads the profile of testdata.
func readProfile(t *testing.T) *v1alpha1.LowLatencyNodeProfile {
	t.Helper()
	profile := &v1alpha1.LowLatencyNodeProfile{}
	if err := yaml.UnmarshalStrict(readFile(t, "profile.yaml"), profile); err != nil {
		t.Fatal(err)
	}
	return profile
}

// pools are those of testdata; none where no NIC is handed out.
func (s *scene) pools(t *testing.T) []*v1alpha1.BypassNICPool {
	t.Helper()
	if !s.handsOut {
		return nil
	}
	pools := []*v1alpha1.BypassNICPool{}
	for document := range bytes.SplitSeq(readFile(t, "pools.yaml"), []byte("\n---\n")) {
		pool := &v1alpha1.BypassNICPool{}
		if err := yaml.UnmarshalStrict(document, pool); err != nil {
			t.Fatal(err)
		}
		pools = append(pools, pool)
	}
	return pools
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// planPools plans the machine from a snapshot, as the operator does from what the agent reports.
func (s *scene) planPools(t *testing.T) *plan.NodePlan {
	t.Helper()
	machine := s.topology(t)
	input, pools := plan.Input{Profile: readProfile(t), Topology: machine}, s.pools(t)
	input.Pools = bypass.PlannedPools(pools, bypass.Claims(bypass.Claimants(pools, nil), nil, machine.NICs))
	planned, findings := plan.New(input)
	if planned == nil {
		t.Fatalf("no plan: %+v", findings)
	}
	for _, finding := range findings {
		t.Logf("finding: %s %s", finding.Severity, finding.Message)
	}
	return planned
}

// topology of the machine, from a snapshot that its own program takes.
func (s *scene) topology(t *testing.T) *topology.Topology {
	t.Helper()
	s.run(t, lab.FilesPath+"/bin/kubectl-lowlatency snapshot -o /root/node.tar.gz")
	snapshot := filepath.Join(t.TempDir(), "node.tar.gz")
	must(t, s.machine.CopyFrom(t.Context(), "/root/node.tar.gz", snapshot))
	opened, err := host.Open(snapshot)
	must(t, err)
	facts, err := opened.Read(t.Context())
	must(t, err)
	must(t, opened.Close())
	machine, err := topology.FromFacts(facts)
	must(t, err)
	return machine
}

// apply does what a platform does with a plan, and boots with its kernel arguments. The settings of TuneD's part are
// made by systemd-sysctl and systemd-tmpfiles.
func (s *scene) apply(t *testing.T, p *plan.NodePlan) {
	t.Helper()
	var c lab.Configuration
	for _, file := range p.Files {
		c.Files = append(c.Files, lab.File{Path: file.Path, Content: file.Content, Mode: os.FileMode(file.Mode)})
	}
	for _, unit := range p.Units {
		c.Units = append(c.Units, lab.Unit{
			Name: unit.Name, Content: unit.Content, DropIns: unit.DropIns, Enabled: unit.Enabled, Masked: unit.Masked,
		})
	}
	var sysctls, sysfs strings.Builder
	for _, setting := range p.Sysctls {
		fmt.Fprintf(&sysctls, "-%s = %s\n", setting.Name, setting.Value)
	}
	for _, setting := range p.Sysfs {
		fmt.Fprintf(&sysfs, "w %s - - - - %s\n", setting.Name, setting.Value)
	}
	c.Files = append(c.Files, lab.File{Path: "/etc/sysctl.d/99-plan.conf", Content: sysctls.String(), Mode: 0o644},
		lab.File{Path: "/etc/tmpfiles.d/plan.conf", Content: sysfs.String(), Mode: 0o644})
	must(t, s.machine.Configure(t.Context(), c))
	s.housekeeping, s.arguments = p.CPUs.Housekeeping, slotArguments()
	for _, argument := range p.KernelArguments {
		s.arguments = append(s.arguments, argument.Text)
	}
	must(t, s.machine.Reboot(s.ctx, lab.Boot{Kernel: kernel, Arguments: s.arguments}))
	s.run(t, "systemctl is-system-running --wait || true")
}

// join makes the machine a node, with the kubelet configuration that the project renders of the plan.
func (s *scene) join(t *testing.T, p *plan.NodePlan) {
	t.Helper()
	configuration, err := manifests.KubeletConfiguration(p.Kubelet)
	must(t, err)
	must(t, s.cluster.Join(t.Context(), s.machine, configuration, os.Stderr))
}
