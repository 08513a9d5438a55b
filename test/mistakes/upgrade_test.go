// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package mistakes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/cluster"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/embedded"
)

//nolint:gochecknoglobals // That is how flags of tests are made.
var previousFlag = flag.String("previous", "", "a checkout of the previous version, with this test built in it as mistakes.test; empty for no upgrade")

const (
	// holdTime is several full looks of the agents, and more than the gate waits with anything.
	holdTime = 20 * time.Second
	// definitionsFolder is where a checkout has the definitions.
	definitionsFolder = "config/crd/bases"
)

// release is one of the two versions.
type release struct{ name, program, definitions string }

// upgrade is a world whose manager, agents and device plugins are processes of one version or the other.
type upgrade struct {
	*world
	dir, kubeconfig string
	previous, next  *release
	ready           chan struct{}
	running         sync.WaitGroup
	mutex           sync.Mutex
	// agents are those of the nodes by version, plugins end the device plugins of a node.
	agents  map[string]*release
	plugins map[string]map[int]context.CancelFunc
	started int
	manager *release
	failure error
	// statuses are those of all conditions, as they were written last.
	statuses map[string]metav1.ConditionStatus
	rows     table.Writer
	// rendered is what was rendered by the previous version alone, by the number of hugepages.
	rendered map[int32]map[string]string
	count    int32
}

// TestUpgrade mixes versions: agents and device plugins of one with the manager of the other, in the order of an upgrade, of a rollback, and
// with agents that are ahead of the definitions.
func TestUpgrade(t *testing.T) {
	if *previousFlag == "" {
		// It takes another version, and time, that only "make test-upgrade" gives.
		return
	}
	u := newUpgrade(t)
	u.learn(t)
	u.step(t, "before", u.previous, u.previous, u.previous)
	u.step(t, "definitions first", u.next, u.previous, u.previous)
	u.step(t, "then the manager", u.next, u.next, u.previous)
	u.step(t, "then agents and plugins", u.next, u.next, u.next)
	u.step(t, "back: the manager first", u.next, u.previous, u.next)
	u.step(t, "agents and plugins follow", u.next, u.previous, u.previous)
	u.step(t, "agents ahead of all", u.previous, u.previous, u.next)
	printTable(t, u.rows)
}

// newUpgrade starts a world of the previous version.
func newUpgrade(t *testing.T) *upgrade {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	u := &upgrade{
		dir: t.TempDir(), ready: make(chan struct{}), agents: map[string]*release{}, plugins: map[string]map[int]context.CancelFunc{},
		statuses: map[string]metav1.ConditionStatus{}, rendered: map[int32]map[string]string{}, rows: table.NewWriter(),
		previous: &release{"previous", filepath.Join(*previousFlag, "mistakes.test"), filepath.Join(*previousFlag, definitionsFolder)},
		next:     &release{"this", program, filepath.Join("..", "..", definitionsFolder)},
	}
	u.kubeconfig, u.manager = filepath.Join(u.dir, "kubeconfig"), u.previous
	u.rows.SetStyle(table.StyleLight)
	u.rows.SetTitle("Versions of definitions, manager, and agents with device plugins")
	u.rows.AppendHeader(table.Row{
		"step", "definitions", "manager", "agents", "reboots", "taints", "without cause", "conditions changed", "of them plugins that start", "reboots of a change", "rendered", "seconds", "verdict",
	})
	u.world, err = newWorldWith(t, cluster.Options{Agent: u.runAgent, Plugin: u.runPlugin}, func(w *world) error {
		u.world = w
		if err := u.define(u.previous); err != nil {
			return err
		}
		if err := w.WriteKubeconfig(u.kubeconfig); err != nil {
			return err
		}
		close(u.ready)
		return u.startManager()
	})
	// The processes end before the API server, which waits for its clients.
	t.Cleanup(u.running.Wait)
	t.Cleanup(func() {
		if u.world != nil && u.stopOperator != nil {
			u.stopOperator()
		}
	})
	if err != nil {
		t.Fatal(errors.Join(err, u.failed()))
	}
	return u
}

// define installs the definitions of a version.
func (u *upgrade) define(r *release) error {
	_, err := envtest.InstallCRDs(u.Config(), envtest.CRDInstallOptions{Paths: []string{r.definitions}, ErrorIfPathMissing: true, MaxTime: *patience})
	if err != nil {
		return fmt.Errorf("installing the definitions of the %s version: %w", r.name, err)
	}
	return nil
}

// startManager starts the manager of the version that it is to have.
func (u *upgrade) startManager() error {
	ctx, cancel := context.WithCancel(u.ctx)
	ended := make(chan struct{})
	program := u.manager.program
	u.running.Go(func() {
		defer close(ended)
		if err := u.play(ctx, program, role{Name: "manager", Kubeconfig: u.kubeconfig}); err != nil {
			u.fail(err)
		}
	})
	u.stopOperator = func() {
		cancel()
		<-ended
	}
	return nil
}

// runAgent runs the agent of a node as a process of the version that the node is to have.
func (u *upgrade) runAgent(ctx context.Context, node, root, podResources string) error {
	select {
	case <-u.ready:
	case <-ctx.Done():
		return nil
	}
	return u.play(ctx, u.versionOn(node).program, role{Name: "agent", Kubeconfig: u.kubeconfig, Node: node, Root: root, PodResources: podResources})
}

// runPlugin runs a device plugin as a process, and again, as a DaemonSet does, when the node gets another version.
func (u *upgrade) runPlugin(ctx context.Context, on embedded.PluginOnNode) error {
	for ctx.Err() == nil {
		once, cancel := context.WithCancel(ctx)
		u.mutex.Lock()
		u.started++
		number := u.started
		if u.plugins[on.Node] == nil {
			u.plugins[on.Node] = map[int]context.CancelFunc{}
		}
		u.plugins[on.Node][number] = cancel
		u.mutex.Unlock()
		err := u.play(once, u.versionOn(on.Node).program, role{Name: "plugin", Plugin: on})
		cancel()
		u.mutex.Lock()
		delete(u.plugins[on.Node], number)
		u.mutex.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// play runs a process until the context ends.
func (u *upgrade) play(ctx context.Context, program string, r role) error {
	r.Samples = filepath.Join(u.dir, "samples")
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("describing %s: %w", r.Name, err)
	}
	var said strings.Builder
	command := exec.CommandContext(ctx, program)
	command.Env = append(os.Environ(), roleVariable+"="+string(text))
	command.Stderr = &said
	if err := command.Run(); ctx.Err() == nil {
		return fmt.Errorf("%s %s of %s ended: %w: %s", r.Name, r.Node, program, err, said.String())
	}
	return nil
}

func (u *upgrade) fail(err error) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.failure = errors.Join(u.failure, err)
}

func (u *upgrade) failed() error {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return u.failure
}

// versionOn is the version of what runs on a node.
func (u *upgrade) versionOn(node string) *release {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return cmp.Or(u.agents[node], u.previous)
}

// learn records what the previous version renders for both numbers of hugepages that the profile will have.
func (u *upgrade) learn(t *testing.T) {
	t.Helper()
	u.count = baseProfile().Spec.Memory.Hugepages[0].Count
	for _, count := range []int32{u.count, u.count + 1, u.count} {
		u.change(t, count)
		now, err := u.read()
		if err != nil {
			t.Fatal(err)
		}
		u.rendered[count] = now
	}
	u.observer.begin()
}

// change gives the profile another number of hugepages, and waits until all nodes have proven it.
func (u *upgrade) change(t *testing.T, count int32) {
	t.Helper()
	u.count = count
	err := u.editProfile(func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Memory.Hugepages[0].Count = count })
	if err := errors.Join(err, u.awaitGreen(2**patience), u.failed()); err != nil {
		t.Fatal(err)
	}
}

// step brings three parts to their versions, looks that nothing happens, and makes a change.
func (u *upgrade) step(t *testing.T, name string, definitions, manager, agents *release) {
	t.Helper()
	began := time.Now()
	u.noteStatuses(t)
	restarted, err := u.bring(definitions, manager, agents)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	time.Sleep(holdTime)
	// What is late on a busy machine is waited for.
	if err := u.awaitGreen(*patience); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	changed, held := u.flips(), u.observer.account()
	complaints := append(u.complaints(held), unexpected(changed, restarted)...)
	u.change(t, map[bool]int32{true: 3, false: 2}[u.count == 2])
	after := u.observer.account()
	complaints = append(complaints, u.complaintsOfChange(after)...)
	for _, complaint := range complaints {
		t.Errorf("%s: %s", name, complaint)
	}
	verdict := "as it should be"
	if len(complaints) > 0 {
		verdict = shorten(complaints[0])
	}
	u.rows.AppendRow(table.Row{
		name, definitions.name, manager.name, agents.name, countsText(held.reboots), len(held.taints) + len(after.taints),
		len(doubts(held)) + len(doubts(after)), len(changed), len(changed) - len(unexpected(changed, restarted)), countsText(after.reboots), fmt.Sprintf("%d the same", len(u.rendered[u.count])),
		fmt.Sprintf("%.0f", time.Since(began).Seconds()), verdict,
	})
}

// bring gives all parts their versions: the definitions, the manager, and the nodes one after another. It returns how many device plugins start
// anew.
func (u *upgrade) bring(definitions, manager, agents *release) (restarted int, err error) {
	if err := u.define(definitions); err != nil {
		return 0, err
	}
	if u.manager != manager {
		u.stopOperator()
		u.manager = manager
		if err := u.startManager(); err != nil {
			return 0, err
		}
	}
	for _, node := range u.Fleet.Names() {
		if u.versionOn(node) == agents {
			continue
		}
		u.mutex.Lock()
		u.agents[node] = agents
		for _, end := range u.plugins[node] {
			end()
			restarted++
		}
		u.mutex.Unlock()
		if err := u.Fleet.StartAgent(u.ctx, node); err != nil {
			return 0, err
		}
		time.Sleep(time.Second)
	}
	return restarted, nil
}

// unexpected are the changes of conditions that must not be. While a device plugin starts anew, no container can get a NIC of its node, and the
// pool says so by Ready and Progressing, once for each plugin.
func unexpected(changed []string, restarted int) []string {
	const conditions, thereAndBack = 2, 2
	pool := nameOf(basePool())
	allowed := restarted * conditions * thereAndBack
	var all []string
	for _, change := range changed {
		if strings.HasPrefix(change, pool+" Ready ") || strings.HasPrefix(change, pool+" Progressing ") {
			if allowed--; allowed >= 0 {
				continue
			}
		}
		all = append(all, change)
	}
	return all
}

// complaints are what must not be after another version has come and nothing else.
func (u *upgrade) complaints(held *account) []string {
	var complaints []string
	if err := errors.Join(u.failed(), u.Failure()); err != nil {
		complaints = append(complaints, err.Error())
	}
	for node, count := range held.reboots {
		complaints = append(complaints, fmt.Sprintf("node %s has rebooted %d times", node, count))
	}
	for _, taint := range held.taints {
		complaints = append(complaints, fmt.Sprintf("node %s was tainted: %s", taint.node, taint.why))
	}
	for nic := range held.lost {
		complaints = append(complaints, "a NIC was not healthy all the time: "+nic)
	}
	return append(append(complaints, held.lies...), u.differences()...)
}

// complaintsOfChange are what must not be after a change of the profile: one reboot of each node, and what the previous version has rendered.
func (u *upgrade) complaintsOfChange(after *account) []string {
	complaints := append(doubts(after), after.lies...)
	for node := range u.machines {
		want := 1
		if node == "spare" {
			want = 0
		}
		if got := after.reboots[node]; got != want {
			complaints = append(complaints, fmt.Sprintf("node %s has rebooted %d times for a change, want %d", node, got, want))
		}
	}
	return append(complaints, u.differences()...)
}

func doubts(a *account) []string {
	var all []string
	for _, taint := range a.taints {
		if taint.doubt != "" {
			all = append(all, fmt.Sprintf("node %s was tainted without cause: %s", taint.node, taint.doubt))
		}
	}
	return all
}

// differences are between what is rendered now and what the previous version has rendered of the same profile.
func (u *upgrade) differences() []string {
	now, err := u.read()
	if err != nil {
		return []string{err.Error()}
	}
	var all []string
	want := u.rendered[u.count]
	for name := range want {
		if now[name] != want[name] {
			all = append(all, fmt.Sprintf("%s is not what the previous version has rendered: %s, want %s", name, now[name], want[name]))
		}
	}
	for name := range now {
		if want[name] == "" {
			all = append(all, name+" was not rendered by the previous version")
		}
	}
	slices.Sort(all)
	return all
}

// read reads everything that is rendered, and by which plans nodes are judged.
func (u *upgrade) read() (map[string]string, error) {
	config := schema.GroupVersion{Group: "machineconfiguration.openshift.io", Version: "v1"}
	kinds := []schema.GroupVersionKind{
		config.WithKind("MachineConfig"), config.WithKind("KubeletConfig"), config.WithKind("MachineConfigPool"),
		{Group: "tuned.openshift.io", Version: "v1", Kind: "Tuned"}, {Group: "node.k8s.io", Version: "v1", Kind: "RuntimeClass"},
		v1alpha1.GroupVersion.WithKind("LowLatencyNode"),
	}
	all := map[string]string{}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := u.Client.List(u.ctx, list); err != nil {
			return nil, fmt.Errorf("reading what is rendered: %w", err)
		}
		for i := range list.Items {
			object, name := list.Items[i].Object, kind.Kind+"/"+list.Items[i].GetName()
			if list.Items[i].GetLabels()[v1alpha1.LabelManagedBy] != v1alpha1.ProjectName && kind.Group != v1alpha1.GroupVersion.Group {
				continue
			}
			delete(object, "metadata")
			delete(object, "status")
			text, err := json.Marshal(object)
			if err != nil {
				return nil, fmt.Errorf("reading what is rendered: %w", err)
			}
			all[name] = string(text)
		}
	}
	return all, nil
}

// noteStatuses takes the conditions as they are for the beginning.
func (u *upgrade) noteStatuses(t *testing.T) {
	t.Helper()
	s, err := u.look()
	if err != nil {
		t.Fatal(err)
	}
	clear(u.statuses)
	for _, object := range s.objects() {
		maps.Copy(u.statuses, statusesOf(object))
	}
}

// flips are the changes of conditions since the account was opened, in the order in which they were written.
func (u *upgrade) flips() []string {
	u.observer.mutex.Lock()
	events := slices.Clone(u.observer.events)
	u.observer.mutex.Unlock()
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.revision, b.revision) })
	var all []string
	for i := range events {
		for name, status := range statusesOf(events[i].object) {
			if before, known := u.statuses[name]; known && before != status {
				all = append(all, fmt.Sprintf("%s went from %s to %s", name, before, status))
			}
			u.statuses[name] = status
		}
	}
	return all
}

// statusesOf are the statuses of our conditions of an object, by object and condition.
func statusesOf(object client.Object) map[string]metav1.ConditionStatus {
	var conditions []metav1.Condition
	switch object := object.(type) {
	case *v1alpha1.LowLatencyNodeProfile:
		conditions = object.Status.Conditions
	case *v1alpha1.BypassNICPool:
		conditions = object.Status.Conditions
	case *v1alpha1.LowLatencyNode:
		conditions = object.Status.Conditions
	case *corev1.Node:
		for _, c := range object.Status.Conditions {
			conditions = append(conditions, metav1.Condition{Type: string(c.Type), Status: metav1.ConditionStatus(c.Status)})
		}
	}
	all := map[string]metav1.ConditionStatus{}
	for i := range conditions {
		all[nameOf(object)+" "+conditions[i].Type] = conditions[i].Status
	}
	return all
}
