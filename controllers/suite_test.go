// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/embedded"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

const (
	namespace = "lowlatency-operator-system"
	// applications is a namespace of pods that use NICs.
	applications = "applications"
	image        = "registry.example/lowlatency-operator:v1"
	// waitTimeout is how long a rollout may take on a slow machine; pause is how often it is looked at.
	waitTimeout = 90 * time.Second
	pause       = 100 * time.Millisecond
)

// suite is a real API server with the operator's manager on it, a simulated machine-config operator, and
// agents that are played by the specs.
type suite struct {
	config *rest.Config
	client client.WithWatch
	// requests are those of the operator's manager.
	requests *requestCounter
	// reboots counts how often each node took a new configuration.
	reboots *rebootCounter
	// inventories by hardware.
	xeon, epyc *v1alpha1.Inventory
	// arguments are the kernel arguments of plans, by the names of their ConfigMaps.
	arguments map[string]string
	// booted are those of rendered configurations, by name.
	booted map[string]string
	// platform is the simulated machine-config operator.
	platform *embedded.MachineConfigOperator
	// twice are nodes that were seen in two custom pools.
	twice *nodeWatch
}

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	s := &suite{
		requests: newRequestCounter(), reboots: newRebootCounter(), arguments: map[string]string{}, booted: map[string]string{},
		xeon: objects.InventoryOf(t, hosttree.Xeon()), epyc: objects.InventoryOf(t, hosttree.EPYC()),
	}
	BeforeSuite(s.start)
	AfterEach(s.cleanUp)
	describeRollout(s)
	describeVerification(s)
	describeGate(s)
	describeConflicts(s)
	describePools(s)
	describeBypassNICPools(s)
	describePoolConflicts(s)
	describePoolReadiness(s)
	describeEfficiency(s)
	describeFleet(s)
	describeHeartbeats(s)
	describeInForce(s)
	describeOwnership(s)
	describeRelease(s)
	describeLatencyTests(s)
	describeQualification(s)
	var failures []string
	ReportAfterEach(func(report SpecReport) {
		if report.Failed() {
			failures = append(failures, report.FullText()+": "+report.FailureMessage())
		}
	})
	RunSpecs(t, "controllers")
	// The logs of a failed spec are long, and what is wrong is said before them.
	for _, failure := range failures {
		t.Log(failure)
	}
}

func (s *suite) start(ctx SpecContext) {
	environment, err := apiserver.Start(apiserver.Options{CRDs: []string{
		filepath.Join("testdata", "performance.openshift.io_performanceprofiles.yaml"),
		filepath.Join("testdata", "k8s.cni.cncf.io_network-attachment-definitions.yaml"),
	}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(environment.Stop)
	scheme, err := controllers.Scheme()
	Expect(err).NotTo(HaveOccurred())
	s.client, err = client.NewWithWatch(environment.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{namespace, controllers.DefaultAgentNamespace, applications, manifests.TunedNamespace} {
		Expect(s.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	}
	Expect(s.client.Create(ctx, embedded.WorkerPool())).To(Succeed())
	s.grantPermissions(ctx)

	running, stop := context.WithCancel(context.Background())
	var processes sync.WaitGroup
	DeferCleanup(func() {
		stop()
		processes.Wait()
	})
	s.platform = &embedded.MachineConfigOperator{Client: s.client, Rebooter: s.reboots, Clock: clock.RealClock{}, Interval: pause}
	processes.Go(func() {
		defer GinkgoRecover()
		Expect(s.platform.Run(running)).To(Succeed())
	})
	s.twice = watchNodes(running, &processes, s.client)

	s.config = environment.Config()
	s.startManager(running, &processes, s.requests)
}

// startManager starts the operator as its command does, and counts its requests.
func (s *suite) startManager(ctx context.Context, processes *sync.WaitGroup, requests *requestCounter) {
	GinkgoHelper()
	restConfig := rest.CopyConfig(s.config)
	restConfig.QPS = -1
	restConfig.Impersonate = impersonation()
	restConfig.Wrap(requests.wrap)
	options := controllers.Options{Namespace: namespace, Image: image, TrafficImage: "traffic:v1", Registerer: prometheus.NewRegistry()}
	mgr, err := ctrl.NewManager(restConfig, controllers.ManagerOptions(ctrl.Options{
		Scheme: s.client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: new(true)},
	}, options))
	Expect(err).NotTo(HaveOccurred())
	Expect(controllers.Setup(mgr, options)).To(Succeed())
	processes.Go(func() {
		defer GinkgoRecover()
		Expect(mgr.Start(ctx)).To(Succeed())
	})
}

// cleanUp deletes the profiles, lets the operator give everything back, and deletes the nodes. Every spec is
// thereby a spec of deletion, too.
func (s *suite) cleanUp(ctx SpecContext) {
	Expect(s.client.DeleteAllOf(ctx, &v1alpha1.BypassNICPool{})).To(Succeed())
	Expect(s.client.DeleteAllOf(ctx, &v1alpha1.LowLatencyNodeProfile{})).To(Succeed())
	Eventually(func(g Gomega) {
		s.playAgents(ctx)
		var profiles v1alpha1.LowLatencyNodeProfileList
		g.Expect(s.client.List(ctx, &profiles)).To(Succeed())
		for i := range profiles.Items {
			g.Expect(conditionsOf(profiles.Items[i].Status.Conditions)).To(BeEmpty(), "profile %s is still there", profiles.Items[i].Name)
		}
		g.Expect(profiles.Items).To(BeEmpty())
	}, waitTimeout, pause).Should(Succeed())
	s.expectNothingLeft(ctx)
	s.collectGarbage(ctx)
	Expect(s.objectsOfPools(ctx)).To(BeEmpty(), "everything is owned by a pool")
	Expect(s.client.DeleteAllOf(ctx, &corev1.Node{})).To(Succeed())
	Expect(s.twice.violations()).To(BeEmpty(), "nodes in two custom pools")
	s.reboots.reset()
	s.twice.reset()
}
