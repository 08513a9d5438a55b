// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package confinement

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/repair"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/test/confinement/attempts"
)

const (
	plain     = "../../config/default"
	openshift = "../../config/openshift"
	repairing = "../../config/repair"
)

// outcomes tries everything in a container.
func outcomes(t *testing.T, container string, all []attempts.Trial) []string {
	t.Helper()
	said := make([]string, len(all))
	for i, one := range all {
		said[i] = runAs[string](t, identity{}, "attempt", filepath.Join(container, "host"), one.Way, one.Path)
	}
	return said
}

// TestAttemptsFromInside: of what was possible with the whole host mounted, nothing is possible with the mounts of the
// manifest.
func TestAttemptsFromInside(t *testing.T) {
	root := realHost(t)
	all := attempts.Files()
	before := outcomes(t, contain(t, root, wholeHost()), all)
	after := outcomes(t, contain(t, root, podOf(t, plain)), all)
	withRepair := outcomes(t, contain(t, root, podOf(t, repairing)), all)
	table := make([][]string, 0, 1+len(all))
	table = append(table, []string{"ATTEMPTED BY THE AGENT", "ALL OF / READ-ONLY", "THE MANIFEST'S MOUNTS", "WITH REPAIR"})
	for i, one := range all {
		table = append(table, []string{one.String(), outcome(before[i]), outcome(after[i]), outcome(withRepair[i])})
		if after[i] == "" {
			t.Errorf("an agent can %s %s", one.Way, one.Path)
		}
		if isRepaired := slices.Contains([]string{"/proc/sys/vm/swappiness", "/sys/kernel/mm/ksm/run"}, one.Path); (withRepair[i] == "") != isRepaired {
			t.Errorf("an agent that repairs: %s %s: %s", one.Way, one.Path, outcome(withRepair[i]))
		}
	}
	show(t, table)
	if !slices.Contains(before, "") {
		t.Error("nothing was possible before either, so nothing is shown")
	}
}

// TestPodResources: the one socket that the agent needs can be connected to.
func TestPodResources(t *testing.T) {
	container := contain(t, realHost(t), podOf(t, plain))
	root := filepath.Join(container, "host")
	if said := runAs[string](t, identity{}, "attempt", root, "connect", podResources); said != "" {
		t.Errorf("PodResources cannot be asked: %s", said)
	}
	const nobody = 65534
	if said := runAs[string](t, identity{user: nobody}, "attempt", root, "connect", podResources); said == "" {
		t.Error("PodResources can be asked without root, so that the agent need not be root")
	}
}

// TestPullSecret: agents of OpenShift read the configuration of the kubelet beside the secrets of the node.
func TestPullSecret(t *testing.T) {
	container := contain(t, realHost(t), podOf(t, openshift))
	for path, isRead := range map[string]bool{pullSecret: false, "/etc/kubernetes/admin.conf": false, "/etc/kubernetes/kubelet.conf": true} {
		if said := runAs[string](t, identity{}, "attempt", filepath.Join(container, "host"), "read", path); (said == "") != isRead {
			t.Errorf("%s: %s", path, outcome(said))
		}
	}
}

// TestFactsOfThisKernel: with the mounts of the manifest, as root without capabilities, the same facts of the running kernel
// are known as with all of the host.
func TestFactsOfThisKernel(t *testing.T) {
	root := realHost(t)
	whole := runAs[[]string](t, identity{}, "absent", filepath.Join(contain(t, root, wholeHost()), "host"))
	for name, folder := range map[string]string{"kubeadm": plain, "OpenShift": openshift, "repair": repairing} {
		t.Run(name, func(t *testing.T) {
			got := runAs[[]string](t, identity{}, "absent", filepath.Join(contain(t, root, podOf(t, folder)), "host"))
			// Secrets are beside it.
			expected := []string{".PlatformPods: " + host.PlatformPodsFile + ": " + host.ReasonNotMounted}
			const balancer, workloads = ".Settings[/etc/sysconfig/irqbalance]: /etc/sysconfig/irqbalance: ", ".ManagementCPUs: " + host.RuntimeFolder + ": "
			known := slices.Clone(whole)
			if folder != openshift {
				// Which is not the same as a file that is not there.
				expected = append(expected, balancer+host.ReasonNotMounted, workloads+host.ReasonNotMounted)
				known = slices.DeleteFunc(known, func(s string) bool { return strings.HasPrefix(s, balancer) || strings.HasPrefix(s, workloads) })
			}
			got = slices.DeleteFunc(got, func(s string) bool { return slices.Contains(expected, s) })
			if diff := cmp.Diff(sorted(known), sorted(got)); diff != "" {
				t.Errorf("absent facts (-all of / +manifest):\n%s", diff)
			}
		})
	}
}

func sorted(texts []string) []string { return slices.Sorted(slices.Values(texts)) }

// TestFactsOfEveryMachine: nothing at all differs on hosts that have every fact.
func TestFactsOfEveryMachine(t *testing.T) {
	for _, machine := range []hosttree.Machine{hosttree.Xeon(), hosttree.EPYC(), hosttree.Arm()} {
		t.Run(machine.Hostname, func(t *testing.T) {
			machine.Onload = hosttree.NewOnload()
			root := folderFor(t, "simulated")
			if err := machine.Write(root); err != nil {
				t.Fatal(err)
			}
			furnish(t, root)
			if err := os.MkdirAll(filepath.Join(root, "dev"), 0o755); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(root, "dev/null")); err != nil {
				if err := unix.Mknod(filepath.Join(root, "dev/null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
					t.Fatal(err)
				}
			}
			pod := podOf(t, openshift)
			// What the tree says of itself as a copy is no file of a host, and is put beside what is mounted.
			pod.Containers[0].SecurityContext.ReadOnlyRootFilesystem = nil
			container := contain(t, root, pod)
			if index, err := os.ReadFile(filepath.Join(root, "lowlatency-snapshot.json")); err == nil {
				put(t, filepath.Join(container, "host/lowlatency-snapshot.json"), string(index))
			}
			if diff := runAs[string](t, identity{}, "compare", root, filepath.Join(container, "host")); diff != "" {
				t.Errorf("facts (-all of / +manifest):\n%s", diff)
			}
		})
	}
}

// TestCapabilities prints which facts of this kernel need which user and capability, and expects that root without any has
// all that more capabilities than those to look into other processes would give.
func TestCapabilities(t *testing.T) {
	root := filepath.Join(contain(t, realHost(t), podOf(t, plain)), "host")
	const nobody = 65534
	who := []struct {
		name string
		identity
	}{
		{"root, none", identity{}},
		{"root, CAP_SYS_PTRACE", identity{0, []uintptr{unix.CAP_SYS_PTRACE}}},
		{"root, CAP_DAC_READ_SEARCH", identity{0, []uintptr{unix.CAP_DAC_READ_SEARCH}}},
		{"nobody, none", identity{nobody, nil}},
		{"nobody, CAP_DAC_READ_SEARCH", identity{nobody, []uintptr{unix.CAP_DAC_READ_SEARCH}}},
	}
	base := runAs[[]string](t, who[0].identity, "absent", root)
	table := make([][]string, 0, 1+len(who))
	table = append(table, []string{"USER AND CAPABILITIES", "ABSENT FACTS", "MORE THAN ROOT WITHOUT ANY", "FEWER"})
	for _, one := range who {
		absent := runAs[[]string](t, one.identity, "absent", root)
		more, fewer := without(absent, base), without(base, absent)
		table = append(table, []string{one.name, itoa(len(absent)), facets(more), facets(fewer)})
		if one.user == 0 && len(fewer) > 0 {
			t.Errorf("%s: also known are %v", one.name, fewer)
		}
	}
	show(t, table)
}

func without(some, others []string) []string {
	return slices.DeleteFunc(slices.Clone(some), func(text string) bool { return slices.Contains(others, text) })
}

// facets are the files of absent facts.
func facets(absent []string) string {
	files := map[string]bool{}
	for _, text := range absent {
		if parts := strings.SplitN(text, ": ", 3); len(parts) == 3 {
			files[parts[1]] = true
		}
	}
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) > 6 {
		names = append(names[:6], fmt.Sprintf("and %d more", len(names)-6))
	}
	return strings.Join(names, " ")
}

// TestNothingIsWritable: with recursive read-only mounts nothing of the host is writable, without them the agent would see
// what is, and of a repairing agent only what it may repair.
func TestNothingIsWritable(t *testing.T) {
	root := realHost(t)
	below := func(pod corev1.PodSpec) []string {
		folder := filepath.Join(contain(t, root, pod), "host")
		var writable []string
		for _, mount := range runAs[[]host.Mount](t, identity{}, "mounts", folder) {
			if !mount.ReadOnly {
				writable = append(writable, strings.TrimPrefix(mount.Point, folder))
			}
		}
		return sorted(writable)
	}
	if writable := below(podOf(t, plain)); len(writable) > 0 {
		t.Errorf("writable are %v", writable)
	}
	want := slices.DeleteFunc(repair.Folders(), func(folder string) bool { return folder == "/proc/sys/kernel/numa_balancing" })
	if diff := cmp.Diff(sorted(want), below(podOf(t, repairing))); diff != "" {
		t.Errorf("writable for an agent that repairs (-want +got):\n%s", diff)
	}
	old := podOf(t, plain)
	for i := range old.Containers[0].VolumeMounts {
		old.Containers[0].VolumeMounts[i].RecursiveReadOnly = nil
	}
	if writable := below(old); !slices.Contains(writable, "/dev/pts") && !slices.Contains(writable, "/sys/fs/cgroup") {
		t.Errorf("of a runtime without recursive read-only mounts, the agent sees only %v", writable)
	}
}

func outcome(said string) string {
	if said == "" {
		return "DONE"
	}
	return said
}

// show prints a table, and adds it to the file that ATTEMPTS names.
func show(t *testing.T, table [][]string) {
	t.Helper()
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range table {
		_, _ = fmt.Fprintln(columns, strings.Join(row, "\t"))
	}
	if err := columns.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + text.String())
	name := os.Getenv("ATTEMPTS")
	if name == "" {
		return
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := io.WriteString(file, text.String()+"\n"); err != nil {
		t.Fatal(err)
	}
}
