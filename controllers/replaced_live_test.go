// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

// TestFormerMachineProvesNothing lets a machine take the place of another before the operator has seen that the Node was away:
// what the former one has proven does not count for the new one, and goes with its LowLatencyNode.
func TestFormerMachineProvesNothing(t *testing.T) {
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	replaced, kept, restored := objects.MakeNode("replaced"), objects.MakeNode("kept"), objects.MakeNode("restored")
	replaced.UID = "uid-of-the-new-machine"
	reports := map[string]*v1alpha1.LowLatencyNode{}
	for _, name := range []string{"replaced", "kept", "restored", "gone"} {
		reports[name] = objects.MakeReport(name, "trading").Verified("h", "TTT").Obj()
		reports[name].UID = types.UID("uid-of-report-" + name)
	}
	reports["restored"].OwnerReferences = nil
	nodes := map[string]*corev1.Node{"replaced": replaced, "kept": kept, "restored": restored}
	former := takeFormer(reports, nodes)
	if diff := cmp.Diff([]string{"gone", "kept", "restored"}, slices.Sorted(maps.Keys(reports))); diff != "" {
		t.Errorf("LowLatencyNodes that count (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"replaced"}, slices.Sorted(maps.Keys(former))); diff != "" {
		t.Fatalf("LowLatencyNodes of former machines (-want +got):\n%s", diff)
	}

	replaced.Labels[v1alpha1.LabelProfile] = "trading"
	writer := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.LowLatencyNode{}).
		WithObjects(replaced, former["replaced"]).Build()
	a := &adoption{
		ProfileReconciler: &ProfileReconciler{client: writer}, profile: "trading", node: replaced,
		spec: v1alpha1.LowLatencyNodeSpec{Profile: "trading"}, former: former["replaced"],
	}
	if err := a.write(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	written := &v1alpha1.LowLatencyNode{}
	if err := writer.Get(t.Context(), client.ObjectKey{Name: "replaced"}, written); err != nil {
		t.Fatal(err)
	}
	if written.OwnerReferences[0].UID != replaced.UID {
		t.Errorf("the LowLatencyNode is owned by %s, want the Node of the new machine", written.OwnerReferences[0].UID)
	}
	if diff := cmp.Diff(v1alpha1.LowLatencyNodeStatus{}, written.Status); diff != "" {
		t.Errorf("the new machine has proven nothing yet, but (-want +got):\n%s", diff)
	}
}
