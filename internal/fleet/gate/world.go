// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package gate

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/latencytest"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// World is what a node is decided from. Nothing in it is changed.
type World struct {
	// Node is nil when it does not exist.
	Node *corev1.Node
	// Report is what the agent has written; nil when it does not exist.
	Report *v1alpha1.LowLatencyNode
	// Current is the report with what counts of its status now, see heartbeat; nil when it does not exist.
	Current *v1alpha1.LowLatencyNode
	// Configured tells that the platform wants no other configuration of the Node than that which it has.
	Configured bool
	// Profiles are all profiles, those that are being deleted included.
	Profiles []v1alpha1.LowLatencyNodeProfile
	// Pools are the pools that are not being deleted.
	Pools []*v1alpha1.BypassNICPool
	// Tests are those of WantedTests that exist.
	Tests []v1alpha1.LatencyTest
}

// ForgetFormerMachine drops a report that is about the machine which the Node's machine has replaced.
func (w *World) ForgetFormerMachine() {
	if w.Node != nil && w.Report != nil && !fleet.IsOfMachine(w.Report, w.Node) {
		w.Report = nil
	}
}

// IsAbandoned reports whether nobody wants the LowLatencyNode any more. A profile still wants those of its nodes that it no
// longer selects, and all of them while it is being deleted, until they were given back.
func (w *World) IsAbandoned() bool {
	if w.Node == nil {
		return true
	}
	return !slices.ContainsFunc(w.Profiles, func(profile v1alpha1.LowLatencyNodeProfile) bool {
		return fleet.Selects(profile.Spec.NodeSelector, w.Node) || w.Node.Labels[v1alpha1.LabelProfile] == profile.Name
	})
}

// IsStray reports whether the node carries our labels although no profile selects it and none that exists has put them
// there: by hand, or from a backup. The label of a machine config pool would bring it the plan of others. What a profile
// that exists is named for is left to that profile, which gives its nodes back in order.
func (w *World) IsStray() bool {
	if w.Node == nil || !w.IsAbandoned() {
		return false
	}
	profile, named := w.Node.Labels[v1alpha1.LabelProfile]
	_, placed := w.Node.Labels[v1alpha1.LabelPool]
	return (named || placed) && !slices.ContainsFunc(w.Profiles, func(p v1alpha1.LowLatencyNodeProfile) bool { return p.Name == profile })
}

// LostReady is the condition Ready of a LowLatencyNode whose agent has left it True when its heartbeat became stale; nil when
// the LowLatencyNode may stay as it is. The condition is what kubectl get prints, and a dead agent cannot correct it. One
// that says so after its heartbeat became stale is not dead: it renews no Lease, as older ones did.
func (w *World) LostReady() *metav1.Condition {
	if w.Report == nil || w.Current == nil {
		return nil
	}
	said := meta.FindStatusCondition(w.Report.Status.Conditions, v1alpha1.ConditionReady)
	counts := meta.FindStatusCondition(w.Current.Status.Conditions, v1alpha1.ConditionReady)
	if said == nil || counts == nil || said.Status == counts.Status {
		return nil
	}
	// Conditions keep their times to the second.
	if said.LastTransitionTime.Add(time.Second).After(counts.LastTransitionTime.Time) {
		return nil
	}
	return counts
}

// Decide decides whether pods that need low latency may be sent to the node; nil where no profile governs it.
func (w *World) Decide(now time.Time) *Decision {
	if w.Node == nil || w.governor() == nil {
		return nil
	}
	decision := Decide(Input{
		Conditions: w.conditions(), Transitions: w.transitions(), PlanHash: w.planHash(), Configured: w.Configured, Startup: w.startup(),
		Standings: w.standings(now), WasOpen: w.wasOpen(), Now: now,
	})
	return &decision
}

// WantedTests are the tests that the profile of the node names.
func (w *World) WantedTests() []v1alpha1.LatencyTestReference {
	if w.Node == nil {
		return nil
	}
	profile := w.governor()
	if profile == nil || profile.Spec.Verification.Qualification == nil {
		return nil
	}
	return profile.Spec.Verification.Qualification.Tests
}

func (w *World) standings(now time.Time) []latencytest.Standing {
	return latencytest.Standings(&latencytest.Subject{Node: w.Node, Report: w.Report, Profile: w.governor(), Pools: w.Pools}, w.Tests, now)
}

// wasOpen reports whether the gate has been open in this boot, and no test has closed it since. Where no kubelet says which boot
// it is, nobody knows. Where nobody has noted it, because no test was asked for or an older operator did not know any, the
// condition of the Node tells: what closes the gate makes it False or Unknown, and a boot needs its device plugins again.
func (w *World) wasOpen() bool {
	boot := w.Node.Status.NodeInfo.BootID
	if noted, found := w.Node.Annotations[v1alpha1.AnnotationQualified]; found || boot == "" {
		return boot != "" && noted == boot
	}
	shown := findCondition(w.Node.Status.Conditions, v1alpha1.NodeConditionReady)
	return shown != nil && shown.Status == corev1.ConditionTrue && w.Node.Annotations[v1alpha1.AnnotationStarted] == boot
}

// governor is the profile that governs the node; nil when there is none. Before the LowLatencyNode is there, it is the
// one that is about to create it: a node that joins with the taint keeps it.
func (w *World) governor() *v1alpha1.LowLatencyNodeProfile {
	for i := range w.Profiles {
		profile := &w.Profiles[i]
		if w.Report != nil && profile.Name == w.Report.Spec.Profile {
			return profile
		}
		if w.Report == nil && profile.DeletionTimestamp.IsZero() && fleet.Selects(profile.Spec.NodeSelector, w.Node) {
			return profile
		}
	}
	return nil
}

// isGateTaint reports whether the profile keeps pods off while the node is not verified.
func (w *World) isGateTaint() bool {
	profile := w.governor()
	return profile != nil && plan.Effective(profile, "").Spec.Verification.Gate == v1alpha1.GateTaint
}

// isGivenBack reports whether the profile is being deleted and the node has its plan no more. It is as any other then, and pods need not
// wait until the last node of the profile is.
func (w *World) isGivenBack() bool {
	profile := w.governor()
	return profile != nil && !profile.DeletionTimestamp.IsZero() && w.Current != nil &&
		meta.IsStatusConditionFalse(w.Current.Status.Conditions, v1alpha1.ConditionApplied)
}

// startsTainted reports whether a pool of the node keeps pods off while its device plugin starts.
func (w *World) startsTainted() bool {
	return slices.ContainsFunc(w.ownPools(), func(pool *v1alpha1.BypassNICPool) bool {
		return pool.Spec.Startup == v1alpha1.StartupTaint
	})
}

// ownPools are the pools that serve the node.
func (w *World) ownPools() []*v1alpha1.BypassNICPool {
	if w.Report == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(w.Pools), func(pool *v1alpha1.BypassNICPool) bool {
		return !slices.Contains(w.Report.Spec.BypassPools, pool.Name)
	})
}

func (w *World) planHash() string {
	if w.Report == nil {
		return ""
	}
	return w.Report.Spec.PlanHash
}

func (w *World) transitions() []v1alpha1.NodeTransition {
	if w.Current == nil {
		return nil
	}
	return w.Current.Status.Transitions
}

// conditions are Applied, DeJittered and NUMAAligned as far as they speak of the current plan and boot.
func (w *World) conditions() []metav1.Condition {
	kinds := []string{v1alpha1.ConditionApplied, v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned}
	conditions := make([]metav1.Condition, 0, len(kinds))
	for _, kind := range kinds {
		conditions = append(conditions, w.condition(kind))
	}
	return conditions
}

func (w *World) condition(kind string) metav1.Condition {
	return fleet.CurrentCondition(w.Node, w.Current, w.planHash(), kind)
}

// startup is how far the node is since its boot.
func (w *World) startup() Startup {
	startup := Startup{
		Boot: w.Node.Status.NodeInfo.BootID, Started: w.Node.Annotations[v1alpha1.AnnotationStarted],
		Ready: fleet.NodeReadiness(w.Node),
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
		advertised := w.Node.Status.Allocatable[corev1.ResourceName(pool.Spec.ResourceName)]
		startup.Pools = append(startup.Pools, Pool{
			Name: pool.Name, Resource: pool.Spec.ResourceName, Advertised: advertised.Value(),
			Reported: fleet.IsOfBoot(w.Report, w.Node) && fleet.IsReported(pool, w.Node, w.Report), Units: fleet.HealthyUnits(fleet.NICsOfPool(w.Report, pool.Name)),
		})
	}
	return startup
}
