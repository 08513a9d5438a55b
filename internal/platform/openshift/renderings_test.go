// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"errors"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
)

func TestRenderingsAreRemembered(t *testing.T) {
	calls := 0
	r := renderings{render: func(in manifests.Input) ([]*unstructured.Unstructured, error) {
		calls++
		return renderText(in)
	}}
	intent := oneNode().intent(newCluster(t, "n1"))
	in := manifests.Input{Plan: intent.Shapes[0].Plan}
	for range 3 {
		if _, err := r.objects(in); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 1 {
		t.Errorf("rendered %d times, want once", calls)
	}
	// Neither edits of one plan's profile nor former plans are kept.
	for i := range 10 * minimumRenderings {
		in.MachineConfigPool.MaximumUnavailableNodes = int32(i % (1 << 30))
		former := manifests.Input{Plan: new(*in.Plan)}
		for _, one := range []manifests.Input{in, former} {
			if _, err := r.objects(one); err != nil {
				t.Fatal(err)
			}
		}
		former.Plan = nil
		runtime.GC()
		if len(r.results) > minimumRenderings+1 {
			t.Fatalf("%d renderings are remembered of one plan in use", len(r.results))
		}
	}
	r.render = func(manifests.Input) ([]*unstructured.Unstructured, error) { return nil, errors.New("impossible") }
	in.MachineConfigPool.Management = v1alpha1.PoolsExisting
	if _, err := r.objects(in); err == nil {
		t.Error("an error is remembered as objects")
	}
}
