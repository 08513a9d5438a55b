// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/enactment"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

const account = "lowlatency-operator-controller-manager"

// asOperator is the account of the operator, which has the rights that it is deployed with and nothing else.
func asOperator(config *rest.Config) *rest.Config {
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + account, Groups: []string{"system:serviceaccounts", "system:authenticated"},
	}
	return config
}

// grant gives the operator the roles and the admission policies of config/default and config/enactment.
func (f *fleet) grant() {
	f.t.Helper()
	for _, file := range []string{"rbac/role.yaml", "rbac/manager_admission_policy.yaml", "enactment/role.yaml"} {
		for _, object := range objectsOf(f.t, filepath.Join("..", "..", "..", "..", "config", filepath.FromSlash(file))) {
			if object.GetKind() == "ServiceAccount" {
				continue
			}
			check(f.t, f.client.Create(f.t.Context(), object))
			if strings.HasSuffix(object.GetKind(), "Role") && file == "rbac/role.yaml" {
				f.bind(object)
			}
		}
	}
}

func (f *fleet) bind(role *unstructured.Unstructured) {
	f.t.Helper()
	of := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.GetKind(), Name: role.GetName()}
	to := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}}
	about := metav1.ObjectMeta{Name: role.GetName(), Namespace: role.GetNamespace()}
	var binding client.Object = &rbacv1.RoleBinding{ObjectMeta: about, RoleRef: of, Subjects: to}
	if role.GetKind() == "ClusterRole" {
		binding = &rbacv1.ClusterRoleBinding{ObjectMeta: about, RoleRef: of, Subjects: to}
	}
	check(f.t, f.client.Create(f.t.Context(), binding))
}

func objectsOf(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	file, err := os.Open(filepath.Clean(name))
	check(t, err)
	defer func() { check(t, file.Close()) }()
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	var all []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		check(t, err)
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
}

// marksOf are what others see on a node of its maintenance.
func marksOf(node *corev1.Node) string {
	var found []string
	for _, c := range enactment.MaintenanceConditions(node.Status.Conditions) {
		found = append(found, string(c.Type)+" "+c.Reason)
	}
	for _, all := range []map[string]string{node.Labels, node.Annotations} {
		for key, value := range all {
			if strings.Contains(key, "karpenter") || strings.Contains(key, "autoscaler") || strings.Contains(key, "medik8s") {
				found = append(found, key+"="+value)
			}
		}
	}
	if held := node.Annotations[v1alpha1.AnnotationHeld]; held != "" {
		found = append(found, "held")
	}
	slices.Sort(found)
	return strings.Join(found, ", ")
}

// TestForbiddenWrites: with the consent of config/enactment, the operator's account still cannot take the marks of others for its own.
func TestForbiddenWrites(t *testing.T) {
	f := newFleet(t, "n1")
	f.kill()
	node := &corev1.Node{}
	check(t, f.client.Get(t.Context(), client.ObjectKey{Name: "n1"}, node))
	node.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
	check(t, f.client.Update(t.Context(), node))
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDrained, Status: corev1.ConditionTrue, Reason: "KubectlDrainCompleted"})
	check(t, f.client.Status().Update(t.Context(), node))
	operator, err := client.New(asOperator(f.env.Config()), client.Options{Scheme: f.client.Scheme()})
	check(t, err)
	f.awaitPolicies(operator)
	cases := map[string]struct {
		change   func(*corev1.Node)
		isStatus bool
		refused  string
	}{
		"a mark with its note":            {func(n *corev1.Node) { mark(n, "cluster-autoscaler.kubernetes.io/scale-down-disabled", "true") }, false, ""},
		"a mark with another value":       {func(n *corev1.Node) { mark(n, "cluster-autoscaler.kubernetes.io/scale-down-disabled", "false") }, false, "of the labels and annotations"},
		"a mark that nobody knows":        {func(n *corev1.Node) { mark(n, "example.com/hold", "true") }, false, "of the labels and annotations"},
		"a mark without a note":           {func(n *corev1.Node) { n.Annotations["cluster-autoscaler.kubernetes.io/scale-down-disabled"] = "true" }, false, "of the labels and annotations"},
		"somebody else's taken for ours":  {func(n *corev1.Node) { n.Annotations[v1alpha1.AnnotationHeld] = "karpenter.sh/do-not-disrupt" }, false, "only in the write"},
		"somebody else's removed":         {func(n *corev1.Node) { delete(n.Annotations, "karpenter.sh/do-not-disrupt") }, false, "of the labels and annotations"},
		"a condition":                     {publish(corev1.NodeDrainInProgress, v1alpha1.NodeReasonDraining), true, ""},
		"a condition in another's name":   {publish(corev1.NodeDrainInProgress, "KubectlDrainStarted"), true, "of the status of nodes"},
		"a condition of the kubelet":      {publish(corev1.NodeDiskPressure, v1alpha1.NodeReasonDraining), true, "of the status of nodes"},
		"somebody else's condition taken": {func(n *corev1.Node) { n.Status.Conditions = n.Status.Conditions[:1] }, true, "of the status of nodes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			check(t, f.client.Get(t.Context(), client.ObjectKey{Name: "n1"}, node))
			next := node.DeepCopy()
			tc.change(next)
			var err error
			if tc.isStatus {
				err = operator.Status().Patch(t.Context(), next, client.MergeFrom(node), client.DryRunAll)
			} else {
				err = operator.Patch(t.Context(), next, client.MergeFrom(node), client.DryRunAll)
			}
			if (err == nil) != (tc.refused == "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("got %v, want %q", err, tc.refused)
			}
		})
	}
}

// TestWithoutRights: an operator without config/enactment changes no node, and says what is missing; with it, it goes on.
func TestWithoutRights(t *testing.T) {
	f := newFleet(t, "n1", "n2")
	role := &rbacv1.ClusterRole{}
	check(t, f.client.Get(t.Context(), client.ObjectKey{Name: "lowlatency-operator-enactment"}, role))
	check(t, f.client.Delete(t.Context(), role))
	check(t, f.client.Create(t.Context(), objects.MakeProfile("trading").Selecting(v1alpha1.Labels{"trading": ""}).Obj()))
	f.until("the profile says what is missing", func() string {
		if said := f.condition(v1alpha1.ConditionDegraded).Message; !strings.Contains(said, "config/enactment/role.yaml") {
			return "it says " + said
		}
		return ""
	})
	if f.most != 0 {
		t.Error("the node was cordoned")
	}
	role.ResourceVersion = ""
	check(t, f.client.Create(t.Context(), role))
	f.until("both nodes have the plan", func() string { return f.settled(v1alpha1.EnactmentInForce) })
}

// awaitPolicies waits until the admission policies are in force, which the API server has them some time after they were made.
func (f *fleet) awaitPolicies(operator client.Client) {
	f.t.Helper()
	forbidden := map[string]func(*corev1.Node) error{
		"labels and annotations": func(n *corev1.Node) error {
			before := n.DeepCopy()
			mark(n, "example.com/hold", "true")
			return operator.Patch(f.t.Context(), n, client.MergeFrom(before), client.DryRunAll)
		},
		"the status": func(n *corev1.Node) error {
			before := n.DeepCopy()
			publish(corev1.NodeDiskPressure, v1alpha1.NodeReasonDraining)(n)
			return operator.Status().Patch(f.t.Context(), n, client.MergeFrom(before), client.DryRunAll)
		},
	}
	for what, try := range forbidden {
		for end := time.Now().Add(patience); ; time.Sleep(pause) {
			node := &corev1.Node{}
			check(f.t, f.client.Get(f.t.Context(), client.ObjectKey{Name: "n1"}, node))
			if try(node) != nil {
				break
			}
			if time.Now().After(end) {
				f.t.Fatalf("%s of a node may be written", what)
			}
		}
	}
}

func mark(node *corev1.Node, key, value string) {
	node.Annotations[key], node.Annotations[v1alpha1.AnnotationHeld] = value, key
}

func publish(kind corev1.NodeConditionType, reason string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason})
	}
}
