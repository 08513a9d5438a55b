// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/affinity"
	"github.com/lowlatency-dev/lowlatency-operator/internal/agent"
)

// agentFlags say where the agent runs and what it reads.
type agentFlags struct {
	nodeName  string
	root      string
	hostIP    string
	namespace string
	interval  time.Duration
	verbose   bool
}

func newAgentCommand() *cobra.Command {
	flags := &agentFlags{}
	command := &cobra.Command{
		Use:   "agent",
		Short: "Report what the kernel of this node is, and whether it is what its plan says",
		Long: "Report what the kernel of this node is, and whether it is what its plan says, in the status of the\n" +
			"LowLatencyNode with the name of the node. The agent only reads the host.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runAgent(command.Context(), flags)
		},
	}
	flags.register(command.Flags())
	return command
}

func (f *agentFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.nodeName, "node-name", os.Getenv("NODE_NAME"),
		"The name of the node. Defaults to the environment variable NODE_NAME.")
	flags.StringVar(&f.root, "root", "/host", "The folder at which the root file system of the host is mounted.")
	flags.StringVar(&f.namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"The namespace of the plans. Defaults to the environment variable POD_NAMESPACE.")
	flags.StringVar(&f.hostIP, "host-ip", os.Getenv("HOST_IP"),
		"The addresses of the node, with commas between them: the NIC that carries them is never given away. "+
			"Defaults to the environment variable HOST_IP.")
	flags.DurationVar(&f.interval, "interval", 0, "The time between two looks at the host; 0 for the agent's own default.")
	flags.BoolVar(&f.verbose, "verbose", false, "Log details, too.")
}

func (f *agentFlags) check() error {
	switch {
	case f.nodeName == "":
		return errors.New("no node is given: set --node-name or the environment variable NODE_NAME")
	case f.namespace == "":
		return errors.New("no namespace is given: set --namespace or the environment variable POD_NAMESPACE")
	case f.interval < 0:
		return fmt.Errorf("--interval %s is negative", f.interval)
	default:
		return nil
	}
}

// runAgent runs until the context ends.
func runAgent(ctx context.Context, flags *agentFlags) error {
	if err := flags.check(); err != nil {
		return err
	}
	addresses, err := parseAddresses(flags.hostIP)
	if err != nil {
		return err
	}
	setLogger(flags.verbose)
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	scheme, err := controllers.Scheme()
	if err != nil {
		return err
	}
	direct, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	worker := &agent.Agent{
		Client: direct, NodeName: flags.nodeName, Namespace: flags.namespace, Root: flags.root, Interval: flags.interval,
		HostAddresses: addresses, KeepTo: affinity.KeepTo,
	}
	return worker.Run(ctx)
}

// parseAddresses reads addresses with commas between them, as the downward API writes status.hostIPs.
func parseAddresses(text string) ([]netip.Addr, error) {
	var addresses []netip.Addr
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		address, err := netip.ParseAddr(part)
		if err != nil {
			return nil, fmt.Errorf("--host-ip holds %q, which is no IP address", part)
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}
