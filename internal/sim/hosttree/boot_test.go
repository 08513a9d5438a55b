// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

const cpuRoot = "sys/devices/system/cpu/"

// bootCase boots a machine and says what files then hold; "-" is a file that must not exist.
type bootCase struct {
	machine Machine
	options BootOptions
	want    map[string]string
}

// boot boots a machine with arguments alone.
func boot(m Machine, arguments string, want map[string]string) bootCase {
	return bootCase{m, BootOptions{CommandLine: arguments}, want}
}

// small is a machine of which every list fits on a line: two NUMA nodes with 4 cores and SMT.
func small() Machine {
	m := Xeon()
	m.CoresPerNUMANode, m.CoresPerL3, m.MemoryBytesPerNUMANode = 4, 4, 8*gibibyte
	for i := range m.NICs {
		m.NICs[i].Queues = 2
	}
	return m
}

// smallAMD is a machine of AMD of the same kind.
func smallAMD() Machine {
	m := small()
	m.Vendor, m.NativeIdleStates = "AMD", nil
	return m
}

// smallArm has 8 cores without SMT.
func smallArm() Machine {
	m := Arm()
	m.CoresPerNUMANode = 4
	return m
}

func content(t testing.TB, dir, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, path))
	if os.IsNotExist(err) {
		return "-"
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

func runBootCases(t *testing.T, cases map[string]bootCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := written(t, tc.machine)
			if err := Boot(dir, tc.options); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for path := range tc.want {
				got[path] = content(t, dir, path)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// memoryAndSwitches ends the status of every process.
const memoryAndSwitches = "Mems_allowed_list:\t0\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7"

func TestBootIsolation(t *testing.T) {
	const isolated, noHz, work = cpuRoot + "isolated", cpuRoot + "nohz_full", "sys/devices/virtual/workqueue/cpumask"
	runBootCases(t, map[string]bootCase{
		"nothing": boot(small(), "quiet", map[string]string{
			"proc/cmdline": "quiet", isolated: "", noHz: "(null)", work: "ffff",
			"proc/sys/kernel/watchdog_cpumask": "0-15",
		}),
		"a bare list means domain":         boot(small(), "isolcpus=2-3", map[string]string{isolated: "2-3", work: "fff3"}),
		"domain and managed_irq":           boot(small(), "isolcpus=domain,managed_irq,2-7", map[string]string{isolated: "2-7", work: "ff03"}),
		"managed_irq alone":                boot(small(), "isolcpus=managed_irq,2-7", map[string]string{isolated: "", work: "ffff"}),
		"unknown flags are skipped":        boot(small(), "isolcpus=domain,later,2-3", map[string]string{isolated: "2-3"}),
		"a flag with a digit voids it":     boot(small(), "isolcpus=domain2,2-3", map[string]string{isolated: ""}),
		"a list that is none voids it":     boot(small(), "isolcpus=3-2", map[string]string{isolated: ""}),
		"CPUs that do not exist void it":   boot(small(), "isolcpus=14-20", map[string]string{isolated: ""}),
		"all CPUs: the boot CPU is spared": boot(small(), "isolcpus=0-15", map[string]string{isolated: "1-15", work: "1"}),
		"nohz_full": boot(small(), "nohz_full=2-7", map[string]string{
			isolated: "", noHz: "2-7", work: "ff03", "proc/sys/kernel/watchdog_cpumask": "0-1,8-15",
			"sys/module/workqueue/parameters/power_efficient": "Y",
		}),
		"isolcpus=nohz is nohz_full": boot(small(), "isolcpus=nohz,domain,2-7", map[string]string{isolated: "2-7", noHz: "2-7"}),
		"a second list that differs is refused": boot(small(), "isolcpus=nohz,domain,2-7 nohz_full=2-3", map[string]string{
			isolated: "2-7", noHz: "2-7",
		}),
		"a refused list sets nothing": boot(small(), "nohz_full=2-3 isolcpus=nohz,domain,2-7", map[string]string{
			isolated: "", noHz: "2-3",
		}),
		"lists of different kinds may differ": boot(small(), "isolcpus=domain,2-7 nohz_full=2-3", map[string]string{
			isolated: "2-7", noHz: "2-3", work: "ff03",
		}),
		"process 1 keeps off isolated CPUs": boot(small(), "isolcpus=2-7", map[string]string{
			"proc/812/status": "Name:\tirqbalance\nState:\tS (sleeping)\nTgid:\t812\nPid:\t812\nPPid:\t1\nCpus_allowed:\tff03\nCpus_allowed_list:\t0-1,8-15\n" + memoryAndSwitches,
		}),
		"systemd.cpu_affinity": boot(small(), `systemd.cpu_affinity="0 8"`, map[string]string{
			"proc/1/status": "Name:\tsystemd\nState:\tS (sleeping)\nTgid:\t1\nPid:\t1\nPPid:\t1\nCpus_allowed:\t101\nCpus_allowed_list:\t0,8\n" + memoryAndSwitches,
		}),
	})
}

func TestBootSMT(t *testing.T) {
	siblings := cpuRoot + "cpu1/topology/thread_siblings_list"
	off := map[string]string{
		cpuRoot + "online": "0-7", cpuRoot + "offline": "8-15", cpuRoot + "present": "0-15", cpuRoot + "smt/active": "0",
		cpuRoot + "smt/control": "off", siblings: "1", cpuRoot + "cpu9/topology/core_id": "-", cpuRoot + "cpu9/online": "0",
		"sys/devices/system/node/node1/cpulist": "4-7", "sys/class/net/ens2f0np0/device/local_cpulist": "4-7",
	}
	runBootCases(t, map[string]bootCase{
		"on": boot(small(), "", map[string]string{
			cpuRoot + "online": "0-15", cpuRoot + "offline": "", cpuRoot + "smt/active": "1", cpuRoot + "smt/control": "on",
			siblings: "1,9", cpuRoot + "cpu9/online": "1", cpuRoot + "cpu0/online": "-",
		}),
		"nosmt":           boot(small(), "nosmt", off),
		"mitigations":     boot(small(), "mitigations=auto,nosmt", off),
		"nosmt=force":     boot(small(), "nosmt=force", map[string]string{cpuRoot + "smt/control": "forceoff", cpuRoot + "online": "0-7"}),
		"without threads": boot(smallArm(), "nosmt", map[string]string{cpuRoot + "smt/control": "notsupported", cpuRoot + "online": "0-7", cpuRoot + "cpu0/online": "1"}),
		"a NUMA node without CPUs": {machine: small(), options: BootOptions{Offline: "4-7,12-15"}, want: map[string]string{
			"sys/devices/system/node/online": "0-1", "sys/devices/system/node/has_cpu": "0", "sys/devices/system/node/node1/cpulist": "",
			"sys/devices/system/node/node1/cpumap": "0",
		}},
		"offline by a unit": {machine: small(), options: BootOptions{Offline: "3,11"}, want: map[string]string{
			cpuRoot + "online": "0-2,4-10,12-15", cpuRoot + "cpu3/online": "0", cpuRoot + "cpu3/topology/core_id": "-",
			cpuRoot + "smt/active": "1",
		}},
	})
}

func TestBootMemory(t *testing.T) {
	pool := func(node int, size string) string {
		return fmt.Sprintf("sys/devices/system/node/node%d/hugepages/hugepages-%skB/nr_hugepages", node, size)
	}
	const transparent, large, huge = "sys/kernel/mm/transparent_hugepage/enabled", "2048", "1048576"
	counts := func(first, second, firstHuge, secondHuge string) map[string]string {
		return map[string]string{pool(0, large): first, pool(1, large): second, pool(0, huge): firstHuge, pool(1, huge): secondHuge}
	}
	runBootCases(t, map[string]bootCase{
		"nothing":                         boot(small(), "", counts("0", "0", "0", "0")),
		"default size":                    boot(small(), "hugepages=9", counts("5", "4", "0", "0")),
		"size and count":                  boot(small(), "hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=3", counts("2", "1", "2", "2")),
		"count of the default size":       boot(small(), "default_hugepagesz=1G hugepages=2", counts("0", "0", "1", "1")),
		"a size that does not exist":      boot(small(), "hugepagesz=512M hugepages=4 hugepagesz=2M hugepages=2", counts("1", "1", "0", "0")),
		"by NUMA node":                    boot(small(), "hugepagesz=2M hugepages=0:16,1:64", counts("16", "64", "0", "0")),
		"a NUMA node that does not exist": boot(small(), "hugepagesz=2M hugepages=7:16", counts("0", "0", "0", "0")),
		"more than there is":              boot(small(), "hugepagesz=1G hugepages=99", counts("0", "0", "7", "7")),
		"more than one NUMA node has":     boot(small(), "hugepagesz=1G hugepages=0:99", counts("0", "0", "7", "0")),
		"counted twice":                   boot(small(), "hugepagesz=2M hugepages=2 hugepages=8", counts("1", "1", "0", "0")),
		"of the whole machine": boot(small(), "default_hugepagesz=1G hugepagesz=1G hugepages=3", map[string]string{
			"sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "3", "proc/sys/vm/nr_hugepages": "3",
			"sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages": "3",
		}),
		"64 KiB pages": {machine: smallArm(), options: BootOptions{CommandLine: "default_hugepagesz=512M hugepages=2", PageSize: v1alpha1.PageSize64Ki}, want: map[string]string{
			pool(0, "524288"): "1", pool(1, "524288"): "1", pool(0, "64"): "-", pool(0, "16777216"): "0",
			"proc/sys/kernel/osrelease": "5.14.0-570.49.1.el9_6.aarch64+64k",
		}},
		"never":    boot(small(), "transparent_hugepage=never", map[string]string{transparent: "always madvise [never]"}),
		"always":   boot(small(), "transparent_hugepage=always", map[string]string{transparent: "[always] madvise never"}),
		"no word":  boot(small(), "transparent_hugepage=maybe", map[string]string{transparent: "always [madvise] never"}),
		"one node": boot(oneNode(), "", map[string]string{"proc/sys/kernel/numa_balancing": "0"}),
	})
}

func oneNode() Machine {
	m := small()
	m.Packages, m.Distances, m.NICs, m.Disks = 1, [][]int{{10}}, nil, nil
	return m
}

func TestBootPower(t *testing.T) {
	const driver, governor, status = cpuRoot + "cpu1/cpufreq/scaling_driver", cpuRoot + "cpu1/cpufreq/scaling_governor", cpuRoot + "intel_pstate/status"
	const preference, amd, boost = cpuRoot + "cpu1/cpufreq/energy_performance_preference", cpuRoot + "amd_pstate/status", cpuRoot + "cpufreq/boost"
	const idle, lastIntel, last = cpuRoot + "cpuidle/current_driver", cpuRoot + "cpu1/cpuidle/state3/name", cpuRoot + "cpu1/cpuidle/state2/name"
	const first = cpuRoot + "cpu1/cpuidle/state1/name"
	runBootCases(t, map[string]bootCase{
		"Intel": boot(small(), "", map[string]string{
			driver: "intel_pstate", governor: "powersave", status: "active", preference: "balance_performance", boost: "-",
			idle: "intel_idle", lastIntel: "C6",
		}),
		"intel_pstate=passive": boot(small(), "intel_pstate=passive", map[string]string{driver: "intel_cpufreq", governor: "schedutil", status: "passive", preference: "-"}),
		"intel_pstate=disable": boot(small(), "intel_pstate=disable", map[string]string{driver: "acpi-cpufreq", governor: "schedutil", status: "-", boost: "1"}),
		"AMD":                  boot(smallAMD(), "", map[string]string{driver: "acpi-cpufreq", amd: "-", boost: "1", idle: "acpi_idle", last: "C2"}),
		"amd_pstate=active":    boot(smallAMD(), "amd_pstate=active", map[string]string{driver: "amd-pstate-epp", governor: "powersave", amd: "active", preference: "balance_performance"}),
		"amd_pstate=guided":    boot(smallAMD(), "amd_pstate=guided", map[string]string{driver: "amd-pstate", governor: "schedutil", amd: "guided"}),
		"amd_pstate=disable":   boot(smallAMD(), "amd_pstate=disable", map[string]string{driver: "acpi-cpufreq", amd: "-"}),
		"arm64":                boot(smallArm(), "", map[string]string{driver: "cppc_cpufreq", governor: "schedutil", idle: "acpi_idle", first: "LPI-1"}),
		"another governor":     boot(smallArm(), "cpufreq.default_governor=performance", map[string]string{governor: "performance"}),
		"cpufreq.off=1":        boot(small(), "cpufreq.off=1", map[string]string{driver: "-", status: "-"}),
		"idle=poll":            boot(small(), "idle=poll", map[string]string{idle: "none", first: "-"}),
		"idle=poll on arm64":   boot(smallArm(), "idle=poll", map[string]string{idle: "acpi_idle"}),
		"cpuidle.off=1":        boot(smallArm(), "cpuidle.off=1", map[string]string{idle: "none", first: "-"}),
		"intel_idle limited":   boot(small(), "intel_idle.max_cstate=1", map[string]string{idle: "intel_idle", first: "C1", last: "-", "sys/module/intel_idle/parameters/max_cstate": "1"}),
		"intel_idle off":       boot(small(), "intel_idle.max_cstate=0", map[string]string{idle: "acpi_idle", last: "C2"}),
		"shallow by kernel":    boot(small(), "intel_idle.max_cstate=0 processor.max_cstate=1", map[string]string{idle: "acpi_idle", first: "C1", last: "-"}),
		"processor.max_cstate=0 is 1": boot(smallAMD(), "processor.max_cstate=0", map[string]string{
			idle: "acpi_idle", first: "C1", last: "-",
		}),
	})
}

func TestBootKernel(t *testing.T) {
	const hard, soft, either = "proc/sys/kernel/nmi_watchdog", "proc/sys/kernel/soft_watchdog", "proc/sys/kernel/watchdog"
	const checks, clock = "sys/devices/system/machinecheck/machinecheck0/ignore_ce", "sys/devices/system/clocksource/clocksource0/current_clocksource"
	runBootCases(t, map[string]bootCase{
		"nothing":        boot(small(), "", map[string]string{hard: "1", soft: "1", either: "1", checks: "0", clock: "tsc", "sys/kernel/realtime": "-"}),
		"nmi_watchdog=0": boot(small(), "nmi_watchdog=0", map[string]string{hard: "0", soft: "1", either: "1"}),
		"nosoftlockup":   boot(small(), "nosoftlockup", map[string]string{hard: "1", soft: "0", either: "1"}),
		"nowatchdog":     boot(small(), "nowatchdog", map[string]string{hard: "0", soft: "0", either: "0"}),
		"arm64":          boot(smallArm(), "", map[string]string{hard: "0", soft: "1", checks: "-", clock: "arch_sys_counter"}),
		"mce=ignore_ce":  boot(small(), "mce=ignore_ce", map[string]string{checks: "1"}),
		"mce=off":        boot(small(), "mce=off", map[string]string{checks: "-"}),
		"tsc=unstable":   boot(small(), "tsc=unstable", map[string]string{clock: "hpet"}),
		"tsc=reliable":   boot(small(), "tsc=reliable", map[string]string{clock: "tsc"}),
		"clocksource=":   boot(small(), "clocksource=acpi_pm", map[string]string{clock: "acpi_pm"}),
		"real time": {machine: small(), options: BootOptions{KernelType: v1alpha1.KernelRealTime}, want: map[string]string{
			"sys/kernel/realtime": "1", "proc/sys/kernel/osrelease": "5.14.0-570.49.1.el9_6.x86_64+rt",
			"sys/module/rcutree/parameters/kthread_prio": "1",
			// A kernel with PREEMPT_RT is built without these.
			"proc/sys/kernel/numa_balancing": "-", "proc/sys/net/core/busy_poll": "-", "proc/sys/net/core/busy_read": "-",
			"sys/kernel/mm/transparent_hugepage/enabled": "-", "sys/kernel/mm/ksm/run": "0", "proc/sys/vm/compaction_proactiveness": "20",
		}},
	})
}

// routesOf gives smp_affinity_list and effective_affinity_list by handler.
func routesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	routes := map[string]string{}
	for _, r := range facts(t, dir).Interrupts.Routes {
		routes[strings.Join(r.Actions, " ")] = r.Affinity.Value.String() + " at " + r.EffectiveAffinity.Value.String()
	}
	return routes
}

func TestBootInterrupts(t *testing.T) {
	cases := map[string]struct {
		machine                Machine
		arguments, wantDefault string
		want                   map[string]string
	}{
		"spread over the CPUs of the device's NUMA node": {machine: small(), wantDefault: "ffff", want: map[string]string{
			"timer": "0 at 0", "rtc0": "0-15 at 1", "acpi": "0-15 at 2",
			"nvme0q0": "0-3,8-11 at 3", "nvme0q1": "0-3,8-11 at 8", "nvme0q2": "4-7,12-15 at 4",
			"i40e-0000:18:00.0:misc": "0-3,8-11 at 9", "i40e-eno1-TxRx-0": "0-3,8-11 at 10", "i40e-eno1-TxRx-1": "0-3,8-11 at 11",
			"i40e-0000:18:00.1:misc": "0-3,8-11 at 0", "i40e-eno2-TxRx-0": "0-3,8-11 at 1", "i40e-eno2-TxRx-1": "0-3,8-11 at 2",
			"ens2f0np0-0": "4-7,12-15 at 5", "ens2f0np0-1": "4-7,12-15 at 6", "ens2f1np1-0": "4-7,12-15 at 7", "ens2f1np1-1": "4-7,12-15 at 12",
		}},
		"on housekeeping CPUs": {machine: small(), arguments: "irqaffinity=0,4 isolcpus=managed_irq,1-3,5-15", wantDefault: "11", want: map[string]string{
			"timer": "0 at 0", "rtc0": "0,4 at 4", "acpi": "0,4 at 0",
			"nvme0q0": "0 at 0", "nvme0q1": "0-3,8-11 at 0", "nvme0q2": "4-7,12-15 at 4",
			"i40e-0000:18:00.0:misc": "0 at 0", "i40e-eno1-TxRx-0": "0 at 0", "i40e-eno1-TxRx-1": "0 at 0",
			"i40e-0000:18:00.1:misc": "0 at 0", "i40e-eno2-TxRx-0": "0 at 0", "i40e-eno2-TxRx-1": "0 at 0",
			"ens2f0np0-0": "4 at 4", "ens2f0np0-1": "4 at 4", "ens2f1np1-0": "4 at 4", "ens2f1np1-1": "4 at 4",
		}},
		"irqaffinity always holds the boot CPU; a NUMA node without allowed CPU gets none": {machine: oneQueue(), arguments: "irqaffinity=1", wantDefault: "3", want: map[string]string{
			"timer": "0 at 0", "rtc0": "0-1 at 1", "acpi": "0-1 at 0", "ens2f0np0-0": "0-1 at 1",
		}},
		"managed ones stay where only isolated CPUs are": {machine: oneDisk(), arguments: "isolcpus=managed_irq,4-7,12-15", wantDefault: "ffff", want: map[string]string{
			"timer": "0 at 0", "rtc0": "0-15 at 1", "acpi": "0-15 at 2", "nvme0q0": "0-3,8-11 at 3",
			"nvme0q1": "0-3,8-11 at 8", "nvme0q2": "4-7,12-15 at 4",
		}},
		"arm64": {machine: smallArmWithoutDevices(), wantDefault: "ff", want: map[string]string{
			"arch_timer": "0-7 at ", "arm-pmu": "0-7 at ", "ACPI:Ged": "0-7 at 0",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := written(t, tc.machine)
			if err := Boot(dir, BootOptions{CommandLine: tc.arguments}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, routesOf(t, dir)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := content(t, dir, "proc/irq/default_smp_affinity"); got != tc.wantDefault {
				t.Errorf("default affinity %s, want %s", got, tc.wantDefault)
			}
		})
	}
}

// oneQueue has one interrupt on NUMA node 1.
func oneQueue() Machine {
	m := small()
	m.Disks, m.NICs = nil, m.NICs[2:3]
	m.NICs[0].Queues = 1
	return m
}

func oneDisk() Machine {
	m := small()
	m.NICs = nil
	return m
}

func smallArmWithoutDevices() Machine {
	m := smallArm()
	m.NICs, m.Disks = nil, nil
	return m
}

func isUUID(text string) bool {
	return regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(text)
}

func TestBootResetsRuntimeSettingsAndKeepsFiles(t *testing.T) {
	dir := written(t, small())
	before := content(t, dir, "proc/sys/kernel/random/boot_id")
	for path, value := range map[string]string{
		"/proc/sys/vm/stat_interval": "10", "/etc/sysctl.d/99-test.conf": "vm.stat_interval=10",
		"/sys/kernel/mm/transparent_hugepage/enabled": "never",
	} {
		if err := WriteSetting(dir, path, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := Boot(dir, BootOptions{CommandLine: "quiet"}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"proc/sys/vm/stat_interval": "1", "etc/sysctl.d/99-test.conf": "vm.stat_interval=10",
		"sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
	}
	for path, value := range want {
		if got := content(t, dir, path); got != value {
			t.Errorf("%s is %q after boot, want %q", path, got, value)
		}
	}
	if after := content(t, dir, "proc/sys/kernel/random/boot_id"); after == before || !isUUID(after) {
		t.Errorf("boot_id was %s and is %s", before, after)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".boot-*")); len(left) > 0 {
		t.Errorf("%v is left behind", left)
	}
}

func TestBootTwiceGivesTheSameTree(t *testing.T) {
	dir := written(t, small())
	var trees [2]map[string]string
	for i := range trees {
		if err := Boot(dir, BootOptions{CommandLine: "nosmt isolcpus=2-3"}); err != nil {
			t.Fatal(err)
		}
		trees[i] = allFiles(t, dir)
		delete(trees[i], "proc/sys/kernel/random/boot_id")
	}
	if diff := cmp.Diff(trees[0], trees[1]); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
}

func allFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && path != descriptionFile {
			files[path] = content(t, dir, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestBootKeepsTheSignature(t *testing.T) {
	for name, m := range machines() {
		t.Run(name, func(t *testing.T) {
			dir := written(t, m)
			before := topologyOf(t, dir).Signature()
			if err := Boot(dir, BootOptions{CommandLine: "nosmt isolcpus=2-3 hugepagesz=1G hugepages=4", KernelType: v1alpha1.KernelRealTime}); err != nil {
				t.Fatal(err)
			}
			f := facts(t, dir)
			top, err := topology.FromFacts(f)
			if err != nil {
				t.Fatal(err)
			}
			if after := top.Signature(); after != before {
				t.Errorf("signature %s before and %s after boot", before, after)
			}
			reported, err := topology.FromInventory(topology.Inventory(f, top))
			if err != nil || reported.Signature() != before {
				t.Errorf("the inventory has another signature (%v)", err)
			}
		})
	}
}

func TestBootServices(t *testing.T) {
	const dropIn = "/etc/systemd/system/irqbalance.service.d/10-banned.conf"
	dir := written(t, small())
	for path, text := range map[string]string{
		dropIn:                           "[Service]\nEnvironmentFile=-/etc/lowlatency/irqbalance.env\n",
		"/etc/lowlatency/irqbalance.env": "# comment\nIRQBALANCE_BANNED_CPULIST=\"2-7\"\nOTHER=1\n",
	} {
		if err := WriteSetting(dir, path, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := Boot(dir, BootOptions{}); err != nil {
		t.Fatal(err)
	}
	processes, _ := facts(t, dir).Processes.Get()
	if len(processes) != 1 || processes[0].Name != "irqbalance" || processes[0].Environment["IRQBALANCE_BANNED_CPULIST"] != "2-7" {
		t.Errorf("processes of interest: %v", processes)
	}
	if err := os.Symlink("/dev/null", filepath.Join(dir, "etc/systemd/system/irqbalance.service")); err != nil {
		t.Fatal(err)
	}
	if err := Boot(dir, BootOptions{}); err != nil {
		t.Fatal(err)
	}
	if processes, _ := facts(t, dir).Processes.Get(); len(processes) != 0 {
		t.Errorf("a masked irqbalance runs: %v", processes)
	}
}

func TestBootRefuses(t *testing.T) {
	dir := written(t, small())
	cases := map[string]struct {
		dir     string
		options BootOptions
		want    string
	}{
		"no tree":              {dir: t.TempDir(), want: ".machine.json"},
		"NUL in the arguments": {dir: dir, options: BootOptions{CommandLine: "a\x00b"}, want: "NUL"},
		"bad list":             {dir: dir, options: BootOptions{Offline: "x"}, want: "offline"},
		"everything offline":   {dir: dir, options: BootOptions{Offline: "0-15"}, want: "no CPU would be online"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := Boot(tc.dir, tc.options); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v does not say %q", err, tc.want)
			}
		})
	}
	if got := content(t, dir, cpuRoot+"online"); got != "0-15" {
		t.Errorf("a refused boot changed the tree: online %s", got)
	}
}

// FuzzBootArguments boots with anything and asks for what must hold of every kernel.
func FuzzBootArguments(f *testing.F) {
	f.Add("isolcpus=domain,managed_irq,2-7 nohz_full=2-7 irqaffinity=0-1")
	f.Add("isolcpus=nohz,,1-2 isolcpus=,5 hugepagesz=1G hugepages=0:1,1: nosmt")
	m := small()
	f.Fuzz(func(t *testing.T, commandLine string) {
		k, err := description{Machine: m, Options: BootOptions{CommandLine: commandLine}}.kernel()
		if err != nil {
			return
		}
		for _, away := range []cpus.Set{k.isolation.Domain, k.isolation.ManagedIRQ, k.isolation.Noise} {
			if !away.IsSubsetOf(k.all) || k.all.IsSubsetOf(away) {
				t.Errorf("work is kept off %s of %s", away, k.all)
			}
		}
		if k.unboundWork().IsEmpty() {
			t.Error("no CPU is left for unbound work")
		}
		checkHugepages(t, k)
		checkRoutes(t, k)
	})
}

func checkHugepages(t *testing.T, k *kernel) {
	t.Helper()
	for node := range k.numaNodes() {
		if held := k.hugepages.reservedKiB(node); held < 0 || held > k.MemoryBytesPerNUMANode/1024 {
			t.Errorf("NUMA node %d holds %d KiB of hugepages", node, held)
		}
	}
}

func checkRoutes(t *testing.T, k *kernel) {
	t.Helper()
	for number, r := range k.routes {
		if !r.effective.IsSubsetOf(k.online) || !r.effective.IsSubsetOf(r.allowed) {
			t.Errorf("IRQ %d may go to %s and goes to %s of %s", number, r.allowed, r.effective, k.online)
		}
	}
}

func BenchmarkBoot(b *testing.B) {
	dir := written(b, Xeon())
	for b.Loop() {
		if err := Boot(dir, BootOptions{CommandLine: "nosmt isolcpus=2-31"}); err != nil {
			b.Fatal(err)
		}
	}
	if online := content(b, dir, cpuRoot+"online"); online != cpus.Of(upTo(32).IDs()...).String() {
		b.Fatal(online)
	}
}
