// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/manifest"
	openshift "github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/rendering"
)

const (
	// defaultNamespace is where the operator runs unless it was installed elsewhere.
	defaultNamespace = "lowlatency-operator-system"
	// openShift is the platform that is meant as long as there is no other.
	openShift = "OpenShift"
)

// platforms are what is known about the platforms without a cluster, by name.
func platforms() map[string]rendering.Platform {
	return map[string]rendering.Platform{openShift: openshift.Platform()}
}

type renderOptions struct {
	targets
	namespace         string
	machineConfigPool string
	format            *usage.Choice
}

func (a *app) renderCommand() *cobra.Command {
	options := &renderOptions{targets: targets{hardware: true}, format: &usage.Choice{Value: "yaml", Allowed: []string{"yaml", "json"}}}
	command := &cobra.Command{
		Use:   "render -f FILE [--root [NAME=]PATH]...",
		Short: "Print the objects that the operator would apply",
		Long: `Print the objects that the operator would apply for the nodes: MachineConfigPool, plan ConfigMap,
RuntimeClass, MachineConfig, KubeletConfig and Tuned for each shape of node, byte for byte. A node that is
already in a machine config pool of the profile stays there when its shape changes, which only the cluster knows;
machine config pools of new nodes are named as here.

Exit codes: 0 done; 1 a node has no plan, nothing is printed for it; 2 wrong usage or input.`,
		Example: "  kubectl lowlatency render -f trading.yaml --root a.tar.gz --root b.tar.gz > manifests.yaml",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.render(cmd.Context(), options) },
	}
	options.addFlags(command, a)
	command.Flags().StringVarP(&options.namespace, "namespace", "n", defaultNamespace, "`NAMESPACE` of the operator")
	command.Flags().StringVar(&options.machineConfigPool, "machine-config-pool", "",
		"`NAME` of the MachineConfigPool, when spec.pools binds to an existing one and its labels do not give the name")
	command.Flags().VarP(options.format, "output", "o", "output format")
	return command
}

func (a *app) render(ctx context.Context, options *renderOptions) error {
	wanted, nodes, err := options.load(ctx, a)
	if err != nil {
		return err
	}
	all := planNodes(wanted, nodes)
	a.explainUnplanned(all)
	bundles, err := platforms()[openShift].Render(rendering.Request{
		Profile: wanted.profile, Shapes: shapesOf(all), Namespace: options.namespace, Group: options.machineConfigPool,
	})
	if err != nil {
		return err
	}
	write := writeYAMLObjects
	if options.format.Value == "json" {
		write = writeJSONObjects
	}
	if err := write(a.Out, bundles); err != nil {
		return err
	}
	return unplanned(all)
}

// explainUnplanned says on the standard error why nodes have no plan.
func (a *app) explainUnplanned(all []planned) {
	for _, node := range all {
		if node.Plan != nil {
			continue
		}
		for _, finding := range node.Findings {
			if finding.Severity != v1alpha1.SeverityCritical {
				continue
			}
			a.complain("no plan: %s", finding.Sentence(node.name))
		}
	}
}

// shapesOf groups nodes by equal plans. Nodes without a plan are in none.
func shapesOf(all []planned) []fleet.Shape {
	var shapes fleet.Shapes
	for _, node := range slices.SortedFunc(slices.Values(all), func(a, b planned) int { return cmp.Compare(a.name, b.name) }) {
		shapes.Add(node.name, node.Planned)
	}
	return shapes.List()
}

// writeYAMLObjects writes one document for each object; a comment says which nodes a group is for.
func writeYAMLObjects(out io.Writer, bundles []rendering.Bundle) error {
	for _, bundle := range bundles {
		comment := fmt.Sprintf("# %s %s: %s\n", bundle.GroupType, bundle.Group, strings.Join(bundle.Nodes, ", "))
		documents, err := manifest.YAML(bundle.Objects)
		if err != nil {
			return err
		}
		if _, err := out.Write(bytes.Replace(documents, []byte("---\n"), []byte("---\n"+comment), 1)); err != nil {
			return err
		}
	}
	return nil
}

// writeJSONObjects writes one List.
func writeJSONObjects(out io.Writer, bundles []rendering.Bundle) error {
	items := []map[string]any{}
	for _, bundle := range bundles {
		for _, object := range bundle.Objects {
			items = append(items, object.Object)
		}
	}
	return writeJSON(out, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}
