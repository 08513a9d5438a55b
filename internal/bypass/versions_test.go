// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// changeFile changes a user file of the facts.
func changeFile(name string, change func(*host.UserFile)) func(*Input) {
	return func(in *Input) {
		files := in.Facts.Bypass.UserSpaces["/opt/onload"].Files.Value
		file := files[name]
		change(&file)
		files[name] = file
	}
}

func removeFile(name string) func(*Input) {
	return func(in *Input) { delete(in.Facts.Bypass.UserSpaces["/opt/onload"].Files.Value, name) }
}

// both changes after each other.
func both(changes ...func(*Input)) func(*Input) {
	return func(in *Input) {
		for _, change := range changes {
			change(in)
		}
	}
}

func TestVersionsOfOnload(t *testing.T) {
	wants := func(version v1alpha1.StackVersion, changes ...func(*Input)) func(*Input) {
		return func(in *Input) {
			in.Pool.Spec.Stack.Onload.Version = version
			for _, change := range changes {
				change(in)
			}
		}
	}
	module := func(version host.Fact[string]) func(*Input) {
		return func(in *Input) { in.Facts.Bypass.Onload.Version = version }
	}
	const library = "libonload.so"
	judgeCases(t, map[string]ruleCase{
		"the wanted release": {input: onloadInput, change: wants(testRelease), want: healthy},
		"another release": {
			input: onloadInput, change: wants("9.1.1.38"),
			want: unhealthy, wantReason: "The module onload has version 9.1.1.37 (/proc/driver/onload/version) and " +
				"spec.stack.onload.version wants 9.1.1.38; load that release on the node, or change spec.stack.onload.version.",
		},
		"a branch by its name": {
			input: onloadInput,
			change: wants("v9_2", module(host.Known("24d0c2a7 2026-07-24 v9_2", "version")),
				changeFile(library, func(f *host.UserFile) { f.Version = "24d0c2a7 2026-07-24 v9_2" })),
			want: healthy,
		},
		"module's version cannot be read": {
			input: onloadInput, change: wants(testRelease, module(nothingRead[string]("/proc/driver/onload/version"))),
			want: unknowable, wantReason: "it may not be 9.1.1.37 of spec.stack.onload.version",
		},
		"library of another release": {
			input:  onloadInput,
			change: changeFile(library, func(f *host.UserFile) { f.Version = "9.1.0.15" }),
			want:   unhealthy, wantReason: "/opt/onload/usr/lib64/libonload.so has version 9.1.0.15 and the module onload " +
				"(/proc/driver/onload/version) wants 9.1.1.37; install that release below /opt/onload.",
		},
		"library of another release than the pool wants": {
			input:  onloadInput,
			change: wants(testRelease, changeFile(library, func(f *host.UserFile) { f.Version = "9.1.0.15" })),
			want:   unhealthy, wantReason: "wants 9.1.1.37; install that release below /opt/onload, or change spec.stack.onload.version.",
		},
		"library of no release with the module's interface": {
			input:  onloadInput,
			change: wants(testRelease, changeFile(library, func(f *host.UserFile) { f.Version = "" })),
			want:   healthy,
		},
		"module's interface cannot be read": {
			input: onloadInput,
			change: func(in *Input) {
				in.Facts.Bypass.Onload.InterfaceVersion = nothingRead[string]("/proc/driver/onload/version")
			},
			want: unknowable, wantReason: "The interface version (uk_intf_ver) of the module onload cannot be read",
		},
	})
}

// TestInterfaceOfOnload is about the checksum that a library must hold of its module.
func TestInterfaceOfOnload(t *testing.T) {
	const library, otherBuild = "libonload.so", "eab02e6ef04d8b708ae763dec014d89f"
	holds := func(digits ...string) func(*Input) {
		return changeFile(library, func(f *host.UserFile) { f.Digits = digits })
	}
	judgeCases(t, map[string]ruleCase{
		"library of another interface": {
			input: onloadInput, change: holds(controlPlaneInterface, otherBuild, efviInterface),
			want: unhealthy, wantReason: "/opt/onload/usr/lib64/libonload.so (9.1.1.37) has interface version " +
				otherBuild + " and the module onload (9.1.1.37) wants " + testInterface,
		},
		"another interface, and the control plane's is not known": {
			input: onloadInput, change: both(holds(controlPlaneInterface, otherBuild), removeFile("libefcp.so.1")),
			want: unhealthy, wantReason: "has interface version " + controlPlaneInterface + " or " + otherBuild + " and the module",
		},
		"a checksum that may be the control plane's": {
			input: onloadInput, change: both(holds(otherBuild, efviInterface), removeFile("libefcp.so.1")),
			want: healthy, wantReason: "Whether /opt/onload/usr/lib64/libonload.so (9.1.1.37) is of the build of the module onload is not known",
		},
		"a checksum that may be the control plane's of another release": {
			input: onloadInput,
			change: both(holds(otherBuild), changeFile("libefcp.so.1", func(f *host.UserFile) {
				f.Digits = []string{"77777777777777777777777777777777"}
			})),
			want: healthy, wantReason: "is not known",
		},
		"a checksum that ef_vi has, too": {
			input: onloadInput,
			change: both(holds(controlPlaneInterface, otherBuild), changeFile("libciul.so.1", func(f *host.UserFile) {
				f.Digits = []string{otherBuild}
			})),
			want: healthy, wantReason: "is not known",
		},
		"the module's interface in two halves": {
			input: onloadInput, change: holds(testInterface[16:], controlPlaneInterface, testInterface[:16]), want: healthy,
		},
		"half the module's interface": {
			input: onloadInput, change: holds(controlPlaneInterface, testInterface[:16]),
			want: healthy, wantReason: "is not known",
		},
		"more texts of digits than are kept": {
			input: onloadInput, change: holds(append(slices.Repeat([]string{"00000000000000000"}, 256), otherBuild, controlPlaneInterface)...),
			want: healthy, wantReason: "is not known",
		},
		"library of a release without an interface": {
			input: onloadInput, change: holds(),
			want: healthy, wantReason: "and the module wants " + testInterface + " (uk_intf_ver of /proc/driver/onload/version). Run a program",
		},
		"library of another release without an interface": {
			input: onloadInput, change: both(holds(), changeFile(library, func(f *host.UserFile) { f.Version = "9.1.0.15" })),
			want: unhealthy, wantReason: "has version 9.1.0.15",
		},
		"no library of Onload": {
			input: onloadInput, change: both(holds(), changeFile(library, func(f *host.UserFile) { f.Version = "" })),
			want: unknowable, wantReason: "/opt/onload/usr/lib64/libonload.so names neither a release of Onload nor the interface version",
		},
	})
}

func TestUserFilesOfOnload(t *testing.T) {
	const library = "libonload.so"
	judgeCases(t, map[string]ruleCase{
		"library missing": {
			input: onloadInput, change: removeFile(library),
			want: unhealthy, wantReason: "libonload.so is in none of usr/lib64, usr/lib, usr/bin and their like below /opt/onload",
		},
		"library of the extensions missing": {
			input: onloadInput, change: removeFile("libonload_ext.so.1"), want: healthy,
		},
		"launcher missing": {
			input: onloadInput,
			change: func(in *Input) {
				in.Pool.Spec.Stack.Onload.Start = v1alpha1.StartLauncher
				removeFile("onload")(in)
			},
			want: unhealthy, wantReason: "onload is in none of",
		},
		"library cannot be read": {
			input:  onloadInput,
			change: changeFile(library, func(f *host.UserFile) { *f = host.UserFile{Path: f.Path, Unreadable: "permission denied"} }),
			want:   unknowable, wantReason: "/opt/onload/usr/lib64/libonload.so cannot be read (permission denied)",
		},
		"folder cannot be read": {
			input: onloadInput,
			change: func(in *Input) {
				in.Facts.Bypass.UserSpaces["/opt/onload"] = host.UserSpace{
					Files: nothingRead[map[string]host.UserFile]("/opt/onload"),
				}
			},
			want: unknowable, wantReason: "The folder /opt/onload of spec.stack userSpace.hostPath cannot be read",
		},
		"folder was not looked into": {
			input: onloadInput, change: func(in *Input) { in.Facts.Bypass.UserSpaces = nil },
			want: unknowable, wantReason: "(not looked for)",
		},
	})
}

func TestVersionsOfOtherStacks(t *testing.T) {
	const library = "libonload_zf.so.1"
	judgeCases(t, map[string]ruleCase{
		"TCPDirect of the wanted release": {
			input: tcpDirectInput, change: func(in *Input) { in.Pool.Spec.Stack.TCPDirect.Version = "9.1.2.8" }, want: healthy,
		},
		"TCPDirect with an attribute that it does not know": {
			input: tcpDirectInput,
			change: func(in *Input) {
				in.Pool.Spec.Stack.TCPDirect.Attributes = []v1alpha1.TCPDirectAttribute{{Name: "spin", Value: "1"}}
			},
			want: healthy, wantReason: "Attribute spin in spec.stack.tcpDirect.attributes is not set",
		},
		"TCPDirect of another release": {
			input: tcpDirectInput, change: func(in *Input) { in.Pool.Spec.Stack.TCPDirect.Version = "9.2.0.1" },
			want: unhealthy, wantReason: "libonload_zf.so.1 has version 9.1.2.8 and spec.stack.tcpDirect.version wants 9.2.0.1",
		},
		"TCPDirect of no known release": {
			input: tcpDirectInput,
			change: func(in *Input) {
				in.Pool.Spec.Stack.TCPDirect.Version = "9.1.2.8"
				changeFile(library, func(f *host.UserFile) { f.Version = "" })(in)
			},
			want: unknowable, wantReason: "libonload_zf.so.1 does not say which release it is of",
		},
		"TCPDirect over another Onload": {
			input:  tcpDirectInput,
			change: changeFile(library, func(f *host.UserFile) { f.BuiltWith = "9.0.1.86" }),
			want:   unhealthy, wantReason: "libonload_zf.so.1 (9.1.2.8) was built with Onload 9.0.1.86 and the module onload has 9.1.1.37",
		},
		"TCPDirect of an unknown build": {
			input:  tcpDirectInput,
			change: changeFile(library, func(f *host.UserFile) { f.BuiltWith = "" }),
			want:   unknowable, wantReason: "does not say which release of Onload it was built with",
		},
		"TCPDirect with an unknown module": {
			input:  tcpDirectInput,
			change: func(in *Input) { in.Facts.Bypass.Onload.Version = nothingRead[string]("/proc/driver/onload/version") },
			want:   unknowable, wantReason: "/opt/onload/usr/lib64/libonload_zf.so.1 may not fit it",
		},
		"TCPDirect wants another Onload": {
			input: tcpDirectInput, change: func(in *Input) { in.Pool.Spec.Stack.TCPDirect.OnloadVersion = "9.2.0.4" },
			want: unhealthy, wantReason: "spec.stack.tcpDirect.onloadVersion wants 9.2.0.4",
		},
		"TCPDirect without its control plane library": {
			input: tcpDirectInput, change: removeFile("libefcp.so.1"),
			want: unhealthy, wantReason: "libefcp.so.1 is in none of",
		},
		"TCPDirect under its name without a number": {
			input: tcpDirectInput,
			change: func(in *Input) {
				files := in.Facts.Bypass.UserSpaces["/opt/onload"].Files.Value
				files["libonload_zf.so"] = files[library]
				delete(files, library)
			},
			want: healthy,
		},
		"ef_vi with a wanted release": {
			input: efviInput, change: func(in *Input) { in.Pool.Spec.Stack.EFVI.OnloadVersion = testRelease },
			want: healthy, wantReason: "libciul.so.1 does not say which release it is of",
		},
		"ef_vi linked statically": {
			input: efviInput, change: removeFile("libciul.so.1"),
			want: unhealthy, wantReason: "or use userSpace.source Application",
		},
	})
}

func TestHugepages(t *testing.T) {
	pages := func(total, free host.Fact[int64]) func(*Input) {
		return func(in *Input) {
			in.Facts.NUMANodes[0].Hugepages[0].Total, in.Facts.NUMANodes[0].Hugepages[0].Free = total, free
		}
	}
	none, some := host.Known[int64](0, ""), host.Known[int64](400, "")
	superBuffers := func() Input {
		in := onloadInput()
		nic := nicAt(in, firstX2)
		*nic = nicOf(firstX2, "ens1f0", "1924:0c03", "sfc")
		in.Pool.Spec.NICs[0].Devices = []v1alpha1.PCIID{"0c03"}
		return in
	}
	judgeCases(t, map[string]ruleCase{
		"none for TCPDirect": {
			input: tcpDirectInput, change: pages(none, none),
			want: unhealthy, wantReason: "There are no hugepages of 2 MiB on NUMA node 0, and TCPDirect cannot work without them",
		},
		"none for an X4": {input: superBuffers, change: pages(none, none), want: unhealthy, wantReason: "Onload cannot work without them"},
		"none for an X2": {input: onloadInput, change: pages(none, none), want: healthy},
		"all in use": {
			input: tcpDirectInput, change: pages(some, none),
			want: healthy, wantReason: "All 400 hugepages of 2 MiB on NUMA node 0 are in use",
		},
		"cannot be read": {
			input: tcpDirectInput, change: pages(some, nothingRead[int64]("free_hugepages")),
			want: unknowable, wantReason: "The hugepages of 2 MiB of NUMA node 0 cannot be read (permission denied)",
		},
		"their number cannot be read": {
			input: tcpDirectInput, change: pages(nothingRead[int64]("nr_hugepages"), some),
			want: unknowable, wantReason: "The hugepages of 2 MiB of NUMA node 0 cannot be read (permission denied)",
		},
		"the NUMA node is not there": {
			input: tcpDirectInput, change: func(in *Input) { in.Facts.NUMANodes = nil },
			want: unknowable, wantReason: "NUMA node 0 cannot be read (no pool of that size)",
		},
		"the whole node for a NIC of no NUMA node": {
			input: tcpDirectInput,
			change: func(in *Input) {
				nicAt(*in, firstX2).NUMANode = host.Absent[int]("numa_node", "the firmware reports -1")
				in.Facts.Hugepages = []host.HugepagePool{{SizeKibibytes: 2048, Total: none, Free: none}}
			},
			want: unhealthy, wantReason: "no hugepages of 2 MiB on the node",
		},
	})
}

func TestVFIO(t *testing.T) {
	withoutIOMMU := func(in *Input) {
		in.Pool.Spec.Stack.VFIO.Isolation = v1alpha1.VFIOIsolationNoIOMMU
		in.Facts.Bypass.VFIO.NoIOMMU.Value = true
		in.Facts.Bypass.DeviceNodes.Value["/dev/vfio/noiommu-42"] = host.DeviceNode{Mode: 0o600}
	}
	peer := func(driver string) func(*Input) {
		return func(in *Input) {
			nicAt(*in, secondX2).Driver.Value = driver
			in.Facts.Bypass.VFIO.Groups[secondX2] = 42
		}
	}
	judgeCases(t, map[string]ruleCase{
		"without an IOMMU": {input: vfioInput, change: withoutIOMMU, want: healthy},
		"without an IOMMU, forbidden": {
			input:  vfioInput,
			change: func(in *Input) { withoutIOMMU(in); in.Facts.Bypass.VFIO.NoIOMMU.Value = false },
			want:   unhealthy, wantReason: "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode is N",
		},
		"without an IOMMU, not told": {
			input:  vfioInput,
			change: func(in *Input) { withoutIOMMU(in); in.Facts.Bypass.VFIO.NoIOMMU = nothingRead[bool]("noiommu") },
			want:   unknowable, wantReason: "enable_unsafe_noiommu_mode of vfio cannot be read",
		},
		"without an IOMMU, no group": {
			input:  vfioInput,
			change: func(in *Input) { withoutIOMMU(in); in.Facts.Bypass.VFIO.Groups = nil },
			want:   unknowable, wantReason: "which exists once the NIC is bound to vfio-pci",
		},
		"no group": {
			input: vfioInput, change: func(in *Input) { in.Facts.Bypass.VFIO.Groups = nil },
			want: unknowable, wantReason: "The IOMMU group of NIC 0000:af:00.0 cannot be read",
		},
		"no device file of the group": {
			input: vfioInput, change: func(in *Input) { delete(in.Facts.Bypass.DeviceNodes.Value, "/dev/vfio/42") },
			want: unhealthy, wantReason: "The node has no /dev/vfio/42",
		},
		"no device file of VFIO": {
			input: vfioInput, change: func(in *Input) { delete(in.Facts.Bypass.DeviceNodes.Value, "/dev/vfio/vfio") },
			want: unhealthy, wantReason: "The node has no /dev/vfio/vfio",
		},
		"peer with another driver": {
			input: vfioInput, change: peer("sfc"),
			want: unhealthy, wantReason: "IOMMU group 42 of NIC 0000:af:00.0 also holds 0000:3b:00.1 (sfc)",
		},
		"peer under vfio-pci": {
			input: vfioInput, change: peer("vfio-pci"),
			want: healthy, wantReason: "also holds 0000:3b:00.1, and one program at a time",
		},
	})
}

// virtualInput is a pool that creates virtual functions on the E810, which has as many.
func virtualInput(count int) Input {
	in := vfioInput()
	in.Pool.Spec.NICs = []v1alpha1.NICSelector{{Vendor: "8086", Drivers: []v1alpha1.DriverName{"ice"}}}
	in.Pool.Spec.VirtualFunctions = &v1alpha1.VirtualFunctionsSpec{CountPerNIC: 2}
	nic := nicAt(in, firstE810)
	*nic = nicOf(firstE810, "ens2f0", "8086:1592", "ice")
	addresses := []string{"0000:af:01.0", "0000:af:01.1"}[:count]
	nic.VirtualFunctions = addresses
	nic.MaximumVirtualFunctions = host.Known(128, "sriov_totalvfs")
	for i, address := range addresses {
		function := nicOf(address, "", "8086:1889", "vfio-pci")
		function.Name = host.Absent[string]("/sys/class/net", "no interface on this device")
		function.PhysicalFunction = host.Known(firstE810, "physfn")
		in.Facts.NICs = append(in.Facts.NICs, function)
		in.Facts.Bypass.VFIO.Groups[address] = 50 + i
		in.Facts.Bypass.DeviceNodes.Value["/dev/vfio/5"+string(rune('0'+i))] = host.DeviceNode{Mode: 0o600}
	}
	return in
}

func TestVirtualFunctions(t *testing.T) {
	judgeCases(t, map[string]ruleCase{
		"all": {input: func() Input { return virtualInput(2) }, want: healthy},
		"some": {
			input: func() Input { return virtualInput(1) },
			want:  healthy, wantReason: "NIC ens2f0 (0000:af:00.0) has 1 of the 2 virtual functions",
		},
		"none yet": {
			input: func() Input { return virtualInput(0) },
			want:  unhealthy, wantReason: "has 0 of the 2 virtual functions",
		},
		"more than the NIC offers": {
			input: func() Input { return virtualInput(0) },
			change: func(in *Input) {
				nicAt(*in, firstE810).MaximumVirtualFunctions.Value = 1
			},
			want: unhealthy, wantReason: "(sriov_numvfs) and offers 1 at most",
		},
		"as many as the NIC offers": {
			input:  func() Input { return virtualInput(0) },
			change: func(in *Input) { nicAt(*in, firstE810).MaximumVirtualFunctions.Value = 2 },
			want:   unhealthy, wantReason: "(sriov_numvfs); the profile",
		},
		"what the NIC offers is not told": {
			input: func() Input { return virtualInput(0) },
			change: func(in *Input) {
				nicAt(*in, firstE810).MaximumVirtualFunctions = host.Absent[int]("sriov_totalvfs", "no such file")
			},
			want: unhealthy, wantReason: "(sriov_numvfs); the profile",
		},
	})
	if got, want := addressesOf(Devices(virtualInput(2))), []string{"0000:af:01.0", "0000:af:01.1"}; !cmp.Equal(got, want) {
		t.Errorf("the devices are %v, want %v", got, want)
	}
	if none := firstDevice(t, virtualInput(0)); none.NIC.PCIAddress != firstE810 || none.Units != 0 {
		t.Errorf("a NIC without virtual functions stands for itself without units, not as %s with %d", none.NIC.PCIAddress, none.Units)
	}
	lost := virtualInput(1)
	nicAt(lost, firstE810).VirtualFunctions = []string{"0000:af:01.7"}
	if device := firstDevice(t, lost); device.Health == healthy {
		t.Errorf("a virtual function that the host does not list is %s", device.Health)
	}
}

func addressesOf(devices []Device) []string {
	addresses := make([]string, 0, len(devices))
	for _, device := range devices {
		addresses = append(addresses, device.NIC.PCIAddress)
	}
	return addresses
}

// TestLibraryWithoutAnyVersion: neither the release nor the build of a library is taken for right because it does not say it.
func TestLibraryWithoutAnyVersion(t *testing.T) {
	in := onloadInput()
	changeFile("libonload.so", func(f *host.UserFile) { *f = host.UserFile{Path: f.Path} })(&in)
	want := []string{
		"/opt/onload/usr/lib64/libonload.so names neither a release of Onload nor the interface version",
		"/opt/onload/usr/lib64/libonload.so does not say which release it is of, and the module onload",
	}
	device := firstDevice(t, in)
	if device.Health != unknowable || len(device.Reasons) != len(want) {
		t.Fatalf("health %s: %q", device.Health, device.Reasons)
	}
	for i, reason := range device.Reasons {
		if !strings.HasPrefix(reason, want[i]) {
			t.Errorf("reason %q, want %q", reason, want[i])
		}
	}
}
