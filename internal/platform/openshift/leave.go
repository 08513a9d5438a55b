// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"fmt"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
)

// returnInterval is after how long to look again at nodes that are being given back. What they wait for is watched;
// this is for what is not, such as the end of a deletion by somebody else.
const returnInterval = 30 * time.Second

// ownPools are the names of the machine config pools that the profile has to do with, ascending: its managed machine
// config pools, and machine config pools of others for which objects of the profile exist.
func (w *world) ownPools(profile string) []string {
	names := map[string]bool{}
	for name, pool := range w.pools {
		if owner(pool) == profile {
			names[name] = true
		}
	}
	for k := range w.objects {
		if name, found := poolOfObject(k); found {
			names[name] = true
		}
	}
	return sortedKeys(names)
}

// poolOfObject finds the machine config pool for which an object was rendered in the object's name.
func poolOfObject(k key) (string, bool) {
	prefix := ""
	switch k.kind {
	case kindMachineConfig:
		prefix = manifests.MachineConfigName("")
	case kindKubeletConfig:
		prefix = manifests.KubeletConfigName("")
	case kindTuned:
		prefix = manifests.TunedName("")
	default:
		return "", false
	}
	return strings.CutPrefix(k.name, prefix)
}

// leave removes what the profile has in a machine config pool, as far as that is possible now.
func (w *world) leave(name string, intent *fleet.Intent) ([]step, fleet.Remainder) {
	pool := w.pools[name]
	if pool != nil && owner(pool) == "" {
		return w.leaveExisting(pool)
	}
	return w.leaveManaged(name, intent)
}

// leaveManaged removes a machine config pool of our own. It goes last, and only when no node has
// one of its rendered configurations any more: these disappear with the machine config pool, and a machine-config
// daemon whose current configuration is gone is stuck.
func (w *world) leaveManaged(name string, intent *fleet.Intent) ([]step, fleet.Remainder) {
	pool := w.pools[name]
	var nodes []string
	for _, node := range sortedKeys(intent.Nodes) {
		if intent.Nodes[node].Labels[v1alpha1.LabelPool] == name || hasConfigOf(intent.Nodes[node], name) {
			nodes = append(nodes, node)
		}
	}
	switch {
	case len(nodes) > 0:
		return nil, fleet.Remainder{Nodes: nodes, RetryAfter: returnInterval, Waiting: leaving(intent, name, nodes)}
	case pool != nil && pool.Status.MachineCount > 0:
		return nil, fleet.Remainder{RetryAfter: returnInterval,
			Waiting: fmt.Sprintf("MachineConfigPool %s still counts %d nodes", name, pool.Status.MachineCount)}
	}
	if steps, rest := w.removeObjects(name); !rest.Done() {
		return steps, rest
	}
	if pool == nil {
		return nil, fleet.Remainder{}
	}
	return removal(asReference(pool))
}

func leaving(intent *fleet.Intent, pool string, nodes []string) string {
	message := fmt.Sprintf("nodes %s are leaving MachineConfigPool %s", fleet.Names(nodes), pool)
	for _, node := range nodes {
		if why := intent.Held[node]; why != "" {
			return message + fmt.Sprintf("; node %s stays meanwhile, because %s", node, why)
		}
	}
	return message
}

// leaveExisting removes our objects from a machine config pool of somebody else, with one reboot: the machine config
// pool is held until its rendered configuration has neither of them.
func (w *world) leaveExisting(pool *mcfgv1.MachineConfigPool) ([]step, fleet.Remainder) {
	steps, rest := w.removeObjects(pool.Name)
	if len(steps) > 0 && !heldByUs(pool) {
		steps = slices.Concat([]step{{apply: paused(poolReference(pool), "none")}}, steps)
	}
	switch {
	case !rest.Done():
		return steps, rest
	case heldByUs(pool) && w.stillRendered(pool):
		return nil, fleet.Remainder{RetryAfter: returnInterval,
			Waiting: fmt.Sprintf("MachineConfigPool %s is paused until its configuration is rendered without our objects", pool.Name)}
	case heldByUs(pool):
		return []step{{apply: poolReference(pool)}}, fleet.Remainder{RetryAfter: returnInterval,
			Waiting: fmt.Sprintf("MachineConfigPool %s begins to roll back", pool.Name)}
	default:
		return nil, rolledBack(pool)
	}
}

// rolledBack says whether the nodes of a machine config pool have what it holds now.
func rolledBack(pool *mcfgv1.MachineConfigPool) fleet.Remainder {
	switch {
	case updated(pool):
		return fleet.Remainder{}
	case pool.Spec.Paused:
		return fleet.Remainder{RetryAfter: returnInterval,
			Waiting: fmt.Sprintf("MachineConfigPool %s is paused by its administrator: its nodes are rolled back when it is resumed", pool.Name)}
	default:
		return fleet.Remainder{RetryAfter: returnInterval,
			Waiting: fmt.Sprintf("MachineConfigPool %s has rolled back %d of %d nodes", pool.Name,
				pool.Status.UpdatedMachineCount, pool.Status.MachineCount)}
	}
}

// stillRendered reports whether the machine config pool's configuration was merged from a MachineConfig that is gone.
func (w *world) stillRendered(pool *mcfgv1.MachineConfigPool) bool {
	return hasSource(pool, manifests.MachineConfigName(pool.Name)) ||
		len(w.kubelets[pool.Name]) < len(kubeletSources(pool))
}

// removeObjects deletes the objects that were rendered for a machine config pool. They remain until the API server has
// let them go: the machine-config operator has a finalizer on KubeletConfigs, by which it deletes what it made.
func (w *world) removeObjects(pool string) ([]step, fleet.Remainder) {
	var steps []step
	var rest fleet.Remainder
	for _, k := range w.objectKeys() {
		if name, found := poolOfObject(k); !found || name != pool {
			continue
		}
		more, remaining := removal(w.objects[k])
		steps = append(steps, more...)
		rest.Objects = append(rest.Objects, remaining.Objects...)
	}
	rest.RetryAfter = returnInterval
	if len(rest.Objects) > 0 {
		rest.Waiting = "removing " + fleet.Names(rest.Objects)
	}
	return steps, rest
}

// removal deletes an object unless that has been asked for already.
func removal(object *unstructured.Unstructured) ([]step, fleet.Remainder) {
	rest := fleet.Remainder{Objects: []string{platform.Describe(object)}, RetryAfter: returnInterval,
		Waiting: "removing " + platform.Describe(object)}
	if object.GetDeletionTimestamp() != nil {
		return nil, rest
	}
	return []step{{remove: object}}, rest
}

// objectKeys are the objects in the order in which they are removed: what makes nodes reboot first.
func (w *world) objectKeys() []key {
	keys := make([]key, 0, len(w.objects))
	for k := range w.objects {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int { return strings.Compare(b.kind+"/"+b.name, a.kind+"/"+a.name) })
	return keys
}

// asReference is what identifies a machine config pool for deletion.
func asReference(pool *mcfgv1.MachineConfigPool) *unstructured.Unstructured {
	reference := poolReference(pool)
	reference.SetDeletionTimestamp(pool.DeletionTimestamp)
	return reference
}

// decideReturn decides what to give back now. Nodes go back to the machine config pool worker all at once, which rolls
// them as its own limit says; those that another profile takes over are moved by that profile.
func decideReturn(w *world, intent *fleet.Intent) ([]step, fleet.Remainder) {
	var steps []step
	var rest fleet.Remainder
	for _, name := range sortedKeys(intent.Nodes) {
		node := intent.Nodes[name]
		if node.Labels[v1alpha1.LabelProfile] == intent.Profile.Name && node.Labels[v1alpha1.LabelPool] != "" && intent.Held[name] == "" {
			steps = append(steps, step{label: node, profile: intent.Profile.Name})
		}
	}
	for _, name := range w.poolsToReturn(intent) {
		more, left := w.leave(name, intent)
		steps = append(steps, more...)
		rest = merge(rest, left)
	}
	if rest.Done() {
		for _, k := range w.objectKeys() {
			more, left := removal(w.objects[k])
			steps = append(steps, more...)
			rest = merge(rest, left)
		}
	}
	return steps, rest
}

// poolsToReturn adds the machine config pool of somebody else to which the profile is bound: its nodes have to roll
// back after our last object is gone.
func (w *world) poolsToReturn(intent *fleet.Intent) []string {
	names := w.ownPools(intent.Profile.Name)
	if intent.Profile.Spec.Pools.Management != v1alpha1.PoolsExisting {
		return names
	}
	if pool, conflict := w.findExistingPool(intent.Profile); conflict == nil && !slices.Contains(names, pool.Name) {
		names = append(names, pool.Name)
	}
	return names
}

func merge(a, b fleet.Remainder) fleet.Remainder {
	waiting := []string{a.Waiting, b.Waiting}
	nodes := slices.Concat(a.Nodes, b.Nodes)
	slices.Sort(nodes)
	return fleet.Remainder{
		Nodes:      slices.Compact(nodes),
		Objects:    slices.Concat(a.Objects, b.Objects),
		Waiting:    strings.Join(slices.DeleteFunc(waiting, func(text string) bool { return text == "" }), "; "),
		RetryAfter: max(a.RetryAfter, b.RetryAfter),
	}
}
