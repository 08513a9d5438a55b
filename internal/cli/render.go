// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/manifest"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes"
	openshift "github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/rendering"
)

const (
	// defaultNamespace is where the operator runs unless it was installed elsewhere.
	defaultNamespace = "lowlatency-operator-system"
	// openShift is the platform that is meant where nothing tells of another.
	openShift = "openshift"
	// ordinary is that of hosts on which nobody but the operator writes.
	ordinary = "kubernetes"
)

// platforms are what is known about the platforms without a cluster, by name.
func platforms() map[string]rendering.Platform {
	return map[string]rendering.Platform{openShift: openshift.Platform(), ordinary: kubernetes.Platform()}
}

type renderOptions struct {
	targets
	namespace         string
	machineConfigPool string
	platform          *usage.Choice
	format            *usage.Choice
}

func (a *app) renderCommand() *cobra.Command {
	options := &renderOptions{
		targets:  targets{installation: true},
		platform: &usage.Choice{Allowed: []string{openShift, ordinary}},
		format:   &usage.Choice{Value: "yaml", Allowed: []string{"yaml", "json", "files", "operations"}},
	}
	command := &cobra.Command{
		Use:   "render -f FILE [--root [NAME=]PATH]...",
		Short: "Print the objects that the operator would apply, or what would be written on hosts",
		Long: `Print what brings the plans to the nodes. The platform is found from the operating system and the kubelet of the
hosts or snapshots, unless --platform names it.

On OpenShift these are the objects that the operator would apply, byte for byte: MachineConfigPool, plan ConfigMap,
RuntimeClass, MachineConfig, KubeletConfig and Tuned for each shape of node. A node that is already in a machine config
pool of the profile stays there when its shape changes, which only the cluster knows; machine config pools of new nodes
are named as here.

On ordinary hosts of Kubernetes it is what has to be written on them: the arguments that the kernel's command line gets,
files with their paths, masked and enabled units, and what stands in the way. It depends on what a host has (kubelet,
container runtime, TuneD, boot loader), so that nodes are given by --root. Nothing is written. With -o operations the
same is printed for one host as lowlatency-guard takes it, which writes it with a way back.

-o files prints on both platforms what comes to the hosts, readable: arguments, files with their paths, units. On
OpenShift that is what the MachineConfig carries; the configuration of the kubelet and the profile of TuneD are merged
there by their own operators, from the KubeletConfig and the Tuned object.

Exit codes: 0 done; 1 a node has no plan and nothing is printed for it, or nothing may be written on its host;
2 wrong usage or input.`,
		Example: `  kubectl lowlatency render -f trading.yaml --root a.tar.gz --root b.tar.gz > manifests.yaml
  kubectl lowlatency render -f trading.yaml --root / --platform kubernetes
  kubectl lowlatency render -f trading.yaml --root a.tar.gz -o files
  kubectl lowlatency render -f trading.yaml --root / -o operations > operations.yaml`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.render(cmd.Context(), options) },
	}
	options.addFlags(command, a)
	command.Flags().StringVarP(&options.namespace, "namespace", "n", defaultNamespace, "`NAMESPACE` of the operator")
	command.Flags().StringVar(&options.machineConfigPool, "machine-config-pool", "",
		"`NAME` of the MachineConfigPool, when spec.pools binds to an existing one and its labels do not give the name")
	command.Flags().Var(options.platform, "platform", "what brings plans to the nodes; found from the hosts when it is not given")
	command.Flags().VarP(options.format, "output", "o", "output format")
	return command
}

func (a *app) render(ctx context.Context, options *renderOptions) error {
	wanted, nodes, err := options.load(ctx, a)
	if err != nil {
		return err
	}
	if wanted.platform, err = options.platformOf(nodes); err != nil {
		return err
	}
	all := planNodes(wanted, nodes)
	a.explainUnplanned(all)
	bundles, err := platforms()[wanted.platform].Render(rendering.Request{
		Profile: wanted.profile, Shapes: shapesOf(all), Namespace: options.namespace, Group: options.machineConfigPool, Facts: factsOf(nodes),
	})
	if err != nil {
		return err
	}
	write := map[string]func(io.Writer, []rendering.Bundle) error{
		"yaml": writeYAMLObjects, "json": writeJSONObjects, "files": writeFiles, "operations": writeOperations,
	}[options.format.Value]
	if err := write(a.Out, bundles); err != nil {
		return err
	}
	if a.explainRefusals(bundles, options.format.Value == "operations") {
		return errFindings
	}
	return unplanned(all)
}

// explainRefusals says on the standard error why nothing may be written on hosts, and whether there are such. What was not checked is
// refused only where it would be written: as operations.
func (a *app) explainRefusals(bundles []rendering.Bundle, asOperations bool) bool {
	refused := false
	for _, bundle := range bundles {
		if bundle.Host == nil || !bundle.Host.Refused && (!asOperations || len(bundle.Operations) > 0) {
			continue
		}
		refused = true
		for _, finding := range bundle.Host.Findings {
			a.complain("nothing may be written on %s: %s", strings.Join(bundle.Nodes, ", "), finding)
		}
	}
	return refused
}

// platformOf is the platform that was named, or that of the hosts: where an operating system is not known, they are taken for
// nodes of OpenShift.
func (o *renderOptions) platformOf(nodes []node) (string, error) {
	if o.platform.Value != "" {
		return o.platform.Value, nil
	}
	found := ""
	for _, n := range nodes {
		of := openShift
		if n.facts != nil {
			if isOpenShift, known := n.facts.Software.OpenShift.Get(); known && !isOpenShift {
				of = ordinary
			}
		}
		if found != "" && found != of {
			return "", errors.New("some hosts are nodes of OpenShift and others are not; name the platform with --platform, or give them apart")
		}
		found = of
	}
	return cmp.Or(found, openShift), nil
}

// factsOf are the facts of the hosts by the names of the nodes.
func factsOf(nodes []node) map[string]*host.Facts {
	facts := map[string]*host.Facts{}
	for _, n := range nodes {
		if n.facts != nil {
			facts[n.name] = n.facts
		}
	}
	return facts
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
		if err := writeHostDocument(out, bundle.Host); err != nil {
			return err
		}
	}
	return nil
}

// writeHostDocument writes what is written on hosts as a document of its own, which is no object of a cluster.
func writeHostDocument(out io.Writer, host *rendering.HostWriting) error {
	if host == nil {
		return nil
	}
	text, err := yaml.Marshal(host)
	if err != nil {
		return fmt.Errorf("printing what is written on hosts: %w", err)
	}
	_, err = fmt.Fprintf(out, "---\n# written on %s\n%s", strings.Join(host.Nodes, ", "), text)
	return err
}

// writeFiles writes what comes to the hosts, one document for each group of nodes that get the same.
func writeFiles(out io.Writer, bundles []rendering.Bundle) error {
	for i := range bundles {
		if err := writeHostDocument(out, bundles[i].Written()); err != nil {
			return err
		}
	}
	return nil
}

// writeOperations writes what is done to a host as lowlatency-guard takes it: nothing where there is no plan, or nothing may be
// written. It is that of one host, or of several on which it is the same.
func writeOperations(out io.Writer, bundles []rendering.Bundle) error {
	if len(bundles) == 0 {
		return nil
	}
	if len(bundles) != 1 || bundles[0].Host == nil {
		return errors.New("-o operations prints what is written on one host of Kubernetes: give one by --root, and not one of OpenShift")
	}
	if len(bundles[0].Operations) == 0 {
		return nil
	}
	text, err := yaml.Marshal(map[string]any{"operations": bundles[0].Operations})
	if err != nil {
		return fmt.Errorf("printing operations: %w", err)
	}
	_, err = out.Write(text)
	return err
}

// writeJSONObjects writes one List, with what is written on hosts in a field of its own.
func writeJSONObjects(out io.Writer, bundles []rendering.Bundle) error {
	items := []map[string]any{}
	list := map[string]any{"apiVersion": "v1", "kind": "List"}
	var hosts []*rendering.HostWriting
	for _, bundle := range bundles {
		for _, object := range bundle.Objects {
			items = append(items, object.Object)
		}
		if bundle.Host != nil {
			hosts = append(hosts, bundle.Host)
		}
	}
	list["items"] = items
	if len(hosts) > 0 {
		list["hosts"] = hosts
	}
	return writeJSON(out, list)
}
