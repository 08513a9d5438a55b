// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package tunedhost gives tests a simulated machine and the plan that was made for it, and brings the
// plan to the machine without a platform.
package tunedhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Host is a host tree and the plan that was made for it.
type Host struct {
	// Dir is the root of the tree.
	Dir     string
	Machine hosttree.Machine
	Plan    *plan.NodePlan
}

// Profile is the profile of a trading host whose bypass NICs are Solarflare's, as every machine of
// hosttree has them.
func Profile() *v1alpha1.LowLatencyNodeProfile {
	return &v1alpha1.LowLatencyNodeProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "trading"},
		Spec: v1alpha1.LowLatencyNodeProfileSpec{
			Memory: v1alpha1.MemorySpec{
				DefaultHugepageSize: "1Gi",
				Hugepages: []v1alpha1.HugepageReservation{
					{Size: "1Gi", Count: 16}, {Size: "2Mi", Count: 400, Placement: v1alpha1.HugepagesBypassNICLocal},
				},
			},
			Network: v1alpha1.NetworkSpec{NICs: []v1alpha1.NICSelector{{Vendor: "1924"}}},
			Power:   v1alpha1.PowerSpec{Preset: v1alpha1.PowerMaximumDeterminism},
		},
	}
}

// Small takes most cores away from a machine and leaves its shape, so that tests are fast.
func Small(machine hosttree.Machine) hosttree.Machine {
	machine.CoresPerNUMANode = max(2, 8/(machine.Packages*machine.NUMANodesPerPackage))
	machine.CoresPerL3 = min(machine.CoresPerL3, machine.CoresPerNUMANode/2)
	return machine
}

// New writes the tree of a machine that nothing has tuned into an empty directory, and plans it.
func New(ctx context.Context, dir string, machine hosttree.Machine, profile *v1alpha1.LowLatencyNodeProfile) (*Host, error) {
	if err := machine.Write(dir); err != nil {
		return nil, fmt.Errorf("writing the tree of %s: %w", machine.Hostname, err)
	}
	h := &Host{Dir: dir, Machine: machine}
	facts, err := h.Read(ctx)
	if err != nil {
		return nil, err
	}
	found, err := topology.FromFacts(facts)
	if err != nil {
		return nil, fmt.Errorf("understanding %s: %w", machine.Hostname, err)
	}
	planned, findings := plan.New(plan.Input{Profile: profile, Topology: found})
	if planned == nil {
		return nil, fmt.Errorf("no plan for %s: %+v", machine.Hostname, findings)
	}
	h.Plan = planned
	return h, nil
}

// Read reads the host, and the given small files besides.
func (h *Host) Read(ctx context.Context, extra ...string) (facts *host.Facts, err error) {
	opened, err := host.Open(h.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", h.Machine.Hostname, err)
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	facts, err = opened.ReadWith(ctx, host.Request{Settings: extra})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", h.Machine.Hostname, err)
	}
	return facts, nil
}

// Apply does what a platform does to bring the plan to a host: files, a boot with the planned kernel and
// arguments, everything that is set at run time, and a kubelet that has started without pods.
func (h *Host) Apply() error {
	w := &writer{dir: h.Dir}
	h.writeFiles(w)
	w.do(func() error {
		return hosttree.Boot(h.Dir, hosttree.BootOptions{
			CommandLine: h.commandLine(), KernelType: h.Plan.Kernel.Type, PageSize: h.Plan.Kernel.PageSize,
			Offline: h.Plan.CPUs.Offline.String(),
		})
	})
	h.writeSettings(w)
	h.startKubelet(w)
	if w.err != nil {
		return fmt.Errorf("bringing the plan to %s: %w", h.Machine.Hostname, w.err)
	}
	return nil
}

// Write writes a file of the host as a program on it would.
func (h *Host) Write(path, value string) error { return hosttree.WriteSetting(h.Dir, path, value) }

// BypassNIC is the name of the first bypass NIC.
func (h *Host) BypassNIC() string {
	for _, nic := range h.Machine.NICs {
		if nic.PCIAddress == h.Plan.BypassNICs[0].PCIAddress {
			return nic.Name
		}
	}
	return ""
}

func (h *Host) commandLine() string {
	words := make([]string, 0, len(h.Plan.KernelArguments)+1)
	words = append(words, h.Machine.BaseCommandLine())
	for _, argument := range h.Plan.KernelArguments {
		words = append(words, argument.Text)
	}
	return strings.Join(words, " ")
}

// writeFiles puts the planned files and the kubelet's configuration on the host.
func (h *Host) writeFiles(w *writer) {
	for _, file := range h.Plan.Files {
		w.write(file.Path, file.Content)
	}
	for _, unit := range h.Plan.Units {
		if unit.Masked {
			w.do(func() error { return mask(h.Dir, unit.Name) })
		}
		for name, content := range unit.DropIns {
			w.write("/etc/systemd/system/"+unit.Name+".d/"+name, content)
		}
	}
	w.do(func() error {
		config, err := json.Marshal(h.Plan.Kubelet)
		w.write("/etc/kubernetes/kubelet.conf", `{"kind":"KubeletConfiguration",`+strings.TrimPrefix(string(config), "{"))
		return err
	})
}

// mask does what systemctl mask does.
func mask(dir, unit string) error {
	folder := filepath.Join(dir, "etc/systemd/system")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	err := os.Symlink("/dev/null", filepath.Join(folder, unit))
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	return err
}

// writeSettings sets what a kernel takes on while it runs.
func (h *Host) writeSettings(w *writer) {
	for _, pages := range h.Plan.Hugepages {
		if pages.Method == plan.ByUnit {
			w.write(fmt.Sprintf("/sys/devices/system/node/node%d/hugepages/hugepages-%dkB/nr_hugepages", *pages.NUMANode, pages.SizeKibibytes),
				strconv.FormatInt(pages.Count, 10))
		}
	}
	for _, sysctl := range h.Plan.Sysctls {
		w.write(host.SysctlPath(sysctl.Name), sysctl.Value)
	}
	for _, setting := range h.Plan.Sysfs {
		w.write(setting.Name, setting.Value)
	}
	for _, thread := range h.Plan.KernelThreads {
		w.do(func() error {
			_, err := hosttree.Prioritize(h.Dir, func(name string) bool { return strings.HasPrefix(name, thread.Name+"/") }, thread.Priority)
			return err
		})
	}
	if h.Plan.Power.Governor == v1alpha1.GovernorPerformance {
		w.writeEach("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", "performance")
		w.writeEach("/sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference", "performance")
	}
}

// startKubelet leaves the state of a kubelet that has assigned nothing yet.
func (h *Host) startKubelet(w *writer) {
	all := h.Plan.CPUs.Housekeeping.Union(h.Plan.CPUs.Isolated)
	w.write("/var/lib/kubelet/cpu_manager_state", fmt.Sprintf(`{"policyName":%q,"defaultCpuSet":%q}`, h.Plan.Kubelet.CPUManagerPolicy, all))
	w.write("/var/lib/kubelet/memory_manager_state", fmt.Sprintf(`{"policyName":%q}`, h.Plan.Kubelet.MemoryManagerPolicy))
}

// writer writes into a tree and keeps the first error.
type writer struct {
	dir string
	err error
}

func (w *writer) do(step func() error) {
	if w.err == nil {
		w.err = step()
	}
}

func (w *writer) write(path, value string) {
	w.do(func() error { return hosttree.WriteSetting(w.dir, path, value) })
}

func (w *writer) writeEach(pattern, value string) {
	w.do(func() error {
		matches, err := filepath.Glob(filepath.Join(w.dir, pattern))
		for _, match := range matches {
			w.write(strings.TrimPrefix(match, w.dir), value)
		}
		return err
	})
}
