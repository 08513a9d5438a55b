// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package mistakes

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/jedib0t/go-pretty/v6/table"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodeclient"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/cluster"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/embedded"
)

// Manager, agent and device plugin are processes of their own in a churn: this program, started again with a role. They
// tell their figures themselves, because nobody else can count the goroutines of a process.

const (
	roleVariable = "MISTAKES_ROLE"
	// samplePace is how often a role writes a line.
	samplePace = 2 * time.Second
	// samplesPerProfile is after how many lines it writes a heap profile, where these are wanted.
	samplesPerProfile = 60
	// profileRate is one sample in so many bytes: growth of a few megabytes is to be told apart by its cause.
	profileRate = 8 << 10
)

//nolint:gochecknoglobals // That is how flags of tests are made.
var (
	churnFlag    = flag.Duration("churn", 0, "for how long nodes flap, profiles are edited and agents restarted; 0 for not at all")
	seriesFlag   = flag.String("series", "", "a file for the measured series, as CSV")
	profilesFlag = flag.String("profiles", "", "a folder for heap profiles of the processes of a churn")
)

// role is what a process of a churn is.
type role struct {
	// Name is manager, agent or plugin.
	Name, Kubeconfig, Samples string
	// Profiles is where heap profiles go, without their number; "" for none.
	Profiles                 string
	Node, Root, PodResources string
	Plugin                   embedded.PluginOnNode
}

// sample is one measurement of a process.
type sample struct {
	At         time.Time
	HeapKiB    int64
	RSSKiB     int64
	Goroutines int64
	Files      int64
}

func TestMain(m *testing.M) {
	if text := os.Getenv(roleVariable); text != "" {
		if err := playRole(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// playRole runs the production code of a role until the process is killed.
func playRole(text string) error {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return fmt.Errorf("reading the role: %w", err)
	}
	ctx := context.Background()
	ctrl.SetLogger(logr.Discard())
	if r.Profiles != "" {
		runtime.MemProfileRate = profileRate
	}
	go r.measure()
	if r.Name == "plugin" {
		return cluster.NewPlugin(r.Plugin, time.Second).Run(ctx)
	}
	connection, err := clientcmd.BuildConfigFromFlags("", r.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading %s: %w", r.Kubeconfig, err)
	}
	connection.QPS = -1
	if r.Name == "manager" {
		return cluster.RunOperator(ctx, connection, "")
	}
	direct, err := nodeclient.New(connection)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	return cluster.NewAgent(direct, r.Node, r.Root, r.PodResources, agentPace()).Run(ctx)
}

// measure appends a line to the file of samples as long as the process lives.
func (r *role) measure() {
	file, err := os.Create(r.Samples)
	if err != nil {
		return
	}
	for lines := 1; ; lines++ {
		debug.FreeOSMemory()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return
		}
		text, err := json.Marshal(sample{
			At: time.Now(), HeapKiB: int64(memory.HeapAlloc >> 10), RSSKiB: residentKiB(), //nolint:gosec // Far below the limit.
			Goroutines: int64(runtime.NumGoroutine()), Files: int64(len(files)),
		})
		if err != nil {
			return
		}
		if _, err := file.Write(append(text, '\n')); err != nil {
			return
		}
		if r.Profiles != "" && lines%samplesPerProfile == 0 && r.profile(lines/samplesPerProfile) != nil {
			return
		}
		time.Sleep(samplePace)
	}
}

// profile writes what the live heap was allocated for, as "go tool pprof -sample_index=inuse_space -diff_base" compares.
func (r *role) profile(number int) error {
	file, err := os.Create(fmt.Sprintf("%s-%03d.heap", r.Profiles, number))
	if err != nil {
		return fmt.Errorf("making a heap profile: %w", err)
	}
	return errors.Join(pprof.WriteHeapProfile(file), file.Close())
}

// residentKiB is the anonymous memory of this process.
func residentKiB() int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "RssAnon:"); found {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kib
		}
	}
	return 0
}

// troupe are the processes of a churn.
type troupe struct {
	ctx     context.Context
	dir     string
	mutex   sync.Mutex
	started map[string]bool
	running sync.WaitGroup
	failure error
}

// start begins a process that lives until the end of the churn, unless it lives already.
func (p *troupe) start(r role, key string) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.started[key] {
		return nil
	}
	p.started[key] = true
	r.Samples = filepath.Join(p.dir, key+".samples")
	if *profilesFlag != "" {
		r.Profiles = filepath.Join(*profilesFlag, key)
	}
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("describing %s: %w", key, err)
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	command := exec.CommandContext(p.ctx, program)
	command.Env = append(os.Environ(), roleVariable+"="+string(text))
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", key, err)
	}
	p.running.Go(func() {
		if err := command.Wait(); p.ctx.Err() == nil {
			p.mutex.Lock()
			defer p.mutex.Unlock()
			p.failure = errors.Join(p.failure, fmt.Errorf("%s ended: %w", key, err))
		}
	})
	return nil
}

func (p *troupe) failed() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.failure
}

// steady is the node whose agent and device plugin are processes that live through all of the churn.
const steady = "xeon-1"

// newChurnWorld is a world whose manager, and the agent and device plugin of one node, are processes.
func newChurnWorld(t *testing.T) (*world, *troupe) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	p := &troupe{ctx: ctx, dir: t.TempDir(), started: map[string]bool{}}
	kubeconfig := filepath.Join(p.dir, "kubeconfig")
	direct := make(chan *nodeclient.Client, 1)
	options := cluster.Options{
		Agent: func(ctx context.Context, node, root, podResources string) error {
			var connection *nodeclient.Client
			select {
			case connection = <-direct:
				direct <- connection
			case <-ctx.Done():
				return nil
			}
			if node == steady {
				err := p.start(role{Name: "agent", Kubeconfig: kubeconfig, Node: node, Root: root, PodResources: podResources}, "agent")
				<-ctx.Done()
				return err
			}
			return cluster.NewAgent(connection, node, root, podResources, agentPace()).Run(ctx)
		},
		Plugin: func(ctx context.Context, on embedded.PluginOnNode) error {
			if on.Node == steady && strings.Contains(on.PoolFile, v1alpha1.PoolConfigMapPrefix+poolName+"/") {
				err := p.start(role{Name: "plugin", Plugin: on}, "plugin")
				<-ctx.Done()
				return err
			}
			return cluster.NewPlugin(on, 2*time.Second).Run(ctx)
		},
	}
	w, err := newWorldWith(t, options, func(w *world) error {
		connection, err := nodeclient.New(w.Config())
		if err != nil {
			return fmt.Errorf("connecting the agents: %w", err)
		}
		if err := w.WriteKubeconfig(kubeconfig); err != nil {
			return err
		}
		// The agents, those in processes of their own included, have waited for it.
		direct <- connection
		w.stopOperator = func() {}
		return p.start(role{Name: "manager", Kubeconfig: kubeconfig}, "manager")
	})
	// The processes end before the API server, which waits for its clients.
	t.Cleanup(func() {
		cancel()
		p.running.Wait()
	})
	if err != nil {
		t.Fatal(errors.Join(err, p.failed()))
	}
	return w, p
}

// stirrings are what happens in a churn, again and again.
func stirrings() []func(*rand.Rand) step {
	simply := func(s step) func(*rand.Rand) step { return func(*rand.Rand) step { return s } }
	return []func(*rand.Rand) step{
		simply(toggleHugepages()), simply(toggleArgument()), simply(toggleNICHugepages()),
		flapNode, restartAgent, joinOrLeave, replaceNode, newcomerComesOrGoes, gateToggle, impossibleAndBack,
	}
}

// flapNode lets a kubelet be late with its status.
func flapNode(r *rand.Rand) step {
	name := pick(r, "xeon-2", "epyc-1", "spare")
	return step{name: name + " flaps", do: func(w *world) error {
		for _, status := range []corev1.ConditionStatus{corev1.ConditionUnknown, corev1.ConditionTrue} {
			node := &corev1.Node{}
			if err := w.Client.Get(w.ctx, client.ObjectKey{Name: name}, node); err != nil {
				return client.IgnoreNotFound(err)
			}
			before := node.DeepCopy()
			node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: status, Reason: "Flapping"})
			if err := w.Client.Status().Patch(w.ctx, node, client.StrategicMergeFrom(before)); err != nil {
				return fmt.Errorf("flapping Node %s: %w", name, err)
			}
			time.Sleep(200 * time.Millisecond)
		}
		return nil
	}}
}

func restartAgent(r *rand.Rand) step {
	name := pick(r, "xeon-2", "epyc-1")
	return step{name: "the agent of " + name + " restarts", do: func(w *world) error { return w.Fleet.StartAgent(w.ctx, name) }}
}

func joinOrLeave(r *rand.Rand) step {
	var value *string
	if r.IntN(2) == 0 {
		value = new("")
	}
	return step{name: "the spare node joins or leaves", do: func(w *world) error { return w.label("spare", map[string]*string{tradingLabel: value}) }}
}

func newcomerComesOrGoes(r *rand.Rand) step {
	pool := onloadPool("a-newcomer", "lowlatency.dev/newcomer")
	goes := r.IntN(2) == 0
	return step{name: "a pool of the same NICs comes or goes", do: func(w *world) error {
		if goes {
			return w.remove(pool.DeepCopy())
		}
		return w.createOnce(pool.DeepCopy())
	}}
}

func gateToggle(r *rand.Rand) step {
	gate := pick(r, v1alpha1.GateTaint, v1alpha1.GateReportOnly)
	return specStep("gate "+string(gate), func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Verification.Gate = gate })
}

func impossibleAndBack(r *rand.Rand) step {
	s := impossibleSpec(r)
	return step{name: s.name + ", for a moment", do: func(w *world) error {
		err := s.do(w)
		time.Sleep(500 * time.Millisecond)
		return errors.Join(err, w.editProfile(func(s *v1alpha1.LowLatencyNodeProfileSpec) { *s = baseProfile().Spec }))
	}}
}

// churn is what has happened in one: a cluster that is stuck needs nothing, so what it came to is told beside what it needed.
type churn struct{ changes, reboots int }

func (c *churn) add(sum *account) {
	for _, n := range sum.reboots {
		c.reboots += n
	}
}

func TestChurn(t *testing.T) {
	if *churnFlag == 0 {
		// It takes time that only "make churn" gives.
		return
	}
	w, processes := newChurnWorld(t)
	all := stirrings()
	r := rand.New(rand.NewPCG(*seedFlag, 4)) //nolint:gosec // Not for secrets.
	var c churn
	for began := time.Now(); time.Since(began) < *churnFlag; c.changes++ {
		s := all[r.IntN(len(all))](r)
		if err := s.do(w); err != nil {
			t.Logf("%s: %v", s.name, err)
		}
		if err := errors.Join(processes.failed(), w.Failure()); err != nil {
			t.Error(err)
			break
		}
		time.Sleep(time.Duration(500+r.IntN(2500)) * time.Millisecond)
		c.add(w.observer.account())
		if err := w.collectRendered(); err != nil {
			t.Log(err)
		}
	}
	if err := w.restore(); err != nil {
		t.Error(err)
	} else if err := w.awaitGreen(2 * *patience); err != nil {
		t.Error(err)
	}
	c.add(w.observer.account())
	judgeSeries(t, processes.dir, &c)
}

// judgeSeries prints what the processes needed, and fails for what grows.
func judgeSeries(t *testing.T, dir string, c *churn) {
	t.Helper()
	rows := table.NewWriter()
	rows.SetStyle(table.StyleLight)
	rows.SetTitle("%d changes in %v, and %d reboots", c.changes, *churnFlag, c.reboots)
	rows.AppendHeader(table.Row{"process", "figure", "samples", "after a third", "at the end", "least", "most", "per hour", "series", "verdict"})
	var records [][]string
	for _, name := range []string{"manager", "agent", "plugin"} {
		samples, err := readSamples(filepath.Join(dir, name+".samples"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, s := range samples {
			records = append(records, []string{name, s.At.UTC().Format(time.RFC3339), strconv.FormatInt(s.HeapKiB, 10), strconv.FormatInt(s.RSSKiB, 10), strconv.FormatInt(s.Goroutines, 10), strconv.FormatInt(s.Files, 10)})
		}
		for _, f := range figures() {
			rows.AppendRow(judgeFigure(t, name, f, samples))
		}
	}
	printTable(t, rows)
	if *seriesFlag != "" {
		writeSeries(t, records)
	}
}

func writeSeries(t *testing.T, records [][]string) {
	t.Helper()
	file, err := os.Create(*seriesFlag)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // Flushed and checked before.
	out := csv.NewWriter(file)
	header := []string{"process", "time", "heap KiB", "resident KiB", "goroutines", "files"}
	if err := out.WriteAll(append([][]string{header}, records...)); err != nil {
		t.Error(err)
	}
}

func readSamples(path string) ([]sample, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading samples: %w", err)
	}
	var samples []sample
	for line := range strings.Lines(string(text)) {
		var s sample
		// The last line may have been cut off.
		if json.Unmarshal([]byte(line), &s) == nil {
			samples = append(samples, s)
		}
	}
	return samples, nil
}

// figure is one of a sample's, with how much it may grow in all, whatever the duration: slack for noise, and a share of
// what it is.
type figure struct {
	name  string
	of    func(sample) int64
	slack float64
	share float64
}

func figures() []figure {
	return []figure{
		{"heap KiB", func(s sample) int64 { return s.HeapKiB }, 2048, 0.10},
		{"resident KiB", func(s sample) int64 { return s.RSSKiB }, 8192, 0.15},
		{"goroutines", func(s sample) int64 { return s.Goroutines }, 8, 0.05},
		{"files", func(s sample) int64 { return s.Files }, 4, 0.05},
	}
}

// judgeFigure fails when a figure grows by more than noise explains, as its slope tells after the first third, in which
// caches fill.
func judgeFigure(t *testing.T, process string, f figure, samples []sample) table.Row {
	t.Helper()
	settled := samples[len(samples)/3:]
	if len(settled) < 2 {
		t.Errorf("%s has given %d samples only", process, len(samples))
		return table.Row{process, f.name, len(samples)}
	}
	values := make([]float64, 0, len(settled))
	for _, s := range settled {
		values = append(values, float64(f.of(s)))
	}
	duration := settled[len(settled)-1].At.Sub(settled[0].At)
	perHour := slope(settled, values)
	grown := perHour * duration.Hours()
	verdict := "flat"
	if middle := median(values); grown > f.slack+f.share*middle {
		verdict = "grows"
		t.Errorf("%s: %s grow by %.0f in %v, from a median of %.0f", process, f.name, grown, duration.Round(time.Second), middle)
	}
	return table.Row{
		process, f.name, len(samples), int64(values[0]), int64(values[len(values)-1]), int64(slices.Min(values)), int64(slices.Max(values)),
		fmt.Sprintf("%+.0f", perHour), spark(values), verdict,
	}
}

// slope is the median of the slopes between all pairs (Theil and Sen), per hour: single spikes do not move it.
func slope(samples []sample, values []float64) float64 {
	var slopes []float64
	for i := range samples {
		for j := i + 1; j < len(samples); j++ {
			if hours := samples[j].At.Sub(samples[i].At).Hours(); hours > 0 {
				slopes = append(slopes, (values[j]-values[i])/hours)
			}
		}
	}
	return median(slopes)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// spark draws a series in a line.
func spark(values []float64) string {
	const columns = 24
	levels := []rune("▁▂▃▄▅▆▇█")
	least, most := slices.Min(values), slices.Max(values)
	var b strings.Builder
	for column := range min(columns, len(values)) {
		value := values[column*len(values)/min(columns, len(values))]
		level := 0
		if most > least {
			level = int((value - least) / (most - least) * float64(len(levels)-1))
		}
		b.WriteRune(levels[level])
	}
	return b.String()
}

func TestGrowthIsFound(t *testing.T) {
	began := time.Now()
	const minutes = 60
	samples := make([]sample, 0, minutes)
	flat, growing := make([]float64, 0, minutes), make([]float64, 0, minutes)
	for i := range minutes {
		samples = append(samples, sample{At: began.Add(time.Duration(i) * time.Minute)})
		noise := float64(i*7%5) - 2
		flat, growing = append(flat, 100+noise), append(growing, 100+float64(i)+noise)
	}
	if got := slope(samples, flat); got < -1 || got > 1 {
		t.Errorf("the slope of a flat series is %v per hour", got)
	}
	if got := slope(samples, growing); got < 58 || got > 62 {
		t.Errorf("the slope of a series that grows by 60 per hour is %v", got)
	}
}
