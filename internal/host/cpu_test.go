// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// cpuFiles puts a prefix before the names of files below /sys/devices/system/cpu.
func cpuFiles(tree files) files {
	prefixed := files{}
	for name, content := range tree {
		prefixed["sys/devices/system/cpu/"+name] = content
	}
	return prefixed
}

func TestCPUSets(t *testing.T) {
	cases := map[string]struct {
		tree                                 files
		wantOnline, wantOffline, wantPresent string
		wantList                             string
	}{
		"all lists": {
			files{"online": "0-2\n", "offline": "3,8-9\n", "present": "0-3\n"},
			"0-2", "3,8-9", "0-3", "0+ 1+ 2+ 3-",
		},
		"more than 64 CPUs": {
			files{"online": "0-99\n", "present": "0-99\n", "offline": "\n"},
			"0-99", "", "0-99", strings.TrimSuffix(strings.Join(numbered(100, "%d+ "), ""), " "),
		},
		"sparse numbers": {
			files{"online": "0,4,100\n", "present": "0,4,100-101\n"},
			"0,4,100", "101", "0,4,100-101", "0+ 4+ 100+ 101-",
		},
		"no lists, boot CPU without online": {
			files{"cpu0/topology/core_id": "0", "cpu1/online": "1", "cpu2/online": "0", "cpu2/topology/": ""},
			"0-1", "2", "0-2", "0+ 1+ 2-",
		},
		"only offline": {
			files{"offline": "1", "cpu0/topology/": "", "cpu1/topology/": "", "cpu1/online": "1", "cpu2/online": "1"},
			"0,2", "1", "0-2", "0+ 1- 2+",
		},
		"a folder without anything in it": {
			files{"cpu0/topology/": "", "cpu1/": ""},
			"0", "1", "0-1", "0+ 1-",
		},
		"online that is no number": {
			files{"cpu0/topology/": "", "cpu0/online": "yes", "cpu1/online": "no"},
			"0", "1", "0-1", "0+ 1-",
		},
		"online list without folders": {
			files{"online": "0-1"},
			"0-1", "absent: no such file", "absent: no such file", "",
		},
		"online list that exceeds the folders": {
			files{"online": "0-1", "cpu0/": ""},
			"0-1", "", "0-1", "0+ 1+",
		},
		"other folders": {
			files{"present": "0", "online": "0", "cpu0/": "", "cpufreq/": "", "cpuidle/": "", "cpu01/": "", "cpu-1/": "", "cpu/": "", "cpu1x/": ""},
			"0", "", "0", "0+",
		},
		"folders that are not present": {
			files{"present": "0", "online": "0", "cpu0/": "", "cpu1/": ""},
			"0", "", "0", "0+",
		},
		"nothing": {
			nil, "absent: no such file", "absent: no such file", "absent: no such file", "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sets := readAll(t, cpuFiles(tc.tree)).CPUs
			expect(t, "online", sets.Online, tc.wantOnline)
			expect(t, "offline", sets.Offline, tc.wantOffline)
			expect(t, "present", sets.Present, tc.wantPresent)
			if got := listed(sets.List); got != tc.wantList {
				t.Errorf("the CPUs are %q, want %q", got, tc.wantList)
			}
		})
	}
}

func numbered(n int, format string) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf(format, i)
	}
	return texts
}

// listed shows CPUs with + when they are online and - when they are not.
func listed(list []CPU) string {
	shown := make([]string, 0, len(list))
	for _, cpu := range list {
		shown = append(shown, strconv.Itoa(cpu.ID)+map[bool]string{true: "+", false: "-"}[cpu.Online.Value])
	}
	return strings.Join(shown, " ")
}

func TestKernelCPULists(t *testing.T) {
	cases := map[string]struct {
		tree                       files
		wantIsolated, wantNoHzFull string
	}{
		"set":      {files{"isolated": "2-7\n", "nohz_full": "3-7\n"}, "2-7", "3-7"},
		"empty":    {files{"isolated": "\n", "nohz_full": "(null)\n"}, "", ""},
		"missing":  {nil, "absent: no such file", "absent: no such file"},
		"nonsense": {files{"isolated": "none", "nohz_full": "0-"}, `absent: CPU list "none": "none" is not a CPU number`, `absent: CPU list "0-": "" is not a CPU number`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sets := readAll(t, cpuFiles(tc.tree)).CPUs
			expect(t, "isolated", sets.Isolated, tc.wantIsolated)
			expect(t, "nohz_full", sets.NoHzFull, tc.wantNoHzFull)
		})
	}
}

// TestTopology reads the topology of CPU 0 in the notations of old and new kernels.
func TestTopology(t *testing.T) {
	cases := map[string]struct {
		tree                           files
		wantPackage, wantDie, wantCore string
		wantSiblings, wantPackageCPUs  string
	}{
		"new": {
			files{
				"physical_package_id": "1", "die_id": "0", "core_id": "7",
				"core_cpus_list": "0,40", "thread_siblings_list": "0", "package_cpus_list": "0-79", "core_siblings_list": "0",
			}, "1", "0", "7", "0,40", "0-79",
		},
		"before 5.3": {
			files{"physical_package_id": "0", "core_id": "0", "thread_siblings_list": "0,4", "core_siblings_list": "0-7"},
			"0", "absent: no such file", "0", "0,4", "0-7",
		},
		"masks only": {
			files{"physical_package_id": "3", "core_id": "1", "thread_siblings": "00000000,00001010", "core_siblings": "1,00001111"},
			"3", "absent: no such file", "1", "4,12", "0,4,8,12,32",
		},
		"negative identifiers": {
			files{"physical_package_id": "-1", "die_id": "-1", "core_id": "0", "core_cpus_list": "0"},
			"absent: the kernel reports -1", "absent: the kernel reports -1", "0", "0", "absent: no such file",
		},
		"a high package": {
			files{"physical_package_id": "65535", "core_id": ""},
			"65535", "absent: no such file", `absent: not a number: ""`, "absent: no such file", "absent: no such file",
		},
		"nonsense": {
			files{
				"physical_package_id": "one", "die_id": "99999999999", "core_id": "0x1",
				"core_cpus_list": "0-", "thread_siblings_list": "0", "package_cpus": "zz",
			},
			`absent: not a number: "one"`, `absent: not a number: "99999999999"`, `absent: not a number: "0x1"`,
			`absent: CPU list "0-": "" is not a CPU number`, `absent: CPU mask "zz": "zz" is not a 32-bit hexadecimal group`,
		},
		"offline": {
			nil, "absent: no such file", "absent: no such file", "absent: no such file", "absent: no such file", "absent: no such file",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := files{"present": "0", "online": "0"}
			for file, content := range tc.tree {
				tree["cpu0/topology/"+file] = content
			}
			cpu := readAll(t, cpuFiles(tree)).CPUs.List[0]
			expect(t, "the package", cpu.Package, tc.wantPackage)
			expect(t, "the die", cpu.Die, tc.wantDie)
			expect(t, "the core", cpu.Core, tc.wantCore)
			expect(t, "the siblings", cpu.Siblings, tc.wantSiblings)
			expect(t, "the CPUs of the package", cpu.PackageCPUs, tc.wantPackageCPUs)
		})
	}
}

func TestCaches(t *testing.T) {
	cases := map[string]struct {
		tree files
		want []string
	}{
		"in the order of their numbers": {
			files{"index10/level": "3", "index2/level": "2", "index0/level": "1", "index0/type": "Data", "index0/shared_cpu_list": "0,4"},
			[]string{
				"1 Data 0,4",
				"2 absent: no such file absent: no such file",
				"3 absent: no such file absent: no such file",
			},
		},
		"mask": {
			files{"index0/level": "3", "index0/type": "Unified\n", "index0/shared_cpu_map": "ff,00000000\n"},
			[]string{"3 Unified 32-39"},
		},
		"nonsense": {
			files{"index0/level": "three", "index0/type": "", "index0/shared_cpu_list": "x"},
			[]string{`absent: not a number: "three" absent: empty absent: CPU list "x": "x" is not a CPU number`},
		},
		"empty folder": {files{"index0/": ""}, []string{missing(3)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := files{"present": "0", "online": "0"}
			for file, content := range tc.tree {
				tree["cpu0/cache/"+file] = content
			}
			caches := readAll(t, cpuFiles(tree)).CPUs.List[0].Caches
			got := make([]string, 0, len(caches))
			for _, cache := range caches {
				got = append(got, strings.Join([]string{shown(cache.Level), shown(cache.Type), shown(cache.SharedCPUs)}, " "))
			}
			if strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

func missing(n int) string {
	return strings.TrimSuffix(strings.Repeat("absent: no such file ", n), " ")
}

func TestIdleStates(t *testing.T) {
	tree := files{
		"present": "0", "online": "0",
		"cpu0/cpuidle/state0/name": "POLL", "cpu0/cpuidle/state0/latency": "0", "cpu0/cpuidle/state0/disable": "1",
		"cpu0/cpuidle/state0/usage": "18446744073709551615",
		"cpu0/cpuidle/state1/name":  "", "cpu0/cpuidle/state1/latency": "fast", "cpu0/cpuidle/state1/disable": "no",
		"cpu0/cpuidle/state1/usage":   "-1",
		"cpu0/cpuidle/stateless/name": "none",
	}
	states := readAll(t, cpuFiles(tree)).CPUs.List[0].IdleStates
	if len(states) != 2 {
		t.Fatalf("read %d states, want 2", len(states))
	}
	expect(t, "the switch", states[0].Disabled, "true")
	expect(t, "the usage", states[0].Usage, "18446744073709551615")
	expect(t, "no name", states[1].Name, "absent: empty")
	expect(t, "a wrong latency", states[1].LatencyMicros, `absent: not a number: "fast"`)
	expect(t, "a wrong switch", states[1].Disabled, `absent: not a number: "no"`)
	expect(t, "a wrong usage", states[1].Usage, `absent: not a count: "-1"`)
}

// TestFrequencyIsNotMeasured: the files that make a CPU run code must not be touched, not even in a copy.
func TestFrequencyIsNotMeasured(t *testing.T) {
	tree := files{
		"present": "0", "online": "0",
		"cpu0/cpufreq/scaling_driver": "acpi-cpufreq", "cpu0/cpufreq/scaling_governor": "performance\n",
		"cpu0/cpufreq/scaling_cur_freq": "2100000", "cpu0/cpufreq/cpuinfo_cur_freq": "2100000",
		"cpu0/cpufreq/scaling_max_freq": "<unknown>",
	}
	root := cpuFiles(tree).with(files{"proc/": ""}).write(t)
	facts, err := readPath(t, root)
	must(t, err)
	frequency := facts.CPUs.List[0].Frequency
	expect(t, "the driver", frequency.Driver, "acpi-cpufreq")
	expect(t, "the least frequency", frequency.HardwareMinimum, "absent: no such file")
	expect(t, "the highest frequency", frequency.ScalingMaximum, `absent: not a number: "<unknown>"`)
	taken, err := openTree(snapshot(t, root))
	must(t, err)
	for name := range taken.(*memoryTree).nodes {
		if interrupts(name) && !strings.HasSuffix(name, energyPreferenceFile) {
			t.Errorf("%s was read", name)
		}
	}
}

// TestFrequencyTable: the table is read where the limit is below what the hardware can do.
func TestFrequencyTable(t *testing.T) {
	const folder = "cpu0/cpufreq/"
	cases := map[string]struct{ limit, table, want string }{
		"below the hardware": {"2450000", "1500000 2450000 2000000\n", "2450000"},
		"at the hardware":    {"3500000", "1500000 2450000\n", "absent: " + reasonNotAsked},
		"an empty table":     {"2450000", "\n", "absent: it lists no frequency"},
		"nonsense":           {"2450000", "fast", `absent: not a number: "fast"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			facts := readAll(t, cpuFiles(files{
				"present": "0", "online": "0", folder + "cpuinfo_max_freq": "3500000",
				folder + "scaling_max_freq": tc.limit, folder + "scaling_available_frequencies": tc.table,
			}))
			expect(t, "the table", facts.CPUs.List[0].Frequency.TableMaximum, tc.want)
		})
	}
}

// TestEnergyPreferenceOfIsolatedCPUs: a running kernel that asks the CPU itself is not asked about
// isolated ones, neither by Read nor for a plan, and the snapshot says so.
func TestEnergyPreferenceOfIsolatedCPUs(t *testing.T) {
	const preference = "/sys/devices/system/cpu/cpu%d/cpufreq/energy_performance_preference"
	left := "absent: " + reasonInterrupts
	cases := map[string]struct {
		release, driver string
		copied          bool
		want            [3]string
	}{
		"intel that asks":        {release: "5.4.0", driver: "intel_pstate", want: [3]string{"performance", left, left}},
		"intel that remembers":   {release: "5.10.0-8-amd64", driver: "intel_pstate", want: [3]string{"performance", "performance", "performance"}},
		"amd that asks":          {release: "6.12.0", driver: "amd-pstate-epp", want: [3]string{"performance", left, left}},
		"amd that remembers":     {release: "6.14.0", driver: "amd-pstate-epp", want: [3]string{"performance", "performance", "performance"}},
		"unknown driver":         {release: "6.18.0", driver: "other", want: [3]string{"performance", left, left}},
		"unknown release":        {release: "next", driver: "intel_pstate", want: [3]string{"performance", left, left}},
		"a copy disturbs nobody": {release: "5.4.0", driver: "intel_pstate", copied: true, want: [3]string{"performance", "performance", "performance"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := cpuFiles(files{"present": "0-2", "online": "0-2", "isolated": "1", "nohz_full": "2"})
			for id := range 3 {
				tree[fmt.Sprintf(preference, id)[1:]] = "performance"
				tree[fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/scaling_driver", id)] = tc.driver
			}
			tree["proc/sys/kernel/osrelease"] = tc.release
			h := &Host{path: "running", tree: openLive(t, tree, !tc.copied)}
			taken := newRecording()
			facts, err := h.read(t.Context(), Request{}, taken)
			must(t, err)
			for id, want := range tc.want {
				expect(t, "the preference", facts.CPUs.List[id].Frequency.EnergyPerformancePreference, want)
			}
			if reason := taken.unreadable[fmt.Sprintf(preference, 1)]; (reason == "") != (tc.want[1] == "performance") {
				t.Errorf("the snapshot would say %q", reason)
			}
			bias := "/sys/devices/system/cpu/cpu1/power/energy_perf_bias"
			facts, err = h.ReadWith(t.Context(), Request{Settings: []string{bias}})
			must(t, err)
			if got := shown(facts.Setting(bias)); (got == left) != !tc.copied {
				t.Errorf("the energy bias is %q", got)
			}
		})
	}
}

// openLive makes an archive look like a running kernel, whose files of /proc have no size.
func openLive(t *testing.T, tree files, live bool) tree {
	t.Helper()
	opened, err := openTree(writeFile(t, tree.with(files{"proc/version": "Linux version 6.1.0 (x)"}).pack(t, "")))
	must(t, err)
	if live {
		opened.(*memoryTree).nodes["proc/version"].size = 0
	}
	return opened
}

// TestRunningKernel: procfs gives no size for a file that has content; a copy of it does, or has none.
func TestRunningKernel(t *testing.T) {
	cases := map[string]struct {
		version string
		size    int64
		want    bool
	}{
		"procfs":     {"Linux version 6.1.0", 0, true},
		"copy":       {"Linux version 6.1.0", 19, false},
		"empty copy": {"", 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := newMemoryTree()
			must(t, tree.add("proc/version", &memoryNode{node: node{kind: kindFile, size: tc.size}, content: tc.version}))
			if r := newReader(t.Context(), tree, nil); r.live != tc.want {
				t.Errorf("live is %t, want %t", r.live, tc.want)
			}
		})
	}
	if r := newReader(t.Context(), newMemoryTree(), nil); r.live {
		t.Error("a tree without /proc/version seems to be running")
	}
}

func TestTooManyFolders(t *testing.T) {
	many := func(prefix string, n int) files {
		tree := files{"proc/": ""}
		for i := range n {
			tree[prefix+strconv.Itoa(i)+"/"] = ""
		}
		return tree
	}
	cases := map[string]struct {
		tree        files
		wantMessage string
	}{
		"CPUs":           {many("sys/devices/system/cpu/cpu", maxCPUs+1), "/sys/devices/system/cpu: holds more than 8192 entries"},
		"NUMA nodes":     {many("sys/devices/system/node/node", maxNUMANodes+1), "/sys/devices/system/node: holds more than 1024 entries"},
		"caches":         {many("sys/devices/system/cpu/cpu0/cache/index", maxPerCPU+1), "/sys/devices/system/cpu/cpu0/cache: holds more than 64 entries"},
		"hugepage sizes": {many("sys/kernel/mm/hugepages/hugepages-", 1), ""},
		"interrupts":     {many("proc/irq/", maxEntries+1), "/proc/irq: holds more than 65536 entries"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := readPath(t, writeFile(t, tc.tree.pack(t, "")))
			if tc.wantMessage == "" {
				must(t, err)
			} else if err == nil || !strings.Contains(err.Error(), tc.wantMessage) {
				t.Errorf("got %v, want %q", err, tc.wantMessage)
			}
		})
	}
}
