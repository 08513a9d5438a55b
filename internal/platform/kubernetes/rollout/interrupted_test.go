// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/enactment"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes/signingkey"
)

const (
	operators = "operator"
	agents    = "agents"
)

// stage is one node n1, which its agent has looked at, and the profile trading.
type stage struct {
	*Platform
	t *testing.T
	// renewed is how often the kubelet has said that it lives.
	renewed int64
}

func newStage(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *stage {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	writer := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	platform, err := New(Options{Cache: writer, Live: writer, Client: writer, Namespace: operators, AgentNamespace: agents, Image: "i"})
	if err != nil {
		t.Fatal(err)
	}
	return &stage{Platform: platform, t: t}
}

func governed() map[string]string {
	return map[string]string{v1alpha1.LabelProfile: "trading", v1alpha1.LabelPool: "trading"}
}

func nodeWith(labels map[string]string, isCordoned bool) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1", Labels: labels}}
	if isCordoned {
		node.Annotations, node.Spec.Unschedulable = map[string]string{v1alpha1.AnnotationCordoned: "2026-11-23T12:00:00Z"}, true
	}
	return node
}

func reportOf(enacted *v1alpha1.NodeEnactment) *v1alpha1.LowLatencyNode {
	return &v1alpha1.LowLatencyNode{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", OwnerReferences: metadataOf(nodeWith(nil, false), agents).OwnerReferences},
		Status:     v1alpha1.LowLatencyNodeStatus{Inventory: &v1alpha1.Inventory{}, Software: &v1alpha1.NodeSoftware{}, Enactment: enacted},
	}
}

// about is the metadata of an object about the node.
func about() metav1.ObjectMeta {
	object := metadataOf(nodeWith(nil, false), agents)
	object.Labels[v1alpha1.LabelProfile] = "trading"
	object.Annotations[v1alpha1.AnnotationNumber] = "8"
	object.Annotations[v1alpha1.AnnotationAction] = string(enactment.Enact)
	object.Annotations[v1alpha1.AnnotationPlanHash] = "aaaaaaaa"
	return object
}

func turn() *coordinationv1.Lease { return &coordinationv1.Lease{ObjectMeta: about()} }

func instructed() *corev1.ConfigMap { return &corev1.ConfigMap{ObjectMeta: about()} }

func podIn(phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: about(), Status: corev1.PodStatus{Phase: phase}}
}

// look is what the operator has before it when it looks at the profile.
func (s *stage) look(leaving ...string) *fleet.Intent {
	s.t.Helper()
	node := &corev1.Node{}
	if err := s.Live.Get(s.t.Context(), client.ObjectKey{Name: "n1"}, node); err != nil {
		s.t.Fatal(err)
	}
	return &fleet.Intent{
		Profile: &v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: "trading"}},
		Nodes:   map[string]*corev1.Node{"n1": node}, Leaving: leaving,
	}
}

// renew lets the kubelet say that it lives.
func (s *stage) renew() {
	s.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "n1"}}
	s.renewed++
	_, err := controllerutil.CreateOrUpdate(s.t.Context(), s.Client, lease, func() error {
		lease.Spec.RenewTime = new(metav1.NewMicroTime(time.Unix(s.renewed, 0)))
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// roll is a look of the operator at a node whose kubelet lives.
func (s *stage) roll() {
	s.t.Helper()
	s.renew()
	if _, err := s.Roll(s.t.Context(), s.look()); err != nil {
		s.t.Fatal(err)
	}
}

// there names what there is about the node.
func (s *stage) there() string {
	s.t.Helper()
	found := []string{}
	for _, kind := range []struct {
		name   string
		object client.Object
	}{{"turn", &coordinationv1.Lease{}}, {"instruction", &corev1.ConfigMap{}}, {"pod", &corev1.Pod{}}} {
		if s.Live.Get(s.t.Context(), client.ObjectKey{Namespace: agents, Name: "enact-n1"}, kind.object) == nil {
			found = append(found, kind.name)
		}
	}
	if s.look().Nodes["n1"].Spec.Unschedulable {
		found = append(found, "cordon")
	}
	return strings.Join(found, ", ")
}

// TestPause: the operator waits for others, and not for itself.
func TestPause(t *testing.T) {
	running := func() []client.Object { return []client.Object{turn(), instructed(), podIn(corev1.PodRunning)} }
	cases := map[string]struct {
		objects []client.Object
		looks   int
		want    time.Duration
	}{
		"the guard is waited for":   {running(), 1, turnPause},
		"the pod is to go":          {[]client.Object{turn(), instructed(), podIn(corev1.PodPending)}, 1, stepPause},
		"the kubelet is awaited":    {[]client.Object{turn()}, 1, turnPause},
		"the cordon was taken away": {[]client.Object{turn()}, 2, stepPause},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, interceptor.Funcs{}, append(tc.objects, nodeWith(governed(), true), reportOf(nil))...)
			for range tc.looks - 1 {
				s.roll()
			}
			s.renew()
			if outcome, err := s.Roll(t.Context(), s.look()); err != nil || outcome.RetryAfter != tc.want {
				t.Errorf("looked at again after %v, %v, want %v", outcome.RetryAfter, err, tc.want)
			}
		})
	}
}

// TestWithdraw: nobody wants the plan any more whose instruction is there.
func TestWithdraw(t *testing.T) {
	t.Run("the pod waits for its image", func(t *testing.T) {
		s := newStage(t, interceptor.Funcs{}, nodeWith(governed(), true), reportOf(nil), turn(), instructed(), podIn(corev1.PodPending))
		for _, want := range []string{"turn, instruction, cordon", "turn, cordon", "turn, cordon", "turn", ""} {
			s.roll()
			if got := s.there(); got != want {
				t.Fatalf("there is %q, want %q", got, want)
			}
		}
	})
	for _, phase := range []corev1.PodPhase{corev1.PodRunning, corev1.PodSucceeded} {
		t.Run("the pod has run: "+string(phase), func(t *testing.T) {
			s := newStage(t, interceptor.Funcs{}, nodeWith(governed(), true), reportOf(nil), turn(), instructed(), podIn(phase))
			for range 3 {
				s.roll()
			}
			if got := s.there(); got != "turn, instruction, pod, cordon" {
				t.Errorf("there is only %q although the guard may have the instruction", got)
			}
		})
	}
	t.Run("the pod runs when it is removed", func(t *testing.T) {
		races := interceptor.Funcs{Delete: func(ctx context.Context, writer client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if pod, is := object.(*corev1.Pod); is {
				running := pod.DeepCopy()
				running.Status.Phase = corev1.PodRunning
				if err := writer.Update(ctx, running); err != nil {
					return err
				}
			}
			return writer.Delete(ctx, object, options...)
		}}
		s := newStage(t, races, nodeWith(governed(), true), reportOf(nil), turn(), instructed(), podIn(corev1.PodPending))
		_, err := s.Roll(t.Context(), s.look())
		if got := s.there(); !apierrors.IsConflict(err) || got != "turn, instruction, pod, cordon" {
			t.Errorf("Roll() = %v, and there is only %q", err, got)
		}
	})
}

// TestLabelsTakenOff: somebody takes our labels off a node that has its turn. The turn is ended all the same.
func TestLabelsTakenOff(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, nodeWith(nil, true), reportOf(nil), turn())
	rest, err := s.Return(t.Context(), s.look())
	if err != nil || cmp.Diff([]string{"n1"}, rest.Nodes) != "" {
		t.Errorf("Return() = %+v, %v, want node n1", rest, err)
	}
	for range 3 {
		s.roll()
	}
	if got := s.there(); got != "" {
		t.Errorf("there is still %q", got)
	}
	if rest, err = s.Return(t.Context(), s.look()); err != nil || !rest.Done() {
		t.Errorf("Return() = %+v, %v, want nothing left", rest, err)
	}
}

// TestNothingCanBeHandedOver: a node is not touched when its instruction could not be handed over, and the outcome says how far
// the others are.
func TestNothingCanBeHandedOver(t *testing.T) {
	forbidden := interceptor.Funcs{Create: func(ctx context.Context, writer client.WithWatch, object client.Object, options ...client.CreateOption) error {
		if _, is := object.(*corev1.Pod); is {
			return apierrors.NewForbidden(corev1.Resource("pods"), object.GetName(), nil)
		}
		return writer.Create(ctx, object, options...)
	}}
	badKey := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operators, Name: signingkey.SecretName}, Data: map[string][]byte{"ed25519-seed": []byte("x")}}
	for name, tc := range map[string]struct {
		funcs   interceptor.Funcs
		objects []client.Object
		says    string
	}{
		"the pod is not admitted": {forbidden, nil, "forbidden"},
		"a key that is none":      {interceptor.Funcs{}, []client.Object{badKey}, "somebody has to correct that first"},
	} {
		t.Run(name, func(t *testing.T) {
			enacted := &v1alpha1.NodeEnactment{Phase: v1alpha1.EnactmentInForce, Number: 7, PlanHash: "aaaaaaaa", InForcePlanHash: "aaaaaaaa"}
			s := newStage(t, tc.funcs, append(tc.objects, nodeWith(governed(), false), reportOf(enacted))...)
			for range 2 {
				outcome, err := s.Roll(t.Context(), s.look("n1"))
				if err == nil || !strings.Contains(err.Error(), tc.says) || outcome.GroupOf == nil || cmp.Diff([]string{"n1"}, outcome.Returning) != "" {
					t.Errorf("Roll() = %+v, %v, want %q", outcome, err, tc.says)
				}
			}
			if rest, err := s.Return(t.Context(), s.look()); err == nil || rest.Done() {
				t.Errorf("Return() = %+v, %v", rest, err)
			}
			if got := s.there(); got != "" {
				t.Errorf("the node was touched: %s", got)
			}
		})
	}
}
