// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// Only files that the host brings are looked for on it.
func TestUserSpaceFolders(t *testing.T) {
	cases := map[string]struct {
		stack v1alpha1.BypassStack
		want  []string
	}{
		"Onload of the host":        {v1alpha1.BypassStack{Type: v1alpha1.StackOnload, Onload: &v1alpha1.OnloadStack{UserSpace: v1alpha1.UserSpaceSpec{Source: v1alpha1.UserSpaceHostPath, HostPath: "/opt/onload"}}}, []string{"/opt/onload"}},
		"Onload of the application": {v1alpha1.BypassStack{Type: v1alpha1.StackOnload, Onload: &v1alpha1.OnloadStack{UserSpace: v1alpha1.UserSpaceSpec{Source: v1alpha1.UserSpaceApplication}}}, nil},
		"VFIO":                      {v1alpha1.BypassStack{Type: v1alpha1.StackVFIO, VFIO: &v1alpha1.VFIOStack{}}, nil},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, UserSpaceFolders(&v1alpha1.BypassNICPoolSpec{Stack: tc.stack}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
