// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package tunedprofile

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/ini.v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

// parent is the profile that the tests include: OpenShift's, which sets more than any other that is known.
const parent = "openshift-node"

// goldenPlans are the planner's own golden plans, by the names of their files.
func goldenPlans(t testing.TB) map[string]*plan.NodePlan {
	t.Helper()
	return objects.GoldenPlans(t, filepath.Join("..", "..", "plan", "testdata"))
}

func set(t testing.TB, list string) cpus.Set {
	t.Helper()
	parsed, err := cpus.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// settings takes names and values in turn.
func settings(namesAndValues ...string) []plan.Setting {
	var out []plan.Setting
	for i := 0; i < len(namesAndValues); i += 2 {
		out = append(out, plan.Setting{Name: namesAndValues[i], Value: namesAndValues[i+1]})
	}
	return out
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error = %v, want one that contains %q", err, want)
	}
}

// profileOf renders the TuneD profile and reads it back.
func profileOf(t *testing.T, p *plan.NodePlan) map[string]map[string]string {
	t.Helper()
	text, err := Text(p, parent)
	if err != nil {
		t.Fatalf("Text: %v", err)
	}
	return readProfile(t, text)
}

// readProfile reads as TuneD does: one "name=value" per line, # begins a comment anywhere.
func readProfile(t *testing.T, text string) map[string]map[string]string {
	t.Helper()
	file, err := ini.LoadSources(ini.LoadOptions{KeyValueDelimiters: "=", IgnoreContinuation: true}, []byte(text))
	if err != nil {
		t.Fatalf("reading the profile: %v\n%s", err, text)
	}
	profile := map[string]map[string]string{}
	for _, s := range file.Sections() {
		if len(s.Keys()) > 0 || s.Name() != ini.DefaultSection {
			profile[s.Name()] = s.KeysHash()
		}
	}
	return profile
}

// sectionCase is a change to an empty plan, and sections that the profile has then.
type sectionCase struct {
	change func(*plan.NodePlan)
	want   map[string]map[string]string
}

func TestTunedSections(t *testing.T) {
	checkSections(t, map[string]sectionCase{
		"kernel parameters": {
			change: func(p *plan.NodePlan) { p.Sysctls = settings("net.core.busy_poll", "50", "vm.stat_interval", "10") },
			want:   map[string]map[string]string{"sysctl": {"net.core.busy_poll": "50", "vm.stat_interval": "10"}},
		},
		"transparent hugepages have their own option": {
			change: func(p *plan.NodePlan) {
				p.Sysfs = settings("/sys/kernel/mm/ksm/run", "2", "/sys/kernel/mm/transparent_hugepage/enabled", "never")
			},
			want: map[string]map[string]string{
				"sysfs": {"/sys/kernel/mm/ksm/run": "2"},
				"vm":    {"transparent_hugepages": "never"},
			},
		},
		"Intel processors have energy hints": {
			change: func(p *plan.NodePlan) { p.Vendor, p.Power.Governor = "Intel", v1alpha1.GovernorPerformance },
			want: map[string]map[string]string{"cpu": {
				"governor": "performance", "energy_perf_bias": "performance", "min_perf_pct": "100", "replace": "true",
			}},
		},
		"other processors have none": {
			change: func(p *plan.NodePlan) { p.Vendor, p.Power.Governor = "AMD", v1alpha1.GovernorPerformance },
			want:   map[string]map[string]string{"cpu": {"governor": "performance", "replace": "true"}},
		},
		"shallow idle states on x86": {
			change: func(p *plan.NodePlan) { p.Power.IdleStates = v1alpha1.IdleShallowByQoS },
			want:   map[string]map[string]string{"cpu": {"force_latency": "cstate.id:1|3", "replace": "true"}},
		},
		"shallow idle states on arm64": {
			change: func(p *plan.NodePlan) { p.Architecture, p.Power.IdleStates = "arm64", v1alpha1.IdleShallowByQoS },
			want:   map[string]map[string]string{"cpu": {"force_latency": "cstate.id:0|3", "replace": "true"}},
		},
		"what is kept is not inherited either": {
			change: func(*plan.NodePlan) {},
			want: map[string]map[string]string{
				"cpu": {"enabled": "false"}, "irqbalance": {"enabled": "false"},
			},
		},
	})
}

func TestTunedSectionsOfInterrupts(t *testing.T) {
	checkSections(t, map[string]sectionCase{
		"the scheduler plugin does nothing": {
			change: func(*plan.NodePlan) {},
			want: map[string]map[string]string{
				"scheduler": {"runtime": "0", "irq_process": "false", "default_irq_smp_affinity": "ignore"},
			},
		},
		"the scheduler plugin sets priorities once": {
			change: func(p *plan.NodePlan) {
				p.KernelThreads = []plan.KernelThreadPlan{{Name: "ksoftirqd", Priority: 11}, {Name: "rcuc", Priority: 12}}
			},
			want: map[string]map[string]string{
				"scheduler": {
					"runtime": "0", "irq_process": "false", "default_irq_smp_affinity": "ignore",
					"group.ksoftirqd": `0:f:11:*:^\[ksoftirqd/`, "group.rcuc": `0:f:12:*:^\[rcuc/`,
				},
			},
		},
		"banned CPUs are the plan's drop-in's part": {
			change: func(p *plan.NodePlan) {
				p.Interrupts = plan.InterruptPlan{Balancer: v1alpha1.BalancerRestricted, Banned: set(t, "2-7")}
			},
			want: map[string]map[string]string{"irqbalance": {"enabled": "false"}},
		},
		"stopped services": {
			change: func(p *plan.NodePlan) {
				p.Units = []plan.Unit{
					{Name: "fwupd-refresh.timer", Masked: true}, {Name: "irqbalance.service", Masked: true}, {Name: "kubelet.service"},
				}
			},
			want: map[string]map[string]string{"service": {
				"service.fwupd-refresh.timer": "stop", "service.irqbalance.service": "stop",
			}},
		},
		"queues of every NIC": {
			change: func(p *plan.NodePlan) { p.Network.Queues = 4 },
			want:   map[string]map[string]string{"net": {"channels": "combined 4"}},
		},
		"queues of one NIC": {
			change: func(p *plan.NodePlan) {
				p.Network = plan.NetworkPlan{Queues: 4, NICs: []v1alpha1.NICSelector{{Drivers: []v1alpha1.DriverName{"sfc"}}}}
			},
			want: map[string]map[string]string{"net": {
				"channels": "combined 4", "devices_udev_regex": `\A(?=[\s\S]*^ID_NET_DRIVER=sfc$)`,
			}},
		},
	})
}

func checkSections(t *testing.T, cases map[string]sectionCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &plan.NodePlan{Profile: "p", Architecture: "amd64"}
			tc.change(p)
			profile := profileOf(t, p)
			for section, want := range tc.want {
				if diff := cmp.Diff(want, profile[section]); diff != "" {
					t.Errorf("[%s] (-want +got):\n%s", section, diff)
				}
			}
		})
	}
}

// TestTunedHasNoSecondWriter makes sure that nothing but the MachineConfig sets kernel arguments, and that an empty
// plan says nothing more than it must.
func TestTunedHasNoSecondWriter(t *testing.T) {
	for name, p := range goldenPlans(t) {
		if _, has := profileOf(t, p)["bootloader"]; has {
			t.Errorf("%s: the profile has a bootloader section", name)
		}
	}
	got := profileOf(t, &plan.NodePlan{Profile: "p"})
	for _, section := range []string{"sysctl", "sysfs", "vm", "service", "net"} {
		if options, has := got[section]; has {
			t.Errorf("an empty plan renders [%s] %v", section, options)
		}
	}
	if options, has := got["rtentsk"]; !has || len(options) > 0 {
		t.Errorf("[rtentsk] is %v, want it without options, which holds a socket with time stamps open", options)
	}
	want := map[string]string{"include": "openshift-node", "summary": "Low-latency node of profile p"}
	if diff := cmp.Diff(want, got["main"]); diff != "" {
		t.Errorf("[main] (-want +got):\n%s", diff)
	}
}

func TestTunedRefusals(t *testing.T) {
	cases := map[string]struct {
		name, value string
		want        string
	}{
		"a value with a new line":     {"vm.swappiness", "1\n[script]\nscript=/tmp/x", "control character"},
		"a value with a return":       {"vm.swappiness", "1\rx", "control character"},
		"a value with a comment":      {"vm.swappiness", "1 # 2", "comment"},
		"a value with a variable":     {"vm.swappiness", "${f:exec:reboot}", "variable"},
		"a value with a comparison":   {"vm.swappiness", ">10", "comparison"},
		"an empty value":              {"vm.swappiness", "", "empty"},
		"a value of spaces":           {"vm.swappiness", " ", "empty"},
		"a value after a space":       {"vm.swappiness", " 1", "white space"},
		"an empty name":               {"", "1", "name of an option"},
		"a name with a new line":      {"vm.swap\npiness", "1", "control character"},
		"a name with a section":       {"[script]", "1", "name of an option"},
		"a name with an equals sign":  {"a=b", "1", "name of an option"},
		"a name that is a comment":    {"#vm.swappiness", "1", "name of an option"},
		"a name that is a comment, 2": {";vm.swappiness", "1", "name of an option"},
		"a name with a space":         {"vm swappiness", "1", "name of an option"},
		"a parameter that repeats":    {"vm.stat_interval", "1", "set twice"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := goldenPlans(t)["xeon-trading"]
			p.Sysctls = append(p.Sysctls, plan.Setting{Name: tc.name, Value: tc.value})
			_, err := Text(p, parent)
			wantError(t, err, tc.want)
			wantError(t, err, "[sysctl]")
		})
	}
	t.Run("a NIC selector without a condition", func(t *testing.T) {
		p := goldenPlans(t)["xeon-trading"]
		p.Network.Queues, p.Network.NICs = 4, append(p.Network.NICs, v1alpha1.NICSelector{})
		_, err := Text(p, parent)
		wantError(t, err, "selects nothing")
	})
}

// FuzzTunedProfile plants arbitrary text in a setting: either it is refused or it comes back as itself.
func FuzzTunedProfile(f *testing.F) {
	f.Add("vm.swappiness", "10")
	f.Add("/sys/a", "1\n[bootloader]\ncmdline=quiet")
	f.Add("net.ipv4.tcp_rmem", "4096 87380 6291456")
	f.Add("a", "`b`")
	f.Fuzz(func(t *testing.T, name, value string) {
		text, err := printProfile([]section{{name: "sysctl", options: []option{{name, value}, {"last", "1"}}}})
		if err != nil {
			return
		}
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if len(lines) != 3 || lines[0] != "[sysctl]" || lines[2] != "last=1" {
			t.Fatalf("%q=%q printed %q", name, value, text)
		}
		gotName, gotValue, _ := strings.Cut(lines[1], "=")
		if gotName != name || gotValue != value {
			t.Errorf("%q=%q is read back as %q=%q", name, value, gotName, gotValue)
		}
	})
}
