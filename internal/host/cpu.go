// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/release"
)

const (
	cpuRoot = "/sys/devices/system/cpu"
	// maxPerCPU bounds the caches and the idle states (CPUIDLE_STATE_MAX is 10) of one CPU.
	maxPerCPU = 64
)

func cpuFolder(id int) string { return cpuRoot + "/cpu" + strconv.Itoa(id) }

func readCPUs(r *reader, f *Facts) {
	f.CPUs = r.cpuSets()
	r.energyPreference(f)
	f.CPUs.Efficiency = r.efficiency(f)
	f.CPUs.List = each(f.CPUs.Present.Value.IDs(), func(id int) CPU { return r.cpu(id, f.CPUs.Online) })
}

// cpuSets reads the lists of CPUs. Kernels before 2.6.29 and some dumps lack them; there the folders of
// the CPUs tell which are present, and what is in the folders which are online.
func (r *reader) cpuSets() CPUs {
	list := func(name string) source[cpus.Set] { return source[cpus.Set]{cpuRoot + "/" + name, r.parseSet} }
	sets := CPUs{
		Online:   demand(r, list("online")),
		Offline:  demand(r, list("offline")),
		Present:  demand(r, list("present")),
		Possible: demand(r, list("possible")),
		Isolated: read(r, list("isolated")),
		NoHzFull: read(r, list("nohz_full")),
	}
	if folders := r.cpuFolders(); !sets.Present.Known && len(folders) > 0 {
		sets.Present = Known(cpus.Of(folders...).Union(sets.Online.Value), cpuRoot)
	}
	if sets.Present.Known && !sets.Online.Known {
		online := sets.Present.Value.Filter(r.isOnline).Difference(sets.Offline.Value)
		sets.Online = Known(online, cpuRoot)
	}
	if sets.Present.Known && sets.Online.Known && !sets.Offline.Known {
		sets.Offline = Known(sets.Present.Value.Difference(sets.Online.Value), cpuRoot)
	}
	return sets
}

// atomCPUs lists the efficiency cores of hybrid Intel processors (tools/perf/Documentation/intel-hybrid.txt).
const atomCPUs = "/sys/devices/cpu_atom/cpus"

// efficiency finds the slower cores: by the performance monitoring unit that Intel's have of their own, and on arm64 by
// cpu_capacity, which is relative to the fastest core (Documentation/ABI/testing/sysfs-devices-system-cpu).
func (r *reader) efficiency(f *Facts) Fact[cpus.Set] {
	if f.Architecture.Value != "arm64" {
		return read(r, source[cpus.Set]{atomCPUs, r.parseSet})
	}
	capacities, fastest := map[int]int64{}, int64(0)
	for _, id := range f.CPUs.Online.Value.IDs() {
		file := cpuFolder(id) + "/cpu_capacity"
		capacity := r.numberFact(file)
		if !capacity.Known {
			return Absent[cpus.Set](file, capacity.Reason)
		}
		capacities[id], fastest = capacity.Value, max(fastest, capacity.Value)
	}
	slower := f.CPUs.Online.Value.Filter(func(id int) bool { return capacities[id] < fastest })
	return Known(slower, cpuRoot+"/cpu*/cpu_capacity")
}

func (r *reader) cpuFolders() []int {
	folders := r.numbered(cpuRoot, "cpu", "", maxCPUs)
	if n := len(folders); n > 0 && folders[n-1] > cpus.MaxCPU {
		r.fail(cpuFolder(folders[n-1]), fmt.Errorf("above the largest possible CPU %d", cpus.MaxCPU))
	}
	return folders
}

// isOnline reports whether a CPU runs by its folder. A CPU that cannot be taken offline has no file
// "online"; one that runs has a topology.
func (r *reader) isOnline(id int) bool {
	online := r.switchFact(cpuFolder(id) + "/online")
	if online.Known {
		return online.Value
	}
	_, err := r.directory(cpuFolder(id) + "/topology")
	return err == nil
}

func (r *reader) cpu(id int, online Fact[cpus.Set]) CPU {
	folder := cpuFolder(id)
	topology := folder + "/topology/"
	return CPU{
		ID:          id,
		Online:      memberOf(id, online),
		Package:     r.identifierFact(topology + "physical_package_id"),
		Die:         r.identifierFact(topology + "die_id"),
		Core:        r.identifierFact(topology + "core_id"),
		Siblings:    read(r, r.group(topology, "core_cpus", "thread_siblings")...),
		PackageCPUs: read(r, r.group(topology, "package_cpus", "core_siblings")...),
		Caches:      r.caches(folder + "/cache"),
		IdleStates:  r.idleStates(folder + "/cpuidle"),
		Frequency:   r.frequency(id, folder+"/cpufreq/"),

		CoreThrottles:    r.countFact(folder + "/thermal_throttle/core_throttle_count"),
		PackageThrottles: r.countFact(folder + "/thermal_throttle/package_throttle_count"),
	}
}

// group names the files of a set of CPUs in topology/, by its name since Linux 5.3 and by the one before.
func (r *reader) group(topology, name, oldName string) []source[cpus.Set] {
	return slices.Concat(
		r.set(topology+name+"_list", topology+name),
		r.set(topology+oldName+"_list", topology+oldName),
	)
}

// memberOf turns the membership in a set into a fact.
func memberOf(id int, set Fact[cpus.Set]) Fact[bool] {
	if !set.Known {
		return Absent[bool](set.Source, set.Reason)
	}
	return Known(set.Value.Contains(id), set.Source)
}

func (r *reader) caches(dir string) []Cache {
	return each(r.numbered(dir, "index", "", maxPerCPU), func(index int) Cache {
		file := dir + "/index" + strconv.Itoa(index) + "/"
		return Cache{
			Level:      r.identifierFact(file + "level"),
			Type:       r.nameFact(file + "type"),
			SharedCPUs: read(r, r.set(file+"shared_cpu_list", file+"shared_cpu_map")...),
		}
	})
}

func (r *reader) idleStates(dir string) []IdleState {
	return each(r.numbered(dir, "state", "", maxPerCPU), func(index int) IdleState {
		file := dir + "/state" + strconv.Itoa(index) + "/"
		return IdleState{
			Name:          r.nameFact(file + "name"),
			LatencyMicros: r.numberFact(file + "latency"),
			Disabled:      r.switchFact(file + "disable"),
			Usage:         r.countFact(file + "usage"),
		}
	})
}

func (r *reader) frequency(id int, policy string) Frequency {
	frequency := Frequency{
		Driver:          r.nameFact(policy + "scaling_driver"),
		Governor:        r.nameFact(policy + "scaling_governor"),
		HardwareMinimum: r.numberFact(policy + "cpuinfo_min_freq"),
		HardwareMaximum: r.numberFact(policy + "cpuinfo_max_freq"),
		ScalingMaximum:  r.numberFact(policy + "scaling_max_freq"),

		EnergyPerformancePreference: r.preference(id, policy+energyPreferenceFile),
	}
	const table = "scaling_available_frequencies"
	frequency.TableMaximum = Absent[int64](policy+table, reasonNotAsked)
	if frequency.ScalingMaximum.Value < frequency.HardwareMaximum.Value {
		frequency.TableMaximum = read(r, source[int64]{policy + table, parseLargest})
	}
	return frequency
}

// parseLargest reads numbers in any order.
func parseLargest(text string) (int64, error) {
	var largest int64
	for field := range strings.FieldsSeq(text) {
		number, err := parseNumber(field)
		if err != nil {
			return 0, err
		}
		largest = max(largest, number)
	}
	if largest == 0 {
		return 0, errors.New("it lists no frequency")
	}
	return largest, nil
}

const (
	energyPreferenceFile = "energy_performance_preference"
	reasonInterrupts     = "not read: the kernel would interrupt the isolated CPU for it"
)

// energyPreference finds out which CPUs must not be asked for their energy_performance_preference. Older
// kernels read it from a register of the CPU in question, which they interrupt for that: intel_pstate
// before Linux 5.10 (intel_pstate_get_epp), amd-pstate before 6.14 (amd_pstate_get_epp). A running host's
// isolated CPUs are left in peace; a copy has none.
func (r *reader) energyPreference(f *Facts) {
	driver := r.nameFact(cpuFolder(f.CPUs.Online.Value.First()) + "/cpufreq/scaling_driver").Value
	running, _ := release.Parse(f.Kernel.Release.Value)
	remembered := strings.HasPrefix(driver, "intel") && running.AtLeast(5, 10) ||
		strings.HasPrefix(driver, "amd") && running.AtLeast(6, 14)
	if r.live && !remembered {
		r.undisturbed = f.CPUs.Isolated.Value.Union(f.CPUs.NoHzFull.Value)
	}
}

func (r *reader) preference(id int, file string) Fact[string] {
	if r.undisturbed.Contains(id) {
		r.taken.skip(file, reasonInterrupts)
		return Absent[string](file, reasonInterrupts)
	}
	return r.nameFact(file)
}
