// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/enactment"
	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes/signingkey"
)

// gatherKey reads the key that signs instructions. It is read each time, because somebody may have put another in its place, and is nil where
// there is none. One that cannot be read says nothing about the nodes: what needs it fails.
func (p *Platform) gatherKey(ctx context.Context, w *world) {
	secret := &corev1.Secret{}
	name := client.ObjectKey{Namespace: p.Namespace, Name: signingkey.SecretName}
	switch err := p.Live.Get(ctx, name, secret); {
	case apierrors.IsNotFound(err):
	case err != nil:
		w.keyError = fmt.Errorf("reading the key that signs instructions from Secret %s: %w", name, err)
	default:
		if w.key, err = signingkey.Read(secret); err != nil {
			w.keyError = fmt.Errorf("reading the key that signs instructions: %w: %w", err, platform.ErrUnusable)
		}
	}
}

// keyOf says how the key of a guard stands to the operator's.
func (p *Platform) keyOf(w *world, n *enactment.Node) {
	if w.keyError != nil {
		return
	}
	switch w.key.StandingOf(n.Reported) {
	case signingkey.Current:
		n.HasCurrentKey = true
	case signingkey.Former:
		n.HasFormerKey = true
	case signingkey.Strange:
		n.Estranged = w.key.Estrangement(p.Namespace, n.Reported.Key)
	case signingkey.Unknown:
	}
	if n.Issued != nil && n.Issued.Action != enactment.MoveKey && w.key != nil {
		n.Issued.IsOutdated = instruction.KeyID(w.issued[n.Name].BinaryData[PublicKeyEntry]) != w.key.Last.ID()
	}
}

// signingKey is the key, which is made where no guard has one yet. Where one has, somebody has lost it: another would be of no use.
func (p *Platform) signingKey(ctx context.Context, w *world) (*signingkey.Key, error) {
	if w.key != nil || w.keyError != nil {
		return w.key, w.keyError
	}
	for _, report := range w.reports {
		if enacted := report.Status.Enactment; enacted != nil && enacted.Key != nil {
			return nil, errors.New(w.key.Estrangement(p.Namespace, enacted.Key))
		}
	}
	made, err := signingkey.New(rand.Reader)
	if err != nil {
		return nil, err
	}
	// When there is one by now, it is read the next time.
	if err := p.Client.Create(ctx, made.Secret(p.Namespace)); err != nil {
		return nil, fmt.Errorf("making the key that signs instructions: %w", err)
	}
	w.key = made
	return made, nil
}

// tellKey puts the key there, and a pod that tells the guard of it.
func (p *Platform) tellKey(ctx context.Context, w *world, node *corev1.Node, step enactment.Step) error {
	if w.key == nil {
		return fmt.Errorf("node %s is to be told of a key, and there is none", node.Name)
	}
	return p.issue(ctx, node, p.configMap(w, node, w.key, step.Number, enactment.MoveKey))
}

// hasGuards reports whether a guard of a node of the profile has been given a key: then somebody may put another in its place at any time.
func (w *world) hasGuards() bool {
	for name, report := range w.reports {
		if w.known[name].Labels[v1alpha1.LabelProfile] == w.limits.Profile && report.Status.Enactment != nil && report.Status.Enactment.Key != nil {
			return true
		}
	}
	return false
}
