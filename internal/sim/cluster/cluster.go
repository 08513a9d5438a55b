// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package cluster is a whole cluster on one machine: a real etcd and kube-apiserver, the simulated platform, a fleet of
// simulated hosts on which the production agents and device plugins run, and the operator's manager, wired as in
// production. The demo and the tests that make mistakes on purpose stand on it.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/deviceplugin"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/agent"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodeclient"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodereport"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/embedded"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

const (
	// Namespace is where the operator runs and keeps the plans.
	Namespace = "lowlatency-operator-system"
	// tunedNamespace is where OpenShift's Node Tuning Operator looks for Tuned objects.
	tunedNamespace = "openshift-cluster-node-tuning-operator"
	// collectingPaces is how many paces of the platform the garbage collector waits between two looks at all objects.
	collectingPaces = 5
	// realRoot is the root of the machine that this runs on.
	realRoot = "/"
)

// Options say how fast the cluster lives.
type Options struct {
	// Dir holds host trees and the folders of kubelets. Its path must be short: unix sockets are below it.
	Dir string
	// Platform is OpenShift when it is not given. On ordinary Kubernetes there is nothing to start by StartPlatform, and hosts are not this
	// cluster's: see guardedhost.Fleet.
	Platform apiserver.Platform
	// Pace is the interval between two looks of the simulated platform at the cluster.
	Pace time.Duration
	// BootTime is how long a host stays away when it reboots.
	BootTime time.Duration
	// AgentPace is that of the agents.
	AgentPace AgentPace
	// PluginInterval is that of the device plugins; zero means what it is in production.
	PluginInterval time.Duration
	// Image is what the operator is told that it is; "" means one of the demo.
	Image string
	// Agent runs the agent of a node, which finds the kubelet's PodResources service at a socket, until the context ends; nil
	// means in this process. Plugin does so with a device plugin.
	Agent  func(ctx context.Context, node, root, podResources string) error
	Plugin embedded.StartPlugin
	// Rebooting is called when a host begins to reboot; nil for nobody.
	Rebooting func(node string, rendered *mcfgv1.MachineConfig)
}

// AgentPace says how often an agent looks at its host, see agent.Agent; zero means as often as in production.
type AgentPace struct {
	Interval, FullInterval, Window time.Duration
}

// Cluster is a running cluster without an operator, until StartOperator.
type Cluster struct {
	// Client is an administrator's, and reads from the server.
	Client client.WithWatch
	// Fleet are the hosts, Kubelets what runs pods on them.
	Fleet    *embedded.Fleet
	Kubelets *embedded.Kubelets

	options     Options
	environment *apiserver.Environment
	agents      *nodeclient.Client
	running     sync.WaitGroup
	failures    chan error
	// reports are the *agent.ReportServer of agents in this process, by their nodes.
	reports sync.Map
}

// Start starts the API server and makes what a cluster has before any operator is installed. The caller must Close the cluster.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	c := &Cluster{options: options, failures: make(chan error, 16)}
	var err error
	if c.environment, err = apiserver.Start(apiserver.Options{Platform: c.options.Platform}); err != nil {
		return nil, fmt.Errorf("starting the API server: %w", err)
	}
	if err := c.connect(ctx); err != nil {
		return nil, errors.Join(err, c.environment.Stop())
	}
	return c, nil
}

func (c *Cluster) connect(ctx context.Context) error {
	scheme, err := apiserver.Scheme()
	if err != nil {
		return fmt.Errorf("building the scheme: %w", err)
	}
	if c.Client, err = client.NewWithWatch(c.unlimited(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	if c.agents, err = nodeclient.New(c.unlimited()); err != nil {
		return fmt.Errorf("creating the client of the agents: %w", err)
	}
	ticks := clock.RealClock{}
	c.Fleet = &embedded.Fleet{
		Client: c.Client, Dir: filepath.Join(c.options.Dir, "hosts"), Agent: c.runAgent, Clock: ticks, BootTime: c.options.BootTime,
	}
	c.Kubelets = &embedded.Kubelets{
		Client: c.Client, Fleet: c.Fleet, Dir: filepath.Join(c.options.Dir, "k"), Plugin: c.runPlugin, Clock: ticks, Interval: c.options.Pace,
	}
	return c.prepare(ctx)
}

// unlimited is the connection of an administrator whose requests are not delayed by the client.
func (c *Cluster) unlimited() *rest.Config {
	connection := c.environment.Config()
	connection.QPS = -1
	return connection
}

// prepare creates what a cluster of the platform has.
func (c *Cluster) prepare(ctx context.Context) error {
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controllers.DefaultAgentNamespace}},
	}
	if c.options.Platform == apiserver.OpenShift {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tunedNamespace}}, embedded.WorkerPool())
	}
	for _, object := range objects {
		if err := c.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("preparing the cluster: %w", err)
		}
	}
	return nil
}

// Config returns the connection of an administrator. The caller owns the copy.
func (c *Cluster) Config() *rest.Config { return c.environment.Config() }

// WriteKubeconfig writes how the API server is reached as a file for the environment variable KUBECONFIG.
func (c *Cluster) WriteKubeconfig(path string) error { return c.environment.WriteKubeconfig(path) }

// StartPlatform starts what OpenShift would run, until the context ends: the simulated machine-config and node tuning
// operators, kubelets, and the garbage collector.
func (c *Cluster) StartPlatform(ctx context.Context) {
	ticks, pace := clock.RealClock{}, c.options.Pace
	machineConfig := &embedded.MachineConfigOperator{Client: c.Client, Rebooter: (*rebooter)(c), Clock: ticks, Interval: pace}
	tuning := &embedded.NodeTuning{Client: c.Client, Fleet: c.Fleet, Clock: ticks, Interval: pace}
	garbage := &embedded.GarbageCollector{Client: c.Client, Clock: ticks, Interval: collectingPaces * pace}
	tests := &embedded.TestJobs{Client: c.Client, Clock: ticks, Interval: pace}
	c.start("the simulated pods of latency tests", func() error { return tests.Run(ctx) })
	c.start("the simulated machine-config operator", func() error { return machineConfig.Run(ctx) })
	c.start("the simulated node tuning operator", func() error { return tuning.Run(ctx) })
	c.start("the garbage collector", func() error { return garbage.Run(ctx) })
	c.start("the simulated kubelets", func() error { return c.Kubelets.Run(ctx) })
}

// rebooter tells that a host is about to reboot, and lets it.
type rebooter Cluster

// Reboot implements embedded.Rebooter.
func (r *rebooter) Reboot(ctx context.Context, node string, rendered *mcfgv1.MachineConfig) error {
	if r.options.Rebooting != nil {
		r.options.Rebooting(node, rendered)
	}
	return r.Fleet.Reboot(ctx, node, rendered)
}

// start runs a part of the cluster in the background.
func (c *Cluster) start(name string, run func() error) {
	c.running.Go(func() {
		if err := run(); err != nil {
			c.failures <- fmt.Errorf("%s: %w", name, err)
		}
	})
}

// Failure returns an error that some part of the cluster ran into, if any.
func (c *Cluster) Failure() error {
	select {
	case err := <-c.failures:
		return err
	default:
		return nil
	}
}

// Close ends the API server. The contexts that were given to StartPlatform, StartOperator and to the fleet must have
// ended.
func (c *Cluster) Close() error {
	c.running.Wait()
	c.Fleet.Wait()
	return c.environment.Stop()
}

// StartOperator runs the operator's manager in this process until the context ends or stop is called, which returns when
// it has ended. Its requests go through wrap; nil leaves them as they are.
func (c *Cluster) StartOperator(ctx context.Context, wrap func(http.RoundTripper) http.RoundTripper) (stop func(), err error) {
	connection := c.unlimited()
	if wrap != nil {
		connection.Wrap(wrap)
	}
	manager, err := newManager(connection, c.options.Image, "")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	c.start("the operator", func() error {
		defer close(ended)
		return manager.Start(ctx)
	})
	return func() {
		cancel()
		<-ended
	}, nil
}

// RunOperator runs the operator's manager on an API server until the context ends. The platform is found when kind is "".
func RunOperator(ctx context.Context, connection *rest.Config, kind platform.Kind) error {
	manager, err := newManager(connection, "", kind)
	if err != nil {
		return err
	}
	if err := manager.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

// newManager wires the manager as in production.
func newManager(connection *rest.Config, image string, kind platform.Kind) (ctrl.Manager, error) {
	scheme, err := controllers.Scheme()
	if err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	options := controllers.Options{
		Namespace: Namespace, Image: cmp.Or(image, "lowlatency-operator:demo"), TrafficImage: "lowlatency-traffic:demo",
		Registerer: prometheus.NewRegistry(), Kind: kind,
	}
	manager, err := ctrl.NewManager(connection, controllers.ManagerOptions(ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: new(true)},
	}, options))
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	if err := controllers.Setup(manager, options); err != nil {
		return nil, fmt.Errorf("setting up the controllers: %w", err)
	}
	return manager, nil
}

// hostAddresses are the addresses by which the cluster knows a simulated node; none for the machine that this runs on.
func hostAddresses(root string) []netip.Addr {
	if root == realRoot {
		return nil
	}
	return []netip.Addr{netip.MustParseAddr(hosttree.NodeAddress)}
}

// runAgent runs the production agent of one node on its host tree.
func (c *Cluster) runAgent(ctx context.Context, node, root string) error {
	if c.options.Agent != nil && root != realRoot {
		return c.options.Agent(ctx, node, root, c.Kubelets.PodResources(node))
	}
	podResources := ""
	if root != realRoot {
		podResources = c.Kubelets.PodResources(node)
	}
	of := NewAgent(c.agents, node, root, podResources, c.options.AgentPace)
	of.Reports = &agent.ReportServer{}
	c.reports.Store(node, of.Reports)
	return of.Run(ctx)
}

// Report is the latest full report of a node's agent, for which kubectl lowlatency node would ask its pod. It is nil before the agent's first
// one since the node has booted, and for agents outside of this process. Nobody may change it.
func (c *Cluster) Report(node string) *nodereport.Report {
	server, found := c.reports.Load(node)
	if !found {
		return nil
	}
	return server.(*agent.ReportServer).Latest() //nolint:forcetypeassert // Nothing else is stored.
}

// NewAgent makes the production agent of one node on its host tree.
func NewAgent(client agent.Client, node, root, podResources string, pace AgentPace) *agent.Agent {
	return &agent.Agent{
		Client: client, NodeName: node, Namespace: Namespace, Root: root, Clock: clock.RealClock{},
		Interval: pace.Interval, FullInterval: pace.FullInterval, Window: pace.Window, HostAddresses: hostAddresses(root), PodResources: podResources,
		Heartbeat: agent.Heartbeat{Namespace: controllers.DefaultAgentNamespace},
	}
}

// runPlugin runs the production device plugin of a pool on one node.
func (c *Cluster) runPlugin(ctx context.Context, on embedded.PluginOnNode) error {
	if c.options.Plugin != nil {
		return c.options.Plugin(ctx, on)
	}
	return NewPlugin(on, c.options.PluginInterval).Run(ctx)
}

// NewPlugin makes the production device plugin of a pool on one node.
func NewPlugin(on embedded.PluginOnNode, interval time.Duration) *deviceplugin.Plugin {
	source := &deviceplugin.Source{PoolFile: on.PoolFile, Root: on.Root, NodeName: on.Node, HostAddresses: hostAddresses(on.Root)}
	return &deviceplugin.Plugin{
		Evaluate: source.Evaluate, PoolFile: on.PoolFile, KubeletFolder: on.KubeletFolder, CDIFolder: on.CDIFolder, Interval: interval,
	}
}
