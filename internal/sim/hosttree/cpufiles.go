// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"fmt"
	"path"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
)

const cpuFolder = "/sys/devices/system/cpu"

func cpuPath(cpu int, name string) string { return path.Join(cpuFolder, fmt.Sprint("cpu", cpu), name) }

// writeCPUs writes the lists of Documentation/admin-guide/cputopology.rst and
// Documentation/ABI/testing/sysfs-devices-system-cpu.
func (k *kernel) writeCPUs(t *tree) {
	t.file(cpuFolder+"/online", k.online)
	t.file(cpuFolder+"/offline", k.all.Difference(k.online))
	t.file(cpuFolder+"/present", k.all)
	t.file(cpuFolder+"/possible", k.all)
	t.file(cpuFolder+"/kernel_max", 8191)
	t.file(cpuFolder+"/isolated", k.isolation.Domain)
	t.file(cpuFolder+"/nohz_full", k.noHzFull())
	control, active := k.smt()
	t.file(cpuFolder+"/smt/control", control)
	t.file(cpuFolder+"/smt/active", active)
	for _, cpu := range k.all.IDs() {
		// x86 cannot take the boot CPU offline and shows no file for it (arch/x86/kernel/topology.c).
		if cpu > 0 || k.Architecture == "arm64" {
			online := 0
			if k.online.Contains(cpu) {
				online = 1
			}
			t.file(cpuPath(cpu, "online"), online)
		}
		t.file(cpuPath(cpu, "power/pm_qos_resume_latency_us"), 0)
	}
}

// noHzFull is how drivers/base/cpu.c prints a mask that was never allocated, too.
func (k *kernel) noHzFull() string {
	if list := k.isolation.Noise.String(); list != "" {
		return list
	}
	return "(null)"
}

// smt gives the words of kernel/cpu.c (smt_states).
func (k *kernel) smt() (control string, active int) {
	force, asked := k.line.Get("nosmt")
	switch {
	case k.ThreadsPerCore == 1:
		return "notsupported", 0
	case asked && force == "force":
		return "forceoff", 0
	case k.noSMT():
		return "off", 0
	default:
		return "on", 1
	}
}

// writeTopology writes topology/ and cache/ of the online CPUs; the kernel removes them from offline ones
// (drivers/base/topology.c, drivers/base/cacheinfo.c).
func (k *kernel) writeTopology(t *tree) {
	cores := k.groups(k.online, func(p place) int { return p.core })
	packages := k.groups(k.online, func(p place) int { return p.pkg })
	domains := k.groups(k.online, func(p place) int { return p.l3 })
	for _, p := range k.places() {
		if !k.online.Contains(p.cpu) {
			continue
		}
		topology := cpuPath(p.cpu, "topology")
		t.file(topology+"/physical_package_id", p.pkg)
		t.file(topology+"/die_id", 0)
		t.file(topology+"/core_id", p.coreID)
		t.masks(topology, "thread_siblings", "thread_siblings_list", cores[p.core])
		t.masks(topology, "core_siblings", "core_siblings_list", packages[p.pkg])
		k.writeCache(t, p.cpu, 2, 1280, cores[p.core])
		if p.l3 >= 0 {
			k.writeCache(t, p.cpu, 3, k.L3KiB, domains[p.l3])
		}
		if k.Vendor == "Intel" {
			t.file(cpuPath(p.cpu, "thermal_throttle/core_throttle_count"), 0)
			t.file(cpuPath(p.cpu, "thermal_throttle/package_throttle_count"), 0)
		}
	}
	k.writeEfficiency(t)
	if k.Vendor == "Intel" {
		// One domain with its frequency fixed by the firmware.
		domain := cpuFolder + "/intel_uncore_frequency/uncore00"
		t.file(domain+"/min_freq_khz", 2400000)
		t.file(domain+"/max_freq_khz", 2400000)
	}
}

// writeEfficiency tells efficiency cores apart: Intel's by their performance monitoring unit, which lists online CPUs
// (tools/perf/Documentation/intel-hybrid.txt), arm64's by their capacity (drivers/base/arch_topology.c).
func (k *kernel) writeEfficiency(t *tree) {
	if k.EfficiencyCores == 0 {
		return
	}
	slow := k.where(func(p place) bool { return p.core >= k.cores()-k.EfficiencyCores }).Intersection(k.online)
	if k.Architecture == "arm64" {
		for _, cpu := range k.online.IDs() {
			capacity := 1024
			if slow.Contains(cpu) {
				capacity = 446
			}
			t.file(cpuPath(cpu, "cpu_capacity"), capacity)
		}
		return
	}
	t.file("/sys/devices/cpu_core/cpus", k.online.Difference(slow))
	t.file("/sys/devices/cpu_atom/cpus", slow)
}

// writeCache writes a unified cache. On real machines index0 and index1 are the two caches of level 1,
// which decide about nothing.
func (k *kernel) writeCache(t *tree, cpu, level, kibibytes int, shared notation) {
	folder := cpuPath(cpu, fmt.Sprint("cache/index", level))
	t.file(folder+"/level", level)
	t.file(folder+"/type", "Unified")
	t.file(folder+"/size", fmt.Sprintf("%dK", kibibytes))
	t.masks(folder, "shared_cpu_map", "shared_cpu_list", shared)
}

// frequencyDriver is what drives the frequency: driver and governor, and the status file of a driver of
// the vendor.
type frequencyDriver struct {
	name, governor string
	// statusFolder is intel_pstate or amd_pstate; "" without.
	statusFolder, status string
	// preference reports whether the driver takes an energy performance preference.
	preference bool
}

// pstateDriver follows Documentation/admin-guide/pm/{intel_pstate,amd-pstate}.rst: intel_pstate is active
// unless told otherwise, and takes the governors powersave and performance only; amd_pstate of a server
// is off unless asked for. Without them, acpi-cpufreq or, on arm64, cppc_cpufreq drives.
func (k *kernel) pstateDriver() frequencyDriver {
	governor := "schedutil"
	if asked, given := k.line.Get("cpufreq.default_governor"); given {
		governor = asked
	}
	switch k.Vendor {
	case "Intel":
		mode, _ := k.line.Get("intel_pstate")
		switch mode {
		case "disable":
			return frequencyDriver{name: "acpi-cpufreq", governor: governor}
		case "passive":
			return frequencyDriver{name: "intel_cpufreq", governor: governor, statusFolder: "intel_pstate", status: "passive"}
		default:
			return frequencyDriver{name: "intel_pstate", governor: "powersave", statusFolder: "intel_pstate", status: "active", preference: true}
		}
	case "AMD":
		mode, _ := k.line.Get("amd_pstate")
		switch mode {
		case "active":
			return frequencyDriver{name: "amd-pstate-epp", governor: "powersave", statusFolder: "amd_pstate", status: mode, preference: true}
		case "passive", "guided":
			return frequencyDriver{name: "amd-pstate", governor: governor, statusFolder: "amd_pstate", status: mode}
		default:
			return frequencyDriver{name: "acpi-cpufreq", governor: governor}
		}
	default:
		return frequencyDriver{name: "cppc_cpufreq", governor: governor}
	}
}

// writeFrequency writes a cpufreq policy for each online CPU.
func (k *kernel) writeFrequency(t *tree) {
	if value, given := k.line.Get("cpufreq.off"); given && value != "0" {
		return
	}
	driver := k.pstateDriver()
	for _, cpu := range k.online.IDs() {
		policy := fmt.Sprintf("%s/cpufreq/policy%d", cpuFolder, cpu)
		t.file(policy+"/affected_cpus", cpu)
		t.file(policy+"/cpuinfo_min_freq", k.MinimumFrequency)
		t.file(policy+"/cpuinfo_max_freq", k.MaximumFrequency)
		t.file(policy+"/scaling_min_freq", k.MinimumFrequency)
		if driver.name == "acpi-cpufreq" && k.NominalFrequency > 0 {
			// The driver is told the frequencies of ACPI's table; it reaches the rest when it is told the highest.
			t.file(policy+"/scaling_available_frequencies", fmt.Sprintf("%d %d", k.NominalFrequency, k.MinimumFrequency))
			t.file(policy+"/scaling_max_freq", k.NominalFrequency)
		} else {
			t.file(policy+"/scaling_max_freq", k.MaximumFrequency)
		}
		t.file(policy+"/scaling_driver", driver.name)
		t.file(policy+"/scaling_governor", driver.governor)
		if driver.preference {
			t.file(policy+"/energy_performance_preference", "balance_performance")
		}
		t.link(cpuPath(cpu, "cpufreq"), policy)
	}
	switch driver.statusFolder {
	case "intel_pstate":
		folder := cpuFolder + "/intel_pstate"
		t.file(folder+"/status", driver.status)
		t.file(folder+"/no_turbo", 0)
		t.file(folder+"/max_perf_pct", 100)
		t.file(folder+"/min_perf_pct", k.MinimumFrequency*100/k.MaximumFrequency)
		return
	case "amd_pstate":
		t.file(cpuFolder+"/amd_pstate/status", driver.status)
	}
	t.file(cpuFolder+"/cpufreq/boost", 1)
}

// idleDriver gives the cpuidle driver and its states, as Documentation/admin-guide/pm/cpuidle.rst
// says: idle=poll, idle=halt and cpuidle.off leave none; intel_idle.max_cstate limits intel_idle, and 0
// leaves the field to ACPI's driver, which processor.max_cstate limits.
func (k *kernel) idleDriver() (name string, states []IdleState) {
	idle, _ := k.line.Get("idle")
	off, _ := k.line.Get("cpuidle.off")
	x86 := k.Architecture == "amd64"
	if off == "1" || x86 && (idle == "poll" || idle == "halt") {
		return "none", nil
	}
	if limit := k.limit("intel_idle.max_cstate"); len(k.NativeIdleStates) > 0 && limit > 0 && idle != "nomwait" {
		return "intel_idle", withPolling(k.NativeIdleStates[:min(limit, len(k.NativeIdleStates))])
	}
	// ACPI's driver takes 0 for 1 (drivers/acpi/processor_idle.c).
	states = k.FirmwareIdleStates[:min(max(1, k.limit("processor.max_cstate")), len(k.FirmwareIdleStates))]
	if x86 {
		states = withPolling(states)
	}
	return "acpi_idle", states
}

// limit is the value of an argument that counts idle states; more than any processor has without it.
func (k *kernel) limit(argument string) int {
	const unlimited = 9
	value, _ := k.line.Get(argument)
	limit, ok := setting.Integer(value)
	if !ok || limit < 0 {
		return unlimited
	}
	return int(min(limit, unlimited))
}

// withPolling puts the state in front that x86 drivers begin with.
func withPolling(states []IdleState) []IdleState {
	return append([]IdleState{{Name: "POLL"}}, states...)
}

// writeIdle writes cpuidle/ of the online CPUs.
func (k *kernel) writeIdle(t *tree) {
	driver, states := k.idleDriver()
	t.file(cpuFolder+"/cpuidle/current_driver", driver)
	t.file(cpuFolder+"/cpuidle/current_governor", "menu")
	t.file(cpuFolder+"/cpuidle/current_governor_ro", "menu")
	for _, cpu := range k.online.IDs() {
		for index, state := range states {
			folder := cpuPath(cpu, fmt.Sprint("cpuidle/state", index))
			t.file(folder+"/name", state.Name)
			t.file(folder+"/latency", state.LatencyMicros)
			t.file(folder+"/disable", 0)
			t.file(folder+"/usage", 0)
			t.file(folder+"/time", 0)
		}
	}
}

// cpuInformation is /proc/cpuinfo: one block for each online CPU.
func (k *kernel) cpuInformation() string {
	var b strings.Builder
	for _, p := range k.places() {
		if !k.online.Contains(p.cpu) {
			continue
		}
		if k.Architecture == "arm64" {
			fmt.Fprintf(&b, "processor\t: %d\nBogoMIPS\t: 50.00\nFeatures\t: %s\nCPU implementer\t: 0x41\n"+
				"CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n\n", p.cpu, strings.Join(k.Flags, " "))
			continue
		}
		vendor := map[string]string{"Intel": "GenuineIntel", "AMD": "AuthenticAMD"}[k.Vendor]
		fmt.Fprintf(&b, "processor\t: %d\nvendor_id\t: %s\ncpu family\t: %d\nmodel\t\t: %d\nmodel name\t: %s\nmicrocode\t: %s\n"+
			"physical id\t: %d\ncore id\t\t: %d\nflags\t\t: %s\n\n",
			p.cpu, vendor, k.Family, k.ModelNumber, k.Model, k.Microcode, p.pkg, p.coreID, strings.Join(k.Flags, " "))
	}
	return b.String()
}
