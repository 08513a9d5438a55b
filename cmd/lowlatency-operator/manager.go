// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/process"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/version"
)

// Leader election as OpenShift recommends it: an API server that is away for a minute, as during an upgrade,
// does not cost the leadership (openshift/enhancements, CONVENTIONS.md).
const (
	leaseDuration = 137 * time.Second
	renewDeadline = 107 * time.Second
	retryPeriod   = 26 * time.Second
)

// managerFlags are the flags that users of kubebuilder projects expect.
type managerFlags struct {
	metricsAddress string
	secureMetrics  bool
	certPath       string
	certName       string
	certKey        string
	probeAddress   string
	leaderElect    bool
	enableHTTP2    bool
	namespace      string
	agentNamespace string
	image          string
	trafficImage   string
	podName        string
	platform       string
	verbose        bool
}

func newManagerCommand() *cobra.Command {
	flags := &managerFlags{}
	command := &cobra.Command{
		Use:   "manager",
		Short: "Plan for the nodes, have the platform change them, and report",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runManager(command.Context(), flags)
		},
	}
	flags.register(command.Flags())
	return command
}

func (f *managerFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.metricsAddress, "metrics-bind-address", "0",
		"The address of the metrics endpoint, such as :8443 for HTTPS or :8080 for HTTP; 0 for none.")
	flags.BoolVar(&f.secureMetrics, "metrics-secure", true,
		"Serve metrics over HTTPS, to those whom the API server authorizes.")
	flags.StringVar(&f.certPath, "metrics-cert-path", "", "The folder with the certificate of the metrics endpoint.")
	flags.StringVar(&f.certName, "metrics-cert-name", "tls.crt", "The name of the certificate file.")
	flags.StringVar(&f.certKey, "metrics-cert-key", "tls.key", "The name of the key file.")
	flags.StringVar(&f.probeAddress, "health-probe-bind-address", ":8081", "The address of /healthz and /readyz.")
	flags.BoolVar(&f.leaderElect, "leader-elect", false, "Let one of several managers act.")
	flags.BoolVar(&f.enableHTTP2, "enable-http2", false,
		"Serve HTTP/2 on the metrics endpoint. Off because of CVE-2023-44487 and CVE-2023-39325.")
	flags.StringVar(&f.namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"The namespace in which the plans are kept. Defaults to the environment variable POD_NAMESPACE.")
	flags.StringVar(&f.agentNamespace, "agent-namespace", controllers.DefaultAgentNamespace,
		"The namespace in which pods may use the host, where the device plugins of BypassNICPools run.")
	flags.StringVar(&f.image, "image", "",
		"The image of the operator, which the device plugins of BypassNICPools run. Defaults to the image of the manager's own Pod.")
	flags.StringVar(&f.trafficImage, "traffic-image", os.Getenv("RELATED_IMAGE_TRAFFIC"),
		"The image lowlatency-traffic, which LatencyTests run that measure over the network. Defaults to the environment variable RELATED_IMAGE_TRAFFIC, "+
			"and else to the image of the PodTemplate with the label app.kubernetes.io/component="+v1alpha1.ComponentTrafficImage+" in the namespace of the manager.")
	flags.StringVar(&f.podName, "pod-name", os.Getenv("POD_NAME"),
		"The name of the manager's own Pod, empty outside of a cluster. Defaults to the environment variable POD_NAME.")
	flags.StringVar(&f.platform, "platform", os.Getenv("PLATFORM"),
		"What changes the nodes: OpenShift, Kubernetes, or None to verify them only. "+
			"Empty finds out whether it is OpenShift, and changes no node elsewhere. Defaults to the environment variable PLATFORM.")
	flags.BoolVar(&f.verbose, "verbose", false, "Log details, too.")
}

// runManager runs until the context ends.
func runManager(ctx context.Context, flags *managerFlags) error {
	if flags.namespace == "" {
		return errors.New("no namespace is given: set --namespace or the environment variable POD_NAMESPACE")
	}
	process.SetLogger(flags.verbose)
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	// API priority and fairness shares the API server out between its clients, and the reconcilers bound how many requests they
	// have under way at once. One limit for all of the manager's requests would let thousands of small writes hold up the few
	// that move the fleet.
	config.QPS = -1
	if err := flags.findImage(ctx, config); err != nil {
		return err
	}
	mgr, err := newManager(config, flags)
	if err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

// findImage takes the image of the manager's own Pod where there is one and no image is given.
func (f *managerFlags) findImage(ctx context.Context, config *rest.Config) error {
	if f.image != "" || f.podName == "" {
		return nil
	}
	direct, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	f.image, err = ownImage(ctx, direct, types.NamespacedName{Namespace: f.namespace, Name: f.podName}, "manager")
	return err
}

func newManager(config *rest.Config, flags *managerFlags) (ctrl.Manager, error) {
	options, err := managerOptions(flags)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	if err := controllers.Setup(mgr, flags.options()); err != nil {
		return nil, err
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the liveness probe: %w", err)
	}
	if err := mgr.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the readiness probe: %w", err)
	}
	return mgr, nil
}

func managerOptions(flags *managerFlags) (ctrl.Options, error) {
	scheme, err := controllers.Scheme()
	if err != nil {
		return ctrl.Options{}, err
	}
	options := ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       flags.metricsOptions(),
		HealthProbeBindAddress:        flags.probeAddress,
		LeaderElection:                flags.leaderElect,
		LeaderElectionID:              v1alpha1.LeaderElectionID,
		LeaderElectionNamespace:       flags.namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(leaseDuration),
		RenewDeadline:                 new(renewDeadline),
		RetryPeriod:                   new(retryPeriod),
	}
	return controllers.ManagerOptions(options, flags.options()), nil
}

func (f *managerFlags) options() controllers.Options {
	return controllers.Options{
		Namespace: f.namespace, AgentNamespace: f.agentNamespace, Version: version.Of(release).Version,
		Image: f.image, TrafficImage: f.trafficImage, Kind: platform.Kind(f.platform),
	}
}

func (f *managerFlags) metricsOptions() metricsserver.Options {
	options := metricsserver.Options{
		BindAddress:   f.metricsAddress,
		SecureServing: f.secureMetrics,
		CertDir:       f.certPath,
		CertName:      f.certName,
		KeyName:       f.certKey,
	}
	if !f.enableHTTP2 {
		options.TLSOpts = append(options.TLSOpts, func(config *tls.Config) { config.NextProtos = []string{"http/1.1"} })
	}
	if f.secureMetrics {
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return options
}
