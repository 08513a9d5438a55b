// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package real

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodeclient"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/cluster"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/guardedhost"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// metricsSecret holds the certificate of the metrics endpoint, which OpenShift's service CA makes.
const metricsSecret = "lowlatency-operator-metrics-cert"

// ordinary is a cluster without OpenShift, whose host has the real guard.
type ordinary struct {
	*olm

	hosts  *guardedhost.Fleet
	before map[string]string
}

// TestOLMOrdinary installs the operator by a Subscription on a cluster that is not OpenShift, and has it change an ordinary host, as
// docs/install.md says.
func TestOLMOrdinary(t *testing.T) {
	w, ctx := startWorld(t, "Operator Lifecycle Manager "+version(t, "OLM_VERSION")+" on ordinary Kubernetes", apiserver.Kubernetes)
	o := &ordinary{olm: newOLM(w, "olm")}
	o.addHost(ctx)
	w.pods.run(ctx)
	o.serve("-output", filepath.Join(o.dir, "bundle"))
	o.subscribe(map[string]any{"env": []any{map[string]any{"name": "PLATFORM", "value": "Kubernetes"}}})

	o.await("the manager waits for its certificate", func() string {
		if trouble := o.pods.trouble(); !strings.Contains(trouble, metricsSecret) {
			return "the pods' trouble is " + trouble
		}
		return ""
	})
	o.giveCertificate()
	o.succeeded(newRelease)
	o.seen("install", "without a service CA the manager waits for Secret %s; given it, %s Succeeded", metricsSecret, newRelease)

	o.withoutRights()
	o.withRights()
	o.unsubscribe()
	o.nothingIsLeft()
	o.seen("removal", "every file of the host as before; then operator, agents, policies and their namespace gone")
	o.finish("olm-ordinary.txt")
}

// addHost lets one ordinary host live until the context ends.
func (o *ordinary) addHost(ctx context.Context) {
	o.t.Helper()
	connection := o.Config()
	connection.QPS = -1
	agents, err := nodeclient.New(connection)
	o.check(err)
	o.hosts = &guardedhost.Fleet{
		Client: o.Client, Dir: filepath.Join(o.dir, "ordinary"), Namespace: controllers.DefaultAgentNamespace, Pace: pace, BootTime: bootTime,
		Agent: func(ctx context.Context, node, root string) error {
			a := cluster.NewAgent(agents, node, root, "", cluster.AgentPace{Interval: time.Second, FullInterval: 4 * time.Second})
			a.Guard = guard.ReadReport
			return a.Run(ctx)
		},
	}
	o.check(o.hosts.Add(ctx, "xeon-1", hosttree.Xeon(), map[string]string{tradingLabel: ""}))
	o.before, err = o.hosts.Host("xeon-1").Manifest()
	o.check(err)
	o.pods.done.Go(func() {
		if err := o.hosts.Run(ctx); err != nil && ctx.Err() == nil {
			o.t.Errorf("the host: %v", err)
		}
	})
}

// giveCertificate does what an administrator does where no service CA is.
func (o *ordinary) giveCertificate() {
	o.t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("lowlatency-operator-metrics."+cluster.Namespace+".svc", nil, nil)
	o.check(err)
	o.check(o.Client.Create(o.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: metricsSecret}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
	}))
}

// ordinaryProfile is what is in force.
func ordinaryProfile() *v1alpha1.LowLatencyNodeProfile {
	profile := &v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: "trading"}}
	spec := &profile.Spec
	spec.NodeSelector.MatchLabels = v1alpha1.Labels{tradingLabel: ""}
	spec.Memory.DefaultHugepageSize = "1Gi"
	spec.Memory.Hugepages = []v1alpha1.HugepageReservation{{Size: "1Gi", Count: 16}}
	return profile
}

// withoutRights creates the profile: the operator, which may not change hosts yet, says so and touches none.
func (o *ordinary) withoutRights() {
	o.t.Helper()
	o.check(o.Client.Create(o.t.Context(), ordinaryProfile()))
	said := ""
	o.await("the profile says which right is missing", func() string {
		conditions := o.conditions()
		for _, condition := range conditions {
			if strings.Contains(condition.Message, "forbidden") {
				said = condition.Type + ": " + condition.Message
				return ""
			}
		}
		return text(conditions)
	})
	o.unchanged("without the rights")
	o.seen("a profile before the rights", "%s", said)
}

// withRights applies the rights that no bundle brings: the profile comes into force, and goes.
func (o *ordinary) withRights() {
	o.t.Helper()
	output(o.t, "../..", tool(o.t, "kubectl-"+version(o.t, "KUBERNETES_VERSION"), "kubectl"), "--kubeconfig", o.kubeconfig, "apply", "-f", "config/enactment/role.yaml")
	o.await("the profile is in force", func() string {
		conditions := o.conditions()
		if !apimeta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReady) {
			return text(conditions)
		}
		return ""
	})
	if boots := o.hosts.Host("xeon-1").Boots(); boots != 1 {
		o.t.Errorf("the host has rebooted %d times", boots)
	}
	o.seen("the rights of config/enactment/role.yaml", "profile Ready: guard installed, tried, verified and kept on the host, one reboot")
	o.check(o.Client.Delete(o.t.Context(), ordinaryProfile()))
	o.await("the profile is gone", func() string {
		if err := o.Client.Get(o.t.Context(), client.ObjectKeyFromObject(ordinaryProfile()), &v1alpha1.LowLatencyNodeProfile{}); !apierrors.IsNotFound(err) {
			return fmt.Sprint(err, ": ", text(o.conditions()))
		}
		var nodes v1alpha1.LowLatencyNodeList
		if err := o.Client.List(o.t.Context(), &nodes); err != nil || len(nodes.Items) > 0 {
			return fmt.Sprintf("%v; LowLatencyNodes: %s", err, text(nodes.Items))
		}
		return ""
	})
	o.unchanged("after the profile")
}

// unchanged asserts that every file of the host is as it was before.
func (o *ordinary) unchanged(when string) {
	o.t.Helper()
	after, err := o.hosts.Host("xeon-1").Manifest()
	o.check(err)
	for name, content := range o.before {
		if after[name] != content {
			o.t.Errorf("%s, %s of the host has changed", when, name)
		}
	}
	if !maps.Equal(o.before, after) {
		o.t.Errorf("%s, the host has %d files, folders and links, and %d before", when, len(after), len(o.before))
	}
}

func (o *ordinary) conditions() []metav1.Condition {
	profile := ordinaryProfile()
	if err := o.Client.Get(o.t.Context(), client.ObjectKeyFromObject(profile), profile); err != nil {
		return []metav1.Condition{{Message: errors.Join(err).Error()}}
	}
	return profile.Status.Conditions
}
