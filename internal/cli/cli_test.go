// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"gotest.tools/v3/golden"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// small is a machine whose drawing fits a page: one package, two NUMA nodes, four L3 caches.
func small(name string) hosttree.Machine {
	m := hosttree.EPYC()
	m.Hostname, m.Packages, m.NUMANodesPerPackage = name, 1, 2
	m.CoresPerNUMANode, m.CoresPerL3 = 4, 2
	m.Distances = [][]int{{10, 12}, {12, 10}}
	m.NICs = m.NICs[:2]
	m.NICs[1].NUMANode, m.NICs[1].VirtualFunctions = 1, 2
	m.Disks = nil
	return m
}

// smaller has half of its cores.
func smaller(name string) hosttree.Machine {
	m := small(name)
	m.CoresPerNUMANode = 2
	return m
}

func tree(t *testing.T, m hosttree.Machine) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), m.Hostname)
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// result is what a command line left behind.
type result struct {
	code     int
	out, err string
}

// run runs a command line with a text on the standard input.
func run(t *testing.T, in string, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	code := Run(t.Context(), "v9", args, Streams{In: strings.NewReader(in), Out: &out, Err: &err})
	return result{code, out.String(), err.String()}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

const profileHead = `apiVersion: lowlatency.dev/v1alpha1
kind: LowLatencyNodeProfile
metadata: {name: trading}
spec:
  nodeSelector: {matchLabels: {node-role.kubernetes.io/trading: ""}}
`

const profileText = profileHead + `  cpus:
    derived: {housekeepingCores: 1, keepNearBypassNICs: Isolated}
    simultaneousMultithreading: Disabled
  memory:
    defaultHugepageSize: 1Gi
    hugepages:
    - {size: 1Gi, count: 4, numaNode: 1}
    - {size: 2Mi, count: 64, placement: BypassNICLocal}
  power: {preset: MaximumDeterminism}
  kernel: {additionalArguments: [audit=0]}
  network: {nics: [{vendor: "1924"}]}
  kubelet: {additionalConfiguration: "maxPods: 100"}
  system: {unloadModules: [ip_tables]}
`

func TestTopology(t *testing.T) {
	got := run(t, "", "topology", "--root", tree(t, small("epyc")))
	if got.code != ExitOK || got.err != "" {
		t.Errorf("exit code %d, standard error %q", got.code, got.err)
	}
	golden.Assert(t, got.out, "topology.txt")

	other := tree(t, smaller("a"))
	inJSON := run(t, "", "topology", "-o", "json", "--root", "b="+other)
	golden.Assert(t, inJSON.out, "topology.json")
	inYAML := run(t, "", "topology", "-o", "yaml", "--root", "b="+other)
	converted, err := yaml.YAMLToJSON([]byte(inYAML.out))
	if err != nil {
		t.Fatal(err)
	}
	compact, err := yaml.YAMLToJSON([]byte(inJSON.out))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(compact), string(converted)); diff != "" {
		t.Errorf("YAML and JSON differ (-JSON +YAML):\n%s", diff)
	}
}

// TestPlan looks for what the command adds to the plan: the drawing itself is tested beside the code.
func TestTopologyAsAPicture(t *testing.T) {
	host := tree(t, small("a"))
	for format, want := range map[string][]string{
		"svg":  {"<svg xmlns=", ">a</text>", "NUMA node 1", "ens1f0np0", ">online 0-15<"},
		"html": {"<!DOCTYPE html>", "<title>a: hardware</title>", "<svg xmlns=", "NUMA node 1"},
	} {
		got := run(t, "", "topology", "--root", host, "-o", format)
		if got.code != ExitOK || got.err != "" {
			t.Errorf("%s: exit code %d, standard error %q", format, got.code, got.err)
		}
		for _, text := range want {
			if !strings.Contains(got.out, text) {
				t.Errorf("%s: %q is missing in:\n%s", format, text, got.out)
			}
		}
		for _, text := range []string{"profile", "in no set of the plan", "a failed check names it", "planned, not there"} {
			if strings.Contains(got.out, text) {
				t.Errorf("%s: %q is about plans, and there is none", format, text)
			}
		}
	}
}

func TestPlan(t *testing.T) {
	profile := write(t, "profile.yaml", profileText)
	older := write(t, "older.yaml", strings.ReplaceAll(profileText, "MaximumDeterminism", "LowLatency"))
	impossible := write(t, "impossible.yaml", profileHead+"  memory: {defaultHugepageSize: 1Gi, hugepages: [{size: 1Gi, count: 4, numaNode: 7}]}\n")
	a, c := tree(t, small("a")), tree(t, smaller("c"))
	both := []string{"--root", a, "--root", c, "--root", "b=" + a}
	cases := map[string]struct {
		args    []string
		code    int
		want    []string
		wantNot []string
	}{
		"equal plans are drawn once": {
			args:    append([]string{"-f", profile}, both...),
			want:    []string{": 2 nodes (a, b)\n", ": 1 node (c)\n", "  nohz_full=1-3,5-7 ", "  nohz_full=1,3 ", "H 0,(8)", "NIC N  ens1f0np0"},
			wantNot: []string{"changes from", "\x1b["},
		},
		"another version": {
			args: append([]string{"-f", profile, "--against", older}, both...),
			want: []string{"changes from " + older + " to this plan on a, ", "  kernel argument idle ", "reboot: "},
		},
		"the running system": {
			args: []string{"-f", profile, "--root", c, "--against", "running"},
			want: []string{"changes from what runs now to this plan on c\n", "  kernel argument nohz_full "},
		},
		"colours": {
			args: []string{"-f", profile, "--root", c, "--color", "always"},
			want: []string{"\x1b["},
		},
		"no plan": {
			args: append([]string{"-f", impossible}, both...), code: ExitFindings,
			want: []string{"no plan", "1 Critical", "Critical · plan.hugepage-place · spec.memory.hugepages[0] · a, c, b\n"},
		},
		"no plan, with a comparison": {
			args: append([]string{"-f", impossible, "--against", profile}, both...), code: ExitFindings,
			want: []string{"no plan"}, wantNot: []string{"changes from"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, "", append([]string{"plan"}, tc.args...)...)
			if got.code != tc.code || got.err != "" {
				t.Errorf("exit code %d, want %d; standard error %q", got.code, tc.code, got.err)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.out, want) {
					t.Errorf("%q is missing in:\n%s", want, got.out)
				}
			}
			for _, unwanted := range tc.wantNot {
				if strings.Contains(got.out, unwanted) {
					t.Errorf("%q is in:\n%s", unwanted, got.out)
				}
			}
		})
	}
}

// planJSON is a part of what plan -o json promises to pipelines.
type planJSON struct {
	Node, Profile, Reboot, Against  string
	Housekeeping, Isolated, Offline string
	Hugepages                       []map[string]any
}

// planMore is the rest.
type planMore struct {
	PlanHash        string
	KernelArguments []string
	Kubelet         map[string]any
	Files, Units    []map[string]any
	Changes         []map[string]string
	Origins         map[string]struct{ Source, Detail string }
}

// readPlan runs plan -o json for one host.
func readPlan(t *testing.T, args ...string) (planJSON, planMore) {
	t.Helper()
	got := run(t, "", append([]string{"plan", "-o", "json"}, args...)...)
	var plans []planJSON
	var more []planMore
	err := errors.Join(yaml.Unmarshal([]byte(got.out), &plans), yaml.Unmarshal([]byte(got.out), &more))
	if err != nil || len(plans) != 1 {
		t.Fatalf("%d plans, %v: %+v", len(plans), err, got)
	}
	return plans[0], more[0]
}

func TestPlanInJSON(t *testing.T) {
	got, more := readPlan(t, "-f", write(t, "profile.yaml", profileText), "--root", tree(t, small("a")))
	want := planJSON{
		Node: "a", Profile: "trading", Reboot: "Required", Against: "running", Housekeeping: "0,4", Isolated: "1-3,5-7",
		Hugepages: []map[string]any{
			{"size": "2Mi", "count": 64.0, "numaNode": 1.0, "method": "Unit"},
			{"size": "1Gi", "count": 4.0, "numaNode": 1.0, "method": "Unit"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if len(more.PlanHash) != 16 || len(more.Files) == 0 || len(more.Units) == 0 || more.Changes != nil {
		t.Errorf("plan: %+v", more)
	}
	if more.Kubelet["reservedSystemCPUs"] != "0,4" || more.Kubelet["maxPods"] != 100.0 {
		t.Errorf("kubelet: %v", more.Kubelet)
	}
	haveOrigins(t, more)
}

// haveOrigins fails for kernel arguments and kubelet settings without an origin.
func haveOrigins(t *testing.T, more planMore) {
	t.Helper()
	paths := make([]string, 0, len(more.KernelArguments)+len(more.Kubelet))
	for i := range more.KernelArguments {
		paths = append(paths, fmt.Sprintf("kernelArguments[%d]", i))
	}
	for name := range more.Kubelet {
		paths = append(paths, "kubelet."+name)
	}
	for _, path := range paths {
		if more.Origins[path].Source == "" || more.Origins[path].Detail == "" {
			t.Errorf("%s has no origin", path)
		}
	}
}

func TestPlanAgainstInJSON(t *testing.T) {
	profile, host := write(t, "profile.yaml", profileText), tree(t, small("a"))
	if _, more := readPlan(t, "-f", profile, "--root", host, "--against", "running"); len(more.Changes) == 0 || more.Changes[0]["reboot"] == "" {
		t.Errorf("changes: %+v", more.Changes)
	}
	same, more := readPlan(t, "-f", profile, "--root", host, "--against", profile)
	if len(more.Changes) != 0 || same.Reboot != "NotRequired" || same.Against != profile {
		t.Errorf("against itself: reboot %s against %s, changes %+v", same.Reboot, same.Against, more.Changes)
	}
}

// TestPlanAgainstWhatOnlyAProfileAsksFor: kernel parameters of the user are compared with the host, too, and a snapshot,
// which was made without the profile, holds those that are often set.
func TestPlanAgainstWhatOnlyAProfileAsksFor(t *testing.T) {
	profile := write(t, "profile.yaml", strings.Replace(profileText, "{unloadModules: [ip_tables]}",
		"{kernelParameters: [{name: net.core.netdev_budget, value: \"600\"}, {name: net.core.somaxconn, value: \"5\"}]}", 1))
	host := tree(t, small("a"))
	for name, value := range map[string]string{"netdev_budget": "300\n", "somaxconn": "4096\n"} {
		if err := os.WriteFile(filepath.Join(host, "proc/sys/net/core", name), []byte(value), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	snapshot := filepath.Join(t.TempDir(), "a.tar.gz")
	if got := run(t, "", "snapshot", "--root", host, "-o", snapshot); got.code != ExitOK {
		t.Fatal(got.err)
	}
	for root, want := range map[string][]string{
		host:     {"sysctl net.core.netdev_budget 300", "sysctl net.core.somaxconn 4096"},
		snapshot: {"sysctl net.core.netdev_budget 300", "sysctl net.core.somaxconn unknown"},
	} {
		_, more := readPlan(t, "-f", profile, "--root", root, "--against", "running")
		var got []string
		for _, change := range more.Changes {
			if strings.HasPrefix(change["what"], "sysctl net.core.") {
				got = append(got, change["what"]+" "+change["from"])
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", root, diff)
		}
	}
}

// The machine of this test has no critical failure but those of its kubelet, and one critical fact is missing.
func TestCheckFailsOn(t *testing.T) {
	const kubelet = "{check: kubelet.cpu-manager, reason: r}, {check: kubelet.topology-manager, reason: r}"
	const idle = ", {check: power.idle-states, reason: r}"
	profile := func(verification string) string {
		return write(t, "profile.yaml", profileHead+"  verification: {"+verification+"}\n")
	}
	dir := booted(t, profile("gate: Taint"))
	cases := map[string]struct {
		verification string
		args         []string
		code         int
		want         string
	}{
		"untuned":                           {"waivedChecks: [" + kubelet + idle + "]", nil, ExitFindings, "    decides   DeJittered\n"},
		"only critical failures count":      {"waivedChecks: [" + kubelet + idle + "]", []string{"--fail-on", "Critical"}, ExitOK, "Failed · High · power.governor\n"},
		"the profile says so":               {"failOn: Critical, waivedChecks: [" + kubelet + idle + "]", nil, ExitOK, ". Other findings: "},
		"the flag outweighs the profile":    {"failOn: Critical, waivedChecks: [" + kubelet + idle + "]", []string{"--fail-on", "impact"}, ExitFindings, "    decides   DeJittered\n"},
		"a severity counts higher ones too": {"waivedChecks: [" + kubelet + idle + "]", []string{"--fail-on", "low"}, ExitFindings, "    decides   DeJittered\n"},
		"a critical fact is missing":        {"failOn: Critical, waivedChecks: [" + kubelet + "]", nil, ExitUnknown, "ChecksUnknown"},
		"failed outweighs unknown":          {"waivedChecks: [" + kubelet + "]", []string{"--fail-on", "High"}, ExitFindings, "ChecksFailed"},
		"no such threshold":                 {"gate: Taint", []string{"--fail-on", "some"}, ExitUsage, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, "", append([]string{"check", "-f", profile(tc.verification), "--root", dir}, tc.args...)...)
			if got.code != tc.code || !strings.Contains(got.out, tc.want) {
				t.Errorf("exit code %d, want %d; %q is not in\n%s%s", got.code, tc.code, tc.want, got.out, got.err)
			}
		})
	}
}

func TestCheckOfAnUntunedHost(t *testing.T) {
	profile := write(t, "profile.yaml", profileText)
	host := tree(t, small("a"))
	got := run(t, "", "check", "-f", profile, "--root", host)
	if got.code != ExitFindings || got.err != "" {
		t.Errorf("exit code %d, standard error %q", got.code, got.err)
	}
	for _, want := range []string{
		"a against profile trading, plan ", " failed · ", "CONDITION ", "Applied ",
		"1     4             5-7       2 MiB  64/0/0            ens1f0np0  8 (3) ", "KUBELET ", "Failed · Critical · kernel.command-line\n", "    fix       ",
		"    more      docs/checks.md#kernel.command-line\n",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is missing in:\n%s", want, got.out)
		}
	}
	unfit := profileHead + "  cpus: {partition: Explicit, explicit: {housekeeping: '0', isolated: '90'}}\n"
	got = run(t, unfit, "check", "-f", "-", "--root", host)
	if got.code != ExitFindings || !strings.HasPrefix(got.out, "a: the profile trading does not fit this host\n") {
		t.Errorf("a profile that does not fit: %+v", got)
	}
}

func TestErrors(t *testing.T) {
	profile := write(t, "profile.yaml", profileText)
	two := write(t, "two.yaml", profileText+"---\n"+strings.Replace(profileText, "name: trading", "name: other", 1))
	host := tree(t, smaller("a"))
	empty := t.TempDir()
	cases := map[string]struct {
		in   string
		args []string
		want string
	}{
		"an unknown command":  {args: []string{"tune"}, want: `there is no command "tune"; see kubectl lowlatency --help`},
		"an unknown flag":     {args: []string{"plan", "--rot", "/"}, want: "unknown flag: --rot (did you mean --root?); see kubectl lowlatency plan --help"},
		"an unknown format":   {args: []string{"plan", "-o", "xml"}, want: `invalid argument "xml" for "-o, --output" flag: must be one of text, json, yaml, markdown, jsonpath=..., go-template=...; see kubectl lowlatency plan --help`},
		"an unknown colour":   {args: []string{"plan", "--color", "red"}, want: `invalid argument "red" for "--color" flag: must be one of auto, always, never; see kubectl lowlatency plan --help`},
		"an argument":         {args: []string{"topology", "x"}, want: `topology takes no arguments, and "x" is one; see kubectl lowlatency topology --help`},
		"no file":             {args: []string{"plan"}, want: "give the file with what is wanted: -f FILE, or -f - for the standard input"},
		"no file to import":   {args: []string{"import"}, want: "give the file with the PerformanceProfile: -f FILE, or -f - for the standard input"},
		"no file to write":    {args: []string{"snapshot", "--root", host}, want: "say where the snapshot goes, for example with -o node.tar.gz"},
		"a missing folder":    {args: []string{"snapshot", "--root", host, "-o", "/none/node.tar.gz"}, want: "writing the snapshot /none/node.tar.gz: no such file or directory"},
		"a missing file":      {args: []string{"plan", "-f", "none.yaml"}, want: "open none.yaml: no such file or directory"},
		"an empty file":       {in: "---\n# nothing\n", args: []string{"plan", "-f", "-"}, want: "- holds no object"},
		"no YAML":             {in: "a: b: c", args: []string{"plan", "-f", "-"}, want: "-: yaml: mapping values are not allowed in this context"},
		"a key twice":         {in: "kind: A\nkind: B\n", args: []string{"plan", "-f", "-"}, want: "-: yaml: unmarshal errors:\n  line 2: key \"kind\" already set in map"},
		"no object":           {in: "[]", args: []string{"plan", "-f", "-"}, want: "-: this is no object with apiVersion and kind"},
		"another group":       {in: strings.Replace(profileText, "lowlatency.dev", "lowlatency.io", 1), args: []string{"plan", "-f", "-"}, want: `-, LowLatencyNodeProfile "trading": only LowLatencyNodeProfile, BypassNICPool, LatencyTest and LowLatencyNode of lowlatency.dev/v1alpha1 are read here, not LowLatencyNodeProfile of lowlatency.io/v1alpha1`},
		"an unknown field":    {in: profileText + "---\n" + profileHead + "  cpu: {}\n", args: []string{"plan", "-f", "-"}, want: `-, document 2, LowLatencyNodeProfile "trading": spec.cpu: Forbidden: unknown field; did you mean cpus?`},
		"a folder":            {args: []string{"plan", "-f", empty}, want: "folder " + empty + " holds no .yaml, .yml or .json file; folders in it are not looked into"},
		"an unknown metadata": {in: strings.Replace(profileHead, "name: trading", "name: a, title: b", 1), args: []string{"plan", "-f", "-"}, want: `-, LowLatencyNodeProfile "a": strict decoding error: unknown field "metadata.title"`},
		"a rule of the API":   {in: profileHead + "  cpus: {partition: Explicit}\n", args: []string{"plan", "-f", "-"}, want: `-, LowLatencyNodeProfile "trading": spec.cpus: Invalid value: spec.cpus.explicit must be set when spec.cpus.partition is Explicit, and only then.`},
		"several errors": {
			in: profileHead + "  cpus: {tick: Slow}\n  numa: {scope: Rack}\n", args: []string{"plan", "-f", "-"},
			want: `-, LowLatencyNodeProfile "trading":` + "\n" +
				`  spec.cpus.tick: Unsupported value: "Slow": supported values: "Stopped", "Periodic"` + "\n" +
				`  spec.numa.scope: Unsupported value: "Rack": supported values: "Container", "Pod"`,
		},
		"an item of a list": {
			in:   "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: LowLatencyNode, metadata: {name: node}}\n",
			args: []string{"plan", "-f", "-"},
			want: `-, item 1, LowLatencyNode "node": only LowLatencyNodeProfile, BypassNICPool, LatencyTest and LowLatencyNode of lowlatency.dev/v1alpha1 are read here, not LowLatencyNode of v1`,
		},
		"no profile":           {in: "apiVersion: lowlatency.dev/v1alpha1\nkind: LowLatencyNode\nmetadata: {name: node}\nspec: {profile: a}\n", args: []string{"plan", "-f", "-"}, want: "the files hold no LowLatencyNodeProfile"},
		"a node without facts": {in: "apiVersion: lowlatency.dev/v1alpha1\nkind: LowLatencyNode\nmetadata: {name: node}\nspec: {profile: a}\n", args: []string{"plan", "-f", "-", "-f", profile}, want: `LowLatencyNode "node" has no status.inventory yet`},
		"several profiles":     {args: []string{"plan", "-f", two}, want: "the files hold 2 profiles, trading, other; choose one with --profile"},
		"an absent profile":    {args: []string{"plan", "-f", two, "--profile", "x"}, want: `the files hold no profile "x", but trading, other`},
		"an absent old profile": {
			args: []string{"plan", "-f", profile, "--root", host, "--against", "none.yaml"}, want: "open none.yaml: no such file or directory",
		},
		"an ambiguous old profile": {
			in: strings.ReplaceAll(profileText, "name: trading", "name: x") + "---\n" + strings.ReplaceAll(profileText, "name: trading", "name: z"), args: []string{"plan", "-f", profile, "--root", host, "--against", "-"},
			want: `the files hold no profile "trading", but x, z`,
		},
		"two hosts of one name": {args: []string{"plan", "-f", profile, "--root", host, "--root", host}, want: `two hosts have the name "a"; name them with --root NAME=PATH`},
		"a negative window":     {args: []string{"check", "-f", profile, "--root", host, "--window", "-1s"}, want: "--window -1s is negative"},
		"a window on files":     {args: []string{"check", "-f", profile, "--root", host, "--window", "1ms"}, want: host + " counted no interrupt within 1ms: --window is for live hosts, not for snapshots"},
		"a profile to import":   {in: profileText, args: []string{"import", "-f", "-"}, want: `-: kind: "LowLatencyNodeProfile" of "lowlatency.dev/v1alpha1" is not a PerformanceProfile of performance.openshift.io`},
		"a number as a vendor": {
			in: profileHead + "  network: {nics: [{vendor: 1924}]}\n", args: []string{"plan", "-f", "-"},
			want: `-, LowLatencyNodeProfile "trading": spec.network.nics[0].vendor: Invalid value: "integer": spec.network.nics[0].vendor in body must be of type string: "integer"; put the value in quotes`,
		},
		"a file to import": {in: "kind: Pod\napiVersion: v1\n", args: []string{"import", "-f", "-"}, want: `-: kind: "Pod" of "v1" is not a PerformanceProfile of performance.openshift.io`},
		"an inexpressible import": {
			in: "apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\nmetadata: {name: a}\nspec:\n  nodeSelector: {a/b: ''}\n" +
				"  cpu: {reserved: 0-1, isolated: 2-3}\n  kernelPageSize: 64k\n  realTimeKernel: {enabled: true}\n",
			args: []string{"import", "-f", "-"},
			want: `-: the PerformanceProfile "a" cannot be expressed: spec: Invalid value: spec.memory.kernelPageSize 64Ki cannot be combined with spec.kernel.type RealTime: no real-time kernel with 64 KiB pages exists.`,
		},
		"an existing pool without name": {
			in:   profileHead + "  pools: {management: Existing, existing: {machineConfigPoolSelector: {a: b}}}\n",
			args: []string{"render", "-f", "-", "--root", host},
			want: "spec.pools.existing does not give the name of the MachineConfigPool; give it with --machine-config-pool",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, tc.in, tc.args...)
			want := result{code: ExitUsage, err: "error: " + tc.want + "\n"}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASnapshotTellsTheSame(t *testing.T) {
	dir := tree(t, small("epyc"))
	file := filepath.Join(t.TempDir(), "node.tar.gz")
	expectSnapshot(t, dir, file)
	for _, command := range [][]string{
		{"topology", "-o", "json"},
		{"check", "-o", "json", "-f", write(t, "profile.yaml", profileText)},
	} {
		want := run(t, "", append(command, "--root", dir)...)
		got := run(t, "", append(command, "--root", file)...)
		if diff := cmp.Diff(want.out, got.out); diff != "" || got.out == "" {
			t.Errorf("%s (-folder +snapshot):\n%s", command[0], diff)
		}
	}
	streamed := run(t, "", "snapshot", "--root", dir, "-o", "-")
	if streamed.code != ExitOK || !strings.HasPrefix(streamed.out, "\x1f\x8b") {
		t.Errorf("the standard output holds no gzip archive, exit code %d: %s", streamed.code, streamed.err)
	}
}

// expectSnapshot takes a snapshot, which others may not read, and which leaves nothing behind.
func expectSnapshot(t *testing.T, dir, file string) {
	t.Helper()
	if got := run(t, "", "snapshot", "--root", dir, "-o", file); got.code != ExitOK || got.out != "" ||
		!strings.HasPrefix(got.err, file+" holds ") || !strings.Contains(got.err, "  the name of the host\n    /proc/sys/kernel/hostname\n") {
		t.Fatalf("snapshot: %+v", got)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read the snapshot: %v, %v", info.Mode(), err)
	}
	if leftover, err := filepath.Glob(file + "?*"); err != nil || len(leftover) > 0 {
		t.Errorf("files left behind: %v, %v", leftover, err)
	}
}

// TestASnapshotFollowsNoLink: somebody who may write to the folder cannot lead the snapshot elsewhere, and what a command that
// was killed has left goes.
func TestASnapshotFollowsNoLink(t *testing.T) {
	folder := t.TempDir()
	precious, link, left := filepath.Join(folder, "precious"), filepath.Join(folder, "a.tar.gz"), filepath.Join(folder, ".b.tar.gz123")
	err := errors.Join(os.WriteFile(precious, []byte("mine"), 0o600), os.Symlink(precious, link), os.WriteFile(left, nil, 0o600),
		os.Chtimes(left, time.Unix(0, 0), time.Unix(0, 0)))
	if err != nil {
		t.Fatal(err)
	}
	root := tree(t, smaller("a"))
	got := run(t, "", "snapshot", "--root", root, "-o", link)
	if got.code != ExitUsage || got.err != "error: writing the snapshot "+link+": it is a symbolic link; name the file that it is to be\n" {
		t.Errorf("the snapshot is written through a link: %+v", got)
	}
	if content, err := os.ReadFile(precious); err != nil || string(content) != "mine" {
		t.Errorf("the file behind the link holds %q, %v", content, err)
	}
	if got := run(t, "", "snapshot", "--root", root, "-o", filepath.Join(folder, "b.tar.gz")); got.code != ExitOK {
		t.Errorf("snapshot: %+v", got)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file of a command that was killed is left: %v", err)
	}
}

// TestEscapes: what a host or an error says cannot command the terminal.
func TestEscapes(t *testing.T) {
	got := run(t, "", "topology", "--root", "/none/\x1b[2J\u009bgone")
	if got.code != ExitUsage || strings.ContainsAny(got.err, "\x1b\u009b") || !strings.Contains(got.err, "gone") {
		t.Errorf("an error prints %q", got.err)
	}
}

func TestASnapshotThatFailsLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	for _, output := range []string{filepath.Join(folder, "none", "a.tar.gz"), folder} {
		got := run(t, "", "snapshot", "--root", tree(t, smaller("a")), "-o", output)
		if got.code != ExitUsage || !strings.HasPrefix(got.err, "error: writing ") {
			t.Errorf("snapshot to %s: %+v", output, got)
		}
	}
	if got := run(t, "", "snapshot", "--root", filepath.Join(folder, "none"), "-o", "-"); got.code != ExitUsage {
		t.Errorf("snapshot of nothing: %+v", got)
	}
	entries, err := os.ReadDir(filepath.Dir(folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			t.Errorf("%s was left behind", entry.Name())
		}
	}
}

// TestAnInventoryStandsForAHost plans from what an agent reported, as kubectl get -o yaml gives it.
func TestAnInventoryStandsForAHost(t *testing.T) {
	dir := tree(t, small("epyc"))
	host, err := readNode(t.Context(), dir, reading{})
	if err != nil {
		t.Fatal(err)
	}
	object := v1alpha1.LowLatencyNode{
		Spec:   v1alpha1.LowLatencyNodeSpec{Profile: "trading"},
		Status: v1alpha1.LowLatencyNodeStatus{Inventory: topology.Inventory(host.facts, host.topology)},
	}
	object.APIVersion, object.Kind, object.Name = v1alpha1.GroupVersion.String(), "LowLatencyNode", "reported"
	data, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	profile := write(t, "profile.yaml", profileText)
	inventory := write(t, "node.yaml", string(data))

	fromHost, hash := readPlan(t, "-f", profile, "--root", dir)
	fromInventory, sameHash := readPlan(t, "-f", profile, "-f", inventory)
	if hash.PlanHash == "" || hash.PlanHash != sameHash.PlanHash {
		t.Errorf("the plans %s and %s differ", hash.PlanHash, sameHash.PlanHash)
	}
	if fromInventory.Node != "reported" || fromInventory.Reboot != "Unknown" || fromHost.Reboot != "Required" {
		t.Errorf("an inventory does not report whether a reboot is needed: %+v, %+v", fromHost, fromInventory)
	}
	got := run(t, "", "check", "-f", profile, "-f", inventory)
	if want := "error: check reads hosts; the inventory of LowLatencyNode \"reported\" is not enough, give --root\n"; got.err != want {
		t.Errorf("check: %q", got.err)
	}
}

// booted is a machine that was booted with what the profile plans; nothing has tuned it since.
func booted(t *testing.T, profile string) string {
	t.Helper()
	dir := tree(t, small("epyc"))
	var plans []struct{ KernelArguments []string }
	if err := yaml.Unmarshal([]byte(run(t, "", "plan", "-f", profile, "--root", dir, "-o", "json").out), &plans); err != nil {
		t.Fatal(err)
	}
	line := small("epyc").BaseCommandLine() + " " + strings.Join(plans[0].KernelArguments, " ")
	if err := hosttree.Boot(dir, hosttree.BootOptions{CommandLine: line}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestCheckPassesWithThePlanInForce boots the machine with what was planned. Nothing has tuned it since, which makes
// conditions False.
func TestCheckPassesWithThePlanInForce(t *testing.T) {
	profile := write(t, "profile.yaml", profileHead)
	got := run(t, "", "check", "-f", profile, "--root", booted(t, profile), "-o", "json")
	var checks []struct {
		Findings []v1alpha1.Finding
		Passed   []string
	}
	if err := yaml.Unmarshal([]byte(got.out), &checks); err != nil {
		t.Fatal(err)
	}
	if got.code != ExitFindings {
		t.Errorf("exit code %d, want %d", got.code, ExitFindings)
	}
	for _, id := range []string{"kernel.command-line", "cpu.isolated", "cpu.nohz-full"} {
		if !strings.Contains(strings.Join(checks[0].Passed, " ")+" ", id+" ") {
			t.Errorf("%s did not pass: %v", id, checks[0].Findings)
		}
	}
}

func TestImport(t *testing.T) {
	const source = `apiVersion: performance.openshift.io/v2
kind: PerformanceProfile
metadata: {name: cnf}
spec:
  cpu: {reserved: 0-1, isolated: 2-3}
  nodeSelector: {node-role.kubernetes.io/cnf: ""}
  additionalKernelArgs: ["quoted=\"a b\""]
`
	got := run(t, source+"---\n"+strings.Replace(source, "name: cnf", "name: second", 1), "import", "-f", "-")
	if got.code != ExitOK || got.err != "" {
		t.Errorf("import: exit code %d, standard error %q", got.code, got.err)
	}
	golden.Assert(t, got.out, "import.yaml")

	// What import prints, plan takes.
	file := write(t, "imported.yaml", got.out)
	if planned := run(t, "", "plan", "-f", file, "--profile", "cnf", "--root", tree(t, smaller("a"))); !strings.Contains(planned.out, "plan.cpus-covered") {
		t.Errorf("plan of the import: %+v", planned)
	}

	inJSON := run(t, source, "import", "-f", "-", "-o", "json")
	if inJSON.code != ExitOK || !strings.Contains(inJSON.err, "remark: spec.additionalKernelArgs: ") {
		t.Errorf("import -o json: %+v", inJSON)
	}
	var profile v1alpha1.LowLatencyNodeProfile
	if err := yaml.UnmarshalStrict([]byte(inJSON.out), &profile); err != nil || profile.Spec.CPUs.Explicit.Isolated != "2-3" {
		t.Errorf("import -o json printed %s: %v", inJSON.out, err)
	}
}

// TestHelpFitsATerminal: the prose of each command, and of every command below it. The lists of flags are as long as what they say.
func TestHelpFitsATerminal(t *testing.T) {
	const widest = 120
	commands := []*cobra.Command{Command()}
	for len(commands) > 0 {
		command := commands[0]
		commands = append(commands[1:], command.Commands()...)
		for line := range strings.Lines(command.Long) {
			if length := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); length > widest {
				t.Errorf("%s has a line of %d characters: %s", command.CommandPath(), length, line)
			}
		}
	}
}

func TestHelp(t *testing.T) {
	got := run(t, "")
	if got.code != ExitOK || !strings.Contains(got.out, "kubectl lowlatency [command]") {
		t.Errorf("help: %+v", got)
	}
	for _, command := range []string{"snapshot", "topology", "plan", "render", "check", "node", "pool", "import", "version", "completion"} {
		if !strings.Contains(got.out, "\n  "+command+" ") {
			t.Errorf("the help does not name %s:\n%s", command, got.out)
		}
	}
	if got := run(t, "", "completion", "bash"); got.code != ExitOK || !strings.Contains(got.out, "kubectl-lowlatency") {
		t.Errorf("completion: exit code %d, standard error %q", got.code, got.err)
	}
}
