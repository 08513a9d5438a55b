// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
)

func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, mcfgv1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []schema.GroupVersionKind{tunedKind(), performanceProfileKind()} {
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	return scheme
}

func mapperWith(kinds ...schema.GroupVersionKind) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range kinds {
		mapper.Add(kind, meta.RESTScopeRoot)
	}
	return mapper
}

// newPlatform makes a platform whose writes are recorded instead of being carried out.
func newPlatform(t *testing.T, written *[]string, objects ...client.Object) *Platform {
	t.Helper()
	record := interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, object runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			named, ok := object.(interface {
				GetName() string
				GetKind() string
			})
			if !ok {
				return errors.New("not an object")
			}
			*written = append(*written, named.GetKind()+" "+named.GetName())
			return nil
		},
		Patch: func(_ context.Context, _ client.WithWatch, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
			*written = append(*written, object.GetObjectKind().GroupVersionKind().Kind+" "+object.GetName())
			return nil
		},
	}
	c := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(objects...).WithInterceptorFuncs(record).WithReturnManagedFields().Build()
	p, err := New(Options{
		Cache: c, Live: c, Client: c, Mapper: mapperWith(tunedKind(), performanceProfileKind()), Namespace: "operator",
	})
	if err != nil {
		t.Fatal(err)
	}
	p.rendered.render = renderText
	return p
}

func TestNewNeedsTuned(t *testing.T) {
	if _, err := New(Options{Mapper: mapperWith()}); err == nil || !strings.Contains(err.Error(), "enable its capability NodeTuning") {
		t.Errorf("New() = %v, want the way out", err)
	}
}

func TestWatches(t *testing.T) {
	for name, tc := range map[string]struct {
		mapper meta.RESTMapper
		want   int
	}{
		"with the peer":    {mapperWith(tunedKind(), performanceProfileKind()), 6},
		"without the peer": {mapperWith(tunedKind()), 5},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := New(Options{Mapper: tc.mapper})
			if err != nil {
				t.Fatal(err)
			}
			if watches := p.Watches(); len(watches) != tc.want || !watches[0].Shared || watches[1].Shared {
				t.Errorf("watches are %+v", watches)
			}
		})
	}
}

func TestRollWritesInOrder(t *testing.T) {
	c := newCluster(t, "n1")
	var written []string
	p := newPlatform(t, &written, c.pools[workerPool], c.nodes["n1"])
	outcome, err := p.Roll(t.Context(), oneNode().intent(c))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"MachineConfigPool " + tradingPool, "MachineConfig 50-lowlatency-" + tradingPool,
		"KubeletConfig lowlatency-" + tradingPool, "Tuned lowlatency-" + tradingPool,
	}
	if !slices.Equal(written, want) {
		t.Errorf("written are %v, want %v", written, want)
	}
	if len(outcome.Groups) != 1 || outcome.RetryAfter != renderTimeout {
		t.Errorf("outcome is %+v", outcome)
	}
}

func TestRollSeesPeers(t *testing.T) {
	c := newCluster(t, "n1")
	peer := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"nodeSelector": map[string]any{"role": "trading"}}}}
	peer.SetGroupVersionKind(performanceProfileKind())
	peer.SetName("cnf")
	var written []string
	outcome, err := newPlatform(t, &written, peer).Roll(t.Context(), oneNode().intent(c))
	if err != nil || len(written) > 0 || len(outcome.Conflicts) != 1 {
		t.Errorf("Roll() = %+v, %v, written are %v, want a conflict only", outcome, err, written)
	}
}

func TestRollReadsWhatIsRendered(t *testing.T) {
	c := newCluster(t, "n1")
	rendered(c)
	objects := []client.Object{c.nodes["n1"]}
	for _, p := range c.pools {
		objects = append(objects, p)
	}
	for _, object := range c.objects {
		objects = append(objects, versioned(object))
	}
	for name, config := range c.configs {
		if name != "50-lowlatency-"+tradingPool {
			objects = append(objects, config)
		}
	}
	var written []string
	p := newPlatform(t, &written, objects...)
	p.rendered.render = func(in manifests.Input) ([]*unstructured.Unstructured, error) {
		out, err := renderText(in)
		for _, object := range out {
			versioned(object)
		}
		return out, err
	}
	outcome, err := p.Roll(t.Context(), oneNode().intent(c))
	if err != nil || !slices.ContainsFunc(written, func(w string) bool { return strings.HasSuffix(w, " n1") }) || outcome.Groups[0].Phase != fleet.PhaseRolling {
		t.Errorf("Roll() = %+v, %v, written are %v, want the node labelled", outcome, err, written)
	}
}

// versioned gives an object the version that the API server serves its kind with.
func versioned(object *unstructured.Unstructured) *unstructured.Unstructured {
	version := mcfgv1.GroupVersion.String()
	if object.GetKind() == kindTuned {
		version = tunedKind().GroupVersion().String()
	}
	object.SetAPIVersion(version)
	return object
}

func TestReturnOfNothing(t *testing.T) {
	c := newCluster(t, "n1")
	var written []string
	p := newPlatform(t, &written, c.pools[workerPool], c.nodes["n1"])
	intent := oneNode().intent(c)
	intent.Shapes, intent.Selected = nil, nil
	rest, err := p.Return(t.Context(), intent)
	if err != nil || !rest.Done() || len(written) > 0 {
		t.Errorf("Return() = %+v, %v, written are %v, want nothing", rest, err, written)
	}
}

func TestRemoveIgnoresWhatIsGone(t *testing.T) {
	var written []string
	p := newPlatform(t, &written)
	gone := poolReference(pool("gone", nil))
	if _, err := p.carryOut(t.Context(), []step{{remove: gone}}); err != nil {
		t.Errorf("removing what is gone: %v", err)
	}
}

func TestErrorsNameTheObject(t *testing.T) {
	broken := errors.New("broken")
	failing := interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return broken },
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return broken
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return broken },
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return broken
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return broken
		},
	}
	c := fake.NewClientBuilder().WithScheme(testScheme(t)).WithInterceptorFuncs(failing).Build()
	p := &Platform{cache: c, live: c, writer: c, clock: clock.RealClock{}}
	intent := oneNode().intent(newCluster(t, "n1"))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	rolled := func() error { _, err := p.Roll(t.Context(), intent); return err }
	returned := func() error { _, err := p.Return(t.Context(), intent); return err }
	carryOut := func(s step) func() error {
		return func() error { _, err := p.carryOut(t.Context(), []step{s}); return err }
	}
	read := func() error { _, err := p.machineConfig(t.Context(), "rendered-x"); return err }
	cases := map[string]struct {
		do   func() error
		want string
	}{
		"roll":   {rolled, "listing MachineConfigPools"},
		"return": {returned, "listing MachineConfigPools"},
		"read":   {read, "reading MachineConfig rendered-x"},
		"apply":  {carryOut(step{apply: poolReference(pool("x", nil))}), "applying MachineConfigPool x"},
		"remove": {carryOut(step{remove: poolReference(pool("x", nil))}), "deleting MachineConfigPool x"},
		"label":  {carryOut(step{label: node, profile: "a"}), "writing the labels of Node n1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := tc.do(); !errors.Is(err, broken) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}
