// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/agent"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodeclient"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/embedded"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

const (
	namespace   = "lowlatency-operator-system"
	profileName = "trading"
	realHost    = "this-machine"
	// pace of the simulated platform: fast enough for a demo, slow enough to watch.
	pace     = 300 * time.Millisecond
	bootTime = 2 * time.Second
)

// stage is everything that runs during the demo.
type stage struct {
	narrator    *narrator
	dir         string
	kubeconfig  string
	environment *apiserver.Environment
	client      client.Client
	agents      *nodeclient.Client
	fleet       *embedded.Fleet
	kubelets    *embedded.Kubelets
	machines    map[string]string
	running     sync.WaitGroup
	failures    chan error
}

// newStage starts the API server and gives the demo a folder of its own.
func newStage(ctx context.Context, narrator *narrator) (*stage, error) {
	dir, err := os.MkdirTemp("", "lowlatency-demo-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for the demo: %w", err)
	}
	s := &stage{narrator: narrator, dir: dir, machines: map[string]string{}, failures: make(chan error, 8)}
	if s.environment, err = apiserver.Start(apiserver.Options{}); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the API server: %w", err), os.RemoveAll(dir))
	}
	s.client = s.environment.Client()
	if s.agents, err = nodeclient.New(s.environment.Config()); err != nil {
		return nil, fmt.Errorf("creating the client of the agents: %w", err)
	}
	s.fleet = &embedded.Fleet{
		Client: s.client, Dir: filepath.Join(dir, "hosts"), Agent: s.runAgent, Clock: clock.RealClock{}, BootTime: bootTime,
	}
	s.kubelets = &embedded.Kubelets{
		Client: s.client, Fleet: s.fleet, Dir: filepath.Join(dir, "kubelets"), Plugin: runPlugin, Clock: clock.RealClock{}, Interval: pace,
	}
	s.kubeconfig = filepath.Join(dir, "kubeconfig")
	return s, errors.Join(writeKubeconfig(s.environment.Config(), s.kubeconfig), s.prepareCluster(ctx))
}

// close ends everything and removes what the demo left on disk.
func (s *stage) close(cancel context.CancelFunc) {
	cancel()
	s.running.Wait()
	s.fleet.Wait()
	if err := errors.Join(s.environment.Stop(), os.RemoveAll(s.dir)); err != nil {
		s.narrator.say("cleaning up: %v", err)
	}
}

// failure returns an error that some part of the stage ran into, if any.
func (s *stage) failure() error {
	select {
	case err := <-s.failures:
		return err
	default:
		return nil
	}
}

// start runs a part of the stage in the background until the context ends.
func (s *stage) start(name string, run func() error) {
	s.running.Go(func() {
		if err := run(); err != nil {
			s.failures <- fmt.Errorf("%s: %w", name, err)
		}
	})
}

// prepareCluster creates what an OpenShift cluster has before any operator is installed.
func (s *stage) prepareCluster(ctx context.Context) error {
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controllers.DefaultAgentNamespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-cluster-node-tuning-operator"}},
		&mcfgv1.MachineConfigPool{
			ObjectMeta: metav1.ObjectMeta{Name: "worker", Labels: map[string]string{"pools.operator.machineconfiguration.openshift.io/worker": ""}},
			Spec: mcfgv1.MachineConfigPoolSpec{
				MachineConfigSelector: &metav1.LabelSelector{MatchLabels: map[string]string{mcfgv1.MachineConfigRoleLabelKey: "worker"}},
				NodeSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/worker": ""}},
			},
		},
	}
	for _, object := range objects {
		if err := s.client.Create(ctx, object); err != nil {
			return fmt.Errorf("preparing the cluster: %w", err)
		}
	}
	return nil
}

// startPlatform starts what OpenShift would run: the simulated machine-config and node tuning operators, and kubelets.
func (s *stage) startPlatform(ctx context.Context) {
	machineConfig := &embedded.MachineConfigOperator{Client: s.client, Rebooter: s.fleet, Clock: clock.RealClock{}, Interval: pace}
	tuning := &embedded.NodeTuning{Client: s.client, Fleet: s.fleet, Clock: clock.RealClock{}, Interval: pace}
	s.start("the simulated machine-config operator", func() error { return machineConfig.Run(ctx) })
	s.start("the simulated node tuning operator", func() error { return tuning.Run(ctx) })
	s.start("the simulated kubelets", func() error { return s.kubelets.Run(ctx) })
}

// startOperator runs the operator's manager in this process, wired as in production.
func (s *stage) startOperator(ctx context.Context) error {
	scheme, err := controllers.Scheme()
	if err != nil {
		return fmt.Errorf("building the scheme: %w", err)
	}
	options := controllers.Options{Namespace: namespace, Image: "lowlatency-operator:demo", Registerer: prometheus.NewRegistry()}
	manager, err := ctrl.NewManager(s.environment.Config(), controllers.ManagerOptions(ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	}, options))
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}
	if err := controllers.Setup(manager, options); err != nil {
		return fmt.Errorf("setting up the controllers: %w", err)
	}
	s.start("the operator", func() error { return manager.Start(ctx) })
	return nil
}

// runAgent runs the production agent of one node on its host tree.
func (s *stage) runAgent(ctx context.Context, node, root string) error {
	a := &agent.Agent{
		Client: s.agents, NodeName: node, Namespace: namespace, Root: root, Clock: clock.RealClock{}, Interval: time.Second,
		Heartbeat: agent.Heartbeat{Namespace: controllers.DefaultAgentNamespace},
	}
	if node != realHost {
		a.HostAddresses, a.PodResources = nodeAddresses(), s.kubelets.PodResources(node)
	}
	return a.Run(ctx)
}

// addMachines builds the fleet.
func (s *stage) addMachines(ctx context.Context) error {
	trading := map[string]string{"node-role.kubernetes.io/trading": ""}
	for _, group := range []struct {
		prefix, text string
		machine      hosttree.Machine
		count        int
	}{
		{"xeon", "2 x Xeon, SMT", hosttree.Xeon(), 3},
		{"epyc", "2 x EPYC, 8 NUMA nodes", hosttree.EPYC(), 3},
		{"arm", "arm64 server", hosttree.Arm(), 2},
	} {
		for i := range group.count {
			name := fmt.Sprintf("%s-%d", group.prefix, i+1)
			if err := s.fleet.Add(ctx, name, withOnload(group.machine), trading); err != nil {
				return err
			}
			s.machines[name] = group.text
			s.narrator.say("%-12s %s", name, group.text)
		}
	}
	s.machines[realHost] = "real: the machine this runs on, read-only"
	s.narrator.say("%-12s %s", realHost, s.machines[realHost])
	return s.fleet.AddRealHost(ctx, realHost, runtime.GOARCH, map[string]string{"lowlatency.dev/demo": "real-host"})
}

// writeKubeconfig lets the reader talk to the demo's API server with kubectl.
func writeKubeconfig(config *rest.Config, path string) error {
	const name = "lowlatency-demo"
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	out.CurrentContext = name
	if err := clientcmd.WriteToFile(*out, path); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}
