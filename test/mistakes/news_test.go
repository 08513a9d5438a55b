// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package mistakes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// news notes what a manager has been told of Nodes, and when it sent the statuses of profiles and pools. The news of a machine
// is on its way for as long as the watch takes, and so is a status: with a slow server either is long. So neither time nor the
// order of the writes tells whether a status could speak for a machine, but the order at the manager's end does.
type news struct {
	mutex sync.Mutex
	// step counts what was told and sent, in the order in which the manager saw it.
	step int64
	// told are the Nodes as the manager was told of them.
	told map[string][]telling
	// began is the step of the first write of the manager that runs now: it had filled its caches then. 0: it has not written.
	began int64
	// sent are the steps at which the statuses of an object were sent.
	sent map[string][]int64
	// written are the sendings that were written with a revision.
	written map[writtenStatus]sending
	// underway are the statuses of an object that are sent and not answered.
	underway map[string]int
}

// telling is a Node as the manager was told of it at a step; nil when it was told that there is none.
type telling struct {
	step int64
	node *metav1.ObjectMeta
}

// writtenStatus is a status as etcd has it.
type writtenStatus struct {
	object   string
	revision int64
}

// sending is a status on its way to the server, and since sure is what the manager knew when it began to make it, at the least.
type sending struct {
	object string
	sure   int64
}

// keyOfSending finds the sending that a request is.
type keyOfSending struct{}

func newNews() *news {
	return &news{told: map[string][]telling{}, sent: map[string][]int64{}, written: map[writtenStatus]sending{}, underway: map[string]int{}}
}

// restart forgets what a manager knew that has ended.
func (n *news) restart() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.began = 0
	clear(n.told)
	clear(n.sent)
}

// next is the next step. The mutex is held.
func (n *news) next() int64 {
	n.step++
	return n.step
}

// hadHeard reports whether the manager, when it began to make a status, had been told that a Node is this machine and has the
// labels of a selector. A pass that was under way when the news came may end in one write that does not know of it: so the news
// must be older than the write of the same status before, or than all that the manager has written. A status that was not
// written over the link, or whose answer was lost, counts as one that knew.
func (n *news) hadHeard(written writtenStatus, selector v1alpha1.NodeSelector, machine *corev1.Node) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	status, found := n.written[written]
	if !found {
		return true
	}
	var known *metav1.ObjectMeta
	for _, t := range n.told[machine.Name] {
		if t.step <= status.sure {
			known = t.node
		}
	}
	return known != nil && known.UID == machine.UID && hasLabels(known.Labels, selector)
}

// isUnderway reports whether a status of an object is sent and not answered.
func (n *news) isUnderway(object string) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.underway[object] > 0
}

// atManager lays the end of a connection at which the manager is over the rest of it.
func (n *news) atManager(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method == http.MethodGet && request.URL.Path == "/api/v1/nodes" {
			return n.listen(next, request)
		}
		if isWrite(request) {
			request = n.noteSending(request)
		}
		return next.RoundTrip(request)
	})
}

// listen reads Nodes, or a watch of them, as JSON.
func (n *news) listen(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	kinds := slices.DeleteFunc(strings.Split(request.Header.Get("Accept"), ","), func(kind string) bool { return strings.Contains(kind, "protobuf") })
	request.Header.Set("Accept", strings.Join(kinds, ","))
	response, err := next.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	if request.URL.Query().Has("watch") {
		response.Body = &toldBody{ReadCloser: response.Body, news: n}
		return response, nil
	}
	text, err := drain(&response.Body)
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []struct{ Metadata metav1.ObjectMeta }
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("parsing a list of Nodes: %w", err)
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for name := range n.told {
		n.told[name] = append(n.told[name], telling{step: n.next()})
	}
	for i := range list.Items {
		node := &list.Items[i].Metadata
		n.told[node.Name] = append(n.told[node.Name], telling{n.next(), node})
	}
	return response, nil
}

// toldBody is a watch of Nodes in JSON, an event on a line.
type toldBody struct {
	io.ReadCloser

	news *news
	rest []byte
}

func (b *toldBody) Read(into []byte) (int, error) {
	read, err := b.ReadCloser.Read(into)
	b.rest = append(b.rest, into[:read]...)
	for {
		line, rest, found := bytes.Cut(b.rest, []byte("\n"))
		if !found {
			return read, err
		}
		b.rest = rest
		b.news.tell(line)
	}
}

// tell notes an event of a watch of Nodes.
func (n *news) tell(line []byte) {
	var e struct {
		Type   string
		Object struct{ Metadata metav1.ObjectMeta }
	}
	if json.Unmarshal(line, &e) != nil || e.Object.Metadata.Name == "" {
		// A bookmark, or an error.
		return
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	node := &e.Object.Metadata
	if e.Type == "DELETED" {
		node = nil
	}
	name := e.Object.Metadata.Name
	n.told[name] = append(n.told[name], telling{n.next(), node})
}

// noteSending notes a write, and when it is of a status, what the manager knew.
func (n *news) noteSending(request *http.Request) *http.Request {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	now := n.next()
	if n.began == 0 {
		n.began = now
	}
	object := statusOf(request.URL.Path)
	if object == "" {
		return request
	}
	sure := n.began
	if before := n.sent[object]; len(before) > 0 {
		sure = before[len(before)-1]
	}
	n.sent[object] = append(n.sent[object], now)
	return request.WithContext(context.WithValue(request.Context(), keyOfSending{}, sending{object, sure}))
}

// statusOf is the profile or pool whose status a path is; "" when it is none.
func statusOf(place string) string {
	folder, last := path.Split(place)
	if folder, name := path.Split(path.Clean(folder)); last == "status" {
		switch path.Base(folder) {
		case "lowlatencynodeprofiles":
			return nameOf(&v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: name}})
		case "bypassnicpools":
			return nameOf(&v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	return ""
}

// atServer lays the end of a connection at which the server is over the transport: a write whose answer the manager never sees
// has its revision here.
func (n *news) atServer(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		status, found := request.Context().Value(keyOfSending{}).(sending)
		if !found {
			return next.RoundTrip(request)
		}
		n.count(status.object, 1)
		defer n.count(status.object, -1)
		response, err := next.RoundTrip(request)
		if err != nil || response.StatusCode != http.StatusOK {
			return response, err
		}
		return response, n.noteWritten(status, response)
	})
}

func (n *news) count(object string, more int) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.underway[object] += more
}

// noteWritten notes the revision of a status that was written. One that changed nothing has the revision of the write before.
func (n *news) noteWritten(status sending, response *http.Response) error {
	text, err := drain(&response.Body)
	if err != nil {
		return err
	}
	var written struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(text, &written); err != nil {
		return fmt.Errorf("parsing %s: %w", status.object, err)
	}
	revision, err := strconv.ParseInt(written.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return fmt.Errorf("parsing the resourceVersion of %s: %w", status.object, err)
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if key := (writtenStatus{status.object, revision}); n.written[key] == (sending{}) {
		n.written[key] = status
	}
	return nil
}
