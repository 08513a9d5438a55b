// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package mistakes

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// wire is a manager's connection with news at both ends.
type wire struct {
	t    *testing.T
	news *news
}

// send sends a request over the connection to a server that answers with a text.
func (w *wire) send(method, place, answer string) *http.Response {
	w.t.Helper()
	server := roundTripper(func(r *http.Request) (*http.Response, error) {
		if accept := r.Header.Get("Accept"); method == http.MethodGet && accept != "application/json" {
			w.t.Errorf("the server was asked for %q, want JSON", accept)
		}
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(answer))}, nil
	})
	request := httptest.NewRequestWithContext(w.t.Context(), method, place, nil)
	request.Header.Set("Accept", "application/vnd.kubernetes.protobuf,application/json")
	response, err := w.news.atManager(w.news.atServer(server)).RoundTrip(request)
	if err != nil {
		w.t.Fatal(err)
	}
	return response
}

// read sends a request and reads the answer to its end, a byte at a time.
func (w *wire) read(method, place, answer string) {
	w.t.Helper()
	response := w.send(method, place, answer)
	defer response.Body.Close() //nolint:errcheck // It is in memory.
	text, err := io.ReadAll(bufio.NewReaderSize(io.MultiReader(response.Body), 1))
	if err != nil || string(text) != answer {
		w.t.Errorf("the manager got %q, %v, want %q", text, err, answer)
	}
}

// TestNewsOfAMachine: a status speaks for the machines of which the manager had been told when it began to make it.
func TestNewsOfAMachine(t *testing.T) {
	const nodes, watch = "/api/v1/nodes", "/api/v1/nodes?watch=true"
	named := func(uid, labels string) string {
		return `{"metadata":{"name":"n","uid":"` + uid + `","resourceVersion":"7","labels":{` + labels + `}}}`
	}
	event := func(kind, uid, labels string) func(*wire) {
		return func(w *wire) {
			w.read(http.MethodGet, watch, `{"type":"`+kind+`","object":`+named(uid, labels)+"}\n")
		}
	}
	listed := func(items string) func(*wire) {
		return func(w *wire) { w.read(http.MethodGet, nodes, `{"items":[`+items+`]}`) }
	}
	status := func(revision string) func(*wire) {
		return func(w *wire) {
			w.read(http.MethodPatch, "/apis/lowlatency.dev/v1alpha1/bypassnicpools/x2/status?fieldManager=m", `{"metadata":{"resourceVersion":"`+revision+`"}}`)
		}
	}
	taint := func(w *wire) { w.read(http.MethodPatch, "/api/v1/nodes/n", `{}`) }
	lease := func(w *wire) { w.read(http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/n/leases/l", `{}`) }
	restart := func(w *wire) { w.news.restart() }
	const trading = `"trading":""`
	first, added := listed(named("old", trading)), event("ADDED", "new", trading)
	do := func(all ...func(*wire)) []func(*wire) { return all }
	cases := map[string]struct {
		do    []func(*wire)
		heard bool
	}{
		"told before the status before":             {do: do(first, status("20"), added, status("30"), status("40")), heard: true},
		"told after the status before":              {do: do(first, status("20"), added, status("40"))},
		"told after the status":                     {do: do(first, status("20"), status("40"), added)},
		"never told":                                {do: do(first, status("20"), status("30"), status("40"))},
		"told and gone again":                       {do: do(first, added, event("DELETED", "new", trading), status("30"), status("40"))},
		"gone from a new list":                      {do: do(first, added, listed(""), status("30"), status("40"))},
		"told with other labels":                    {do: do(first, event("ADDED", "new", `"spare":""`), status("30"), status("40"))},
		"labelled in time":                          {do: do(event("ADDED", "new", `"spare":""`), event("MODIFIED", "new", trading), status("30"), status("40")), heard: true},
		"listed before anything was written":        {do: do(listed(named("new", trading)), status("40")), heard: true},
		"told after the first write of a manager":   {do: do(first, taint, added, status("40"))},
		"a Lease is no write that counts":           {do: do(first, lease, added, status("40")), heard: true},
		"known to a manager that has ended":         {do: do(first, added, status("30"), restart, first, status("40"))},
		"listed by a new manager before it wrote":   {do: do(first, status("30"), restart, listed(named("new", trading)), status("40")), heard: true},
		"written by somebody else":                  {do: do(first, status("20")), heard: true},
		"the same status again, after the news":     {do: do(first, status("20"), status("40"), added, status("40"), status("40"))},
		"an unchanged status does not hide the one": {do: do(first, added, status("30"), status("40"), status("40")), heard: true},
	}
	machine := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: types.UID("new")}}
	selector := v1alpha1.NodeSelector{MatchLabels: v1alpha1.Labels{"trading": ""}}
	pool := nameOf(&v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: "x2"}})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &wire{t: t, news: newNews()}
			for _, act := range tc.do {
				act(w)
			}
			if got := w.news.hadHeard(writtenStatus{pool, 40}, selector, machine); got != tc.heard {
				t.Errorf("heard = %v, want %v", got, tc.heard)
			}
			if w.news.isUnderway(pool) {
				t.Error("a status is still under way")
			}
		})
	}
}
