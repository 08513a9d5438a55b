// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// runUnit carries out the first command of a unit of the plan as systemd would, on a tree instead of /sys.
func runUnit(t *testing.T, plan *NodePlan, name, sysfs string, environment ...string) (output string, err error) {
	t.Helper()
	_, command, found := strings.Cut(unitOf(plan, name).Content, "ExecStart=")
	if !found {
		t.Fatalf("unit %s of %v runs nothing", name, unitNames(plan))
	}
	command, _, _ = strings.Cut(command, "\n")
	words := strings.Fields(command)
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte(file(plan, words[0])), 0o755); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "sh", append([]string{script}, words[1:]...)...)
	run.Env = append(os.Environ(), "LOWLATENCY_SYSFS="+sysfs, "LOWLATENCY_ATTEMPTS=3", "LOWLATENCY_PAUSE=0")
	run.Env = append(run.Env, environment...)
	bytes, err := run.CombinedOutput()
	return string(bytes), err
}

// tree writes files below a new folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, content := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func content(t *testing.T, root, path string) string {
	t.Helper()
	bytes, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(bytes))
}

func TestHugepagesScript(t *testing.T) {
	const unit, pool = "lowlatency-hugepages-2048kB-numa1.service", "devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages"
	const compact = "devices/system/node/node1/compact"
	plan := planOf(t, xeon(), hugepages(v1alpha1.HugepageReservation{Size: "2Mi", Count: 400, NUMANode: new(int32(1))}))

	t.Run("reserves", func(t *testing.T) {
		root := tree(t, map[string]string{pool: "0\n", compact: ""})
		output, err := runUnit(t, plan, unit, root)
		if err != nil || content(t, root, pool) != "400" {
			t.Errorf("%v: %s; the pool has %s pages", err, output, content(t, root, pool))
		}
	})
	t.Run("fails without the size", func(t *testing.T) {
		output, err := runUnit(t, plan, unit, tree(t, map[string]string{compact: ""}))
		if err == nil || !strings.Contains(output, pool) {
			t.Errorf("succeeds without a pool: %s", output)
		}
	})
	t.Run("fails when the kernel gives fewer", func(t *testing.T) {
		// A file that takes everything and holds nothing stands for a kernel without free memory.
		root := tree(t, map[string]string{compact: ""})
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, pool)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/dev/null", filepath.Join(root, pool)); err != nil {
			t.Fatal(err)
		}
		output, err := runUnit(t, plan, unit, root)
		if err == nil || !strings.Contains(output, "only 0 of 400 hugepages could be reserved in 3 attempts") {
			t.Errorf("%v: %s", err, output)
		}
		if content(t, root, compact) != "1" {
			t.Error("memory was not compacted between attempts")
		}
	})
}

func TestOfflineScript(t *testing.T) {
	const unit = "lowlatency-offline-cpus.service"
	plan := planOf(t, small(4, 1), explicit(v1alpha1.ExplicitCPUs{Housekeeping: "0", Isolated: "1", Offline: "2-3"}))

	t.Run("takes CPUs offline", func(t *testing.T) {
		root := tree(t, map[string]string{"devices/system/cpu/cpu1/online": "1", "devices/system/cpu/cpu2/online": "1", "devices/system/cpu/cpu3/online": "1"})
		if output, err := runUnit(t, plan, unit, root); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		for cpu, want := range map[string]string{"cpu1": "1", "cpu2": "0", "cpu3": "0"} {
			if got := content(t, root, "devices/system/cpu/"+cpu+"/online"); got != want {
				t.Errorf("%s online is %s, want %s", cpu, got, want)
			}
		}
	})
	t.Run("fails for a CPU that cannot go, after the others", func(t *testing.T) {
		root := tree(t, map[string]string{"devices/system/cpu/cpu3/online": "1"})
		output, err := runUnit(t, plan, unit, root)
		if err == nil || !strings.Contains(output, "CPU 2 cannot be taken offline") {
			t.Errorf("%v: %s", err, output)
		}
		if got := content(t, root, "devices/system/cpu/cpu3/online"); got != "0" {
			t.Errorf("CPU 3 online is %s, want 0", got)
		}
	})
}

func TestDataPlaneScript(t *testing.T) {
	const unit, path = "lowlatency-dataplane-partition.service", "fs/cgroup/dataplane.slice/cpuset.cpus.partition"
	plan := planOf(t, small(4, 1), explicit(v1alpha1.ExplicitCPUs{Housekeeping: "0", Isolated: "1-2", DataPlane: "3",
		DataPlaneLoadBalancing: "Disabled"}))
	root := tree(t, map[string]string{path: "member"})
	if output, err := runUnit(t, plan, unit, root); err != nil || content(t, root, path) != "isolated" {
		t.Errorf("%v: %s; the partition is %s", err, output, content(t, root, path))
	}
	if output, err := runUnit(t, plan, unit, t.TempDir()); err == nil {
		t.Errorf("succeeds without cgroups: %s", output)
	}
}

// TestKernelThreadsScript: a program in place of taskset writes down what it is told, and refuses one thread, as the
// kernel may.
func TestKernelThreadsScript(t *testing.T) {
	const unit = "lowlatency-kernel-threads.service"
	const movable, bound, program = 0x00208040, 0x04208040, 0x00400000
	plan := planOf(t, small(4, 2), explicit(v1alpha1.ExplicitCPUs{Housekeeping: "0,4", Isolated: "1-3,5-7"}))
	threads := []struct {
		pid     int
		name    string
		flags   int
		allowed string
	}{
		{1, "systemd", program, "0-7"},
		{2, "kthreadd", movable, "0,4"},
		{9, "ksoftirqd/1", bound, "1"},
		{15, "rcuog/1", movable, "0-7"},
		{67, "kcompactd1", movable, "4-7"},
		{78, "kswapd0", movable, "0-3"},
		{79, "odd) 1 (name", movable, "1-2,6"},
		{80, "irq/56-ens1-rx-0", movable, "2"},
		{81, "refuses", movable, "3"},
	}
	files := map[string]string{"bin/taskset": "#!/bin/sh\nif [ \"$3\" = 81 ]; then echo 'taskset: Invalid argument' >&2; exit 1; fi\necho \"$@\" >>\"$CALLS\"\n"}
	for _, thread := range threads {
		folder := "proc/" + strconv.Itoa(thread.pid)
		files[folder+"/stat"] = fmt.Sprintf("%d (%s) S 2 0 0 0 -1 %d 0 0 0 0\n", thread.pid, thread.name, thread.flags)
		files[folder+"/status"] = "Name:\t" + thread.name + "\nCpus_allowed:\tff\nCpus_allowed_list:\t" + thread.allowed + "\n"
	}
	// A thread that has ended since its folder was listed.
	files["proc/90/comm"] = "gone"
	root := tree(t, files)
	if err := os.Chmod(filepath.Join(root, "bin/taskset"), 0o755); err != nil {
		t.Fatal(err)
	}
	output, err := runUnit(t, plan, unit, "", "LOWLATENCY_PROCFS="+filepath.Join(root, "proc"),
		"PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"), "CALLS="+filepath.Join(root, "calls"))
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	want := "-pc 0,4 15\n-pc 4 67\n-pc 0 78\n-pc 0,4 79"
	if diff := cmp.Diff(want, content(t, root, "calls")); diff != "" {
		t.Errorf("threads moved (-want +got):\n%s", diff)
	}
	for _, says := range []string{"kernel thread 81 stays on CPUs 3", "4 threads of the kernel moved"} {
		if !strings.Contains(output, says) {
			t.Errorf("output is %q, want %q in it", output, says)
		}
	}
}
