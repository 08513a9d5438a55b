// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package mistakes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// faultKind is a way in which an API server, or the way to it, fails.
type faultKind string

const (
	faultLatency  faultKind = "latency"
	faultConflict faultKind = "409"
	faultTooMany  faultKind = "429"
	faultInternal faultKind = "500"
	faultWatches  faultKind = "dropped watches"
	faultAnswers  faultKind = "lost answers"
	// The manager is killed before, or after, a write has reached the API server.
	faultKilledBefore faultKind = "killed before a write"
	faultKilledAfter  faultKind = "killed after a write"
)

func faultKinds() []faultKind {
	return []faultKind{
		faultLatency, faultConflict, faultTooMany, faultInternal, faultWatches, faultAnswers, faultKilledBefore, faultKilledAfter,
	}
}

// fault is one failure; the zero value is none.
type fault struct {
	kind faultKind
	// share of the requests that are hit, between 0 and 1; of a kill, nothing.
	share float64
	// delay is the longest that a request is delayed.
	delay time.Duration
	// write is the number of the write at which the manager is killed, the first one being 1.
	write int
	seed  uint64
}

func (f fault) String() string {
	switch f.kind {
	case "":
		return "no fault"
	case faultLatency:
		return fmt.Sprintf("latency up to %v", f.delay)
	case faultKilledBefore, faultKilledAfter:
		return fmt.Sprintf("%s (number %d)", f.kind, f.write)
	default:
		return fmt.Sprintf("%s for %.0f %%", f.kind, 100*f.share)
	}
}

// errCut is what a client sees of a connection that breaks.
var errCut = errors.New("connection reset by the test")

// link is the way of one manager to the API server. All its faults are those of the moment.
type link struct {
	mutex   sync.Mutex
	fault   fault
	random  *rand.Rand
	writes  int
	hits    int
	dead    bool
	died    chan struct{}
	watches map[*watchBody]bool
}

func newLink() *link {
	return &link{died: make(chan struct{}), watches: map[*watchBody]bool{}, random: rand.New(rand.NewPCG(0, 0))} //nolint:gosec // Not for secrets.
}

// begin starts a fault; the zero value ends it.
func (l *link) begin(f fault) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.fault, l.writes, l.hits = f, 0, 0
	l.random = rand.New(rand.NewPCG(f.seed, 1)) //nolint:gosec // Not for secrets.
}

// end ends the fault and tells how many requests it has hit.
func (l *link) end() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.fault = fault{}
	return l.hits
}

// isDead reports whether the manager was killed.
func (l *link) isDead() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.dead
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// over lays the link over a transport.
func (l *link) over(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.URL.Query().Has("watch") {
			return l.watch(next, request)
		}
		d := l.decide(isWrite(request))
		time.Sleep(d.delay)
		switch {
		case d.cut:
			return nil, errCut
		case d.status != 0:
			return refusal(request, d.status), nil
		}
		response, err := next.RoundTrip(request)
		if err == nil && (d.cutAnswer || l.isDead()) {
			return nil, errors.Join(errCut, response.Body.Close())
		}
		return response, err
	})
}

// isWrite reports whether a request changes something that counts. Events and Leases do not.
func isWrite(request *http.Request) bool {
	path := request.URL.Path
	return request.Method != http.MethodGet && !strings.Contains(path, "/events") && !strings.Contains(path, "/leases")
}

// damage is what a request suffers.
type damage struct {
	delay time.Duration
	// cut: it never arrives; cutAnswer: it does, and the answer is lost.
	cut, cutAnswer bool
	// status is the answer instead of the server's.
	status int
}

func (l *link) decide(write bool) damage {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.dead {
		return damage{cut: true}
	}
	if write {
		l.writes++
	}
	d := l.damage(write)
	if d != (damage{}) {
		l.hits++
	}
	return d
}

func (l *link) damage(write bool) damage {
	hit := l.random.Float64() < l.fault.share
	switch l.fault.kind {
	case faultLatency:
		return damage{delay: time.Duration(l.random.Int64N(int64(l.fault.delay)))}
	case faultWatches:
		if hit {
			l.dropWatches()
		}
	case faultKilledBefore, faultKilledAfter:
		if write && l.writes == l.fault.write {
			l.kill()
			return damage{cut: l.fault.kind == faultKilledBefore, cutAnswer: true}
		}
	case faultAnswers:
		return damage{cutAnswer: hit && write}
	default:
		return l.refused(hit, write)
	}
	return damage{}
}

// refused is the damage of answers that are errors. A conflict exists for writes only.
func (l *link) refused(hit, write bool) damage {
	status := map[faultKind]int{
		faultConflict: http.StatusConflict, faultTooMany: http.StatusTooManyRequests, faultInternal: http.StatusInternalServerError,
	}[l.fault.kind]
	if !hit || l.fault.kind == faultConflict && !write {
		return damage{}
	}
	return damage{status: status}
}

// kill ends the manager as far as the API server can see: nothing of it comes through any more.
func (l *link) kill() {
	l.dead = true
	l.dropWatches()
	close(l.died)
}

func (l *link) dropWatches() {
	for body := range l.watches {
		body.drop()
	}
	clear(l.watches)
	l.hits++
}

func (l *link) watch(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	if l.isDead() {
		return nil, errCut
	}
	response, err := next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body := &watchBody{ReadCloser: response.Body, dropped: make(chan struct{})}
	response.Body = body
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.watches[body] = true
	return response, nil
}

// watchBody is the stream of a watch that may break.
type watchBody struct {
	io.ReadCloser
	once    sync.Once
	dropped chan struct{}
}

func (b *watchBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	select {
	case <-b.dropped:
		return 0, io.ErrUnexpectedEOF
	default:
		return n, err
	}
}

func (b *watchBody) drop() {
	b.once.Do(func() {
		close(b.dropped)
		go func() { _ = b.Close() }()
	})
}

// refusal is an error of an API server.
func refusal(request *http.Request, status int) *http.Response {
	reasons := map[int]metav1.StatusReason{
		http.StatusConflict: metav1.StatusReasonConflict, http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests,
		http.StatusInternalServerError: metav1.StatusReasonInternalError,
	}
	text, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(status), Reason: reasons[status], Message: "the test says so", //nolint:gosec // Three digits.
	})
	if err != nil {
		text = nil
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if status == http.StatusTooManyRequests {
		header.Set("Retry-After", "1")
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)), Request: request,
	}
}

// kindsOf are the kinds of faults by name, for a table.
func kindsOf(counts map[faultKind]int) []faultKind {
	kinds := faultKinds()
	return slices.DeleteFunc(kinds, func(k faultKind) bool { return counts[k] == 0 })
}
