// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"context"
	"fmt"
	"maps"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// renewal is what was seen of a kubelet's Lease when the guard of its node came to rest.
type renewal struct {
	rest rest
	// at is the Lease's renewTime then, by the clock of the node; nil where it had none.
	at *metav1.MicroTime
}

// rest is a state of a guard in a turn. Another one is another thing that the guard has done, after which the kubelet has to show again that it
// lives.
type rest struct {
	turn   types.UID
	number int64
	phase  v1alpha1.EnactmentPhase
	bootID string
}

func restOf(turn *coordinationv1.Lease, report *v1alpha1.LowLatencyNode) rest {
	r := rest{turn: turn.UID}
	if report != nil && report.Status.Enactment != nil {
		enacted := report.Status.Enactment
		r.number, r.phase, r.bootID = enacted.Number, enacted.Phase, enacted.BootID
	}
	return r
}

// gatherRenewals finds out whose kubelets have not shown yet that they live, of the nodes whose turn may end: a kubelet that was started anew and
// does not come up leaves the condition Ready True until its Lease has expired and the node controller has waited (40 s and more).
func (p *Platform) gatherRenewals(ctx context.Context, w *world) {
	p.forgetRenewals(w)
	for name, turn := range w.turns {
		if w.issued[name] == nil && w.profileOf(w.known[name]) == w.limits.Profile {
			w.unrenewed[name] = p.unrenewed(ctx, name, restOf(turn, w.reports[name]))
		}
	}
}

// unrenewed says why nothing tells that the kubelet of a node lives since its guard is at rest; "" when its Lease was renewed since. Renewals
// are told apart and not compared with a clock. An operator that starts anew waits for one more.
func (p *Platform) unrenewed(ctx context.Context, node string, of rest) string {
	name := client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: node}
	lease := &coordinationv1.Lease{}
	err := p.Live.Get(ctx, name, lease)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("whether its kubelet lives is not known: there is no Lease %s", name)
	case err != nil:
		return fmt.Sprintf("whether its kubelet lives is not known: reading Lease %s: %v", name, err)
	case p.isRenewed(node, renewal{of, lease.Spec.RenewTime.DeepCopy()}):
		return ""
	default:
		return fmt.Sprintf("its kubelet is awaited, which has not renewed Lease %s yet", name)
	}
}

// isRenewed reports whether a kubelet has renewed its Lease since its guard is at rest, which is remembered.
func (p *Platform) isRenewed(node string, seen renewal) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	first, found := p.renewals[node]
	if !found || first.rest != seen.rest {
		p.renewals[node] = seen
		return false
	}
	return !first.at.Equal(seen.at)
}

// forgetRenewals forgets nodes whose turn is over.
func (p *Platform) forgetRenewals(w *world) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	maps.DeleteFunc(p.renewals, func(node string, _ renewal) bool { return w.turns[node] == nil })
}
