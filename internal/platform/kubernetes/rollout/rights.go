// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"context"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// explain says of an error, which may be nil, whether the operator has no right to change hosts at all: these rights are given apart from the
// operator, and the API server names only the first that is missing. It asks the API server for the right that
// config/enactment/role.yaml stands for.
func (p *Platform) explain(ctx context.Context, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: v1alpha1.GroupVersion.Group, Resource: "hosts", Verb: "enact"},
	}}
	if failure := p.Client.Create(ctx, review); failure != nil {
		return errors.Join(err, fmt.Errorf("asking whether the operator may change hosts: %w", failure))
	}
	if review.Status.Allowed {
		return err
	}
	return fmt.Errorf("the operator has no right to change hosts: apply config/enactment/role.yaml, see docs/kubernetes.md: %w", err)
}
