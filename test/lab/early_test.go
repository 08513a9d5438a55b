// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package lab_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

// The MachineConfig's unit runs TuneD before the kubelet starts. On the lab's machine three things stand in for what a node
// of OpenShift has: podman runs Debian's TuneD once, as the Node Tuning Operator's image does; the kubelet is a unit that
// records what is in force when it starts; and the DaemonSet's TuneD, Debian's own unit, starts after it.
const (
	// earlyMachine is the name of the machine and of its profile.
	earlyMachine = "real-time"

	earlyLog   = "/run/tuned-early.log"
	atImage    = "/run/at-tuned"
	atKubelet  = "/run/at-kubelet"
	recorder   = "/usr/local/bin/lab-record"
	tunedLog   = "/var/log/tuned/tuned.log"
	tunedUnit  = "lowlatency-tuned.service"
	podmanText = `#!/bin/sh
set -eu
` + recorder + " " + atImage + `
sed -i 's/^daemon *=.*/daemon = 0/' /etc/tuned/tuned-main.conf
/usr/sbin/tuned --no-dbus 2>` + earlyLog + ` >&2
sed -i 's/^daemon *=.*/daemon = 1/' /etc/tuned/tuned-main.conf
`
)

// settingFiles are the files that TuneD sets by the plan, with their values.
func settingFiles(p *plan.NodePlan) []plan.Setting {
	files := make([]plan.Setting, 0, len(p.Sysctls)+len(p.Sysfs))
	for _, s := range p.Sysctls {
		files = append(files, plan.Setting{Name: host.SysctlPath(s.Name), Value: s.Value})
	}
	return append(files, p.Sysfs...)
}

// standIns are the stand-ins for podman, the kubelet and the operator's pod.
func (j *judged) standIns() lab.Configuration {
	files := settingFiles(j.plan)
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = file.Name
	}
	record := "#!/bin/sh\nfor file in " + strings.Join(names, " ") + "; do echo \"$file $(cat $file 2>&1)\"; done >$1\n"
	return lab.Configuration{
		Files: []lab.File{
			{Path: "/var/lib/ocp-tuned/image.env", Content: "NTO_IMAGE=lab\n", Mode: 0o644},
			{Path: "/usr/bin/podman", Content: podmanText, Mode: 0o755},
			{Path: recorder, Content: record, Mode: 0o755},
		},
		Units: []lab.Unit{
			{Name: "kubelet.service", DropIns: map[string]string{"record.conf": "[Service]\nExecStart=" + recorder + " " + atKubelet + "\n"}},
			{Name: "tuned.service", DropIns: map[string]string{"after-kubelet.conf": "[Unit]\nAfter=kubelet.service\n"}},
		},
	}
}

// inForce counts the planned settings that a record on the machine has, and names the others.
func (j *judged) inForce(record string) (count int, missing []string) {
	j.t.Helper()
	values := map[string]string{}
	for line := range strings.Lines(j.run("cat " + record)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		values[name] = value
	}
	for _, file := range settingFiles(j.plan) {
		if setting.Same(file.Name, setting.Selected(values[file.Name]), file.Value) {
			count++
			continue
		}
		missing = append(missing, fmt.Sprintf("%s is %q, not %q", file.Name, values[file.Name], file.Value))
	}
	return count, missing
}

// TestTunedBeforeKubelet tests that on a real-time kernel everything that TuneD sets is in force when the kubelet starts, and
// was not when the unit did; and that TuneD has nothing to complain of.
func TestTunedBeforeKubelet(t *testing.T) {
	table := &outcomeTable{since: time.Now()}
	t.Cleanup(table.print)
	j, _ := startMachine(t, lab.Spec{
		Name:     earlyMachine,
		Topology: lab.Topology{Packages: 1, CoresPerPackage: 4, ThreadsPerCore: 1, MebibytesPerNode: 1536},
		NICs:     []lab.NIC{{ID: "nic0", Model: lab.E1000e}},
		Boot:     lab.Boot{Kernel: lab.Standard},
	}, buildPrograms(t)).planned()
	table.add("boot untuned, plan for PREEMPT_RT", fmt.Sprintf("%d settings for TuneD", len(settingFiles(j.plan))))
	j.must(j.Configure(t.Context(), j.standIns()))
	j.tune()
	table.add("boot with the rendered objects", strings.TrimSpace(j.run("uname -rv")))
	all := len(settingFiles(j.plan))
	before, _ := j.inForce(atImage)
	count, missing := j.inForce(atKubelet)
	if len(missing) > 0 {
		t.Errorf("when the kubelet starts, %s", strings.Join(missing, "; "))
	}
	if before == all {
		t.Error("everything was in force before TuneD had run, so this shows nothing")
	}
	if state := strings.Join(strings.Fields(j.run("systemctl show --value -p Result -p ActiveState "+tunedUnit)), " "); state != "success active" {
		t.Errorf("%s is %q", tunedUnit, state)
	}
	table.add("the kubelet starts", fmt.Sprintf("%d of %d settings in force, %d before %s", count, all, before, tunedUnit))
	table.add("TuneD's log", fmt.Sprintf("%d errors and warnings", j.testLog()))
	found := j.judge("", nil)
	if found.Applied != yes || found.DeJittered != yes {
		t.Errorf("the checks say %+v", found.verdicts)
	}
	if got := found.outcomes["cpu.thread-priorities"]; got != passed {
		t.Errorf("cpu.thread-priorities is %s, want %s", got, passed)
	}
	table.add("the kernel's threads", strings.Join(strings.Fields(j.run("ps -eo comm,cls,rtprio | awk '$1 ~ /^(ksoftirqd|ktimers|rcuc)\\/1$/ {print $1 \":\" $2 \":\" $3}'")), " "))
	table.add("checks", describeCount(found.outcomes))
}

// testLog tests that TuneD has applied the profile without an error, and that it warns of nothing but what the lab's
// machines lack.
func (j *judged) testLog() int {
	j.t.Helper()
	logs := strings.Split(j.run("cat "+earlyLog+" "+tunedLog+" 2>/dev/null || true"), "\n")
	wrong := slices.DeleteFunc(logs, func(line string) bool {
		return !strings.Contains(line, " ERROR ") && !strings.Contains(line, " WARNING ") || isOfTheLab(line)
	})
	for _, line := range wrong {
		j.t.Errorf("TuneD says %q", line)
	}
	return len(wrong)
}

// isOfTheLab reports whether TuneD complains of something that an emulated processor or the lab's image lacks, and that the
// plan does not ask for or the command line has done.
func isOfTheLab(line string) bool {
	return slices.ContainsFunc([]string{
		// Not in the image: programs, and a module of the kernel that the parent profile sets.
		"x86_energy_perf_policy", "hdparm", "nf_conntrack",
		// What podman's stand-in is for.
		"Using one shot no daemon mode",
		// An emulated processor has no counters, so that the kernel has no detector of hard lockups and refuses every value
		// (proc_nmi_watchdog in kernel/watchdog.c). The command line has nmi_watchdog=0.
		"'kernel.nmi_watchdog' to '0': [Errno 524]",
	}, func(words string) bool { return strings.Contains(line, words) })
}
