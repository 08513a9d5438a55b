// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"maps"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

// Pools that OpenShift itself has. A node is in at most one custom machine config pool, and a control-plane node in
// none (machine-config-operator, pkg/helpers, GetPoolsForNode).
const (
	masterPool  = "master"
	workerPool  = "worker"
	arbiterPool = "arbiter"
)

// Annotations by which the machine-config operator and its daemon agree about a node
// (machine-config-operator, pkg/daemon/constants).
const (
	annotationCurrentConfig = "machineconfiguration.openshift.io/currentConfig"
	annotationDesiredConfig = "machineconfiguration.openshift.io/desiredConfig"
)

// key identifies an object of the platform.
type key struct{ kind, name string }

// world is what the API server has, as far as one profile is concerned.
type world struct {
	// now is when it was read.
	now time.Time
	// pools are all MachineConfigPools by name.
	pools map[string]*mcfgv1.MachineConfigPool
	// selectors are the node selectors of machine config pools that were needed, by the machine config pool's name.
	selectors map[string]labels.Selector
	// objects are what the operator has made for the profile, machine config pools excepted.
	objects map[key]*unstructured.Unstructured
	// inspections are what is known about objects that are to be written.
	inspections map[key]*platform.Inspection
	// kubelets are the MachineConfigs made of KubeletConfigs from which the configuration of a machine config pool that
	// the operator holds was merged, as far as they still exist, by the name of the machine config pool.
	kubelets map[string][]mcfgv1.MachineConfig
	// runtimeClassHolders are the profiles for which the operator has made RuntimeClasses, by the name of the RuntimeClass; only
	// filled when profiles ask for the same name.
	runtimeClassHolders map[string]string
	// letGo are the machine config pools that the operator has let go, although the cache shows them held yet.
	letGo map[string]bool
	// performanceProfiles of the cluster; nil when it has no such kind.
	performanceProfiles []performanceProfile
}

// selects reports whether a label selector matches.
func selects(selector *metav1.LabelSelector, set map[string]string) bool {
	return parseSelector(selector).Matches(labels.Set(set))
}

// parseSelector reads a selector as the machine-config operator does, for which one that is empty or wrong
// matches nothing.
func parseSelector(selector *metav1.LabelSelector) labels.Selector {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || parsed.Empty() {
		return labels.Nothing()
	}
	return parsed
}

// selectsNode reports whether a machine config pool selects nodes with these labels. Selectors are parsed once, since
// there may be thousands of nodes.
func (w *world) selectsNode(pool string, nodeLabels map[string]string) bool {
	if w.pools[pool] == nil {
		return false
	}
	selector, found := w.selectors[pool]
	if !found {
		selector = parseSelector(w.pools[pool].Spec.NodeSelector)
		if w.selectors == nil {
			w.selectors = map[string]labels.Selector{}
		}
		w.selectors[pool] = selector
	}
	return selector.Matches(labels.Set(nodeLabels))
}

// owner is the profile for which the operator has made a machine config pool; "" when somebody else has made it.
func owner(pool *mcfgv1.MachineConfigPool) string { return pool.Labels[v1alpha1.LabelProfile] }

// isControlPlane reports whether OpenShift keeps the node in the machine config pool master, whatever labels it has
// besides.
func isControlPlane(node *corev1.Node) bool {
	for _, role := range []string{"master", "control-plane", "arbiter"} {
		if _, found := node.Labels["node-role.kubernetes.io/"+role]; found {
			return true
		}
	}
	return false
}

// isBuiltIn reports whether a machine config pool is one of OpenShift's own.
func isBuiltIn(pool string) bool {
	return pool == masterPool || pool == workerPool || pool == arbiterPool
}

// customPools returns the names of the machine config pools, other than OpenShift's own, that select a node with these
// labels, ascending.
func (w *world) customPools(nodeLabels map[string]string) []string {
	var names []string
	for name := range w.pools {
		if !isBuiltIn(name) && w.selectsNode(name, nodeLabels) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// primaryPool is the machine config pool whose configuration a node with these labels gets; "" when there is none or
// more than one custom machine config pool selects the node.
func (w *world) primaryPool(nodeLabels map[string]string) string {
	custom := w.customPools(nodeLabels)
	switch {
	case len(custom) > 1:
		return ""
	case w.selectsNode(masterPool, nodeLabels):
		return masterPool
	case len(custom) == 1:
		return custom[0]
	case w.selectsNode(workerPool, nodeLabels):
		return workerPool
	default:
		return ""
	}
}

// withoutOurPool are the labels that a node has once it is in no managed machine config pool.
func withoutOurPool(node *corev1.Node) map[string]string {
	if _, found := node.Labels[v1alpha1.LabelPool]; !found {
		return node.Labels
	}
	rest := maps.Clone(node.Labels)
	delete(rest, v1alpha1.LabelPool)
	return rest
}

// hasConfigOf reports whether the machine-config daemon of a node still has, or is told to take, a configuration that was
// rendered for the machine config pool. Rendered configurations are named rendered-<machine config pool>-<hash> and
// disappear with the machine config pool; a daemon whose current configuration is gone cannot work any more.
func hasConfigOf(node *corev1.Node, pool string) bool {
	for _, annotation := range []string{annotationCurrentConfig, annotationDesiredConfig} {
		hash, found := strings.CutPrefix(node.Annotations[annotation], "rendered-"+pool+"-")
		if found && hash != "" && !strings.Contains(hash, "-") {
			return true
		}
	}
	return false
}

// NodeAnnotations are the annotations of a Node from which the platform decides.
func NodeAnnotations() []string { return []string{annotationCurrentConfig, annotationDesiredConfig} }
