// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/process"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/installer"
)

// installerFlags say what is installed.
type installerFlags struct {
	namespace, podName, image, agents string
	probeAddress                      string
	verbose                           bool
}

func newInstallerCommand() *cobra.Command {
	flags := &installerFlags{}
	command := &cobra.Command{
		Use:   "installer",
		Short: "Install what Operator Lifecycle Manager cannot: agents, admission policies, security context constraints",
		Long: "Install what Operator Lifecycle Manager cannot: the namespace and the DaemonSet of the agents with their rights,\n" +
			"admission policies, security context constraints and monitoring. They are owned by the CustomResourceDefinition\n" +
			installer.OwnerCRD + " and go with it.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runInstaller(command.Context(), flags)
		},
	}
	flags.register(command.Flags())
	return command
}

func (f *installerFlags) register(flags *pflag.FlagSet) {
	agents := os.Getenv("AGENTS")
	if agents == "" {
		agents = string(installer.AgentsRead)
	}
	flags.StringVar(&f.namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"The namespace of the operator. Defaults to the environment variable POD_NAMESPACE.")
	flags.StringVar(&f.image, "image", "",
		"The image of the operator, which the agents run. Defaults to the image of the installer's own Pod.")
	flags.StringVar(&f.podName, "pod-name", os.Getenv("POD_NAME"),
		"The name of the installer's own Pod, empty outside of a cluster. Defaults to the environment variable POD_NAME.")
	flags.StringVar(&f.agents, "agents", agents,
		"Read for agents that only look at the host, Repair for agents that may write back what has drifted. "+
			"Defaults to the environment variable AGENTS.")
	flags.StringVar(&f.probeAddress, "health-probe-bind-address", ":8081", "The address of /healthz and /readyz.")
	flags.BoolVar(&f.verbose, "verbose", false, "Log details, too.")
}

// runInstaller runs until the context ends.
func runInstaller(ctx context.Context, flags *installerFlags) error {
	process.SetLogger(flags.verbose)
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	direct, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	install, err := flags.installer(ctx, direct)
	if err != nil {
		return err
	}
	mgr, err := newInstallerManager(config, flags.probeAddress, install)
	if err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the installer: %w", err)
	}
	return nil
}

// installer returns what installs the objects that the flags describe.
func (f *installerFlags) installer(ctx context.Context, direct client.Client) (*installer.Installer, error) {
	image := f.image
	if image == "" && f.podName != "" {
		var err error
		if image, err = ownImage(ctx, direct, types.NamespacedName{Namespace: f.namespace, Name: f.podName}, "installer"); err != nil {
			return nil, err
		}
	}
	objects, err := installer.Objects(installer.Options{Namespace: f.namespace, Image: image, Agents: installer.Agents(f.agents)})
	if err != nil {
		return nil, fmt.Errorf("reading --namespace, --image and --agents: %w", err)
	}
	return &installer.Installer{
		Client: direct, Mapper: direct.RESTMapper(), Objects: objects, Clock: clock.RealClock{}, Log: ctrl.Log.WithName("installer"),
	}, nil
}

// newInstallerManager runs an installer with its probes. It has no cache and no leader: two that apply the same do no harm.
func newInstallerManager(config *rest.Config, probeAddress string, install *installer.Installer) (ctrl.Manager, error) {
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		HealthProbeBindAddress: probeAddress, Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return nil, fmt.Errorf("creating the installer: %w", err)
	}
	if err := errors.Join(mgr.Add(install),
		mgr.AddHealthzCheck("healthz", healthz.Ping), mgr.AddReadyzCheck("readyz", install.Ready)); err != nil {
		return nil, fmt.Errorf("adding the installer and its probes: %w", err)
	}
	return mgr, nil
}
