// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// troubled is a host that was booted as planned and then went wrong: an interrupt on an isolated CPU, a NIC without link,
// fewer hugepages than planned. Two containers own CPUs.
func troubled(t *testing.T) (dir, file string) {
	t.Helper()
	machine := onloadHost("trading-1")
	dir = tree(t, machine)
	file = write(t, "wanted.yaml", profileText+"---\n"+poolText)
	var plans []view.Plan
	if err := json.Unmarshal([]byte(run(t, "", "plan", "-f", file, "--root", dir, "-o", "json").out), &plans); err != nil {
		t.Fatal(err)
	}
	line := machine.BaseCommandLine() + " " + strings.Join(plans[0].KernelArguments, " ")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(hosttree.Boot(dir, hosttree.BootOptions{CommandLine: line}))
	irq, err := hosttree.FindIRQ(dir, "ens1f0np0")
	check(err)
	check(hosttree.MoveIRQ(dir, irq, cpus.Of(6)))
	check(hosttree.SetCarrier(dir, "ens4f0np0", false))
	check(hosttree.WriteSetting(dir, "/sys/devices/system/node/node1/hugepages/hugepages-1048576kB/nr_hugepages", "3"))
	check(os.WriteFile(filepath.Join(dir, "var/lib/kubelet/cpu_manager_state"), []byte(
		`{"policyName":"static","defaultCpuSet":"0-1,4-5","entries":{"0d51f1ce-7c11-4bd4":{"feed":"2"},"7e1c9a33-02aa-47f0":{"orders":"3,7"}},"checksum":1}`), 0o644))
	return dir, file
}

// TestNodeOfAHost looks for what went wrong at the CPUs and NICs where it did. The catalogue of checks grows, so that the
// whole text is compared in the package that draws it.
func TestNodeOfAHost(t *testing.T) {
	dir, file := troubled(t)
	node := func(options ...string) result {
		return run(t, "", append([]string{"node", "-f", file, "--root", dir, "--host-ip", nobody}, options...)...)
	}
	got := node()
	if got.code != ExitFindings || got.err != "" {
		t.Errorf("exit code %d, standard error %q", got.code, got.err)
	}
	for _, want := range []string{
		"[ H 0 ", "P 2  P 3 ]", "[ I!6  P 7 ]", "░××××××  0 of 3 in use · planned 4 ",
		"NIC   ens4f0np0  0000:21:01.0  1924:0b03  sfc        pool x2: Unhealthy ", "NIC!  ens1f0np0  0000:81:00.0  1924:0b03  sfc  pool x2: Healthy ",
		"!  CPU 6, ens1f0np0  Critical  irq.effective-affinity  ", "P  owned by a container  2-3,7\n", "! every isolated CPU: ", "! the whole node: ",
		"pod 7e1c9a33…/orders  3,7   0,1 (split)\n", "Interface ens4f0np0 of NIC 0000:21:01.0 has no link",
		"IRQ 49 (ens1f0np0-0) is delivered to isolated CPU 6; wanted 0,4\n",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is missing in:\n%s", want, got.out)
		}
	}
	var drawn view.Node
	if err := json.Unmarshal([]byte(node("-o", "json").out), &drawn); err != nil {
		t.Fatal(err)
	}
	if len(drawn.Containers) != 2 || len(drawn.Pools) != 1 || len(drawn.Passed) == 0 || len(drawn.Skipped) == 0 || drawn.Jitter != nil {
		t.Errorf("got %+v", drawn)
	}
}

// TestNodeForPeople looks at what is printed for a browser; the packages that write it look closer.
func TestNodeForPeople(t *testing.T) {
	dir, file := troubled(t)
	measured := write(t, "jitter.json", `{"thresholdNanoseconds": 1000, "scheduling": "SCHED_OTHER", "cpus": [{"cpu": 7, "durationNanoseconds": 1000}]}`)
	for format, wants := range map[string][]string{
		"svg":  {"<svg xmlns=", "owned by pod 0d51f1ce…/feed", "irq.effective-affinity"},
		"html": {"<!DOCTYPE html>", "<svg xmlns=", `docs/checks.md#irq.effective-affinity"`, "CPU 7: how long", "ens4f0np0 of NIC 0000:21:01.0 has no link"},
		"text": {"jitter\ninterruptions of 1µs and longer", "CPU 7, the longest: none"},
	} {
		got := run(t, "", "node", "renamed", "-f", file, "--root", dir, "--host-ip", nobody, "--jitter", measured, "-o", format)
		if got.code != ExitFindings || got.err != "" {
			t.Errorf("-o %s: exit code %d, standard error %q", format, got.code, got.err)
		}
		for _, want := range append(wants, "renamed") {
			if !strings.Contains(got.out, want) {
				t.Errorf("-o %s: %q is missing", format, want)
			}
		}
	}
}

func TestNodeOnALiveHost(t *testing.T) {
	dir := tree(t, smaller("a"))
	got := run(t, "", "node", "-f", write(t, "p.yaml", profileHead), "--root", dir, "--window", "1ms")
	if want := "error: " + dir + " counted no interrupt within 1ms: --window is for live hosts, not for snapshots\n"; got.err != want || got.code != ExitUsage {
		t.Errorf("got %+v", got)
	}
	// The profile asks for NUMA node 1, which the host does not have.
	lesser := smaller("b")
	lesser.NUMANodesPerPackage, lesser.Distances = 1, [][]int{{10}}
	for i := range lesser.NICs {
		lesser.NICs[i].NUMANode = 0
	}
	got = run(t, "", "node", "-f", write(t, "p.yaml", profileText), "--root", tree(t, lesser))
	if want := "the profile trading does not fit this host\n"; got.code != ExitFindings || !strings.Contains(got.out, want) {
		t.Errorf("got %+v", got)
	}
}

func TestNodeRefusals(t *testing.T) {
	profile := write(t, "p.yaml", profileHead)
	file := write(t, "file", "{}")
	cases := map[string]struct {
		args []string
		want string
	}{
		"a host without a profile": {[]string{"--root", "/"}, "--root needs -f FILE with the LowLatencyNodeProfile that the host is held against"},
		"two hosts":                {[]string{"-f", profile, "--root", "/a", "--root", "/b"}, "node draws one host: give --root once"},
		"a negative window":        {[]string{"-f", profile, "--window", "-1s"}, "--window -1s is negative"},
		"no jitter":                {[]string{"-f", profile, "--jitter", file}, file + " is no result of probe jitter -o json: it has no cpus"},
		"jitter that is no JSON":   {[]string{"-f", profile, "--jitter", profile}, profile + " is no result of probe jitter -o json: it is not JSON: invalid character 'a' looking for beginning of value"},
		"no file of jitter":        {[]string{"-f", profile, "--jitter", "/does/not/exist"}, "open /does/not/exist: no such file or directory"},
		"no address":               {[]string{"-f", profile, "--host-ip", "here"}, `--host-ip "here" is no IP address`},
		"no profile":               {[]string{"-f", write(t, "pool.yaml", poolText)}, "the files hold no LowLatencyNodeProfile"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, "", append([]string{"node"}, tc.args...)...)
			if want := (result{code: ExitUsage, err: "error: " + tc.want + "\n"}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// reporting is the LowLatencyNode of a host with a plan, as its agent reports it, and the ConfigMap with the plan.
func reporting(t *testing.T, name string) (v1alpha1.LowLatencyNode, corev1.ConfigMap) {
	t.Helper()
	host, err := readNode(t.Context(), tree(t, small(name)), reading{})
	if err != nil {
		t.Fatal(err)
	}
	wanted := wanted{profile: &v1alpha1.LowLatencyNodeProfile{}}
	if err := yaml.UnmarshalStrict([]byte(profileText), wanted.profile); err != nil {
		t.Fatal(err)
	}
	planned := wanted.plan(host)
	if planned.Plan == nil {
		t.Fatal(planned.Findings)
	}
	text, err := json.Marshal(planned.Plan)
	if err != nil {
		t.Fatal(err)
	}
	object := reported(name, []string{"x2"}, v1alpha1.NodeBypassNIC{Pool: "x2", PCIAddress: "0000:81:00.0", Health: v1alpha1.NICHealthy, Units: 2})
	object.APIVersion, object.Kind = v1alpha1.GroupVersion.String(), "LowLatencyNode"
	object.Spec.PlanHash, object.Spec.PlanConfigMap = planned.Hash, "trading-plan"
	object.Status.VerifiedPlanHash = planned.Hash
	object.Status.Inventory = topology.Inventory(host.facts, host.topology)
	object.Status.Checks = &v1alpha1.CheckCounts{Passed: 40, Failed: 1}
	object.Status.Conditions = []metav1.Condition{{
		Type: "DeJittered", Status: metav1.ConditionFalse, Reason: "ChecksFailed", Message: "cpu.online: …", LastTransitionTime: metav1.NewTime(time.Now().Add(-3 * time.Hour)),
	}}
	object.Status.Findings = []v1alpha1.Finding{{
		Check: "irq.effective-affinity", Outcome: v1alpha1.OutcomeFailed, Severity: v1alpha1.SeverityCritical, Message: "IRQ 49 (ens1f0np0-0) is delivered to isolated CPU 6; wanted 0,4",
		Objects: &v1alpha1.FindingObjects{CPUs: "6", Interrupts: []v1alpha1.Interrupt{{ID: "49"}}, NICs: []string{"0000:81:00.0"}, Counts: v1alpha1.ObjectCounts{CPUs: 1, Interrupts: 1, NICs: 1}},
	}}
	held := corev1.ConfigMap{Data: map[string]string{v1alpha1.PlanKey: string(text)}}
	held.Name, held.Namespace = "trading-plan", defaultNamespace
	return object, held
}

// serving answers for single LowLatencyNodes, and for a ConfigMap.
func serving(t *testing.T, held corev1.ConfigMap, nodes ...v1alpha1.LowLatencyNode) func(*http.ServeMux) {
	t.Helper()
	return func(mux *http.ServeMux) {
		answer := func(path string, value any) {
			mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if err := json.NewEncoder(w).Encode(value); err != nil {
					t.Error(err)
				}
			})
		}
		for _, node := range nodes {
			answer("/apis/lowlatency.dev/v1alpha1/lowlatencynodes/"+node.Name, node)
		}
		held.APIVersion, held.Kind = "v1", "ConfigMap"
		answer("/api/v1/namespaces/"+held.Namespace+"/configmaps/"+held.Name, held)
	}
}

// leasing serves the Leases of agents: that of node a was renewed a moment ago, that of b an hour ago.
func leasing(t *testing.T) func(*http.ServeMux) {
	t.Helper()
	return func(mux *http.ServeMux) {
		for name, ago := range map[string]time.Duration{"a": 7 * time.Second, "b": time.Hour} {
			lease := coordinationv1.Lease{}
			lease.APIVersion, lease.Kind, lease.Namespace, lease.Name = "coordination.k8s.io/v1", "Lease", heartbeat.DefaultNamespace, name
			lease.Spec = heartbeat.Renewed("agent/"+name, time.Now().Add(-ago), 0)
			mux.HandleFunc("GET /apis/coordination.k8s.io/v1/namespaces/"+lease.Namespace+"/leases/"+name, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if err := json.NewEncoder(w).Encode(lease); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestNodeInCluster(t *testing.T) {
	var pool v1alpha1.BypassNICPool
	if err := yaml.UnmarshalStrict([]byte(poolText), &pool); err != nil {
		t.Fatal(err)
	}
	pools := []v1alpha1.BypassNICPool{pool}
	sound, held := reporting(t, "a")
	other := *sound.DeepCopy()
	other.Name = "b"
	other.Status.Conditions = append(other.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionNUMAAligned, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonVerified})
	other.Generation, other.Spec.PlanHash, other.Spec.BypassPools = 3, "feedfeedfeedfeed", nil
	unreported := reported("c", nil)
	unreported.Spec.Profile = "trading"
	unplanned := *sound.DeepCopy()
	unplanned.Name, unplanned.Spec.PlanHash, unplanned.Spec.PlanConfigMap = "d", "", ""
	unplanned.Status.Checks, unplanned.Status.VerifiedPlanHash, unplanned.Status.Findings = nil, "", nil
	all := []v1alpha1.LowLatencyNode{sound, other, unreported, unplanned}
	config := cluster(t, pools, all, serving(t, held, all...), leasing(t))
	only := cluster(t, nil, all[:1], serving(t, held))
	cases := map[string]struct {
		args []string
		code int
		want []string
		err  string
	}{
		"a node": {[]string{"a", "--kubeconfig", config}, ExitFindings, []string{
			"profile trading, plan " + sound.Spec.PlanHash + ", the agent has looked ", "s ago\n40 passed · 1 failed · 0 unknown · 0 waived\n", "DeJittered  False   3h     ChecksFailed",
			"I/-!6", "NIC!  ens1f0np0  0000:81:00.0", "pool x2: Healthy, 0 of 2 used", "planned 4 · not reported",
		}, ""},
		"a plan that is not the node's": {[]string{"b", "--kubeconfig", config}, ExitFindings, []string{
			", the agent has looked 60m ago\n", "the agent on node b has not looked at the host since ", "besides, the agent on node b has not", "NUMAAligned  Unknown  58m    HeartbeatStale",
			"the agent has not yet seen generation 3", "plan feedfeedfeedfeed is not yet verified", "the roles of CPUs are not known: ConfigMap \"trading-plan\"",
		}, ""},
		"no plan yet": {[]string{"d", "--kubeconfig", config}, ExitFindings, []string{
			"profile trading, no plan\n", `whether the agent still looks at the host is not known: namespace "lowlatency-operator-agents" has no Lease "d"; say`, "the agent has verified nothing yet", "the operator has made no plan for the node yet",
		}, ""},
		"another namespace": {[]string{"a", "--kubeconfig", config, "--namespace", "n"}, ExitFindings, []string{
			`namespace "n" has no ConfigMap "trading-plan" with the plan; say with --namespace`,
		}, ""},
		"the only one, and no right to see pools": {[]string{"--kubeconfig", only}, ExitFindings, []string{"the NICs of pools are not shown: "}, ""},
		"nothing reported":                        {[]string{"c", "--kubeconfig", config}, ExitUsage, nil, "error: the agent of node \"c\" has not reported yet: LowLatencyNode \"c\" has no status.inventory\n"},
		"an unknown node":                         {[]string{"z", "--kubeconfig", config}, ExitUsage, nil, "error: the cluster has no LowLatencyNode \"z\", but a, b, c, d\n"},
		"no name":                                 {[]string{"--kubeconfig", config}, ExitUsage, nil, "error: name one of the nodes that the cluster has: a, b, c, d\n"},
		"no cluster":                              {[]string{"a", "--kubeconfig", "/does/not/exist"}, ExitUsage, nil, "error: finding the cluster: stat /does/not/exist: no such file or directory; give --kubeconfig, or -f FILE to do without a cluster\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, "", append([]string{"node"}, tc.args...)...)
			if got.code != tc.code || got.err != tc.err {
				t.Errorf("exit code %d, want %d; standard error %q, want %q", got.code, tc.code, got.err, tc.err)
			}
			for _, want := range tc.want {
				if !strings.Contains(unwrapped(got.out), unwrapped(want)) {
					t.Errorf("%q is missing in:\n%s", want, got.out)
				}
			}
		})
	}
}

// TestNodeReportedInFiles draws what kubectl get -o yaml gives of a cluster.
func TestNodeReportedInFiles(t *testing.T) {
	sound, _ := reporting(t, "a")
	data, err := yaml.Marshal(sound)
	if err != nil {
		t.Fatal(err)
	}
	got := run(t, profileText+"---\n"+poolText+"---\n"+string(data), "node", "a", "-f", "-")
	if got.code != ExitFindings || !strings.Contains(got.out, "I/-!6") || !strings.Contains(got.out, "pool x2: Healthy") {
		t.Errorf("got %+v", got)
	}
	if got = run(t, profileText+"---\n"+string(data), "node", "z", "-f", "-"); got.err != "error: the files hold no LowLatencyNode \"z\", but a\n" {
		t.Errorf("another name: %+v", got)
	}
}

// unwrapped is a text without the line breaks that it was folded with.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestNamesAreAbridged(t *testing.T) {
	names := make([]string, 0, 25)
	for i := range cap(names) {
		names = append(names, strconv.Itoa(i))
	}
	if got := abridged(names); !strings.HasSuffix(got, "18, 19 and 5 more") {
		t.Error(got)
	}
}
