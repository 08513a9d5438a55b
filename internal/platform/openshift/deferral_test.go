// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestRuntimeSettingsWaitForTheReboot that a change comes with, and for no other.
func TestRuntimeSettingsWaitForTheReboot(t *testing.T) {
	another := func(kinds ...string) func(*world, *target) {
		return func(w *world, _ *target) {
			for at, object := range w.objects {
				if slices.Contains(kinds, at.kind) {
					object.Object["spec"] = map[string]any{"former": "content"}
				}
			}
		}
	}
	marked := func(value string) func(*world, *target) {
		return func(w *world, t *target) {
			w.live(tunedOf(t)).SetAnnotations(map[string]string{annotationDeferred: value})
		}
	}
	told := func(config string) func(*world, *target) {
		return func(_ *world, t *target) { t.nodes[0].Annotations[annotationDesiredConfig] = config }
	}
	cases := map[string]struct {
		changes []func(*world, *target)
		want    bool
	}{
		"nothing is there yet":                               {[]func(*world, *target){func(w *world, _ *target) { clear(w.objects) }}, true},
		"nothing differs":                                    {nil, false},
		"nothing differs, and nodes still wait":              {[]func(*world, *target){marked(deferredUpdate)}, true},
		"nothing differs from what somebody keeps back":      {[]func(*world, *target){marked("always")}, false},
		"kernel arguments differ alone":                      {[]func(*world, *target){another(kindMachineConfig)}, false},
		"kernel arguments and runtime settings differ":       {[]func(*world, *target){another(kindMachineConfig, kindTuned)}, true},
		"the kubelet and runtime settings differ":            {[]func(*world, *target){another(kindKubeletConfig, kindTuned)}, true},
		"runtime settings differ, and nodes have the rest":   {[]func(*world, *target){another(kindTuned), told("new")}, false},
		"runtime settings differ, and all wait for the rest": {[]func(*world, *target){another(kindTuned), told("former")}, true},
		"runtime settings differ, and some wait for the rest": {
			[]func(*world, *target){another(kindTuned), told("former"), func(_ *world, t *target) {
				second := t.nodes[0].DeepCopy()
				second.Annotations[annotationDesiredConfig] = "new"
				t.nodes = append(t.nodes, second)
			}}, false,
		},
		"runtime settings differ, and the pool is gone": {
			[]func(*world, *target){another(kindTuned), func(_ *world, t *target) { t.live = nil }}, true,
		},
		"runtime settings differ, and the pool has no node": {
			[]func(*world, *target){another(kindTuned), func(_ *world, t *target) { t.nodes = nil }}, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "n1")
			inForce(c)
			w := c.world()
			targets, _ := aim(w, oneNode().intent(c), "operator", renderText)
			p := &Platform{}
			target := targets[0]
			for _, config := range []string{"new", "former"} {
				p.holdings.put(heldBy(w, target, config), config == "new")
			}
			for _, change := range tc.changes {
				change(w, target)
			}
			shared := tunedOf(target)
			if err := p.deferRuntimeSettings(t.Context(), w, targets); err != nil {
				t.Fatal(err)
			}
			if got := tunedOf(target).GetAnnotations()[annotationDeferred] == deferredUpdate; got != tc.want {
				t.Errorf("the runtime settings wait: %v, want %v", got, tc.want)
			}
			if shared.GetAnnotations()[annotationDeferred] != "" {
				t.Error("what was rendered is changed")
			}
		})
	}
}

func tunedOf(t *target) *unstructured.Unstructured {
	for _, object := range t.want {
		if object.GetKind() == kindTuned {
			return object
		}
	}
	return nil
}
