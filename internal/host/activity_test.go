// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// taskLine is a line of proc_pid_stat(5); of what the kernel tells only what is read differs.
func taskLine(name, state string, parent int, flags uint64, threads, lastCPU int) string {
	return scheduledLine(name, state, parent, flags, threads, lastCPU, "0 0")
}

// scheduledLine is one with a real-time priority and a policy.
func scheduledLine(name, state string, parent int, flags uint64, threads, lastCPU int, scheduling string) string {
	return fmt.Sprintf("77 (%s) %s %d 1 1 0 -1 %d 9 9 9 9 1 2 3 4 20 0 %d 0 25 57081856 5427 18446744073709551615 "+
		"1 1 0 0 0 0 0 4096 1256 0 0 0 17 %d %s 0 0 0 0 0 0 0 0 0 0 0\n", name, state, parent, flags, threads, lastCPU, scheduling)
}

func status(cpus string) string {
	return "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t" + cpus + "\nMems_allowed_list:\t0-1\n" +
		"voluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n"
}

// busyHost runs a kernel thread of each kind, a service, and a program of three threads.
func busyHost() files {
	const kernelThread, bound = flagKernelThread | 0x40, flagKernelThread | flagNoAffinity | 0x40
	return files{
		"sys/devices/system/cpu/present": "0-3", "sys/devices/system/cpu/online": "0-3",
		"proc/2/stat": taskLine("kthreadd", "S", 0, kernelThread, 1, 0), "proc/2/status": status("0-3"),
		"proc/17/stat": taskLine("ksoftirqd/2", "S", 2, bound, 1, 2), "proc/17/status": status("2"),
		"proc/18/stat": taskLine("rcuop/2", "I", 2, kernelThread, 1, 0), "proc/18/status": status("0-1"),
		"proc/300/stat": taskLine("sshd (x) y", "S", 1, 0x400100, 1, 1), "proc/300/status": status("0-1"),
		"proc/300/cgroup":        "0::/system.slice/sshd.service\n",
		"proc/400/cgroup":        "12:cpuset:/kubepods/podx\n1:name=systemd:/kubepods.slice/x.scope\n0::/\n",
		"proc/400/stat":          taskLine("engine", "R", 1, 0x400100, 3, 2),
		"proc/400/task/400/stat": taskLine("engine", "R", 1, 0x400100, 3, 2), "proc/400/task/400/status": status("2"),
		"proc/400/task/401/stat": taskLine("engine-log", "S", 1, 0x400100, 3, 3), "proc/400/task/401/status": status("3"),
		"proc/400/task/402/stat": taskLine("gone", "S", 1, 0x400100, 3, 3),
		"proc/500/stat":          "nonsense",
	}
}

func TestTasks(t *testing.T) {
	facts := readAll(t, busyHost())
	got := make([]string, 0, len(facts.Tasks.Value))
	for _, task := range facts.Tasks.Value {
		got = append(got, fmt.Sprintf("%d/%d %s %s last %d allowed %s memory %s switches %s+%s kernel %t group %s", task.PID, task.TID, task.Name, task.State,
			task.LastCPU, shown(task.AllowedCPUs), shown(task.MemoryNodes), shown(task.VoluntarySwitches), shown(task.InvoluntarySwitches), task.Kernel, task.Group.Value))
	}
	want := []string{
		"2/2 kthreadd S last 0 allowed 0-3 memory 0-1 switches 12+3 kernel true group ",
		"18/18 rcuop/2 I last 0 allowed 0-1 memory 0-1 switches 12+3 kernel true group ",
		"300/300 sshd (x) y S last 1 allowed 0-1 memory 0-1 switches 12+3 kernel false group /system.slice/sshd.service",
		"400/400 engine R last 2 allowed 2 memory 0-1 switches 12+3 kernel false group /kubepods.slice/x.scope",
		"400/401 engine-log S last 3 allowed 3 memory 0-1 switches 12+3 kernel false group /kubepods.slice/x.scope",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if facts.TaskScope.String() != "0-3" {
		t.Errorf("the scope is %s", facts.TaskScope)
	}
}

// TestCPUThreads: threads of each CPU are listed whatever the scope, others and programs with such names are not.
func TestCPUThreads(t *testing.T) {
	const bound = flagKernelThread | flagNoAffinity | 0x40
	facts := readAll(t, busyHost().with(files{
		"proc/19/stat": scheduledLine("rcuc/2", "S", 2, bound, 1, 2, "11 1"),
		"proc/20/stat": scheduledLine("ktimers/3", "S", 2, bound, 1, 3, "1 1"),
		// A snapshot of an older release ends after the processor.
		"proc/21/stat":  "21 (rcuc/3) S 2 0 0 0 0 69238848" + strings.Repeat(" 0", 10) + " 1" + strings.Repeat(" 0", 18) + " 3\n",
		"proc/22/stat":  scheduledLine("migration/3", "S", 2, bound, 1, 3, "99 1"),
		"proc/23/stat":  scheduledLine("rcuc/03", "S", 2, bound, 1, 3, "11 1"),
		"proc/24/stat":  scheduledLine("rcuc/99999", "S", 2, bound, 1, 3, "11 1"),
		"proc/301/stat": scheduledLine("rcuc/1", "S", 1, 0x400100, 1, 1, "11 1"), "proc/301/status": status("0-1"),
	}))
	got := make([]string, 0, len(facts.CPUThreads.Value))
	for _, thread := range facts.CPUThreads.Value {
		got = append(got, fmt.Sprintf("%d %s of CPU %d: %s", thread.PID, thread.Name, thread.CPU, shown(thread.Scheduling)))
	}
	want := []string{
		"17 ksoftirqd of CPU 2: {0 0}", "19 rcuc of CPU 2: {1 11}", "20 ktimers of CPU 3: {1 1}", "21 rcuc of CPU 3: absent: it ends before the real-time priority",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	expect(t, "threads of CPUs", readAll(t, files{"sys/devices/system/cpu/present": "0-3"}).CPUThreads, "absent: no threads")
}

func TestTasksAreAbsent(t *testing.T) {
	present := files{"sys/devices/system/cpu/present": "0-3"}
	cases := map[string]struct {
		tree files
		want string
	}{
		"no processes":          {present, "absent: no threads"},
		"no state of processes": {present.with(files{"proc/1/comm": "systemd"}), "absent: no threads"},
		"no CPUs":               {files{"proc/2/stat": taskLine("x", "S", 0, 0, 1, 0)}, "absent: " + reasonNotAsked},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { expect(t, "tasks", readAll(t, tc.tree).Tasks, tc.want) })
	}
}

// A running host is asked for the threads of certain CPUs only, and for none by default.
func TestTasksOfALiveHost(t *testing.T) {
	live := open(t, "/")
	facts, err := live.Read(t.Context())
	must(t, err)
	expect(t, "tasks", facts.Tasks, "absent: "+reasonNotAsked)
	asked := cpus.Of(facts.CPUs.Online.Value.First())
	facts, err = live.ReadWith(t.Context(), Request{Tasks: asked})
	must(t, err)
	if facts.Tasks.Reason == reasonOtherNamespace {
		return // This test runs in a container that sees its own processes only.
	}
	if !facts.Tasks.Known || !facts.TaskScope.Equal(asked) {
		t.Fatalf("tasks known: %t (%s), scope %s", facts.Tasks.Known, facts.Tasks.Reason, facts.TaskScope)
	}
	for _, task := range facts.Tasks.Value {
		if !task.Kernel && !asked.Contains(task.LastCPU) {
			t.Errorf("thread %d ran on CPU %d, which nobody asked for", task.TID, task.LastCPU)
		}
	}
}

// A container that sees only its own processes does not know who else runs.
func TestProcessesOfAnotherNamespace(t *testing.T) {
	own := files{
		"sys/devices/system/cpu/present": "0-3", "proc/1/comm": "agent", "proc/1/stat": taskLine("agent", "S", 0, 0x400100, 1, 1),
		"proc/2/comm": "sh", "proc/2/stat": taskLine("sh", "S", 1, 0x400100, 1, 1), "proc/2/status": status("0-1"),
	}
	for name, tc := range map[string]struct{ second, want string }{
		"of a container": {"sh", "absent: " + reasonOtherNamespace},
		"of the host":    {"kthreadd", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := &Host{path: "running", tree: openLive(t, own.with(files{"proc/2/comm": tc.second}), true)}
			facts, err := h.ReadWith(t.Context(), Request{Tasks: cpus.Of(1)})
			must(t, err)
			for what, fact := range map[string]string{"processes": shown(facts.Processes), "tasks": shown(facts.Tasks)} {
				if (tc.want != "" || strings.HasPrefix(fact, "absent")) && fact != tc.want {
					t.Errorf("%s: %s", what, fact)
				}
			}
		})
	}
}

func TestParseTaskStatRefuses(t *testing.T) {
	sound := taskLine("x", "S", 1, 0, 1, 0)
	for name, text := range map[string]string{
		"empty": "", "no name": "77 S 1", "parentheses turned round": ") (", "too short": "77 (x) S 1 2 3",
		"flags": strings.Replace(sound, " -1 0 ", " -1 x ", 1), "threads": strings.Replace(sound, " 20 0 1 ", " 20 0 many ", 1),
		"priority": scheduledLine("x", "S", 1, 0, 1, 0, "high 1"), "policy": scheduledLine("x", "S", 1, 0, 1, 0, "1 fifo"),
	} {
		if stat, err := parseTaskStat(text); err == nil {
			t.Errorf("%s: %q gives %+v", name, text, stat)
		}
	}
}

func FuzzTaskStat(f *testing.F) {
	f.Add(taskLine("sshd (x) y", "S", 1, 0x400100, 3, 2))
	f.Add(scheduledLine("rcuc/3", "S", 2, 0x4208040, 1, 3, "11 1"))
	f.Add("1 () ")
	f.Fuzz(func(t *testing.T, text string) {
		stat, err := parseTaskStat(text)
		if err != nil {
			return
		}
		again, err := parseTaskStat(stat.String(77))
		if err != nil || again != stat {
			t.Errorf("%q gives %+v, which a snapshot keeps as %+v (%v)", text, stat, again, err)
		}
	})
}

func TestActivity(t *testing.T) {
	const cpu, node, uncore = "sys/devices/system/cpu/cpu1/", "sys/devices/system/node/node0/", "sys/devices/system/cpu/intel_uncore_frequency/"
	facts := readAll(t, files{
		"sys/devices/system/cpu/present": "0-1", "sys/devices/system/cpu/online": "0-1",
		cpu + "thermal_throttle/core_throttle_count": "4\n", cpu + "thermal_throttle/package_throttle_count": "9\n",
		node + "cpulist": "0-1", node + "numastat": "numa_hit 9\nnuma_miss 1\nnuma_foreign 7\n",
		uncore + "uncore00/min_freq_khz": "800000", uncore + "uncore00/max_freq_khz": "2200000",
		uncore + "package_00_die_00/min_freq_khz": "1200000", uncore + "package_00_die_00/max_freq_khz": "2400000",
		"proc/uptime":             "350735.47 234388.90\n",
		"proc/net/softnet_stat":   "0000ff 00000002 00000000\n0000aa 0000000a 00000001\n",
		"proc/1/net/snmp":         "Ip: A B\nIp: 1 2\nUdp: InDatagrams RcvbufErrors\nUdp: 263 5\n",
		"proc/sys/kernel/tainted": "16\n",
	})
	expect(t, "the time since boot", facts.UptimeSeconds, "350735.47")
	expect(t, "throttles of the core", facts.CPUs.List[1].CoreThrottles, "4")
	expect(t, "throttles of the package", facts.CPUs.List[1].PackageThrottles, "9")
	expect(t, "throttles of CPU 0", facts.CPUs.List[0].CoreThrottles, "absent: no such file")
	expect(t, "foreign allocations", facts.NUMANodes[0].ForeignAllocations, "7")
	expect(t, "drops of the backlog", facts.Traffic.BacklogDrops, "12")
	expect(t, "drops of datagrams", facts.Traffic.DatagramDrops, "5")
	expect(t, "the uncore's minimum", facts.UncoreDomains.Value[1].Minimum, "800000")
	expect(t, "the old uncore's maximum", facts.UncoreDomains.Value[0].Maximum, "2400000")
}

func TestActivityMayBeNonsense(t *testing.T) {
	cases := map[string]struct {
		file, content string
		fact          func(*Facts) string
		want          string
	}{
		"time":               {"proc/uptime", "soon", func(f *Facts) string { return shown(f.UptimeSeconds) }, "not a time since boot"},
		"negative time":      {"proc/uptime", "-1 2", func(f *Facts) string { return shown(f.UptimeSeconds) }, "not a time since boot"},
		"endless time":       {"proc/uptime", "Inf", func(f *Facts) string { return shown(f.UptimeSeconds) }, "not a time since boot"},
		"empty backlog":      {"proc/net/softnet_stat", "", func(f *Facts) string { return shown(f.Traffic.BacklogDrops) }, "no lines"},
		"short backlog":      {"proc/net/softnet_stat", "ff\n", func(f *Facts) string { return shown(f.Traffic.BacklogDrops) }, "not a line of softnet_stat"},
		"backlog of words":   {"proc/net/softnet_stat", "ff many\n", func(f *Facts) string { return shown(f.Traffic.BacklogDrops) }, "not a count"},
		"no datagrams":       {"proc/net/snmp", "Ip: A\nIp: 1\n", func(f *Facts) string { return shown(f.Traffic.DatagramDrops) }, "no counter RcvbufErrors"},
		"datagrams cut off":  {"proc/net/snmp", "Udp: A RcvbufErrors\nUdp: 1\n", func(f *Facts) string { return shown(f.Traffic.DatagramDrops) }, "no counter"},
		"statistics of NUMA": {"sys/devices/system/node/node0/numastat", "numa_hit 1\n", func(f *Facts) string { return shown(f.NUMANodes[0].ForeignAllocations) }, "no line numa_foreign"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			facts := readAll(t, files{"sys/devices/system/node/node0/cpulist": "0", tc.file: tc.content})
			if got := tc.fact(facts); !strings.HasPrefix(got, "absent: "+tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzTraffic(f *testing.F) {
	f.Add("Udp: A RcvbufErrors\nUdp: 1 2\n")
	f.Add("0000ff 00000002 0\n")
	f.Add("350735.47 1.0")
	f.Fuzz(func(t *testing.T, text string) {
		if seconds, err := parseUptime(text); err == nil && seconds < 0 {
			t.Errorf("%q is %g seconds since boot", text, seconds)
		}
		if drops, err := parseBacklogDrops(text); err == nil && text == "" {
			t.Errorf("nothing counts %d drops", drops)
		}
		if drops, err := parseDatagramDrops(text); err == nil && !strings.Contains(text, "RcvbufErrors") {
			t.Errorf("%q counts %d drops", text, drops)
		}
	})
}

func TestUnits(t *testing.T) {
	const etc, usr = "etc/systemd/system/", "usr/lib/systemd/system/"
	tree := files{
		usr + "fwupd-refresh.timer": "[Timer]\n", etc + "a.service": linkTo + "/dev/null", usr + "a.service": "[Service]\n",
		etc + "b.service": linkTo + "../../../usr/lib/systemd/system/b.service", "sys/fs/cgroup/system.slice/b.service/": "",
		"sys/devices/system/cpu/present": "0",
	}
	facts := readAll(t, tree)
	expectUnit(t, facts.Units["fwupd-refresh.timer"], "true/false/absent: only services have a control group")
	if len(facts.Units) != 1 {
		t.Errorf("%d units are read that nobody asked for", len(facts.Units))
	}
	dir := tree.with(files{"proc/": "", "sys/": ""}).write(t)
	request := Request{Units: []string{"a.service", "b.service", "none.service", "../../shadow.service", "x"}}
	facts, err := open(t, dir).ReadWith(t.Context(), request)
	must(t, err)
	expectUnit(t, facts.Units["a.service"], "true/true/false")
	expectUnit(t, facts.Units["b.service"], "true/false/true")
	expectUnit(t, facts.Units["none.service"], "false/false/false")
	if len(facts.Units) != 4 {
		t.Errorf("units: %v", facts.Units)
	}
	copied, err := open(t, snapshot(t, dir)).ReadWith(t.Context(), request)
	must(t, err)
	expectUnit(t, copied.Units["a.service"], "absent: the snapshot does not hold it/absent: the snapshot does not hold it/absent: the snapshot does not hold it")
	bare := readAll(t, files{})
	expectUnit(t, bare.Units["fwupd-refresh.timer"], "absent: no such file/absent: no such file/absent: only services have a control group")
}

func expectUnit(t *testing.T, unit Unit, want string) {
	t.Helper()
	if got := strings.Join([]string{shown(unit.Installed), shown(unit.Masked), shown(unit.Running)}, "/"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPodGroups(t *testing.T) {
	const state, uid = "var/lib/kubelet/cpu_manager_state", "0b0ab8e2-1f4f-4ab1-9c0d-2f2a2bb1c001"
	const systemd = "sys/fs/cgroup/kubepods.slice/kubepods-pod0b0ab8e2_1f4f_4ab1_9c0d_2f2a2bb1c001.slice/"
	const cgroupfs = "sys/fs/cgroup/kubepods/pod" + uid + "/"
	entries := files{state: `{"policyName":"static","entries":{"` + uid + `":{"engine":"2-3"},"../../x":{}}}`}
	cases := map[string]struct {
		tree files
		want string
	}{
		"systemd": {
			entries.with(files{
				systemd + "cpu.max": "200000 100000\n", systemd + "crio-1.scope/cpu.max": "max 100000\n", systemd + "crio-1.scope/cpuset.cpus.effective": "2-3\n",
			}), uid + " 2-3 max 100000 200000 100000",
		},
		"cgroupfs": {
			entries.with(files{cgroupfs + "cpu.max": "max 100000\n", cgroupfs + "1/cpu.max": "max 100000\n"}),
			uid + " absent: no such file max 100000 max 100000",
		},
		"systemd, version 1": {
			entries.with(files{
				first("cpu,cpuacct", systemd) + "cpu.cfs_quota_us": "200000\n", first("cpu,cpuacct", systemd) + "crio-1.scope/cpu.cfs_quota_us": "-1\n",
				first("cpuset", systemd) + "crio-1.scope/cpuset.effective_cpus": "2-3\n", first("cpuset", systemd) + "cpuset.effective_cpus": "0-3\n",
			}), uid + " 2-3 -1 200000",
		},
		"cgroupfs, version 1": {
			entries.with(files{first("cpuset", cgroupfs) + "1/cpuset.effective_cpus": "2-3\n"}), uid + " 2-3 absent: no such file absent: no such file",
		},
		"no group":  {entries, "absent: the control group of pod " + uid + ": no such file"},
		"no state":  {files{}, "absent: no such file"},
		"nonsense":  {files{state: "x"}, "absent: not the state of the CPU manager"},
		"no pods":   {files{state: `{"policyName":"static"}`}, ""},
		"many pods": {files{state: `{"entries":{` + manyPods() + `}}`}, "absent: holds more than 1024 entries"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			groups := readAll(t, tc.tree).Kubelet.PodGroups
			texts := make([]string, 0, 1)
			if !groups.Known {
				texts = append(texts, shown(groups))
			}
			for _, group := range groups.Value {
				texts = append(texts, group.Pod, shown(group.CPUs), shown(group.Quota), shown(group.PodQuota))
			}
			if got := strings.Join(texts, " "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// first is a folder of a control group below a controller of version 1.
func first(controller, folder string) string {
	return strings.Replace(folder, "sys/fs/cgroup/", "sys/fs/cgroup/"+controller+"/", 1)
}

func manyPods() string {
	var b strings.Builder
	for i := range maxPods + 1 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"%08x":{}`, i)
	}
	return b.String()
}

func FuzzPods(f *testing.F) {
	f.Add(`{"entries":{"0b0ab8e2-1f4f":{"engine":"2-3"},"../../x":{}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		pods, err := podsOf(text)
		if err == nil && slices.ContainsFunc(pods, func(pod string) bool { return strings.ContainsAny(pod, "/.") }) {
			t.Errorf("%q gives the pods %v, which lead elsewhere", text, pods)
		}
	})
}

func TestSteeringOfOtherInterfaces(t *testing.T) {
	virtual := func(name string, masks ...string) files {
		queues := files{}
		for queue, mask := range masks {
			queues[fmt.Sprintf("sys/class/net/%s/queues/rx-%d/rps_cpus", name, queue)] = mask + "\n"
		}
		return queues
	}
	facts := readAll(t, pciDevice(nicA, "0x020000", nil).
		with(netDevice("eth0", nicA, "", files{"queues/rx-0/rps_cpus": "0\n"})).
		with(netDevice("eth0p1", nicA, "", files{"dev_port": "1\n", "queues/rx-0/rps_cpus": "2\n"})).
		with(virtual("bond0", "0", "c")).with(virtual("veth1a2b", "3")).with(virtual("lo", "x")).
		with(files{"sys/class/net/veth9/queues/rx-0/tx": "", "sys/class/net/bonding_masters": "bond0\n"}))
	got := map[string]string{}
	for _, other := range facts.Interfaces {
		for queue, mask := range other.ReceiveSteering {
			text := mask.Value.String()
			if !mask.Known {
				text = "absent"
			}
			got[fmt.Sprintf("%s %d", other.Name, queue)] = text
		}
	}
	// veth9 went while it was read: its queue has no mask any more.
	want := map[string]string{"bond0 0": "", "bond0 1": "2-3", "eth0p1 0": "1", "lo 0": "absent", "veth1a2b 0": "0-1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(facts.Interfaces) != 4 {
		t.Errorf("%d interfaces besides the NIC's", len(facts.Interfaces))
	}
}

func TestInterfaceActivity(t *testing.T) {
	facts := readAll(t, pciDevice(nicA, "0x020000", files{"link/l0s_aspm": "0", "link/l1_aspm": "1", "link/clkpm": "1"}).
		with(netDevice("eth0", nicA, "", files{
			"queues/rx-0/rps_cpus": "0\n", "queues/rx-1/rps_cpus": "c\n", "queues/tx-0/xps_cpus": "1\n",
			"statistics/rx_missed_errors": "8\n", "statistics/rx_dropped": "99\n",
		})))
	nic := facts.NICs[0]
	expect(t, "power states of the link", nic.LinkPowerStates, "[l1_aspm]")
	if len(nic.ReceiveSteering) != 2 {
		t.Fatalf("%d receive queues", len(nic.ReceiveSteering))
	}
	expect(t, "steering of queue 1", nic.ReceiveSteering[1], "2-3")
	expect(t, "missed packets", nic.Drops["rx_missed_errors"], "8")
	expect(t, "overruns", nic.Drops["rx_fifo_errors"], "absent: no such file")
	if _, counted := nic.Drops["rx_dropped"]; counted {
		t.Error("packets that nobody wanted count as lost")
	}
	facts = readAll(t, pciDevice(nicA, "0x020000", nil))
	expect(t, "power states without a folder", facts.NICs[0].LinkPowerStates, "absent: no such file")
	facts = readAll(t, pciDevice(nicA, "0x020000", files{"link/l1_aspm": "x"}))
	expect(t, "nonsense", facts.NICs[0].LinkPowerStates, `absent: not a number: "x"`)
}
