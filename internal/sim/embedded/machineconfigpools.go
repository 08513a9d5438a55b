// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"fmt"
	"slices"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Annotations by which the machine-config operator and its daemon agree about a node
// (openshift/machine-config-operator, pkg/daemon/constants).
const (
	annotationCurrentConfig = "machineconfiguration.openshift.io/currentConfig"
	annotationDesiredConfig = "machineconfiguration.openshift.io/desiredConfig"
	annotationState         = "machineconfiguration.openshift.io/state"
	annotationReason        = "machineconfiguration.openshift.io/reason"

	stateDone     = "Done"
	stateWorking  = "Working"
	stateDegraded = "Degraded"

	workerPool = "worker"
)

// WorkerPool is the machine config pool that every cluster has from the start.
func WorkerPool() *mcfgv1.MachineConfigPool {
	return &mcfgv1.MachineConfigPool{
		ObjectMeta: metav1.ObjectMeta{Name: workerPool, Labels: map[string]string{"pools.operator.machineconfiguration.openshift.io/" + workerPool: ""}},
		Spec: mcfgv1.MachineConfigPoolSpec{
			MachineConfigSelector: &metav1.LabelSelector{MatchLabels: map[string]string{mcfgv1.MachineConfigRoleLabelKey: workerPool}},
			NodeSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + workerPool: ""}},
		},
	}
}

// selects reports whether a label selector matches; a missing or broken one matches nothing.
func selects(selector *metav1.LabelSelector, set map[string]string) bool {
	if selector == nil {
		return false
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(set))
}

// poolOf returns the name of the machine config pool that owns a node. A node is in its custom machine config pool, else in the
// worker one; two custom ones are an error, as for the machine-config operator, which then degrades.
func poolOf(node *corev1.Node, pools []mcfgv1.MachineConfigPool) (string, error) {
	var custom []string
	worker := ""
	for i := range pools {
		pool := &pools[i]
		switch {
		case !selects(pool.Spec.NodeSelector, node.Labels):
		case pool.Name == workerPool:
			worker = workerPool
		default:
			custom = append(custom, pool.Name)
		}
	}
	switch len(custom) {
	case 0:
		return worker, nil
	case 1:
		return custom[0], nil
	default:
		slices.Sort(custom)
		return "", fmt.Errorf("node %s belongs to %d custom machine config pools: %v", node.Name, len(custom), custom)
	}
}

// rollout is how far the nodes of one machine config pool are towards its configuration.
type rollout struct {
	target                string
	nodes                 []*corev1.Node
	updated, ready, broke int32
}

// newRollout counts the nodes of a machine config pool that have the target configuration.
func newRollout(target string, nodes []*corev1.Node) rollout {
	r := rollout{target: target, nodes: nodes}
	for _, node := range nodes {
		switch {
		case node.Annotations[annotationState] == stateDegraded:
			r.broke++
		case node.Annotations[annotationCurrentConfig] == target && node.Annotations[annotationState] == stateDone:
			r.updated++
			if !node.Spec.Unschedulable {
				r.ready++
			}
		}
	}
	return r
}

// next returns the nodes that may begin to update now, as many as maxUnavailable leaves room for.
func (r rollout) next(pool *mcfgv1.MachineConfigPool) []*corev1.Node {
	if pool.Spec.Paused || r.target == "" {
		return nil
	}
	busy := 0
	var waiting []*corev1.Node
	for _, node := range r.nodes {
		switch {
		case node.Annotations[annotationState] == stateWorking || node.Annotations[annotationState] == stateDegraded:
			busy++
		case node.Annotations[annotationCurrentConfig] != r.target:
			waiting = append(waiting, node)
		}
	}
	room := max(maxUnavailable(pool, len(r.nodes))-busy, 0)
	return waiting[:min(room, len(waiting))]
}

// maxUnavailable resolves the setting of a machine config pool; the machine-config operator's default is one node.
func maxUnavailable(pool *mcfgv1.MachineConfigPool, nodes int) int {
	if pool.Spec.MaxUnavailable == nil {
		return 1
	}
	value, err := intstr.GetScaledValueFromIntOrPercent(pool.Spec.MaxUnavailable, nodes, false)
	if err != nil {
		return 1
	}
	return max(value, 1)
}

// poolStatus is the status that the machine-config operator would write.
func poolStatus(pool *mcfgv1.MachineConfigPool, r rollout, now metav1.Time) mcfgv1.MachineConfigPoolStatus {
	total := int32(len(r.nodes))
	status := mcfgv1.MachineConfigPoolStatus{
		ObservedGeneration:      pool.Generation,
		Configuration:           pool.Status.Configuration,
		MachineCount:            total,
		UpdatedMachineCount:     r.updated,
		ReadyMachineCount:       r.ready,
		UnavailableMachineCount: total - r.ready,
		DegradedMachineCount:    r.broke,
	}
	done := r.updated == total && r.target != ""
	if done {
		status.Configuration = pool.Spec.Configuration
	}
	set := func(kind mcfgv1.MachineConfigPoolConditionType, is bool) {
		status.Conditions = append(status.Conditions, poolCondition(pool, kind, is, now))
	}
	set(mcfgv1.MachineConfigPoolUpdated, done)
	set(mcfgv1.MachineConfigPoolUpdating, !done && !pool.Spec.Paused)
	set(mcfgv1.MachineConfigPoolNodeDegraded, r.broke > 0)
	set(mcfgv1.MachineConfigPoolRenderDegraded, false)
	set(mcfgv1.MachineConfigPoolDegraded, r.broke > 0)
	return status
}

// poolCondition keeps the transition time of a condition that has not changed.
func poolCondition(pool *mcfgv1.MachineConfigPool, kind mcfgv1.MachineConfigPoolConditionType, is bool, now metav1.Time) mcfgv1.MachineConfigPoolCondition {
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	condition := mcfgv1.MachineConfigPoolCondition{Type: kind, Status: status, LastTransitionTime: now}
	for _, old := range pool.Status.Conditions {
		if old.Type == kind && old.Status == status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
	}
	return condition
}
