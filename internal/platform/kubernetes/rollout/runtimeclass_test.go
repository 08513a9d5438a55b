// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"fmt"
	"strings"
	"testing"

	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// classOf is a RuntimeClass that the operator has made for a profile; "" for one of somebody else.
func classOf(name, profile string) *nodev1.RuntimeClass {
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "c1"}, Handler: "runc"}
	if profile != "" {
		class.Labels = map[string]string{v1alpha1.LabelProfile: profile, v1alpha1.LabelManagedBy: v1alpha1.ProjectName}
	}
	return class
}

// classes are those that are there, each with its handler and whose nodes it leads to.
func (s *stage) classes() string {
	s.t.Helper()
	var list nodev1.RuntimeClassList
	if err := s.Live.List(s.t.Context(), &list); err != nil {
		s.t.Fatal(err)
	}
	found := make([]string, 0, len(list.Items))
	for i := range list.Items {
		class := &list.Items[i]
		leads := "nowhere"
		if class.Scheduling != nil {
			leads = class.Scheduling.NodeSelector[v1alpha1.LabelProfile]
		}
		found = append(found, fmt.Sprintf("%s %s %s", class.Name, class.Handler, leads))
	}
	return strings.Join(found, ", ")
}

// planned is what the operator has before it when the node has a plan.
func (s *stage) planned(change func(*fleet.Intent)) *fleet.Intent {
	s.t.Helper()
	intent := s.look()
	intent.Shapes = []fleet.Shape{{Hash: "aaaaaaaa", Plan: &plan.NodePlan{Profile: "trading"}, Nodes: []string{"n1"}}}
	if change != nil {
		change(intent)
	}
	return intent
}

func TestRuntimeClass(t *testing.T) {
	const ours = "lowlatency-trading high-performance trading"
	cases := map[string]struct {
		runtime  v1alpha1.NodeContainerRuntime
		unknown  bool
		there    *nodev1.RuntimeClass
		change   func(*fleet.Intent)
		want     string
		conflict string
	}{
		"CRI-O":                        {runtime: v1alpha1.NodeContainerRuntimeCRIO, want: ours},
		"containerd":                   {runtime: v1alpha1.NodeContainerRuntimeContainerd},
		"a paused profile":             {runtime: v1alpha1.NodeContainerRuntimeCRIO, change: func(i *fleet.Intent) { i.ReadOnly = true }},
		"the last CRI-O has gone":      {runtime: v1alpha1.NodeContainerRuntimeContainerd, there: classOf("lowlatency-trading", "trading")},
		"nobody knows the runtime yet": {unknown: true, there: classOf("lowlatency-trading", "trading"), want: "lowlatency-trading runc nowhere"},
		"another name": {
			runtime: v1alpha1.NodeContainerRuntimeCRIO, there: classOf("lowlatency-trading", "trading"),
			change: func(i *fleet.Intent) { i.Shapes[0].Plan.ContainerRuntime.RuntimeClassName = "performance-cnf" },
			want:   "performance-cnf high-performance trading",
		},
		"somebody else's": {
			runtime: v1alpha1.NodeContainerRuntimeCRIO, there: classOf("lowlatency-trading", ""),
			want: "lowlatency-trading runc nowhere", conflict: "was not made by the operator",
		},
		"another profile's": {
			runtime: v1alpha1.NodeContainerRuntimeCRIO, there: classOf("lowlatency-trading", "other"),
			want: "lowlatency-trading runc nowhere", conflict: "is that of profile other",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			report := reportOf(nil)
			report.Status.Software.ContainerRuntime = tc.runtime
			if tc.unknown {
				report.Status.Software = nil
			}
			objects := []client.Object{nodeWith(governed(), false), report}
			if tc.there != nil {
				objects = append(objects, tc.there)
			}
			s := newStage(t, interceptor.Funcs{}, objects...)
			w, err := s.gather(t.Context(), s.planned(tc.change), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			conflicts, err := s.offerHandler(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.classes(); got != tc.want {
				t.Errorf("RuntimeClasses: %q, want %q", got, tc.want)
			}
			if got := fmt.Sprint(conflicts); (len(conflicts) > 0) != (tc.conflict != "") || !strings.Contains(got, tc.conflict) {
				t.Errorf("conflicts %s, want %q", got, tc.conflict)
			}
		})
	}
}

// TestRuntimeClassGoes: it goes with the profile, and one of somebody else stays.
func TestRuntimeClassGoes(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, nodeWith(nil, false), classOf("lowlatency-trading", "trading"), classOf("gvisor", ""), classOf("lowlatency-other", "other"))
	if rest, err := s.Return(t.Context(), s.look()); err != nil || !rest.Done() {
		t.Fatalf("%+v, %v", rest, err)
	}
	if got, want := s.classes(), "gvisor runc nowhere, lowlatency-other runc nowhere"; got != want {
		t.Errorf("RuntimeClasses: %q, want %q", got, want)
	}
}

// TestRuntimeClassConflictBeginsNothing: a node gets no turn while the class is somebody else's.
func TestRuntimeClassConflictBeginsNothing(t *testing.T) {
	for owner, want := range map[string]string{"": "", "trading": "turn"} {
		report := reportOf(nil)
		report.Status.Software.ContainerRuntime = v1alpha1.NodeContainerRuntimeCRIO
		report.Status.Software.Kubelet = &v1alpha1.NodeKubelet{
			Unit: "kubelet.service", ConfigArguments: "--config=/var/lib/kubelet/config.yaml",
			Files: []v1alpha1.NodeKubeletFile{{Path: "/var/lib/kubelet/config.yaml", Role: v1alpha1.KubeletFileConfiguration, Content: "{}"}},
		}
		s := newStage(t, interceptor.Funcs{}, nodeWith(governed(), false), report, classOf("lowlatency-trading", owner))
		outcome, err := s.Roll(t.Context(), s.planned(nil))
		if err != nil || len(outcome.Conflicts) > 0 != (owner == "") {
			t.Errorf("class of %q: conflicts %+v, %v", owner, outcome.Conflicts, err)
		}
		if there := s.there(); there != want {
			t.Errorf("class of %q: there is %q, want %q", owner, there, want)
		}
	}
}
