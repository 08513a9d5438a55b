// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"context"
	"slices"
	"sync"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

// When a node's turn has come. The machine-config operator tells a node to change by its annotation desiredConfig, which
// it sets to the rendered configuration of the node's machine config pool when that is not paused and has room for one more
// unavailable node (machine-config-operator, pkg/controller/node, updateCandidateMachines); the daemon of the node then
// drains and reboots it, whether or not the pool is paused meanwhile. So the turn for a plan has come when the configuration
// that desiredConfig names holds what was written for the plan. Contents are compared, not names: a configuration may be
// rendered again for another reason before the node is told, and a plan may differ from its predecessor in nothing that is
// rendered; then no reboot is needed, and the turn comes when the objects are written.

// asksTurn reports whether a node of the target may have got its turn, as far as the cache tells.
func (w *world) asksTurn(t *target, intent *fleet.Intent, node *corev1.Node) bool {
	return intent.Pending[node.Name] && (!t.managed() || node.Labels[v1alpha1.LabelPool] == t.name())
}

// isWritten reports whether every object of the target is as wanted, and the machine-config operator has taken in the
// KubeletConfig, which it answers after it has made a MachineConfig of it.
func (w *world) isWritten(t *target) bool {
	if t.conflict != nil || t.live == nil {
		return false
	}
	for _, want := range t.want {
		if platform.Compare(w.live(want), want) == platform.ContentDiffers {
			return false
		}
	}
	kubelet := w.kubeletConfig(t.name())
	return kubelet != nil && kubelet.status.accepted(kubelet.generation)
}

// gatherTurns finds the pending nodes whose turn has come.
func (p *Platform) gatherTurns(ctx context.Context, w *world, intent *fleet.Intent, targets []*target) (map[string]bool, error) {
	turned := map[string]bool{}
	for _, t := range targets {
		nodes := slices.DeleteFunc(slices.Clone(t.nodes), func(node *corev1.Node) bool { return !w.asksTurn(t, intent, node) })
		if len(nodes) == 0 || !w.isWritten(t) {
			continue
		}
		for _, node := range nodes {
			holds, err := p.holds(ctx, w, t, node.Annotations[annotationDesiredConfig])
			if err != nil {
				return nil, err
			}
			if holds {
				turned[node.Name] = true
			}
		}
	}
	return turned, nil
}

// holding identifies a question about a rendered configuration. The rest of what the answer depends on never changes under
// these names, or changes what the machine config pool is rendered to.
type holding struct {
	config, rendered, planHash string
	kubelet                    types.UID
	generation                 int64
}

// maximumHoldings bounds what is remembered. While a pool rolls, its nodes are told to take two configurations.
const maximumHoldings = 1024

// holdings remembers what was found in rendered configurations, so that the event of one node costs no request.
type holdings struct {
	mutex sync.Mutex
	known map[holding]bool
}

func (h *holdings) get(id holding) (holds, found bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	holds, found = h.known[id]
	return holds, found
}

func (h *holdings) put(id holding, holds bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.known == nil || len(h.known) >= maximumHoldings {
		h.known = map[holding]bool{}
	}
	h.known[id] = holds
}

// heldBy is the question whether a rendered configuration holds what was written for the plan of a target.
func heldBy(w *world, t *target, config string) holding {
	kubelet := w.kubeletConfig(t.name())
	return holding{
		config: config, rendered: t.live.Spec.Configuration.Name, planHash: t.shape.Hash, kubelet: kubelet.uid, generation: kubelet.generation,
	}
}

// holds reports whether a rendered configuration holds what was written for the plan of a target.
func (p *Platform) holds(ctx context.Context, w *world, t *target, config string) (bool, error) {
	id := heldBy(w, t, config)
	if known, found := p.holdings.get(id); found {
		return known, nil
	}
	rendered, err := p.machineConfig(ctx, config)
	if rendered == nil || err != nil {
		return false, err
	}
	holds, err := p.holdsAll(ctx, w, t, rendered, id.kubelet)
	if err != nil {
		return false, err
	}
	p.holdings.put(id, holds)
	return holds, nil
}

// holdsAll compares a rendered configuration with our MachineConfig and with the one that was made of our KubeletConfig.
func (p *Platform) holdsAll(ctx context.Context, w *world, t *target, rendered *mcfgv1.MachineConfig, kubelet types.UID) (bool, error) {
	own, err := w.ownMachineConfig(t.name())
	if own == nil || err != nil || lacks(rendered, own) != "" {
		return false, err
	}
	for _, source := range kubeletSources(t.live) {
		config, err := p.machineConfig(ctx, source)
		if err != nil {
			return false, err
		}
		if config == nil || !ownedBy(config, kubelet) {
			continue
		}
		if lacks(rendered, config) != "" {
			return false, nil
		}
		// A configuration from before something was taken out holds all that is left.
		sources, err := p.sources(ctx, t.live)
		return evidence{rendered: rendered, sources: sources}.excess() == "", err
	}
	return false, nil
}
