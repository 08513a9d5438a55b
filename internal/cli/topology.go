// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/page"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/picture"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
)

// newFormat is the flag -o of commands whose text is for people.
func newFormat() *usage.Choice {
	return &usage.Choice{Value: "text", Allowed: []string{"text", "json", "yaml"}, Other: parsesTemplate, OtherNames: templateNames()}
}

func (a *app) topologyCommand() *cobra.Command {
	var root string
	format := newFormat()
	format.Allowed = append(format.Allowed, "svg", "html")
	command := &cobra.Command{
		Use:     "topology",
		Short:   "Draw the CPUs, caches, NUMA nodes, memory and NICs of a host",
		Example: "  kubectl lowlatency topology\n  kubectl lowlatency topology --root node.tar.gz -o json\n  kubectl lowlatency topology --root node.tar.gz -o svg > node.svg",
		Args:    usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.topology(cmd.Context(), root, format.Value)
		},
	}
	command.Flags().StringVar(&root, "root", "/", rootHelp)
	command.Flags().VarP(format, "output", "o", "output format")
	return command
}

func (a *app) topology(ctx context.Context, root, format string) error {
	node, err := readNode(ctx, root, reading{hardware: true})
	if err != nil {
		return err
	}
	drawn := view.OfHardware(node.name, node.topology)
	switch format {
	case "svg":
		_, err := io.WriteString(a.Out, picture.SVG(&drawn))
		return err
	case "html":
		_, err := io.WriteString(a.Out, page.Hardware(&drawn))
		return err
	}
	return a.print(format, view.OfTopology(node.name, node.topology), func() string {
		return text.Topology(node.name, node.topology, a.palette(), a.width())
	})
}
