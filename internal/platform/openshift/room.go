// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
)

// How many nodes may be unavailable. The machine-config operator counts the unavailable nodes of each machine config pool by
// itself, so that three pools with a limit of one take three nodes down at once. The operator therefore lets a pool go only
// when the nodes that it may take down fit into what the others leave of the limit of the profile; until then it holds it,
// paused and completely written. Nodes of other profiles count while they are being changed. A pool that rolls for another
// reason, such as an update of the cluster, is not held.

// load is what one machine config pool takes of the limit.
type load struct {
	// changing nodes are unavailable or were told to change; waiting ones may be told at any moment.
	changing, waiting int
	// limit is what the machine-config operator keeps to within the pool.
	limit int
}

// size is how many nodes of the pool are or may become unavailable.
func (l load) size() int { return l.changing + min(l.waiting, max(l.limit-l.changing, 0)) }

// room is what is left of the limit of a profile.
type room struct {
	limit int
	loads map[string]load
}

// roomOf looks at all nodes of all profiles.
func roomOf(w *world, intent *fleet.Intent) *room {
	r := &room{limit: int(max(intent.Profile.Spec.Pools.MaximumUnavailableNodes, 1)), loads: map[string]load{}}
	for _, node := range intent.Nodes {
		pool := w.changedBy(node)
		if pool == "" {
			continue
		}
		l := r.loads[pool]
		switch mcp := w.pools[pool]; {
		case isChanging(node) || isUnready(node) && node.Labels[v1alpha1.LabelProfile] == intent.Profile.Name || node.Labels[v1alpha1.LabelProfile] == "":
			l.changing++
		case mcp != nil && !w.isPaused(mcp) && node.Annotations[annotationDesiredConfig] != mcp.Spec.Configuration.Name:
			l.waiting++
		}
		l.limit = poolLimit(w.pools[pool])
		r.loads[pool] = l
	}
	return r
}

// changedBy is the machine config pool because of which the operator changes a node: the managed one that it is in, or was in
// until it was released; or, for all existing pools together, that of its profile. It is "" for other nodes.
func (w *world) changedBy(node *corev1.Node) string {
	if pool := node.Labels[v1alpha1.LabelPool]; pool != "" {
		return pool
	}
	if profile := node.Labels[v1alpha1.LabelProfile]; profile != "" {
		return "of profile " + profile
	}
	return w.formerPool(node)
}

// formerPool is the managed machine config pool whose configuration a node still has after it was released.
func (w *world) formerPool(node *corev1.Node) string {
	current := node.Annotations[annotationCurrentConfig]
	at := strings.LastIndex(current, "-")
	name, found := strings.CutPrefix(current[:max(at, 0)], "rendered-")
	if pool := w.pools[name]; found && pool != nil && owner(pool) != "" {
		return name
	}
	return ""
}

// isPaused reports whether the machine-config operator leaves a pool alone. One that the operator has let go a moment ago does
// not count as paused, even if the cache does not show it yet.
func (w *world) isPaused(pool *mcfgv1.MachineConfigPool) bool {
	return pool.Spec.Paused && !w.letGo[pool.Name]
}

// isChanging reports whether the node was told to take a configuration that it does not have.
func isChanging(node *corev1.Node) bool {
	return node.Annotations[annotationDesiredConfig] != node.Annotations[annotationCurrentConfig]
}

func isUnready(node *corev1.Node) bool {
	ready := fleet.NodeReadiness(node)
	return ready != "" && ready != corev1.ConditionTrue
}

// poolLimit is how many nodes of a machine config pool may be unavailable: one, unless the pool says otherwise
// (machine-config-operator, pkg/controller/node, maxUnavailable).
func poolLimit(pool *mcfgv1.MachineConfigPool) int {
	if pool == nil || pool.Spec.MaxUnavailable == nil {
		return 1
	}
	limit, err := intstr.GetScaledValueFromIntOrPercent(pool.Spec.MaxUnavailable, int(pool.Status.MachineCount), false)
	if err != nil {
		return 1
	}
	return max(limit, 1)
}

// others is how much all other machine config pools take.
func (r *room) others(pool string) int {
	sum := 0
	for name, l := range r.loads {
		if name != pool {
			sum += l.size()
		}
	}
	return sum
}

// left is how many more nodes may become unavailable.
func (r *room) left() int { return r.limit - r.others("") }

// take reserves room for nodes of a machine config pool that are about to change, and reports whether there is enough. A pool
// takes as many as it may have down at once.
func (r *room) take(t *target) bool {
	l := load{limit: r.limit, changing: r.loads[t.name()].changing}
	if !t.managed() {
		l.limit = poolLimit(t.live)
	}
	for _, node := range t.nodes {
		if !isChanging(node) && node.Annotations[annotationDesiredConfig] != t.live.Spec.Configuration.Name {
			l.waiting++
		}
	}
	if l.waiting > 0 && r.others(t.name())+l.size() > max(r.limit, l.limit) {
		return false
	}
	r.loads[t.name()] = l
	return true
}

// busy says what takes the room.
func (r *room) busy(pool string) string {
	var names []string
	for _, name := range sortedKeys(r.loads) {
		if name != pool && r.loads[name].size() > 0 {
			names = append(names, name)
		}
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

// queued says why a machine config pool waits.
func (r *room) queued(t *target) string {
	return fmt.Sprintf("MachineConfigPool %s is written and waits for its turn: nodes of %s change or are not ready, and at most %d may be "+
		"unavailable at the same time (spec.pools.maximumUnavailableNodes)", t.name(), r.busy(t.name()), r.limit)
}

// joining bounds the nodes that are put into a machine config pool that is not held: they change as soon as they are in it.
func (r *room) joining(t *target, steps []step) (now []step, waiting int) {
	for _, s := range steps {
		if s.label.Labels[v1alpha1.LabelPool] == s.pool {
			now = append(now, s)
			continue
		}
		l := r.loads[t.name()]
		if r.others(t.name())+l.size() >= r.limit {
			waiting++
			continue
		}
		l.changing++
		r.loads[t.name()] = l
		now = append(now, s)
	}
	return now, waiting
}

// freedPools remembers which machine config pools the operator has let go until the cache shows it: a decision about another
// pool, or of another profile, on an older view would count them as held.
type freedPools struct {
	mutex sync.Mutex
	// versions are the resource versions that were let go, by the name of the machine config pool.
	versions map[string]string
}

// note remembers that a version of a machine config pool was let go.
func (f *freedPools) note(pool, version string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.versions == nil {
		f.versions = map[string]string{}
	}
	f.versions[pool] = version
}

// unseen are the machine config pools of which the cache shows the version that was let go, and forgets the others.
func (f *freedPools) unseen(pools map[string]*mcfgv1.MachineConfigPool) map[string]bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	unseen := map[string]bool{}
	for name, version := range f.versions {
		if pool := pools[name]; pool != nil && pool.ResourceVersion == version {
			unseen[name] = true
		} else {
			delete(f.versions, name)
		}
	}
	return unseen
}
