// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package pools_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/manifests"
)

// tokenUse is what somebody tries with the token of a running pod, which the rights of its account would allow. Nothing of it is stored.
type tokenUse struct {
	who, what string
	isAllowed bool
	do        func(ctx context.Context) error
}

// stolen takes the tokens that the kubelet has put into the running pods, and tries with them what only the admission policies refuse.
func (s *scene) stolen(t *testing.T) string {
	agent := s.thief(t, s.readyPod(t, agentNamespace, client.MatchingLabels{v1alpha1.LabelComponent: v1alpha1.ComponentAgent}))
	manager := s.thief(t, s.readyPod(t, operatorNamespace, client.MatchingLabels{"control-plane": "controller-manager"}))
	s.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "foreign"}})
	uses := append(s.agentUses(agent), managerUses(manager)...)
	rows, refused := make([][]string, 1, 1+len(uses)), 0
	rows[0] = []string{"TOKEN OF", "ATTEMPTED", "OUTCOME"}
	for _, use := range uses {
		err := use.do(t.Context())
		outcome := "done"
		if err != nil {
			outcome = err.Error()
		}
		isRefused := apierrors.IsForbidden(err) && strings.Contains(outcome, "ValidatingAdmissionPolicy")
		if use.isAllowed && err != nil || !use.isAllowed && !isRefused {
			t.Errorf("%s: %s: %s", use.who, use.what, outcome)
		}
		if isRefused {
			refused++
		}
		rows = append(rows, []string{use.who, use.what, outcome})
	}
	show(rows)
	return fmt.Sprintf("%d uses of the tokens of running pods: %d refused by the admission policies, %d are what the programs do", len(uses), refused, len(uses)-refused)
}

// thief is a client with the token that the kubelet keeps fresh for a pod.
func (s *scene) thief(t *testing.T, pod *corev1.Pod) client.Client {
	t.Helper()
	config := rest.AnonymousClientConfig(s.cluster.Config())
	config.BearerToken = s.run(t, "cat /var/lib/kubelet/pods/"+string(pod.UID)+"/volumes/kubernetes.io~projected/*/token")
	thief, err := client.New(config, client.Options{Scheme: s.api.Scheme()})
	must(t, err)
	return thief
}

// agentUses are those of an agent's token.
func (s *scene) agentUses(thief client.Client) []tokenUse {
	const who = "agent"
	observes := client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":1}}`))
	status := func(ctx context.Context, name string) error {
		return thief.Status().Patch(ctx, &v1alpha1.LowLatencyNode{ObjectMeta: objectName(name)}, observes, client.DryRunAll)
	}
	lease := func(text string) func(context.Context) error {
		return func(ctx context.Context) error {
			own := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: nodeName}}
			return thief.Patch(ctx, own, client.RawPatch(types.MergePatchType, []byte(text)), client.DryRunAll)
		}
	}
	return []tokenUse{
		{who, "the status of its node", true, func(ctx context.Context) error { return status(ctx, nodeName) }},
		{who, "the status of another node", false, func(ctx context.Context) error { return s.onAnother(ctx, status) }},
		{who, "to renew its Lease", true, lease(`{"spec":{"leaseDurationSeconds":60}}`)},
		{who, "a Lease for a day", false, lease(`{"spec":{"leaseDurationSeconds":86400}}`)},
		{who, "another label of its Lease", false, lease(`{"metadata":{"labels":{"a":"b"}}}`)},
	}
}

// onAnother does something with a LowLatencyNode of a node that is not there. The manager deletes such an object, which is made anew then.
func (s *scene) onAnother(ctx context.Context, do func(ctx context.Context, name string) error) error {
	const name = "elsewhere"
	for {
		another := &v1alpha1.LowLatencyNode{ObjectMeta: objectName(name), Spec: v1alpha1.LowLatencyNodeSpec{Profile: "lab"}}
		if err := s.api.Create(ctx, another); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		if err := do(ctx, name); !apierrors.IsNotFound(err) {
			return orUndeleted(err, s.api.Delete(ctx, another))
		}
	}
}

// orUndeleted is what came of an attempt, unless what it was made on cannot be deleted.
func orUndeleted(attempted, deleted error) error {
	if client.IgnoreNotFound(deleted) != nil {
		return deleted
	}
	return attempted
}

// managerUses are those of the manager's token.
func managerUses(thief client.Client) []tokenUse {
	const who = "manager"
	change := func(object client.Object, patchType types.PatchType, text string) func(context.Context) error {
		return func(ctx context.Context) error {
			return thief.Patch(ctx, object, client.RawPatch(patchType, []byte(text)), client.DryRunAll)
		}
	}
	plugin := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: manifests.PoolObjectName("whole")}}
	node := &corev1.Node{ObjectMeta: objectName(nodeName)}
	taint := func(key string) string {
		return `[{"op":"add","path":"/spec/taints","value":[{"key":"` + key + `","effect":"NoExecute"}]}]`
	}
	return []tokenUse{
		{who, "its DaemonSet with another label", true, change(plugin, types.MergePatchType, `{"metadata":{"labels":{"a":"b"}}}`)},
		{who, "its DaemonSet in the host's processes", false, change(plugin, types.MergePatchType, `{"spec":{"template":{"spec":{"hostPID":true}}}}`)},
		{who, "its DaemonSet with a shell", false, change(plugin, types.JSONPatchType,
			`[{"op":"add","path":"/spec/template/spec/containers/0/command","value":["/bin/sh"]}]`)},
		{who, "a ConfigMap that it has not made", false, change(
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "foreign"}}, types.MergePatchType, `{"data":{"a":"b"}}`)},
		{who, "its own taint", true, change(node, types.JSONPatchType, taint("lowlatency.dev/x"))},
		{who, "another's taint", false, change(node, types.JSONPatchType, taint("example.com/x"))},
		{who, "to cordon the node", false, change(node, types.MergePatchType, `{"spec":{"unschedulable":true}}`)},
	}
}
