// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/coreos"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// node is a machine that came up with the objects rendered for it. Its methods fail the test when something cannot be done.
type node struct {
	machine
	t *testing.T
	// plan is what the node was given.
	plan *plan.NodePlan
	host *coreos.Host
	// rendered is the configuration that the node has booted, tuned the text of its TuneD profile.
	rendered *mcfgv1.MachineConfig
	tuned    string
}

// refusals say why there is no plan, with what to do.
func refusals(findings []plan.Finding) string {
	var texts []string
	for _, found := range findings {
		if found.Severity == v1alpha1.SeverityCritical {
			texts = append(texts, found.Field+": "+found.Message+". "+found.Remedy)
		}
	}
	return strings.Join(texts, " / ")
}

// boot plans a machine, renders the plan, and lets the machine come up with it.
func boot(ctx context.Context, dir string, m machine) (*node, error) {
	if err := m.hardware.Write(dir); err != nil {
		return nil, err
	}
	n := &node{machine: m, host: &coreos.Host{Name: m.hardware.Hostname, Dir: dir, BaseCommandLine: m.hardware.BaseCommandLine()}}
	read, err := n.look(ctx)
	if err != nil {
		return nil, err
	}
	if read.planned.Plan == nil {
		return nil, errors.New("no plan: " + refusals(read.planned.Findings))
	}
	n.plan = read.planned.Plan
	if err := n.render(); err != nil {
		return nil, err
	}
	return n, n.comeUp(ctx)
}

// render makes of the plan what the machine-config operator and the Node Tuning Operator bring to the node.
func (n *node) render() error {
	in := manifests.Input{Plan: n.plan, MachineConfigPool: manifests.MachineConfigPool{Name: "trading"}, Namespace: "lowlatency-system"}
	config, err := manifests.MachineConfig(in)
	if err != nil {
		return err
	}
	kubelet, err := manifests.KubeletConfig(in)
	if err != nil {
		return err
	}
	generated, err := coreos.GeneratedKubelet(kubelet, in.MachineConfigPool.Name)
	if err != nil {
		return err
	}
	if n.rendered, err = coreos.RenderPool(in.MachineConfigPool.Name, []mcfgv1.MachineConfig{*config, *generated}); err != nil {
		return err
	}
	tuned, err := manifests.Tuned(in)
	if err != nil {
		return err
	}
	n.tuned, err = profileText(tuned.Object)
	return err
}

// profileText is the text of the only profile of a Tuned.
func profileText(tuned map[string]any) (string, error) {
	spec, _ := tuned["spec"].(map[string]any)
	profiles, _ := spec["profile"].([]any)
	if len(profiles) != 1 {
		return "", errors.New("the Tuned has not one profile")
	}
	profile, _ := profiles[0].(map[string]any)
	text, _ := profile["data"].(string)
	return text, nil
}

func (n *node) comeUp(ctx context.Context) error {
	if err := n.host.Boot(ctx, n.rendered); err != nil {
		return err
	}
	return n.host.ApplyTuned(n.tuned)
}

// clone is the same node for one test, which may do with it what it likes.
func (n *node) clone(t *testing.T) *node {
	t.Helper()
	clone := *n
	clone.t, clone.rendered = t, n.rendered.DeepCopy()
	// The folder goes with the test; it must not exist yet.
	dir := filepath.Join(t.TempDir(), "root")
	host, err := n.host.Clone(dir)
	if err != nil {
		t.Fatal(err)
	}
	clone.host = host
	return &clone
}

// reading is what a host says, and what is planned for it now.
type reading struct {
	facts   *host.Facts
	planned *fleet.Planned
}

// look reads the host as "kubectl lowlatency check" does: what every plan needs, then what the checks of its plan need.
func (n *node) look(ctx context.Context) (read reading, err error) {
	opened, err := host.Open(n.host.Dir)
	if err != nil {
		return read, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	if read.facts, err = opened.Read(ctx); err != nil {
		return read, err
	}
	found, err := topology.FromFacts(read.facts)
	if err != nil {
		return read, err
	}
	topology.MarkManagement(found, &read.facts.Bypass, nil)
	read.planned = fleet.PlanHardware(n.profile, fleet.NewPoolSet(n.pools, nil, nil).On(nil), found, manifests.Rules())
	request := host.Request{}
	for _, wanted := range []*plan.NodePlan{n.plan, read.planned.Plan} {
		if wanted != nil {
			also := verify.Requests(wanted)
			request = host.Request{
				Settings: append(request.Settings, also.Settings...), Tasks: request.Tasks.Union(also.Tasks), Units: append(request.Units, also.Units...),
			}
		}
	}
	read.facts, err = opened.ReadMore(ctx, read.facts, request)
	return read, err
}

// again reads the host a second time: everything where a row makes something happen meanwhile, else what counts events,
// as the agent does between its full readings.
func (n *node) again(before reading, during func(*node)) (facts *host.Facts, err error) {
	if during != nil {
		during(n)
		after, err := n.look(n.t.Context())
		return after.facts, err
	}
	opened, err := host.Open(n.host.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	return opened.ReadActivity(n.t.Context(), before.facts, n.plan.CPUs.Isolated)
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// write writes a value to a file of the host as a program on it would; see hosttree.WriteSetting.
func (n *node) write(path, value string) {
	n.t.Helper()
	n.must(hosttree.WriteSetting(n.host.Dir, path, value))
}

// writeEach writes a value to each file that a path with wildcards names; there must be one.
func (n *node) writeEach(pattern, value string) {
	n.t.Helper()
	for _, path := range n.files(pattern) {
		n.write(path, value)
	}
}

// put makes a file hold exactly this text, whatever the kernel would say to it.
func (n *node) put(path, text string) {
	n.t.Helper()
	full := filepath.Join(n.host.Dir, path)
	n.must(os.MkdirAll(filepath.Dir(full), 0o755))
	if err := os.Remove(full); err != nil && !errors.Is(err, os.ErrNotExist) {
		n.t.Fatal(err)
	}
	n.must(os.WriteFile(full, []byte(text), 0o644))
}

// remove takes files or folders away that paths with wildcards name; there must be one for each path.
func (n *node) remove(patterns ...string) {
	n.t.Helper()
	for _, pattern := range patterns {
		for _, path := range n.files(pattern) {
			n.must(os.RemoveAll(filepath.Join(n.host.Dir, path)))
		}
	}
}

// files are the paths on the host that a path with wildcards names, at least one.
func (n *node) files(pattern string) []string {
	n.t.Helper()
	matches, err := filepath.Glob(filepath.Join(n.host.Dir, pattern))
	n.must(err)
	if len(matches) == 0 {
		n.t.Fatalf("%s names no file of %s", pattern, n.hardware.Hostname)
	}
	for i := range matches {
		matches[i] = strings.TrimPrefix(matches[i], n.host.Dir)
	}
	return matches
}

// exists reports whether the host has a file.
func (n *node) exists(path string) bool {
	_, err := os.Lstat(filepath.Join(n.host.Dir, path))
	return err == nil
}

// text is what a file of the host holds.
func (n *node) text(path string) string {
	n.t.Helper()
	data, err := os.ReadFile(filepath.Join(n.host.Dir, path))
	n.must(err)
	return string(data)
}

// edit replaces text in a file of the host, which must hold it.
func (n *node) edit(path, before, after string) {
	n.t.Helper()
	text := n.text(path)
	if !strings.Contains(text, before) {
		n.t.Fatalf("%s of %s does not hold %q:\n%s", path, n.hardware.Hostname, before, text)
	}
	n.put(path, strings.ReplaceAll(text, before, after))
}

// reboot lets the node come up again with other kernel arguments: change gets those of the rendered MachineConfig.
func (n *node) reboot(change func(arguments []string) []string) {
	n.t.Helper()
	again := n.rendered.DeepCopy()
	again.Spec.KernelArguments = change(again.Spec.KernelArguments)
	n.must(n.host.Boot(n.t.Context(), again))
	n.must(n.host.ApplyTuned(n.tuned))
}

// unplug takes CPUs offline by hand.
func (n *node) unplug(ids ...int) {
	n.t.Helper()
	n.host.Offline = cpus.Of(ids...).String()
	n.reboot(more())
}

// argument returns a change for reboot that replaces the arguments of one name by others, by none where there are none.
// The arguments must have one of that name.
func argument(name string, others ...string) func([]string) []string {
	return func(arguments []string) []string {
		at := slices.IndexFunc(arguments, func(a string) bool { return a == name || strings.HasPrefix(a, name+"=") })
		if at < 0 {
			panic("no argument " + name + " in " + strings.Join(arguments, " "))
		}
		rest := slices.DeleteFunc(slices.Clone(arguments), func(a string) bool { return a == name || strings.HasPrefix(a, name+"=") })
		return slices.Insert(rest, at, others...)
	}
}

// more returns a change for reboot that adds arguments.
func more(others ...string) func([]string) []string {
	return func(arguments []string) []string { return append(slices.Clone(arguments), others...) }
}

// planned is the value of a planned kernel argument.
func (n *node) planned(name string) string {
	n.t.Helper()
	line := n.plan.ArgumentLine()
	value, found := line.Get(name)
	if !found {
		n.t.Fatalf("the plan of %s has no argument %s", n.hardware.Hostname, name)
	}
	return value
}

// isolated is the first isolated CPU.
func (n *node) isolated() int { return n.plan.CPUs.Isolated.First() }

// housekeeping is the first housekeeping CPU.
func (n *node) housekeeping() int { return n.plan.CPUs.Housekeeping.First() }

// firstIsolated and firstHousekeeping are these CPUs as sets.
func (n *node) firstIsolated() cpus.Set     { return cpus.Of(n.isolated()) }
func (n *node) firstHousekeeping() cpus.Set { return cpus.Of(n.housekeeping()) }

// cpu is the path of a file of a CPU.
func cpu(id int, name string) string {
	return fmt.Sprintf("/sys/devices/system/cpu/cpu%d/%s", id, name)
}

// bypassNIC is the name of the first bypass NIC.
func (n *node) bypassNIC() string {
	for _, nic := range n.hardware.NICs {
		if nic.PCIAddress == n.plan.BypassNICs[0].PCIAddress {
			return nic.Name
		}
	}
	n.t.Fatal("no bypass NIC")
	return ""
}

// otherNIC is the name of the first NIC that is none.
func (n *node) otherNIC() string { return n.hardware.NICs[0].Name }

// irq is the interrupt of the first queue of a NIC.
func (n *node) irq(nic string) int {
	n.t.Helper()
	irq, err := hosttree.FindIRQ(n.host.Dir, nic)
	n.must(err)
	return irq
}

// moveIRQ delivers an interrupt elsewhere.
func (n *node) moveIRQ(irq, to int) {
	n.t.Helper()
	n.must(hosttree.MoveIRQ(n.host.Dir, irq, cpus.Of(to)))
}

// process starts a process.
func (n *node) process(process hosttree.Process) {
	n.t.Helper()
	n.must(hosttree.WriteProcess(n.host.Dir, process))
}

// count lets a counter of /proc/interrupts or /proc/softirqs grow on a CPU.
func (n *node) count(path, name string, cpu int, by uint64) {
	n.t.Helper()
	lines := strings.Split(n.text(path), "\n")
	column := slices.Index(strings.Fields(lines[0]), fmt.Sprint("CPU", cpu))
	for i, line := range lines {
		fields := strings.Fields(line)
		if len(fields) <= column+1 || fields[0] != name+":" {
			continue
		}
		before, err := strconv.ParseUint(fields[column+1], 10, 64)
		n.must(err)
		fields[column+1] = strconv.FormatUint(before+by, 10)
		lines[i] = strings.Join(fields, " ")
		n.put(path, strings.Join(lines, "\n"))
		return
	}
	n.t.Fatalf("%s of %s counts no %s", path, n.hardware.Hostname, name)
}

// pod lets the kubelet give CPUs to a Guaranteed pod, whose program runs on the first of them.
func (n *node) pod(own cpus.Set) {
	n.t.Helper()
	const uid = "5d1e1a52-0a4e-4a5f-9f3c-8b7a6d5c4b3a"
	shared := n.plan.CPUs.Housekeeping.Union(n.plan.CPUs.Isolated).Difference(own)
	n.put("/var/lib/kubelet/cpu_manager_state", fmt.Sprintf(`{"policyName":"static","defaultCpuSet":%q,"entries":{%q:{"engine":%q}},"checksum":0}`, shared, uid, own))
	n.process(hosttree.Process{PID: 9000, Name: "engine", AllowedCPUs: own, Busy: true})
	folder := "/sys/fs/cgroup/kubepods.slice/kubepods-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice"
	container := folder + "/crio-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope"
	n.put(folder+"/cpu.max", "max 100000\n")
	n.put(container+"/cpu.max", "max 100000\n")
	n.put(container+"/cpuset.cpus.effective", own.String()+"\n")
	n.put("/proc/9000/cgroup", "0::"+strings.TrimPrefix(container, "/sys/fs/cgroup")+"\n")
}

// podOfVersion1 is pod on a host with version 1 of control groups, with quotas of the container and of the pod.
func (n *node) podOfVersion1(own cpus.Set, quota, podQuota string) {
	n.t.Helper()
	n.pod(own)
	const version2, quotas = "/sys/fs/cgroup/", "/sys/fs/cgroup/cpu,cpuacct/"
	for _, container := range n.files(version2 + "kubepods.slice/kubepods-pod*.slice/crio-*.scope") {
		container = strings.TrimPrefix(container, version2)
		n.put(quotas+container+"/cpu.cfs_quota_us", quota+"\n")
		n.put(quotas+filepath.Dir(container)+"/cpu.cfs_quota_us", podQuota+"\n")
		n.put(version2+"cpuset/"+container+"/cpuset.effective_cpus", own.String()+"\n")
		n.put("/proc/9000/cgroup", "11:cpuset:/"+container+"\n4:cpu,cpuacct:/"+container+"\n1:name=systemd:/"+container+"\n")
	}
	n.remove(version2 + "kubepods.slice")
}

// numbers are CPUs as text.
func numbers(ids []int) []string {
	texts := make([]string, 0, len(ids))
	for _, id := range ids {
		texts = append(texts, strconv.Itoa(id))
	}
	return texts
}

// core are the CPUs of the core of the first isolated CPU.
func (n *node) core() cpus.Set {
	n.t.Helper()
	set, err := cpus.Parse(strings.TrimSpace(n.text(cpu(n.isolated(), "topology/thread_siblings_list"))))
	n.must(err)
	return set
}

// prioritize gives the threads of the kernel of a name that belong to the CPUs a real-time priority.
func (n *node) prioritize(name string, priority int, ids ...int) {
	n.t.Helper()
	count, err := hosttree.Prioritize(n.host.Dir, func(thread string) bool {
		return slices.ContainsFunc(ids, func(id int) bool { return thread == fmt.Sprintf("%s/%d", name, id) })
	}, priority)
	n.must(err)
	if count != len(ids) {
		n.t.Fatalf("%s has %d threads %s of CPUs %v", n.hardware.Hostname, count, name, ids)
	}
}
