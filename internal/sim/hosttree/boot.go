// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// descriptionFile is where a tree keeps the machine that it describes, outside of what a host has.
const descriptionFile = ".machine.json"

// completeCopy says to who reads the tree that a file which is not in it is not on the host.
const completeCopy = `{"complete": true}` + "\n"

// latencyDevice is where a program asks for a limit of the latency of all CPUs as long as it runs
// (Documentation/power/pm_qos_interface.rst). A tree has it while somebody holds it, with the limit as text.
const latencyDevice = "/dev/cpu_dma_latency"

// uptime is how long a machine has been up when Boot returns.
const uptime = 90 * time.Second

// description is what Boot must know about a tree.
type description struct {
	Machine Machine     `json:"machine"`
	Options BootOptions `json:"options"`
	// Boots counts how often the machine came up; it makes the boot identifier.
	Boots int `json:"boots"`
}

// Write writes the tree of the machine as a distribution installs and boots it, with nothing tuned: all
// CPUs and interrupts shared, power saving on, services running, a kubelet with defaults. The
// directory must not hold another tree.
func (m Machine) Write(dir string) error {
	if err := m.validate(); err != nil {
		return err
	}
	t := newTree(dir)
	m.writeDistribution(t)
	if t.err != nil {
		return fmt.Errorf("writing the files of the distribution: %w", t.err)
	}
	return come(dir, description{Machine: m, Options: BootOptions{CommandLine: m.BaseCommandLine()}})
}

// validate finds machines that cannot exist.
func (m Machine) validate() error {
	for name, number := range map[string]int{
		"Packages": m.Packages, "NUMANodesPerPackage": m.NUMANodesPerPackage,
		"CoresPerNUMANode": m.CoresPerNUMANode, "ThreadsPerCore": m.ThreadsPerCore,
	} {
		if number < 1 {
			return fmt.Errorf("machine %s: %s is %d, want at least 1", m.Hostname, name, number)
		}
	}
	if m.cores()*m.ThreadsPerCore > cpus.MaxCPU+1 {
		return fmt.Errorf("machine %s has more than %d CPUs", m.Hostname, cpus.MaxCPU+1)
	}
	if len(m.Distances) != m.numaNodes() {
		return fmt.Errorf("machine %s: %d rows of distances for %d NUMA nodes", m.Hostname, len(m.Distances), m.numaNodes())
	}
	for _, address := range m.addresses() {
		if len(address) != len("0000:00:00.0") {
			return fmt.Errorf("machine %s: PCI address %q is not of the form 0000:3b:00.0", m.Hostname, address)
		}
	}
	return nil
}

// Boot rewrites /proc and /sys of a tree as the same machine's kernel leaves them after a boot with the
// options, 90 seconds ago. It is a simulation: it knows the arguments of isolation (isolcpus, nohz_full),
// interrupts (irqaffinity), SMT (nosmt), hugepages (hugepages, hugepagesz, default_hugepagesz,
// transparent_hugepage), power (idle, cpuidle.off, processor.max_cstate, intel_idle.max_cstate,
// intel_pstate, amd_pstate, cpufreq.default_governor, cpufreq.off), watchdogs (nmi_watchdog,
// nosoftlockup, nowatchdog), machine checks (mce), clocks (clocksource, tsc) and systemd.cpu_affinity;
// others change the command line alone. Everything that was set at run time is back at its
// default. Files of /etc and /var stay; irqbalance starts with what they say, and not if it is masked.
func Boot(dir string, options BootOptions) error {
	d, err := describe(dir)
	if err != nil {
		return err
	}
	d.Options = options
	d.Boots++
	return come(dir, d)
}

// describe reads the description of a tree.
func describe(dir string) (description, error) {
	var d description
	data, err := os.ReadFile(filepath.Join(dir, descriptionFile))
	if err != nil {
		return d, fmt.Errorf("reading the description of a host tree: %w", err)
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return d, fmt.Errorf("reading the description of a host tree, %s: %w", filepath.Join(dir, descriptionFile), err)
	}
	return d, nil
}

// come makes the machine come up: the new /proc and /sys are written aside and then take the place of the
// old ones, so that a reader sees one or the other.
func come(dir string, d description) (err error) {
	k, err := d.kernel()
	if err != nil {
		return err
	}
	aside, err := os.MkdirTemp(dir, ".boot-")
	if err != nil {
		return fmt.Errorf("booting a host tree: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(aside)) }()
	t := newTree(filepath.Join(aside, "new"))
	k.write(t, readServices(dir))
	if t.err != nil {
		return fmt.Errorf("booting a host tree: %w", t.err)
	}
	if err := advance(t.root, d.Machine, uptime); err != nil {
		return err
	}
	if err := replace(dir, t.root, filepath.Join(aside, "old")); err != nil {
		return fmt.Errorf("booting a host tree: %w", err)
	}
	t = newTree(dir)
	t.err = removeAll(dir, "/dev/onload", "/dev/onload_epoll", "/dev/sfc_char", latencyDevice, vfioFolder)
	t.directory("/dev")
	t.text("/lowlatency-snapshot.json", completeCopy)
	k.writeOnloadFiles(t)
	k.writeVFIO(t)
	if t.err != nil {
		return fmt.Errorf("booting a host tree: %w", t.err)
	}
	return d.save(dir)
}

// save keeps the description for the next boot or change.
func (d description) save(dir string) error {
	data, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("describing a host tree: %w", err)
	}
	if err := writeNew(filepath.Join(dir, descriptionFile), data); err != nil {
		return fmt.Errorf("describing a host tree: %w", err)
	}
	return nil
}

// replace puts proc and sys of a new tree into the place of the old ones.
func replace(dir, from, old string) error {
	if err := os.Mkdir(old, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"proc", "sys"} {
		err := os.Rename(filepath.Join(dir, name), filepath.Join(old, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.Rename(filepath.Join(from, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// kernel is a running kernel: what a command line makes of a machine.
type kernel struct {
	Machine
	options    BootOptions
	line       cmdline.Line
	identifier string

	all, online cpus.Set
	isolation   cmdline.Isolation
	hugepages   hugepages
	// defaultAffinity is where interrupts go that nothing else is known about.
	defaultAffinity cpus.Set
	routes          map[int]route
	// initial are the CPUs that process 1 may use, and all that it starts.
	initial cpus.Set
}

// kernel interprets the command line.
func (d description) kernel() (*kernel, error) {
	line, err := cmdline.Parse(d.Options.CommandLine)
	if err != nil {
		return nil, fmt.Errorf("booting a host tree: %w", err)
	}
	offline, err := cpus.Parse(d.Options.Offline)
	if err != nil {
		return nil, fmt.Errorf("booting a host tree with CPUs offline: %w", err)
	}
	k := &kernel{Machine: d.Machine, options: d.Options, line: line, all: d.Machine.possible()}
	k.identifier = bootIdentifier(d)
	k.online = k.all.Difference(offline)
	if k.noSMT() {
		k.online = k.online.Intersection(k.where(func(p place) bool { return p.thread == 0 }))
	}
	if k.online.IsEmpty() {
		return nil, errors.New("booting a host tree: no CPU would be online")
	}
	k.isolation = line.Isolation(k.commandLineReader())
	k.hugepages = reserve(line, k.Machine, k.largePages())
	k.defaultAffinity = k.irqAffinity()
	k.routes = k.Machine.routes(k.online, k.defaultAffinity, k.isolation.ManagedIRQ)
	k.initial = k.initAffinity()
	return k, nil
}

// commandLineReader is what the meaning of the command line depends on.
func (k *kernel) commandLineReader() cmdline.Machine {
	return cmdline.Machine{Architecture: k.Architecture, Possible: k.all}
}

// bootIdentifier is what /proc/sys/kernel/random/boot_id gives: another UUID after each boot.
func bootIdentifier(d description) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", d.Machine.Hostname, d.Boots))
	const digits = 0xfff // Three digits; the fourth is version or variant.
	version, variant := binary.BigEndian.Uint16(sum[6:])&digits, binary.BigEndian.Uint16(sum[8:])&digits
	return fmt.Sprintf("%x-%x-4%03x-8%03x-%x", sum[:4], sum[4:6], version, variant, sum[10:16])
}

// noSMT reports whether siblings stay offline: nosmt of kernel/cpu.c (smt_cmdline_disable), or
// mitigations=auto,nosmt.
func (k *kernel) noSMT() bool {
	_, asked := k.line.Get("nosmt")
	mitigations, _ := k.line.Get("mitigations")
	return k.ThreadsPerCore > 1 && (asked || mitigations == "auto,nosmt")
}

// largePages reports whether the base page is 64 KiB.
func (k *kernel) largePages() bool { return k.options.PageSize == v1alpha1.PageSize64Ki }

// irqAffinity follows irq_affinity_setup of kernel/irq/irqdesc.c: the boot CPU always belongs to it.
func (k *kernel) irqAffinity() cpus.Set {
	value, given := k.line.Get("irqaffinity")
	affinity, err := cpus.ParseArgument(value, k.all)
	if !given || err != nil {
		return k.all
	}
	return affinity.Intersection(k.all).Union(cpus.Of(0))
}

// initAffinity is where process 1 runs: off CPUs without scheduler domain (sched_init_smp of
// kernel/sched/core.c), or where systemd.cpu_affinity= says (kernel-command-line(7)).
func (k *kernel) initAffinity() cpus.Set {
	if value, given := k.line.Get("systemd.cpu_affinity"); given {
		if affinity, err := cpus.Parse(strings.ReplaceAll(value, " ", ",")); err == nil {
			return affinity.Intersection(k.all)
		}
	}
	return k.all.Difference(k.isolation.Domain)
}

// release is uname -r: flavours of RHEL's kernel have a suffix.
func (k *kernel) release() string {
	switch {
	case k.realTime():
		return k.KernelRelease + "+rt"
	case k.largePages():
		return k.KernelRelease + "+64k"
	default:
		return k.KernelRelease
	}
}

func (k *kernel) realTime() bool { return k.options.KernelType == v1alpha1.KernelRealTime }

// write writes /proc and /sys.
func (k *kernel) write(t *tree, s services) {
	for _, part := range []func(*tree){
		k.writeCPUs, k.writeTopology, k.writeNUMANodes, k.writeHugepages, k.writeFrequency, k.writeIdle,
		k.writeInterrupts, k.writeCounters, k.writeDevices, k.writeFirmware, k.writeProcess, k.writeSysctls, k.writeKernelFiles,
		k.writeRoutes, k.writeOnload,
	} {
		part(t)
	}
	k.writeServices(t, s)
}
