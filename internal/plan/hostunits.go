// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// DataPlaneSlice is the cgroup of the data plane. Its name has no dash, because systemd would make it the
// child of another slice, and only a child of the root can be a partition of its own.
const DataPlaneSlice = "dataplane.slice"

// planHost collects the files and units that carry out the rest of the plan, and sorts them.
func (p *planner) planHost() {
	p.hugepageUnits()
	p.offlineUnit()
	p.kernelThreadsUnit()
	p.dataPlaneUnits()
	p.poolUnits()
	p.packetSteeringFiles()
	slices.SortFunc(p.plan.Files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	slices.SortFunc(p.plan.Units, func(a, b Unit) int { return cmp.Compare(a.Name, b.Name) })
}

// hugepageUnits reserve hugepages on certain NUMA nodes, as early as systemd starts services. The kubelet
// requires them: it stays down on a host that has not got its hugepages.
func (p *planner) hugepageUnits() {
	script := ""
	for i := range p.plan.Hugepages {
		pages := &p.plan.Hugepages[i]
		if pages.Method != ByUnit {
			continue
		}
		if script == "" {
			script = p.addScript("lowlatency-hugepages", hugepagesScript, pages.Origin)
		}
		p.addUnit(Unit{
			Name:    pages.UnitName(),
			Enabled: true,
			Content: oneshot{
				description: fmt.Sprintf("Reserve %d hugepages of %s on NUMA node %d", pages.Count, pages.Size, *pages.NUMANode),
				commands:    []string{fmt.Sprintf("%s %d %d %d", script, pages.SizeKibibytes, *pages.NUMANode, pages.Count)},
				required:    true,
			}.content(),
			Origin: pages.Origin,
		})
	}
}

// offlineUnit takes CPUs offline. The kubelet requires it, because it counts CPUs when it starts.
func (p *planner) offlineUnit() {
	offline := p.plan.CPUs.Offline
	if offline.IsEmpty() {
		return
	}
	origin := p.origin("spec.cpus.explicit.offline")
	script := p.addScript("lowlatency-offline-cpus", offlineScript, origin)
	command := []string{script}
	for _, id := range offline.IDs() {
		command = append(command, strconv.Itoa(id))
	}
	p.addUnit(Unit{
		Name:    "lowlatency-offline-cpus.service",
		Enabled: true,
		Content: oneshot{
			description: "Take CPUs " + offline.String() + " offline",
			commands:    []string{strings.Join(command, " ")},
			required:    true,
		}.content(),
		Origin: origin,
	})
}

// kernelThreadsUnit moves threads of the kernel to housekeeping CPUs. Neither isolcpus= nor nohz_full= keeps kswapd and
// kcompactd off the others: in Linux 6.1 they take the CPUs of their NUMA node when they start (mm/vmscan.c, kswapd;
// mm/compaction.c, kcompactd). TuneD's isolated_cores would move them, but programs of pods with them.
func (p *planner) kernelThreadsUnit() {
	c := p.plan.CPUs
	if c.Isolated.IsEmpty() {
		return
	}
	origin := by("threads of the kernel that can run elsewhere are kept off isolated CPUs")
	script := p.addScript("lowlatency-kernel-threads", kernelThreadsScript, origin)
	p.addUnit(Unit{
		Name:    "lowlatency-kernel-threads.service",
		Enabled: true,
		Content: oneshot{
			description: "Move threads of the kernel to housekeeping CPUs " + c.Housekeeping.String(),
			commands:    []string{script + " " + c.Housekeeping.String()},
			after:       []string{"systemd-modules-load.service"},
		}.content(),
		Origin: origin,
	})
}

// dataPlaneUnits make a cgroup with the data plane's CPUs, into which the host's switch is put by its own
// unit, and turn it into an isolated partition when that is asked for
// (Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus.partition).
func (p *planner) dataPlaneUnits() {
	c := p.plan.CPUs
	if c.DataPlane.IsEmpty() {
		return
	}
	origin := p.origin("spec.cpus.explicit.dataPlane")
	p.addUnit(Unit{
		Name:    DataPlaneSlice,
		Enabled: true,
		Content: serialize(
			option("Unit", "Description", "Data plane on CPUs "+c.DataPlane.String()),
			option("Slice", "AllowedCPUs", c.DataPlane.String()),
			option("Install", "WantedBy", "multi-user.target")),
		Origin: origin,
	})
	if c.DataPlaneBalancing != v1alpha1.LoadBalancingDisabled {
		return
	}
	balancing := p.origin("spec.cpus.explicit.dataPlaneLoadBalancing")
	script := p.addScript("lowlatency-dataplane-partition", dataPlaneScript, balancing)
	p.addUnit(Unit{
		Name:    "lowlatency-dataplane-partition.service",
		Enabled: true,
		Content: oneshot{
			description: "Keep the scheduler from balancing the data plane",
			commands:    []string{script + " " + DataPlaneSlice},
			after:       []string{DataPlaneSlice},
			slice:       DataPlaneSlice,
		}.content(),
		Origin: balancing,
	})
}

// packetSteeringFiles set the mask of new network devices before any is made, and take physical ones out
// of it again unless they are meant, too.
func (p *planner) packetSteeringFiles() {
	steering := p.spec.Network.ReceivePacketSteering
	if steering == v1alpha1.PacketSteeringOff {
		return
	}
	origin := p.origin("spec.network.receivePacketSteering")
	p.addFile(File{
		Path:    "/etc/sysctl.d/99-lowlatency-rps.conf",
		Mode:    0o644,
		Content: "net.core.rps_default_mask = " + p.plan.CPUs.Housekeeping.Mask() + "\n",
		Origin:  origin,
	})
	if steering == v1alpha1.PacketSteeringVirtualDevices {
		p.addFile(File{
			Path: "/etc/udev/rules.d/99-lowlatency-rps.rules",
			Mode: 0o644,
			Content: `ACTION=="add", SUBSYSTEM=="queues", DEVPATH!="/devices/virtual/*", ` +
				`DEVPATH=="*/queues/rx-*", ATTR{rps_cpus}="0"` + "\n",
			Origin: origin,
		})
	}
}
