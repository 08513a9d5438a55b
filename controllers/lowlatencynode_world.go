// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/gate"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// nodeWorld is what a node is decided from, read once from the cache.
type nodeWorld struct {
	// node is nil when it does not exist.
	node *corev1.Node
	// report is nil when it does not exist.
	report *v1alpha1.LowLatencyNode
	// silence of the agent that has written the report.
	silence heartbeat.Silence
	// profiles are all profiles, those that are being deleted included. Not to be changed.
	profiles []v1alpha1.LowLatencyNodeProfile
	// pools are the pools that are not being deleted. Not to be changed.
	pools []*v1alpha1.BypassNICPool
}

// isAbandoned tells whether nobody wants the LowLatencyNode any more. A profile that is being deleted still
// wants those of its nodes, until they were given back.
func (w *nodeWorld) isAbandoned() bool {
	if w.node == nil {
		return true
	}
	return !slices.ContainsFunc(w.profiles, func(profile v1alpha1.LowLatencyNodeProfile) bool {
		return selectsNode(&profile, w.node)
	})
}

// governor is the profile that governs the node; nil when there is none. Before the LowLatencyNode is there, it is the
// one that is about to create it: a node that joins with the taint keeps it.
func (w *nodeWorld) governor() *v1alpha1.LowLatencyNodeProfile {
	for i := range w.profiles {
		profile := &w.profiles[i]
		if w.report != nil && profile.Name == w.report.Spec.Profile {
			return profile
		}
		if w.report == nil && profile.DeletionTimestamp.IsZero() && selectsNode(profile, w.node) {
			return profile
		}
	}
	return nil
}

// isGateTaint tells whether the profile keeps pods off while the node is not verified.
func (w *nodeWorld) isGateTaint() bool {
	profile := w.governor()
	return profile != nil && plan.Effective(profile, "").Spec.Verification.Gate == v1alpha1.GateTaint
}

// startsTainted tells whether a pool of the node keeps pods off while its device plugin starts.
func (w *nodeWorld) startsTainted() bool {
	return slices.ContainsFunc(w.ownPools(), func(pool *v1alpha1.BypassNICPool) bool {
		return pool.Spec.Startup == v1alpha1.StartupTaint
	})
}

// ownPools are the pools that serve the node.
func (w *nodeWorld) ownPools() []*v1alpha1.BypassNICPool {
	if w.report == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(w.pools), func(pool *v1alpha1.BypassNICPool) bool {
		return !slices.Contains(w.report.Spec.BypassPools, pool.Name)
	})
}

func (w *nodeWorld) planHash() string {
	if w.report == nil {
		return ""
	}
	return w.report.Spec.PlanHash
}

func (w *nodeWorld) transitions() []v1alpha1.NodeTransition {
	if w.report == nil {
		return nil
	}
	return w.silence.Judge(w.report).Status.Transitions
}

// speaksOfBoot tells whether the agent has looked at the node since its last boot. Where the kubelet tells no boot, as
// simulated ones do, there is nothing to compare.
func (w *nodeWorld) speaksOfBoot() bool {
	boot := w.node.Status.NodeInfo.BootID
	return boot == "" || w.report != nil && w.report.Status.BootID == boot
}

// conditions are Applied, DeJittered and NUMAAligned as far as they speak of the current plan and boot.
func (w *nodeWorld) conditions() []metav1.Condition {
	kinds := []string{v1alpha1.ConditionApplied, v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned}
	conditions := make([]metav1.Condition, 0, len(kinds))
	for _, kind := range kinds {
		conditions = append(conditions, w.condition(kind))
	}
	return conditions
}

func (w *nodeWorld) condition(kind string) metav1.Condition {
	current := currentCondition(w.silence.Judge(w.report), w.planHash(), kind)
	if w.speaksOfBoot() || current.Reason == v1alpha1.ReasonAwaitingInventory {
		return current
	}
	return metav1.Condition{
		Type: kind, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonAwaitingVerification,
		Message: "the agent has not looked at the node since its last boot yet",
	}
}

// startup is how far the node is since its boot.
func (w *nodeWorld) startup() gate.Startup {
	startup := gate.Startup{Boot: w.node.Status.NodeInfo.BootID, Started: w.node.Annotations[v1alpha1.AnnotationStarted]}
	if ready := findNodeCondition(w.node.Status.Conditions, corev1.NodeReady); ready != nil {
		startup.Ready = ready.Status
	}
	if startup.Started == startup.Mark() {
		// What the pools say counts until the start only.
		return startup
	}
	for _, pool := range w.ownPools() {
		if bypass.Allocation(&pool.Spec) == v1alpha1.AllocationDynamic {
			// The kubelet advertises nothing, and refuses no pod because the driver is late: it waits.
			continue
		}
		advertised := w.node.Status.Allocatable[corev1.ResourceName(pool.Spec.ResourceName)]
		startup.Pools = append(startup.Pools, gate.Pool{
			Name: pool.Name, Resource: pool.Spec.ResourceName, Advertised: advertised.Value(),
			Reported: w.speaksOfBoot() && w.reports(pool), Units: w.units(pool),
		})
	}
	return startup
}

// reports tells whether the agent has reported the NICs of the pool for its current spec. An agent that names none has
// reported when the inventory has none.
func (w *nodeWorld) reports(pool *v1alpha1.BypassNICPool) bool {
	n := poolNode{node: w.node, report: w.report, nics: nicsOfPool(w.report, pool.Name)}
	if hasInventory(w.report) {
		n.selection = newSelection(pool, newPoolSet(w.ownPools()), w.report.Status.Inventory)
	}
	return n.isReporting(pool)
}

// units are those that the healthy NICs of the pool give.
func (w *nodeWorld) units(pool *v1alpha1.BypassNICPool) int64 {
	var units int64
	for _, nic := range nicsOfPool(w.report, pool.Name) {
		if nic.Health == v1alpha1.NICHealthy {
			units += int64(nic.Units)
		}
	}
	return units
}
