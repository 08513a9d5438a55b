// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package real

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/cluster"
)

// marketplace is where OpenShift has the catalogs that every namespace may subscribe to, and config/gitops/operator names it.
const marketplace = "openshift-marketplace"

// TestArgoCDWithOLM lets Argo CD apply config/gitops as it is: a Subscription, with which Operator Lifecycle Manager installs the operator,
// and upgrades it while profiles are in force.
func TestArgoCDWithOLM(t *testing.T) {
	w := newWorld(t, "Argo CD "+version(t, "ARGOCD_VERSION")+" with Operator Lifecycle Manager "+version(t, "OLM_VERSION"),
		map[string]string{"xeon-1": canaryLabel, "xeon-2": tradingLabel, "epyc-1": tradingLabel})
	o := newOLM(w, marketplace)
	o.serveOlder()
	a := newArgo(w)
	a.firstCommit()
	a.startArgo()
	a.firstSync("operator by Subscription, " + oldRelease)
	o.succeeded(oldRelease)
	o.installed(*previousFlag)
	first := a.rendered()
	a.noDrift("structured merge diff")
	a.diffOnServer()
	a.noDrift("server-side diff")
	a.upgradeBeside(o, first)
	a.change("by server-side apply", first)
	a.removeSubscription(o)
	a.finish("argocd-olm.txt")
}

// upgradeBeside lets Operator Lifecycle Manager upgrade what Argo CD has applied: git says nothing of it, and nothing may drift.
func (a *argo) upgradeBeside(o *olm, before map[string]string) {
	a.t.Helper()
	applied := a.operations()
	o.offerUpgrade()
	for _, name := range applications() {
		a.settled(name)
	}
	if diff := cmp.Diff(before, a.rendered()); diff != "" {
		a.t.Errorf("the upgrade has changed what is rendered (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(applied, a.operations()); diff != "" {
		a.t.Errorf("Argo CD has synced again beside the upgrade (-before +after):\n%s", diff)
	}
	a.seen("upgrade by the Subscription", "%s replaces %s; %d rendered objects unchanged, no reboot, all Synced and Healthy, nothing applied again",
		newRelease, oldRelease, len(contents(before)))
}

// removeSubscription deletes the Applications with what they manage. The namespace is in git, so that what Operator Lifecycle Manager has
// installed goes with it.
func (a *argo) removeSubscription(o *olm) {
	a.t.Helper()
	a.deleteApplications()
	a.await("the operator's namespace is gone", func() string {
		var namespace corev1.Namespace
		if err := a.Client.Get(a.t.Context(), client.ObjectKey{Name: cluster.Namespace}, &namespace); !apierrors.IsNotFound(err) {
			return fmt.Sprint(err, text(namespace.Status))
		}
		return ""
	})
	o.nothingIsLeft()
	a.seen("delete", "Applications deleted with their objects: nodes released, then Subscription and namespace; no finalizer left")
}
