// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package installer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const image = "registry.example.com/operator@sha256:0a"

func printed(t *testing.T, objects []*unstructured.Unstructured) string {
	t.Helper()
	var text strings.Builder
	for _, object := range objects {
		content, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		text.Write(content)
	}
	return text.String()
}

func TestObjects(t *testing.T) {
	reading, err := Objects(Options{Namespace: "quiet", Image: image, Agents: AgentsRead})
	if err != nil {
		t.Fatal(err)
	}
	repairing, err := Objects(Options{Namespace: "quiet", Image: image, Agents: AgentsRepair})
	if err != nil {
		t.Fatal(err)
	}
	for name, objects := range map[string][]*unstructured.Unstructured{"reading": reading, "repairing": repairing} {
		text := printed(t, objects)
		if strings.Contains(text, SourceNamespace) || strings.Contains(text, SourceImage) {
			t.Errorf("%s agents: what is installed names the namespace or the image of its source", name)
		}
		if !strings.Contains(text, `"--namespace=quiet"`) || !strings.Contains(text, `"image":"`+image+`"`) {
			t.Errorf("%s agents do not run the image with the operator's namespace", name)
		}
		if objects[0].GetKind() != "Namespace" {
			t.Errorf("%s agents: %s comes before the namespace", name, objects[0].GetKind())
		}
		if got, want := strings.Contains(text, `"--repair"`), name == "repairing"; got != want {
			t.Errorf("%s agents: --repair is there: %t", name, got)
		}
	}
	if len(reading) != len(repairing) {
		t.Errorf("%d objects with agents that read, %d with agents that repair", len(reading), len(repairing))
	}
}

func TestObjectsRefuse(t *testing.T) {
	cases := map[string]struct {
		options Options
		want    string
	}{
		"no namespace":           {Options{Image: image, Agents: AgentsRead}, "name of a namespace"},
		"YAML for a namespace":   {Options{Namespace: "a}\nb", Image: image, Agents: AgentsRead}, "name of a namespace"},
		"no image":               {Options{Namespace: "quiet", Agents: AgentsRead}, "name of an image"},
		"YAML for an image":      {Options{Namespace: "quiet", Image: "a\nb: c", Agents: AgentsRead}, "name of an image"},
		"agents of another kind": {Options{Namespace: "quiet", Image: image, Agents: "Break"}, `not "Break"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Objects(tc.options); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}

// cluster is an API server that keeps the names of what is applied.
type cluster struct {
	applied []string
	owners  []metav1.OwnerReference
	refused string
	isBare  bool
}

// client answers for the CustomResourceDefinition that owns everything, and for what is applied.
func (c *cluster) client() client.Client {
	return interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			if c.isBare {
				return errors.New("there is none")
			}
			object.SetName(key.Name)
			object.SetUID("u")
			return nil
		},
		Apply: func(_ context.Context, _ client.WithWatch, object runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			plain, ok := object.(interface {
				GetKind() string
				GetName() string
				GetOwnerReferences() []metav1.OwnerReference
			})
			if !ok {
				return errors.New("applied something else than an object")
			}
			if plain.GetKind() == c.refused {
				return errors.New("no")
			}
			c.applied = append(c.applied, plain.GetKind()+" "+plain.GetName())
			c.owners = plain.GetOwnerReferences()
			return nil
		},
	})
}

// expectOwner expects that what was applied has the right owner.
func (c *cluster) expectOwner(t *testing.T) {
	t.Helper()
	if len(c.applied) > 0 && (len(c.owners) != 1 || c.owners[0].Name != OwnerCRD || c.owners[0].UID != "u") {
		t.Errorf("owners are %+v", c.owners)
	}
}

// mapper knows every kind of the objects but some.
func mapper(objects []*unstructured.Unstructured, except ...string) apimeta.RESTMapper {
	known := apimeta.NewDefaultRESTMapper(nil)
	for _, object := range objects {
		if !slices.Contains(except, object.GetKind()) {
			known.Add(object.GroupVersionKind(), apimeta.RESTScopeRoot)
		}
	}
	return known
}

func TestInstall(t *testing.T) {
	objects, err := Objects(Options{Namespace: "quiet", Image: image, Agents: AgentsRead})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		cluster *cluster
		missing []string
		// want is how many objects are left out, problem is a part of the error.
		want    int
		problem string
	}{
		"everything": {cluster: &cluster{}},
		"kinds that the API server does not have are left out": {
			cluster: &cluster{}, missing: []string{"SecurityContextConstraints", "ServiceMonitor", "PrometheusRule"}, want: 5,
		},
		"one refusal keeps nothing else from it": {
			cluster: &cluster{refused: "DaemonSet"}, want: 1, problem: "installing DaemonSet lowlatency-operator-agent: no",
		},
		"nothing without an owner": {cluster: &cluster{isBare: true}, want: len(objects), problem: "which owns what is installed: there is none"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			install := &Installer{
				Client: tc.cluster.client(), Mapper: mapper(objects, tc.missing...), Objects: objects, Clock: clock.RealClock{}, Log: logr.Discard(),
			}
			err := install.Install(t.Context())
			if (err != nil) != (tc.problem != "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("error is %v, want %q", err, tc.problem)
			}
			if got := len(objects) - len(tc.cluster.applied); got != tc.want {
				t.Errorf("%d objects are left out, want %d: %q", got, tc.want, tc.cluster.applied)
			}
			tc.cluster.expectOwner(t)
			if objects[0].GetOwnerReferences() != nil {
				t.Error("the installer changed the objects that it was given")
			}
		})
	}
}

// TestReady: the ClusterServiceVersion succeeds when the installer is ready, which must not be before all is there.
func TestReady(t *testing.T) {
	objects, err := Objects(Options{Namespace: "quiet", Image: image, Agents: AgentsRead})
	if err != nil {
		t.Fatal(err)
	}
	install := &Installer{Client: (&cluster{refused: "Role"}).client(), Mapper: mapper(objects), Objects: objects, Clock: clock.RealClock{}, Log: logr.Discard()}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := install.Start(ended); err != nil || install.Ready(nil) == nil {
		t.Errorf("ready after a refusal; %v", err)
	}
	install.Client = (&cluster{}).client()
	if err := install.Start(ended); err != nil {
		t.Error(err)
	}
	if err := install.Ready(nil); err != nil {
		t.Error(err)
	}
}
