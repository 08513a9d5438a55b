// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package coreos

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/ignition/v2/config/v3_5/types"
	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// newHost is a Xeon that has booted untuned.
func newHost(t *testing.T) *Host {
	t.Helper()
	machine := hosttree.Xeon()
	dir := t.TempDir()
	if err := machine.Write(dir); err != nil {
		t.Fatalf("building the host: %v", err)
	}
	h := &Host{Name: "xeon", Dir: dir, BaseCommandLine: machine.BaseCommandLine()}
	if err := h.Boot(t.Context(), &mcfgv1.MachineConfig{}); err != nil {
		t.Fatalf("booting the host untuned: %v", err)
	}
	return h
}

// facts are what the production code reads of a host.
func facts(t *testing.T, h *Host) *host.Facts {
	t.Helper()
	opened, err := host.Open(h.Dir)
	if err != nil {
		t.Fatalf("opening the host: %v", err)
	}
	defer opened.Close() //nolint:errcheck // Only read.
	read, err := opened.Read(t.Context())
	if err != nil {
		t.Fatalf("reading the host: %v", err)
	}
	return read
}

// configuration is a rendered configuration with the given files, units and kernel arguments.
func configuration(t *testing.T, files []types.File, units []types.Unit, arguments ...string) *mcfgv1.MachineConfig {
	t.Helper()
	raw, err := json.Marshal(types.Config{
		Ignition: types.Ignition{Version: types.MaxVersion.String()},
		Storage:  types.Storage{Files: files},
		Systemd:  types.Systemd{Units: units},
	})
	if err != nil {
		t.Fatalf("writing the configuration: %v", err)
	}
	config := &mcfgv1.MachineConfig{Spec: mcfgv1.MachineConfigSpec{KernelArguments: arguments}}
	config.Spec.Config.Raw = raw
	return config
}

func file(path, content string) types.File {
	return types.File{
		Node:          types.Node{Path: path},
		FileEmbedded1: types.FileEmbedded1{Mode: new(0o755), Contents: types.Resource{Source: new(DataURL([]byte(content)))}},
	}
}

func oneShot(name, command string) types.Unit {
	return types.Unit{Name: name, Enabled: new(true), Contents: new("[Service]\nType=oneshot\nEnvironment=\"GREETING=hello\"\nExecStart=" + command + "\n")}
}

func TestBootLeavesTheTracesOfItsConfiguration(t *testing.T) {
	h := newHost(t)
	script := "#!/bin/sh\necho 64 >$LOWLATENCY_SYSFS/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages\necho \"$GREETING $1\" >$LOWLATENCY_PROCFS/greeting\n"
	err := h.Boot(t.Context(), configuration(t,
		[]types.File{file("/usr/local/bin/reserve", script), file(kubeletConfigPath, `{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1","cpuManagerPolicy":"static","reservedSystemCPUs":"0-3","memoryManagerPolicy":"Static"}`)},
		[]types.Unit{
			oneShot("reserve.service", "/usr/local/bin/reserve world"),
			oneShot("elsewhere.service", "/usr/bin/not-in-the-tree"),
			oneShot("lowlatency-offline-cpus.service", "/usr/local/bin/lowlatency-offline-cpus 5 37"),
			{Name: "irqbalance.service", Mask: new(true)},
		}, "nohz_full=4-31", "isolcpus=domain,managed_irq,4-31"))
	if err != nil {
		t.Fatalf("booting: %v", err)
	}
	checkFacts(t, facts(t, h))
	online := facts(t, h).CPUs.Online.Value
	if offered, err := h.AllocatableCPUs(); err != nil || !offered.Equal(online.Difference(cpus.Of(0, 1, 2, 3))) || offered.Contains(5) {
		t.Errorf("the kubelet offers CPUs %s (%v), online are %s", offered, err, online)
	}
	if greeting, err := os.ReadFile(filepath.Join(h.Dir, "proc/greeting")); err != nil || string(greeting) != "hello world\n" {
		t.Errorf("the unit's program wrote %q (%v), want its environment and argument", greeting, err)
	}
}

// checkFacts compares what the production code reads with what the configuration asked for.
func checkFacts(t *testing.T, read *host.Facts) {
	t.Helper()
	state := read.Kubelet.CPUManagerState.Value
	got := map[string]any{
		"nohz_full":  read.CPUs.NoHzFull.Value.String(),
		"isolated":   read.CPUs.Isolated.Value.String(),
		"offline":    read.CPUs.Offline.Value.String(),
		"2 MiB":      hugepagesOf(read, 2048),
		"irqbalance": slices.ContainsFunc(read.Processes.Value, func(p host.Process) bool { return p.Name == "irqbalance" }),
		"CPUManager": strings.Contains(state, `"policyName":"static"`),
	}
	want := map[string]any{
		"nohz_full": "4-31", "isolated": "4-31", "offline": "5,37", "2 MiB": int64(64), "irqbalance": false, "CPUManager": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

// hugepagesOf is the number of hugepages of one size on the whole host; -1 when there is no such pool.
func hugepagesOf(read *host.Facts, kibibytes int64) int64 {
	for _, pool := range read.Hugepages {
		if pool.SizeKibibytes == kibibytes {
			return pool.Total.Value
		}
	}
	return -1
}

func TestBootRemovesWhatTheConfigurationNoLongerHas(t *testing.T) {
	h := newHost(t)
	if err := h.Boot(t.Context(), configuration(t, []types.File{file("/etc/ours", "x"), file("/etc/kept", "1")}, nil)); err != nil {
		t.Fatalf("booting: %v", err)
	}
	if err := h.Boot(t.Context(), configuration(t, []types.File{file("/etc/kept", "2")}, nil)); err != nil {
		t.Fatalf("booting again: %v", err)
	}
	if _, err := os.Stat(filepath.Join(h.Dir, "etc/ours")); !os.IsNotExist(err) {
		t.Errorf("/etc/ours is still there: %v", err)
	}
	if content, err := os.ReadFile(filepath.Join(h.Dir, "etc/kept")); err != nil || string(content) != "2" {
		t.Errorf("/etc/kept holds %q (%v), want 2", content, err)
	}
}

func TestBootFailures(t *testing.T) {
	cases := map[string]struct {
		files []types.File
		units []types.Unit
		want  string
	}{
		"a unit that fails keeps the host away": {
			files: []types.File{file("/usr/local/bin/fail", "#!/bin/sh\necho no memory >&2\nexit 3\n")},
			units: []types.Unit{oneShot("fail.service", "/usr/local/bin/fail")},
			want:  "unit fail.service of host xeon failed: /usr/local/bin/fail: exit status 3: no memory",
		},
		"more hugepages than the NUMA node holds": {
			files: []types.File{file("/usr/local/bin/greedy", "#!/bin/sh\necho 99999999 >$LOWLATENCY_SYSFS/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages\n")},
			units: []types.Unit{oneShot("greedy.service", "/usr/local/bin/greedy")},
			want:  "of 99999999 hugepages could be reserved",
		},
		"a kubelet configuration with an unknown field": {
			files: []types.File{file(kubeletConfigPath, `{"cpuManagerPolice":"static"}`)},
			want:  "the kubelet of host xeon refuses its configuration",
		},
		"a file outside of the tree": {
			files: []types.File{file("/../../escape", "x")},
			want:  "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			err := h.Boot(t.Context(), configuration(t, tc.files, tc.units))
			if tc.want == "" {
				if _, statErr := os.Stat(filepath.Join(h.Dir, "..", "escape")); !os.IsNotExist(statErr) {
					t.Errorf("a file was written outside of the tree (%v)", statErr)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestBootThatIsEnded: who ends a demo reads of the end, and not of a signal that a script of a simulated host has got.
func TestBootThatIsEnded(t *testing.T) {
	h := newHost(t)
	begun := filepath.Join(t.TempDir(), "begun")
	files := []types.File{file("/usr/local/bin/slow", "#!/bin/sh\n: > "+begun+"\nexec sleep 60\n")}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- h.Boot(ctx, configuration(t, files, []types.Unit{oneShot("slow.service", "/usr/local/bin/slow")}))
	}()
	for _, err := os.Stat(begun); err != nil; _, err = os.Stat(begun) {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that the context has ended", err)
	}
}

func TestApplyTuned(t *testing.T) {
	h := newHost(t)
	err := h.ApplyTuned(`[main]
summary=x
[sysctl]
vm.stat_interval=10
[sysfs]
/sys/devices/virtual/workqueue/cpumask=3
/sys/devices/system/cpu/cpu*/no/such/file=1
[vm]
transparent_hugepages=never
[cpu]
governor=performance
[scheduler]
runtime=0
group.ksoftirqd=0:f:11:*:^\[ksoftirqd/
`)
	if err != nil {
		t.Fatalf("applying: %v", err)
	}
	read := facts(t, h)
	testPriorities(t, read)
	for path, want := range map[string]string{
		"/proc/sys/vm/stat_interval":                  "10",
		"/sys/devices/virtual/workqueue/cpumask":      "3",
		"/sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]",
	} {
		if got := read.Setting(path).Value; got != want {
			t.Errorf("%s holds %q, want %q", path, got, want)
		}
	}
	for _, cpu := range read.CPUs.List {
		if got := cpu.Frequency.Governor.Value; got != "performance" {
			t.Errorf("CPU %d has governor %q, want performance", cpu.ID, got)
			break
		}
	}
}

// testPriorities expects the priority of the profile for ksoftirqd of each CPU.
func testPriorities(t *testing.T, read *host.Facts) {
	t.Helper()
	for _, thread := range read.CPUThreads.Value {
		if want := host.Known(host.Scheduling{Policy: host.PolicyFIFO, Priority: 11}, thread.Scheduling.Source); thread.Name == "ksoftirqd" && thread.Scheduling != want {
			t.Errorf("%s of CPU %d is scheduled with %+v, want %+v", thread.Name, thread.CPU, thread.Scheduling, want)
		}
	}
	if count := len(read.CPUThreads.Value); count != read.CPUs.Online.Value.Len() {
		t.Errorf("%d threads of CPUs, want ksoftirqd of each", count)
	}
}

func TestApplyTunedRefuses(t *testing.T) {
	h := newHost(t)
	for what, profile := range map[string]string{
		"a path with a broken wildcard": "[sysfs]\n/sys/[=1\n",
		"a rule of three parts":         "[scheduler]\ngroup.x=0:f:1\n",
		"another policy":                "[scheduler]\ngroup.x=0:b:1:*:x\n",
		"a priority in words":           "[scheduler]\ngroup.x=0:f:high:*:x\n",
		"a broken expression":           "[scheduler]\ngroup.x=0:f:1:*:(\n",
	} {
		if err := h.ApplyTuned(profile); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
}

// TestBootPreparesNICs: what the rendered program makes of a NIC is there when the host is up.
func TestBootPreparesNICs(t *testing.T) {
	const program = "/usr/local/bin/lowlatency-bypass-nic "
	cases := map[string]struct {
		command   string
		want      int
		wantError string
	}{
		"virtual functions for the kernel":     {command: program + "0000:af:00.0 2 kept none", want: 2},
		"virtual functions for user space":     {command: program + "0000:af:00.0 1 vfio-pci IOMMU", wantError: "without an IOMMU"},
		"more of them than there can be":       {command: program + "0000:af:00.0 17 kept none", wantError: "numerical result out of range"},
		"a number that is none":                {command: program + "0000:af:00.0 two kept none", wantError: "preparing NIC 0000:af:00.0"},
		"a NIC that the machine does not have": {command: program + "0000:ee:00.0 1 kept none", wantError: "no such NIC"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			err := h.Boot(t.Context(), configuration(t, nil, []types.Unit{oneShot("nic.service", tc.command)}))
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("got %v, want an error with %q", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			functions, err := hosttree.VirtualFunctions(h.Dir, "0000:af:00.0")
			if err != nil || len(functions) != tc.want {
				t.Errorf("virtual functions %q, %v, want %d", functions, err, tc.want)
			}
		})
	}
}
