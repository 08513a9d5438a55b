// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"errors"
	"strings"
	"testing"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
)

// bound makes an intent bind to an existing pool.
func bound(i *fleet.Intent, selector string) {
	i.Profile.Spec.Pools = v1alpha1.PoolsSpec{
		Management: v1alpha1.PoolsExisting,
		Existing:   &v1alpha1.ExistingPool{MachineConfigPoolSelector: v1alpha1.Labels{selector: ""}},
	}
}

const cnfLabel = "pools.operator.machineconfiguration.openshift.io/worker-cnf"

// withPool adds a pool of somebody else that holds the nodes.
func withPool(name, label string, nodes ...string) func(*cluster) {
	return func(c *cluster) {
		c.pools[name] = pool(name, map[string]string{label: ""})
		for _, node := range nodes {
			c.nodes[node].Labels[label] = ""
		}
	}
}

// boundToCNF binds the profile to that pool.
func boundToCNF(i *fleet.Intent) { bound(i, cnfLabel) }

type conflictCase struct {
	before   func(*cluster)
	nodes    plannedNodes
	intent   func(*fleet.Intent)
	peers    []performanceProfile
	renderer renderer
	want     []fleet.Conflict
	// wantSteps reports whether anything is written nevertheless.
	wantSteps bool
}

func runConflicts(t *testing.T, cases map[string]conflictCase) {
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { tc.run(t) })
	}
}

func (tc conflictCase) run(t *testing.T) {
	c := newCluster(t, "n1", "n2")
	if tc.before != nil {
		tc.before(c)
	}
	w, intent := c.world(), tc.nodes.intent(c)
	w.performanceProfiles = tc.peers
	if tc.intent != nil {
		tc.intent(intent)
	}
	if tc.renderer == nil {
		tc.renderer = renderText
	}
	targets, conflicts := aim(w, intent, "operator", tc.renderer)
	d := decideRoll(w, intent, targets, conflicts)
	expectConflicts(t, d.outcome.Conflicts, tc.want)
	if got := len(d.steps) > 0; got != tc.wantSteps {
		t.Errorf("steps are %v, want some: %v", d.steps, tc.wantSteps)
	}
	for _, s := range d.steps {
		if s.label != nil {
			t.Errorf("node %s would be labelled", s.label.Name)
		}
	}
}

func TestConflictsOfManagedPools(t *testing.T) {
	runConflicts(t, map[string]conflictCase{
		"none": {nodes: plannedNodes{"n1": "a1"}, wantSteps: true},
		"a node in another custom pool": {
			before: withPool("infra", "infra", "n1"), nodes: plannedNodes{"n1": "a1"},
			want: []fleet.Conflict{{Reason: v1alpha1.ReasonMachineConfigPoolConflict, Node: "n1", Message: "node n1 is in MachineConfigPool infra, which somebody else owns"}},
		},
		"one of two nodes in another custom pool": {
			before: withPool("infra", "infra", "n1"), nodes: plannedNodes{"n1": "a1", "n2": "a1"},
			want:      []fleet.Conflict{{Reason: v1alpha1.ReasonMachineConfigPoolConflict, Node: "n1", Message: "node n1 is in MachineConfigPool infra"}},
			wantSteps: true,
		},
		"control-plane nodes": {
			before: func(c *cluster) { c.nodes["n1"].Labels["node-role.kubernetes.io/master"] = "" }, nodes: plannedNodes{"n1": "a1"},
			want: []fleet.Conflict{{Reason: v1alpha1.ReasonMachineConfigPoolConflict, Message: "OpenShift keeps the control-plane nodes n1 in MachineConfigPool master"}},
		},
		"control-plane nodes and workers": {
			before: func(c *cluster) { c.nodes["n1"].Labels["node-role.kubernetes.io/control-plane"] = "" }, nodes: plannedNodes{"n1": "a1", "n2": "a1"},
			want: []fleet.Conflict{{Reason: v1alpha1.ReasonMachineConfigPoolConflict, Message: "selects the control-plane nodes n1 together with workers"}},
		},
	})
}

func TestConflictsWithPeers(t *testing.T) {
	runConflicts(t, map[string]conflictCase{
		"a PerformanceProfile that selects a node": {
			nodes: plannedNodes{"n1": "a1"}, peers: []performanceProfile{{name: "cnf", nodeSelector: map[string]string{"role": "trading"}}},
			want: []fleet.Conflict{{Reason: v1alpha1.ReasonPerformanceProfileConflict, Message: "PerformanceProfile cnf governs nodes of MachineConfigPool " + tradingPool}},
		},
		"a PerformanceProfile whose machine configs every custom pool takes in": {
			nodes: plannedNodes{"n1": "a1"},
			peers: []performanceProfile{{name: "all", nodeSelector: map[string]string{"x": ""}, machineConfigLabels: map[string]string{mcfgv1.MachineConfigRoleLabelKey: "worker"}}},
			want:  []fleet.Conflict{{Reason: v1alpha1.ReasonPerformanceProfileConflict, Message: "PerformanceProfile all"}},
		},
		"a PerformanceProfile on other nodes": {
			nodes: plannedNodes{"n1": "a1"}, wantSteps: true,
			peers: []performanceProfile{{name: "cnf", nodeSelector: map[string]string{"x": ""}, poolSelector: map[string]string{"x": ""}, machineConfigLabels: map[string]string{"x": ""}}},
		},
		"a plan that cannot be rendered": {
			nodes:    plannedNodes{"n1": "a1"},
			renderer: func(manifests.Input) ([]*unstructured.Unstructured, error) { return nil, errors.New("no such kernel") },
			want:     []fleet.Conflict{{Reason: v1alpha1.ReasonPlanImpossible, Message: "cannot be written: no such kernel"}},
		},
	})
}

func TestConflictsOfExistingPools(t *testing.T) {
	runConflicts(t, map[string]conflictCase{
		"no existing pool": {
			nodes: plannedNodes{"n1": "a1"}, intent: func(i *fleet.Intent) { bound(i, "nowhere") },
			want: []fleet.Conflict{{Reason: v1alpha1.ReasonMachineConfigPoolConflict, Message: "selects no MachineConfigPool"}},
		},
		"two existing pools": {
			before: func(c *cluster) {
				withPool("worker-cnf", "cnf", "n1")(c)
				c.pools[workerPool].Labels[cnfLabel] = ""
			},
			nodes: plannedNodes{"n1": "a1"}, intent: boundToCNF,
			want: []fleet.Conflict{{Reason: v1alpha1.ReasonMachineConfigPoolConflict, Message: "selects the MachineConfigPools worker, worker-cnf"}},
		},
		"an existing pool of another profile": {
			before: func(c *cluster) {
				withPool("worker-cnf", "cnf", "n1")(c)
				c.pools["worker-cnf"].Labels[v1alpha1.LabelProfile] = "other"
			},
			nodes: plannedNodes{"n1": "a1"}, intent: boundToCNF,
			want: []fleet.Conflict{{Reason: v1alpha1.ReasonMachineConfigPoolConflict, Message: "MachineConfigPool worker-cnf is managed by profile other"}},
		},
		"an existing pool without a selected node": {
			before: withPool("worker-cnf", "cnf", "n1"), nodes: plannedNodes{"n1": "a1", "n2": "a1"},
			intent: boundToCNF,
			want:   []fleet.Conflict{{Reason: v1alpha1.ReasonMachineConfigPoolConflict, Node: "n2", Message: "MachineConfigPool worker-cnf does not hold the selected nodes n2"}},
		},
		"an existing pool with a node that is not selected": {
			before: withPool("worker-cnf", "cnf", "n1", "n2"), nodes: plannedNodes{"n1": "a1"},
			intent: boundToCNF,
			want:   []fleet.Conflict{{Reason: v1alpha1.ReasonMachineConfigPoolConflict, Node: "n2", Message: "MachineConfigPool worker-cnf holds nodes n2, which spec.nodeSelector does not select"}},
		},
		"an existing pool with two shapes": {
			before: withPool("worker-cnf", "cnf", "n1", "n2"), nodes: plannedNodes{"n1": "a1", "n2": "b1"},
			intent: boundToCNF,
			want:   []fleet.Conflict{{Reason: v1alpha1.ReasonMachineConfigPoolConflict, Message: "MachineConfigPool worker-cnf holds nodes that need 2 different plans (plan "}},
		},
		"an existing pool that fits": {
			before: withPool("worker-cnf", "cnf", "n1"), nodes: plannedNodes{"n1": "a1"},
			intent: boundToCNF, wantSteps: true,
		},
		"the control plane in its own pool": {
			before: func(c *cluster) {
				for _, node := range c.nodes {
					node.Labels["node-role.kubernetes.io/master"] = ""
				}
			},
			nodes: plannedNodes{"n1": "a1", "n2": "a1"}, intent: func(i *fleet.Intent) { bound(i, "pools.operator.machineconfiguration.openshift.io/master") },
			wantSteps: true,
		},
	})
}

func expectConflicts(t *testing.T, got, want []fleet.Conflict) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("conflicts are %+v, want %+v", got, want)
	}
	for i := range want {
		if got[i].Reason != want[i].Reason || got[i].Node != want[i].Node || !strings.Contains(got[i].Message, want[i].Message) {
			t.Errorf("conflict is %+v, want %+v", got[i], want[i])
		}
	}
}

func TestNothingIsUndoneForLackOfPlans(t *testing.T) {
	c := newCluster(t, "n1", "n2")
	c.finish(plannedNodes{"n1": "a1"})
	l := c.look(plannedNodes{})
	l.intent.Selected, l.intent.Held["n1"], l.intent.Leaving = []string{"n1"}, "the profile cannot be met on it", nil
	if d := c.act(l, 0); len(d.steps) > 0 {
		t.Errorf("the first step is %s, want none", d.steps[0])
	}
}

func TestPrimaryPool(t *testing.T) {
	w := &world{pools: map[string]*mcfgv1.MachineConfigPool{
		masterPool: pool(masterPool, map[string]string{"master": ""}),
		workerPool: pool(workerPool, map[string]string{"worker": ""}),
		"infra":    pool("infra", map[string]string{"infra": ""}),
		"cnf":      pool("cnf", map[string]string{"cnf": ""}),
		"empty":    {ObjectMeta: metav1.ObjectMeta{Name: "empty"}, Spec: mcfgv1.MachineConfigPoolSpec{NodeSelector: &metav1.LabelSelector{}}},
		"broken": {ObjectMeta: metav1.ObjectMeta{Name: "broken"}, Spec: mcfgv1.MachineConfigPoolSpec{NodeSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "infra", Operator: "Near"}},
		}}},
	}}
	cases := map[string]struct {
		labels []string
		want   string
	}{
		"a worker":                      {[]string{"worker"}, workerPool},
		"a custom node":                 {[]string{"worker", "infra"}, "infra"},
		"a custom node without worker":  {[]string{"infra"}, "infra"},
		"a node in two custom pools":    {[]string{"worker", "infra", "cnf"}, ""},
		"a control-plane node":          {[]string{"master"}, masterPool},
		"a compact control-plane node":  {[]string{"master", "worker"}, masterPool},
		"a control-plane node as infra": {[]string{"master", "infra"}, masterPool},
		"a node in no pool":             {nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set := map[string]string{}
			for _, label := range tc.labels {
				set[label] = ""
			}
			if got := w.primaryPool(set); got != tc.want {
				t.Errorf("primaryPool() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestHasConfigOf(t *testing.T) {
	cases := map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"none":                       {nil, false},
		"current":                    {map[string]string{annotationCurrentConfig: "rendered-trading-1a2b"}, true},
		"desired":                    {map[string]string{annotationDesiredConfig: "rendered-trading-1a2b"}, true},
		"of another pool":            {map[string]string{annotationCurrentConfig: "rendered-worker-1a2b"}, false},
		"of a pool of a longer name": {map[string]string{annotationCurrentConfig: "rendered-trading-floor-1a2b"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			if got := hasConfigOf(node, "trading"); got != tc.want {
				t.Errorf("hasConfigOf() = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestParsePerformanceProfile(t *testing.T) {
	role := mcfgv1.MachineConfigRoleLabelKey
	cases := map[string]struct {
		spec map[string]any
		want performanceProfile
	}{
		"both selectors are made of the role": {
			spec: map[string]any{"nodeSelector": map[string]any{"node-role.kubernetes.io/worker-cnf": ""}},
			want: performanceProfile{
				poolSelector: map[string]string{role: "worker-cnf"}, machineConfigLabels: map[string]string{role: "worker-cnf"},
				nodeSelector: map[string]string{"node-role.kubernetes.io/worker-cnf": ""},
			},
		},
		"selectors that are set": {
			spec: map[string]any{
				"nodeSelector": map[string]any{"cnf": "yes"}, "machineConfigPoolSelector": map[string]any{"pool": "cnf"},
				"machineConfigLabel": map[string]any{"config": "cnf"},
			},
			want: performanceProfile{
				poolSelector: map[string]string{"pool": "cnf"}, machineConfigLabels: map[string]string{"config": "cnf"},
				nodeSelector: map[string]string{"cnf": "yes"},
			},
		},
		"fields of a wrong type": {
			spec: map[string]any{"nodeSelector": "cnf"},
			want: performanceProfile{poolSelector: map[string]string{role: ""}, machineConfigLabels: map[string]string{role: ""}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := parsePerformanceProfile(&unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"name": "cnf"}, "spec": tc.spec,
			}})
			tc.want.name = "cnf"
			expectEqual(t, tc.want, got)
		})
	}
}

// TestRuntimeClassOfAPeer: the RuntimeClass that an import keeps is the PerformanceProfile's as long as that exists.
func TestRuntimeClassOfAPeer(t *testing.T) {
	elsewhere := performanceProfile{name: "cnf", nodeSelector: map[string]string{"x": ""}, poolSelector: map[string]string{"x": ""},
		machineConfigLabels: map[string]string{"x": ""}}
	target := &target{shape: &fleet.Shape{Plan: &plan.NodePlan{}}}
	w := &world{performanceProfiles: []performanceProfile{elsewhere}}
	if got := w.performanceProfileConflict(target); got != nil {
		t.Errorf("conflict %+v without the name", got)
	}
	target.shape.Plan.ContainerRuntime.RuntimeClassName = "performance-cnf"
	want := "RuntimeClass performance-cnf belongs to PerformanceProfile cnf as long as that exists: delete it, or take " +
		"spec.containerRuntime.runtimeClassName out"
	if got := w.performanceProfileConflict(target); got == nil || got.Message != want || got.Reason != v1alpha1.ReasonPerformanceProfileConflict {
		t.Errorf("conflict %+v, want %q", got, want)
	}
}

// TestRuntimeClassOfAnotherProfile: of the profiles that ask for one RuntimeClass, the one that has it keeps it, else the oldest gets
// it, and no other writes anything.
func TestRuntimeClassOfAnotherProfile(t *testing.T) {
	const class = "performance-cnf"
	cases := map[string]struct {
		claims  []string
		holder  string
		planned string
		want    string
	}{
		"nobody else asks for it":                 {nil, "other", class, ""},
		"another profile has it":                  {[]string{"trading", "other"}, "other", class, "other"},
		"it is this profile's":                    {[]string{"other", "trading"}, "trading", class, ""},
		"nobody has it, and this one is older":    {[]string{"trading", "other"}, "", class, ""},
		"nobody has it, and the other is older":   {[]string{"other", "trading"}, "", class, "other"},
		"who has it asks for another one now":     {[]string{"trading", "other"}, "third", class, ""},
		"who has it gives it up to an older one":  {[]string{"other", "trading"}, "third", class, "other"},
		"the plan in force has another":           {[]string{"other", "trading"}, "other", "", ""},
		"the plan in force has a former one":      {[]string{"other", "trading"}, "other", "performance-former", ""},
		"a name of which no plan speaks any more": {nil, "", "performance-former", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "n1", "n2")
			w, intent := c.world(), oneNode().intent(c)
			intent.Profile = intent.Profile.DeepCopy()
			intent.Profile.Spec.ContainerRuntime.RuntimeClassName = class
			intent.RuntimeClassClaims = tc.claims
			w.runtimeClassHolders = map[string]string{class: tc.holder}
			planned := *intent.Shapes[0].Plan
			planned.ContainerRuntime.RuntimeClassName = tc.planned
			intent.Shapes[0].Plan = &planned
			targets, conflicts := aim(w, intent, "operator", renderText)
			d := decideRoll(w, intent, targets, conflicts)
			var want []fleet.Conflict
			if tc.want != "" {
				want = []fleet.Conflict{{Reason: v1alpha1.ReasonRuntimeClassConflict, Message: "RuntimeClass " + class + " is that of profile " + tc.want}}
			}
			expectConflicts(t, d.outcome.Conflicts, want)
			if wrote := len(d.steps) > 0; wrote != (tc.want == "") {
				t.Errorf("steps are %v", d.steps)
			}
		})
	}
}
