// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package real

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/cluster"
)

const (
	olmModule = "github.com/operator-framework/operator-lifecycle-manager"
	// oldVersion is what the version before is called here, as long as it has no number of its own.
	oldVersion = "0.0.1"
	oldRelease = "lowlatency-operator.v" + oldVersion
	newRelease = "lowlatency-operator.v0.1.0"
)

// olm is Operator Lifecycle Manager and its catalog.
type olm struct {
	*world
	// namespace is that of catalogs for the whole cluster.
	namespace    string
	opm, address string
	catalog      *process
	catalogs     int
}

// TestOLM installs the previous version, upgrades it while a profile is in force, and removes it in the right and in the wrong order.
func TestOLM(t *testing.T) {
	w := newWorld(t, "Operator Lifecycle Manager "+version(t, "OLM_VERSION"),
		map[string]string{"xeon-1": tradingLabel, "xeon-2": tradingLabel, "epyc-1": tradingLabel})
	o := newOLM(w, "olm")
	o.serveOlder()
	o.subscribe(map[string]any{})
	o.succeeded(oldRelease)
	o.installed(*previousFlag)
	o.seen("install", "Subscription, InstallPlan, %s Succeeded; manager and installer ready with their service accounts' tokens", oldRelease)

	o.bringIntoForce()
	o.seen("profile and pool", "Ready, 3 nodes proven")
	o.check(o.Client.Create(o.t.Context(), quiet()))
	measured := o.measured()
	o.seen("LatencyTest", "%d nodes measured; the Jobs and their figures are simulated", len(measured))
	o.upgrade(o.rendered())
	if diff := cmp.Diff(measured, o.measured()); diff != "" {
		t.Errorf("the upgrade has changed what was measured (-before +after):\n%s", diff)
	}
	o.seen("LatencyTest after the upgrade", "the same results, and nothing measured anew")
	o.removeInOrder()
	o.removeOperatorFirst()
	o.removeDefinitionsFirst()
	o.finish("olm.txt")
}

// newOLM starts Operator Lifecycle Manager, and tells it of a catalog that is served later.
func newOLM(w *world, namespace string) *olm {
	w.t.Helper()
	o := &olm{world: w, namespace: namespace, opm: tool(w.t, "olm-"+version(w.t, "OLM_VERSION"), "opm")}
	o.startOLM()
	o.check(o.apply(o.catalogSource()))
	return o
}

// startOLM starts the two operators of Operator Lifecycle Manager.
func (o *olm) startOLM() {
	o.t.Helper()
	folder := output(o.t, "../../hack/olm", "go", "list", "-m", "-f", "{{.Dir}}", olmModule)
	_, err := envtest.InstallCRDs(o.Config(), envtest.CRDInstallOptions{
		Paths: []string{filepath.Join(folder, "deploy", "chart", "crds")}, ErrorIfPathMissing: true, MaxTime: patience,
	})
	o.check(err)
	o.check(o.Client.Create(o.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.namespace}}))
	environment := []string{"KUBECONFIG=" + o.kubeconfig, "OPERATOR_NAMESPACE=" + o.namespace, "OPERATOR_NAME=olm-operator", "HOME=" + o.dir}
	release := "olm-" + version(o.t, "OLM_VERSION")
	start(o.t, filepath.Join(o.dir, "olm.log"), environment, tool(o.t, release, "olm"),
		"--namespace", o.namespace, "--writeStatusName", "", "--writePackageServerStatusName", "")
	// Both have an endpoint for their health at a port that cannot be chosen, one for HTTP and one for HTTPS.
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	o.check(err)
	files := map[string][]byte{"tls.crt": certificate, "tls.key": key}
	for name, content := range files {
		o.check(os.WriteFile(filepath.Join(o.dir, name), content, 0o600))
	}
	start(o.t, filepath.Join(o.dir, "catalog.log"), environment, tool(o.t, release, "catalog"),
		"--namespace", o.namespace, "--writeStatusName", "", "--tls-cert", filepath.Join(o.dir, "tls.crt"),
		"--tls-key", filepath.Join(o.dir, "tls.key"), "--client-ca", filepath.Join(o.dir, "tls.crt"))
	o.address = "127.0.0.1:" + port(o.t)
}

// serveOlder serves a catalog of the version before alone.
func (o *olm) serveOlder() {
	o.t.Helper()
	if *previousFlag == "" {
		o.t.Fatal("-previous does not say from where to upgrade: run make olm or make argocd-olm")
	}
	o.serve("-catalog-only", olderBundle)
}

// serveBoth serves a catalog in which today's version replaces the one before.
func (o *olm) serveBoth() {
	o.t.Helper()
	o.serve("-replaces", oldVersion, "-output", filepath.Join(o.dir, "bundle"), olderBundle)
}

// olderBundle is the bundle of the version before, from the root of the repository: the one that TestUpgradeIsSafeForOLMv1 judges by. The
// Makefile compares it with what the source of that version makes.
const olderBundle = "test/olm/testdata/v" + oldVersion

// serve serves the catalog that hack/bundle makes with these arguments, in place of the one before.
func (o *olm) serve(arguments ...string) {
	o.t.Helper()
	if o.catalog != nil {
		o.catalog.stop()
	}
	o.catalogs++
	folder := filepath.Join(o.dir, fmt.Sprint("catalog-", o.catalogs))
	output(o.t, "../..", "go", append([]string{"run", "./hack/bundle", "-catalog", folder}, arguments...)...)
	output(o.t, "../..", o.opm, "validate", folder)
	_, listens, _ := strings.Cut(o.address, ":")
	o.catalog = start(o.t, filepath.Join(o.dir, "opm.log"), []string{"HOME=" + o.dir, "PATH=/nowhere"}, o.opm,
		"serve", folder, "-p", listens, "--cache-dir", filepath.Join(o.dir, fmt.Sprint("cache-", o.catalogs)),
		"--cache-enforce-integrity=false", "--pprof-addr", "")
}

// apply applies objects of any kind.
func (w *world) apply(objects ...map[string]any) error {
	failures := make([]error, 0, len(objects))
	for _, fields := range objects {
		object := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: fields})
		failures = append(failures, w.Client.Apply(w.t.Context(), object, client.FieldOwner("admin"), client.ForceOwnership))
	}
	return errors.Join(failures...)
}

func (o *olm) catalogSource() map[string]any {
	return map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
		"metadata": map[string]any{"name": "lowlatency", "namespace": o.namespace},
		"spec":     map[string]any{"sourceType": "grpc", "address": o.address, "displayName": "Low latency", "publisher": "us"},
	}
}

// subscribe does what an administrator does to install the operator; config is what the Subscription says of the manager's pods.
func (o *olm) subscribe(config map[string]any) {
	o.t.Helper()
	o.check(o.apply(
		map[string]any{
			"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
			"metadata": map[string]any{"name": "lowlatency", "namespace": cluster.Namespace}, "spec": map[string]any{},
		},
		map[string]any{
			"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
			"metadata": map[string]any{"name": "lowlatency-operator", "namespace": cluster.Namespace},
			"spec": map[string]any{
				"channel": "candidate", "name": "lowlatency-operator", "source": "lowlatency", "sourceNamespace": o.namespace,
				"installPlanApproval": "Automatic", "config": config,
			},
		}))
}

// olmObject reads an object of Operator Lifecycle Manager.
func (o *olm) olmObject(kind, name string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("operators.coreos.com/v1alpha1")
	object.SetKind(kind)
	err := o.Client.Get(o.t.Context(), client.ObjectKey{Namespace: cluster.Namespace, Name: name}, object)
	return object, err
}

// succeeded waits until a release is installed.
func (o *olm) succeeded(release string) {
	o.t.Helper()
	o.await(release+" has succeeded", func() string {
		csv, err := o.olmObject("ClusterServiceVersion", release)
		if err != nil {
			subscription, _ := o.olmObject("Subscription", "lowlatency-operator")
			return fmt.Sprintf("%v; Subscription: %s", err, text(subscription.Object["status"]))
		}
		if phase, _, _ := unstructured.NestedString(csv.Object, "status", "phase"); phase != "Succeeded" {
			return fmt.Sprintf("%s; pods: %s", text(csv.Object["status"]), o.pods.trouble())
		}
		return ""
	})
}

// installed holds what runs against what the version with this source promises.
func (o *olm) installed(source string) {
	o.t.Helper()
	var manager appsv1.Deployment
	o.check(o.Client.Get(o.t.Context(), client.ObjectKey{Namespace: cluster.Namespace, Name: managerName}, &manager))
	if manager.Status.AvailableReplicas != 2 {
		o.t.Errorf("%d managers are available", manager.Status.AvailableReplicas)
	}
	if runsOlder := manager.Spec.Template.Spec.Containers[0].Image == o.pods.olderImage; runsOlder != (source == *previousFlag) {
		o.t.Errorf("the program of the version before runs: %t", runsOlder)
	}
	var agent appsv1.DaemonSet
	o.check(o.Client.Get(o.t.Context(), client.ObjectKey{Namespace: controllers.DefaultAgentNamespace, Name: "lowlatency-operator-agent"}, &agent))
	if got, want := agent.Spec.Template.Spec.Containers[0].Image, manager.Spec.Template.Spec.Containers[0].Image; got != want {
		o.t.Errorf("the agents run %s, the manager %s", got, want)
	}
	var policies admissionregistrationv1.ValidatingAdmissionPolicyList
	o.check(o.Client.List(o.t.Context(), &policies))
	content, err := os.ReadFile(filepath.Join(source, "internal/platform/installer/objects.yaml"))
	o.check(err)
	if want := strings.Count(string(content), "\nkind: ValidatingAdmissionPolicy\n"); want == 0 || len(policies.Items) != want {
		o.t.Errorf("there are %d admission policies, want %d", len(policies.Items), want)
	}
}

func (o *olm) bringIntoForce() {
	o.t.Helper()
	o.check(o.Client.Create(o.t.Context(), profile()))
	o.check(o.Client.Create(o.t.Context(), pool()))
	o.inForce()
}

// upgrade offers the next release and waits until it is there and everything in force again.
func (o *olm) upgrade(before map[string]string) {
	o.t.Helper()
	o.offerUpgrade()
	o.inForce()
	if diff := cmp.Diff(before, o.rendered()); diff != "" {
		o.t.Errorf("the upgrade has changed what is rendered (-before +after):\n%s", diff)
	}
	o.seen("upgrade", "%s replaces %s; %d rendered objects unchanged, no reboot, profile and pool Ready", newRelease, oldRelease, len(contents(before)))
}

// offerUpgrade offers the next release and waits until its manager leads.
func (o *olm) offerUpgrade() {
	o.t.Helper()
	o.serveBoth()
	o.succeeded(newRelease)
	o.await(oldRelease+" is gone", func() string {
		if _, err := o.olmObject("ClusterServiceVersion", oldRelease); !apierrors.IsNotFound(err) {
			return fmt.Sprint("it is there: ", err)
		}
		return ""
	})
	o.installed("../..")
	o.newManagerLeads()
}

// newManagerLeads waits until the managers of the older version are gone, and the lease is renewed after that: only one of the new ones can.
func (o *olm) newManagerLeads() {
	o.t.Helper()
	o.await("only managers of the new version run", func() string {
		var manager appsv1.Deployment
		var pods corev1.PodList
		if err := errors.Join(o.Client.Get(o.t.Context(), client.ObjectKey{Namespace: cluster.Namespace, Name: managerName}, &manager),
			o.Client.List(o.t.Context(), &pods, client.InNamespace(cluster.Namespace), client.MatchingLabels{"control-plane": "controller-manager"})); err != nil {
			return err.Error()
		}
		if s := manager.Status; s.ObservedGeneration != manager.Generation || s.UpdatedReplicas != 2 || len(pods.Items) != 2 {
			return fmt.Sprintf("%d of %d pods of managers are of the new version", s.UpdatedReplicas, len(pods.Items))
		}
		return ""
	})
	alone := time.Now()
	o.await("a new manager leads", func() string {
		var lease coordinationv1.Lease
		if err := o.Client.Get(o.t.Context(), client.ObjectKey{Namespace: cluster.Namespace, Name: v1alpha1.LeaderElectionID}, &lease); err != nil {
			return err.Error()
		}
		if ptr.Deref(lease.Spec.HolderIdentity, "") == "" || !ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).After(alone) {
			return "no manager of the new version holds the lease"
		}
		return ""
	})
}

// unsubscribe removes the operator as the documentation of Operator Lifecycle Manager says: Subscription, then ClusterServiceVersion.
func (o *olm) unsubscribe() {
	o.t.Helper()
	for kind, name := range map[string]string{"Subscription": "lowlatency-operator", "ClusterServiceVersion": newRelease} {
		object, err := o.olmObject(kind, name)
		o.check(err)
		o.check(o.Client.Delete(context.WithoutCancel(o.t.Context()), object))
	}
	o.await("the operator is gone", func() string {
		var pods corev1.PodList
		var deployments appsv1.DeploymentList
		if err := errors.Join(o.Client.List(o.t.Context(), &pods, client.InNamespace(cluster.Namespace)),
			o.Client.List(o.t.Context(), &deployments, client.InNamespace(cluster.Namespace))); err != nil {
			return err.Error()
		}
		if len(pods.Items)+len(deployments.Items) > 0 {
			return fmt.Sprintf("%d pods and %d Deployments are left", len(pods.Items), len(deployments.Items))
		}
		return ""
	})
}

// nothingIsLeft removes our kinds and expects that what was installed goes with them.
func (o *olm) nothingIsLeft() {
	o.t.Helper()
	o.removeDefinitions(definitionNames()...)
	o.await("nothing of the operator is left", func() string {
		var policies admissionregistrationv1.ValidatingAdmissionPolicyList
		var namespace corev1.Namespace
		if err := o.Client.List(o.t.Context(), &policies); err != nil {
			return err.Error()
		}
		if len(policies.Items) > 0 {
			return fmt.Sprintf("%d admission policies are left", len(policies.Items))
		}
		if err := o.Client.Get(o.t.Context(), client.ObjectKey{Name: controllers.DefaultAgentNamespace}, &namespace); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the agents' namespace is there: %v %s", err, text(namespace.Status))
		}
		return ""
	})
}

// removeInOrder deletes profile and pool, then the operator, then its kinds.
func (o *olm) removeInOrder() {
	o.t.Helper()
	o.check(o.Client.Delete(o.t.Context(), profile()))
	o.check(o.Client.Delete(o.t.Context(), pool()))
	o.released()
	o.unsubscribe()
	o.nothingIsLeft()
	o.seen("removal in the right order", "nodes released, then operator, agents, policies and their namespace gone; no finalizer left")
}

// removeDefinitionsFirst deletes the kinds while a profile is in force and the operator runs: the objects go with them, and the operator releases
// the nodes.
func (o *olm) removeDefinitionsFirst() {
	o.t.Helper()
	o.subscribe(map[string]any{})
	o.succeeded(newRelease)
	o.bringIntoForce()
	o.removeDefinitions(definitionNames()...)
	o.await("nodes are released", func() string {
		for name := range contents(o.rendered()) {
			return name + " is there"
		}
		return ""
	})
	o.unsubscribe()
	o.nothingIsLeft()
	o.seen("kinds removed first", "profile and pool go with them, nodes released; then the operator removed, no finalizer left")
}

// removeOperatorFirst deletes the operator while a profile is in force, and then the profile.
func (o *olm) removeOperatorFirst() {
	o.t.Helper()
	o.subscribe(map[string]any{})
	o.succeeded(newRelease)
	o.bringIntoForce()
	before := o.rendered()
	o.unsubscribe()
	var agent appsv1.DaemonSet
	o.check(o.Client.Get(o.t.Context(), client.ObjectKey{Namespace: controllers.DefaultAgentNamespace, Name: "lowlatency-operator-agent"}, &agent))
	o.check(o.Client.Delete(o.t.Context(), profile()))
	o.check(o.Client.Delete(o.t.Context(), pool()))
	if diff := cmp.Diff(before, o.rendered()); diff != "" {
		o.t.Errorf("removing the operator has changed what is rendered (-before +after):\n%s", diff)
	}
	waiting := &v1alpha1.LowLatencyNodeProfile{}
	o.check(o.Client.Get(o.t.Context(), client.ObjectKeyFromObject(profile()), waiting))
	if len(waiting.Finalizers) == 0 || waiting.DeletionTimestamp.IsZero() {
		o.t.Errorf("the profile does not wait for the operator: %s", text(waiting.ObjectMeta))
	}
	o.seen("operator removed first", "nodes keep %d rendered objects, agents stay; the deleted profile waits with its finalizer", len(contents(before)))

	o.subscribe(map[string]any{})
	o.succeeded(newRelease)
	o.released()
	o.unsubscribe()
	o.nothingIsLeft()
	o.seen("operator installed again", "the deletion goes on: nodes released; then removed in order, no finalizer left")
}
