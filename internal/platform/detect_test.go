// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package platform

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
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

func TestChoose(t *testing.T) {
	openShift := meta.NewDefaultRESTMapper(nil)
	openShift.Add(schema.GroupVersionKind{Group: "machineconfiguration.openshift.io", Version: "v1", Kind: "MachineConfigPool"}, meta.RESTScopeRoot)
	plain := meta.NewDefaultRESTMapper(nil)
	cases := map[string]struct {
		asked  Kind
		mapper meta.RESTMapper
		want   Kind
		says   string
	}{
		"nothing, on OpenShift":      {mapper: openShift, want: OpenShift},
		"nothing, elsewhere":         {mapper: plain, want: Nowhere},
		"Kubernetes":                 {asked: Kubernetes, mapper: plain, want: Kubernetes},
		"none, on OpenShift":         {asked: Nowhere, mapper: openShift, want: Nowhere},
		"OpenShift, elsewhere":       {asked: OpenShift, mapper: plain, says: "serves no MachineConfigPools"},
		"Kubernetes, on OpenShift":   {asked: Kubernetes, mapper: openShift, says: "by the machine-config operator"},
		"a typo":                     {asked: "kubernetes", mapper: plain, says: `no platform "kubernetes"`},
		"a server that is not there": {asked: Kubernetes, mapper: brokenMapper{}, says: "unreachable"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Choose(tc.asked, tc.mapper)
			if got != tc.want || (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("Choose() = %q, %v, want %q, %q", got, err, tc.want, tc.says)
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
	if watches := (None{}).Watches(); len(watches) > 0 {
		t.Errorf("Watches() = %v, want none", watches)
	}
}

// TestNoneKeepsChangedHosts: a profile whose hosts were changed by an operator with the other platform is not forgotten.
func TestNoneKeepsChangedHosts(t *testing.T) {
	labelled := func(labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	}
	returning := &fleet.Intent{
		Profile: &v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: "trading"}},
		Held:    map[string]string{"taken-over": "another profile"},
		Nodes: map[string]*corev1.Node{
			"verified":   labelled(map[string]string{v1alpha1.LabelProfile: "trading"}),
			"another's":  labelled(map[string]string{v1alpha1.LabelProfile: "other", v1alpha1.LabelPool: "other"}),
			"taken-over": labelled(map[string]string{v1alpha1.LabelProfile: "trading", v1alpha1.LabelPool: "trading"}),
		},
	}
	rest, err := None{}.Return(t.Context(), returning)
	if err != nil || !rest.Done() {
		t.Errorf("Return() = %v, %v, want nothing left", rest, err)
	}
	for _, name := range []string{"n2", "n1"} {
		returning.Nodes[name] = labelled(map[string]string{v1alpha1.LabelProfile: "trading", v1alpha1.LabelPool: "trading"})
	}
	rest, err = None{}.Return(t.Context(), returning)
	if err != nil || !slices.Equal(rest.Nodes, []string{"n1", "n2"}) || rest.RetryAfter == 0 || !strings.Contains(rest.Waiting, "node n1") ||
		!strings.Contains(rest.Waiting, "--platform=Kubernetes") {
		t.Errorf("Return() = %+v, %v, want the nodes that were changed", rest, err)
	}
}
