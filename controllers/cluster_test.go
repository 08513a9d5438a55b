// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// requestCounter counts the requests of a client by method and resource, and notes what it watches. Events and
// leases are not counted.
type requestCounter struct {
	mutex   sync.Mutex
	counts  map[string]int
	watched map[string]bool
	// order are all requests but watches, those about events and leases included, in the order in which they were sent.
	order []*sentRequest
}

// sentRequest is one request. A refused one, such as a conflict, is sent again.
type sentRequest struct {
	text    string
	refused bool
}

func newRequestCounter() *requestCounter {
	return &requestCounter{counts: map[string]int{}, watched: map[string]bool{}}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func (c *requestCounter) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		sent := c.count(request)
		response, err := next.RoundTrip(request)
		c.mutex.Lock()
		defer c.mutex.Unlock()
		sent.refused = err != nil || response.StatusCode >= http.StatusBadRequest
		return response, err
	})
}

func (c *requestCounter) count(request *http.Request) *sentRequest {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	path := request.URL.Path
	sent := &sentRequest{text: request.Method + " " + path}
	if !request.URL.Query().Has("watch") {
		c.order = append(c.order, sent)
	}
	switch {
	case request.URL.Query().Has("watch"):
		c.watched[path] = true
	case strings.Contains(path, "/events") || strings.Contains(path, "/leases"):
	default:
		c.counts[request.Method+" "+path]++
	}
	return sent
}

// watches reports whether the client watches a resource.
func (c *requestCounter) watches(path string) func() bool {
	return func() bool {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		return c.watched[path]
	}
}

// reset forgets what was counted.
func (c *requestCounter) reset() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	clear(c.counts)
	c.order = nil
}

// inOrder are the requests that were carried out, in the order in which they were sent.
func (c *requestCounter) inOrder() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var texts []string
	for _, sent := range c.order {
		if !sent.refused {
			texts = append(texts, sent.text)
		}
	}
	return texts
}

func (c *requestCounter) snapshot() map[string]int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return maps.Clone(c.counts)
}

// rebootCounter is the reboot of simulated nodes: it always succeeds, and takes no time unless it is held up.
type rebootCounter struct {
	mutex  sync.Mutex
	counts map[string]int
	// down are the nodes that reboot now, and most the largest number of them at one time.
	down map[string]bool
	most int
	// stopped keeps nodes that reboot from coming up until it is closed; nil does not.
	stopped chan struct{}
}

func newRebootCounter() *rebootCounter {
	return &rebootCounter{counts: map[string]int{}, down: map[string]bool{}}
}

// Reboot implements embedded.Rebooter.
func (c *rebootCounter) Reboot(ctx context.Context, node string, _ *mcfgv1.MachineConfig) error {
	stopped := c.goDown(node)
	defer c.comeUp(node)
	if stopped == nil {
		return nil
	}
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *rebootCounter) goDown(node string) <-chan struct{} {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.down[node] = true
	c.most = max(c.most, len(c.down))
	return c.stopped
}

func (c *rebootCounter) comeUp(node string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.down, node)
	c.counts[node]++
}

// stop lets nodes that reboot from now on stay down until the returned function is called.
func (c *rebootCounter) stop() (resume func()) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	stopped := make(chan struct{})
	c.stopped = stopped
	return sync.OnceFunc(func() {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.stopped = nil
		close(stopped)
	})
}

// isDown are the nodes that reboot now.
func (c *rebootCounter) isDown() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Sorted(maps.Keys(c.down))
}

func (c *rebootCounter) reset() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	clear(c.counts)
	c.most = 0
}

func (c *rebootCounter) of(node string) int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.counts[node]
}

// nodeWatch sees every state of every node, and notes those in which a node is in two custom pools.
type nodeWatch struct {
	mutex sync.Mutex
	found []string
	// moves are the pools that each node was in, by its label, in order.
	moves map[string][]string
}

// watchNodes begins before the first node. A watch that the API server ends, as it does when the reader is slow, goes on where
// it was.
func watchNodes(ctx context.Context, processes *sync.WaitGroup, reader client.WithWatch) *nodeWatch {
	w := &nodeWatch{moves: map[string][]string{}}
	var nodes corev1.NodeList
	Expect(reader.List(ctx, &nodes)).To(Succeed())
	source := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		return reader.Watch(ctx, &corev1.NodeList{}, &client.ListOptions{Raw: &options})
	}}
	stream, err := watchtools.NewRetryWatcherWithContext(ctx, nodes.ResourceVersion, source)
	Expect(err).NotTo(HaveOccurred())
	processes.Go(func() {
		defer GinkgoRecover()
		for event := range stream.ResultChan() {
			node, ok := event.Object.(*corev1.Node)
			Expect(ok).To(BeTrue(), "the watch has ended: %v", event.Object)
			if event.Type == watch.Deleted {
				continue
			}
			var pools mcfgv1.MachineConfigPoolList
			if err := reader.List(ctx, &pools); err == nil {
				w.see(node, pools.Items)
			}
		}
	})
	return w
}

func (w *nodeWatch) see(node *corev1.Node, pools []mcfgv1.MachineConfigPool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if names := customPools(node, pools); len(names) > 1 {
		w.found = append(w.found, fmt.Sprintf("%s in %v", node.Name, names))
	}
	moves, pool := w.moves[node.Name], node.Labels[v1alpha1.LabelPool]
	if len(moves) == 0 || moves[len(moves)-1] != pool {
		w.moves[node.Name] = append(moves, pool)
	}
}

func customPools(node *corev1.Node, pools []mcfgv1.MachineConfigPool) []string {
	var names []string
	for i := range pools {
		selector, err := metav1.LabelSelectorAsSelector(pools[i].Spec.NodeSelector)
		if err == nil && pools[i].Name != "worker" && selector.Matches(labels.Set(node.Labels)) {
			names = append(names, pools[i].Name)
		}
	}
	return names
}

func (w *nodeWatch) violations() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Clone(w.found)
}

// reset forgets the moves.
func (w *nodeWatch) reset() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	clear(w.moves)
}

// movesOf are the pools that a node has been in, by its label, in order; "" is none.
func (w *nodeWatch) movesOf(node string) []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Clone(w.moves[node])
}

// addNodes creates worker nodes with the label role=<role>.
func (s *suite) addNodes(ctx context.Context, role string, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		Expect(s.client.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"node-role.kubernetes.io/worker": "", "role": role},
		}})).To(Succeed())
	}
}

// relabel sets labels of a node; an empty value takes one away.
func (s *suite) relabel(ctx context.Context, name string, set map[string]string) {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(s.client.Get(ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
	before := node.DeepCopy()
	for key, value := range set {
		node.Labels[key] = value
		if value == "" {
			delete(node.Labels, key)
		}
	}
	Expect(s.client.Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
}

// addProfile creates a profile that selects the nodes of a role.
func (s *suite) addProfile(ctx context.Context, name, role string, change ...func(*v1alpha1.LowLatencyNodeProfile)) {
	GinkgoHelper()
	profile := &v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: name}}
	profile.Spec.NodeSelector.MatchLabels = v1alpha1.Labels{"role": v1alpha1.LabelValue(role)}
	profile.Spec.Pools.MaximumUnavailableNodes = 10
	for _, c := range change {
		c(profile)
	}
	Expect(s.client.Create(ctx, profile)).To(Succeed())
}

// changeProfile changes the spec of a profile.
func (s *suite) changeProfile(ctx context.Context, name string, change func(*v1alpha1.LowLatencyNodeProfile)) {
	GinkgoHelper()
	profile := s.profile(ctx, name)
	before := profile.DeepCopy()
	change(profile)
	Expect(s.client.Patch(ctx, profile, client.MergeFrom(before))).To(Succeed())
}

func (s *suite) profile(ctx context.Context, name string) *v1alpha1.LowLatencyNodeProfile {
	GinkgoHelper()
	profile := &v1alpha1.LowLatencyNodeProfile{}
	Expect(s.client.Get(ctx, client.ObjectKey{Name: name}, profile)).To(Succeed())
	return profile
}

func (s *suite) node(ctx context.Context, name string) *corev1.Node {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(s.client.Get(ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
	return node
}

// managedPools are the operator's pools by name.
func (s *suite) managedPools(ctx context.Context) map[string]*mcfgv1.MachineConfigPool {
	GinkgoHelper()
	var pools mcfgv1.MachineConfigPoolList
	Expect(s.client.List(ctx, &pools, client.HasLabels{v1alpha1.LabelProfile})).To(Succeed())
	byName := map[string]*mcfgv1.MachineConfigPool{}
	for i := range pools.Items {
		byName[pools.Items[i].Name] = &pools.Items[i]
	}
	return byName
}

// ownKinds are the kinds of everything that the operator makes.
func ownKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		mcfgv1.GroupVersion.WithKind("MachineConfigPool"), mcfgv1.GroupVersion.WithKind("MachineConfig"),
		mcfgv1.GroupVersion.WithKind("KubeletConfig"), nodev1.SchemeGroupVersion.WithKind("RuntimeClass"),
		{Group: "tuned.openshift.io", Version: "v1", Kind: "Tuned"}, corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	}
}

// ownObjects are the objects of the operator, as "Kind name".
func (s *suite) ownObjects(ctx context.Context) []string {
	GinkgoHelper()
	kinds := ownKinds()
	names := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		Expect(s.client.List(ctx, list, client.HasLabels{v1alpha1.LabelProfile})).To(Succeed())
		for i := range list.Items {
			names = append(names, kind.Kind+" "+list.Items[i].GetName())
		}
	}
	return names
}

// expectNothingLeft checks that nothing of the operator's is left on any node and no object of its own exists.
func (s *suite) expectNothingLeft(ctx context.Context) {
	GinkgoHelper()
	Expect(s.ownObjects(ctx)).To(BeEmpty())
	var reports v1alpha1.LowLatencyNodeList
	Expect(s.client.List(ctx, &reports)).To(Succeed())
	Expect(reports.Items).To(BeEmpty())
	var nodes corev1.NodeList
	Expect(s.client.List(ctx, &nodes)).To(Succeed())
	for i := range nodes.Items {
		node := &nodes.Items[i]
		Expect(node.Labels).NotTo(HaveKey(v1alpha1.LabelProfile))
		Expect(node.Labels).NotTo(HaveKey(v1alpha1.LabelPool))
		Expect(node.Spec.Taints).NotTo(ContainElement(HaveField("Key", v1alpha1.TaintUnverified)))
		Expect(node.Annotations).NotTo(HaveKey(v1alpha1.AnnotationStarted))
		for _, condition := range node.Status.Conditions {
			Expect(string(condition.Type)).NotTo(HavePrefix("LowLatency"))
		}
	}
}

// collectGarbage deletes the machine configs whose KubeletConfig is gone, and the objects whose pool is gone, as a
// cluster's garbage collector does.
func (s *suite) collectGarbage(ctx context.Context) {
	GinkgoHelper()
	var configs mcfgv1.MachineConfigList
	Expect(s.client.List(ctx, &configs)).To(Succeed())
	for i := range configs.Items {
		if strings.HasPrefix(configs.Items[i].Name, "99-") {
			// The platform collects them by itself, perhaps at this moment.
			Expect(client.IgnoreNotFound(s.client.Delete(ctx, &configs.Items[i]))).To(Succeed())
		}
	}
	s.collectObjectsOfPools(ctx)
	s.collectLeases(ctx)
}

// conditionsOf prints conditions, so that a failing test says what the operator says.
func conditionsOf(conditions []metav1.Condition) []string {
	texts := make([]string, 0, len(conditions))
	for _, c := range conditions {
		texts = append(texts, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return texts
}
