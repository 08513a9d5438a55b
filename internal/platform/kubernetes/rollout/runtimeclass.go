// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"

	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/apply"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/crioconfig"
)

// offerHandler keeps the RuntimeClass by which pods ask for the handler of CRI-O, as long as a node with a plan of the profile has that
// runtime or nobody knows which one it has. It returns what keeps the class from the profile.
func (p *Platform) offerHandler(ctx context.Context, w *world) ([]fleet.Conflict, error) {
	var wanted *nodev1.RuntimeClass
	isKnown := true
	for i := range w.intent.Shapes {
		shape := &w.intent.Shapes[i]
		for _, name := range shape.Nodes {
			switch runtime, known := w.runtimeOf(name); {
			case !known:
				isKnown = false
			case runtime == v1alpha1.NodeContainerRuntimeCRIO:
				wanted = crioconfig.RuntimeClass(shape.Plan, shape.Hash)
			}
		}
	}
	switch {
	case w.intent.ReadOnly:
		return nil, nil
	case wanted != nil:
		conflicts, err := p.keepClass(ctx, wanted)
		return conflicts, errors.Join(err, p.removeClasses(ctx, w.limits.Profile, wanted.Name))
	case !isKnown:
		return nil, nil
	default:
		return nil, p.removeClasses(ctx, w.limits.Profile, "")
	}
}

// runtimeOf is the container runtime of a node, "" for one without a service of its own, as far as its agent has said.
func (w *world) runtimeOf(node string) (v1alpha1.NodeContainerRuntime, bool) {
	report := w.reports[node]
	if report == nil || report.Status.Software == nil {
		return "", false
	}
	return report.Status.Software.ContainerRuntime, true
}

// keepClass makes a RuntimeClass what it is to be. One of another profile or of somebody else stays as it is.
func (p *Platform) keepClass(ctx context.Context, wanted *nodev1.RuntimeClass) ([]fleet.Conflict, error) {
	desired, err := apply.Object(wanted)
	if err != nil {
		return nil, err
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(desired.GroupVersionKind())
	err = p.Live.Get(ctx, client.ObjectKeyFromObject(desired), live)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading RuntimeClass %s: %w", wanted.Name, err)
	case err != nil:
		return nil, platform.Apply(ctx, p.Client, desired)
	case !platform.IsOurs(live):
		return []fleet.Conflict{{Reason: v1alpha1.ReasonRuntimeClassConflict, Message: fmt.Sprintf(
			"RuntimeClass %s exists and was not made by the operator, which does not overwrite it: delete it", wanted.Name)}}, nil
	case live.GetLabels()[v1alpha1.LabelProfile] != wanted.Labels[v1alpha1.LabelProfile]:
		return []fleet.Conflict{fleet.RuntimeClassTaken(wanted.Name, live.GetLabels()[v1alpha1.LabelProfile])}, nil
	case platform.Compare(live, desired) == platform.Same:
		return nil, nil
	default:
		return nil, platform.Apply(ctx, p.Client, desired)
	}
}

// removeClasses removes the RuntimeClasses of a profile but the one of a name. Pods that run keep theirs.
func (p *Platform) removeClasses(ctx context.Context, profile, but string) error {
	var classes nodev1.RuntimeClassList
	ours := client.MatchingLabels{v1alpha1.LabelProfile: profile, v1alpha1.LabelManagedBy: v1alpha1.ProjectName}
	if err := p.Cache.List(ctx, &classes, ours); err != nil {
		return fmt.Errorf("listing RuntimeClasses: %w", err)
	}
	classes.Items = slices.DeleteFunc(classes.Items, func(class nodev1.RuntimeClass) bool { return class.Name == but })
	var failures []error
	for i := range classes.Items {
		uid := classes.Items[i].UID
		failures = append(failures, p.remove(ctx, &classes.Items[i], client.Preconditions{UID: &uid}))
	}
	return errors.Join(failures...)
}
