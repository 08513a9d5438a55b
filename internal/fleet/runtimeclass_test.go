// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

func TestRuntimeClassClaims(t *testing.T) {
	const class = "performance-cnf"
	made := func(name, class string, second int64) *v1alpha1.LowLatencyNodeProfile {
		profile := &v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(second, 0)}}
		profile.Spec.ContainerRuntime.RuntimeClassName = class
		return profile
	}
	cases := map[string]struct {
		class  string
		others []*v1alpha1.LowLatencyNodeProfile
		want   []string
	}{
		"no other profile":                {class, nil, nil},
		"others with other names":         {class, []*v1alpha1.LowLatencyNodeProfile{made("a", "", 1), made("b", "performance-b", 1)}, nil},
		"none has a name":                 {"", []*v1alpha1.LowLatencyNodeProfile{made("a", "", 1)}, nil},
		"an older and a younger one":      {class, []*v1alpha1.LowLatencyNodeProfile{made("z", class, 3), made("b", class, 1)}, []string{"b", "m", "z"}},
		"profiles made in the same time":  {class, []*v1alpha1.LowLatencyNodeProfile{made("z", class, 2), made("b", class, 2)}, []string{"b", "m", "z"}},
		"an older one with a later name":  {class, []*v1alpha1.LowLatencyNodeProfile{made("z", class, 1)}, []string{"z", "m"}},
		"a younger one with another name": {class, []*v1alpha1.LowLatencyNodeProfile{made("a", "performance-a", 3), made("b", class, 3)}, []string{"m", "b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, RuntimeClassClaims(made("m", tc.class, 2), tc.others)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestIntentKnowsWhoElseClaimsTheRuntimeClass: the platform learns it from the decision.
func TestIntentKnowsWhoElseClaimsTheRuntimeClass(t *testing.T) {
	profile, other := &v1alpha1.LowLatencyNodeProfile{}, &v1alpha1.LowLatencyNodeProfile{}
	profile.Name, other.Name = "a", "b"
	profile.CreationTimestamp, other.CreationTimestamp = metav1.NewTime(time.Unix(2, 0)), metav1.NewTime(time.Unix(1, 0))
	profile.Spec.ContainerRuntime.RuntimeClassName, other.Spec.ContainerRuntime.RuntimeClassName = "performance-x", "performance-x"
	decision := DecideProfile(&ProfileWorld{Profile: profile, Others: []*v1alpha1.LowLatencyNodeProfile{other}}, NewPlanner(plan.PlatformRules{}))
	if diff := cmp.Diff([]string{"b", "a"}, decision.Intent.RuntimeClassClaims); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
