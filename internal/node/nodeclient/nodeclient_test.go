// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package nodeclient

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

const nodeText = `{"apiVersion":"lowlatency.dev/v1alpha1","kind":"LowLatencyNode","metadata":{"name":"a","generation":3}}`

// server answers as an API server would, and notes what it was asked.
func server(t *testing.T, asked *[]string) *Client {
	t.Helper()
	answers := map[string]string{
		"/apis/lowlatency.dev/v1alpha1/lowlatencynodes/a":        nodeText,
		"/apis/lowlatency.dev/v1alpha1/lowlatencynodes/a/status": nodeText,
		"/apis/lowlatency.dev/v1alpha1/lowlatencynodes":          `{"type":"MODIFIED","object":` + nodeText + "}\n",
		"/api/v1/namespaces/n/configmaps/plan":                   `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"plan"},"data":{"k":"v"}}`,
		"/apis/coordination.k8s.io/v1/namespaces/n/leases/a":     `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"a"}}`,
	}
	running := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*asked = append(*asked, fmt.Sprint(r.Method, " ", r.URL, " ", r.Header.Get("Content-Type"), " ", string(body)))
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(running.Close)
	made, err := New(&rest.Config{Host: running.URL})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestRequests(t *testing.T) {
	var asked []string
	c := server(t, &asked)
	ctx := t.Context()
	if node, err := c.LowLatencyNode(ctx, "a"); err != nil || node.Generation != 3 {
		t.Errorf("the LowLatencyNode is %+v, %v", node, err)
	}
	if found, err := c.ConfigMap(ctx, "n", "plan"); err != nil || found.Data["k"] != "v" {
		t.Errorf("the ConfigMap is %+v, %v", found, err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}}}
	if err := c.ApplyStatus(ctx, object); err != nil {
		t.Error(err)
	}
	if err := c.PatchLease(ctx, "n", "a", []byte(`{"spec":{}}`)); err != nil {
		t.Error(err)
	}
	want := []string{
		"GET /apis/lowlatency.dev/v1alpha1/lowlatencynodes/a  ",
		"GET /api/v1/namespaces/n/configmaps/plan  ",
		`PATCH /apis/lowlatency.dev/v1alpha1/lowlatencynodes/a/status?fieldManager=lowlatency-agent&force=true application/apply-patch+yaml {"metadata":{"name":"a"}}`,
		`PATCH /apis/coordination.k8s.io/v1/namespaces/n/leases/a?fieldManager=lowlatency-agent application/merge-patch+json {"spec":{}}`,
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestErrorsAreThoseOfTheAPIServer(t *testing.T) {
	c := server(t, new([]string))
	if _, err := c.LowLatencyNode(t.Context(), "b"); !apierrors.IsNotFound(err) {
		t.Errorf("a missing LowLatencyNode gives %v", err)
	}
	if _, err := c.ConfigMap(t.Context(), "n", "none"); !apierrors.IsNotFound(err) {
		t.Errorf("a missing ConfigMap gives %v", err)
	}
}

func TestWatch(t *testing.T) {
	var asked []string
	events, err := server(t, &asked).WatchLowLatencyNode(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	if event := <-events.ResultChan(); event.Type != watch.Modified {
		t.Errorf("the event is %+v", event)
	}
	want := []string{"GET /apis/lowlatency.dev/v1alpha1/lowlatencynodes?fieldSelector=metadata.name%3Da&watch=true  "}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
