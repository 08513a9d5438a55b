// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

// TestIncumbentPools: where two pools have the same resource name, both reconcilers learn which pools have NICs of any node, also
// of one that neither profile nor pool selects.
func TestIncumbentPools(t *testing.T) {
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	served := objects.MakePool("served").Obj()
	elsewhere := objects.MakeReport("n9", "other").Obj()
	elsewhere.Spec.BypassNICs = []v1alpha1.BypassNICClaim{{PCIAddress: objects.FirstPort, Pool: "served"}}
	for name, tc := range map[string]struct {
		resource string
		want     bypass.Incumbents
	}{
		"one name":  {resource: served.Spec.ResourceName, want: bypass.Incumbents{"served": true}},
		"two names": {resource: "x.example/other"},
	} {
		t.Run(name, func(t *testing.T) {
			newcomer := objects.MakePool("newcomer").Resource(tc.resource).Obj()
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(served.DeepCopy(), newcomer, elsewhere.DeepCopy()).Build()
			ofPool := &poolWorld{}
			if err := (&PoolReconciler{client: reader}).gatherPools(t.Context(), ofPool); err != nil {
				t.Fatal(err)
			}
			ofProfile := &profileWorld{}
			if err := (&ProfileReconciler{client: reader}).gatherPools(t.Context(), ofProfile); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]bypass.Incumbents{tc.want, tc.want}, []bypass.Incumbents{ofPool.Incumbents, ofProfile.Incumbents}); diff != "" {
				t.Errorf("incumbents (-want +got):\n%s", diff)
			}
		})
	}
}
