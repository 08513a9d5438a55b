// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"cmp"
	"fmt"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// RuntimeClassTaken is that the RuntimeClass of a name is that of another profile, the holder.
func RuntimeClassTaken(name, holder string) Conflict {
	return Conflict{
		Reason: v1alpha1.ReasonRuntimeClassConflict,
		Message: fmt.Sprintf("RuntimeClass %s is that of profile %s, and a RuntimeClass brings pods to the nodes of one profile only: take "+
			"spec.containerRuntime.runtimeClassName out of one of the two", name, holder),
	}
}

// RuntimeClassClaims are the names of the profiles, the given one among them, that give their RuntimeClass the name which it gives
// to its own, the oldest first; nil when there is no other.
func RuntimeClassClaims(profile *v1alpha1.LowLatencyNodeProfile, others []*v1alpha1.LowLatencyNodeProfile) []string {
	wanted := profile.Spec.ContainerRuntime.RuntimeClassName
	if wanted == "" {
		return nil
	}
	claims := []*v1alpha1.LowLatencyNodeProfile{profile}
	for _, other := range others {
		if other.Spec.ContainerRuntime.RuntimeClassName == wanted {
			claims = append(claims, other)
		}
	}
	if len(claims) == 1 {
		return nil
	}
	slices.SortFunc(claims, func(a, b *v1alpha1.LowLatencyNodeProfile) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	names := make([]string, 0, len(claims))
	for _, claim := range claims {
		names = append(names, claim.Name)
	}
	return names
}
