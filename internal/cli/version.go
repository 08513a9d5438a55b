// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
	"github.com/lowlatency-dev/lowlatency-operator/internal/version"
)

// versionOptions are the flags of version.
type versionOptions struct {
	access            clusterAccess
	namespace, agents string
	clientOnly        bool
}

func (a *app) versionCommand() *cobra.Command {
	var options versionOptions
	format := &usage.Choice{Value: "text", Allowed: []string{"text", "json"}}
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of the operator in the cluster",
		Long: `Print the version of this program, and what of the operator runs in the cluster of the kubeconfig: each pod of the
operator is asked for its own version, as kubectl exec would, and pods of the operator and of its agents are counted
by the image that their node pulled. Several lines for one of them mean that an upgrade is under way, or stuck.

Without a cluster, only the version of this program is printed, and the standard error says why. A cluster that is
configured and does not answer is an error.`,
		Example: "  kubectl lowlatency version\n  kubectl lowlatency version --client",
		Args:    usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.printVersions(cmd.Context(), &options, format.Value)
		},
	}
	flags := command.Flags()
	flags.BoolVar(&options.clientOnly, "client", false, "print the version of this program only, and ask no cluster")
	flags.StringVarP(&options.namespace, "namespace", "n", defaultNamespace, "`NAMESPACE` of the operator in the cluster")
	flags.StringVar(&options.agents, "agent-namespace", heartbeat.DefaultNamespace, "`NAMESPACE` of the agents in the cluster")
	flags.VarP(format, "output", "o", "output format")
	options.access.addFlags(flags)
	return command
}

func (a *app) printVersions(ctx context.Context, options *versionOptions, format string) error {
	found := versions{Client: version.Of(a.release).String()}
	var failure error
	if !options.clientOnly {
		found.Cluster, failure = versionsOfCluster(ctx, options)
	}
	// What this program is does not depend on a cluster.
	if err := writeVersions(a.Out, found, format); err != nil {
		return err
	}
	if errors.Is(failure, errNoCluster) {
		a.complain("no cluster was asked: %s", errNoCluster)
		return nil
	}
	return failure
}

func writeVersions(out io.Writer, found versions, format string) error {
	if format == "json" {
		return writeJSON(out, found)
	}
	_, err := io.WriteString(out, found.text())
	if err != nil {
		return fmt.Errorf("writing the versions: %w", err)
	}
	return nil
}
