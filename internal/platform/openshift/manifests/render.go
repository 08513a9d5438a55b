// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/rendering"
)

// Platform is what is known about OpenShift without a cluster.
func Platform() rendering.Platform { return rendering.Platform{Rules: Rules(), Render: Render} }

// Render writes the plans of a profile for OpenShift, with one machine config pool for each shape or the one that exists
// already.
func Render(in rendering.Request) ([]rendering.Bundle, error) {
	pools, err := poolsFor(in)
	if err != nil {
		return nil, err
	}
	bundles := make([]rendering.Bundle, 0, len(in.Shapes))
	for _, shape := range in.Shapes {
		pool := pools[shape.Hash]
		objects, err := Objects(Input{Plan: shape.Plan, MachineConfigPool: pool, Namespace: in.Namespace})
		if err != nil {
			return nil, err
		}
		carried, err := hostWriting(shape)
		if err != nil {
			return nil, err
		}
		bundles = append(bundles, rendering.Bundle{GroupType: "machine config pool", Group: pool.Name, Nodes: shape.Nodes, Objects: objects, Carried: carried})
	}
	slices.SortFunc(bundles, func(a, b rendering.Bundle) int { return cmp.Compare(a.Group, b.Group) })
	rendering.DropRepeated(bundles)
	return bundles, nil
}

// poolsFor chooses the machine config pool of each shape, by hash, as the operator does for nodes that are in none yet.
func poolsFor(in rendering.Request) (map[string]MachineConfigPool, error) {
	pools := map[string]MachineConfigPool{}
	if in.Profile.Spec.Pools.Management != v1alpha1.PoolsExisting {
		names := AssignPools(in.Profile.Name, nil, in.Shapes, nil)
		for _, shape := range in.Shapes {
			pools[shape.Hash] = ManagedMachineConfigPool(names[shape.Hash], in.Profile)
		}
		return pools, nil
	}
	if len(in.Shapes) > 1 {
		return nil, fmt.Errorf("spec.pools.management Existing binds to one machine config pool, which can carry one plan, but the nodes have %d: %s; use Managed, or a profile for each",
			len(in.Shapes), describeShapes(in.Shapes))
	}
	name := cmp.Or(in.Group, poolName(in.Profile.Spec.Pools.Existing))
	if name == "" {
		return nil, errors.New("spec.pools.existing does not give the name of the MachineConfigPool; give it with --machine-config-pool")
	}
	for _, shape := range in.Shapes {
		pools[shape.Hash] = ExistingMachineConfigPool(name, in.Profile)
	}
	return pools, nil
}

func describeShapes(shapes []fleet.Shape) string {
	texts := make([]string, 0, len(shapes))
	for _, shape := range shapes {
		texts = append(texts, shape.Hash+" ("+strings.Join(shape.Nodes, ", ")+")")
	}
	return strings.Join(texts, ", ")
}

// poolName is the name of an existing machine config pool as it follows from the labels by which machine config pools
// are known: the one that the machine-config operator puts on its machine config pools, or the role. It is "" when
// neither is among them.
func poolName(existing *v1alpha1.ExistingPool) string {
	for _, key := range slices.Sorted(maps.Keys(existing.MachineConfigPoolSelector)) {
		if name, found := strings.CutPrefix(key, poolLabelPrefix); found {
			return name
		}
	}
	return string(cmp.Or(existing.MachineConfigPoolSelector[LabelMachineConfigRole], existing.MachineConfigLabels[LabelMachineConfigRole]))
}
