// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package process is what the programs of this project share that run on nodes: the agent's command, the logger, and how a
// process takes little memory.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/affinity"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/agent"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodeclient"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/repair"
)

// agentFlags say where the agent runs and what it reads.
type agentFlags struct {
	NodeFlags

	namespace string
	heartbeat string
	interval  time.Duration
	full      time.Duration
	listen    string
	repair    bool
	verbose   bool
}

// NewAgentCommand returns the command that runs the agent of a node.
func NewAgentCommand() *cobra.Command {
	flags := &agentFlags{}
	command := &cobra.Command{
		Use:   "agent",
		Short: "Report what the kernel of this node is, and whether it is what its plan says",
		Long: "Report what the kernel of this node is, and whether it is what its plan says, in the status of the\n" +
			"LowLatencyNode with the name of the node. The agent only reads the host, unless --repair lets it write back what\n" +
			"has drifted.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runAgent(command.Context(), flags)
		},
	}
	flags.register(command.Flags())
	return command
}

func (f *agentFlags) register(flags *pflag.FlagSet) {
	f.Register(flags)
	flags.StringVar(&f.namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"The namespace of the plans. Defaults to the environment variable POD_NAMESPACE.")
	flags.StringVar(&f.heartbeat, "heartbeat-namespace", heartbeat.DefaultNamespace,
		"The namespace of the Leases that the operator makes for the nodes, its --agent-namespace. "+
			"The agent renews that of its node after each look at the host.")
	f.RegisterAddresses(flags)
	flags.DurationVar(&f.interval, "interval", 0, "The time between two looks at the counters of the host; 0 for the agent's own default.")
	flags.DurationVar(&f.full, "full-interval", 0, "The time between two looks at the whole host; 0 for the agent's own default.")
	flags.StringVar(&f.listen, "listen", "",
		"Where the full report is served as JSON: unix:PATH, or an address of the loopback interface such as 127.0.0.1:9470. Empty for nowhere.")
	flags.BoolVar(&f.repair, "repair", false,
		"Write back what has drifted, where the profile has verification.repair Runtime. What can be repaired must then be mounted writable; "+
			"without the flag, an agent that finds anything of the host mounted writable does not run.")
	flags.BoolVar(&f.verbose, "verbose", false, "Log details, too.")
}

func (f *agentFlags) check() error {
	if err := f.Check(); err != nil {
		return err
	}
	switch {
	case f.namespace == "":
		return errors.New("no namespace is given: set --namespace or the environment variable POD_NAMESPACE")
	case f.interval < 0:
		return fmt.Errorf("--interval %s is negative", f.interval)
	case f.full < 0:
		return fmt.Errorf("--full-interval %s is negative", f.full)
	default:
		return nil
	}
}

// runAgent runs until the context ends.
func runAgent(ctx context.Context, flags *agentFlags) error {
	if err := flags.check(); err != nil {
		return err
	}
	addresses, err := flags.Addresses()
	if err != nil {
		return err
	}
	if err := refuseHost(flags.Root, flags.repair); err != nil {
		return err
	}
	SetLogger(flags.verbose)
	collectOften()
	config, err := nodeclient.Config()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	direct, err := nodeclient.New(config)
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	worker := &agent.Agent{
		Client: direct, NodeName: flags.NodeName, Namespace: flags.namespace, Root: flags.Root,
		Interval: flags.interval, FullInterval: flags.full,
		HostAddresses: addresses, KeepTo: affinity.KeepTo, Reports: &agent.ReportServer{Snapshot: snapshotOf(flags.Root)},
		Settled: forgetStart, Guard: guard.ReadReport,
		Heartbeat: agent.Heartbeat{Namespace: flags.heartbeat, Holder: holder(flags.NodeName)},
	}
	if flags.repair {
		worker.Repairer = repair.Files{Root: flags.Root}
	}
	return superviseAgent(ctx, worker, flags.listen)
}

// snapshotOf takes snapshots of the host below a folder, of what the agent sees of it.
func snapshotOf(root string) func(context.Context, io.Writer, host.Disclosure) error {
	return func(ctx context.Context, to io.Writer, disclosure host.Disclosure) error {
		opened, err := host.Open(root)
		if err != nil {
			return err
		}
		_, err = opened.SnapshotWith(ctx, to, disclosure)
		return errors.Join(err, opened.Close())
	}
}

// holder is how the agent of a node calls itself in its Lease: by the name of its pod, which is the name of the host that
// a container sees, and that of the node.
func holder(node string) string {
	pod, err := os.Hostname()
	if err != nil {
		return node
	}
	return pod + "/" + node
}

// superviseAgent runs the agent, what tells it of changes, and what serves its report.
func superviseAgent(ctx context.Context, worker *agent.Agent, listen string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	announcements, err := agent.Watch(ctx, worker.Root)
	if err != nil {
		log.FromContext(ctx).Info("Some changes of the host are seen at the next pass only", "reason", err.Error())
	}
	worker.Announcements = announcements
	served := make(chan error, 1)
	if listen != "" {
		listener, err := agent.Listen(ctx, listen)
		if err != nil {
			return err
		}
		go func() {
			served <- worker.Reports.Serve(ctx, listener)
			stop()
		}()
	} else {
		served <- nil
	}
	watched := make(chan error, 1)
	go func() {
		watched <- watchMounts(ctx, worker.Root, mountsInterval)
		stop()
	}()
	err = worker.Run(ctx)
	stop()
	return errors.Join(err, <-served, <-watched)
}
