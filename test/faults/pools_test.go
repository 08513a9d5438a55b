// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// poolRow is a state of a node with Onload: what is made of the sound one, and what is said of the pool's first NIC.
type poolRow struct {
	name string
	// do changes the node, ask the pool.
	do  func(*node)
	ask func(*v1alpha1.OnloadStack)
	// want is the health of the NIC, says are words of its reasons; a Healthy NIC without words has no reason.
	want v1alpha1.NICHealth
	says []string
}

const (
	procOnload   = "/proc/driver/onload/"
	procResource = "/proc/driver/sfc_resource/"
	userLibrary  = "/opt/onload/usr/lib64/libonload.so"
	// foreignChecksum is that of the modules of another build.
	foreignChecksum = "eab02e6ef04d8b708ae763dec014d89f"
)

// release is the message with the release in a library.
const release = "Onload " + hosttree.OnloadVersion + " \nCopyright (c) 2002-2026 Advanced Micro Devices, Inc.\n"

// stacks gives the node two stacks, one in the host's network namespace and one in that of a pod, and control planes in
// these namespaces.
func (n *node) stacks(controlPlanes ...string) {
	n.put(procOnload+"stacks", "0: 1104 0 135 17 0\n4: 1372 1001 59 0 0\n")
	n.link("/proc/1104/ns/net", "net:[4026531840]")
	n.link("/proc/1372/ns/net", "net:[4026532523]")
	pids := []string{"608", "1391"}[:len(controlPlanes)]
	for i, namespace := range controlPlanes {
		n.link("/proc/"+pids[i]+"/ns/net", namespace)
	}
	n.put(procOnload+"cp_server_pids", strings.Join(pids, "\n"))
	n.remove("/proc/1608")
}

func faultsOfPools() []poolRow {
	return slices.Concat(faultsOfUserFiles(), faultsOfModules(), faultsOfRegistration())
}

// faultsOfUserFiles are about versions and files.
func faultsOfUserFiles() []poolRow {
	half := len(hosttree.OnloadInterfaceVersion) / 2
	return []poolRow{
		{
			name: "the modules are not loaded", do: func(n *node) { n.must(hosttree.UnloadOnload(n.host.Dir)) },
			want: v1alpha1.NICUnhealthy, says: []string{"has not loaded onload, sfc_resource"},
		},
		{
			name: "modules of another release", do: func(n *node) { n.must(hosttree.SetOnloadVersion(n.host.Dir, "9.2.0.4", foreignChecksum)) },
			want: v1alpha1.NICUnhealthy, says: []string{userLibrary, "interface version " + hosttree.OnloadInterfaceVersion, "wants " + foreignChecksum},
		},
		{
			name: "modules of another build of the release",
			do:   func(n *node) { n.must(hosttree.SetOnloadVersion(n.host.Dir, hosttree.OnloadVersion, foreignChecksum)) },
			want: v1alpha1.NICUnhealthy, says: []string{"install module and user files of one build"},
		},
		{
			name: "the release is not the pool's", ask: func(o *v1alpha1.OnloadStack) { o.Version = "9.2.0.4" },
			want: v1alpha1.NICUnhealthy, says: []string{"wants 9.2.0.4", "or change spec.stack.onload.version"},
		},
		{
			name: "no library", do: func(n *node) { n.remove(userLibrary) },
			want: v1alpha1.NICUnhealthy, says: []string{"libonload.so is in none of"},
		},
		{
			name: "another file under the library's name", do: func(n *node) { n.put(userLibrary, "\x7fELF\x02\x01\x01\x00") },
			want: v1alpha1.NICUnknown, says: []string{"names neither a release of Onload nor the interface version"},
		},
		{
			name: "the module's checksum is in two halves of two builds",
			do: func(n *node) {
				n.put(userLibrary, "\x00"+hosttree.OnloadInterfaceVersion[:half]+"\x00"+foreignChecksum+"\x00"+release+"\x00"+n.controlPlaneChecksum()+"\x00")
			},
			want: v1alpha1.NICUnhealthy, says: []string{"has interface version " + foreignChecksum},
		},
	}
}

// faultsOfModules are about what the loaded modules show.
func faultsOfModules() []poolRow {
	return []poolRow{
		{
			name: "a version of the module without sense", do: func(n *node) { n.put(procOnload+"version", "\x01\x02") },
			want: v1alpha1.NICUnknown, says: []string{"/proc/driver/onload/version (binary content)"},
		},
		{
			name: "a list of stacks without sense and no control plane",
			do: func(n *node) {
				n.put(procOnload+"stacks", "nothing\n")
				n.put(procOnload+"cp_server_pids", "")
				n.remove("/proc/1608")
			},
			want: v1alpha1.NICUnknown, says: []string{"The number of Onload's stacks cannot be read"},
		},
		{
			name: "a table of resources without sense", do: func(n *node) { n.put(procResource+"resources", "total = many\n") },
			want: v1alpha1.NICUnknown, says: []string{"number of virtual interfaces (VIs) cannot be read"},
		},
		{
			name: "no virtual interfaces",
			do:   func(n *node) { n.put(procResource+"resources", "*** VI ***\n  total = 0\ncurrent = 0\n    max = 0\n") },
			want: v1alpha1.NICUnhealthy, says: []string{"no virtual interfaces (total of VI"},
		},
		{
			name: "no device file", do: func(n *node) { n.remove("/dev/onload") },
			want: v1alpha1.NICUnhealthy, says: []string{"The node has no /dev/onload,"},
		},
		{
			name: "no device file of epoll", do: func(n *node) { n.remove("/dev/onload_epoll") },
			want: v1alpha1.NICUnhealthy, says: []string{"The node has no /dev/onload_epoll"},
		},
		{
			name: "the device file is root's", do: func(n *node) { n.put("/dev/onload", "character device 245:0 mode 600\n") },
			want: v1alpha1.NICUnhealthy, says: []string{"/dev/onload has mode 0600"},
		},
	}
}

// faultsOfRegistration are about the NIC and the control planes.
func faultsOfRegistration() []poolRow {
	return []poolRow{
		{
			name: "the NIC is not registered", do: func(n *node) { n.remove(procResource + n.bypassNIC()) },
			want: v1alpha1.NICUnhealthy, says: []string{"is not registered with sfc_resource", "load the driver sfc of Onload's release"},
		},
		{
			name: "the kernel's own driver",
			do: func(n *node) {
				n.remove(procResource+n.bypassNIC(), "/sys/module/sfc/version")
			},
			want: v1alpha1.NICUnhealthy, says: []string{"is not registered with sfc_resource", "so it is the kernel's own"},
		},
		{
			name: "the kernel's own driver, registered by hand", do: func(n *node) { n.remove("/sys/module/sfc/version") },
			want: v1alpha1.NICUnhealthy, says: []string{"not by the driver of Onload's release", "by AF_XDP only"},
		},
		{
			name: "lo is registered", do: func(n *node) { n.put(procResource+"lo/firewall_rules", "") },
			want: v1alpha1.NICUnhealthy, says: []string{"makes the kernel panic"},
		},
		{
			name: "no link", do: func(n *node) { n.must(hosttree.SetCarrier(n.host.Dir, n.bypassNIC(), false)) },
			want: v1alpha1.NICUnhealthy, says: []string{"has no link"},
		},
		{
			name: "all control planes are dead", do: func(n *node) { n.stacks() },
			want: v1alpha1.NICUnhealthy, says: []string{"2 stacks of Onload run without a control plane"},
		},
		{
			name: "the control plane of a pod is dead", do: func(n *node) { n.stacks("net:[4026531840]") },
			want: v1alpha1.NICUnhealthy, says: []string{"Stack 4 of Onload, of process 1372", "net:[4026532523]"},
		},
		{
			name: "the NIC carries the node's traffic",
			do:   func(n *node) { n.must(hosttree.SetDefaultRoute(n.host.Dir, n.bypassNIC())) },
			want: v1alpha1.NICIneligible, says: []string{"carries"},
		},
	}
}

func variationsOfPools() []poolRow {
	half := len(hosttree.OnloadInterfaceVersion) / 2
	return []poolRow{
		{name: "as it came up", want: v1alpha1.NICHealthy},
		{name: "the release by name", ask: func(o *v1alpha1.OnloadStack) { o.Version = hosttree.OnloadVersion }, want: v1alpha1.NICHealthy},
		{
			name: "the checksum is followed by another constant",
			do: func(n *node) {
				n.put(userLibrary, "pshot> \x00"+hosttree.OnloadInterfaceVersion+"%lx \x00"+n.controlPlaneChecksum()+"\x00"+release+"\x00")
			},
			want: v1alpha1.NICHealthy,
		},
		{
			name: "the checksum is two constants",
			do: func(n *node) {
				sum := hosttree.OnloadInterfaceVersion
				n.put(userLibrary, sum[half:]+"\x00\x01"+sum[:half]+"\xff"+n.controlPlaneChecksum()+"\x00"+release+"\x00")
			},
			want: v1alpha1.NICHealthy,
		},
		{
			name: "the checksum is in the code",
			do:   func(n *node) { n.put(userLibrary, n.controlPlaneChecksum()+"\x00"+release+"\x00") },
			want: v1alpha1.NICHealthy, says: []string{"is of the build of the module onload is not known"},
		},
		{
			name: "a control plane for each network namespace", do: func(n *node) { n.stacks("net:[4026531840]", "net:[4026532523]") },
			want: v1alpha1.NICHealthy,
		},
		{
			name: "the kernel names no process to the reader",
			do:   func(n *node) { n.put(procOnload+"stacks", "0: 0 0 135 17 0\n4: 0 1001 59 0 0\n") },
			want: v1alpha1.NICHealthy,
		},
		{
			name: "no control plane and no stack",
			do: func(n *node) {
				n.put(procOnload+"cp_server_pids", "")
				n.remove("/proc/1608")
			},
			want: v1alpha1.NICHealthy,
		},
		{
			name: "all virtual interfaces are in use",
			do:   func(n *node) { n.put(procResource+"resources", "*** VI ***\n  total = 8\ncurrent = 8\n    max = 8\n") },
			want: v1alpha1.NICHealthy, says: []string{"All 8 virtual interfaces"},
		},
		{name: "no device file of ef_vi", do: func(n *node) { n.remove("/dev/sfc_char") }, want: v1alpha1.NICHealthy},
		{name: "no library of the extensions", do: func(n *node) { n.remove("/opt/onload/usr/lib64/libonload_ext.so.1") }, want: v1alpha1.NICHealthy},
		{name: "user files in the image", ask: func(o *v1alpha1.OnloadStack) { o.UserSpace = v1alpha1.UserSpaceSpec{} }, want: v1alpha1.NICHealthy},
	}
}

// link makes a symbolic link.
func (n *node) link(path, target string) {
	n.t.Helper()
	full := filepath.Join(n.host.Dir, path)
	n.must(os.MkdirAll(filepath.Dir(full), 0o755))
	n.must(os.Symlink(target, full))
}

// controlPlaneChecksum is what libonload.so and libefcp.so hold of the control plane's interface.
func (n *node) controlPlaneChecksum() string {
	for text := range strings.SplitSeq(n.text("/opt/onload/usr/lib64/libefcp.so.1"), "\x00") {
		if len(text) == len(hosttree.OnloadInterfaceVersion) {
			return text
		}
	}
	n.t.Fatal("libefcp.so.1 holds no checksum")
	return ""
}

// firstNIC is what the pool of the node makes of its first NIC, as the device plugin reads the host.
func (n *node) firstNIC(ask func(*v1alpha1.OnloadStack)) bypass.Device {
	n.t.Helper()
	stack := &v1alpha1.OnloadStack{UserSpace: v1alpha1.UserSpaceSpec{Source: v1alpha1.UserSpaceHostPath, HostPath: "/opt/onload"}}
	if ask != nil {
		ask(stack)
	}
	spec := n.pools[0].Spec.DeepCopy()
	spec.Stack.Onload = stack
	opened, err := host.Open(n.host.Dir)
	n.must(err)
	defer func() { n.must(opened.Close()) }()
	facts, err := opened.ReadNICs(n.t.Context(), host.Request{UserSpaces: bypass.UserSpaceFolders(spec)})
	n.must(err)
	devices := bypass.Devices(bypass.Input{
		Pool: bypass.Pool{Name: "onload", Spec: *spec}, Node: n.hardware.Hostname, Facts: facts,
		HostAddresses: []netip.Addr{netip.MustParseAddr(hosttree.NodeAddress)},
	})
	for _, device := range devices {
		if device.NIC.PCIAddress == n.plan.BypassNICs[0].PCIAddress {
			return device
		}
	}
	n.t.Fatalf("the pool has no NIC %s, but %d others", n.plan.BypassNICs[0].PCIAddress, len(devices))
	return bypass.Device{}
}

// TestPoolFaults judges the NIC of a pool of Onload on a node with something wrong.
func TestPoolFaults(t *testing.T) {
	testPoolRows(t, "faults of pools", faultsOfPools(), outcomeCaught, outcomeMissed)
}

// TestPoolVariations judges it on a node with something harmless.
func TestPoolVariations(t *testing.T) {
	testPoolRows(t, "variations of pools", variationsOfPools(), outcomeSound, outcomeFalseRed)
}

func testPoolRows(t *testing.T, title string, rows []poolRow, well, ill string) {
	t.Helper()
	fleet, table := newFleet(t), newTable(title)
	t.Run("rows", func(t *testing.T) {
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				n := fleet.node(t, xeonPool)
				n.must(hosttree.SetDefaultRoute(n.host.Dir, n.otherNIC()))
				if row.do != nil {
					row.do(n)
				}
				device := n.firstNIC(row.ask)
				reasons := strings.Join(device.Reasons, " ")
				found := line{row.name, xeonPool, "", well, string(device.Health) + ": " + reasons}
				if device.Health != row.want {
					found.outcome = ill
				}
				for _, words := range row.says {
					if !strings.Contains(reasons, words) {
						found.outcome = outcomeWords
					}
				}
				// Nobody can change a field that the pool does not set.
				if row.ask == nil && strings.Contains(reasons, "spec.stack.onload.version") {
					found.outcome = outcomeWords
				}
				if row.want == v1alpha1.NICHealthy && len(row.says) == 0 && reasons != "" {
					found.outcome = ill
				}
				table.add(t, found)
			})
		}
	})
	table.print(t)
}
