// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

const (
	healthy    = v1alpha1.NICHealthy
	unhealthy  = v1alpha1.NICUnhealthy
	unknowable = v1alpha1.NICUnknown
	ineligible = v1alpha1.NICIneligible
)

// ruleCase is a pool whose first NIC is judged after a change of the facts or of the spec.
type ruleCase struct {
	input  func() Input
	change func(in *Input)
	want   v1alpha1.NICHealth
	// wantReason is a part of the first reason; "" for no reason at all.
	wantReason string
}

func judgeCases(t *testing.T, cases map[string]ruleCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := tc.input()
			if tc.change != nil {
				tc.change(&in)
			}
			device := firstDevice(t, in)
			if device.Health != tc.want {
				t.Errorf("health is %s, want %s: %v", device.Health, tc.want, device.Reasons)
			}
			reason := strings.Join(device.Reasons[:min(len(device.Reasons), 1)], "")
			if !strings.Contains(reason, tc.wantReason) || (tc.wantReason == "") != (reason == "") {
				t.Errorf("the first reason is %q, want %q in it", reason, tc.wantReason)
			}
			for _, reason := range device.Reasons {
				if len(reason) > 512 || !strings.HasSuffix(reason, ".") || strings.Contains(reason, "%!") {
					t.Errorf("not a sentence for a status: %q", reason)
				}
			}
		})
	}
}

func nothingRead[T any](source string) host.Fact[T] {
	return host.Absent[T](source, "permission denied")
}

func TestGoodNICs(t *testing.T) {
	judgeCases(t, map[string]ruleCase{
		"Onload":    {input: onloadInput, want: healthy},
		"TCPDirect": {input: tcpDirectInput, want: healthy},
		"EFVI":      {input: efviInput, want: healthy},
		"VFIO":      {input: vfioInput, want: healthy},
		"AF_XDP":    {input: experimentalInput, want: healthy, wantReason: "experimental, without the vendor's support"},
		"the application's own user files": {
			input: func() Input {
				in := onloadInput()
				in.Pool.Spec.Stack.Onload.UserSpace = v1alpha1.UserSpaceSpec{Source: v1alpha1.UserSpaceApplication}
				in.Facts.Bypass.UserSpaces = nil
				return in
			},
			want: healthy,
		},
	})
}

func TestManagementTraffic(t *testing.T) {
	route := func(prefix, name string) host.Route {
		return host.Route{Destination: netip.MustParsePrefix(prefix), Interface: name}
	}
	judgeCases(t, map[string]ruleCase{
		"default route": {
			input:  onloadInput,
			change: func(in *Input) { in.Facts.Bypass.Networks.Value[0].Interface = "ens1f0" },
			want:   ineligible, wantReason: "Interface ens1f0 carries the default route",
		},
		"default route over a bond": {
			input: onloadInput,
			change: func(in *Input) {
				in.Facts.Bypass.Networks.Value[0].Interface = "bond0"
				in.Facts.Bypass.Lower = map[string][]string{"bond0": {"ens1f0", "ens1f1"}}
			},
			want: ineligible, wantReason: "Interface ens1f0 carries the default route",
		},
		"address of the node": {
			input: onloadInput,
			change: func(in *Input) {
				in.Facts.Bypass.Networks.Value = append(in.Facts.Bypass.Networks.Value, route("192.168.7.0/24", "ens1f0"))
				in.HostAddresses = append(in.HostAddresses, netip.MustParseAddr("192.168.7.17"))
			},
			want: ineligible, wantReason: "192.168.7.17",
		},
		"NIC of a virtual function that the pool creates": {
			input: func() Input {
				in := virtualInput(2)
				in.Facts.Bypass.Networks.Value[0].Interface = "ens2f0"
				return in
			},
			want: ineligible, wantReason: "Interface ens2f0 carries the default route",
		},
		"port of a switch that is not traced": {
			input: onloadInput,
			change: func(in *Input) {
				in.Facts.Bypass.Networks.Value = []host.Route{route("0.0.0.0/0", "br-ex")}
				in.Facts.Bypass.Lower = map[string][]string{"ovs-system": {"ens1f0"}}
			},
			want: ineligible, wantReason: "ens1f0 is a port of ovs-system",
		},
		"free NIC beside a switch that is not traced": {
			input: onloadInput,
			change: func(in *Input) {
				in.Facts.Bypass.Networks.Value = []host.Route{route("0.0.0.0/0", "br-ex")}
				in.Facts.Bypass.Lower = map[string][]string{"ovs-system": {"eno1"}}
			},
			want: healthy,
		},
		"routes cannot be read": {
			input:  onloadInput,
			change: func(in *Input) { in.Facts.Bypass.Networks = nothingRead[[]host.Route]("/proc/1/net/route") },
			want:   unknowable, wantReason: "/proc/1/net/route (permission denied)",
		},
		"no route leads anywhere": {
			input:  onloadInput,
			change: func(in *Input) { in.Facts.Bypass.Networks.Value = nil },
			want:   unknowable, wantReason: "is a default route or leads to an address of the node",
		},
		"addresses were not given": {
			input: onloadInput, change: func(in *Input) { in.HostAddresses = nil },
			want: unknowable, wantReason: "addresses by which the cluster knows the node were not given",
		},
	})
}

func TestOtherPools(t *testing.T) {
	other := func(node string, functions int32, terms ...v1alpha1.NICSelector) func(*Input) {
		return func(in *Input) {
			in.Pool.Created = new(metav1.Unix(2000, 0))
			in.Pool.OtherPools = []OtherPool{{
				Claimant: Claimant{
					Name: "other", Standing: Standing{Created: new(metav1.Unix(1000, 0))}, ResourceName: "x.example/other",
					NICs: terms, VirtualFunctions: functions,
				},
				Nodes: []string{node},
			}}
		}
	}
	younger := func(change func(*Input)) func(*Input) {
		return func(in *Input) {
			change(in)
			in.Pool.OtherPools[0].Created = new(metav1.Unix(3000, 0))
		}
	}
	holding := func(change func(*Input), pool string, addresses ...string) func(*Input) {
		return func(in *Input) {
			change(in)
			for _, address := range addresses {
				in.Pool.Holdings = append(in.Pool.Holdings, Holding{PCIAddress: address, Pool: pool, Nodes: []string{testNode}})
			}
		}
	}
	sfc := v1alpha1.NICSelector{Drivers: []v1alpha1.DriverName{"sfc"}, Link: v1alpha1.LinkUp}
	e810 := v1alpha1.NICSelector{PCIAddresses: []v1alpha1.PCIAddress{firstE810}}
	function := func() Input {
		in := virtualInput(2)
		in.Pool.Spec.VirtualFunctions = nil
		in.Pool.Spec.NICs = []v1alpha1.NICSelector{{Vendor: "8086", Role: v1alpha1.RoleVirtualFunction}}
		return in
	}
	judgeCases(t, map[string]ruleCase{
		"NIC of an older pool": {
			input: onloadInput, change: other(testNode, 0, sfc),
			want: ineligible, wantReason: "NIC ens1f0 (0000:3b:00.0) belongs to BypassNICPool other, which had it first",
		},
		"NIC that a younger pool claims": {input: onloadInput, change: younger(other(testNode, 0, sfc)), want: healthy},
		"NIC that a younger pool has had": {
			input: onloadInput, change: holding(younger(other(testNode, 0, sfc)), "other", firstX2),
			want: ineligible, wantReason: "belongs to BypassNICPool other",
		},
		"NIC that this pool has had, and an older one claims now": {
			input: onloadInput, change: holding(other(testNode, 0, sfc), onloadInput().Pool.Name, firstX2), want: healthy,
		},
		"a link that is down changes nothing": {
			input: onloadInput,
			change: func(in *Input) {
				other(testNode, 0, sfc)(in)
				nicAt(*in, firstX2).Carrier.Value = false
			},
			want: ineligible, wantReason: "BypassNICPool other",
		},
		"same NIC of another node": {input: onloadInput, change: other("trader-2", 0, sfc), want: healthy},
		"other NIC":                {input: onloadInput, change: other(testNode, 0, e810), want: healthy},
		"resource of another pool on other nodes": {
			input: onloadInput, change: func(in *Input) { in.Pool.ResourceOwner = "other" },
			want: ineligible, wantReason: "belongs to BypassNICPool other, which had it first, so this pool hands out no NIC",
		},
		"NIC on which this pool creates virtual functions": {
			input: func() Input { return virtualInput(2) }, change: other(testNode, 0, e810),
			want: ineligible, wantReason: "on which NIC 0000:af:01.0 is created, belongs to BypassNICPool other",
		},
		"virtual function of the NIC on which this pool would create some": {
			input:  func() Input { return virtualInput(2) },
			change: other(testNode, 0, v1alpha1.NICSelector{Vendor: "8086", Role: v1alpha1.RoleVirtualFunction}),
			want:   ineligible, wantReason: "BypassNICPool other",
		},
		"virtual function that the other pool creates": {
			input: function, change: other(testNode, 2, e810),
			want: ineligible, wantReason: "BypassNICPool other",
		},
		"virtual function beside the other pool's NIC": {input: function, change: other(testNode, 0, e810), want: healthy},
	})
}

func TestSupport(t *testing.T) {
	identify := func(id, driver string) func(*Input) {
		return func(in *Input) {
			nic := nicAt(*in, firstX2)
			*nic = nicOf(firstX2, "ens1f0", id, driver)
			in.Pool.Spec.NICs = []v1alpha1.NICSelector{{PCIAddresses: []v1alpha1.PCIAddress{firstX2}}}
			in.Facts.Bypass.Onload.Modules.Value[driver] = "1"
		}
	}
	judgeCases(t, map[string]ruleCase{
		"series 7000": {
			input: onloadInput, change: identify("1924:0903", "sfc"),
			want: ineligible, wantReason: "(1924:0903) is of series 7000, and Onload needs series 8000, X2, X3 or X4",
		},
		"series 8000": {input: efviInput, change: identify("1924:0a03", "sfc"), want: healthy},
		"X3":          {input: onloadInput, change: identify("10ee:5084", "xilinx_efct"), want: healthy},
		"X3 under the wrong driver": {
			input: onloadInput, change: identify("10ee:5084", "sfc"),
			want: unhealthy, wantReason: "bound to driver sfc and Onload needs xilinx_efct",
		},
		"Intel": {
			input: onloadInput, change: identify("8086:1592", "ice"),
			want: ineligible, wantReason: "datapath ExperimentalAFXDP only",
		},
		"a NIC that nobody knows": {
			input: tcpDirectInput, change: identify("dead:beef", "x"),
			want: ineligible, wantReason: "of no series that TCPDirect knows",
		},
		"identifiers cannot be read": {
			input: onloadInput,
			change: func(in *Input) {
				identify("1924:0b03", "sfc")(in)
				nicAt(*in, firstX2).Device = nothingRead[string]("device")
			},
			want: unknowable, wantReason: "A PCI identifier of ens1f0 (0000:3b:00.0) cannot be read",
		},
		"VFIO of a bifurcated NIC": {
			input: vfioInput,
			change: func(in *Input) {
				nic := nicAt(*in, firstE810)
				nic.Vendor.Value, nic.Device.Value = "0x15b3", "0x101d"
			},
			want: healthy, wantReason: "beside the kernel driver mlx5_core",
		},
	})
}

func TestNativeXDP(t *testing.T) {
	drive := func(driver host.Fact[string]) func(*Input) {
		return func(in *Input) { nicAt(*in, firstE810).Driver = driver }
	}
	judgeCases(t, map[string]ruleCase{
		"virtio": {
			input: experimentalInput, change: drive(host.Known("virtio-pci", "")),
			want: healthy, wantReason: "experimental",
		},
		"driver without XDP": {
			input: experimentalInput, change: drive(host.Known("e1000e", "")),
			want: ineligible, wantReason: "Driver e1000e of NIC ens2f0 (0000:af:00.0) is not known to have native XDP, " +
				"without which an accelerated program makes the kernel panic; select NICs with one of the drivers",
		},
		"driver cannot be read": {
			input: experimentalInput, change: drive(nothingRead[string]("driver")),
			want: unknowable, wantReason: "whether it has native XDP is not known",
		},
	})
}

func TestDriver(t *testing.T) {
	judgeCases(t, map[string]ruleCase{
		"VFIO without vfio-pci": {
			input:  vfioInput,
			change: func(in *Input) { nicAt(*in, firstE810).Driver.Value = "ice" },
			want:   unhealthy, wantReason: "bound to driver ice and VFIO needs vfio-pci",
		},
		"no driver": {
			input:  vfioInput,
			change: func(in *Input) { nicAt(*in, firstE810).Driver = host.Absent[string]("driver", "no driver is bound") },
			want:   unhealthy, wantReason: "bound to no driver and VFIO needs vfio-pci",
		},
		"vfio-pci under Onload": {
			input:  onloadInput,
			change: func(in *Input) { nicAt(*in, firstX2).Driver.Value = "vfio-pci" },
			want:   unhealthy, wantReason: "bound to driver vfio-pci and Onload needs sfc; unbind it",
		},
		"driver cannot be read": {
			input:  onloadInput,
			change: func(in *Input) { nicAt(*in, firstX2).Driver = nothingRead[string]("driver") },
			want:   unknowable, wantReason: "it may be another than sfc",
		},
	})
}

func TestNICState(t *testing.T) {
	away := func(attachment v1alpha1.NetworkAttachmentType) func(*Input) {
		return func(in *Input) {
			in.Pool.Spec.NetworkAttachment = &v1alpha1.NetworkAttachmentSpec{Type: attachment}
			nic := nicAt(*in, firstX2)
			nic.Name = host.Absent[string]("/sys/class/net", "no interface on this device")
			nic.Carrier = host.Absent[bool]("/sys/class/net", "no interface on this device")
		}
	}
	judgeCases(t, map[string]ruleCase{
		"no link": {
			input: onloadInput, change: func(in *Input) { nicAt(*in, firstX2).Carrier.Value = false },
			want: unhealthy, wantReason: "Interface ens1f0 of NIC 0000:3b:00.0 has no link (/sys/class/net/ens1f0/carrier is 0)",
		},
		"link cannot be read": {
			input: onloadInput, change: func(in *Input) { nicAt(*in, firstX2).Carrier = nothingRead[bool]("carrier") },
			want: unknowable, wantReason: "The link of ens1f0 (0000:3b:00.0) cannot be read from carrier (permission denied)",
		},
		"interface in a pod": {
			input: onloadInput, change: away(v1alpha1.AttachmentHostDevice),
			want: healthy, wantReason: "in the network namespace of a pod",
		},
		"interface gone that nothing moves": {
			input: onloadInput, change: away(v1alpha1.AttachmentMACVLAN),
			want: unhealthy, wantReason: "not registered with sfc_resource",
		},
		"NUMA node unknown": {
			input: onloadInput,
			change: func(in *Input) {
				nicAt(*in, firstX2).NUMANode = host.Absent[int]("numa_node", "the firmware reports -1")
			},
			want: healthy, wantReason: "numa_node (the firmware reports -1)",
		},
		"PCIe link with fewer lanes": {
			input: onloadInput,
			change: func(in *Input) {
				nicAt(*in, firstX2).LinkWidth.Value = 4
				nicAt(*in, firstX2).LinkSpeed.Value = "2.5 GT/s PCIe"
			},
			want: healthy, wantReason: "trained to 2.5 GT/s PCIe of 8.0 GT/s PCIe and x4 of x8",
		},
		"PCIe link with one lane": {
			input: onloadInput, change: link(1, "8.0 GT/s PCIe"), want: healthy, wantReason: "trained to x1 of x8 (",
		},
		"PCIe link that is slow": {
			input: onloadInput, change: link(8, "5.0 GT/s PCIe"), want: healthy, wantReason: "trained to 5.0 GT/s PCIe of 8.0 GT/s PCIe (",
		},
		"PCIe link at its best": {input: onloadInput, change: link(8, "8.0 GT/s PCIe"), want: healthy},
		"PCIe link in a slower, narrower slot": {
			input: onloadInput, change: func(in *Input) {
				link(4, "2.5 GT/s PCIe")(in)
				nic := nicAt(*in, firstX2)
				nic.PortLinkSpeed, nic.PortLinkWidth = host.Known("2.5 GT/s PCIe", ""), host.Known(4, "")
			}, want: healthy,
		},
		"PCIe link of a virtual port": {
			input: onloadInput, change: func(in *Input) {
				link(1, "2.5 GT/s PCIe")(in)
				nicAt(*in, firstX2).PortLinkSpeed = host.Known("Unknown", "")
			}, want: healthy,
		},
		"PCIe speed not told": {
			input: onloadInput, change: link(4, "Unknown"), want: healthy, wantReason: "trained to x4 of x8 (",
		},
		"PCIe width not told": {
			input: onloadInput, change: link(0, "2.5 GT/s PCIe"), want: healthy, wantReason: "trained to 2.5 GT/s PCIe of 8.0 GT/s PCIe (",
		},
		"no PCIe link": {
			input: onloadInput,
			change: func(in *Input) {
				nic := nicAt(*in, firstX2)
				nic.LinkSpeed, nic.LinkWidth = host.Known("Unknown", ""), host.Known(0, "")
			},
			want: healthy,
		},
	})
}

// link trains the PCIe link of the first X2 port, which can do 8 lanes of 8 GT/s.
func link(width int, speed string) func(*Input) {
	return func(in *Input) {
		nic := nicAt(*in, firstX2)
		nic.LinkWidth, nic.LinkSpeed = host.Known(width, ""), host.Known(speed, "")
	}
}

// ofOnload makes a change of what Onload's modules say.
func ofOnload(change func(*host.Onload)) func(*Input) {
	return func(in *Input) { change(&in.Facts.Bypass.Onload) }
}

func TestModules(t *testing.T) {
	judgeCases(t, map[string]ruleCase{
		"modules not loaded, the kernel's sfc is": {
			input: onloadInput,
			change: ofOnload(func(o *host.Onload) {
				*o = host.Onload{Modules: host.Known(map[string]string{"sfc": ""}, "/sys/module")}
			}),
			want: unhealthy, wantReason: "has not loaded onload, sfc_resource (/sys/module), which Onload needs",
		},
		"registered under the kernel's own sfc": {
			input: onloadInput, change: ofOnload(func(o *host.Onload) { o.Modules.Value["sfc"] = "" }),
			want: unhealthy, wantReason: "is registered with sfc_resource, but not by the driver of Onload's release: the loaded module sfc has no version",
		},
		"no word about the module sfc": {
			input: onloadInput, change: ofOnload(func(o *host.Onload) { delete(o.Modules.Value, "sfc") }), want: healthy,
		},
		"modules cannot be read": {
			input:  onloadInput,
			change: ofOnload(func(o *host.Onload) { o.Modules = nothingRead[map[string]string]("/sys/module") }),
			want:   unknowable, wantReason: "The list of loaded modules cannot be read",
		},
		"sfc_char missing for ef_vi": {
			input: efviInput, change: ofOnload(func(o *host.Onload) { delete(o.Modules.Value, "sfc_char") }),
			want: unhealthy, wantReason: "has not loaded sfc_char",
		},
	})
}

func TestDeviceNodes(t *testing.T) {
	node := func(path string, mode uint32) func(*Input) {
		return func(in *Input) {
			if mode == 0 {
				delete(in.Facts.Bypass.DeviceNodes.Value, path)
				return
			}
			in.Facts.Bypass.DeviceNodes.Value[path] = host.DeviceNode{Mode: mode}
		}
	}
	judgeCases(t, map[string]ruleCase{
		"device node missing": {
			input: onloadInput, change: node("/dev/onload", 0),
			want: unhealthy, wantReason: "The node has no /dev/onload, without which",
		},
		"device node of epoll missing": {
			input: onloadInput, change: node("/dev/onload_epoll", 0),
			want: unhealthy, wantReason: "The node has no /dev/onload_epoll, without which",
		},
		"device node of root": {
			input: tcpDirectInput, change: node("/dev/sfc_char", 0o600),
			want: unhealthy, wantReason: "/dev/sfc_char has mode 0600 and 0666 is wanted",
		},
		"stand-in of a test tree": {
			input: onloadInput,
			change: func(in *Input) {
				in.Facts.Bypass.DeviceNodes.Value["/dev/onload"] = host.DeviceNode{Mode: 0o644, Simulated: true}
			},
			want: healthy,
		},
		"device nodes cannot be read": {
			input:  efviInput,
			change: func(in *Input) { in.Facts.Bypass.DeviceNodes = nothingRead[map[string]host.DeviceNode]("/dev") },
			want:   unknowable, wantReason: "The device files of EFVI cannot be read from /dev",
		},
	})
}

func TestControlPlane(t *testing.T) {
	hostPlane := host.NamespacedProcess{PID: 608, Namespace: "net:[4026531840]"}
	podPlane := host.NamespacedProcess{PID: 1391, Namespace: "net:[4026532523]"}
	// planes is a host with a stack in its own network namespace and one in that of a pod.
	planes := func(living ...host.NamespacedProcess) func(*host.Onload) {
		return func(o *host.Onload) {
			o.Stacks.Value, o.ControlPlanes, o.ControlPlanePIDs.Value = 2, living, nil
			for _, process := range living {
				o.ControlPlanePIDs.Value = append(o.ControlPlanePIDs.Value, process.PID)
			}
			o.StackOwners = map[int]host.NamespacedProcess{
				0: {PID: 1104, Namespace: hostPlane.Namespace}, 4: {PID: 1372, Namespace: podPlane.Namespace},
			}
		}
	}
	judgeCases(t, map[string]ruleCase{
		"no control plane and no stacks": {
			input: onloadInput, change: ofOnload(func(o *host.Onload) { o.ControlPlanePIDs.Value = nil }), want: healthy,
		},
		"no control plane below stacks": {
			input:  onloadInput,
			change: ofOnload(func(o *host.Onload) { o.ControlPlanePIDs.Value, o.Stacks.Value = nil, 2 }),
			want:   unhealthy, wantReason: "2 stacks of Onload run without a control plane (/proc/driver/onload/cp_server_pids is empty)",
		},
		"no control plane, and the stacks cannot be read": {
			input: onloadInput,
			change: ofOnload(func(o *host.Onload) {
				o.ControlPlanePIDs.Value, o.Stacks = nil, host.Absent[int]("/proc/driver/onload/stacks", "not a line of a stack")
			}),
			want: unknowable, wantReason: "The number of Onload's stacks cannot be read from /proc/driver/onload/stacks (not a line of a stack)",
		},
		"a control plane for each network namespace": {
			input: onloadInput, change: ofOnload(planes(hostPlane, podPlane)), want: healthy,
		},
		"a pod's control plane is dead": {
			input: onloadInput, change: ofOnload(planes(hostPlane)),
			want: unhealthy, wantReason: "Stack 4 of Onload, of process 1372, runs without a control plane: its network namespace (net:[4026532523]) has no",
		},
		"the host's control plane is dead": {
			input: onloadInput, change: ofOnload(planes(podPlane)),
			want: unhealthy, wantReason: "Stack 0 of Onload, of process 1104, runs without",
		},
		"a control plane in a namespace that is not known": {
			input: onloadInput, change: ofOnload(planes(hostPlane, host.NamespacedProcess{PID: 9})), want: healthy,
		},
		"a stack in a namespace that is not known": {
			input: onloadInput,
			change: ofOnload(func(o *host.Onload) {
				planes(hostPlane)(o)
				o.StackOwners[4] = host.NamespacedProcess{PID: 1372}
			}),
			want: healthy,
		},
		"control plane cannot be read": {
			input:  onloadInput,
			change: ofOnload(func(o *host.Onload) { o.ControlPlanePIDs = nothingRead[[]int]("cp_server_pids") }),
			want:   unknowable, wantReason: "cp_server_pids (permission denied)",
		},
		"ef_vi needs no control plane": {
			input:  efviInput,
			change: ofOnload(func(o *host.Onload) { o.ControlPlanePIDs = nothingRead[[]int]("cp_server_pids") }),
			want:   healthy,
		},
	})
}

func TestRegistration(t *testing.T) {
	judgeCases(t, map[string]ruleCase{
		"NIC not registered": {
			input: onloadInput, change: ofOnload(func(o *host.Onload) { o.Interfaces.Value = []string{"ens1f1"} }),
			want: unhealthy, wantReason: "(/proc/driver/sfc_resource has ens1f1), so programs run on kernel sockets; load the driver sfc",
		},
		"NIC under the kernel's own driver": {
			input:  onloadInput,
			change: ofOnload(func(o *host.Onload) { o.Interfaces.Value, o.Modules.Value["sfc"] = nil, "" }),
			want:   unhealthy, wantReason: "has none), so programs run on kernel sockets; the loaded module sfc has no version, so it is the kernel's own",
		},
		"NIC of AF_XDP not registered": {
			input: experimentalInput, change: ofOnload(func(o *host.Onload) { o.Interfaces.Value = nil }),
			want: unhealthy, wantReason: "/sys/module/sfc_resource/afxdp/register",
		},
		"NIC registered by its address": {
			input: onloadInput, change: ofOnload(func(o *host.Onload) { o.Interfaces.Value = []string{firstX2} }), want: healthy,
		},
		"registered NICs cannot be read": {
			input:  onloadInput,
			change: ofOnload(func(o *host.Onload) { o.Interfaces = nothingRead[[]string]("/proc/driver/sfc_resource") }),
			want:   unknowable, wantReason: "The NICs that sfc_resource knows cannot be read",
		},
	})
}

func TestVirtualInterfaces(t *testing.T) {
	judgeCases(t, map[string]ruleCase{
		"no virtual interfaces": {
			input:  onloadInput,
			change: ofOnload(func(o *host.Onload) { o.Resources.Value["VI"] = host.ResourceCount{Total: host.Known(0, "")} }),
			want:   unhealthy, wantReason: "total of VI in /proc/driver/sfc_resource/resources is 0",
		},
		"all virtual interfaces in use": {
			input: onloadInput,
			change: ofOnload(func(o *host.Onload) {
				o.Resources.Value["VI"] = host.ResourceCount{Total: host.Known(1, ""), Current: 1}
			}),
			want: healthy, wantReason: "All 1 virtual interfaces (VIs) of the node's NICs are in use",
		},
		"number of virtual interfaces is not told": {
			input:  onloadInput,
			change: ofOnload(func(o *host.Onload) { o.Resources.Value["VI"] = host.ResourceCount{} }),
			want:   unknowable, wantReason: "does not say how many virtual interfaces",
		},
		"resources cannot be read": {
			input: efviInput,
			change: ofOnload(func(o *host.Onload) {
				o.Resources = nothingRead[map[string]host.ResourceCount]("/proc/driver/sfc_resource/resources")
			}),
			want: unknowable, wantReason: "The number of virtual interfaces (VIs) cannot be read",
		},
	})
}
