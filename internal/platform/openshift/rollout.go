// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
)

const (
	kindPool          = "MachineConfigPool"
	kindMachineConfig = "MachineConfig"
	kindKubeletConfig = "KubeletConfig"
	kindTuned         = "Tuned"
	kindRuntimeClass  = "RuntimeClass"

	// renderTimeout is when to look again at a machine config pool whose rendered configuration is awaited. The
	// machine-config operator takes some seconds (renderDelay), and the change of the machine config pool is watched.
	renderTimeout = 30 * time.Second
)

// The rollout of one machine config pool. Each line is decided from the world alone, so that an operator that was
// stopped anywhere goes on where it was:
//
//	pool      | our objects | held by us | rendered has both | then
//	absent    | any         | -          | -                 | create it paused, write all objects
//	there     | differ      | any        | any               | pause, write all objects
//	there     | as wanted   | yes        | no                | wait for the machine-config operator
//	there     | as wanted   | yes        | yes               | label nodes; when all others have left, let go
//	there     | as wanted   | no         | -                 | label nodes; nodes reboot into it by themselves
//
// A node reboots once, because no machine config pool that it is in is let go before its rendered configuration is
// whole.

// verdict is what is to be done about one target, and how far it is.
type verdict struct {
	steps []step
	state fleet.Group
}

// decide makes the steps for one target. moving are the nodes that are in its machine config pool and about to leave
// it, stuck those that must not be changed, with the reason.
func (w *world) decide(t *target, profile string, moving []string, stuck map[string]string, r *room) verdict {
	differs := w.differs(t)
	switch {
	case t.conflict != nil:
		return t.verdict(fleet.PhaseConflict, t.conflict.Message)
	case differs && len(stuck) > 0:
		return t.verdict(fleet.PhaseHeld, t.heldBecause(stuck))
	case t.live == nil || differs:
		return t.verdict(fleet.PhaseWriting, fmt.Sprintf("MachineConfigPool %s is paused while its configuration is written",
			t.name()), slices.Concat([]step{t.pause()}, w.applySteps(t))...)
	case heldByUs(t.live):
		return w.decideHeld(t, profile, moving, r)
	default:
		phase, message := w.progress(t)
		labels, waiting := r.joining(t, t.labelSteps(profile))
		if waiting > 0 && phase == fleet.PhaseInForce {
			phase, message = fleet.PhaseQueued, fmt.Sprintf("%d nodes wait to join MachineConfigPool %s: at most %d nodes may be unavailable "+
				"at the same time (spec.pools.maximumUnavailableNodes)", waiting, t.name(), r.limit)
		}
		return t.verdict(phase, message, slices.Concat(w.poolSteps(t), w.applySteps(t), labels)...)
	}
}

// decideHeld decides about a machine config pool that the operator has paused and written.
func (w *world) decideHeld(t *target, profile string, moving []string, r *room) verdict {
	if message := w.failure(t); message != "" {
		return t.verdict(fleet.PhaseFailed, message, w.applySteps(t)...)
	}
	if lack := w.missing(t); lack != "" {
		return w.awaitRendering(t, lack)
	}
	steps := slices.Concat(w.applySteps(t), t.labelSteps(profile))
	if len(moving) > 0 {
		return t.verdict(fleet.PhaseWriting, fmt.Sprintf("MachineConfigPool %s is paused until the nodes %s have left it",
			t.name(), fleet.Names(moving)), steps...)
	}
	if !r.take(t) {
		return t.verdict(fleet.PhaseQueued, r.queued(t), steps...)
	}
	return t.verdict(fleet.PhaseRolling, fmt.Sprintf("MachineConfigPool %s begins to roll", t.name()),
		append(steps, t.letGo())...)
}

func (t *target) verdict(phase fleet.Phase, message string, steps ...step) verdict {
	return verdict{steps: steps, state: fleet.Group{Name: t.name(), Phase: phase, Message: message}}
}

func (t *target) heldBecause(stuck map[string]string) string {
	first := sortedKeys(stuck)[0]
	message := fmt.Sprintf("MachineConfigPool %s is left as it is, because node %s in it must not be changed: %s",
		t.name(), first, stuck[first])
	if more := len(stuck) - 1; more > 0 {
		message += fmt.Sprintf(" (and %d more)", more)
	}
	return message
}

// differs reports whether writing our objects would make the nodes of the machine config pool reboot.
func (w *world) differs(t *target) bool {
	return slices.ContainsFunc(t.want, func(want *unstructured.Unstructured) bool {
		kind := want.GetKind()
		return kind == kindKubeletConfig && w.hasOther(want) ||
			kind == kindMachineConfig && (w.hasOther(want) || !isSubset(w.live(want).GetLabels(), t.input.MachineConfigPool.Selection()))
	})
}

// hasOther reports whether the content of an object is not the wanted one.
func (w *world) hasOther(want *unstructured.Unstructured) bool {
	return platform.Compare(w.live(want), want) == platform.ContentDiffers || w.inspection(want).HasForeign()
}

func (w *world) live(want *unstructured.Unstructured) *unstructured.Unstructured {
	return w.objects[key{want.GetKind(), want.GetName()}]
}

// applySteps writes the objects that are not as wanted.
func (w *world) applySteps(t *target) []step {
	var steps []step
	for _, want := range t.want {
		if platform.Compare(w.live(want), want) != platform.Same || w.inspection(want).HasForeign() {
			steps = append(steps, w.write(want))
		}
	}
	return steps
}

// pause makes the operator hold the machine config pool, which is created if need be. A machine config pool that its
// administrator has paused is held, too, and stays paused when the operator lets go of it.
func (t *target) pause() step {
	return step{apply: paused(t.rest(), t.shape.Hash)}
}

// letGo gives the machine config pool back to the machine-config operator.
func (t *target) letGo() step { return step{apply: t.rest(), letGo: t.live.ResourceVersion} }

// rest is what the operator owns of the machine config pool while nothing is under way.
func (t *target) rest() *unstructured.Unstructured {
	if t.managed() {
		return t.poolObject
	}
	return poolReference(t.live)
}

// poolSteps keeps a managed machine config pool, which is not paused, as wanted.
func (w *world) poolSteps(t *target) []step {
	if !t.managed() || samePool(t.live, t.pool) {
		return nil
	}
	return []step{{apply: t.poolObject, inspection: t.selectors}}
}

// samePool reports whether applying the wanted machine config pool would change nothing.
func samePool(live, want *mcfgv1.MachineConfigPool) bool {
	return isSubset(live.Labels, want.Labels) && isSubset(live.Annotations, want.Annotations) &&
		sameSelectors(live, want) && sameLimit(live, want) && live.Annotations[v1alpha1.AnnotationPausedFor] == ""
}

// sameSelectors reports whether a machine config pool selects nodes and MachineConfigs as wanted, and no other way.
func sameSelectors(live, want *mcfgv1.MachineConfigPool) bool {
	return equality.Semantic.DeepEqual(live.Spec.NodeSelector, want.Spec.NodeSelector) &&
		equality.Semantic.DeepEqual(live.Spec.MachineConfigSelector, want.Spec.MachineConfigSelector)
}

// sameLimit compares maxUnavailable. A limit that somebody else has set where the profile has none stays.
func sameLimit(live, want *mcfgv1.MachineConfigPool) bool {
	if want.Spec.MaxUnavailable == nil {
		return !owns(live, "maxUnavailable")
	}
	return equality.Semantic.DeepEqual(live.Spec.MaxUnavailable, want.Spec.MaxUnavailable)
}

func isSubset(set, subset map[string]string) bool {
	for key, value := range subset {
		if found, ok := set[key]; !ok || found != value {
			return false
		}
	}
	return true
}

// labelSteps puts the nodes into the machine config pool, each with one write.
func (t *target) labelSteps(profile string) []step {
	pool := ""
	if t.managed() {
		pool = t.name()
	}
	var steps []step
	for _, node := range t.nodes {
		if node.Labels[v1alpha1.LabelPool] != pool || node.Labels[v1alpha1.LabelProfile] != profile {
			steps = append(steps, step{label: node, profile: profile, pool: pool})
		}
	}
	return steps
}

// missing says what the machine config pool's rendered configuration lacks; "" when it has everything that was written.
func (w *world) missing(t *target) string {
	own, err := w.ownMachineConfig(t.name())
	if err != nil {
		return err.Error()
	}
	kubelet := w.kubeletConfig(t.name())
	if own == nil || kubelet == nil {
		return fmt.Sprintf("the objects of MachineConfigPool %s are being written", t.name())
	}
	if !kubelet.status.accepted(kubelet.generation) {
		return fmt.Sprintf("the machine-config operator has not taken in KubeletConfig %s yet", kubelet.name)
	}
	return cmp.Or(t.evidence.missing(t.live, own, kubelet.uid), t.evidence.excess())
}

// ownMachineConfig is our MachineConfig of a machine config pool; nil when it does not exist.
func (w *world) ownMachineConfig(pool string) (*mcfgv1.MachineConfig, error) {
	object := w.objects[key{kindMachineConfig, manifests.MachineConfigName(pool)}]
	if object == nil {
		return nil, nil
	}
	return asMachineConfig(object)
}

// failure is what the platform reports against the machine config pool; "" when there is nothing.
func (w *world) failure(t *target) string {
	if kubelet := w.kubeletConfig(t.name()); kubelet != nil {
		if message := kubelet.status.failure(kubelet.generation); message != "" {
			return fmt.Sprintf("the machine-config operator refuses KubeletConfig %s: %s", kubelet.name, message)
		}
		if other := t.evidence.overruled(kubelet.uid); other != "" {
			return fmt.Sprintf("MachineConfig %s replaces the kubelet settings of KubeletConfig %s in MachineConfigPool %s: "+
				"merge the other KubeletConfig into spec.kubelet.additionalConfiguration and delete it", other, kubelet.name, t.name())
		}
	}
	return poolFailure(t.live)
}

// poolFailure is the first of the machine config pool's conditions that reports a failure.
func poolFailure(pool *mcfgv1.MachineConfigPool) string {
	for _, kind := range []mcfgv1.MachineConfigPoolConditionType{
		mcfgv1.MachineConfigPoolRenderDegraded, mcfgv1.MachineConfigPoolNodeDegraded, mcfgv1.MachineConfigPoolDegraded,
	} {
		for _, condition := range pool.Status.Conditions {
			if condition.Type == kind && condition.Status == corev1.ConditionTrue {
				return fmt.Sprintf("MachineConfigPool %s reports %s: %s", pool.Name, kind, condition.Message)
			}
		}
	}
	return ""
}

// progress says how far a machine config pool is that nobody but its administrator holds.
func (w *world) progress(t *target) (fleet.Phase, string) {
	status := t.live.Status
	if message := w.failure(t); message != "" {
		return fleet.PhaseFailed, message
	}
	// Until the machine-config operator has counted the nodes that were just labelled, its figures say nothing.
	if updated(t.live) && (!t.managed() || int(status.MachineCount) >= len(t.nodes)) {
		return fleet.PhaseInForce, ""
	}
	if t.live.Spec.Paused {
		return fleet.PhaseStopped, fmt.Sprintf("MachineConfigPool %s is paused by its administrator: its nodes change when it is resumed",
			t.name())
	}
	return fleet.PhaseRolling, fmt.Sprintf("MachineConfigPool %s has updated %d of %d nodes",
		t.name(), status.UpdatedMachineCount, max(int(status.MachineCount), len(t.nodes)))
}

// updated reports whether every node of the machine config pool has its current rendered configuration.
func updated(pool *mcfgv1.MachineConfigPool) bool {
	return pool.Spec.Configuration.Name != "" &&
		pool.Status.Configuration.Name == pool.Spec.Configuration.Name &&
		pool.Status.UpdatedMachineCount == pool.Status.MachineCount
}

// kubeletConfig is our KubeletConfig of a machine config pool as far as the machine-config operator answers it.
type kubeletConfig struct {
	name       string
	uid        types.UID
	generation int64
	status     kubeletStatus
}

// kubeletConfigSuccess is the condition of releases of OpenShift that do not know Accepted yet.
const kubeletConfigSuccess mcfgv1.KubeletConfigStatusConditionType = "Success"

// kubeletStatus is the status of a KubeletConfig.
type kubeletStatus struct {
	ObservedGeneration int64                           `json:"observedGeneration"`
	Conditions         []mcfgv1.KubeletConfigCondition `json:"conditions"`
}

func (w *world) kubeletConfig(pool string) *kubeletConfig {
	object := w.objects[key{kindKubeletConfig, manifests.KubeletConfigName(pool)}]
	if object == nil {
		return nil
	}
	config := &kubeletConfig{name: object.GetName(), uid: object.GetUID(), generation: object.GetGeneration()}
	// A status of another form is no answer, so the operator goes on waiting and says for what.
	if err := convert(object.Object["status"], &config.status); err != nil {
		config.status = kubeletStatus{}
	}
	return config
}

// last is the condition that counts: the machine-config operator appends, and reads the last one, too
// (AreMCGeneratingSubControllersCompletedForPool).
func (s kubeletStatus) last(generation int64) *mcfgv1.KubeletConfigCondition {
	if s.ObservedGeneration != generation || len(s.Conditions) == 0 {
		return nil
	}
	return &s.Conditions[len(s.Conditions)-1]
}

func (s kubeletStatus) accepted(generation int64) bool {
	last := s.last(generation)
	return last != nil && last.Status == corev1.ConditionTrue &&
		(last.Type == mcfgv1.KubeletConfigAccepted || last.Type == kubeletConfigSuccess)
}

func (s kubeletStatus) failure(generation int64) string {
	if last := s.last(generation); last != nil && !s.accepted(generation) {
		return last.Message
	}
	return ""
}

func asMachineConfig(object *unstructured.Unstructured) (*mcfgv1.MachineConfig, error) {
	config := &mcfgv1.MachineConfig{}
	if err := convert(object.Object, config); err != nil {
		return nil, fmt.Errorf("reading MachineConfig %s: %w", object.GetName(), err)
	}
	return config, nil
}

// convert reads a value of plain maps and lists into a typed one.
func convert(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}
