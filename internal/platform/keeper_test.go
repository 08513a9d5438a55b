// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package platform

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// desiredMap is an object as the operator renders it.
func desiredMap() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"namespace": "n", "name": "c", "labels": map[string]any{v1alpha1.LabelManagedBy: v1alpha1.ProjectName},
		},
		"data": map[string]any{"a.b": "1"},
	}}
}

// keeping is a Keeper on an API server in memory.
type keeping struct {
	*Keeper
	t      *testing.T
	client client.Client
	clock  *clocktesting.FakePassiveClock
}

func newKeeping(t *testing.T) *keeping {
	t.Helper()
	c := fake.NewClientBuilder().WithReturnManagedFields().Build()
	fakeClock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	var passive clock.PassiveClock = fakeClock
	return &keeping{Keeper: &Keeper{Reader: c, Clock: passive}, t: t, client: c, clock: fakeClock}
}

// live is the object as the cache has it: without the record of who owns which field.
func (k *keeping) live() *unstructured.Unstructured {
	k.t.Helper()
	object := desiredMap()
	if err := k.client.Get(k.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		return nil
	}
	object.SetManagedFields(nil)
	return object
}

// keep does what a reconciler does, and returns the conflict.
func (k *keeping) keep() string {
	k.t.Helper()
	found, err := k.Inspect(k.t.Context(), k.live(), desiredMap())
	if err != nil {
		k.t.Fatal(err)
	}
	if found.Conflict != "" {
		return found.Conflict
	}
	if found.HasForeign() || Compare(found.Live, desiredMap()) != Same {
		if err := k.Write(k.t.Context(), k.client, found); err != nil {
			k.t.Fatal(err)
		}
	}
	return ""
}

// write is what somebody else applies.
func (k *keeping) write(manager string, fields map[string]any) {
	k.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "n", "name": "c"},
	}}
	maps.Copy(object.Object, fields)
	err := k.client.Apply(k.t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(manager), client.ForceOwnership)
	if err != nil {
		k.t.Fatal(err)
	}
}

func TestKeeperTakesOutWhatOthersAdd(t *testing.T) {
	k := newKeeping(t)
	if conflict := k.keep(); conflict != "" || k.live() == nil {
		t.Fatalf("the object was not made: %s", conflict)
	}
	k.write("kubectl", map[string]any{"data": map[string]any{"x": "2"}, "immutable": true})
	if conflict := k.keep(); conflict != "" {
		t.Fatal(conflict)
	}
	want := map[string]any{"a.b": "1"}
	if diff := cmp.Diff(want, k.live().Object["data"]); diff != "" || k.live().Object["immutable"] != nil {
		t.Errorf("content mismatch (-want +got):\n%s%v", diff, k.live().Object["immutable"])
	}
	version := k.live().GetResourceVersion()
	k.keep()
	if k.live().GetResourceVersion() != version {
		t.Error("what is as wanted was written again")
	}
}

func TestKeeperLeavesObjectsOfOthers(t *testing.T) {
	k := newKeeping(t)
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}, Data: map[string]string{"a.b": "theirs"}}
	if err := k.client.Create(t.Context(), foreign, client.FieldOwner("kubectl-create")); err != nil {
		t.Fatal(err)
	}
	found, err := k.Inspect(t.Context(), nil, desiredMap())
	if err != nil || !strings.Contains(found.Conflict, "ConfigMap c exists and was not made by the operator") {
		t.Errorf("Inspect() = %+v, %v, want a conflict", found, err)
	}
}

// TestKeeperTakesItsObjectBack finds an object of the operator that is not in the cache, because its labels were taken away.
func TestKeeperTakesItsObjectBack(t *testing.T) {
	k := newKeeping(t)
	k.keep()
	object := k.live()
	object.SetLabels(nil)
	if err := k.client.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":null}}`)),
		client.FieldOwner("kubectl-label")); err != nil {
		t.Fatal(err)
	}
	found, err := k.Inspect(t.Context(), nil, desiredMap())
	if err != nil || found.Conflict != "" {
		t.Fatalf("Inspect() = %+v, %v, want no conflict", found, err)
	}
	if err := k.Write(t.Context(), k.client, found); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(desiredMap().GetLabels(), k.live().GetLabels()); diff != "" {
		t.Errorf("labels mismatch (-want +got):\n%s", diff)
	}
}

func TestKeeperDoesNotFight(t *testing.T) {
	fights := map[string]map[string]any{
		"over a value":     {"data": map[string]any{"a.b": "theirs"}},
		"over a new field": {"data": map[string]any{"y": "theirs"}},
	}
	for name, theirs := range fights {
		t.Run(name, func(t *testing.T) {
			k := newKeeping(t)
			k.keep()
			conflict, tries := "", 0
			for ; conflict == "" && tries < 20; tries++ {
				k.write("other-operator", theirs)
				conflict = k.keep()
			}
			want := fmt.Sprintf("restored %d times within 10 minutes, and other-operator keeps changing", MaximumRestorations)
			if !strings.Contains(conflict, want) {
				t.Fatalf("after %d tries the conflict is %q, want %q", tries, conflict, want)
			}
			version := k.live().GetResourceVersion()
			if k.keep() == "" || k.live().GetResourceVersion() != version {
				t.Error("the fight goes on")
			}
			k.clock.SetTime(k.clock.Now().Add(RestorationWindow))
			if conflict := k.keep(); conflict != "" {
				t.Errorf("after the time is over it is not tried again: %s", conflict)
			}
		})
	}
}

func TestAdditions(t *testing.T) {
	cases := map[string]struct {
		live, desired map[string]any
		want          []string
	}{
		"an equal object":           {map[string]any{"spec": map[string]any{"a": int64(1)}}, map[string]any{"spec": map[string]any{"a": 1}}, nil},
		"status and metadata":       {map[string]any{"status": "x", "metadata": "y"}, map[string]any{}, nil},
		"fields printed unset":      {map[string]any{"spec": map[string]any{"fips": false, "url": "", "x": nil}}, map[string]any{"spec": map[string]any{}}, nil},
		"another value":             {map[string]any{"spec": map[string]any{"a": "1"}}, map[string]any{"spec": map[string]any{"a": "2"}}, nil},
		"a field":                   {map[string]any{"spec": map[string]any{"b": "1"}}, map[string]any{"spec": map[string]any{}}, []string{"spec.b"}},
		"a false in a file":         {map[string]any{"spec": map[string]any{"k": map[string]any{"b": false}}}, map[string]any{"spec": map[string]any{"k": map[string]any{"a": "x"}}}, []string{"spec.k.b"}},
		"an element":                {map[string]any{"spec": map[string]any{"l": []any{"a", "b"}}}, map[string]any{"spec": map[string]any{"l": []any{"a"}}}, []string{"spec.l"}},
		"a field in an element":     {map[string]any{"spec": map[string]any{"l": []any{map[string]any{"a": 1, "b": 2}}}}, map[string]any{"spec": map[string]any{"l": []any{map[string]any{"a": 1}}}}, []string{"spec.l.0.b"}},
		"a field besides the spec":  {map[string]any{"overhead": map[string]any{"cpu": "1"}}, map[string]any{}, []string{"overhead"}},
		"annotations of a template": {map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{"kubectl.kubernetes.io/restartedAt": "now"}}}}}, map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{}}}}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found := additions(&unstructured.Unstructured{Object: tc.live}, &unstructured.Unstructured{Object: tc.desired})
			got := make([]string, 0, len(found))
			for _, one := range found {
				got = append(got, one.String())
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("mismatch (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDefaultsAreNobodys reads the record of an API server that has filled in defaults.
func TestDefaultsAreNobodys(t *testing.T) {
	live := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"policy": "Always", "added": "x",
		"containers": []any{map[string]any{"name": "plugin", "image": "i", "pullPolicy": "Always", "tty": true}},
	}}}
	record := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	live.SetManagedFields([]metav1.ManagedFieldsEntry{
		record(v1alpha1.FieldManager, metav1.ManagedFieldsOperationApply, `{"f:spec":{"f:containers":{"k:{\"name\":\"plugin\"}":{".":{},"f:name":{},"f:image":{}}}}}`),
		record("kubectl-edit", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:added":{},"f:containers":{"k:{\"name\":\"plugin\"}":{"f:tty":{}}}}}`),
	})
	desired := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "plugin", "image": "i"}},
	}}}
	found := foreignTo(live, additions(live, desired))
	if got, want := listed(found), "spec.added, spec.containers.0.tty"; got != want {
		t.Errorf("foreign are %s, want %s", got, want)
	}
	want := map[string]any{
		"metadata": map[string]any{"resourceVersion": ""},
		"spec":     map[string]any{"added": nil, "containers": []any{map[string]any{"name": "plugin", "image": "i"}}},
	}
	if diff := cmp.Diff(want, removalOf(live, found)); diff != "" {
		t.Errorf("patch mismatch (-want +got):\n%s", diff)
	}
}

// TestKeeperForgets changes an object often, beside many that come and go.
func TestKeeperForgets(t *testing.T) {
	k := newKeeping(t)
	k.keep()
	for i := range 10 * rememberedObjects {
		former := k.live()
		former.SetUID(types.UID(strconv.Itoa(i)))
		former.Object["other"] = strconv.Itoa(i)
		present := additions(former, desiredMap())
		k.settle(former, present, func(addition) bool { return true })
		if left := k.unsettled(former, present); len(left) > 0 {
			t.Fatalf("%v are not settled", left)
		}
		living := k.live()
		living.Object["other"] = strconv.Itoa(i)
		k.settle(living, additions(living, desiredMap()), func(addition) bool { return true })
		if known := k.of(living); len(known.settled) != 1 {
			t.Fatalf("%d states of one field are remembered", len(known.settled))
		}
		if known := k.objects[living.GetUID()]; known == nil {
			t.Fatal("an object that is asked about was forgotten")
		}
		if len(k.objects) > 2*rememberedObjects {
			t.Fatalf("%d objects are remembered", len(k.objects))
		}
		k.clock.SetTime(k.clock.Now().Add(RestorationWindow / rememberedObjects))
	}
}
