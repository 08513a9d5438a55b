// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package real

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/controllers"
)

const (
	argoModule    = "github.com/argoproj/argo-cd/v3"
	argoNamespace = "argocd"
	canaryLabel   = "node-role.kubernetes.io/trading-canary"
	publicSource  = "https://github.com/lowlatency-dev/lowlatency-operator"
	// profileFile and poolFile are in the base of the nodes' folder.
	profileFile = "config/gitops/nodes/base/profile.yaml"
	nodesFile   = "config/gitops/nodes/kustomization.yaml"
)

// argo is Argo CD and the git repository that it follows.
type argo struct {
	*world
	repository string
}

// application is the part of an Application that the test reads.
type application struct {
	sync, health, message, revision, reconciled string
}

// TestArgoCD lets Argo CD install the operator and its profiles from git, change them, roll back, prune and delete.
func TestArgoCD(t *testing.T) {
	w := newWorld(t, "Argo CD "+version(t, "ARGOCD_VERSION"), map[string]string{"xeon-1": canaryLabel, "xeon-2": tradingLabel, "epyc-1": tradingLabel})
	a := newArgo(w)
	a.useHelm()
	a.firstCommit()
	a.startArgo()
	a.reportAgents()
	a.firstSync("operator by Helm")
	first := a.rendered()
	a.noDrift("structured merge diff")
	a.diffOnServer()
	a.noDrift("server-side diff")
	a.change("by server-side apply", first)
	a.applyOnClient()
	a.noDrift("three-way diff of what the server applied")
	a.change("by client-side apply", first)
	a.noDrift("three-way diff")
	a.degrade(first)
	a.prune()
	a.remove()
	a.finish("argocd.txt")
}

// diffOnServer lets the API server compare what git and cluster have.
func (a *argo) diffOnServer() {
	a.t.Helper()
	a.commit("diff on the server", func() {
		for _, file := range appFiles() {
			a.edit(file, "  annotations:\n", "  annotations:\n    argocd.argoproj.io/compare-options: ServerSideDiff=true\n")
		}
	})
	a.settled("lowlatency")
}

// applyOnClient takes server-side apply and diff out of the layout, as a platform team has it that never asked for them: Argo CD then
// applies with its annotation of what was applied last, and compares three ways itself.
func (a *argo) applyOnClient() {
	a.t.Helper()
	a.commit("apply on the client", func() {
		a.edit("config/gitops/apps/nodes.yaml", "[ServerSideApply=true, SkipDryRunOnMissingResource=true]", "[SkipDryRunOnMissingResource=true]")
		a.edit("config/gitops/apps-helm/kustomization.yaml", "[ServerSideApply=true, CreateNamespace=true]", "[CreateNamespace=true]")
		for _, file := range appFiles() {
			a.edit(file, "    argocd.argoproj.io/compare-options: ServerSideDiff=true\n", "")
		}
	})
	for _, name := range applications() {
		a.settled(name)
	}
}

// appFiles are the Applications that root.yaml brings.
func appFiles() []string {
	return []string{"config/gitops/apps/nodes.yaml", "config/gitops/apps/operator.yaml"}
}

// newArgo makes the repository of a platform team, with the layout of config/gitops.
func newArgo(w *world) *argo {
	w.t.Helper()
	a := &argo{world: w, repository: filepath.Join(w.dir, "git")}
	for _, folder := range []string{"config/helm", "config/gitops"} {
		a.check(os.CopyFS(filepath.Join(a.repository, folder), os.DirFS(filepath.Join("..", "..", folder))))
	}
	for _, file := range []string{"root.yaml", "apps/kustomization.yaml"} {
		a.edit("config/gitops/"+file, publicSource, "file://"+a.repository)
	}
	return a
}

// useHelm lets the Helm chart bring the operator.
func (a *argo) useHelm() {
	a.t.Helper()
	a.edit("config/gitops/root.yaml", "config/gitops/apps", "config/gitops/apps-helm")
	a.addKinds()
}

func (a *argo) firstCommit() {
	a.t.Helper()
	a.git("init", "-q", "-b", "main")
	a.git("add", ".")
	a.git("commit", "-q", "-m", "all")
}

func (a *argo) git(arguments ...string) string {
	a.t.Helper()
	return output(a.t, a.repository, "git", append([]string{"-c", "user.name=Test", "-c", "user.email=test@example.com"}, arguments...)...)
}

// edit replaces a text in a file of the repository.
func (a *argo) edit(file, old, replaced string) {
	a.t.Helper()
	path := filepath.Join(a.repository, file)
	content, err := os.ReadFile(path)
	a.check(err)
	changed := strings.ReplaceAll(string(content), old, replaced)
	if changed == string(content) {
		a.t.Fatalf("%s has no %q", file, old)
	}
	a.check(os.WriteFile(path, []byte(changed), 0o600))
}

// commit changes the repository.
func (a *argo) commit(message string, change func()) {
	a.t.Helper()
	change()
	a.git("commit", "-q", "-a", "-m", message)
}

// startArgo starts application controller, repository server and their cache.
func (a *argo) startArgo() {
	a.t.Helper()
	module := output(a.t, "../../hack/argocd", "go", "list", "-m", "-f", "{{.Dir}}", argoModule)
	_, err := envtest.InstallCRDs(a.Config(), envtest.CRDInstallOptions{
		Paths: []string{filepath.Join(module, "manifests", "crds")}, ErrorIfPathMissing: true, MaxTime: patience,
	})
	a.check(err)
	a.configureArgo()
	program := tool(a.t, "argocd-"+version(a.t, "ARGOCD_VERSION"), "argocd")
	path := a.programs(module, program)
	redis, repository := "127.0.0.1:"+port(a.t), port(a.t)
	start(a.t, filepath.Join(a.dir, "redis.log"), nil, filepath.Join(filepath.Dir(program), "redis"), redis)
	environment := []string{
		"PATH=" + path + ":/usr/bin:/bin", "HOME=" + a.dir, "KUBECONFIG=" + a.kubeconfig, "ARGOCD_FAKE_IN_CLUSTER=true",
		"ARGOCD_GPG_ENABLED=false", "TMPDIR=" + a.dir,
	}
	for _, name := range []string{"ARGOCD_TLS_DATA_PATH", "ARGOCD_SSH_DATA_PATH", "ARGOCD_GNUPGHOME", "ARGOCD_GPG_DATA_PATH", "ARGOCD_PLUGINSOCKFILEPATH"} {
		folder := filepath.Join(a.dir, strings.ToLower(name))
		a.check(os.MkdirAll(folder, 0o700))
		environment = append(environment, name+"="+folder)
	}
	start(a.t, filepath.Join(a.dir, "repo-server.log"), append(environment, "ARGOCD_BINARY_NAME=argocd-repo-server"), program,
		"--address", "127.0.0.1", "--port", repository, "--metrics-port", port(a.t), "--redis", redis, "--disable-tls")
	start(a.t, filepath.Join(a.dir, "application-controller.log"),
		append(environment, "ARGOCD_BINARY_NAME=argocd-application-controller", "HOSTNAME=ctl-1"), program,
		"--kubeconfig", a.kubeconfig, "-n", argoNamespace, "--redis", redis, "--repo-server", "127.0.0.1:"+repository, "--repo-server-plaintext",
		"--metrics-port", port(a.t), "--app-resync", "10", "--persist-resource-health")
}

// programs is a folder with what the repository server calls by name.
func (a *argo) programs(module, program string) string {
	a.t.Helper()
	folder := filepath.Join(a.dir, "bin")
	a.check(os.MkdirAll(folder, 0o700))
	kustomize := tool(a.t, "kustomize-"+version(a.t, "KUSTOMIZE_VERSION"), "kustomize")
	for name, target := range map[string]string{"argocd": program, "kustomize": kustomize} {
		a.check(os.Symlink(target, filepath.Join(folder, name)))
	}
	for _, name := range []string{"git-verify-wrapper.sh", "gpg-wrapper.sh"} {
		content, err := os.ReadFile(filepath.Join(module, "hack", name))
		a.check(err)
		a.check(os.WriteFile(filepath.Join(folder, name), content, 0o700)) //nolint:gosec // A script is run.
	}
	output(a.t, "../helm", "go", "build", "-o", filepath.Join(folder, "helm"), "helm.sh/helm/v4/cmd/helm")
	return folder
}

// configureArgo creates what an installation of Argo CD brings, with the health checks of this project.
func (a *argo) configureArgo() {
	a.t.Helper()
	content, err := os.ReadFile("../../config/gitops/argocd/argocd-cm.yaml")
	a.check(err)
	var configuration map[string]any
	a.check(yaml.Unmarshal(content, &configuration))
	part := map[string]any{"app.kubernetes.io/part-of": "argocd"}
	a.check(unstructured.SetNestedMap(configuration, part, "metadata", "labels"))
	secret := func(name string, data map[string]any) map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "Secret", "stringData": data,
			"metadata": map[string]any{"name": name, "namespace": argoNamespace, "labels": part},
		}
	}
	a.check(a.Client.Create(a.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: argoNamespace}}))
	a.check(a.apply(configuration, secret("argocd-secret", map[string]any{"server.secretkey": "only for this test"}),
		secret("argocd-redis", map[string]any{"auth": ""}),
		map[string]any{
			"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": map[string]any{"name": "default", "namespace": argoNamespace},
			"spec": map[string]any{
				"sourceRepos":              []any{"*"},
				"destinations":             []any{map[string]any{"server": "*", "namespace": "*"}},
				"clusterResourceWhitelist": []any{map[string]any{"group": "*", "kind": "*"}},
			},
		}))
}

// reportAgents says of the agents' DaemonSet what its controller would: the agents of the simulated hosts run without pods.
func (a *argo) reportAgents() {
	ended := make(chan struct{})
	a.t.Cleanup(func() { close(ended) })
	go func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(pace):
			}
			agents := &appsv1.DaemonSet{}
			key := client.ObjectKey{Namespace: controllers.DefaultAgentNamespace, Name: "lowlatency-operator-agent"}
			if a.Client.Get(a.t.Context(), key, agents) != nil || agents.Status.ObservedGeneration == agents.Generation {
				continue
			}
			agents.Status.ObservedGeneration = agents.Generation
			_ = a.Client.Status().Update(a.t.Context(), agents)
		}
	}()
}

// read reads an Application.
func (a *argo) read(name string) (*unstructured.Unstructured, application, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("argoproj.io/v1alpha1")
	object.SetKind("Application")
	if err := a.Client.Get(a.t.Context(), client.ObjectKey{Namespace: argoNamespace, Name: name}, object); err != nil {
		return nil, application{}, err
	}
	field := func(path ...string) string {
		value, _, _ := unstructured.NestedString(object.Object, append([]string{"status"}, path...)...)
		return value
	}
	return object, application{
		sync: field("sync", "status"), health: field("health", "status"), message: field("operationState", "message"),
		revision: field("sync", "revision"), reconciled: field("reconciledAt"),
	}, nil
}

// refresh asks Argo CD to look at git and cluster now, and waits until it has.
func (a *argo) refresh(name, kind string) {
	a.t.Helper()
	object, before, err := a.read(name)
	a.check(err)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"`+kind+`"}}}`))
	// reconciledAt has seconds.
	time.Sleep(time.Second)
	a.check(a.Client.Patch(a.t.Context(), object, patch))
	a.await("Argo CD has looked at "+name, func() string {
		found, now, err := a.read(name)
		switch {
		case err != nil:
			return err.Error()
		case found.GetAnnotations()["argocd.argoproj.io/refresh"] != "":
			return "it has not begun"
		case now.reconciled == before.reconciled:
			return "it has not ended"
		}
		return ""
	})
}

// settled waits until an Application is synced with the last commit, and healthy. It returns the verdicts on health on the way.
func (a *argo) settled(name string) []string {
	a.t.Helper()
	return a.reaches(name, "Healthy")
}

// reaches waits until an Application is synced with the last commit and has some health.
func (a *argo) reaches(name, health string) []string {
	a.t.Helper()
	a.refresh(name, "normal")
	revision := a.git("rev-parse", "HEAD")
	var verdicts []string
	a.await(name+" is Synced and "+health, func() string {
		_, now, err := a.read(name)
		if err != nil {
			return err.Error()
		}
		verdicts = a.heard(name, verdicts, now.health)
		if now.sync != "Synced" || now.health != health || now.revision != revision {
			return a.describe(name)
		}
		return ""
	})
	return verdicts
}

// heard adds a verdict on health to those before where it is another one, and logs what is Degraded.
func (a *argo) heard(name string, verdicts []string, health string) []string {
	a.t.Helper()
	if len(verdicts) > 0 && verdicts[len(verdicts)-1] == health {
		return verdicts
	}
	if health == "Degraded" {
		a.t.Logf("degraded: %s", a.describe(name))
	}
	return append(verdicts, health)
}

// describe is what Argo CD says of an Application.
func (a *argo) describe(name string) string {
	object, now, err := a.read(name)
	if err != nil {
		return err.Error()
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	all, _, _ := unstructured.NestedSlice(object.Object, "status", "resources")
	// Those that are well say nothing.
	waiting := slices.DeleteFunc(all, func(resource any) bool {
		fields, _ := resource.(map[string]any)
		health, _, _ := unstructured.NestedString(fields, "health", "status")
		return fields["status"] == "Synced" && (health == "" || health == "Healthy")
	})
	return fmt.Sprintf("%s: %+v %s %s", name, now, text(conditions), text(waiting))
}

// applications are all of the layout.
func applications() []string {
	return []string{"lowlatency", "lowlatency-operator", "lowlatency-nodes"}
}

// firstSync applies the one file that somebody applies by hand.
func (a *argo) firstSync(operator string) {
	a.t.Helper()
	content, err := os.ReadFile(filepath.Join(a.repository, "config/gitops/root.yaml"))
	a.check(err)
	var root map[string]any
	a.check(yaml.Unmarshal(content, &root))
	a.check(a.apply(root))
	verdicts := []string{}
	a.await("the nodes are in force", func() string {
		_, now, err := a.read("lowlatency-nodes")
		if err != nil {
			return fmt.Sprintf("%v; the others: %s %s", err, a.describe("lowlatency"), a.describe("lowlatency-operator"))
		}
		if now.health != "" {
			verdicts = a.heard("lowlatency-nodes", verdicts, now.health)
		}
		if now.sync != "Synced" || now.health != "Healthy" {
			return a.describe("lowlatency-nodes")
		}
		var profiles v1alpha1.LowLatencyNodeProfileList
		if err := a.Client.List(a.t.Context(), &profiles); err != nil || len(profiles.Items) != 2 {
			return fmt.Sprintf("%d profiles, %v", len(profiles.Items), err)
		}
		return ""
	})
	for _, name := range applications() {
		a.settled(name)
	}
	a.expectProgress("first sync", verdicts, "Healthy")
	a.canaryFirst()
	a.seen("first sync", "app of apps, %s, 2 profiles and 2 pools; health %s; production after the canary was Ready",
		operator, strings.Join(verdicts, " > "))
}

// expectProgress: health said Progressing before it said how it ended. At first it may still speak of the commit before.
func (a *argo) expectProgress(what string, verdicts []string, end string) {
	a.t.Helper()
	last := len(verdicts) - 1
	if last < 1 || verdicts[last] != end || !slices.Contains(verdicts[:last], "Progressing") {
		a.t.Errorf("%s: health went %v, want Progressing and %s in the end", what, verdicts, end)
	}
}

// canaryFirst: the sync waves held production back until the canary was proven.
func (a *argo) canaryFirst() {
	a.t.Helper()
	var canary, production v1alpha1.LowLatencyNodeProfile
	a.check(errors.Join(a.Client.Get(a.t.Context(), client.ObjectKey{Name: "trading-canary"}, &canary),
		a.Client.Get(a.t.Context(), client.ObjectKey{Name: "trading"}, &production)))
	ready := apimeta.FindStatusCondition(canary.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || production.CreationTimestamp.Before(&ready.LastTransitionTime) {
		a.t.Errorf("production was created at %s, the canary is %s", production.CreationTimestamp, text(ready))
	}
}

// noDrift looks hard at everything several times: nothing may be out of sync, and nothing is applied again.
func (a *argo) noDrift(kind string) {
	a.t.Helper()
	before := a.operations()
	for range 3 {
		for _, name := range applications() {
			a.refresh(name, "hard")
			if object, now, err := a.read(name); err != nil || now.sync != "Synced" || now.health != "Healthy" {
				resources, _, _ := unstructured.NestedSlice(object.Object, "status", "resources")
				a.t.Errorf("%s: %s is %+v, %v: %s", kind, name, now, err, text(resources))
			}
		}
	}
	if diff := cmp.Diff(before, a.operations()); diff != "" {
		a.t.Errorf("%s: Argo CD has synced again (-before +after):\n%s", kind, diff)
	}
	a.seen("no drift, "+kind, "3 hard refreshes of %d Applications: Synced and Healthy, nothing applied again", len(applications()))
}

// operations are when Argo CD has synced last.
func (a *argo) operations() map[string]string {
	a.t.Helper()
	all := map[string]string{}
	for _, name := range applications() {
		// An Application is Synced and Healthy before its operation says that it has ended.
		a.await(name+" has applied what it had to", func() string {
			object, _, err := a.read(name)
			if err != nil {
				return err.Error()
			}
			if all[name], _, _ = unstructured.NestedString(object.Object, "status", "operationState", "finishedAt"); all[name] == "" {
				return "its operation is under way"
			}
			return ""
		})
	}
	return all
}

// change commits a change of both profiles, and rolls it back.
func (a *argo) change(how string, first map[string]string) {
	a.t.Helper()
	a.commit("audit off", func() { a.edit(profileFile, "spec:\n", "spec:\n  kernel:\n    additionalArguments: [audit=0]\n") })
	verdicts := a.settled("lowlatency-nodes")
	a.expectProgress("change", verdicts, "Healthy")
	changed := contents(a.rendered())
	if cmp.Diff(contents(first), changed) == "" || !strings.Contains(text(changed), "audit=0") {
		a.t.Error("the change has not reached the machine configs")
	}
	a.seen("change in git, "+how, "kernel argument on all nodes; health %s", strings.Join(verdicts, " > "))
	a.git("revert", "--no-edit", "HEAD")
	verdicts = a.settled("lowlatency-nodes")
	if diff := cmp.Diff(contents(first), contents(a.rendered())); diff != "" {
		a.t.Errorf("after the rollback something else is rendered (-first +now):\n%s", diff)
	}
	a.seen("rollback in git, "+how, "rendered as at first, byte for byte; health %s", strings.Join(verdicts, " > "))
}

// degrade commits a profile that no host can meet, and takes it back.
func (a *argo) degrade(first map[string]string) {
	a.t.Helper()
	before := a.rendered()
	a.commit("CPUs that are not there", func() {
		a.edit(profileFile, "spec:\n", "spec:\n  cpus:\n    partition: Explicit\n    explicit: {housekeeping: \"0-1\", isolated: \"900-901\"}\n")
	})
	a.refresh("lowlatency-nodes", "normal")
	var verdicts []string
	a.await("health is Degraded", func() string {
		_, now, err := a.read("lowlatency-nodes")
		if err != nil {
			return err.Error()
		}
		verdicts = a.heard("lowlatency-nodes", verdicts, now.health)
		if now.health != "Degraded" {
			return fmt.Sprintf("%+v", now)
		}
		return ""
	})
	if diff := cmp.Diff(before, a.rendered()); diff != "" {
		a.t.Errorf("a profile that cannot be met has changed what is rendered (-before +after):\n%s", diff)
	}
	a.seen("mistake in git", "CPUs that no host has: health %s, nothing rendered anew, no reboot; production not touched", strings.Join(verdicts, " > "))
	a.git("revert", "--no-edit", "HEAD")
	verdicts = a.settled("lowlatency-nodes")
	if diff := cmp.Diff(contents(first), contents(a.rendered())); diff != "" {
		a.t.Errorf("after the correction something else is rendered (-first +now):\n%s", diff)
	}
	a.seen("correction in git", "health %s", strings.Join(verdicts, " > "))
}

// prune takes production out of git.
func (a *argo) prune() {
	a.t.Helper()
	a.commit("canary only", func() { a.edit(nodesFile, "- production\n", "") })
	a.settled("lowlatency-nodes")
	a.await("production is released", func() string {
		for _, object := range []client.Object{&v1alpha1.LowLatencyNodeProfile{}, &v1alpha1.LowLatencyNode{}} {
			name := map[bool]string{true: "trading", false: "xeon-2"}[isProfile(object)]
			if err := a.Client.Get(a.t.Context(), client.ObjectKey{Name: name}, object); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("%T %s is there: %v", object, name, err)
			}
		}
		return ""
	})
	a.seen("prune", "profile and pool that git no longer has: deleted, their nodes released")
}

func isProfile(object client.Object) bool {
	_, ok := object.(*v1alpha1.LowLatencyNodeProfile)
	return ok
}

// remove deletes the Applications with what they manage, and the operator's kinds.
func (a *argo) remove() {
	a.t.Helper()
	a.deleteApplications()
	a.removeDefinitions(definitionNames()...)
	a.seen("delete", "Applications deleted with their objects: nodes released, then the operator; no finalizer left")
}

// deleteApplications deletes the Applications with what they manage: first the nodes, then the operator.
func (a *argo) deleteApplications() {
	a.t.Helper()
	root, _, err := a.read("lowlatency")
	a.check(err)
	a.check(a.Client.Delete(a.t.Context(), root))
	for _, name := range []string{"lowlatency-nodes", "lowlatency-operator"} {
		object, _, err := a.read(name)
		a.check(err)
		// Argo CD writes its status meanwhile.
		before := object.DeepCopy()
		object.SetFinalizers([]string{"resources-finalizer.argocd.argoproj.io"})
		a.check(a.Client.Patch(a.t.Context(), object, client.MergeFrom(before)))
		a.check(a.Client.Delete(a.t.Context(), object))
		a.await(name+" is gone with everything in it", func() string {
			object, _, err := a.read(name)
			if apierrors.IsNotFound(err) {
				return ""
			}
			return fmt.Sprint(err, text(object.Object["status"]))
		})
		if name == "lowlatency-nodes" {
			a.released()
		}
	}
}
