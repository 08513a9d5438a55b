// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package mistakes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// What hosts show of a spec is read here from their trees, by nothing of what the operator or its agents use.

// everyNode is to look at all nodes that a profile or pool selects now.
func everyNode(v1alpha1.NodeSelector, *corev1.Node) bool { return true }

// lieOf is what is wrong with a profile or pool that says Ready for its current spec; "" when nothing is, or when it does
// not say so. It speaks for those of the nodes which it selects that it was about, when it was written.
func (w *world) lieOf(object client.Object, about func(v1alpha1.NodeSelector, *corev1.Node) bool) string {
	switch object := object.(type) {
	case *v1alpha1.LowLatencyNodeProfile:
		if !isReady(object.Status.Conditions, object.Generation) || !object.DeletionTimestamp.IsZero() {
			return ""
		}
		return w.lackOfProfile(object, about)
	case *v1alpha1.BypassNICPool:
		if !isReady(object.Status.Conditions, object.Generation) || !object.DeletionTimestamp.IsZero() {
			return ""
		}
		return w.lackOfPool(object, about)
	}
	return ""
}

// isCurrent reports whether the object has the generation now that it had when the watch told of it.
func (w *world) isCurrent(object client.Object) bool {
	now, ok := object.DeepCopyObject().(client.Object)
	if !ok || w.Client.Get(w.ctx, client.ObjectKeyFromObject(object), now) != nil {
		return false
	}
	return now.GetGeneration() == object.GetGeneration() && now.GetUID() == object.GetUID()
}

// lackOfProfile is what a host lacks of the profile that selects its node; "" when nothing.
func (w *world) lackOfProfile(profile *v1alpha1.LowLatencyNodeProfile, about func(v1alpha1.NodeSelector, *corev1.Node) bool) string {
	nodes, err := w.selected(profile.Spec.NodeSelector)
	if err != nil {
		return ""
	}
	for i := range nodes {
		if !about(profile.Spec.NodeSelector, &nodes[i]) {
			continue
		}
		lack, err := w.lackOfHost(nodes[i].Name, &profile.Spec)
		if err == nil && lack != "" {
			return fmt.Sprintf("profile %s is Ready for generation %d, but %s", profile.Name, profile.Generation, lack)
		}
	}
	return ""
}

// foreignMaxPods is a number that nothing but a mistake puts into a kubelet's configuration.
const foreignMaxPods = 398

func (w *world) lackOfHost(node string, spec *v1alpha1.LowLatencyNodeProfileSpec) (string, error) {
	root, err := w.Fleet.Root(node)
	if err != nil {
		return "", err
	}
	line, err := os.ReadFile(filepath.Join(root, "proc/cmdline"))
	if err != nil {
		return "", err
	}
	for _, argument := range spec.Kernel.AdditionalArguments {
		if !slices.Contains(strings.Fields(string(line)), string(argument)) {
			return fmt.Sprintf("node %s has booted without %s", node, argument), nil
		}
	}
	for _, wanted := range spec.Memory.Hugepages {
		found, err := hugepages(root, string(wanted.Size), "*")
		if err != nil {
			return "", err
		}
		if found != int(wanted.Count) {
			return fmt.Sprintf("node %s has %d hugepages of %s, not %d", node, found, wanted.Size, wanted.Count), nil
		}
	}
	kubelet, err := os.ReadFile(filepath.Join(root, "etc/kubernetes/kubelet.conf"))
	if err == nil && strings.Contains(string(kubelet), strconv.Itoa(foreignMaxPods)) {
		return fmt.Sprintf("the kubelet of node %s has a maxPods that the profile does not ask for", node), nil
	}
	return "", nil
}

// lackOfPool is what hosts lack of the hugepages of their NICs.
func (w *world) lackOfPool(pool *v1alpha1.BypassNICPool, about func(v1alpha1.NodeSelector, *corev1.Node) bool) string {
	nodes, err := w.selected(pool.Spec.NodeSelector)
	if err != nil {
		return ""
	}
	for i := range nodes {
		if !about(pool.Spec.NodeSelector, &nodes[i]) {
			continue
		}
		lack, err := w.lackOfNICs(nodes[i].Name, pool)
		if err == nil && lack != "" {
			return fmt.Sprintf("pool %s is Ready for generation %d, but %s", pool.Name, pool.Generation, lack)
		}
	}
	return ""
}

func (w *world) lackOfNICs(node string, pool *v1alpha1.BypassNICPool) (string, error) {
	root, err := w.Fleet.Root(node)
	if err != nil {
		return "", err
	}
	var report v1alpha1.LowLatencyNode
	if err := w.Client.Get(w.ctx, client.ObjectKey{Name: node}, &report); err != nil {
		return "", err
	}
	nics := map[string]int{}
	for i := range report.Status.BypassNICs {
		nic := &report.Status.BypassNICs[i]
		if nic.Pool == pool.Name && nic.Health == v1alpha1.NICHealthy && nic.NUMANode != nil {
			nics[strconv.Itoa(int(*nic.NUMANode))]++
		}
	}
	for numa, count := range nics {
		for _, wanted := range pool.Spec.Hugepages {
			found, err := hugepages(root, string(wanted.Size), numa)
			if err != nil {
				return "", err
			}
			if needed := count * int(wanted.CountPerNIC); found < needed {
				return fmt.Sprintf("NUMA node %s of node %s has %d hugepages of %s, and its NICs need %d", numa, node, found, wanted.Size, needed), nil
			}
		}
	}
	return "", nil
}

// hugepages counts the hugepages of a size on a NUMA node, "*" for all, as the kernel of the host shows them.
func hugepages(root, size, numa string) (int, error) {
	kilobytes := map[string]string{"1Gi": "1048576", "2Mi": "2048"}[size]
	files, err := filepath.Glob(filepath.Join(root, "sys/devices/system/node/node"+numa+"/hugepages/hugepages-"+kilobytes+"kB/nr_hugepages"))
	if err != nil {
		return 0, err
	}
	total := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		count, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return 0, err
		}
		total += count
	}
	return total, nil
}

// selected are the nodes with all labels of a selector.
func (w *world) selected(selector v1alpha1.NodeSelector) ([]corev1.Node, error) {
	labels := client.MatchingLabels{}
	for key, value := range selector.MatchLabels {
		labels[key] = string(value)
	}
	var nodes corev1.NodeList
	if err := w.Client.List(w.ctx, &nodes, labels); err != nil {
		return nil, fmt.Errorf("listing Nodes: %w", err)
	}
	return nodes.Items, nil
}

// situation is all that is looked at to tell whether the cluster is at rest.
type situation struct {
	profiles v1alpha1.LowLatencyNodeProfileList
	pools    v1alpha1.BypassNICPoolList
	nodes    corev1.NodeList
	reports  v1alpha1.LowLatencyNodeList
}

// look looks at the cluster. An API server with too much to do is asked again.
func (w *world) look() (*situation, error) {
	deadline := time.Now().Add(*patience)
	for {
		s, err := w.lookOnce()
		if err == nil || time.Now().After(deadline) {
			return s, errors.Join(err, w.Failure())
		}
		time.Sleep(pace)
	}
}

func (w *world) lookOnce() (*situation, error) {
	s := &situation{}
	for _, list := range []client.ObjectList{&s.profiles, &s.pools, &s.nodes, &s.reports} {
		if err := w.Client.List(w.ctx, list); err != nil {
			return nil, fmt.Errorf("looking at the cluster: %w", err)
		}
	}
	return s, nil
}

// objects are all that was looked at.
func (s *situation) objects() []client.Object {
	all := make([]client.Object, 0, len(s.profiles.Items)+len(s.pools.Items)+len(s.nodes.Items)+len(s.reports.Items))
	for i := range s.profiles.Items {
		all = append(all, &s.profiles.Items[i])
	}
	for i := range s.pools.Items {
		all = append(all, &s.pools.Items[i])
	}
	for i := range s.nodes.Items {
		all = append(all, &s.nodes.Items[i])
	}
	for i := range s.reports.Items {
		all = append(all, &s.reports.Items[i])
	}
	return all
}

// isBusy says what is still under way, whatever it leads to; "" when nothing.
func (s *situation) isBusy() string {
	for i := range s.nodes.Items {
		node := &s.nodes.Items[i]
		if node.Annotations[stateOfNode] == "Working" {
			return "node " + node.Name + " reboots"
		}
	}
	for i := range s.profiles.Items {
		if p := &s.profiles.Items[i]; p.Status.ObservedGeneration != p.Generation && p.DeletionTimestamp.IsZero() {
			return "the operator has not looked at profile " + p.Name
		}
	}
	for i := range s.pools.Items {
		if p := &s.pools.Items[i]; p.Status.ObservedGeneration != p.Generation && p.DeletionTimestamp.IsZero() {
			return "the operator has not looked at pool " + p.Name
		}
	}
	return ""
}

// awaitRest waits until nothing happens any more. What is still going on after a while is none of its business.
func (w *world) awaitRest(quiet, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		s, err := w.look()
		if err != nil {
			return err
		}
		busy := s.isBusy()
		if busy == "" && !w.observer.hasSeen(s) {
			busy = "the watches are late"
		}
		if busy == "" && w.observer.quietSince() > quiet {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("still busy after %v: %s", limit, busy)
		}
		time.Sleep(pace)
	}
}

// awaitGreen waits until what is wanted is in force everywhere, and says what it is that does not come.
func (w *world) awaitGreen(limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		s, err := w.look()
		if err != nil {
			return err
		}
		stuck := w.notGreen(s)
		if stuck == "" && !w.observer.hasSeen(s) {
			stuck = "the watches are late"
		}
		if stuck == "" && w.observer.quietSince() > 600*time.Millisecond {
			return nil
		}
		if stuck != "" && time.Now().After(deadline) {
			return errors.New("stuck: " + stuck)
		}
		time.Sleep(pace)
	}
}

// notGreen is the first thing that keeps the cluster from being as everybody wants it; "" when nothing does.
func (w *world) notGreen(s *situation) string {
	if busy := s.isBusy(); busy != "" {
		return busy
	}
	for _, look := range []func(*situation) string{w.profilesNotGreen, w.poolsNotGreen, w.reportsNotGreen, nodesNotGreen} {
		if stuck := look(s); stuck != "" {
			return stuck
		}
	}
	return ""
}

func (w *world) profilesNotGreen(s *situation) string {
	for i := range s.profiles.Items {
		p := &s.profiles.Items[i]
		if !p.DeletionTimestamp.IsZero() {
			return fmt.Sprintf("profile %s is being deleted: %s", p.Name, conditionsText(p.Status.Conditions))
		}
		if !isReady(p.Status.Conditions, p.Generation) {
			return fmt.Sprintf("profile %s: %s", p.Name, conditionsText(p.Status.Conditions))
		}
		if lack := w.lackOfProfile(p, everyNode); lack != "" {
			return lack
		}
	}
	return ""
}

func (w *world) poolsNotGreen(s *situation) string {
	for i := range s.pools.Items {
		p := &s.pools.Items[i]
		switch {
		case !p.DeletionTimestamp.IsZero():
			return fmt.Sprintf("pool %s is being deleted: %s", p.Name, conditionsText(p.Status.Conditions))
		case !isReady(p.Status.Conditions, p.Generation):
			return fmt.Sprintf("pool %s: %s", p.Name, conditionsText(p.Status.Conditions))
		}
		if lack := w.lackOfPool(p, everyNode); lack != "" {
			return lack
		}
	}
	return ""
}

// reportsNotGreen compares LowLatencyNodes with the profiles that select their nodes.
func (w *world) reportsNotGreen(s *situation) string {
	governed := map[string]string{}
	for i := range s.profiles.Items {
		nodes, err := w.selected(s.profiles.Items[i].Spec.NodeSelector)
		if err != nil {
			return err.Error()
		}
		for j := range nodes {
			governed[nodes[j].Name] = s.profiles.Items[i].Name
		}
	}
	for i := range s.reports.Items {
		r := &s.reports.Items[i]
		switch {
		case governed[r.Name] != r.Spec.Profile:
			return fmt.Sprintf("LowLatencyNode %s names profile %q, and profile %q selects the node", r.Name, r.Spec.Profile, governed[r.Name])
		case r.Spec.PlanHash == "" || r.Spec.PlanHash != r.Status.VerifiedPlanHash || !isProven(r):
			return fmt.Sprintf("LowLatencyNode %s: %s", r.Name, conditionsText(r.Status.Conditions))
		}
		delete(governed, r.Name)
	}
	for node := range governed {
		return "node " + node + " has no LowLatencyNode"
	}
	return ""
}

// nodesNotGreen looks for taints, and for nodes that are between two configurations.
func nodesNotGreen(s *situation) string {
	for i := range s.nodes.Items {
		node := &s.nodes.Items[i]
		ready := nodeReady(node)
		switch {
		case node.Annotations[currentConfig] != node.Annotations[desiredConfig] || node.Spec.Unschedulable:
			return "node " + node.Name + " is between two configurations"
		// After a failure the gate waits for a minute before it opens.
		case isTainted(node) && ready.Reason != v1alpha1.ReasonSettling:
			return fmt.Sprintf("node %s is tainted: %s: %s", node.Name, ready.Reason, ready.Message)
		}
	}
	return ""
}

func nodeReady(node *corev1.Node) corev1.NodeCondition {
	for _, condition := range node.Status.Conditions {
		if condition.Type == v1alpha1.NodeConditionReady {
			return condition
		}
	}
	return corev1.NodeCondition{}
}

// conditionsText is what an object says about itself, in one line.
func conditionsText(conditions []metav1.Condition) string {
	var texts []string
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionProgressing, v1alpha1.ConditionDegraded, v1alpha1.ConditionApplied, v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned} {
		if c := meta.FindStatusCondition(conditions, kind); c != nil {
			texts = append(texts, fmt.Sprintf("%s %s %s: %s", kind, c.Status, c.Reason, c.Message))
		}
	}
	return strings.Join(texts, "; ")
}
