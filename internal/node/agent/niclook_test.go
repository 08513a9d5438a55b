// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/tunedhost"
)

// never is an interval that no test lives to see.
const never = 100000 * time.Hour

// memory is an API server with one LowLatencyNode and the ConfigMaps of one plan and one pool.
type memory struct {
	mutex   sync.Mutex
	node    v1alpha1.LowLatencyNode
	configs map[string]string
	// written gets the name of what was written last.
	written chan struct{}
}

func (m *memory) LowLatencyNode(context.Context, string) (*v1alpha1.LowLatencyNode, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.node.DeepCopy(), nil
}

func (m *memory) ApplyStatus(_ context.Context, object *unstructured.Unstructured) error {
	var node v1alpha1.LowLatencyNode
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &node); err != nil {
		return err
	}
	m.mutex.Lock()
	m.node.Status = node.Status
	m.mutex.Unlock()
	m.written <- struct{}{}
	return nil
}

func (m *memory) ConfigMap(_ context.Context, _, name string) (*corev1.ConfigMap, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: m.configs[name]},
		Data:       map[string]string{v1alpha1.PlanKey: m.configs[name], v1alpha1.PoolKey: m.configs[name]},
	}, nil
}

func (*memory) PatchLease(context.Context, string, string, []byte) error { return nil }

// put stores something as JSON.
func (m *memory) put(t *testing.T, name string, content any) {
	t.Helper()
	text, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.configs[name] = string(text)
}

// health is what the status says about the NICs of the pool, and for which generation.
func (m *memory) health() (health v1alpha1.NICHealth, generation int64) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, nic := range m.node.Status.BypassNICs {
		health, generation = nic.Health, nic.PoolGeneration
	}
	return health, generation
}

// reasons are what the status says about the NICs of the pool.
func (m *memory) reasons() string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	var all []string
	for _, nic := range m.node.Status.BypassNICs {
		all = append(all, nic.Reasons...)
	}
	return strings.Join(all, " ")
}

// nicScene is an agent that runs on a machine with one NIC of a pool, by a clock that the test moves.
type nicScene struct {
	*testing.T
	*memory

	host  *tunedhost.Host
	nic   hosttree.NIC
	pool  bypass.Pool
	clock *clocktesting.FakeClock
}

func newNICScene(t *testing.T) *nicScene {
	t.Helper()
	h, err := tunedhost.New(t.Context(), t.TempDir(), tunedhost.Small(hosttree.Xeon()), tunedhost.Profile())
	if err != nil {
		t.Fatal(err)
	}
	s := &nicScene{T: t, host: h, clock: clocktesting.NewFakeClock(time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC))}
	machine := tunedhost.Small(hosttree.Xeon())
	s.nic = machine.NICs[len(machine.NICs)-1]
	s.pool = bypass.Pool{Name: "x2", Generation: 1, Spec: v1alpha1.BypassNICPoolSpec{
		ResourceName: "x.example/x2", NICs: []v1alpha1.NICSelector{{PCIAddresses: []v1alpha1.PCIAddress{v1alpha1.PCIAddress(s.nic.PCIAddress)}}},
		Stack: v1alpha1.BypassStack{Type: v1alpha1.StackAFXDP, AFXDP: &v1alpha1.AFXDPStack{}},
	}}
	s.memory = &memory{configs: map[string]string{}, written: make(chan struct{}, 100)}
	s.node.Name = "n1"
	s.node.Spec = v1alpha1.LowLatencyNodeSpec{Profile: "trading", PlanHash: h.Plan.Hash(), PlanConfigMap: "plan", BypassPools: []string{"x2"}}
	s.put(t, "plan", h.Plan)
	s.put(t, v1alpha1.PoolConfigMapPrefix+"x2", s.pool)
	return s
}

// run starts the agent, and waits until it has passed over the host twice and waits for its clock alone.
func (s *nicScene) run() {
	s.Helper()
	worker := &Agent{
		Client: s.memory, NodeName: "n1", Namespace: "system", Root: s.host.Dir, Clock: s.clock,
		Interval: never, FullInterval: never, Window: time.Nanosecond,
		HostAddresses: []netip.Addr{netip.MustParseAddr(hosttree.NodeAddress)},
	}
	ctx, stop := context.WithCancel(s.Context())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	s.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			s.Error(err)
		}
	})
}

// step lets time go by while the agent waits, until the status is as wanted. A pass over the host without a reason is never due.
func (s *nicScene) step(why string, wanted func() bool) {
	s.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !wanted(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("waited in vain until %s: %s", why, s.reasons())
		}
		if s.clock.HasWaiters() {
			s.clock.Step(time.Second)
		}
	}
}

// TestLostLinkIsReportedBetweenPasses: a look at the NICs finds it, not the pass over the host that is never due.
func TestLostLinkIsReportedBetweenPasses(t *testing.T) {
	s := newNICScene(t)
	s.run()
	hasLink := func() bool { return !strings.Contains(s.reasons(), "has no link") }
	s.step("the NIC is reported", func() bool { health, _ := s.health(); return health != "" })
	if !hasLink() {
		t.Fatalf("the link was lost before: %s", s.reasons())
	}
	if err := hosttree.SetCarrier(s.host.Dir, s.nic.Name, false); err != nil {
		t.Fatal(err)
	}
	s.step("the lost link is reported", func() bool { return !hasLink() })
	if err := hosttree.SetCarrier(s.host.Dir, s.nic.Name, true); err != nil {
		t.Fatal(err)
	}
	s.step("the link that came back is reported", hasLink)
}

// TestNewSpecIsReportedWhenItsConfigMapComesLate: an agent that has read the former spec of a pool reads again soon.
func TestNewSpecIsReportedWhenItsConfigMapComesLate(t *testing.T) {
	s := newNICScene(t)
	s.node.Spec.PlannedPools = []v1alpha1.PlannedPool{{Name: "x2", Generation: 2}}
	s.run()
	s.step("the former spec is reported", func() bool { _, generation := s.health(); return generation == 1 })
	s.pool.Generation = 2
	s.put(t, v1alpha1.PoolConfigMapPrefix+"x2", s.pool)
	s.step("the new spec is reported", func() bool { _, generation := s.health(); return generation == 2 })
}
