// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

func TestMoveIRQ(t *testing.T) {
	dir := written(t, small())
	irq, err := FindIRQ(dir, "ens2f0np0")
	if err != nil {
		t.Fatal(err)
	}
	if err := Boot(dir, BootOptions{CommandLine: "nosmt", Offline: "5"}); err != nil {
		t.Fatal(err)
	}
	if err := MoveIRQ(dir, irq, cpus.Of(9, 5, 6, 7)); err != nil {
		t.Fatal(err)
	}
	if got, want := routesOf(t, dir)["ens2f0np0-0"], "5-7,9 at 6"; got != want {
		t.Errorf("the interrupt is at %s, want %s: CPUs 5 and 9 are offline", got, want)
	}
	if got := content(t, dir, irqFile(irq, "smp_affinity")) + " " + content(t, dir, irqFile(irq, "effective_affinity")); got != "2e0 40" {
		t.Errorf("masks %s, want 2e0 40", got)
	}
	managed := slices.IndexFunc(small().interrupts(), func(i interrupt) bool { return !i.managed.IsEmpty() })
	refused := map[string]struct {
		irq  int
		to   cpus.Set
		want string
	}{
		"nobody's":          {irq: 9999, to: cpus.Of(1), want: "no such interrupt"},
		"the timer's":       {irq: 0, to: cpus.Of(1), want: "input/output error"},
		"managed":           {irq: small().interrupts()[managed].number, to: cpus.Of(1), want: "input/output error"},
		"to an offline CPU": {irq: irq, to: cpus.Of(9), want: "invalid argument"},
	}
	for name, tc := range refused {
		t.Run(name, func(t *testing.T) {
			if err := MoveIRQ(dir, tc.irq, tc.to); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v does not say %q", err, tc.want)
			}
		})
	}
}

func TestFindIRQ(t *testing.T) {
	for _, m := range machines() {
		dir := written(t, m)
		for _, nic := range m.NICs {
			irq, err := FindIRQ(dir, nic.Name)
			if err != nil {
				t.Fatal(err)
			}
			var vectors []int
			for _, known := range facts(t, dir).NICs {
				if known.Name.Value == nic.Name {
					vectors = known.Interrupts
				}
			}
			if !slices.Contains(vectors, irq) {
				t.Errorf("%s: IRQ %d is none of its vectors %v", nic.Name, irq, vectors)
			}
		}
		if _, err := FindIRQ(dir, "eth9"); err == nil {
			t.Error("a NIC that the machine has not got has an interrupt")
		}
	}
}

func TestWriteSetting(t *testing.T) {
	const pool = "sys/devices/system/node/node1/hugepages/hugepages-2048kB/"
	const shared = "sys/kernel/mm/hugepages/hugepages-2048kB/"
	cases := map[string]struct {
		path, value string
		want        map[string]string
		wantError   string
	}{
		"sysctl":              {path: "/proc/sys/vm/stat_interval", value: "10", want: map[string]string{"proc/sys/vm/stat_interval": "10"}},
		"through a link":      {path: "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", value: "performance", want: map[string]string{cpuRoot + "cpufreq/policy1/scaling_governor": "performance"}},
		"a new file":          {path: "/etc/tuned/active_profile", value: "openshift-node-trading\n", want: map[string]string{"etc/tuned/active_profile": "openshift-node-trading"}},
		"a choice":            {path: "/sys/kernel/mm/transparent_hugepage/enabled", value: "never", want: map[string]string{"sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]"}},
		"no choice":           {path: "/sys/kernel/mm/transparent_hugepage/enabled", value: "maybe", wantError: "invalid argument"},
		"affinity":            {path: "/proc/irq/9/smp_affinity_list", value: "2-3", want: map[string]string{"proc/irq/9/effective_affinity_list": "2", "proc/irq/9/smp_affinity": "c"}},
		"affinity of no list": {path: "/proc/irq/9/smp_affinity_list", value: "x", wantError: "IRQ 9"},
		"hugepages": {path: "/" + pool + "nr_hugepages", value: "40", want: map[string]string{
			pool + "nr_hugepages": "40", pool + "free_hugepages": "40", shared + "nr_hugepages": "42", shared + "free_hugepages": "42",
		}},
		"hugepages beyond memory":          {path: "/" + pool + "nr_hugepages", value: "99999", want: map[string]string{pool + "nr_hugepages": "3891"}},
		"hugepages of a size without pool": {path: "/sys/devices/system/node/node1/hugepages/hugepages-4kB/nr_hugepages", value: "1", wantError: "does not exist"},
		"hugepages that are no number":     {path: "/" + pool + "nr_hugepages", value: "-1", wantError: "invalid argument"},
		"hugepages anywhere":               {path: "/proc/sys/vm/nr_hugepages", value: "4", wantError: "only by NUMA node"},
		"offline":                          {path: "/sys/devices/system/cpu/cpu3/online", value: "0", wantError: "only by Boot"},
		"relative":                         {path: "etc/x", value: "1", wantError: "absolute"},
		"detour":                           {path: "/etc/../../x", value: "1", wantError: "absolute"},
		"out of the tree":                  {path: "/etc/away/x", value: "1", wantError: "escapes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := written(t, small())
			if err := Boot(dir, BootOptions{CommandLine: "hugepages=4"}); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(t.TempDir(), filepath.Join(dir, "etc/away")); err != nil {
				t.Fatal(err)
			}
			err := WriteSetting(dir, tc.path, tc.value)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("error %v does not say %q", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for path, want := range tc.want {
				if got := content(t, dir, path); got != want {
					t.Errorf("%s is %q, want %q", path, got, want)
				}
			}
		})
	}
}

func TestProcesses(t *testing.T) {
	dir := written(t, small())
	if err := WriteProcess(dir, Process{PID: 900, Name: "tuned", AllowedCPUs: cpus.Of(0, 1)}); err != nil {
		t.Fatal(err)
	}
	running, _ := facts(t, dir).Processes.Get()
	if len(running) != 2 || running[1].Name != "tuned" {
		t.Errorf("processes of interest: %v", running)
	}
	if err := StopProcess(dir, "irqbalance"); err != nil {
		t.Fatal(err)
	}
	running, _ = facts(t, dir).Processes.Get()
	if len(running) != 1 || running[0].Name != "tuned" {
		t.Errorf("processes of interest: %v", running)
	}
	if err := WriteProcess(dir, Process{Name: "tuned"}); err == nil {
		t.Error("a process without PID started")
	}
}

// TestProcessesAreTasks: a process says its state and its control group.
func TestProcessesAreTasks(t *testing.T) {
	dir := written(t, small())
	if err := WriteProcess(dir, Process{PID: 900, Name: "tuned", AllowedCPUs: cpus.Of(0, 1)}); err != nil {
		t.Fatal(err)
	}
	ended := Process{PID: 901, Name: "engine", AllowedCPUs: cpus.Of(0), Ended: true, Group: "/kubepods.slice/x.scope"}
	if err := WriteProcess(dir, ended); err != nil {
		t.Fatal(err)
	}
	groups := map[string]string{}
	for _, task := range facts(t, dir).Tasks.Value {
		groups[task.Name] = task.State + " " + task.Group.Value
	}
	for name, want := range map[string]string{"systemd": "S /init.scope", "tuned": "S /system.slice/tuned.service", "engine": "Z /kubepods.slice/x.scope", "kswapd0": "S "} {
		if groups[name] != want {
			t.Errorf("%s: state and group %q, want %q", name, groups[name], want)
		}
	}
}

// growth is how much the counters of a line grew on each CPU between two readings.
func growth(t *testing.T, before, after host.Interrupts, name string) map[int]uint64 {
	t.Helper()
	counts := func(i host.Interrupts) []uint64 {
		for _, line := range i.Lines.Value {
			if line.Name == name || strings.HasSuffix(line.Description, " "+name) {
				return line.Counts
			}
		}
		t.Fatalf("no line %s", name)
		return nil
	}
	grown := map[int]uint64{}
	earlier, later := counts(before), counts(after)
	for i, cpu := range after.Columns {
		if later[i] > earlier[i] {
			grown[cpu] = later[i] - earlier[i]
		}
	}
	return grown
}

func TestTick(t *testing.T) {
	dir := written(t, small())
	if err := Boot(dir, BootOptions{CommandLine: "nosmt isolcpus=domain,managed_irq,1-3,5-7 nohz_full=1-3,5-7 irqaffinity=0,4"}); err != nil {
		t.Fatal(err)
	}
	irq, err := FindIRQ(dir, "ens2f0np0")
	if err != nil {
		t.Fatal(err)
	}
	if err := MoveIRQ(dir, irq, cpus.Of(6)); err != nil {
		t.Fatal(err)
	}
	before := facts(t, dir)
	if err := Tick(dir, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	after := facts(t, dir)
	cases := map[string]map[int]uint64{
		"LOC":         {0: 2500, 4: 2500},
		"RES":         {0: 150, 4: 150},
		"ens2f0np0-0": {6: 200},
		"ens2f0np0-1": {4: 200},
		"nvme0q1":     {0: 30},
		"NMI":         {0: 1, 4: 1},
		"MCE":         {},
	}
	for name, want := range cases {
		if diff := cmp.Diff(want, growth(t, before.Interrupts, after.Interrupts, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	softirqs := func(f *host.Facts) host.Interrupts {
		return host.Interrupts{Columns: f.Softirqs.Columns, Lines: f.Softirqs.Lines}
	}
	received := growth(t, softirqs(before), softirqs(after), "NET_RX")
	if received[6] != 200 || received[5] != 0 {
		t.Errorf("received packets: %v, want some on CPU 6 and none on 5", received)
	}
}

// Two processes that run all the time take turns, one that sleeps wakes up, and one that is alone keeps its CPU. Who looks often
// sees that, and whose CPUs they have become.
func TestTickSchedules(t *testing.T) {
	dir := written(t, small())
	if err := Boot(dir, BootOptions{CommandLine: "nosmt"}); err != nil {
		t.Fatal(err)
	}
	for pid, process := range map[int]Process{
		5000: {Name: "alone", AllowedCPUs: cpus.Of(5), Busy: true},
		5001: {Name: "first", AllowedCPUs: cpus.Of(6), Busy: true},
		5002: {Name: "second", AllowedCPUs: cpus.Of(6), Busy: true},
		5003: {Name: "asleep", AllowedCPUs: cpus.Of(7)},
	} {
		process.PID = pid
		if err := WriteProcess(dir, process); err != nil {
			t.Fatal(err)
		}
	}
	before := facts(t, dir)
	if err := Tick(dir, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	const state = `{"policyName":"static","defaultCpuSet":"0-4","entries":{}}`
	if err := os.WriteFile(filepath.Join(dir, "var/lib/kubelet/cpu_manager_state"), []byte(state), 0o600); err != nil {
		t.Fatal(err)
	}
	after := activity(t, dir, before)
	got := map[int]host.RunQueue{}
	for _, cpu := range []int{5, 6, 7} {
		was, is := before.RunQueues.Value[cpu], after.RunQueues.Value[cpu]
		got[cpu] = host.RunQueue{WaitedNanoseconds: is.WaitedNanoseconds - was.WaitedNanoseconds, Turns: is.Turns - was.Turns}
	}
	want := map[int]host.RunQueue{5: {}, 6: {Turns: 3000}, 7: {Turns: 1000}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run queues (-want +got):\n%s", diff)
	}
	if after.Kubelet.CPUManagerState.Value == before.Kubelet.CPUManagerState.Value || !strings.Contains(after.Kubelet.CPUManagerState.Value, "0-4") {
		t.Errorf("the CPU manager's state is %q, and was %q", after.Kubelet.CPUManagerState.Value, before.Kubelet.CPUManagerState.Value)
	}
}

// activity reads what happens on CPUs once more.
func activity(t *testing.T, dir string, earlier *host.Facts) *host.Facts {
	t.Helper()
	h, err := host.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	after, err := h.ReadActivity(t.Context(), earlier, cpus.Set{})
	if err != nil {
		t.Fatal(err)
	}
	return after
}

func TestTickSparesManagedInterruptsOfIsolatedCPUs(t *testing.T) {
	dir := written(t, small())
	if err := Boot(dir, BootOptions{CommandLine: "isolcpus=domain,managed_irq,4-7,12-15"}); err != nil {
		t.Fatal(err)
	}
	before := facts(t, dir)
	if err := Tick(dir, time.Second); err != nil {
		t.Fatal(err)
	}
	after := facts(t, dir)
	for name, want := range map[string]int{"nvme0q1": 1, "nvme0q2": 0} {
		if got := growth(t, before.Interrupts, after.Interrupts, name); len(got) != want {
			t.Errorf("%s came on CPUs %v, want %d of them", name, got, want)
		}
	}
}

func TestTickOnArm(t *testing.T) {
	dir := written(t, smallArm())
	if err := Boot(dir, BootOptions{CommandLine: "nohz_full=2-7"}); err != nil {
		t.Fatal(err)
	}
	before := facts(t, dir)
	if err := Tick(dir, time.Second); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[int]uint64{0: 250, 1: 250}, growth(t, before.Interrupts, facts(t, dir).Interrupts, "arch_timer")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTickEntersTheDeepestAllowedIdleState(t *testing.T) {
	const limit = "/sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us"
	cases := map[string]struct {
		settings map[string]string
		want     string
	}{
		"no limit":          {want: "C6"},
		"a limit":           {settings: map[string]string{limit: "10"}, want: "C1E"},
		"no latency at all": {settings: map[string]string{limit: "n/a"}, want: "POLL"},
		"a state disabled":  {settings: map[string]string{"/sys/devices/system/cpu/cpu1/cpuidle/state3/disable": "1"}, want: "C1E"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := written(t, small())
			for path, value := range tc.settings {
				if err := WriteSetting(dir, path, value); err != nil {
					t.Fatal(err)
				}
			}
			before := facts(t, dir).CPUs.List[1].IdleStates
			if err := Tick(dir, time.Second); err != nil {
				t.Fatal(err)
			}
			for i, state := range facts(t, dir).CPUs.List[1].IdleStates {
				entered := state.Usage.Value > before[i].Usage.Value
				if entered != (state.Name.Value == tc.want) {
					t.Errorf("%s entered: %t, want only %s", state.Name.Value, entered, tc.want)
				}
			}
		})
	}
}

func TestTickRefuses(t *testing.T) {
	if err := Tick(t.TempDir(), time.Second); err == nil {
		t.Error("time passed without a tree")
	}
	for path, text := range map[string]string{
		"/proc/interrupts":                                  "CPUx\n",
		"/proc/softirqs":                                    "CPU0\nno colon\n",
		"/sys/devices/system/cpu/nohz_full":                 "x",
		"/sys/devices/system/cpu/cpu0/cpuidle/state3/usage": "many",
	} {
		dir := written(t, small())
		if err := WriteSetting(dir, path, text); err != nil {
			t.Fatal(err)
		}
		if err := Tick(dir, time.Second); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v does not name %s", err, path)
		}
	}
}

func FuzzCounters(f *testing.F) {
	f.Add("           CPU0       CPU1\n  0:         57          0  IO-APIC   2-edge      timer\nERR:          0\n")
	f.Add("CPU3\nNMI: 1\n")
	f.Add("CPU0\nNMI: 1 2\nERR: 0\n")
	f.Add("CPU11 CPU11111111\nERR: 0\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := parseCounters(text)
		if err != nil {
			return
		}
		again, err := parseCounters(table.String())
		if err != nil {
			t.Fatalf("what was printed cannot be read: %v", err)
		}
		if len(again.rows) != len(table.rows) || !slices.Equal(again.columns, table.columns) {
			t.Fatalf("%d rows became %d", len(table.rows), len(again.rows))
		}
	})
}

func BenchmarkTick(b *testing.B) {
	dir := written(b, EPYC())
	for b.Loop() {
		if err := Tick(dir, time.Second); err != nil {
			b.Fatal(err)
		}
	}
}
