// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// managementMAC is what hack/lab/root/etc/systemd/network matches.
const managementMAC = "52:54:00:00:00:01"

// emulator is a QEMU: its program, its own first arguments, and its environment.
type emulator struct {
	program     string
	arguments   []string
	environment []string
	// threads reports whether each emulated processor has a thread of its own ("multi"), or all take turns ("single").
	threads string
}

// emulatorFor is the installed QEMU, or that of Debian's backports where the machine needs it and the installed one
// is older.
func emulatorFor(ctx context.Context, s Spec, progress io.Writer) (emulator, error) {
	const installed = "qemu-system-x86_64"
	needsIgb := slices.ContainsFunc(s.NICs, func(nic NIC) bool { return nic.Model == Igb })
	if !needsIgb || hasDevice(ctx, installed, Igb) {
		return emulator{program: installed, threads: "multi"}, nil
	}
	dir, err := built(ctx, "qemu", func(string) error { return nil }, progress)
	if err != nil {
		return emulator{}, err
	}
	return emulator{
		program:   filepath.Join(dir, "usr", "bin", installed),
		arguments: []string{"-L", filepath.Join(dir, "usr", "share", "qemu"), "-L", filepath.Join(dir, "usr", "share", "seabios")},
		// Modules of another QEMU end it, so its own come first.
		environment: []string{"QEMU_MODULE_DIR=" + filepath.Join(dir, "usr", "lib", "x86_64-linux-gnu", "qemu")},
		// With threads, QEMU 10.0.2 leaves processors halted whose timer interrupt is in service for ever: every second
		// boot with 8 processors ended so. On 2 cores taking turns is as fast.
		threads: "single",
	}, nil
}

// hasDevice looks at what QEMU prints: it ends with success for a device that it does not know.
func hasDevice(ctx context.Context, program string, model Model) bool {
	out, err := exec.CommandContext(ctx, program, "-device", string(model)+",help").Output()
	return err == nil && len(out) > 0
}

// files are what one run of QEMU reads and writes.
type files struct {
	kernel, initrd, disk string
	// second is the disk with the folder Files; empty without.
	second string
	// modules is the disk with the modules of a kernel that is not in the image; empty without.
	modules string
	// idle is the ACPI table of the idle states; empty without.
	idle string
	// serial is the kernel's console, qmp the monitor's socket.
	serial, qmp string
	// sshPort of this machine leads to the guest's port 22.
	sshPort int
}

// machine are the arguments of qemu-system-x86_64 for a machine.
func (e emulator) machine(s Spec, boot Boot, f files) []string {
	t := s.Topology
	args := []string{
		"-name", s.Name, "-nodefaults", "-no-user-config", "-display", "none", "-vga", "none",
		// The interpreter's cache of translated code is per machine; a small one is translated again and again.
		"-accel", "tcg,thread=" + e.threads + ",tb-size=512",
		// "max" alone calls itself AMD, whose frequency driver then fails in a loop.
		"-cpu", "max,vendor=GenuineIntel,family=6,model=85,stepping=4,la57=off",
		"-machine", "q35,sata=off,smbus=off,i8042=off,vmport=off",
		"-m", fmt.Sprintf("%dM", t.parts()*t.MebibytesPerNode),
		"-smp", fmt.Sprintf("%d,sockets=%d,cores=%d,threads=%d", t.CPUs(), t.Packages, t.CoresPerPackage, t.ThreadsPerCore),
	}
	if f.kernel != "" {
		args = append(args, "-kernel", f.kernel, "-initrd", f.initrd, "-append", commandLine(s, boot))
	}
	args = append(args, "-serial", "file:"+f.serial, "-qmp", "unix:"+f.qmp+",server=on,wait=off")
	args = append(args, s.numaArguments()...)
	if s.IOMMU == Present {
		args = append(args, "-device", "intel-iommu,intremap=off")
	}
	if f.idle != "" {
		args = append(args, "-acpitable", "sig=SSDT,rev=2,data="+f.idle)
	}
	// Beside a pxb-pcie every device must name its bus.
	args = append(args,
		"-drive", "file="+f.disk+",if=none,id=disk,format=qcow2,cache=unsafe",
		"-device", "virtio-blk-pci,bus=pcie.0,drive=disk",
		"-netdev", fmt.Sprintf("user,id=management,restrict=off,hostfwd=tcp:127.0.0.1:%d-:22", f.sshPort),
		"-device", "virtio-net-pci,bus=pcie.0,netdev=management,romfile=,mac="+managementMAC,
		"-device", "virtio-rng-pci,bus=pcie.0")
	args = append(args, readOnlyDisk("files", f.second)...)
	args = append(args, readOnlyDisk("modules", f.modules)...)
	for i, nic := range s.NICs {
		args = append(args,
			"-device", fmt.Sprintf("pcie-root-port,id=port-%s,bus=%s,chassis=%d,slot=%d", nic.ID, s.bridge(nic), i+1, i+1),
			"-netdev", nic.network(),
			"-device", deviceArgument(s.nicDevice(nic)))
	}
	return args
}

// network is what is behind a NIC: the hub of its machine, or a wire to another machine. Frames on a wire are datagrams between sockets of the file
// system, one of each machine: a socket that is full makes QEMU wait, so nothing is lost between two machines that run, and a machine that is switched off
// and on again finds its wire as before (net/dgram.c).
func (n NIC) network() string {
	if n.Wire == (Wire{}) {
		return fmt.Sprintf("hubport,id=net-%s,hubid=1", n.ID)
	}
	return fmt.Sprintf("dgram,id=net-%s,local.type=unix,local.path=%s,remote.type=unix,remote.path=%s", n.ID, n.Wire.socket(n.Wire.End), n.Wire.socket(n.Wire.other()))
}

// readOnlyDisk adds a disk that the machine finds by the label of its file system; nothing without a file.
func readOnlyDisk(id, file string) []string {
	if file == "" {
		return nil
	}
	return []string{
		"-drive", "file=" + file + ",if=none,id=" + id + ",format=raw,readonly=on",
		"-device", "virtio-blk-pci,bus=pcie.0,drive=" + id,
	}
}

// bridge is the bus that the port of a NIC is on.
func (s Spec) bridge(nic NIC) string {
	if s.Topology.NUMANodes == 0 {
		return "pcie.0"
	}
	return fmt.Sprintf("bridge%d", nic.NUMANode)
}

func (s Spec) numaArguments() []string {
	var args []string
	t := s.Topology
	each := t.CPUs() / t.parts()
	for node := range t.NUMANodes {
		args = append(args,
			"-object", fmt.Sprintf("memory-backend-ram,id=memory%d,size=%dM", node, t.MebibytesPerNode),
			"-numa", fmt.Sprintf("node,nodeid=%d,cpus=%d-%d,memdev=memory%d", node, node*each, (node+1)*each-1, node))
	}
	for node := range t.NUMANodes {
		for other := node + 1; other < t.NUMANodes; other++ {
			args = append(args, "-numa", fmt.Sprintf("dist,src=%d,dst=%d,val=20", node, other))
		}
	}
	for node := range t.NUMANodes {
		args = append(args, "-device",
			fmt.Sprintf("pxb-pcie,id=bridge%d,bus=pcie.0,bus_nr=%d,numa_node=%d", node, 32*(node+1), node))
	}
	return args
}

// property is one property of a device, in QEMU's order and spelling.
type property struct{ name, value string }

// nicDevice are the properties of a NIC's device; the monitor takes them as well when it is plugged in.
func (s Spec) nicDevice(nic NIC) []property {
	index := 0
	for i := range s.NICs {
		if s.NICs[i].ID == nic.ID {
			index = i
		}
	}
	device := []property{
		{"driver", string(nic.Model)}, {"id", nic.ID}, {"bus", "port-" + nic.ID}, {"netdev", "net-" + nic.ID},
		{"mac", nic.Wire.MAC(nic.NUMANode, index)}, {"romfile", ""},
	}
	if nic.Model == Virtio {
		device = append(device, property{"disable-legacy", "on"})
		if s.IOMMU == Present {
			device = append(device, property{"iommu_platform", "on"})
		}
	}
	return device
}

func deviceArgument(device []property) string {
	parts := make([]string, 0, len(device))
	for _, p := range device {
		if p.name == "driver" {
			parts = append(parts, p.value)
			continue
		}
		parts = append(parts, p.name+"="+p.value)
	}
	return strings.Join(parts, ",")
}

// commandLine is the kernel's. The root disk is mounted writable at once and not examined, which spares the
// remount and the check of a disk that is thrown away.
func commandLine(s Spec, boot Boot) string {
	words := []string{
		"console=ttyS0,115200", "root=/dev/vda", "rw", "fsck.mode=skip", "panic=10",
		"systemd.hostname=" + s.Name, "systemd.show_status=0", "systemd.default_timeout_start_sec=600",
		// On a starved machine the kernel counts too few timer interrupts at boot, and panics.
		"no_timer_check",
	}
	if s.IOMMU == Present {
		words = append(words, "intel_iommu=on")
	}
	return strings.Join(append(words, boot.Arguments...), " ")
}

// address of a forwarded port.
func loopback(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
