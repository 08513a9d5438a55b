// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package enact

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

const (
	workloadImage = "lab.local/workload:1"
	managers      = "lowlatency-operator-system"
	// rolloutLimit bounds what happens to all machines together: minutes each under emulation, more on a busy machine.
	rolloutLimit = 45 * time.Minute
)

// fleet is a control plane with machines that the operator, its agents, their guards and kernels change together.
type fleet struct {
	t        *testing.T
	ctx      context.Context
	programs lab.Programs
	cluster  *lab.Cluster
	api      client.Client
	hosts    []*host
	began    time.Time
	// seen is what was seen of the machines last, counted what has happened to them; rows are what was seen happening, and what was
	// asserted.
	seen    map[string]machineState
	counted map[string]counts
	rows    [][]string
	// disturbances are still to come.
	disturbances []disturbance
}

func (f *fleet) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// newFleet brings up the control plane with the operator as it is deployed, and machines that are nodes.
func newFleet(t *testing.T, names ...string) *fleet {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	// What runs ends with stop, which still looks at it when the test has failed.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	f := &fleet{t: t, ctx: ctx, began: time.Now(), seen: map[string]machineState{}, counted: map[string]counts{}}
	t.Cleanup(func() {
		f.stop()
		cancel()
	})
	var err error
	f.programs, err = lab.OpenPrograms(t.Context(), os.Stderr)
	f.must(err)
	image, err := lab.OpenBootableImage(t.Context(), os.Stderr)
	f.must(err)
	files := f.files()
	f.startCluster()
	for _, name := range names {
		machine, err := image.Start(f.ctx, fleetMachine(name, files), os.Stderr)
		f.must(err)
		f.hosts = append(f.hosts, &host{t: t, machine: machine})
	}
	for _, h := range f.hosts {
		f.join(h)
	}
	return f
}

// fleetMachine has 2 NUMA nodes of 2 CPUs, and boots by its own GRUB.
func fleetMachine(name, files string) lab.Spec {
	return lab.Spec{
		Name: name, Boot: lab.Boot{Kernel: lab.Installed}, Files: files,
		Topology: lab.Topology{Packages: 2, CoresPerPackage: 2, ThreadsPerCore: 1, NUMANodes: 2, MebibytesPerNode: 1280},
	}
}

// files are the programs and images of a node.
func (f *fleet) files() string {
	f.t.Helper()
	built, files := f.t.TempDir(), f.t.TempDir()
	f.must(lab.BuildPrograms(f.t.Context(), built, "test/lab/workload"))
	f.must(f.programs.NodeFiles(files, map[string]lab.ContainerImage{
		"pause":    {Name: lab.PauseImage, Program: filepath.Join(built, "workload")},
		"workload": {Name: workloadImage, Program: filepath.Join(built, "workload")},
	}))
	f.must(lab.BuildOperatorImage(f.t.Context(), filepath.Join(files, "images", "operator.tar")))
	return files
}

// startCluster starts the control plane, and installs the operator that changes hosts. Its pods wait for a node.
func (f *fleet) startCluster() {
	f.t.Helper()
	var err error
	f.cluster, err = lab.StartCluster(f.ctx, f.programs, os.Stderr)
	f.must(err)
	scheme, err := controllers.Scheme()
	f.must(err)
	f.must(appsv1.AddToScheme(scheme))
	f.api, err = client.New(f.cluster.Config(), client.Options{Scheme: scheme})
	f.must(err)
	objects, err := f.programs.Deployment(f.t.Context(), "enactment")
	f.must(err)
	for _, object := range objects {
		f.create(object)
	}
}

// create makes an object as soon as the API server knows its kind.
func (f *fleet) create(object client.Object) {
	f.t.Helper()
	f.wait(fmt.Sprintf("%T %s to be taken", object, object.GetName()), func() (bool, string) {
		err := f.api.Create(f.t.Context(), object)
		return err == nil, fmt.Sprint(err)
	})
}

// join makes a machine a node of the distribution's kind: TuneD runs, the kubelet is started as kubeadm's package does it, and
// everything comes again after a reboot.
func (f *fleet) join(h *host) {
	f.t.Helper()
	name := h.machine.Name()
	h.run("echo " + name + " >/etc/hostname && sysctl -w kernel.hostname=" + name + " && echo 'LABEL=files " + lab.FilesPath + " ext4 ro 0 0' >>/etc/fstab")
	// On a starved machine TuneD takes longer to start than systemd gives it.
	h.run("mkdir -p /etc/systemd/system.conf.d && printf '[Manager]\\nDefaultTimeoutStartSec=10min\\n' >/etc/systemd/system.conf.d/lab.conf && systemctl daemon-reexec")
	h.run("systemctl enable --now tuned.service")
	f.must(f.cluster.Join(f.t.Context(), h.machine, []byte(`{"kind": "KubeletConfiguration"}`), os.Stderr))
	f.wait(name+" to be ready", func() (bool, string) {
		node := &corev1.Node{}
		err := f.api.Get(f.t.Context(), client.ObjectKey{Name: name}, node)
		if err != nil || !isReady(node) {
			return false, fmt.Sprint(err, node.Status.Conditions)
		}
		node.Labels["node-role.kubernetes.io/lab"] = ""
		err = f.api.Update(f.t.Context(), node)
		return err == nil, fmt.Sprint(err)
	})
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// wait looks again and again until something is true. The text is what it saw last.
func (f *fleet) wait(what string, look func() (bool, string)) {
	f.t.Helper()
	for end := time.Now().Add(rolloutLimit); ; time.Sleep(time.Second) {
		done, seen := look()
		if done {
			return
		}
		if time.Now().After(end) {
			f.t.Fatalf("waiting for %s: not within %s; last seen: %s\n%s", what, rolloutLimit, seen, f.remains())
		}
	}
}

// workload is what people run on the nodes: a pod for each, which a controller makes again.
func (f *fleet) workload() {
	f.t.Helper()
	labels := map[string]string{"app": "workload"}
	f.create(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "workload"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(len(f.hosts))), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: new(int64(5)), AutomountServiceAccountToken: new(false),
				Containers: []corev1.Container{{
					Name: "main", Image: workloadImage, Args: []string{"-hugepages=0"},
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
				}},
			}},
		},
	})
	f.workloadRuns()
}

func (f *fleet) workloadRuns() {
	f.t.Helper()
	f.wait("the workload to run", func() (bool, string) {
		deployment := &appsv1.Deployment{}
		err := f.api.Get(f.t.Context(), client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "workload"}, deployment)
		return err == nil && int(deployment.Status.ReadyReplicas) == len(f.hosts), fmt.Sprint(err, deployment.Status)
	})
}

// profile reads the profile of testdata.
func (f *fleet) profile() *v1alpha1.LowLatencyNodeProfile {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "profile.yaml"))
	f.must(err)
	profile := &v1alpha1.LowLatencyNodeProfile{}
	f.must(yaml.UnmarshalStrict(text, profile))
	return profile
}

// row is a line of the table, with the time since the beginning.
func (f *fleet) row(columns ...string) {
	f.t.Helper()
	columns = append([]string{fmt.Sprintf("%.0f s", time.Since(f.began).Seconds())}, columns...)
	_, _ = fmt.Fprintf(os.Stderr, "lab: %s\n", strings.Join(columns, " | "))
	f.rows = append(f.rows, columns)
}

// remains is what helps to understand a failure.
func (f *fleet) remains() string {
	ctx, cancel := context.WithTimeout(f.ctx, 2*time.Minute)
	defer cancel()
	var text strings.Builder
	profile := &v1alpha1.LowLatencyNodeProfile{}
	_ = f.api.Get(ctx, client.ObjectKey{Name: "lab"}, profile)
	for i := range profile.Status.Conditions {
		c := &profile.Status.Conditions[i]
		_, _ = fmt.Fprintf(&text, "profile: %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, h := range f.hosts {
		_, _ = fmt.Fprintf(&text, "--- %s\n", h.machine.Name())
		out, err := h.machine.Execute(ctx, "journalctl -b --no-pager -u kubelet -u containerd -p warning -n 5 | cut -c1-300; "+
			"journalctl -b --no-pager -u 'lowlatency-guard*' -n 30; tail -n 5 /var/log/pods/*/*/*.log | cut -c1-500; cat /proc/cmdline")
		_, _ = fmt.Fprintln(&text, out.Stdout, out.Stderr, cmp.Or(err, nil), h.machine.Console(5))
	}
	return text.String()
}

// stop prints the table and ends everything.
func (f *fleet) stop() {
	printTable(append([][]string{{"AFTER", "MACHINE", "WHAT WAS SEEN"}}, f.rows...))
	if f.t.Failed() {
		_, _ = fmt.Fprintln(os.Stderr, f.remains())
	}
	var how strings.Builder
	for _, h := range f.hosts {
		how.WriteString(h.machine.Login() + "\n")
	}
	if f.cluster != nil {
		admin, err := f.cluster.Kubeconfig("admin", "system:masters")
		if err != nil {
			f.t.Error(err)
		}
		how.WriteString("export KUBECONFIG=" + admin + "\n")
	}
	if err := lab.Hold(how.String(), os.Stderr); err != nil {
		f.t.Error(err)
	}
	for _, h := range f.hosts {
		if err := h.machine.Stop(); err != nil {
			f.t.Error(err)
		}
	}
	if f.cluster == nil {
		return
	}
	if err := f.cluster.Stop(); err != nil {
		f.t.Error(err)
	}
}
