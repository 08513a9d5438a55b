// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"fmt"
	"maps"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
)

// renderings remembers what was rendered last of each plan that is in use and for each machine config pool, so that an event
// that changes no plan costs no rendering.
type renderings struct {
	// render makes the objects of an input.
	render  renderer
	mutex   sync.Mutex
	results map[renderingOf]rendering
	// limit is the number of results at which those of plans that are no longer in use are looked for.
	limit int
}

// renderingOf is what has one rendering. Plans are compared by identity: equal plans are one object.
type renderingOf struct {
	plan weak.Pointer[plan.NodePlan]
	pool string
}

// rendering is a result, and what else it was made from.
type rendering struct {
	limit int32
	// labels are those of an existing machine config pool, printed.
	labels  string
	objects []*unstructured.Unstructured
}

// minimumRenderings is how many results are remembered before the first look for those of former plans.
const minimumRenderings = 32

// objects renders an input, or returns what it was rendered to before. The result is shared: not to be changed.
func (r *renderings) objects(in manifests.Input) ([]*unstructured.Unstructured, error) {
	id := renderingOf{plan: weak.Make(in.Plan), pool: string(in.MachineConfigPool.Management) + "/" + in.MachineConfigPool.Name}
	made := rendering{
		limit:  in.MachineConfigPool.MaximumUnavailableNodes,
		labels: fmt.Sprint(in.MachineConfigPool.PoolSelector, in.MachineConfigPool.MachineConfigLabels),
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if last, found := r.results[id]; found && last.limit == made.limit && last.labels == made.labels {
		return last.objects, nil
	}
	objects, err := r.render(in)
	if err != nil {
		return nil, err
	}
	made.objects = objects
	r.put(id, made)
	return objects, nil
}

func (r *renderings) put(id renderingOf, made rendering) {
	if len(r.results) >= max(r.limit, minimumRenderings) {
		maps.DeleteFunc(r.results, func(of renderingOf, _ rendering) bool { return of.plan.Value() == nil })
		r.limit = 2 * len(r.results)
	}
	if r.results == nil {
		r.results = map[renderingOf]rendering{}
	}
	r.results[id] = made
}
