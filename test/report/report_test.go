// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package report

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/supportreport"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

const (
	operatorNamespace = "lowlatency-operator-system"
	agentNamespace    = "lowlatency-operator-agents"
	nodeName          = "tradefloor-7.bank.example"
)

// roleVariable makes this program the command line, which the gather command of must-gather finds by its name.
const roleVariable = "REPORT_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		os.Exit(cli.Run(context.Background(), "v9", os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
	os.Exit(m.Run())
}

// result is what a command has said.
type result struct {
	code     int
	out, err string
}

func run(ctx context.Context, args ...string) result {
	var out, err bytes.Buffer
	code := cli.Run(ctx, "v9", args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &err})
	return result{code, out.String(), err.String()}
}

// newCluster starts an API server as newEnvironment does, and writes how it is reached.
func newCluster(t *testing.T) string {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := newEnvironment(t).WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// newEnvironment starts an API server with what a report is made of, and with what must not be in one.
func newEnvironment(t *testing.T) *apiserver.Environment {
	t.Helper()
	environment, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, object := range objects() {
		status := object.DeepCopyObject()
		if err := environment.Client().Create(t.Context(), object); err != nil {
			t.Fatalf("%T %s: %v", object, object.GetName(), err)
		}
		if node, ok := status.(*v1alpha1.LowLatencyNode); ok {
			node.ResourceVersion = object.GetResourceVersion()
			if err := environment.Client().Status().Update(t.Context(), node); err != nil {
				t.Fatal(err)
			}
		}
	}
	return environment
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ProjectName}}
}

func objects() []client.Object {
	const password = "secret-password"
	profile := &v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: "trading"}}
	profile.Spec.NodeSelector.MatchLabels = v1alpha1.Labels{"node-role.kubernetes.io/trading": ""}
	profile.Spec.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{"audit=0", "vendor.token=hidden-argument"}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: nodeName, Labels: map[string]string{"kubernetes.io/hostname": "tradefloor-7"},
		Annotations: map[string]string{"k8s.example/token": password, "machineconfiguration.openshift.io/state": "Done"},
	}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.77"}, {Type: corev1.NodeHostName, Address: "floor7-alias"}}
	node.Status.NodeInfo.SystemUUID = "uuid-of-the-machine"
	report := &v1alpha1.LowLatencyNode{ObjectMeta: metav1.ObjectMeta{Name: nodeName}, Spec: v1alpha1.LowLatencyNodeSpec{Profile: "trading"}}
	report.Status.Conditions = []metav1.Condition{{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "ChecksFailed", LastTransitionTime: metav1.Now(),
		Message: "on " + nodeName + " (tradefloor-7, 192.0.2.77, 2001:db8::7:1) IRQ 49 is delivered to CPU 6",
	}}
	deployment := &appsv1.Deployment{ObjectMeta: meta(operatorNamespace, "controller-manager"), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: podSpec()},
	}}
	deployment.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://somebody:" + password + "@proxy.example:3128"}}
	plugins := &appsv1.DaemonSet{ObjectMeta: meta(agentNamespace, "pool-x2"), Spec: appsv1.DaemonSetSpec{
		Selector: deployment.Spec.Selector, Template: corev1.PodTemplateSpec{ObjectMeta: deployment.Spec.Template.ObjectMeta, Spec: podSpec()},
	}}
	agent := &corev1.Pod{ObjectMeta: meta(agentNamespace, "agent-abcde"), Spec: podSpec()}
	agent.Labels = map[string]string{v1alpha1.LabelComponent: v1alpha1.ComponentAgent}
	agent.Spec.NodeName = nodeName
	rendered := &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: "rendered-trading-1"}}
	rendered.Spec.Config = runtime.RawExtension{Raw: []byte(`{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/pull-secret","contents":{"source":"data:,` + password + `"}}]}}`)}
	own := &mcfgv1.MachineConfig{ObjectMeta: meta("", "50-lowlatency-trading")}
	own.Spec.KernelArguments = []string{"nohz_full=2-7", "rd.luks.key=hidden-argument"}
	return []client.Object{
		namespace(operatorNamespace), namespace(agentNamespace), profile, node, report, deployment, plugins, agent, rendered, own,
		&corev1.Secret{ObjectMeta: meta(operatorNamespace, "token"), StringData: map[string]string{"token": password}},
		&corev1.ConfigMap{ObjectMeta: meta(operatorNamespace, "trading-plan"), Data: map[string]string{"plan.json": "{}"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "of-others"}, Data: map[string]string{"password": password}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: nodeName}},
		event("about-us", v1alpha1.GroupVersion.String(), "LowLatencyNodeProfile", "3 nodes are planned"),
		event("about-others", "v1", "Service", password),
	}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/operator:1"}}}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func event(name, version, kind, message string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: name},
		InvolvedObject: corev1.ObjectReference{APIVersion: version, Kind: kind, Name: "trading", Namespace: "default"}, Message: message, Reason: "Planned",
	}
}

// unpack reads an archive: contents by name.
func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	packed, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close() //nolint:errcheck // It is only read.
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for entries := tar.NewReader(unpacked); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(entries)
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg || header.Mode != 0o600 {
			t.Errorf("%s has type %c and mode %o", header.Name, header.Typeflag, header.Mode)
		}
		files[header.Name] = string(content)
	}
}

// without fails for each word that a report must not have, in names and contents.
func without(t *testing.T, files map[string]string, words ...string) {
	t.Helper()
	for name, content := range files {
		for _, word := range words {
			if strings.Contains(name, word) || strings.Contains(content, word) {
				t.Errorf("%s has %q:\n%s", name, word, content)
			}
		}
	}
}

// with fails for each word that is in no file.
func with(t *testing.T, files map[string]string, words ...string) {
	t.Helper()
	for _, word := range words {
		found := false
		for _, content := range files {
			// YAML breaks long lines.
			found = found || strings.Contains(content, word) || strings.Contains(strings.Join(strings.Fields(content), " "), word)
		}
		if !found {
			t.Errorf("%q is in no file", word)
		}
	}
}

// TestReport makes reports of one cluster: as it is, redacted, as files, and of nodes that cannot be reached.
func TestReport(t *testing.T) {
	kubeconfig := newCluster(t)
	for name, try := range map[string]func(*testing.T, string){
		"as it is": asItIs, "redacted": redacted, "as files": asFiles, "by must-gather": gather, "nodes that do not answer": silentNodes,
		"links are not followed": link, "nowhere": nowhere, "no rights": noRights,
	} {
		t.Run(name, func(t *testing.T) { try(t, kubeconfig) })
	}
}

// archive is where a report is to be.
func archive(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "report.tar.gz")
}

// succeeds makes a report.
func succeeds(t *testing.T, args ...string) result {
	t.Helper()
	got := run(t.Context(), append([]string{"report"}, args...)...)
	if got.code != cli.ExitOK || got.out != "" {
		t.Fatalf("%+v", got)
	}
	return got
}

// fails does not make a report, and says why.
func fails(t *testing.T, why string, args ...string) {
	t.Helper()
	if got := run(t.Context(), append([]string{"report"}, args...)...); got.code != cli.ExitUsage || !strings.Contains(got.err, why) {
		t.Errorf("%+v, want %q", got, why)
	}
}

// reportFiles are the names in a report of newEnvironment.
func reportFiles() []string {
	return []string{
		"README.txt", "objects/agents/daemonsets/pool-x2.yaml", "objects/agents/leases/" + nodeName + ".yaml", "objects/agents/pods/agent-abcde.yaml",
		"objects/events/about-us.yaml", "objects/lowlatencynodeprofiles/trading.yaml", "objects/lowlatencynodes/" + nodeName + ".yaml",
		"objects/machineconfigs/50-lowlatency-trading.yaml", "objects/nodes/" + nodeName + ".yaml", "objects/operator/configmaps/trading-plan.yaml",
		"objects/operator/deployments/controller-manager.yaml",
	}
}

// namesOf are the names of files below the folder of a report.
func namesOf(files map[string]string) []string {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, strings.TrimPrefix(name, supportreport.Folder+"/"))
	}
	slices.Sort(names)
	return names
}

func asItIs(t *testing.T, kubeconfig string) {
	t.Helper()
	file := archive(t)
	got := succeeds(t, "-o", file, "--kubeconfig", kubeconfig)
	files := unpack(t, file)
	if diff := cmp.Diff(reportFiles(), namesOf(files)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	without(t, files, "secret-password", "managedFields", "uuid-of-the-machine")
	with(t, files, nodeName, "192.0.2.77", "vendor.token=hidden-argument", "kind: LowLatencyNode\n", "kind: Pod\n", "Nothing is missing.")
	for _, want := range []string{file + " holds 11 files", "1 lowlatencynodes", "Look through these", "--redact"} {
		if !strings.Contains(got.err, want) {
			t.Errorf("%q is missing in:\n%s", want, got.err)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

func redacted(t *testing.T, kubeconfig string) {
	t.Helper()
	file := archive(t)
	succeeds(t, "--redact", "-o", file, "--kubeconfig", kubeconfig)
	files := unpack(t, file)
	without(t, files, "secret-password", "tradefloor-7", "floor7-alias", "192.0.2.77", "2001:db8", "hidden-argument", "bank.example")
	with(t, files, "audit=0", "nohz_full=2-7", "vendor.token=REDACTED", "on node-003 (node-002, ADDRESS, ADDRESS) IRQ 49 is delivered to CPU 6")
	if _, found := files[supportreport.Folder+"/objects/nodes/node-003.yaml"]; !found {
		t.Error("the Node has no file")
	}
}

func asFiles(t *testing.T, kubeconfig string) {
	t.Helper()
	folder := t.TempDir()
	succeeds(t, "--directory", folder, "--kubeconfig", kubeconfig)
	content, err := fs.ReadFile(os.DirFS(folder), supportreport.Folder+"/objects/lowlatencynodeprofiles/trading.yaml")
	if err != nil || !strings.Contains(string(content), "kind: LowLatencyNodeProfile\n") {
		t.Errorf("%s %v", content, err)
	}
	fails(t, "is there already", "--directory", folder, "--kubeconfig", kubeconfig)
}

func silentNodes(t *testing.T, kubeconfig string) {
	t.Helper()
	file := archive(t)
	succeeds(t, "--node", nodeName, "--node", "nobody", "-o", file, "--kubeconfig", kubeconfig)
	with(t, unpack(t, file), "node "+nodeName+": the full report of its agent: pod \"agent-abcde\" of the agent is not ready",
		"node "+nodeName+": the snapshot of its host: ", "node nobody: there is no LowLatencyNode of this name")
}

func link(t *testing.T, kubeconfig string) {
	t.Helper()
	link := archive(t)
	if err := os.Symlink("/dev/null", link); err != nil {
		t.Fatal(err)
	}
	fails(t, "it is a symbolic link", "-o", link, "--kubeconfig", kubeconfig)
}

func nowhere(t *testing.T, kubeconfig string) {
	t.Helper()
	fails(t, "say where the report goes", "--kubeconfig", kubeconfig)
}

func noRights(t *testing.T, kubeconfig string) {
	t.Helper()
	file := archive(t)
	fails(t, "nothing of the cluster can be read", "-o", file, "--kubeconfig", kubeconfig, "--as", "nobody-at-all")
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty report was left: %v", err)
	}
}

// gather runs the command of the image for must-gather, with this program in the place of the command line.
func gather(t *testing.T, kubeconfig string) {
	t.Helper()
	programs, folder := t.TempDir(), filepath.Join(t.TempDir(), "must-gather")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(programs, "kubectl-lowlatency")); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "../../config/must-gather/gather", "--redact")
	command.Env = append(os.Environ(), roleVariable+"=cli", "PATH="+programs+":"+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig, "MUST_GATHER_FOLDER="+folder)
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if _, err := os.Stat(filepath.Join(folder, supportreport.Folder, "objects", "nodes", "node-003.yaml")); err != nil {
		t.Error(err)
	}
}
