// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package lab_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_2/types"
	"gotest.tools/v3/golden"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

// judged is a machine with the plan that was made for it when it was untuned. As on a node, the plan stays while the
// machine changes: what the agent compares with is the plan that the operator stored.
type judged struct {
	*node
	plan *plan.NodePlan
}

func (v verdicts) columns() []string {
	return []string{string(v.Applied), string(v.DeJittered), string(v.NUMAAligned)}
}

// facts are read from a snapshot of the machine. With -update, the snapshots of the named states become test data.
func (n *node) facts(state string) *host.Facts {
	n.t.Helper()
	snapshot := n.snapshot()
	if state != "" && golden.FlagUpdate() {
		content, err := os.ReadFile(snapshot)
		n.must(err)
		recorded := filepath.Join(truthFolder, n.Name(), state+".tar.gz")
		n.must(os.MkdirAll(filepath.Dir(recorded), 0o755))
		n.must(os.WriteFile(recorded, content, 0o644))
	}
	return readFacts(n.t, snapshot)
}

// planned makes the plan of an untuned machine from its own topology, and judges the machine by it.
func (n *node) planned() (*judged, judgement) {
	n.t.Helper()
	facts := n.facts(untunedState)
	j := &judged{node: n, plan: planOf(n.t, n.Name(), facts)}
	return j, judgementOf(verify.Evaluate(verify.Input{Plan: j.plan, Facts: facts}))
}

// judge compares the machine, read now, with its plan; with an earlier reading, counters are compared as well.
func (j *judged) judge(state string, before *host.Facts) judgement {
	j.t.Helper()
	return judgementOf(verify.Evaluate(verify.Input{Plan: j.plan, Facts: j.facts(state), Before: before}))
}

// tune brings the objects that the operator applies to the machine, as the platform does: the MachineConfig's files,
// units, kernel and kernel arguments, the Tuned object's profile by Debian's TuneD, and the KubeletConfig. Without is
// left out of the kernel arguments.
func (j *judged) tune(without ...string) {
	j.t.Helper()
	input := manifests.Input{Plan: j.plan, MachineConfigPool: manifests.MachineConfigPool{Name: "lab"}}
	j.tuneRunning(input)
	config, err := manifests.MachineConfig(input)
	j.must(err)
	kernel := lab.Standard
	if config.Spec.KernelType == "realtime" {
		kernel = lab.RealTime
	}
	arguments := dropArguments(config.Spec.KernelArguments, without)
	j.apply(j.ignition(config.Spec.Config.Raw), lab.Boot{Kernel: kernel, Arguments: arguments})
	j.settle()
}

// settle waits for TuneD's daemon, which one machine starts after a TuneD that runs once, and brings up the NICs, whose
// drivers ask for their interrupts only then.
func (j *judged) settle() {
	j.t.Helper()
	j.run(`for nic in /sys/class/net/en*; do ip link set ${nic##*/} up; done
for i in $(seq 240); do systemctl is-active --quiet tuned.service && break; sleep 0.5; done
for i in $(seq 240); do grep -q "static tuning from profile .* applied" /var/log/tuned/tuned.log && exit 0; sleep 0.5; done
tail /var/log/tuned/tuned.log >&2; exit 1`)
}

// dropArguments leaves out the arguments with the given names.
func dropArguments(arguments, names []string) []string {
	var kept []string
	for _, argument := range arguments {
		name, _, _ := strings.Cut(argument, "=")
		drop := false
		for _, unwanted := range names {
			drop = drop || name == unwanted
		}
		if !drop {
			kept = append(kept, argument)
		}
	}
	return kept
}

// tuneRunning writes the TuneD profile and the kubelet's configuration, which take effect with the next start. There
// is no kubelet in this lab: the two files in which a kubelet says what it does are written as one of version 1.37
// writes them with this configuration.
func (j *judged) tuneRunning(input manifests.Input) {
	j.t.Helper()
	tuned, err := manifests.Tuned(input)
	j.must(err)
	name := manifests.TunedName(input.MachineConfigPool.Name)
	profiles, _, err := unstructured.NestedSlice(tuned.Object, "spec", "profile")
	j.must(err)
	kubelet, err := manifests.KubeletConfig(input)
	j.must(err)
	all := j.plan.CPUs.Housekeeping.Union(j.plan.CPUs.Isolated)
	for file, content := range map[string]string{
		path.Join("/etc/tuned", name, "tuned.conf"):    profiles[0].(map[string]any)["data"].(string),
		"/etc/tuned/active_profile":                    name + "\n",
		"/etc/tuned/profile_mode":                      "manual\n",
		"/etc/kubernetes/kubelet.conf":                 string(kubelet.Spec.KubeletConfig.Raw),
		"/var/lib/kubelet/cpu_manager_state":           fmt.Sprintf(`{"policyName":"static","defaultCpuSet":%q,"checksum":1}`, all),
		"/var/lib/kubelet/memory_manager_state":        `{"policyName":"Static","machineState":{},"checksum":1}`,
		"/etc/systemd/system/tuned.service.d/lab.conf": "[Service]\nExecStartPre=/bin/rm -f /var/log/tuned/tuned.log\n",
		"/usr/lib/python3/dist-packages/perf.py":       perfModule,
	} {
		j.must(j.WriteFile(j.t.Context(), file, content, 0o644))
	}
	j.run("systemctl --no-reload enable tuned.service")
}

// perfModule stands in for the kernel's module perf of Python, which Debian has in no package and without which its TuneD does not
// load the scheduler plugin, the one that sets priorities. The plugin asks it for the CPUs; without its events it sees no threads
// that begin later.
const perfModule = `# Stand-in of the lab.


def cpu_map():
    with open("/sys/devices/system/cpu/online") as file:
        ranges = [part.split("-") for part in file.read().strip().split(",")]
    return [cpu for part in ranges for cpu in range(int(part[0]), int(part[-1]) + 1)]
`

// ignition takes files and units out of an Ignition configuration.
func (j *judged) ignition(raw []byte) lab.Configuration {
	j.t.Helper()
	var config types.Config
	j.must(json.Unmarshal(raw, &config))
	var result lab.Configuration
	for _, file := range config.Storage.Files {
		_, encoded, _ := strings.Cut(*file.Contents.Source, ";base64,")
		content, err := base64.StdEncoding.DecodeString(encoded)
		j.must(err)
		result.Files = append(result.Files, lab.File{Path: file.Path, Content: string(content), Mode: os.FileMode(*file.Mode)})
	}
	for _, unit := range config.Systemd.Units {
		planned := lab.Unit{Name: unit.Name, Enabled: isTrue(unit.Enabled), Masked: isTrue(unit.Mask), DropIns: map[string]string{}}
		if unit.Contents != nil {
			planned.Content = *unit.Contents
		}
		for _, dropIn := range unit.Dropins {
			planned.DropIns[dropIn.Name] = *dropIn.Contents
		}
		result.Units = append(result.Units, planned)
	}
	return result
}

func isTrue(value *bool) bool { return value != nil && *value }
