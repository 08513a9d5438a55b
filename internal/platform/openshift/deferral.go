// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

// When runtime settings reach nodes. A Tuned object acts on all nodes of a machine config pool at once, those that wait for
// their reboot included, and these are judged by what they booted with. So a change that reboots the nodes is written with the
// annotation by which the Node Tuning Operator keeps a changed profile back on each node until it boots
// (cluster-node-tuning-operator, pkg/util/annotations.go; OpenShift 4.17, before which it is not looked at). A profile that a
// node has not had before takes effect at once all the same.
const (
	annotationDeferred = "tuned.openshift.io/deferred"
	// deferredUpdate keeps back changes of the profile that a node has.
	deferredUpdate = "update"
)

// deferRuntimeSettings marks the Tuned objects of the targets whose change comes with a reboot.
func (p *Platform) deferRuntimeSettings(ctx context.Context, w *world, targets []*target) error {
	for _, t := range targets {
		at := slices.IndexFunc(t.want, func(object *unstructured.Unstructured) bool { return object.GetKind() == kindTuned })
		if t.conflict != nil || at < 0 {
			continue
		}
		isDeferred, err := p.isDeferred(ctx, w, t, t.want[at])
		if err != nil {
			return err
		}
		if isDeferred {
			// What was rendered is shared.
			t.want = slices.Clone(t.want)
			t.want[at] = withDeferral(t.want[at])
		}
	}
	return nil
}

func withDeferral(tuned *unstructured.Unstructured) *unstructured.Unstructured {
	marked := tuned.DeepCopy()
	annotations := marked.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationDeferred] = deferredUpdate
	marked.SetAnnotations(annotations)
	return marked
}

// isDeferred reports whether nodes are to wait for their reboot with the runtime settings. What was decided when the content
// was written stands until it changes: by then nodes have rebooted, and the mark says nothing about them.
func (p *Platform) isDeferred(ctx context.Context, w *world, t *target, tuned *unstructured.Unstructured) (bool, error) {
	live := w.live(tuned)
	if platform.Compare(live, tuned) != platform.ContentDiffers {
		return live.GetAnnotations()[annotationDeferred] == deferredUpdate, nil
	}
	for _, want := range t.want {
		if isBooted(want) && platform.Compare(w.live(want), want) == platform.ContentDiffers {
			return true, nil
		}
	}
	if t.live == nil {
		// Nodes have to move to the machine config pool.
		return true, nil
	}
	// Nothing that nodes boot with is to be written. Those that have been told to take what was written need no other reboot.
	for _, node := range t.nodes {
		holds, err := p.holds(ctx, w, t, node.Annotations[annotationDesiredConfig])
		if holds || err != nil {
			return false, err
		}
	}
	return len(t.nodes) > 0, nil
}

// isBooted reports whether nodes reboot for a change of an object.
func isBooted(object *unstructured.Unstructured) bool {
	return object.GetKind() == kindMachineConfig || object.GetKind() == kindKubeletConfig
}
