// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// poolState is a pool that selects the node.
type poolState struct {
	name string
	// version is the resource version of the ConfigMap that pool and problem were read from.
	version string
	// pool is nil when there is none to evaluate, for the problem.
	pool    *bypass.Pool
	problem string
}

// updatePools reads the pools of the node. A ConfigMap is decoded again only when it has changed.
func (a *Agent) updatePools(ctx context.Context, names []string) error {
	names = slices.Sorted(slices.Values(names))
	pools := make([]poolState, 0, len(names))
	for _, name := range names {
		pool, err := a.fetchPool(ctx, name)
		if err != nil {
			return err
		}
		pools = append(pools, pool)
	}
	a.pools = pools
	return nil
}

// fetchPool reads one pool. An error is one of the API server; a ConfigMap that is missing or makes no sense is a
// problem of the pool.
func (a *Agent) fetchPool(ctx context.Context, name string) (poolState, error) {
	key := types.NamespacedName{Namespace: a.Namespace, Name: v1alpha1.PoolConfigMapPrefix + name}
	configMap, err := a.Client.ConfigMap(ctx, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		return poolState{name: name, problem: fmt.Sprintf("ConfigMap %s does not exist", key)}, nil
	}
	if err != nil {
		return poolState{}, fmt.Errorf("reading BypassNICPool %q in ConfigMap %s: %w", name, key, err)
	}
	known := slices.IndexFunc(a.pools, func(p poolState) bool { return p.name == name && p.version == configMap.ResourceVersion })
	if known >= 0 {
		return a.pools[known], nil
	}
	state := poolState{name: name, version: configMap.ResourceVersion}
	decoded, err := decodePool(configMap, name)
	if err != nil {
		state.problem = fmt.Sprintf("ConfigMap %s: %s", key, err)
		return state, nil
	}
	state.pool = &decoded
	return state, nil
}

// decodePool reads a pool and makes sure that it is the one that the spec names.
func decodePool(configMap *corev1.ConfigMap, name string) (bypass.Pool, error) {
	text, ok := configMap.Data[v1alpha1.PoolKey]
	if !ok {
		return bypass.Pool{}, fmt.Errorf("it has no key %s", v1alpha1.PoolKey)
	}
	pool, err := bypass.ParsePool([]byte(text))
	if err != nil {
		return bypass.Pool{}, err
	}
	if pool.Name != name {
		return bypass.Pool{}, fmt.Errorf("it holds BypassNICPool %q, not %q", pool.Name, name)
	}
	return pool, nil
}

// isBehind reports whether one of the pools was planned with a newer spec than the one that was read.
func (a *Agent) isBehind(planned []v1alpha1.PlannedPool) bool {
	return slices.ContainsFunc(a.pools, func(state poolState) bool {
		return slices.ContainsFunc(planned, func(pool v1alpha1.PlannedPool) bool {
			return pool.Name == state.name && (state.pool == nil || state.pool.Generation < pool.Generation)
		})
	})
}

// userSpaces are the folders of the host in which the user files of the pools' stacks are looked for.
func (a *Agent) userSpaces() []string {
	var folders []string
	for _, state := range a.pools {
		if state.pool != nil {
			folders = append(folders, bypass.UserSpaceFolders(&state.pool.Spec)...)
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// observePools evaluates the pools on what the host says. The fact is that of verify.Input.Holders.
func (a *Agent) observePools(ctx context.Context, facts *host.Facts, t *topology.Topology) ([]PoolObservation, *host.Fact[[]allocation.Holder]) {
	a.nics = nicState{seen: a.nics.seen}
	if len(a.pools) == 0 {
		return nil, nil
	}
	containers := a.containers(ctx)
	all := host.Known([]allocation.Holder{}, containers.Source)
	observed := make([]PoolObservation, 0, len(a.pools))
	for _, state := range a.pools {
		if state.pool == nil {
			all = host.Absent[[]allocation.Holder]("BypassNICPool "+state.name, state.problem)
			observed = append(observed, PoolObservation{Name: state.name, Problem: state.problem})
			continue
		}
		devices := a.devices(state.pool, facts)
		for i := range devices {
			a.nics.reported = append(a.nics.reported, judgementOf(state.name, &devices[i]))
		}
		holders := bypass.Holders(*state.pool, devices, containers.Value, t)
		all.Value = append(all.Value, holders...)
		nics := reportNICs(state.pool, devices, holders)
		for i := range nics {
			nics[i].Hugepages = bypass.HugepageSupply(&state.pool.Spec, &devices[i].NIC, facts)
		}
		observed = append(observed, PoolObservation{Name: state.name, NICs: nics})
	}
	if !containers.Known {
		all = host.Absent[[]allocation.Holder](containers.Source, containers.Reason)
	}
	return observed, &all
}

// unobservedPools stand for the pools of a host that cannot be read.
func (a *Agent) unobservedPools(problem string) []PoolObservation {
	observed := make([]PoolObservation, 0, len(a.pools))
	for _, state := range a.pools {
		observed = append(observed, PoolObservation{Name: state.name, Problem: problem})
	}
	return observed
}
