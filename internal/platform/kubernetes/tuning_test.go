// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubernetes

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

// settingsOf are the operations on values of the running kernel.
func settingsOf(t *testing.T, p *plan.NodePlan) []string {
	t.Helper()
	written, err := Write(p, rocky())
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for i := range written.Operations {
		switch o := &written.Operations[i]; o.Kind {
		case operation.Sysctl:
			found = append(found, o.Name+"="+o.Value)
		case operation.Sysfs:
			found = append(found, o.Path+"="+o.Value)
		default:
		}
	}
	return found
}

// TestWhatIsHeldWithTuneD: of what TuneD sets, the guard sets what must not be away while TuneD is, and nothing else: what firmware may refuse would
// have a plan taken back.
func TestWhatIsHeldWithTuneD(t *testing.T) {
	sysctl := func(name, value string) func(*plan.NodePlan) {
		return func(p *plan.NodePlan) { p.Sysctls, p.Sysfs = []plan.Setting{{Name: name, Value: value}}, nil }
	}
	sysfs := func(name, value string) func(*plan.NodePlan) {
		return func(p *plan.NodePlan) { p.Sysctls, p.Sysfs = nil, []plan.Setting{{Name: name, Value: value}} }
	}
	cases := map[string]struct {
		change func(*plan.NodePlan)
		want   []string
	}{
		"balancing that is off":        {sysctl("kernel.numa_balancing", "0"), []string{"kernel.numa_balancing=0"}},
		"balancing that the user asks": {sysctl("kernel.numa_balancing", "1"), []string{}},
		"the worker of vmstat":         {sysctl("vm.stat_interval", "10"), []string{"vm.stat_interval=10"}},
		"a parameter of the user":      {sysctl("net.ipv4.tcp_fastopen", "3"), []string{}},
		"one that harms no CPU":        {sysctl("vm.swappiness", "10"), []string{"vm.swappiness=10"}},
		"which the user has chosen":    {sysctl("vm.swappiness", "1"), []string{}},
		"work that is bound to no CPU": {sysfs("/sys/devices/virtual/workqueue/cpumask", "3"), []string{"/sys/devices/virtual/workqueue/cpumask=3"}},
		"transparent hugepages":        {sysfs("/sys/kernel/mm/transparent_hugepage/enabled", "never"), []string{"/sys/kernel/mm/transparent_hugepage/enabled=never"}},
		"turbo that firmware may keep": {sysfs("/sys/devices/system/cpu/intel_pstate/no_turbo", "1"), []string{}},
		"a cap of a frequency":         {sysfs("/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq", "2000000"), []string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := goldenPlan(t)
			tc.change(p)
			if diff := cmp.Diff(tc.want, settingsOf(t, p)); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEachSettingIsHeldOrLeft: whoever has plans derive another setting decides whether it may be away while TuneD is.
func TestEachSettingIsHeldOrLeft(t *testing.T) {
	left := []string{
		"net.core.rps_default_mask",
		// Given by the user of golden plans.
		"net.core.busy_poll", "net.core.busy_read",
	}
	for name, p := range objects.GoldenPlans(t, filepath.Join("..", "..", "plan", "testdata")) {
		for _, setting := range slices.Concat(p.Sysctls, p.Sysfs) {
			isHeld := slices.Contains(slices.Collect(maps.Keys(heldParameters())), setting.Name) || slices.Contains(heldFiles(), setting.Name)
			if !isHeld && !slices.Contains(left, setting.Name) && !strings.HasPrefix(setting.Name, "/sys/devices/system/cpu/") {
				t.Errorf("%s: %s=%s is neither held by the guard nor left to TuneD alone", name, setting.Name, setting.Value)
			}
			if values := heldParameters()[setting.Name]; values != nil && !slices.Contains(values, setting.Value) {
				t.Errorf("%s: %s is held with %q and planned with %s", name, setting.Name, values, setting.Value)
			}
		}
	}
}

// TestTuningBeforePods: what sets the running system comes before the kubelet of each distribution, by TuneD or by units of ours.
func TestTuningBeforePods(t *testing.T) {
	for name, facts := range map[string]*host.Facts{"without TuneD": kubeadm(), "with TuneD": rocky(), "K3s": k3s()} {
		t.Run(name, func(t *testing.T) {
			w := &writer{plan: goldenPlan(t), facts: facts}
			w.plan.Power.IdleStates = v1alpha1.IdleShallowByQoS
			if err := w.writeTuning(); err != nil {
				t.Fatal(err)
			}
			ordered := 0
			for _, o := range w.Operations {
				if strings.Contains(o.Content, "\nBefore=") {
					ordered++
				}
				if missing := notAfter(o.Content); len(missing) > 0 {
					t.Errorf("%s is not before %q:\n%s", o.Name, missing, o.Content)
				}
			}
			if ordered == 0 {
				t.Error("nothing is ordered before pods")
			}
		})
	}
}
