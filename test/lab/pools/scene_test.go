// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

// Package pools_test shows BypassNICPools on a real node: Debian's PREEMPT_RT kernel in an emulated machine with two
// NUMA nodes, the real kubelet, containerd, and a real control plane.
package pools_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

const (
	workloadImage = "lab.local/workload:1"

	operatorNamespace = "lowlatency-operator-system"
	agentNamespace    = "lowlatency-operator-agents"

	// limit bounds each wait: what takes seconds on a node takes minutes under emulation on a busy machine.
	limit = 20 * time.Minute
)

// scene is a cluster with one node.
type scene struct {
	// ctx is for what outlives a step.
	ctx      context.Context
	programs lab.Programs
	cluster  *lab.Cluster
	machine  *lab.Machine
	api      client.Client
	// built is the folder with the project's own programs, admin an administrator's kubeconfig.
	built, admin string
	// deployment is what make deploy applies.
	deployment []*unstructured.Unstructured
	// handsOut reports whether the node's NICs are handed out to pods.
	handsOut bool
	// arguments are those with which the machine boots as planned.
	arguments []string
	// housekeeping are the CPUs for programs outside of pods, as planned.
	housekeeping cpus.Set
	table        *outcomes
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// step is a row of the table: it runs and says what it saw.
func (s *scene) step(t *testing.T, name string, do func(t *testing.T) string) bool {
	t.Helper()
	start, seen := time.Now(), ""
	ok := t.Run(name, func(t *testing.T) { seen = do(t) })
	if !ok {
		seen = "FAILED " + seen
	}
	s.table.add(name, seen, time.Since(start))
	return ok
}

// outcomes is the table that is printed at the end.
type outcomes struct {
	rows []string
}

func (o *outcomes) add(step, outcome string, took time.Duration) {
	o.rows = append(o.rows, fmt.Sprintf("%s\t%s\t%.1f s", step, outcome, took.Seconds()))
	_, _ = fmt.Fprintf(os.Stderr, "lab: step %q: %s\n", step, outcome)
}

func (o *outcomes) print() {
	writer := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(writer, "\nSTEP\tOUTCOME\tTIME")
	for _, row := range o.rows {
		_, _ = fmt.Fprintln(writer, row)
	}
	_ = writer.Flush()
}

// build builds the project's programs, and that of the lab's pods.
func (s *scene) build(t *testing.T) {
	t.Helper()
	must(t, lab.BuildPrograms(t.Context(), s.built, "cmd/...", "test/lab/workload", "test/lab/enforcer"))
}

// nodeFiles are the programs and images for the machine.
func (s *scene) nodeFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, s.programs.NodeFiles(dir, map[string]lab.ContainerImage{
		"pause":    {Name: lab.PauseImage, Program: filepath.Join(s.built, "workload")},
		"workload": {Name: workloadImage, Program: filepath.Join(s.built, "workload")},
	}))
	must(t, lab.BuildOperatorImage(t.Context(), filepath.Join(dir, "images", "operator.tar")))
	must(t, lab.BuildTrafficImage(t.Context(), filepath.Join(dir, "images", "traffic.tar")))
	for name, path := range map[string]string{
		"kubectl-lowlatency": filepath.Join(s.built, "kubectl-lowlatency"), "workload": filepath.Join(s.built, "workload"),
		"enforcer": cmp.Or(os.Getenv(foreignEnforcer), filepath.Join(s.built, "enforcer")),
	} {
		content, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, "bin", name), content, 0o755))
	}
	return dir
}

// startCluster starts the control plane.
func (s *scene) startCluster(t *testing.T) {
	t.Helper()
	cluster, err := lab.StartCluster(s.ctx, s.programs, os.Stderr)
	must(t, err)
	s.cluster = cluster
	scheme, err := controllers.Scheme()
	must(t, err)
	s.api, err = client.New(cluster.Config(), client.Options{Scheme: scheme})
	must(t, err)
	s.admin, err = cluster.Kubeconfig("admin", "system:masters")
	must(t, err)
}

// install applies what make deploy applies. The manager's pod waits for a node.
func (s *scene) install(t *testing.T) {
	t.Helper()
	for _, object := range s.deployment {
		s.create(t, object)
	}
}

// create makes an object as soon as the API server knows its kind.
func (s *scene) create(t *testing.T, object client.Object) {
	t.Helper()
	name := fmt.Sprintf("%s %s", object.GetObjectKind().GroupVersionKind().Kind, object.GetName())
	s.wait(t, name+" to be taken", func(ctx context.Context) (bool, string) {
		err := s.api.Create(ctx, object)
		return err == nil, fmt.Sprint(err)
	})
}

// remove deletes an object, and waits until it is gone: a pod until its node has let it go.
func (s *scene) remove(t *testing.T, object client.Object) {
	t.Helper()
	must(t, client.IgnoreNotFound(s.api.Delete(t.Context(), object)))
	s.wait(t, fmt.Sprintf("%T %s to be gone", object, object.GetName()), func(ctx context.Context) (bool, string) {
		err := s.api.Get(ctx, client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// kubectlApply gives an object to kubectl apply, as people do.
func (s *scene) kubectlApply(t *testing.T, object client.Object) {
	t.Helper()
	kind, err := apiutil.GVKForObject(object, s.api.Scheme())
	must(t, err)
	object.GetObjectKind().SetGroupVersionKind(kind)
	text, err := yaml.Marshal(object)
	must(t, err)
	command := exec.CommandContext(t.Context(), s.programs.File("kubectl"), "--kubeconfig", s.admin, "apply", "-f", "-")
	command.Stdin = bytes.NewReader(text)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("kubectl apply: %v: %s\n%s", err, out, text)
	}
}

// start boots the machine.
func (s *scene) start(t *testing.T, files string) {
	t.Helper()
	image, err := lab.OpenImage(t.Context(), os.Stderr)
	must(t, err)
	s.machine, err = image.Start(s.ctx, s.poolMachine(files), os.Stderr)
	must(t, err)
}

// run runs a command in the machine that must succeed, and returns what it prints.
func (s *scene) run(t *testing.T, command string) string {
	t.Helper()
	out, err := s.machine.Run(t.Context(), command)
	must(t, err)
	return strings.TrimSpace(out)
}

// wait looks again and again until something is true. The text is what it saw last.
func (s *scene) wait(t *testing.T, what string, look func(context.Context) (bool, string)) {
	t.Helper()
	s.waitFor(t, limit, what, look)
}

// waitFor is wait with a limit of its own.
func (s *scene) waitFor(t *testing.T, limit time.Duration, what string, look func(context.Context) (bool, string)) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, fmt.Errorf("not within %s", limit))
	defer cancel()
	for {
		done, seen := look(ctx)
		if done {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waiting for %s: %v; last seen: %s\n%s", what, context.Cause(ctx), seen, s.remains())
		case <-time.After(time.Second):
		}
	}
}

// remains is what helps to understand a failure.
func (s *scene) remains() string {
	text := ""
	if s.machine != nil {
		ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
		defer cancel()
		out, err := s.machine.Run(ctx, "journalctl -u kubelet -u containerd --no-pager -p warning -n 5; "+
			"journalctl -u kubelet --no-pager -n 20 | cut -c1-300; tail -n 3 /var/log/pods/*/*/*.log | cut -c1-400")
		text += out + fmt.Sprint(err)
	}
	return text
}

// pool asks the command line about a pool, as people do.
func (s *scene) pool(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(s.built, "kubectl-lowlatency"),
		append([]string{"pool", "--kubeconfig", s.admin}, arguments...)...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	// 1 says that a NIC is not healthy.
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) {
		t.Fatalf("kubectl-lowlatency pool: %v\n%s", err, &stderr)
	}
	return string(out)
}

// stop ends everything. With LAB_HOLD set to the path of a file, it first waits until somebody removes that file, so
// that one can look around.
func (s *scene) stop(t *testing.T) {
	s.table.print()
	if s.machine != nil {
		if err := lab.Hold(s.machine.Login()+"\nexport KUBECONFIG="+s.admin+"\nexport PATH="+s.built+":$PATH\n", os.Stderr); err != nil {
			t.Error(err)
		}
	}
	if s.machine != nil {
		if err := s.machine.Stop(); err != nil {
			t.Error(err)
		}
	}
	if s.cluster != nil {
		if err := s.cluster.Stop(); err != nil {
			t.Error(err)
		}
	}
}
