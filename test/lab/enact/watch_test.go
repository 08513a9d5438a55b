// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package enact

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/controllers"
)

// machineState is what the API server tells of a machine.
type machineState struct {
	bootID string
	// turn is the operator's note that the node is being changed.
	ready, cordoned, gated, turn bool
	// pod is the phase of the one that hands an instruction over; "" for none.
	pod corev1.PodPhase
	// phase and reason are what the guard says, through the agent, and plan which one is in force; conditions are those of the agent
	// that are True.
	// why is what the agent says of jitter, when there is some.
	phase, reason, plan, conditions, why string
}

// counts are what has happened to a machine. A taint that comes while the machine is cordoned, as it does while its kubelet starts with another
// configuration, is not counted: it keeps no pod away that the cordon lets in.
type counts struct{ reboots, cordons, taints int }

// count adds what is different from before.
func (c *counts) count(before, now machineState) {
	if before.bootID != "" && now.bootID != before.bootID {
		c.reboots++
	}
	if before.bootID != "" && now.cordoned && !before.cordoned {
		c.cordons++
	}
	if before.bootID != "" && now.gated && !before.gated && !now.cordoned {
		c.taints++
	}
}

// isChanged tells that the operator has taken the node.
func (s machineState) isChanged() bool { return s.turn || s.cordoned }

// isOut tells that pods cannot count on the node.
func (s machineState) isOut() bool { return s.turn || s.cordoned || !s.ready }

func (s machineState) String() string {
	words := []string{"guard: " + or(s.phase, "none")}
	for _, word := range []struct {
		is   bool
		text string
	}{{s.turn, "turn"}, {s.cordoned, "cordoned"}, {!s.ready, "NOT READY"}, {s.gated, "tainted"}} {
		if word.is {
			words = append(words, word.text)
		}
	}
	if s.pod != "" {
		words = append(words, "pod "+string(s.pod))
	}
	return strings.Join(words, ", ") + "; boot " + s.bootID[:min(len(s.bootID), 8)] + or("; "+s.conditions, "") + or(" "+s.reason, "") + or("; "+s.why, "")
}

func or(text, without string) string {
	if text == "" || text == "; " || text == " " {
		return without
	}
	return text
}

// look reads what the API server tells of all machines. It may be away.
func (f *fleet) look(ctx context.Context) (map[string]machineState, error) {
	states := map[string]machineState{}
	var nodes corev1.NodeList
	var reports v1alpha1.LowLatencyNodeList
	var turns coordinationv1.LeaseList
	var pods corev1.PodList
	ours := []client.ListOption{client.InNamespace(controllers.DefaultAgentNamespace), client.MatchingLabels{v1alpha1.LabelComponent: v1alpha1.ComponentEnactment}}
	for _, err := range []error{
		f.api.List(ctx, &nodes), f.api.List(ctx, &reports), f.api.List(ctx, &turns, ours...), f.api.List(ctx, &pods, ours...),
	} {
		if err != nil {
			return nil, err
		}
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		states[node.Name] = machineState{
			bootID: node.Status.NodeInfo.BootID, ready: isReady(node), cordoned: node.Spec.Unschedulable,
			gated: slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.TaintUnverified }),
		}
	}
	change := func(name string, change func(*machineState)) {
		if state, known := states[name]; known {
			change(&state)
			states[name] = state
		}
	}
	for i := range reports.Items {
		change(reports.Items[i].Name, func(s *machineState) { s.report(&reports.Items[i]) })
	}
	for i := range turns.Items {
		change(turns.Items[i].Annotations[v1alpha1.AnnotationNode], func(s *machineState) { s.turn = true })
	}
	for i := range pods.Items {
		change(pods.Items[i].Annotations[v1alpha1.AnnotationNode], func(s *machineState) { s.pod = pods.Items[i].Status.Phase })
	}
	return states, nil
}

func (s *machineState) report(report *v1alpha1.LowLatencyNode) {
	if report.Status.Enactment != nil {
		enactment := report.Status.Enactment
		s.phase, s.reason, s.plan = string(enactment.Phase), enactment.Reason, enactment.InForcePlanHash
	}
	var held []string
	for _, condition := range []string{v1alpha1.ConditionApplied, v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned} {
		if meta.IsStatusConditionTrue(report.Status.Conditions, condition) {
			held = append(held, condition)
		}
	}
	s.conditions = strings.Join(held, " ")
	if jitter := meta.FindStatusCondition(report.Status.Conditions, v1alpha1.ConditionDeJittered); jitter != nil && jitter.Status == metav1.ConditionFalse {
		s.why = jitter.Message[:min(len(jitter.Message), 300)]
	}
}

// follow looks until something is true of all machines, writes a row for each change that it sees, disturbs, and asserts that no two
// machines are out at once, and that none reboots without its turn.
func (f *fleet) follow(what string, done func(map[string]machineState) bool) {
	f.t.Helper()
	f.wait(what, func() (bool, string) {
		states, err := f.look(f.t.Context())
		if err != nil {
			return false, err.Error()
		}
		var out []string
		for _, h := range f.hosts {
			name := h.machine.Name()
			state, before := states[name], f.seen[name]
			if state != before {
				f.row(name, state.String())
			}
			if before.bootID != "" && state.bootID != before.bootID && !before.turn {
				f.t.Errorf("%s has rebooted without its turn", name)
			}
			counted := f.counted[name]
			counted.count(before, state)
			f.counted[name] = counted
			if state.isChanged() {
				out = append(out, name)
			}
			if state.turn && !before.turn {
				f.expectOthersReady(states, name)
			}
			f.seen[name] = state
		}
		if len(out) > 1 {
			f.t.Errorf("%s are out at once: %v", strings.Join(out, " and "), states)
		}
		f.disturb(states)
		return done(states), fmt.Sprint(states)
	})
}

// expectOthersReady asserts that every other machine is ready when the turn of one begins. A starved machine may be not ready at any other time.
func (f *fleet) expectOthersReady(states map[string]machineState, turn string) {
	f.t.Helper()
	for _, h := range f.hosts {
		if name := h.machine.Name(); name != turn && !states[name].ready {
			f.t.Errorf("the turn of %s begins while %s is not ready", turn, name)
		}
	}
}

// all tells that something is true of every machine.
func (f *fleet) all(is func(machineState) bool) func(map[string]machineState) bool {
	return func(states map[string]machineState) bool {
		for _, h := range f.hosts {
			if !is(states[h.machine.Name()]) {
				return false
			}
		}
		return true
	}
}

// reconnect opens the shells of machines that have rebooted.
func (f *fleet) reconnect() {
	f.t.Helper()
	for _, h := range f.hosts {
		ctx, cancel := context.WithTimeout(f.t.Context(), 10*time.Minute)
		f.must(h.machine.WaitReboot(ctx, "none"))
		cancel()
	}
}
