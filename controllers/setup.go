// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package controllers holds the reconcilers of the operator. Each reads the world once, from the cache (past it before a gate closes),
// decides by functions that know nothing but what was read, writes by server-side apply, and writes its status
// once. None decides from a condition that it has written itself.
package controllers

import (
	"context"
	"fmt"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/prometheus/client_golang/prometheus"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/latencytest"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/status"
	"github.com/lowlatency-dev/lowlatency-operator/internal/metrics"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes/rollout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift"
)

// DefaultAgentNamespace is the namespace of agents and device plugins as config/agent makes it.
const DefaultAgentNamespace = heartbeat.DefaultNamespace

// Options say how the reconcilers are to work.
type Options struct {
	// Namespace is where the operator keeps the plans, one ConfigMap for each.
	Namespace string
	// AgentNamespace is where pods may use the host: agents and device plugins run there. Empty means
	// DefaultAgentNamespace.
	AgentNamespace string
	// Version of the operator, which its metrics tell.
	Version string
	// Image of the operator, which the device plugins run, too. Without it pools are reported as impossible.
	Image string
	// TrafficImage measures over the network; "" for that of the PodTemplate in Namespace whose component is v1alpha1.ComponentTrafficImage.
	// Without any, LatencyTests that do are reported as impossible.
	TrafficImage string
	// Platform brings plans to nodes; nil makes the one of Kind.
	Platform platform.Platform
	// Kind of the platform; "" finds out which one it is by the kinds that the API server serves. Ordinary hosts are changed
	// where it is platform.Kubernetes alone.
	Kind platform.Kind
	// Clock tells the time; nil means the real one.
	Clock clock.PassiveClock
	// Registerer takes the metrics; nil means the registry that controller-runtime serves.
	Registerer prometheus.Registerer
}

// Scheme returns a scheme with all kinds that the reconcilers read by their Go types.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, mcfgv1.Install, v1alpha1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering kinds: %w", err)
	}
	return scheme, nil
}

// Setup adds the reconcilers and their metrics to a manager whose scheme has the kinds of Scheme. Its cache is
// smaller when it was made with ManagerOptions.
func Setup(mgr ctrl.Manager, options Options) error {
	options = options.withDefaults()
	if err := options.complete(mgr); err != nil {
		return err
	}
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.LowLatencyNode{}, indexProfile, profileOf)
	if err != nil {
		return fmt.Errorf("indexing LowLatencyNodes by profile: %w", err)
	}
	recorder, err := newRecorder(mgr)
	if err != nil {
		return err
	}
	leases := &heartbeats{client: mgr.GetClient(), namespace: options.AgentNamespace, clock: options.Clock}
	profiles := &ProfileReconciler{
		client: mgr.GetClient(), platform: options.Platform, namespace: options.Namespace,
		recorder: recorder, clock: options.Clock, plans: fleet.NewPlanner(options.Platform.Rules()), heartbeats: leases,
		pace: newPace(options.Clock), statuses: newLastStatuses(status.SameProfile),
	}
	if err := profiles.setup(mgr); err != nil {
		return fmt.Errorf("setting up the reconciler of LowLatencyNodeProfiles: %w", err)
	}
	nodes := &NodeReconciler{
		client: mgr.GetClient(), platform: options.Platform, live: mgr.GetAPIReader(), recorder: recorder, clock: options.Clock, heartbeats: leases,
	}
	if err := nodes.setup(mgr); err != nil {
		return fmt.Errorf("setting up the reconciler of LowLatencyNodes: %w", err)
	}
	if err := setupPools(mgr, options, recorder, leases); err != nil {
		return fmt.Errorf("setting up the reconciler of BypassNICPools: %w", err)
	}
	tests := &TestReconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), image: options.Image, trafficImage: options.TrafficImage, namespace: options.Namespace,
		agentNamespace: options.AgentNamespace,
		recorder:       recorder, clock: options.Clock, statuses: newLastStatuses(latencytest.SameStatus),
	}
	if err := tests.setup(mgr); err != nil {
		return fmt.Errorf("setting up the reconciler of LatencyTests: %w", err)
	}
	collector := metrics.New(mgr.GetClient(), options.Version, options.Namespace, options.AgentNamespace, options.Clock, mgr.Elected())
	if err := options.Registerer.Register(collector); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

// withDefaults names the namespace of the agents when the caller has not.
func (o Options) withDefaults() Options {
	if o.AgentNamespace == "" {
		o.AgentNamespace = DefaultAgentNamespace
	}
	return o
}

func setupPools(mgr ctrl.Manager, options Options, recorder events.EventRecorder, leases *heartbeats) error {
	served, err := findServedKinds(mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	pools := &PoolReconciler{
		client: mgr.GetClient(), objects: mgr.GetCache(),
		keeper: &platform.Keeper{Reader: mgr.GetAPIReader(), Clock: options.Clock}, namespace: options.Namespace, agentNamespace: options.AgentNamespace,
		image: options.Image, served: served, recorder: recorder, clock: options.Clock,
		selections: fleet.NewSelections(), heartbeats: leases, pace: newPace(options.Clock),
		statuses: newLastStatuses(status.SamePool),
	}
	if served.classes {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), &resourcev1.ResourceSlice{}, indexDriver, driverOf); err != nil {
			return fmt.Errorf("indexing ResourceSlices by driver: %w", err)
		}
	}
	return pools.setup(mgr)
}

// driverOf is the index of ResourceSlices.
func driverOf(object client.Object) []string {
	slice, ok := object.(*resourcev1.ResourceSlice)
	if !ok {
		return nil
	}
	return []string{slice.Spec.Driver}
}

// complete fills in what the caller has left open.
func (o *Options) complete(mgr ctrl.Manager) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Registerer == nil {
		o.Registerer = ctrlmetrics.Registry
	}
	if o.Platform != nil {
		return nil
	}
	made, err := o.makePlatform(mgr)
	o.Platform = made
	return err
}

func (o *Options) makePlatform(mgr ctrl.Manager) (platform.Platform, error) {
	kind, err := platform.Choose(o.Kind, mgr.GetRESTMapper())
	switch {
	case err != nil:
		return nil, err
	case kind == platform.Kubernetes:
		return o.makeKubernetes(mgr)
	case kind == platform.Nowhere:
		return platform.None{}, nil
	}
	return openshift.New(openshift.Options{
		Cache: mgr.GetCache(), Live: mgr.GetAPIReader(), Client: mgr.GetClient(),
		Mapper: mgr.GetRESTMapper(), Namespace: o.Namespace,
	})
}

func (o *Options) makeKubernetes(mgr ctrl.Manager) (platform.Platform, error) {
	evictions, err := kubernetes.NewForConfig(mgr.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("making the client that evicts pods: %w", err)
	}
	return rollout.New(rollout.Options{
		Cache: mgr.GetCache(), Live: mgr.GetAPIReader(), Client: mgr.GetClient(), Evictions: evictions,
		Namespace: o.Namespace, AgentNamespace: o.AgentNamespace, Image: o.Image, Clock: o.Clock,
	})
}

// profileOf is the index of LowLatencyNodes.
func profileOf(object client.Object) []string {
	report, ok := object.(*v1alpha1.LowLatencyNode)
	if !ok {
		return nil
	}
	return []string{report.Spec.Profile}
}
