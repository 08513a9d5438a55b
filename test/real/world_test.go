// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package real

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/jedib0t/go-pretty/v6/table"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/cluster"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

const (
	// patience is how long anything may take: machines of CI are slow.
	patience = 10 * time.Minute
	// pace is that of the simulated platform and of all waiting.
	pace         = 300 * time.Millisecond
	bootTime     = 400 * time.Millisecond
	tradingLabel = "node-role.kubernetes.io/trading"
	managerName  = "lowlatency-operator-controller-manager"
	// rebootsOf and generationOf begin the keys of what is counted beside what is rendered.
	rebootsOf    = "reboots of "
	generationOf = "generation of "
	// olderImage is what the bundle of the version before names.
	olderImage = "ghcr.io/lowlatency-dev/lowlatency-operator:v" + oldVersion
)

// previousFlag names what Operator Lifecycle Manager upgrades from: with its own bundle, rights and program.
//
//nolint:gochecknoglobals // That is how flags of tests are made.
var previousFlag = flag.String("previous", "", "the folder with the source of the version before")

// world is a cluster without the operator.
type world struct {
	*cluster.Cluster
	t *testing.T
	// dir is for everything that is written, kubeconfig how the cluster is reached.
	dir, kubeconfig string
	pods            *podRunner
	rows            table.Writer
	step            time.Time
}

// newWorld starts a cluster of OpenShift's kinds with simulated hosts, each with a label for its role, and a real controller manager; what
// the operator needs is not there yet.
func newWorld(t *testing.T, title string, labels map[string]string) *world {
	t.Helper()
	w, ctx := startWorld(t, title, apiserver.OpenShift)
	w.pods.certifies = true
	for name, label := range labels {
		machine := hosttree.Xeon().Small()
		if strings.HasPrefix(name, "epyc") {
			machine = hosttree.EPYC().Small()
		}
		w.check(w.Fleet.Add(ctx, name, machine, map[string]string{label: ""}))
	}
	w.StartPlatform(ctx)
	w.pods.run(ctx)
	return w
}

// startWorld starts a cluster without hosts, with a real controller manager. The context ends with the test.
func startWorld(t *testing.T, title string, platform apiserver.Platform) (*world, context.Context) {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "rl-") //nolint:usetesting // Paths of unix sockets must be short.
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w := &world{t: t, dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig"), pods: &podRunner{}, rows: table.NewWriter(), step: time.Now()}
	w.rows.SetStyle(table.StyleLight)
	w.rows.SetTitle(title)
	w.rows.SetColumnConfigs([]table.ColumnConfig{{Number: 2, WidthMax: 100}})
	w.rows.AppendHeader(table.Row{"step", "what was seen", "seconds"})
	w.Cluster, err = cluster.Start(ctx, cluster.Options{
		Dir: dir, Platform: platform, Pace: pace, BootTime: bootTime, PluginInterval: 2 * time.Second,
		AgentPace: cluster.AgentPace{Interval: time.Second, FullInterval: 4 * time.Second, Window: 200 * time.Millisecond},
	})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			w.tell()
		}
		cancel()
		w.pods.done.Wait()
		if err := errors.Join(w.Close(), w.keepLogs(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	w.populate(ctx)
	return w, ctx
}

// addKinds adds what our manifests for OpenShift want besides the kinds of its nodes.
func (w *world) addKinds() {
	w.t.Helper()
	definitions, err := apiserver.InstallationCRDs(apiserver.OpenShift)
	w.check(err)
	_, err = envtest.InstallCRDs(w.Config(), envtest.CRDInstallOptions{Paths: definitions, ErrorIfPathMissing: true, MaxTime: patience})
	w.check(err)
}

// tell logs what the state of the cluster is when the test fails.
func (w *world) tell() {
	w.t.Logf("the pods' last trouble: %s; the cluster's: %v", w.pods.trouble(), w.Failure())
	fmt.Println(w.rows.Render())
}

// keepLogs keeps the logs of a test that failed below dist.
func (w *world) keepLogs() error {
	if !w.t.Failed() {
		return nil
	}
	kept := filepath.Join("..", "..", "dist", "real-"+strings.ToLower(w.t.Name()))
	if err := os.RemoveAll(kept); err != nil {
		return fmt.Errorf("keeping logs: %w", err)
	}
	if err := os.MkdirAll(kept, 0o750); err != nil {
		return fmt.Errorf("keeping logs: %w", err)
	}
	logs, err := filepath.Glob(filepath.Join(w.dir, "*.log"))
	for _, log := range logs {
		// The folder may be in memory, from where nothing can be renamed.
		content, failure := os.ReadFile(log)
		err = errors.Join(err, failure, os.WriteFile(filepath.Join(kept, filepath.Base(log)), content, 0o600))
	}
	return err
}

// populate builds what pods run, and starts the controller manager.
func (w *world) populate(ctx context.Context) {
	w.t.Helper()
	program := filepath.Join(w.dir, "lowlatency-operator")
	output(w.t, "../..", "go", "build", "-o", program, "./cmd/lowlatency-operator")
	w.pods = &podRunner{client: w.Client, config: w.Config(), namespace: cluster.Namespace, node: "worker", program: program, folder: w.dir}
	if *previousFlag != "" {
		w.pods.olderImage, w.pods.older = olderImage, filepath.Join(w.dir, "older-operator")
		output(w.t, *previousFlag, "go", "build", "-o", w.pods.older, "./cmd/lowlatency-operator")
	}
	w.check(w.WriteKubeconfig(w.kubeconfig))
	// The API server of tests begins with our definitions; here they come with the operator.
	w.removeDefinitions(definitionNames()...)
	w.check(w.Client.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker", Labels: map[string]string{"kubernetes.io/os": "linux"}}}))
	start(w.t, filepath.Join(w.dir, "controller-manager.log"), nil,
		tool(w.t, "kube-controller-manager-"+version(w.t, "KUBERNETES_VERSION"), "kube-controller-manager"),
		"--kubeconfig="+w.kubeconfig, "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port="+port(w.t),
		"--controllers=deployment-controller,replicaset-controller,garbage-collector-controller,namespace-controller,serviceaccount-controller,disruption-controller")
}

// check ends the test on an error.
func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// await waits until look says nothing; what it says is what is missing.
func (w *world) await(what string, look func() string) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		missing := look()
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("waiting until %s: %s", what, missing)
		}
		time.Sleep(pace)
	}
}

// seen ends a step of the table.
func (w *world) seen(step, what string, values ...any) {
	w.rows.AppendRow(table.Row{step, fmt.Sprintf(what, values...), fmt.Sprintf("%.0f", time.Since(w.step).Seconds())})
	w.step = time.Now()
}

// definitionNames are the kinds of this project.
func definitionNames() []string {
	return []string{"bypassnicpools.lowlatency.dev", "latencytests.lowlatency.dev", "lowlatencynodeprofiles.lowlatency.dev", "lowlatencynodes.lowlatency.dev"}
}

// removeDefinitions removes kinds.
func (w *world) removeDefinitions(names ...string) {
	w.t.Helper()
	for _, name := range names {
		definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		w.check(client.IgnoreNotFound(w.Client.Delete(w.t.Context(), definition)))
	}
	w.await("CustomResourceDefinitions are gone", func() string {
		for _, name := range names {
			definition := &apiextensionsv1.CustomResourceDefinition{}
			if err := w.Client.Get(w.t.Context(), client.ObjectKey{Name: name}, definition); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("%s is there: %v %v", name, err, definition.Status.Conditions)
			}
		}
		return ""
	})
}

// profile is what is in force.
func profile() *v1alpha1.LowLatencyNodeProfile {
	profile := &v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: "trading"}}
	spec := &profile.Spec
	spec.NodeSelector.MatchLabels = v1alpha1.Labels{tradingLabel: ""}
	spec.Pools.MaximumUnavailableNodes = 3
	spec.Memory.DefaultHugepageSize = "1Gi"
	spec.Memory.Hugepages = []v1alpha1.HugepageReservation{{Size: "1Gi", Count: 2}}
	spec.Network.NICs = []v1alpha1.NICSelector{{Vendor: "1924"}}
	spec.Verification.Gate = v1alpha1.GateTaint
	return profile
}

// pool takes the Solarflare NICs of all hosts.
func pool() *v1alpha1.BypassNICPool {
	pool := &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: "x2"}}
	spec := &pool.Spec
	spec.NodeSelector.MatchLabels = v1alpha1.Labels{tradingLabel: ""}
	spec.NICs = []v1alpha1.NICSelector{{Vendor: "1924", Devices: []v1alpha1.PCIID{"0b03"}}}
	spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackOnload, Onload: &v1alpha1.OnloadStack{
		UserSpace: v1alpha1.UserSpaceSpec{Source: v1alpha1.UserSpaceHostPath, HostPath: "/opt/onload"},
	}}
	spec.ResourceName = "lowlatency.dev/x2"
	spec.Hugepages = []v1alpha1.NICHugepages{{Size: "2Mi", CountPerNIC: 8}}
	return pool
}

// inForce waits until profile and pool are proven on all hosts.
func (w *world) inForce() {
	w.t.Helper()
	w.await("profile and pool are in force", func() string {
		ctx := w.t.Context()
		var profile v1alpha1.LowLatencyNodeProfile
		var pool v1alpha1.BypassNICPool
		if err := errors.Join(w.Client.Get(ctx, client.ObjectKey{Name: "trading"}, &profile), w.Client.Get(ctx, client.ObjectKey{Name: "x2"}, &pool)); err != nil {
			return err.Error()
		}
		for name, conditions := range map[string][]metav1.Condition{"profile": profile.Status.Conditions, "pool": pool.Status.Conditions} {
			if !apimeta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReady) {
				return name + ": " + text(conditions)
			}
		}
		if profile.Status.Nodes.DeJittered != 3 {
			return fmt.Sprintf("%d nodes are proven", profile.Status.Nodes.DeJittered)
		}
		return ""
	})
}

// text is something as JSON, for messages.
func text(value any) string {
	content, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// writtenKinds are what the operator renders.
func writtenKinds() []schema.GroupVersionKind {
	config := schema.GroupVersion{Group: "machineconfiguration.openshift.io", Version: "v1"}
	return []schema.GroupVersionKind{
		config.WithKind("MachineConfig"), config.WithKind("KubeletConfig"), config.WithKind("MachineConfigPool"),
		{Group: "tuned.openshift.io", Version: "v1", Kind: "Tuned"},
		{Group: "node.k8s.io", Version: "v1", Kind: "RuntimeClass"},
	}
}

// rendered is everything that the operator has rendered, byte for byte, how often it was written, and how often hosts have rebooted.
func (w *world) rendered() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, kind := range writtenKinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		w.check(w.Client.List(w.t.Context(), list))
		for i := range list.Items {
			object := &list.Items[i]
			if object.GetLabels()[v1alpha1.LabelManagedBy] != v1alpha1.ProjectName {
				continue
			}
			// The uid tells one that was made anew.
			content := map[string]any{"metadata": []any{
				object.GetUID(), object.GetLabels(), object.GetAnnotations(), object.GetFinalizers(), object.GetOwnerReferences(),
			}}
			for name, value := range object.Object {
				if name != "metadata" && name != "status" {
					content[name] = value
				}
			}
			all[kind.Kind+"/"+object.GetName()] = text(content)
			all[generationOf+kind.Kind+"/"+object.GetName()] = strconv.FormatInt(object.GetGeneration(), 10)
		}
	}
	for _, name := range w.Fleet.Names() {
		all[rebootsOf+name] = strconv.Itoa(w.Fleet.Reboots(name))
	}
	return all
}

// contents are what is rendered, without what counts how often it was written and what hosts did.
func contents(all map[string]string) map[string]string {
	kept := maps.Clone(all)
	maps.DeleteFunc(kept, func(name, _ string) bool {
		return strings.HasPrefix(name, rebootsOf) || strings.HasPrefix(name, generationOf)
	})
	return kept
}

// quiet measures all hosts once.
func quiet() *v1alpha1.LatencyTest {
	test := &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Name: "quiet", Namespace: metav1.NamespaceDefault}}
	test.Spec.Nodes.Profile = "trading"
	test.Spec.Kind = v1alpha1.LatencyTestJitter
	test.Spec.DurationSeconds = 60
	// Without a budget there is no outcome to wait for.
	test.Spec.Budget = &v1alpha1.LatencyBudget{MaximumNanoseconds: time.Second.Nanoseconds()}
	return test
}

// measured is what was measured on all hosts, once it was.
func (w *world) measured() []v1alpha1.LatencyTestResult {
	w.t.Helper()
	test := quiet()
	w.await("all hosts are measured", func() string {
		if err := w.Client.Get(w.t.Context(), client.ObjectKeyFromObject(test), test); err != nil {
			return err.Error()
		}
		done := 0
		for _, result := range test.Status.Results {
			if result.Outcome != "" && result.Outcome != v1alpha1.LatencyInconclusive && result.Activity == v1alpha1.LatencyIdle {
				done++
			}
		}
		if done != 3 {
			return text(test.Status)
		}
		return ""
	})
	return test.Status.Results
}

// released waits until profile and pool are gone, and everything that they made.
func (w *world) released() {
	w.t.Helper()
	w.await("profile and pool are gone and nodes released", func() string {
		for _, list := range []client.ObjectList{&v1alpha1.LowLatencyNodeProfileList{}, &v1alpha1.BypassNICPoolList{}, &v1alpha1.LowLatencyNodeList{}} {
			if err := w.Client.List(w.t.Context(), list); err != nil {
				return err.Error()
			}
			if n := apimeta.LenList(list); n > 0 {
				return fmt.Sprintf("%T has %d: %s", list, n, text(list))
			}
		}
		for name := range contents(w.rendered()) {
			return name + " is there"
		}
		return ""
	})
}

// finish prints the table, and keeps it in a file.
func (w *world) finish(name string) {
	w.t.Helper()
	text := w.rows.Render() + "\n"
	fmt.Print(text)
	w.check(os.MkdirAll("../../dist", 0o750))
	w.check(os.WriteFile("../../dist/"+name, []byte(text), 0o600))
}
