// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"bufio"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

const (
	testNIC  = "0000:3b:00.0"
	devices  = "bus/pci/devices/"
	nicUnit  = "lowlatency-bypass-nic-0000-3b-00.0.service"
	override = "/driver_override"
)

// fakeKernel is a tree like sysfs, in which a device that is written to drivers_probe gets the driver that its
// driver_override names, as drivers/pci/pci-driver.c does it. Procfs is below the folder proc.
type fakeKernel struct {
	t    *testing.T
	root string
	// refuses is a driver that takes no device.
	refuses string
	// wasProbing has the device's own driver take it once more: it began before it was told to leave it.
	wasProbing bool
}

// newFakeKernel has a NIC with an interface, its driver sfc, and an IOMMU.
func newFakeKernel(t *testing.T) *fakeKernel {
	k := &fakeKernel{t: t, root: tree(t, map[string]string{
		"proc/net/route":             "Iface\tDestination\tGateway\neno1\t00000000\t0102A8C0\nens1f0\t0002A8C0\t00000000\n",
		"bus/pci/drivers/sfc/unbind": "", "bus/pci/drivers/vfio-pci/unbind": "", "bus/pci/drivers/iavf/unbind": "",
		"kernel/iommu_groups/7/name": "",
	})}
	k.device(testNIC, "sfc", "ens1f0")
	if err := syscall.Mkfifo(k.path("bus/pci/drivers_probe"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Open for writing, too, it never ends between two writers, whose lines would be lost or read as one.
	addresses, err := os.OpenFile(k.path("bus/pci/drivers_probe"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = addresses.Close() })
	go k.probe(addresses)
	return k
}

func (k *fakeKernel) path(name string) string { return filepath.Join(k.root, name) }

func (k *fakeKernel) write(name, content string) {
	k.t.Helper()
	if err := os.MkdirAll(filepath.Dir(k.path(name)), 0o755); err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(k.path(name), []byte(content), 0o644); err != nil {
		k.t.Fatal(err)
	}
}

func (k *fakeKernel) link(target, name string) {
	k.t.Helper()
	_ = os.Remove(k.path(name))
	if err := os.Symlink(target, k.path(name)); err != nil {
		k.t.Fatal(err)
	}
}

// device adds a device with an IOMMU group. Driver and interface may be "".
func (k *fakeKernel) device(address, driver, interfaceName string) {
	k.t.Helper()
	k.write(devices+address+override, "(null)\n")
	k.link("../../../../kernel/iommu_groups/7", devices+address+"/iommu_group")
	if driver != "" {
		k.link("../../drivers/"+driver, devices+address+"/driver")
	}
	if interfaceName != "" {
		k.write(devices+address+"/net/"+interfaceName+"/mtu", "1500\n")
	}
}

// functions gives the NIC virtual functions, which the kernel of this test makes beforehand.
func (k *fakeKernel) functions(have string, addresses ...string) {
	k.t.Helper()
	k.write(devices+testNIC+"/sriov_numvfs", have+"\n")
	k.write(devices+testNIC+"/sriov_totalvfs", "16\n")
	k.write(devices+testNIC+"/sriov_drivers_autoprobe", "1\n")
	for i, address := range addresses {
		k.device(address, "", "")
		k.link("../"+address, devices+testNIC+"/virtfn"+string(rune('0'+i)))
	}
}

// probe binds the devices that are written to drivers_probe.
func (k *fakeKernel) probe(addresses io.Reader) {
	lines := bufio.NewScanner(addresses)
	for lines.Scan() {
		device := devices + lines.Text()
		wanted, err := os.ReadFile(k.path(device + override))
		if err != nil {
			continue
		}
		driver := strings.TrimSpace(string(wanted))
		if driver == "" || k.wasProbing {
			driver, k.wasProbing = "sfc", false
		}
		_ = os.Remove(k.path(device + "/driver"))
		if driver != k.refuses {
			_ = os.Symlink("../../drivers/"+driver, k.path(device+"/driver"))
		}
	}
}

// driver of a device; "" when there is none.
func (k *fakeKernel) driver(address string) string {
	target, err := os.Readlink(k.path(devices + address + "/driver"))
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}

// run carries out a command of a unit of the plan.
func (k *fakeKernel) run(plan *NodePlan, unit, directive string) (output string, err error) {
	k.t.Helper()
	_, command, found := strings.Cut(unitOf(plan, unit).Content, directive+"=")
	if !found {
		k.t.Fatalf("unit %s of %v has no %s", unit, unitNames(plan), directive)
	}
	command, _, _ = strings.Cut(command, "\n")
	words := strings.Fields(command)
	script := filepath.Join(k.t.TempDir(), "script")
	if err := os.WriteFile(script, []byte(file(plan, words[0])), 0o755); err != nil {
		k.t.Fatal(err)
	}
	run := exec.CommandContext(k.t.Context(), "sh", append([]string{script}, words[1:]...)...)
	run.Env = append(os.Environ(), "LOWLATENCY_SYSFS="+k.root, "LOWLATENCY_PROCFS="+k.path("proc"),
		"LOWLATENCY_ATTEMPTS=20", "LOWLATENCY_PAUSE=0.02")
	bytes, err := run.CombinedOutput()
	return string(bytes), err
}

func vfioPlan(t *testing.T, change ...poolChange) *NodePlan {
	t.Helper()
	plan, findings := poolsOn(xeon(), []Pool{poolWith("dpdk", []topology.NIC{firstNIC()}, append([]poolChange{vfio}, change...)...)})
	if plan == nil {
		t.Fatal(describe(findings))
	}
	return plan
}

// scriptCase is a state of a host and what the script makes of it.
type scriptCase struct {
	pool        []poolChange
	host        func(*fakeKernel)
	wantError   string
	wantDrivers map[string]string
	wantFiles   map[string]string
}

const one, two = "0000:3b:08.0", "0000:3b:08.1"

// functionScriptCases are about virtual functions.
func functionScriptCases() map[string]scriptCase {
	return map[string]scriptCase{
		"virtual functions for user space": {
			pool:        []poolChange{functions(2)},
			host:        func(k *fakeKernel) { k.functions("0", one, two) },
			wantDrivers: map[string]string{testNIC: "sfc", one: DriverVFIO, two: DriverVFIO},
			wantFiles: map[string]string{devices + testNIC + "/sriov_numvfs": "2", devices + testNIC + "/sriov_drivers_autoprobe": "0",
				devices + testNIC + override: "(null)"},
		},
		"virtual functions that a network driver took": {
			pool: []poolChange{functions(1)},
			host: func(k *fakeKernel) {
				k.functions("1", one)
				k.device(one, "iavf", "ens1f0v0")
			},
			wantDrivers: map[string]string{one: DriverVFIO},
			wantFiles:   map[string]string{"bus/pci/drivers/iavf/unbind": one},
		},
		"a virtual function that a pod holds": {
			pool: []poolChange{functions(1)},
			host: func(k *fakeKernel) {
				k.functions("1", one)
				k.device(one, "iavf", "")
			},
			wantError:   "a pod may hold it",
			wantDrivers: map[string]string{one: "iavf"},
		},
		"another number of virtual functions": {
			pool:        []poolChange{functions(2)},
			host:        func(k *fakeKernel) { k.functions("1", one) },
			wantError:   "it has 1 virtual functions and not 2",
			wantDrivers: map[string]string{testNIC: "sfc", one: ""},
			wantFiles:   map[string]string{devices + testNIC + "/sriov_numvfs": "1"},
		},
		"a NIC without SR-IOV": {
			pool: []poolChange{functions(2)}, host: func(*fakeKernel) {},
			wantError: "it has no SR-IOV", wantDrivers: map[string]string{testNIC: "sfc"},
		},
		"a NIC without driver": {
			pool: []poolChange{functions(2)},
			host: func(k *fakeKernel) {
				k.functions("0", one, two)
				_ = os.Remove(k.path(devices + testNIC + "/driver"))
			},
			wantError: "it has no driver", wantFiles: map[string]string{devices + testNIC + "/sriov_numvfs": "0"},
		},
	}
}

// nicScriptCases are about NICs that are bound themselves.
func nicScriptCases() map[string]scriptCase {
	return map[string]scriptCase{
		"the NIC itself": {
			host: func(*fakeKernel) {}, wantDrivers: map[string]string{testNIC: DriverVFIO},
			wantFiles: map[string]string{"bus/pci/drivers/sfc/unbind": testNIC, devices + testNIC + override: DriverVFIO},
		},
		"a NIC whose driver is still at its start": {
			host: func(k *fakeKernel) {
				made, away := k.path(devices+testNIC+"/net"), k.path(devices+testNIC+"/not-yet")
				_ = os.Rename(made, away)
				time.AfterFunc(100*time.Millisecond, func() { _ = os.Rename(away, made) })
			},
			wantDrivers: map[string]string{testNIC: DriverVFIO}, wantFiles: map[string]string{"bus/pci/drivers/sfc/unbind": testNIC},
		},
		"a NIC that is not there": {
			host:      func(k *fakeKernel) { _ = os.RemoveAll(k.path(devices + testNIC)) },
			wantError: "there is no such device",
		},
		"a NIC with the default route": {
			host:      func(k *fakeKernel) { k.write("proc/net/route", "ens1f0 00000000 0102A8C0\n") },
			wantError: "ens1f0 carries the default route of the host", wantDrivers: map[string]string{testNIC: "sfc"},
			wantFiles: map[string]string{devices + testNIC + override: "(null)"},
		},
		"a NIC with the default route of IPv6": {
			host: func(k *fakeKernel) {
				zero := strings.Repeat("0", 32)
				k.write("proc/net/ipv6_route", strings.Join([]string{zero, "00", zero, "00", zero, "0400", "1", "0", "1", "ens1f0"}, " ")+"\n")
			},
			wantError: "ens1f0 carries the default route of the host", wantDrivers: map[string]string{testNIC: "sfc"},
		},
		"a NIC in a bond": {
			host:      func(k *fakeKernel) { k.write(devices+testNIC+"/net/ens1f0/master", "") },
			wantError: "ens1f0 belongs to a bond", wantDrivers: map[string]string{testNIC: "sfc"},
		},
		"a host without IOMMU": {
			host:      func(k *fakeKernel) { _ = os.Remove(k.path(devices + testNIC + "/iommu_group")) },
			wantError: "has no IOMMU group", wantDrivers: map[string]string{testNIC: "sfc"},
			wantFiles: map[string]string{devices + testNIC + override: "(null)"},
		},
		"a host without IOMMU, on purpose": {
			pool: []poolChange{withoutIOMMU},
			host: func(k *fakeKernel) {
				_ = os.Remove(k.path(devices + testNIC + "/iommu_group"))
				k.write("module/vfio/parameters/enable_unsafe_noiommu_mode", "N\n")
			},
			wantDrivers: map[string]string{testNIC: DriverVFIO},
			wantFiles:   map[string]string{"module/vfio/parameters/enable_unsafe_noiommu_mode": "1"},
		},
		"a kernel that has nothing without an IOMMU": {
			pool:      []poolChange{withoutIOMMU},
			host:      func(k *fakeKernel) { _ = os.Remove(k.path(devices + testNIC + "/iommu_group")) },
			wantError: "CONFIG_VFIO_NOIOMMU", wantDrivers: map[string]string{testNIC: "sfc"},
		},
		"a kernel without the module": {
			host:      func(k *fakeKernel) { _ = os.RemoveAll(k.path("bus/pci/drivers/vfio-pci")) },
			wantError: "the kernel has no driver vfio-pci", wantDrivers: map[string]string{testNIC: "sfc"},
		},
		"a NIC that its own driver was taking meanwhile": {
			host: func(k *fakeKernel) {
				_ = os.Remove(k.path(devices + testNIC + "/driver"))
				k.wasProbing = true
			},
			wantDrivers: map[string]string{testNIC: DriverVFIO}, wantFiles: map[string]string{devices + testNIC + override: DriverVFIO},
		},
		"a NIC that its own driver was taking meanwhile, and the host with it": {
			host: func(k *fakeKernel) {
				_ = os.Remove(k.path(devices + testNIC + "/driver"))
				k.wasProbing = true
				k.write("proc/net/route", "ens1f0 00000000 0102A8C0\n")
			},
			wantError: "ens1f0 carries the default route of the host",
		},
		"a driver that does not take the NIC gives it back": {
			host:      func(k *fakeKernel) { k.refuses = DriverVFIO },
			wantError: "its own driver has it back", wantDrivers: map[string]string{testNIC: "sfc"},
			wantFiles: map[string]string{devices + testNIC + override: ""},
		},
	}
}

// TestBypassNICScript runs the script on trees of several states of a host, and once more on what it left.
func TestBypassNICScript(t *testing.T) {
	cases := functionScriptCases()
	maps.Copy(cases, nicScriptCases())
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := newFakeKernel(t)
			tc.host(k)
			plan := vfioPlan(t, tc.pool...)
			for range 2 {
				output, err := k.run(plan, nicUnit, "ExecStart")
				if (err != nil) != (tc.wantError != "") || !strings.Contains(output, tc.wantError) {
					t.Fatalf("%v: %s; want %q", err, output, tc.wantError)
				}
				k.check(tc.wantDrivers, tc.wantFiles)
			}
		})
	}
}

// check compares drivers and files with what they are to be.
func (k *fakeKernel) check(drivers, files map[string]string) {
	k.t.Helper()
	for address, want := range drivers {
		got := k.driver(address)
		// The fake kernel answers a little later than the write returns.
		for attempt := 0; got != want && attempt < 100; attempt++ {
			time.Sleep(10 * time.Millisecond)
			got = k.driver(address)
		}
		if got != want {
			k.t.Errorf("driver of %s is %q, want %q", address, got, want)
		}
	}
	for name, want := range files {
		if got := content(k.t, k.root, name); got != want {
			k.t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
}

// TestKernelKeepsItsDrivers: virtual functions for another stack are left to the kernel.
func TestKernelKeepsItsDrivers(t *testing.T) {
	k := newFakeKernel(t)
	k.functions("0", "0000:3b:08.0")
	plan, _ := poolsOn(xeon(), []Pool{poolWith("feed", []topology.NIC{firstNIC()}, functions(1))})
	if output, err := k.run(plan, nicUnit, "ExecStart"); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	k.check(map[string]string{testNIC: "sfc", "0000:3b:08.0": ""}, map[string]string{
		devices + testNIC + "/sriov_numvfs": "1", devices + testNIC + "/sriov_drivers_autoprobe": "1"})
}

// TestNICInterruptsScript: vectors of the NIC and of its functions go to the planned CPUs; others, and those that are
// within them already, stay.
func TestNICInterruptsScript(t *testing.T) {
	k := newFakeKernel(t)
	k.functions("1", "0000:3b:08.0")
	k.device("0000:af:00.1", "sfc", "ens2f1")
	affinity := func(vector string) string { return "proc/irq/" + vector + "/smp_affinity_list" }
	for vector, device := range map[string]string{"100": testNIC, "101": testNIC, "102": testNIC, "103": testNIC, "200": "0000:3b:08.0", "300": "0000:af:00.1"} {
		k.write(devices+device+"/msi_irqs/"+vector, "msix\n")
	}
	before := map[string]string{"100": "2-19", "101": "40", "102": "0,40", "200": "0-79", "300": "5"}
	for vector, list := range before {
		k.write(affinity(vector), list+"\n")
	}
	plan, _ := poolsOn(xeon(), []Pool{poolWith("feed", []topology.NIC{firstNIC()}, functions(1))})
	output, err := k.run(plan, nicInterruptsUnit, "ExecStartPre")
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	got := map[string]string{}
	for vector := range before {
		got[vector] = content(t, k.root, affinity(vector))
	}
	want := map[string]string{"100": "0,40", "101": "40", "102": "0,40", "200": "0,40", "300": "5"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("affinities (-want +got):\n%s\n%s", diff, output)
	}
	if again, err := k.run(plan, nicInterruptsUnit, "ExecStartPre"); err != nil || again != "" {
		t.Errorf("the second time it says %q, %v", again, err)
	}
}

// TestNICInterruptsAreWatched: the unit goes on, and puts back what a driver has moved since.
func TestNICInterruptsAreWatched(t *testing.T) {
	unit := unitOf(vfioPlan(t, functions(1)), nicInterruptsUnit).Content
	if !strings.Contains(unit, "ExecStart=/usr/local/bin/lowlatency-nic-interrupts 5 0000:3b:00.0=0,40\n") {
		t.Errorf("the unit does not go on:\n%s", unit)
	}
	k := newFakeKernel(t)
	k.write(devices+testNIC+"/msi_irqs/100", "msix\n")
	k.write("proc/irq/100/smp_affinity_list", "7\n")
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte(nicInterruptsScript), 0o755); err != nil {
		t.Fatal(err)
	}
	watch := exec.CommandContext(t.Context(), "sh", script, "1", testNIC+"=0-1,40")
	watch.Env = append(os.Environ(), "LOWLATENCY_SYSFS="+k.root, "LOWLATENCY_PROCFS="+k.path("proc"))
	lines, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 200)
	for range 2 {
		said, err := lines.Read(buffer)
		if err != nil || !strings.Contains(string(buffer[:said]), "moved IRQ 100 from CPUs 7 to 0-1,40") {
			t.Fatalf("%q, %v", buffer[:said], err)
		}
		if got := content(t, k.root, "proc/irq/100/smp_affinity_list"); got != "0-1,40" {
			t.Errorf("affinity %s", got)
		}
		k.write("proc/irq/100/smp_affinity_list", "7\n")
	}
	if err := watch.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = watch.Wait()
}
