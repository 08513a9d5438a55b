// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

// inspect looks for what others have added to the objects of the targets, or made in their place. A target whose objects
// must not be written has a conflict from then on, and comes back as one.
func (p *Platform) inspect(ctx context.Context, w *world, targets []*target) ([]fleet.Conflict, error) {
	w.inspections = map[key]*platform.Inspection{}
	var conflicts []fleet.Conflict
	for _, t := range targets {
		if t.conflict != nil {
			continue
		}
		if err := p.inspectTarget(ctx, w, t); err != nil {
			return nil, err
		}
		if t.conflict != nil {
			conflicts = append(conflicts, *t.conflict)
		}
	}
	return conflicts, nil
}

func (p *Platform) inspectTarget(ctx context.Context, w *world, t *target) error {
	found, err := p.inspectPool(ctx, t)
	if err != nil {
		return err
	}
	t.take(found)
	for _, want := range t.want {
		found, err := p.keeper.Inspect(ctx, w.live(want), want)
		if err != nil {
			return err
		}
		w.note(want, found)
		t.take(found)
	}
	return nil
}

// take keeps the first conflict that was found.
func (t *target) take(found *platform.Inspection) {
	if found != nil && found.Conflict != "" && t.conflict == nil {
		t.conflict = &fleet.Conflict{Reason: v1alpha1.ReasonObjectConflict, Message: found.Conflict}
	}
}

// inspectPool looks for what others have added to the selectors of a managed machine config pool: they decide which nodes
// it holds and what these get. The rest of its spec is open to the machine-config operator and the administrator.
func (p *Platform) inspectPool(ctx context.Context, t *target) (*platform.Inspection, error) {
	if !t.managed() || t.live == nil || sameSelectors(t.live, t.pool) {
		return nil, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t.live)
	if err != nil {
		return nil, fmt.Errorf("converting MachineConfigPool %s: %w", t.name(), err)
	}
	live := &unstructured.Unstructured{Object: fields}
	live.SetGroupVersionKind(t.poolObject.GroupVersionKind())
	t.selectors, err = p.keeper.Inspect(ctx, live, t.poolObject, "nodeSelector", "machineConfigSelector")
	return t.selectors, err
}

// note keeps what was found out about an object. What the cache did not have yet is in the world from then on.
func (w *world) note(want *unstructured.Unstructured, found *platform.Inspection) {
	at := key{want.GetKind(), want.GetName()}
	w.inspections[at] = found
	if found.Live != nil && found.Conflict == "" {
		w.objects[at] = found.Live
	}
}

// inspection is what is known about an object that is to be written.
func (w *world) inspection(want *unstructured.Unstructured) *platform.Inspection {
	return w.inspections[key{want.GetKind(), want.GetName()}]
}

// write is the step that makes an object what is wanted.
func (w *world) write(want *unstructured.Unstructured) step {
	return step{apply: want, inspection: w.inspection(want)}
}

// isFought reports whether the operator waits for another writer, whose objects are not watched.
func (t *target) isFought() bool {
	return t.conflict != nil && t.conflict.Reason == v1alpha1.ReasonObjectConflict
}
