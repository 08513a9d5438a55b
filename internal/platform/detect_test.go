// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package platform

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
)

// brokenMapper is a mapper whose API server does not answer.
type brokenMapper struct{ meta.RESTMapper }

var errUnreachable = errors.New("unreachable")

func (brokenMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errUnreachable
}

func TestDetect(t *testing.T) {
	pools := schema.GroupVersionKind{Group: "machineconfiguration.openshift.io", Version: "v1", Kind: "MachineConfigPool"}
	openShift := meta.NewDefaultRESTMapper(nil)
	openShift.Add(pools, meta.RESTScopeRoot)
	cases := map[string]struct {
		mapper  meta.RESTMapper
		want    Kind
		wantErr error
	}{
		"a server with machine config pools":    {mapper: openShift, want: OpenShift},
		"a server without machine config pools": {mapper: meta.NewDefaultRESTMapper(nil), want: Kubernetes},
		"a server that does not answer":         {mapper: brokenMapper{}, wantErr: errUnreachable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Detect(tc.mapper)
			if got != tc.want || !errors.Is(err, tc.wantErr) {
				t.Errorf("Detect() = %q, %v, want %q, %v", got, err, tc.want, tc.wantErr)
			}
		})
	}
}

func TestNone(t *testing.T) {
	outcome, err := None{}.Roll(t.Context(), &fleet.Intent{})
	if err != nil || len(outcome.Groups) > 0 || len(outcome.Conflicts) > 0 {
		t.Errorf("Roll() = %v, %v, want nothing", outcome, err)
	}
	pending := map[string]bool{"n1": true}
	outcome, err = None{}.Roll(t.Context(), &fleet.Intent{Pending: pending})
	if err != nil || !outcome.Turned["n1"] {
		t.Errorf("Roll() = %v, %v, want the turn of n1", outcome, err)
	}
	outcome, err = None{}.Roll(t.Context(), &fleet.Intent{Pending: pending, ReadOnly: true})
	if err != nil || len(outcome.Turned) > 0 {
		t.Errorf("Roll() of a paused profile = %v, %v, want nobody's turn", outcome, err)
	}
	rest, err := None{}.Return(t.Context(), &fleet.Intent{})
	if err != nil || !rest.Done() {
		t.Errorf("Return() = %v, %v, want nothing left", rest, err)
	}
	if watches := (None{}).Watches(); len(watches) > 0 {
		t.Errorf("Watches() = %v, want none", watches)
	}
}
