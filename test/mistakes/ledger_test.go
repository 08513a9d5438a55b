// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package mistakes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

// ledger notes what the manager had read when it tainted a node. Between its last read and its write is an instant in which
// the node may prove its plan; on a busy machine, or with a slow API server, the instant is long. So no time tells whether a
// taint was right, but what had been read does.
type ledger struct {
	mutex sync.Mutex
	// reads are the revisions of the LowLatencyNodes that were read from the server since the last taint of their node.
	reads map[string]int64
	// taints are the revisions that had been read for a write of the taints of a Node as it was at a revision.
	taints map[taintedNode]int64
}

// taintedNode is a Node with the revision that a write of its taints has replaced.
type taintedNode struct {
	name     string
	revision string
}

func newLedger() *ledger { return &ledger{reads: map[string]int64{}, taints: map[taintedNode]int64{}} }

// readFor is the revision of the LowLatencyNode that the manager had read when it wrote the taints of a Node; found is
// false when it had read none for that write.
func (l *ledger) readFor(written taintedNode) (revision int64, found bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	revision, found = l.taints[written]
	return revision, found
}

// over lays the ledger over a transport.
func (l *ledger) over(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		folder, name := path.Split(request.URL.Path)
		switch {
		case request.Method == http.MethodGet && strings.HasSuffix(folder, "/lowlatencynodes/"):
			response, err := next.RoundTrip(request)
			if err != nil {
				return nil, err
			}
			return response, l.noteRead(name, response)
		case request.Method == http.MethodPatch && folder == "/api/v1/nodes/":
			if err := l.noteTaint(name, request); err != nil {
				return nil, err
			}
		}
		return next.RoundTrip(request)
	})
}

// noteRead notes a LowLatencyNode that was read; one that does not exist has revision 0.
func (l *ledger) noteRead(name string, response *http.Response) error {
	text, err := drain(&response.Body)
	if err != nil {
		return err
	}
	var read struct {
		Metadata struct{ ResourceVersion string }
	}
	var revision int64
	switch response.StatusCode {
	case http.StatusNotFound:
	case http.StatusOK:
		if err := json.Unmarshal(text, &read); err != nil {
			return fmt.Errorf("parsing LowLatencyNode %s: %w", name, err)
		}
		if revision, err = strconv.ParseInt(read.Metadata.ResourceVersion, 10, 64); err != nil {
			return fmt.Errorf("parsing the resourceVersion of LowLatencyNode %s: %w", name, err)
		}
	default:
		return nil
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.reads[name] = revision
	return nil
}

// noteTaint notes a write of the taints of a Node, which tells by its resourceVersion what it replaces.
func (l *ledger) noteTaint(name string, request *http.Request) error {
	text, err := drain(&request.Body)
	if err != nil {
		return err
	}
	var patch struct {
		Metadata struct{ ResourceVersion string }
		Spec     struct{ Taints json.RawMessage }
	}
	if err := json.Unmarshal(text, &patch); err != nil || patch.Spec.Taints == nil || patch.Metadata.ResourceVersion == "" {
		// It writes no taints, or is not a merge patch, which the server judges.
		return nil
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if revision, found := l.reads[name]; found {
		l.taints[taintedNode{name, patch.Metadata.ResourceVersion}] = revision
		// What was read counts for one write.
		delete(l.reads, name)
	}
	return nil
}

// drain reads a body and puts a copy in its place.
func drain(body *io.ReadCloser) ([]byte, error) {
	text, err := io.ReadAll(*body)
	if err != nil {
		return nil, fmt.Errorf("reading a body: %w", err)
	}
	if err := (*body).Close(); err != nil {
		return nil, fmt.Errorf("closing a body: %w", err)
	}
	*body = io.NopCloser(bytes.NewReader(text))
	return text, nil
}
