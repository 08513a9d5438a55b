// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package mistakes

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/controllers"
)

// mistake is one that has a name, with what it may cost.
type mistake struct {
	name string
	make func(*world) error
	// correct is what the user does then, before everything is put back to what it was; nil for nothing else.
	correct func(*world) error
	// reboots are how often each node may reboot for the mistake itself, and for the correction.
	reboots, reboots2 int
	// mayReboot and mayTaint are nodes for which reboots and taints are right, because the mistake is about them.
	mayReboot, mayTaint []string
	// noTaint says that no node gets the taint, not even for a check that fails.
	noTaint bool
	// brief tells that it is made by each run of all tests, and not only by "make mistakes".
	brief bool
	// says is what the status must say once all is at rest; nil for nothing in particular.
	says func(*world, *situation) string
}

// cost is what a mistake and its correction have cost.
type cost struct {
	mistake, correction *account
	// stuck is what does not come back after the correction; silent is what the status does not say.
	stuck, silent string
	lies          []string
}

func mistakes() []mistake {
	return append([]mistake{
		{brief: true, name: "second pool claims the same NICs", says: poolsDiffer, make: func(w *world) error {
			return w.create(onloadPool("a-newcomer", "lowlatency.dev/newcomer"))
		}},
		{name: "second pool with the same resource name", says: poolsDiffer, make: func(w *world) error {
			pool := onloadPool("a-newcomer", "lowlatency.dev/x2")
			pool.Spec.NICs = []v1alpha1.NICSelector{{Vendor: "8086"}, {Vendor: "15b3"}}
			pool.Spec.Hugepages = nil
			return w.create(pool)
		}},
		{brief: true, name: "spec that the planner refuses", says: profileNotReady, make: func(w *world) error {
			return w.editProfile(func(s *v1alpha1.LowLatencyNodeProfileSpec) {
				s.CPUs.Derived = &v1alpha1.DerivedCPUs{HousekeepingCores: 64}
			})
		}},
		{name: "change while the rollout is paused", make: func(w *world) error {
			return w.editProfile(func(s *v1alpha1.LowLatencyNodeProfileSpec) {
				s.Rollout.State = v1alpha1.RolloutPaused
				s.Memory.Hugepages[0].Count = 4
			})
		}},
		{name: "change while an admin has paused the pools", make: func(w *world) error {
			if err := w.pauseMachineConfigPools(true); err != nil {
				return err
			}
			return w.editProfile(func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Memory.Hugepages[0].Count = 4 })
		}},
		{brief: true, name: "other partition while an admin has paused the pools", noTaint: true, make: partitionUnderPause, correct: undoPartition},
		{brief: true, name: "gate off, and on again", noTaint: true, make: func(w *world) error {
			return w.editProfile(func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Verification.Gate = v1alpha1.GateReportOnly })
		}},
		{name: "a check is waived, and not any more", noTaint: true, make: func(w *world) error {
			return w.editProfile(func(s *v1alpha1.LowLatencyNodeProfileSpec) {
				s.Verification.WaivedChecks = []v1alpha1.WaivedCheck{{Check: "cpu.governor", Reason: "the firmware decides"}}
			})
		}},
		{name: "change, one node after the other", reboots: 1, reboots2: 1, make: func(w *world) error {
			return w.editProfile(func(s *v1alpha1.LowLatencyNodeProfileSpec) {
				s.Pools.MaximumUnavailableNodes = 1
				s.Memory.Hugepages[0].Count = 4
			})
		}},
		{name: "change that only takes something away, one node after the other", reboots: 1, reboots2: 1, make: func(w *world) error {
			return w.editProfile(func(s *v1alpha1.LowLatencyNodeProfileSpec) {
				s.Pools.MaximumUnavailableNodes = 1
				s.Kernel.AdditionalArguments = nil
			})
		}},
		{name: "selector that matches nothing", says: profileNotReady, make: func(w *world) error {
			return w.editProfile(func(s *v1alpha1.LowLatencyNodeProfileSpec) {
				s.NodeSelector.MatchLabels = v1alpha1.Labels{"node-role.kubernetes.io/tradnig": ""}
			})
		}},
		{name: "selector that matches one node of three", says: profileNotReady, make: func(w *world) error {
			return w.editProfile(func(s *v1alpha1.LowLatencyNodeProfileSpec) {
				s.NodeSelector.MatchLabels = v1alpha1.Labels{"kubernetes.io/hostname": "xeon-1"}
			})
		}},
		{brief: true, name: "exported YAML with the finalizer", make: applyExported, correct: deleteExported},
		{
			name: "labels of a pool put on a foreign node", make: labelForeign,
			mayReboot: []string{"spare"}, mayTaint: []string{"spare"}, says: foreignIsFree, correct: unlabelForeign,
		},
		{name: "foreign field in the KubeletConfig", reboots: 1, reboots2: 1, make: setMaxPods, says: maxPodsIsKnown, correct: removeMaxPods},
		{name: "dead agent", mayTaint: []string{"xeon-1"}, make: killAgent, says: deadIsNotReady},
	}, deletions()...)
}

// poolsDiffer expects that the newcomer is not Ready and that both speak of the conflict.
func poolsDiffer(_ *world, s *situation) string {
	for i := range s.pools.Items {
		p := &s.pools.Items[i]
		text := conditionsText(p.Status.Conditions)
		switch {
		case p.Name == poolName && !isReady(p.Status.Conditions, p.Generation):
			return "the pool that works is not Ready: " + text
		case p.Name != poolName && isReady(p.Status.Conditions, p.Generation):
			return "the newcomer is Ready: " + text
		}
		other := poolName
		if p.Name == poolName {
			other = "a-newcomer"
		}
		if text += findingsText(p); !strings.Contains(text, other) {
			return "pool " + p.Name + " does not speak of the other one: " + text
		}
	}
	return ""
}

func findingsText(pool *v1alpha1.BypassNICPool) string {
	var b strings.Builder
	for i := range pool.Status.Findings {
		b.WriteString(" " + pool.Status.Findings[i].Message)
	}
	return b.String()
}

func profileNotReady(_ *world, s *situation) string {
	for i := range s.profiles.Items {
		if p := &s.profiles.Items[i]; isReady(p.Status.Conditions, p.Generation) {
			return "the profile is Ready: " + conditionsText(p.Status.Conditions)
		}
	}
	return ""
}

// applyExported creates a profile from a YAML that was exported with everything in it.
func applyExported(w *world) error {
	profile := baseProfile()
	profile.Name, profile.Finalizers = "exported", []string{v1alpha1.Finalizer}
	profile.Labels = map[string]string{"exported": "yes"}
	profile.Spec.NodeSelector.MatchLabels = v1alpha1.Labels{"role": "nobody"}
	return w.Client.Create(w.ctx, profile, client.FieldOwner("kubectl-client-side-apply"))
}

// deleteExported deletes it and waits until it has gone.
func deleteExported(w *world) error {
	profile := &v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: "exported"}}
	if err := w.remove(profile); err != nil {
		return err
	}
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		if err := w.Client.Get(w.ctx, client.ObjectKeyFromObject(profile), profile); apierrors.IsNotFound(err) {
			return nil
		}
		time.Sleep(pace)
	}
	// As an administrator would in the end.
	profile.Finalizers = nil
	return errors.Join(errors.New("stuck: profile exported is Terminating for ever"), w.Client.Update(w.ctx, profile))
}

// labelForeign does what a restored backup does: a node gets the labels of a machine config pool of the operator.
func labelForeign(w *world) error {
	var node corev1.Node
	if err := w.Client.Get(w.ctx, client.ObjectKey{Name: "xeon-1"}, &node); err != nil {
		return err
	}
	pool, profile := node.Labels[v1alpha1.LabelPool], profileName
	return w.label("spare", map[string]*string{v1alpha1.LabelPool: &pool, v1alpha1.LabelProfile: &profile})
}

func unlabelForeign(w *world) error {
	return w.label("spare", map[string]*string{v1alpha1.LabelPool: nil, v1alpha1.LabelProfile: nil})
}

func foreignIsFree(_ *world, s *situation) string {
	for i := range s.nodes.Items {
		node := &s.nodes.Items[i]
		if node.Name == "spare" && (node.Labels[v1alpha1.LabelPool] != "" || strings.Contains(node.Annotations[currentConfig], profileName)) {
			return "the foreign node is still in the pool, with " + node.Annotations[currentConfig]
		}
	}
	return ""
}

// editKubeletConfigs changes spec.kubeletConfig of every KubeletConfig.
func editKubeletConfigs(w *world, change func(map[string]any)) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(mcfgv1.GroupVersion.WithKind("KubeletConfigList"))
	if err := w.Client.List(w.ctx, list); err != nil {
		return err
	}
	for i := range list.Items {
		object := &list.Items[i]
		before := object.DeepCopy()
		spec, _, err := unstructured.NestedMap(object.Object, "spec", "kubeletConfig")
		if err != nil {
			return err
		}
		change(spec)
		if err := unstructured.SetNestedMap(object.Object, spec, "spec", "kubeletConfig"); err != nil {
			return err
		}
		if err := w.Client.Patch(w.ctx, object, client.MergeFrom(before), client.FieldOwner("kubectl-edit")); err != nil {
			return err
		}
	}
	return nil
}

func setMaxPods(w *world) error {
	return editKubeletConfigs(w, func(spec map[string]any) { spec["maxPods"] = int64(foreignMaxPods) })
}

func removeMaxPods(w *world) error {
	return editKubeletConfigs(w, func(spec map[string]any) { delete(spec, "maxPods") })
}

// maxPodsIsKnown expects that the field is reverted, or that the profile is not Ready.
func maxPodsIsKnown(w *world, s *situation) string {
	for i := range s.profiles.Items {
		p := &s.profiles.Items[i]
		if lack := w.lackOfProfile(p, everyNode); lack != "" && isReady(p.Status.Conditions, p.Generation) {
			return lack
		}
	}
	return ""
}

// killAgent stops the agent of a node, and lets as much time pass in its Lease as it takes to be stale.
func killAgent(w *world) error {
	if err := w.Fleet.StopAgent("xeon-1"); err != nil {
		return err
	}
	w.dead["xeon-1"] = true
	time.Sleep(2 * time.Second)
	lease := &coordinationv1.Lease{}
	if err := w.Client.Get(w.ctx, client.ObjectKey{Namespace: controllers.DefaultAgentNamespace, Name: "xeon-1"}, lease); err != nil {
		return err
	}
	before := lease.DeepCopy()
	// What it said last is older than the moment from which on it counts as dead.
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second)}
	return w.Client.Patch(w.ctx, lease, client.MergeFrom(before))
}

// deadIsNotReady looks at what "kubectl get lln" prints.
func deadIsNotReady(_ *world, s *situation) string {
	for i := range s.reports.Items {
		r := &s.reports.Items[i]
		if r.Name == "xeon-1" && meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionReady) {
			return "LowLatencyNode xeon-1 says READY True"
		}
	}
	return profileNotReady(nil, s)
}

// partitionUnderPause changes what nodes boot with and what takes effect on a running node, both of which have to wait.
func partitionUnderPause(w *world) error {
	if err := w.pauseMachineConfigPools(true); err != nil {
		return err
	}
	return w.editProfile(func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		s.CPUs.Derived = &v1alpha1.DerivedCPUs{HousekeepingCores: 3}
	})
}

// undoPartition leaves the machine config pools paused until the former content is written again.
func undoPartition(w *world) error {
	if err := w.editProfile(func(s *v1alpha1.LowLatencyNodeProfileSpec) { *s = baseProfile().Spec }); err != nil {
		return err
	}
	return w.awaitRest(restTime, *patience)
}

// try makes a mistake and corrects it.
func (w *world) try(m *mistake) (*cost, error) {
	w.observer.begin()
	if err := m.make(w); err != nil {
		return nil, fmt.Errorf("making the mistake: %w", err)
	}
	c := &cost{}
	s, err := w.awaitWord(m, c)
	if err != nil {
		return nil, err
	}
	c.lies = w.liesNow(s)
	c.mistake = w.observer.account()
	if m.correct != nil {
		if err := m.correct(w); err != nil {
			c.stuck = err.Error()
		}
	}
	if err := w.restore(); err != nil {
		return nil, fmt.Errorf("correcting the mistake: %w", err)
	}
	if err := w.awaitGreen(*patience); err != nil {
		c.stuck = err.Error()
	}
	c.correction = w.observer.account()
	c.lies = append(append(c.lies, c.mistake.lies...), c.correction.lies...)
	return c, w.collectRendered()
}

// awaitWord waits until the status says what it must and the cluster is at rest. On a busy machine the operator may take longer
// than a rest to notice a mistake.
func (w *world) awaitWord(m *mistake, c *cost) (*situation, error) {
	deadline := time.Now().Add(*patience)
	for {
		if err := w.awaitRest(restTime, *patience); err != nil {
			return nil, err
		}
		s, err := w.look()
		if err != nil || m.says == nil {
			return s, err
		}
		c.silent = m.says(w, s)
		if c.silent == "" || time.Now().After(deadline) {
			return s, nil
		}
	}
}

// restTime is for how long nothing happens before the cluster counts as being at rest.
const restTime = 2 * time.Second

// liesNow are the profiles and pools that say Ready for what the hosts do not show.
func (w *world) liesNow(s *situation) []string {
	var lies []string
	for i := range s.profiles.Items {
		if lie := w.lieOf(&s.profiles.Items[i], everyNode); lie != "" {
			lies = append(lies, lie)
		}
	}
	for i := range s.pools.Items {
		if lie := w.lieOf(&s.pools.Items[i], everyNode); lie != "" {
			lies = append(lies, lie)
		}
	}
	return lies
}

// complaints are what a mistake has cost and must not.
func (m *mistake) complaints(c *cost) []string {
	complaints := m.rebootsOf(c)
	for _, t := range slices.Concat(c.mistake.taints, c.correction.taints) {
		if (t.doubt != "" || m.noTaint) && !slices.Contains(m.mayTaint, t.node) {
			complaints = append(complaints, fmt.Sprintf("taint on %s: %s (%s)", t.node, t.doubt, t.why))
		}
	}
	if m.reboots == 0 {
		for _, nic := range slices.Sorted(maps.Keys(c.mistake.lost)) {
			complaints = append(complaints, "healthy NIC lost: "+nic)
		}
	}
	for what, text := range map[string]string{"stuck": c.stuck, "status": c.silent} {
		if text != "" {
			complaints = append(complaints, what+": "+text)
		}
	}
	for _, lie := range c.lies {
		complaints = append(complaints, "false green: "+lie)
	}
	slices.Sort(complaints)
	return complaints
}

func (m *mistake) rebootsOf(c *cost) []string {
	var complaints []string
	count := func(when string, counts map[string]int, allowed int) {
		for _, node := range slices.Sorted(maps.Keys(counts)) {
			if n := counts[node]; n > allowed && !slices.Contains(m.mayReboot, node) {
				complaints = append(complaints, fmt.Sprintf("%s rebooted %d times %s, %d allowed", node, n, when, allowed))
			}
		}
	}
	count("for the mistake", c.mistake.reboots, m.reboots)
	count("for the correction", c.correction.reboots, m.reboots2)
	return complaints
}

// isChosen reports whether the mistake is to be made in this run.
func (m *mistake) isChosen() bool {
	if *onlyFlag != "" {
		return regexp.MustCompile(*onlyFlag).MatchString(m.name)
	}
	return m.brief || *allFlag
}

func TestNamedMistakes(t *testing.T) {
	a := &arena{t: t}
	table := newNamedTable()
	for _, m := range mistakes() {
		if !m.isChosen() {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			c, err := a.enter(t).try(&m)
			if err != nil {
				a.giveUp()
				t.Fatal(err)
			}
			if c.stuck != "" {
				a.giveUp()
			}
			found := m.complaints(c)
			table.add(&m, c, found)
			complain(t, m.name, found)
		})
	}
	table.print(t)
}
