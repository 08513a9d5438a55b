// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
)

// cluster is an API server with a machine-config operator in memory. Every act of the latter is a step of its
// own, so that a test can put them in any order between the steps of the platform.
type cluster struct {
	t       testing.TB
	pools   map[string]*mcfgv1.MachineConfigPool
	objects map[key]*unstructured.Unstructured
	configs map[string]*mcfgv1.MachineConfig
	nodes   map[string]*corev1.Node
	reboots map[string]int
	version int
	// now is the time; zero while it does not matter.
	now   time.Time
	turns int
}

func newCluster(t testing.TB, nodes ...string) *cluster {
	c := &cluster{
		t: t, pools: map[string]*mcfgv1.MachineConfigPool{}, objects: map[key]*unstructured.Unstructured{},
		configs: map[string]*mcfgv1.MachineConfig{}, nodes: map[string]*corev1.Node{}, reboots: map[string]int{},
	}
	c.pools[workerPool] = pool(workerPool, map[string]string{"node-role.kubernetes.io/worker": ""})
	c.pools[masterPool] = pool(masterPool, map[string]string{"node-role.kubernetes.io/master": ""})
	for _, name := range nodes {
		c.addNode(name)
	}
	c.render(workerPool)
	for _, name := range nodes {
		c.reboot(name)
	}
	c.reboots = map[string]int{}
	return c
}

func pool(name string, nodeLabels map[string]string) *mcfgv1.MachineConfigPool {
	return &mcfgv1.MachineConfigPool{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-" + name),
			Labels: map[string]string{"pools.operator.machineconfiguration.openshift.io/" + name: ""},
		},
		Spec: mcfgv1.MachineConfigPoolSpec{
			NodeSelector: &metav1.LabelSelector{MatchLabels: nodeLabels},
			MachineConfigSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: mcfgv1.MachineConfigRoleLabelKey, Operator: metav1.LabelSelectorOpIn, Values: []string{workerPool, name},
			}}},
		},
	}
}

func (c *cluster) addNode(name string) {
	c.nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-" + name), ResourceVersion: c.next(), Annotations: map[string]string{},
		Labels: map[string]string{"node-role.kubernetes.io/worker": "", "role": "trading"},
	}}
}

func (c *cluster) next() string {
	c.version++
	return strconv.Itoa(c.version)
}

// world is a copy of the cluster as the platform reads it.
func (c *cluster) world() *world {
	w := &world{now: c.now, pools: map[string]*mcfgv1.MachineConfigPool{}, objects: map[key]*unstructured.Unstructured{}, kubelets: map[string][]mcfgv1.MachineConfig{}}
	for name, p := range c.pools {
		w.pools[name] = p.DeepCopy()
	}
	for k, o := range c.objects {
		w.objects[k] = o.DeepCopy()
	}
	return w
}

func (c *cluster) nodeCopies() map[string]*corev1.Node {
	copies := map[string]*corev1.Node{}
	for name, node := range c.nodes {
		copies[name] = node.DeepCopy()
	}
	return copies
}

// evidence reads what the platform reads from the API server itself.
func (c *cluster) evidence(w *world, targets []*target) {
	for name, p := range w.pools {
		if !heldByUs(p) {
			continue
		}
		for _, source := range kubeletSources(p) {
			if config := c.configs[source]; config != nil {
				w.kubelets[name] = append(w.kubelets[name], *config)
			}
		}
	}
	for _, t := range targets {
		if heldByUs(t.live) {
			t.evidence = evidence{rendered: c.configs[t.live.Spec.Configuration.Name], kubelets: w.kubelets[t.name()]}
			var sources []mcfgv1.MachineConfig
			for _, source := range t.live.Spec.Configuration.Source {
				if config := c.configs[source.Name]; config != nil {
					sources = append(sources, *config)
				}
			}
			t.evidence.sources = sources
		}
	}
}

// take carries out a step as the API server would, and reports whether it took it.
func (c *cluster) take(s step) bool {
	switch {
	case s.apply != nil && s.apply.GetKind() == kindPool:
		c.applyPool(s.apply)
	case s.apply != nil:
		c.applyObject(s.apply)
	case s.remove != nil:
		c.remove(s.remove)
	default:
		return c.label(s)
	}
	return true
}

func (c *cluster) label(s step) bool {
	node := c.nodes[s.label.Name]
	if node.ResourceVersion != s.label.ResourceVersion {
		return false
	}
	for name, value := range map[string]string{v1alpha1.LabelProfile: s.profile, v1alpha1.LabelPool: s.pool} {
		delete(node.Labels, name)
		if value != "" {
			node.Labels[name] = value
		}
	}
	node.ResourceVersion = c.next()
	return true
}

func (c *cluster) applyPool(object *unstructured.Unstructured) {
	var want mcfgv1.MachineConfigPool
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &want); err != nil {
		c.t.Fatal(err)
	}
	live := c.pools[want.Name]
	if live == nil {
		live = &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: want.Name, UID: types.UID("uid-" + want.Name + c.next())}}
		c.pools[want.Name] = live
	}
	if live.Labels == nil {
		live.Labels = map[string]string{}
	}
	maps.Copy(live.Labels, want.Labels)
	live.Annotations = want.Annotations
	if want.Spec.NodeSelector != nil {
		live.Spec.NodeSelector, live.Spec.MachineConfigSelector = want.Spec.NodeSelector, want.Spec.MachineConfigSelector
	}
	others := userPaused(live)
	live.Spec.Paused = want.Spec.Paused || others
	live.ManagedFields = nil
	if others {
		live.ManagedFields = append(live.ManagedFields, pausedBy("admin", metav1.ManagedFieldsOperationUpdate))
	}
	if want.Spec.Paused {
		live.ManagedFields = append(live.ManagedFields, pausedBy(v1alpha1.FieldManager, metav1.ManagedFieldsOperationApply))
	}
}

func pausedBy(manager string, operation metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: mcfgv1.GroupVersion.String(), FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:paused":{}}}`),
	}
}

func userPaused(p *mcfgv1.MachineConfigPool) bool {
	return slices.ContainsFunc(p.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "admin" })
}

func (c *cluster) applyObject(object *unstructured.Unstructured) {
	k := key{object.GetKind(), object.GetName()}
	next := object.DeepCopy()
	next.SetUID(types.UID("uid-" + k.kind + k.name))
	next.SetGeneration(1)
	if live := c.objects[k]; live != nil {
		next.SetGeneration(live.GetGeneration())
		if !sameJSON(live.Object["spec"], next.Object["spec"]) {
			next.SetGeneration(live.GetGeneration() + 1)
		}
		next.Object["status"] = live.Object["status"]
	}
	c.objects[k] = next
	if k.kind == kindMachineConfig {
		config, err := asMachineConfig(next)
		if err != nil {
			c.t.Fatal(err)
		}
		c.configs[k.name] = config
	}
}

func sameJSON(a, b any) bool {
	one, err := json.Marshal(a)
	if err != nil {
		return false
	}
	other, err := json.Marshal(b)
	return err == nil && string(one) == string(other)
}

func (c *cluster) remove(object *unstructured.Unstructured) {
	k := key{object.GetKind(), object.GetName()}
	switch k.kind {
	case kindPool:
		for name := range c.configs {
			if strings.HasPrefix(name, "rendered-"+k.name+"-") {
				delete(c.configs, name)
			}
		}
		delete(c.pools, k.name)
	case kindKubeletConfig:
		// The machine-config operator's finalizer lets it delete what it has made.
		now := metav1.Now()
		c.objects[k].SetDeletionTimestamp(&now)
	default:
		delete(c.objects, k)
		delete(c.configs, k.name)
	}
}

// kubelets plays the machine-config operator's controller of KubeletConfigs for one object.
func (c *cluster) kubelet(k key) {
	object := c.objects[k]
	if object == nil {
		return
	}
	name, _ := poolOfObject(k)
	generated := "99-" + name + "-generated-kubelet"
	if object.GetDeletionTimestamp() != nil {
		delete(c.configs, generated)
		delete(c.objects, k)
		return
	}
	if c.pools[name] == nil {
		return
	}
	text, err := json.Marshal(object.Object["spec"])
	if err != nil {
		c.t.Fatal(err)
	}
	config := &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{
		Name: generated, Labels: map[string]string{mcfgv1.MachineConfigRoleLabelKey: name},
		OwnerReferences: []metav1.OwnerReference{{UID: object.GetUID()}},
	}}
	config.Spec.Config.Raw = fileIgnition("/etc/kubernetes/kubelet.conf", fmt.Sprintf("%x", sha256.Sum256(text)))
	c.configs[generated] = config
	object.Object["status"] = map[string]any{
		"observedGeneration": object.GetGeneration(),
		"conditions":         []any{map[string]any{"type": "Success", "status": "True", "message": "Success"}},
	}
}

func fileIgnition(path, content string) []byte {
	return fmt.Appendf(nil, `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":%q,"mode":420,"contents":{"source":"data:,%s"}}]}}`, path, content)
}

// render plays the machine-config operator's render controller for one machine config pool. Unlike the real one, it does not
// wait for KubeletConfigs, so that every half-written state is rendered, too.
func (c *cluster) render(name string) {
	p := c.pools[name]
	if p == nil {
		return
	}
	var merged mcfgv1.MachineConfig
	var files []ignitionFile
	var sources []corev1.ObjectReference
	for _, source := range slices.Sorted(maps.Keys(c.configs)) {
		config := c.configs[source]
		if strings.HasPrefix(source, "rendered-") || !selects(p.Spec.MachineConfigSelector, config.Labels) {
			continue
		}
		parsed, err := parseIgnition(config)
		if err != nil {
			c.t.Fatal(err)
		}
		for _, file := range parsed.Storage.Files {
			files = append(slices.DeleteFunc(files, func(f ignitionFile) bool { return f.Path == file.Path }), file)
		}
		merged.Spec.KernelArguments = append(merged.Spec.KernelArguments, config.Spec.KernelArguments...)
		sources = append(sources, corev1.ObjectReference{Name: source})
	}
	raw, err := json.Marshal(map[string]any{"storage": map[string]any{"files": files}})
	if err != nil {
		c.t.Fatal(err)
	}
	merged.Spec.Config.Raw = raw
	merged.Name = fmt.Sprintf("rendered-%s-%x", name, sha256.Sum256(fmt.Append(raw, merged.Spec.KernelArguments)))
	c.configs[merged.Name] = &merged
	p.Spec.Configuration.Name = merged.Name
	p.Spec.Configuration.Source = sources
	c.status(name)
}

// reboot plays the node controller and the daemon for one node: it takes what its machine config pool is rendered to.
func (c *cluster) reboot(name string) {
	node := c.nodes[name]
	p := c.pools[c.primary(node)]
	if p == nil || p.Spec.Paused || p.Spec.Configuration.Name == "" || node.Annotations[annotationCurrentConfig] == p.Spec.Configuration.Name {
		return
	}
	if current := node.Annotations[annotationCurrentConfig]; current != "" && c.configs[current] == nil {
		c.t.Fatalf("node %s cannot leave %s, because that configuration was deleted", name, current)
	}
	if c.contentOf(node.Annotations[annotationCurrentConfig]) != c.contentOf(p.Spec.Configuration.Name) {
		c.reboots[name]++
	}
	node.Annotations[annotationCurrentConfig] = p.Spec.Configuration.Name
	node.Annotations[annotationDesiredConfig] = p.Spec.Configuration.Name
	node.ResourceVersion = c.next()
}

// contentOf is what a rendered configuration holds, whatever machine config pool it was rendered for.
func (c *cluster) contentOf(name string) string {
	if config := c.configs[name]; config != nil {
		return fmt.Sprint(config.Spec.KernelArguments) + string(config.Spec.Config.Raw)
	}
	return ""
}

func (c *cluster) primary(node *corev1.Node) string {
	w := &world{pools: c.pools}
	if custom := w.customPools(node.Labels); len(custom) > 1 {
		c.t.Fatalf("node %s is in the machine config pools %v", node.Name, custom)
	}
	return w.primaryPool(node.Labels)
}

// status plays the machine-config operator's status of one machine config pool.
func (c *cluster) status(name string) {
	p := c.pools[name]
	if p == nil {
		return
	}
	p.Status.MachineCount, p.Status.UpdatedMachineCount = 0, 0
	for _, node := range c.nodes {
		if c.primary(node) != name {
			continue
		}
		p.Status.MachineCount++
		if node.Annotations[annotationCurrentConfig] == p.Spec.Configuration.Name {
			p.Status.UpdatedMachineCount++
		}
	}
	if p.Status.MachineCount == p.Status.UpdatedMachineCount {
		p.Status.Configuration = p.Spec.Configuration
	}
}

// actors are everything that the machine-config operator may do next.
func (c *cluster) actors() []func() {
	var acts []func()
	for _, name := range sortedKeys(c.pools) {
		acts = append(acts, func() { c.render(name) }, func() { c.status(name) })
	}
	for k := range c.objects {
		if k.kind == kindKubeletConfig {
			acts = append(acts, func() { c.kubelet(k) })
		}
	}
	for _, name := range sortedKeys(c.nodes) {
		acts = append(acts, func() { c.reboot(name) })
	}
	return acts
}

// settle lets the machine-config operator do everything that there is to do.
func (c *cluster) settle() {
	for range 2 {
		for k := range maps.Clone(c.objects) {
			if k.kind == kindKubeletConfig {
				c.kubelet(k)
			}
		}
		for _, name := range sortedKeys(c.pools) {
			c.render(name)
		}
		for _, name := range sortedKeys(c.nodes) {
			c.reboot(name)
		}
		for _, name := range sortedKeys(c.pools) {
			c.status(name)
		}
	}
}

// renderText stands in for the real renderer: the first character of a plan's text stands for the topology,
// the first two for the kubelet's settings, and all of it for the kernel arguments.
func renderText(in manifests.Input) ([]*unstructured.Unstructured, error) {
	text := in.Plan.KernelArguments[0].Text
	labels := map[string]any{v1alpha1.LabelProfile: in.Plan.Profile, v1alpha1.LabelManagedBy: v1alpha1.ProjectName}
	object := func(kind, name string, labels, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "spec": spec,
			"metadata": map[string]any{"name": name, "labels": labels},
		}}
	}
	ignition := map[string]any{}
	if err := json.Unmarshal(fileIgnition("/etc/lowlatency", text), &ignition); err != nil {
		return nil, err
	}
	name := in.MachineConfigPool.Name
	objects := []*unstructured.Unstructured{
		object("ConfigMap", "plan", labels, nil),
		object(kindMachineConfig, manifests.MachineConfigName(name),
			map[string]any{
				v1alpha1.LabelProfile: in.Plan.Profile, v1alpha1.LabelManagedBy: v1alpha1.ProjectName, mcfgv1.MachineConfigRoleLabelKey: name,
			},
			map[string]any{"kernelArguments": []any{text}, "config": ignition}),
		object(kindKubeletConfig, manifests.KubeletConfigName(name), labels, map[string]any{"kubeletConfig": map[string]any{"plan": text[:2]}}),
		object(kindTuned, manifests.TunedName(name), labels, map[string]any{"plan": text}),
	}
	if in.MachineConfigPool.Management == v1alpha1.PoolsExisting {
		return objects, nil
	}
	managed := pool(name, map[string]string{v1alpha1.LabelPool: name})
	selector, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&managed.Spec)
	if err != nil {
		return nil, err
	}
	delete(selector, "paused")
	delete(selector, "configuration")
	return slices.Concat([]*unstructured.Unstructured{object(kindPool, name, labels, selector)}, objects), nil
}

// plannedNodes are the plans of the nodes: the name of the plan of each.
type plannedNodes map[string]string

// intent is what a profile wants of the fleet.
func (f plannedNodes) intent(c *cluster) *fleet.Intent {
	intent := &fleet.Intent{
		Profile: &v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: "trading"}},
		Nodes:   c.nodeCopies(), Selected: sortedKeys(f), Held: map[string]string{},
	}
	for _, name := range sortedKeys(intent.Nodes) {
		if _, selected := f[name]; !selected && intent.Nodes[name].Labels[v1alpha1.LabelProfile] == "trading" {
			intent.Leaving = append(intent.Leaving, name)
		}
	}
	for _, text := range slices.Sorted(maps.Values(f)) {
		if slices.ContainsFunc(intent.Shapes, func(s fleet.Shape) bool { return s.Plan.KernelArguments[0].Text == text }) {
			continue
		}
		var nodes []string
		for _, name := range sortedKeys(f) {
			if f[name] == text {
				nodes = append(nodes, name)
			}
		}
		intent.Shapes = append(intent.Shapes, fleet.Shape{
			Hash: fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16], Signature: fmt.Sprintf("%x", sha256.Sum256([]byte(text[:1])))[:16],
			Plan:  &plan.NodePlan{Profile: "trading", KernelArguments: []plan.Argument{{Text: text}}},
			Nodes: nodes,
		})
	}
	slices.SortFunc(intent.Shapes, func(a, b fleet.Shape) int { return strings.Compare(a.Hash, b.Hash) })
	return intent
}

// look is what the platform knows, which may be old by the time it acts.
type look struct {
	w      *world
	intent *fleet.Intent
}

func (c *cluster) look(f plannedNodes) look { return look{c.world(), f.intent(c)} }

// act lets the platform decide on a look and take the first steps of the decision.
func (c *cluster) act(l look, limit int) decision {
	targets, conflicts := aim(l.w, l.intent, "operator", renderText)
	c.evidence(l.w, targets)
	d := decideRoll(l.w, l.intent, targets, conflicts)
	d.outcome.Turned = c.turned(l, targets)
	for i, s := range d.steps {
		if i >= limit || !c.take(s) {
			break
		}
	}
	return d
}

// Get is the API server as the platform asks it for MachineConfigs.
func (c *cluster) Get(_ context.Context, id client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	config, ok := into.(*mcfgv1.MachineConfig)
	if found := c.configs[id.Name]; ok && found != nil {
		found.DeepCopyInto(config)
		return nil
	}
	return apierrors.NewNotFound(mcfgv1.Resource("machineconfigs"), id.Name)
}

// List implements client.Reader.
func (c *cluster) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("the platform lists nothing from the API server itself")
}

// turned finds the nodes whose turn has come on a look, which may be old. None was told less than its whole plan.
func (c *cluster) turned(l look, targets []*target) map[string]bool {
	platform := &Platform{live: c}
	l.intent.Pending = map[string]bool{}
	for name := range l.intent.Nodes {
		l.intent.Pending[name] = true
	}
	turned, err := platform.gatherTurns(c.t.Context(), l.w, l.intent, targets)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, t := range targets {
		want := t.shape.Plan.KernelArguments[0].Text
		for _, node := range t.nodes {
			told := c.configs[node.Annotations[annotationDesiredConfig]]
			if turned[node.Name] && (told == nil || !slices.Equal(told.Spec.KernelArguments, []string{want})) {
				c.t.Errorf("the turn of node %s for plan %s has come, but it was told %v", node.Name, want, told)
			}
		}
	}
	return turned
}

// finish lets both sides work until nothing is left to do.
func (c *cluster) finish(f plannedNodes) decision {
	var d decision
	for quiet := 0; quiet < 2; {
		before := c.version
		d = c.act(c.look(f), 1000)
		c.settle()
		if quiet++; len(d.steps) > 0 || c.version != before {
			quiet = 0
		}
		if c.turns++; c.turns > 1000 {
			c.t.Fatal("the platform does not come to rest")
		}
	}
	return d
}

// expectInForce checks that every node has exactly what its plan says.
func (c *cluster) expectInForce(f plannedNodes, d decision) {
	c.t.Helper()
	for _, p := range d.outcome.Groups {
		if p.Phase != fleet.PhaseInForce {
			c.t.Errorf("machine config pool %s is %s: %s", p.Name, p.Phase, p.Message)
		}
	}
	if len(d.steps) > 0 {
		c.t.Errorf("%d steps are left, the first is %s", len(d.steps), d.steps[0])
	}
	for name, text := range f {
		if !d.outcome.Turned[name] {
			c.t.Errorf("the turn of node %s has not come", name)
		}
		config := c.configs[c.nodes[name].Annotations[annotationCurrentConfig]]
		if config == nil || !slices.Equal(config.Spec.KernelArguments, []string{text}) {
			c.t.Errorf("node %s runs %v, want %s", name, config, text)
		}
	}
}

// TestOneRebootPerChange runs the platform and the machine-config operator against each other in thousands of
// orders: the operator is stopped between any two steps, and decides on what the cluster was a while ago.
func TestOneRebootPerChange(t *testing.T) {
	fleets := map[string][]plannedNodes{
		"a new fleet":                  {{"n1": "a1", "n2": "a1", "n3": "b1"}},
		"a changed profile":            {{"n1": "a1", "n2": "a1", "n3": "b1"}, {"n1": "a2", "n2": "a2", "n3": "b2"}},
		"a shape that splits":          {{"n1": "a1", "n2": "a1", "n3": "a1"}, {"n1": "a2", "n2": "a2", "n3": "c2"}},
		"shapes that merge":            {{"n1": "a1", "n2": "a1", "n3": "b1"}, {"n1": "a2", "n2": "a2", "n3": "a2"}},
		"nodes that swap":              {{"n1": "a1", "n2": "a1", "n3": "b1", "n4": "b1"}, {"n1": "a2", "n2": "b2", "n3": "a2", "n4": "b2"}},
		"only kernel arguments change": {{"n1": "a1", "n2": "a1"}, {"n1": "a1+", "n2": "a1+"}},
		"a node that leaves":           {{"n1": "a1", "n2": "a1"}, {"n1": "a1"}},
		"a node that joins":            {{"n1": "a1"}, {"n1": "a1", "n2": "a1"}},
		"one shape disappears":         {{"n1": "a1", "n2": "b1"}, {"n1": "a1"}},
	}
	for name, sequence := range fleets {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(seeds()) {
				runFleets(t, seed, sequence)
				if t.Failed() {
					t.Fatalf("with seed %d", seed)
				}
			}
		})
	}
}

// seeds is how many orders each case is tried in.
func seeds() int {
	if testing.Short() {
		return 10
	}
	return 40
}

func runFleets(t *testing.T, seed uint64, sequence []plannedNodes) {
	random := rand.New(rand.NewPCG(seed, seed))
	c := newCluster(t, "n1", "n2", "n3", "n4")
	for _, f := range sequence {
		for name := range c.nodes {
			if _, selected := f[name]; !selected {
				delete(c.nodes[name].Labels, "role")
			}
		}
		clear(c.reboots)
		old := c.look(f)
		for range 60 {
			switch random.IntN(4) {
			case 0:
				old = c.look(f)
			case 1:
				c.act(old, 1+random.IntN(6))
				old = c.look(f)
			default:
				acts := c.actors()
				acts[random.IntN(len(acts))]()
			}
		}
		c.expectInForce(f, c.finish(f))
		for name, count := range c.reboots {
			if count > 1 {
				t.Errorf("node %s rebooted %d times for one change", name, count)
			}
		}
	}
}

// TestReturnInAnyOrder deletes a profile while the machine-config operator works in any order, and the operator
// is stopped between any two steps.
func TestReturnInAnyOrder(t *testing.T) {
	for seed := range uint64(seeds()) {
		random := rand.New(rand.NewPCG(seed, seed))
		c := newCluster(t, "n1", "n2", "n3", "n4")
		c.finish(plannedNodes{"n1": "a1", "n2": "a1", "n3": "b1"})
		clear(c.reboots)
		for range 60 {
			if random.IntN(4) == 0 {
				c.returnSome(random.IntN(6))
				continue
			}
			acts := c.actors()
			acts[random.IntN(len(acts))]()
		}
		for c.turns = 0; !c.returnSome(1000).Done(); c.settle() {
			if c.turns++; c.turns > 100 {
				t.Fatalf("with seed %d the deletion does not end", seed)
			}
		}
		for name, count := range c.reboots {
			if count != 1 {
				t.Errorf("with seed %d node %s rebooted %d times, want once", seed, name, count)
			}
		}
		if len(c.reboots) != 3 || len(c.objects) > 0 || len(c.pools) != 2 {
			t.Fatalf("with seed %d these rebooted: %v, and these are left: %v %v", seed, c.reboots, objectNames(c.objects), sortedKeys(c.pools))
		}
	}
}

// returnSome lets the platform decide about the deletion and take the first steps.
func (c *cluster) returnSome(limit int) fleet.Remainder {
	l := c.look(plannedNodes{})
	l.intent.Selected = nil
	c.evidence(l.w, nil)
	steps, rest := decideReturn(l.w, l.intent)
	for i, s := range steps {
		if i >= limit || !c.take(s) {
			break
		}
	}
	return rest
}
