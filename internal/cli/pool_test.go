// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

const poolText = `apiVersion: lowlatency.dev/v1alpha1
kind: BypassNICPool
metadata: {name: x2}
spec:
  nodeSelector: {matchLabels: {node-role.kubernetes.io/trading: ""}}
  nics: [{vendor: "1924"}]
  stack:
    type: Onload
    onload: {userSpace: {source: HostPath, hostPath: /opt/onload}}
  resourceName: lowlatency.dev/x2
  hugepages: [{size: 2Mi, countPerNIC: 40}]
`

// otherText is a pool that wants one of the NICs of poolText, too.
func otherText() string {
	return strings.NewReplacer("name: x2", "name: other", "dev/x2", "dev/other", `{vendor: "1924"}`, `{interfaces: [ens1f0np0]}`).Replace(poolText)
}

// onloadHost is a small machine with Onload and two of its NICs, one on each NUMA node.
func onloadHost(name string) hosttree.Machine {
	m := small(name)
	m.NICs = append(m.NICs[:1], hosttree.SolarflareX2("ens4f0np0", "0000:21:01.0", 0), hosttree.SolarflareX2("ens1f0np0", "0000:81:00.0", 1))
	m.Onload = hosttree.NewOnload()
	return m
}

// nobody is an address that no NIC of a tree carries.
const nobody = "192.0.2.1"

func TestPoolOnHosts(t *testing.T) {
	good := tree(t, onloadHost("good"))
	bad := tree(t, onloadHost("bad"))
	if err := hosttree.SetOnloadVersion(bad, "9.2.0", strings.Repeat("a", 32)); err != nil {
		t.Fatal(err)
	}
	unplugged := tree(t, onloadHost("unplugged"))
	if err := hosttree.SetCarrier(unplugged, "ens4f0np0", false); err != nil {
		t.Fatal(err)
	}
	none := tree(t, small("none"))
	cases := map[string]struct {
		text string
		args []string
		code int
		want []string
	}{
		"healthy": {
			text: poolText, args: []string{"--host-ip", nobody, "--root", good},
			want: []string{
				"pool x2 · Onload · lowlatency.dev/x2 · 2 of 2 NICs healthy on 1 node\n", "good  0000:21:01.0  ens4f0np0  X2      0     Healthy  9.1.0.15/9.1.0.15  1      ?\n",
				"good  0     1             1      ?\n", "a container with NIC 0000:81:00.0 of good gets\n", "device    /dev/onload (rw)\n",
				"file      /opt/onload/usr/lib64/libonload.so at /opt/onload/usr/lib64/libonload.so\n", "variable  PCIDEVICE_LOWLATENCY_DEV_X2=0000:81:00.0\n",
			},
		},
		"the wrong version": {
			text: poolText, args: []string{"--host-ip", nobody, "--root", good, "--root", bad}, code: ExitFindings,
			want: []string{"2 of 4 NICs healthy on 2 nodes\n", "Unhealthy  9.2.0/9.1.0.15", "Unhealthy · bad · 0000:21:01.0\n    /opt/onload/usr/lib64/libonload.so "},
		},
		"no link": {
			text: poolText, args: []string{"--host-ip", nobody, "--root", unplugged}, code: ExitFindings, want: []string{"1 of 2 NICs healthy", "Unhealthy · unplugged · 0000:21:01.0\n"},
		},
		"an unknown address of the node": {
			text: poolText, args: []string{"--root", good}, code: ExitFindings, want: []string{"0 of 2 NICs healthy", "Unknown · good · 0000:81:00.0\n"},
		},
		"no NIC": {
			text: strings.Replace(poolText, `"1924"`, `"1077"`, 1), args: []string{"--host-ip", nobody, "--root", none}, code: ExitFindings, want: []string{"0 of 0 NICs healthy", "no NIC of these nodes matches spec.nics\n", "none has\n", "  1924:0b03 AMD Solarflare XtremeScale SFC9250 10/25/40/50/100G Ethernet Controller (ens1f0np0)\n"},
		},
		"another pool selects one": {
			text: poolText + "---\n" + otherText(), args: []string{"x2", "--host-ip", nobody, "--root", good}, code: ExitFindings,
			want: []string{"1 of 2 NICs healthy", "Ineligible · good · 0000:81:00.0\n", "BypassNICPool other", "a container with NIC 0000:81:00.0 of good cannot start\n"},
		},
		"both pools": {
			text: poolText + "---\n" + otherText(), args: []string{"--host-ip", nobody, "--root", good}, code: ExitFindings,
			want: []string{"pool other · ", "pool x2 · "},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, tc.text, append([]string{"pool", "-f", "-"}, tc.args...)...)
			if got.code != tc.code || got.err != "" {
				t.Errorf("exit code %d, want %d; standard error %q", got.code, tc.code, got.err)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.out, want) {
					t.Errorf("%q is missing in:\n%s", want, got.out)
				}
			}
		})
	}
}

func TestPoolForPrograms(t *testing.T) {
	args := []string{"pool", "-f", "-", "--host-ip", nobody, "--root", tree(t, onloadHost("good"))}
	inJSON := run(t, poolText, append(args, "-o", "json")...)
	var pools []view.Pool
	if err := json.Unmarshal([]byte(inJSON.out), &pools); err != nil {
		t.Fatal(err)
	}
	one := 1
	nic := pools[0].Nodes[0].NICs[1]
	if nic.PCIAddress != "0000:81:00.0" || nic.Users != nil || nic.Edits == nil || len(nic.Edits.DeviceNodes) == 0 || nic.Units != 1 {
		t.Errorf("%+v", nic)
	}
	want := []view.PoolNUMANode{{ID: new(int), HealthyNICs: 1, Units: 1}, {ID: &one, HealthyNICs: 1, Units: 1}}
	if diff := cmp.Diff(want, pools[0].Nodes[0].NUMANodes); diff != "" {
		t.Error(diff)
	}
	var same []view.Pool
	if err := yaml.Unmarshal([]byte(run(t, poolText, append(args, "-o", "yaml")...).out), &same); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pools, same); diff != "" {
		t.Errorf("YAML and JSON differ:\n%s", diff)
	}
}

func TestPoolsBecomePartOfPlans(t *testing.T) {
	host := tree(t, onloadHost("a"))
	managed := tree(t, onloadHost("managed"))
	if err := hosttree.SetDefaultRoute(managed, "ens1f0np0"); err != nil {
		t.Fatal(err)
	}
	hugepages := func(text string, args ...string) []int64 {
		t.Helper()
		got := run(t, text, append([]string{"plan", "-f", "-", "--host-ip", nobody, "-o", "json"}, args...)...)
		var plans []view.Plan
		if err := json.Unmarshal([]byte(got.out), &plans); err != nil {
			t.Fatalf("%v: %+v", err, got)
		}
		counts := make([]int64, 0, len(plans[0].Hugepages))
		for _, pages := range plans[0].Hugepages {
			counts = append(counts, pages.Count)
		}
		return counts
	}
	node, err := readNode(t.Context(), host, reading{})
	if err != nil {
		t.Fatal(err)
	}
	inventory := func(pools string) string {
		t.Helper()
		return inventoryText(t, node, pools)
	}
	both := profileHead + "---\n" + poolText
	contested := both + "---\n" + otherText()
	cases := map[string]struct {
		text string
		args []string
		want []int64
	}{
		"without a pool":                        {profileHead, []string{"--root", host}, []int64{}},
		"a pool with two NICs":                  {both, []string{"--root", host}, []int64{40, 40}},
		"a NIC that two pools select":           {contested, []string{"--root", host}, []int64{40, 40}},
		"a node that nothing is known about":    {contested + "---\n" + inventory("[]"), nil, []int64{40, 40}},
		"a node that one of the pools selects":  {contested + "---\n" + inventory("[x2]"), nil, []int64{40, 40}},
		"a node that the other pool selects":    {contested + "---\n" + inventory("[other]"), nil, []int64{40}},
		"a NIC that carries the node's traffic": {both, []string{"--root", managed}, []int64{40}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, hugepages(tc.text, tc.args...)); diff != "" {
				t.Error(diff)
			}
		})
	}
	var plans []view.Plan
	if err := json.Unmarshal([]byte(run(t, both, "plan", "-f", "-", "--root", host, "-o", "json").out), &plans); err != nil {
		t.Fatal(err)
	}
	rendered := run(t, both, "render", "-f", "-", "--root", host)
	if want := "name: trading-" + *plans[0].PlanHash + "\n"; !strings.Contains(rendered.out, want) || rendered.code != ExitOK {
		t.Errorf("render does not print the plan %s: %+v", want, rendered)
	}
}

func TestPoolRefusals(t *testing.T) {
	file := write(t, "pool.yaml", poolText)
	cases := map[string]struct {
		in   string
		args []string
		want string
	}{
		"another name":         {poolText, []string{"x3", "-f", "-"}, `the files hold no BypassNICPool "x3", but x2`},
		"no pool":              {profileText, []string{"-f", "-"}, "the files hold no BypassNICPool"},
		"a host without files": {"", []string{"x2", "--root", "/"}, "--root needs -f FILE with the BypassNICPool that is to be evaluated on the host"},
		"no address":           {"", []string{"-f", file, "--host-ip", "here"}, `--host-ip "here" is no IP address`},
		"no host":              {"", []string{"-f", file, "--root", "/does/not/exist"}, "opening host /does/not/exist: no such file or directory"},
		"no cluster": {
			"", []string{"x2", "--kubeconfig", "/does/not/exist"}, "finding the cluster: stat /does/not/exist: no such file or directory; give --kubeconfig, or -f FILE to do without a cluster",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, tc.in, append([]string{"pool"}, tc.args...)...)
			if want := (result{code: ExitUsage, err: "error: " + tc.want + "\n"}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// cluster serves lists of BypassNICPools and LowLatencyNodes, the latter in pages of one, and returns a kubeconfig.
// More may be served by handlers for other paths.
func cluster(t *testing.T, pools []v1alpha1.BypassNICPool, nodes []v1alpha1.LowLatencyNode, more ...func(*http.ServeMux)) string {
	t.Helper()
	mux := http.NewServeMux()
	for _, add := range more {
		add(mux)
	}
	answer := func(w http.ResponseWriter, value any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(value); err != nil {
			t.Error(err)
		}
	}
	const root = "/apis/lowlatency.dev/v1alpha1/"
	if pools != nil {
		mux.HandleFunc("GET "+root+"bypassnicpools", func(w http.ResponseWriter, _ *http.Request) {
			list := v1alpha1.BypassNICPoolList{Items: pools}
			list.APIVersion, list.Kind = v1alpha1.GroupVersion.String(), "BypassNICPoolList"
			answer(w, list)
		})
	}
	mux.HandleFunc("GET "+root+"lowlatencynodes", func(w http.ResponseWriter, r *http.Request) {
		at, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		list := v1alpha1.LowLatencyNodeList{Items: nodes[at:min(at+1, len(nodes))]}
		list.APIVersion, list.Kind = v1alpha1.GroupVersion.String(), "LowLatencyNodeList"
		if at+1 < len(nodes) {
			list.Continue = strconv.Itoa(at + 1)
		}
		answer(w, list)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return kubeconfig(t, server.URL)
}

// kubeconfig says how to reach an API server.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	return write(t, "kubeconfig", `apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: "`+server+`"}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
users: [{name: test}]
`)
}

func reported(name string, pools []string, nics ...v1alpha1.NodeBypassNIC) v1alpha1.LowLatencyNode {
	node := v1alpha1.LowLatencyNode{Spec: v1alpha1.LowLatencyNodeSpec{Profile: "trading", BypassPools: pools}}
	node.Name, node.Status.BypassNICs = name, nics
	return node
}

func TestPoolInCluster(t *testing.T) {
	var pool v1alpha1.BypassNICPool
	if err := yaml.UnmarshalStrict([]byte(poolText), &pool); err != nil {
		t.Fatal(err)
	}
	pool.Generation = 2
	other := *pool.DeepCopy()
	other.Name = "other"
	zero, one := int32(0), int32(1)
	held := v1alpha1.NodeBypassNIC{
		Pool: "x2", PoolGeneration: 2, PCIAddress: "0000:3b:00.0", InterfaceName: "ens1", Model: "X2", NUMANode: &zero, Health: v1alpha1.NICHealthy,
		ModuleVersion: "9.1.0", UserVersion: "9.1.0", Units: 3,
		Users: []v1alpha1.NICUser{
			{Namespace: "trading", Pod: "feed", Container: "app", Alignment: v1alpha1.AlignmentAligned},
			{Namespace: "trading", Pod: "orders", Container: "app", Alignment: v1alpha1.AlignmentSplit, Message: "CPUs 4-5 on NUMA node 1, NIC ens1 on NUMA node 0"},
		},
	}
	free := v1alpha1.NodeBypassNIC{Pool: "x2", PoolGeneration: 2, PCIAddress: "0000:81:00.0", NUMANode: &one, Health: v1alpha1.NICHealthy, Units: 3}
	down := v1alpha1.NodeBypassNIC{Pool: "x2", PoolGeneration: 1, PCIAddress: "0000:81:00.0", Health: v1alpha1.NICUnhealthy, Reasons: []string{"ens2 has no link."}, Units: 3}
	elsewhere := v1alpha1.NodeBypassNIC{Pool: "other", PoolGeneration: 2, PCIAddress: "0000:99:00.0", Health: v1alpha1.NICUnhealthy}
	sound := cluster(t, []v1alpha1.BypassNICPool{pool, other}, []v1alpha1.LowLatencyNode{reported("a", []string{"other", "x2"}, elsewhere, held, free), reported("b", nil)})
	broken := cluster(t, []v1alpha1.BypassNICPool{pool}, []v1alpha1.LowLatencyNode{reported("a", []string{"x2"}, held), reported("b", []string{"x2"}, down)})
	cases := map[string]struct {
		args []string
		code int
		want []string
		err  string
	}{
		"healthy": {
			args: []string{"x2", "--kubeconfig", sound},
			want: []string{
				"pool x2 · Onload · lowlatency.dev/x2 · 2 of 2 NICs healthy on 1 node\n", "2 of 3 used  trading/feed/app\n", "trading/orders/app\n", "(split)\n",
				"split     trading/orders/app: CPUs 4-5 on NUMA node 1, NIC ens1 on NUMA node 0\n", "a     0     1             3      1\n", "a     1     1             3      3\n",
			},
		},
		"one NIC is down": {
			args: []string{"x2", "--kubeconfig", broken, "--color", "always"}, code: ExitFindings,
			want: []string{"ens2 has no link.\n", "the agent of the node has not yet reported for generation 2 of the pool\n", "\x1b["},
		},
		"all pools":     {args: []string{"--kubeconfig", sound}, code: ExitFindings, want: []string{"pool x2 · ", "pool other · "}},
		"another name":  {args: []string{"x3", "--kubeconfig", sound}, code: ExitUsage, err: "error: the cluster has no BypassNICPool \"x3\", but other, x2\n"},
		"no pool":       {args: []string{"--kubeconfig", cluster(t, []v1alpha1.BypassNICPool{}, nil)}, code: ExitUsage, err: "error: the cluster has no BypassNICPool\n"},
		"no operator":   {args: []string{"--kubeconfig", cluster(t, nil, nil)}, code: ExitUsage, err: "error: listing BypassNICPools: the server could not find the requested resource (get bypassnicpools.lowlatency.dev); is the operator installed in this cluster?\n"},
		"wrong context": {args: []string{"--kubeconfig", sound, "--context", "c"}, code: ExitUsage, err: "error: finding the cluster: context \"c\" does not exist; give --kubeconfig, or -f FILE to do without a cluster\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, "", append([]string{"pool"}, tc.args...)...)
			if got.code != tc.code || got.err != tc.err {
				t.Errorf("exit code %d, want %d; standard error %q, want %q", got.code, tc.code, got.err, tc.err)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.out, want) {
					t.Errorf("%q is missing in:\n%s", want, got.out)
				}
			}
		})
	}
}

// inventoryText is a LowLatencyNode with the inventory of a node, which the pools select.
func inventoryText(t *testing.T, of node, pools string) string {
	t.Helper()
	object := v1alpha1.LowLatencyNode{
		Spec:   v1alpha1.LowLatencyNodeSpec{Profile: "trading"},
		Status: v1alpha1.LowLatencyNodeStatus{Inventory: topology.Inventory(of.facts, of.topology)},
	}
	object.APIVersion, object.Kind, object.Name = v1alpha1.GroupVersion.String(), "LowLatencyNode", "reported"
	if err := yaml.Unmarshal([]byte(pools), &object.Spec.BypassPools); err != nil {
		t.Fatal(err)
	}
	data, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
