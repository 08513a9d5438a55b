// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	rendering "github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
)

const (
	// defaultNamespace is where the operator runs unless it was installed elsewhere.
	defaultNamespace = "lowlatency-operator-system"
	// poolLabelPrefix begins the label that names a pool of the machine-config operator.
	poolLabelPrefix = "pools.operator.machineconfiguration.openshift.io/"
)

type renderOptions struct {
	targets
	namespace string
	pool      string
	format    *choice
}

// bundle is what is applied for one pool.
type bundle struct {
	pool    string
	nodes   []string
	objects []*unstructured.Unstructured
}

func (a *app) renderCommand() *cobra.Command {
	options := &renderOptions{format: &choice{value: "yaml", allowed: []string{"yaml", "json"}}}
	command := &cobra.Command{
		Use:   "render -f FILE [--root [NAME=]PATH]...",
		Short: "Print the objects that the operator would apply",
		Long: `Print the objects that the operator would apply for the nodes: MachineConfigPool, plan ConfigMap,
RuntimeClass, MachineConfig, KubeletConfig and Tuned for each shape of node, byte for byte. A node that is
already in a pool of the profile stays there when its shape changes, which only the cluster knows; pools of
new nodes are named as here.

Exit codes: 0 done; 1 a node has no plan, nothing is printed for it; 2 wrong usage or input.`,
		Example: "  kubectl lowlatency render -f trading.yaml --root a.tar.gz --root b.tar.gz > manifests.yaml",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.render(cmd.Context(), options) },
	}
	options.addFlags(command)
	command.Flags().StringVar(&options.namespace, "namespace", defaultNamespace, "`NAMESPACE` of the operator")
	command.Flags().StringVar(&options.pool, "pool", "", "`NAME` of the MachineConfigPool, when spec.pools binds to an existing one and its labels do not tell the name")
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
	bundles, err := bundlesFor(wanted.profile, all, options)
	if err != nil {
		return err
	}
	write := writeYAMLObjects
	if options.format.value == "json" {
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
		if node.plan != nil {
			continue
		}
		for _, finding := range node.findings {
			if finding.Severity != v1alpha1.SeverityCritical {
				continue
			}
			a.complain("no plan: %s", finding.Sentence(node.name))
		}
	}
}

// bundlesFor renders every pool, ascending by name.
func bundlesFor(profile *v1alpha1.LowLatencyNodeProfile, all []planned, options *renderOptions) ([]bundle, error) {
	shapes := shapesOf(all)
	pools, err := poolsFor(profile, shapes, options.pool)
	if err != nil {
		return nil, err
	}
	bundles := make([]bundle, 0, len(shapes))
	for _, shape := range shapes {
		pool := pools[shape.Hash]
		objects, err := rendering.Objects(rendering.Input{Plan: shape.Plan, Pool: pool, Namespace: options.namespace})
		if err != nil {
			return nil, err
		}
		bundles = append(bundles, bundle{pool: pool.Name, nodes: shape.Nodes, objects: objects})
	}
	slices.SortFunc(bundles, func(a, b bundle) int { return cmp.Compare(a.pool, b.pool) })
	dropRepeated(bundles)
	return bundles, nil
}

// dropRepeated leaves the objects that all pools of a profile share, such as the RuntimeClass, in the
// first bundle only.
func dropRepeated(bundles []bundle) {
	var seen []*unstructured.Unstructured
	for i := range bundles {
		bundles[i].objects = slices.DeleteFunc(bundles[i].objects, func(object *unstructured.Unstructured) bool {
			return slices.ContainsFunc(seen, func(other *unstructured.Unstructured) bool {
				return equality.Semantic.DeepEqual(object, other)
			})
		})
		seen = append(seen, bundles[i].objects...)
	}
}

// shapesOf groups nodes by equal plans, ascending by hash. Nodes without a plan are in none.
func shapesOf(all []planned) []fleet.Shape {
	byHash := map[string]*fleet.Shape{}
	for _, node := range all {
		if node.plan == nil {
			continue
		}
		hash, signature := node.plan.Hash(), node.topology.Signature()
		shape, found := byHash[hash]
		if !found {
			shape = &fleet.Shape{Hash: hash, Plan: node.plan, Signature: signature}
			byHash[hash] = shape
		}
		shape.Signature = min(shape.Signature, signature)
		shape.Nodes = append(shape.Nodes, node.name)
	}
	shapes := make([]fleet.Shape, 0, len(byHash))
	for _, hash := range slices.Sorted(maps.Keys(byHash)) {
		slices.Sort(byHash[hash].Nodes)
		shapes = append(shapes, *byHash[hash])
	}
	return shapes
}

// poolsFor chooses the pool of each shape, by hash, as the operator does for nodes that are in none yet.
func poolsFor(profile *v1alpha1.LowLatencyNodeProfile, shapes []fleet.Shape, name string) (map[string]rendering.Pool, error) {
	pools := map[string]rendering.Pool{}
	if profile.Spec.Pools.Management != v1alpha1.PoolsExisting {
		names := rendering.AssignPools(profile.Name, nil, shapes, nil)
		for _, shape := range shapes {
			pools[shape.Hash] = rendering.Pool{
				Name: names[shape.Hash], Management: v1alpha1.PoolsManaged,
				MaximumUnavailableNodes: profile.Spec.Pools.MaximumUnavailableNodes,
			}
		}
		return pools, nil
	}
	if len(shapes) > 1 {
		return nil, fmt.Errorf("spec.pools.management Existing binds to one pool, which can carry one plan, but the nodes have %d: %s; use Managed pools, or a profile for each",
			len(shapes), describeShapes(shapes))
	}
	pool, err := existingPool(profile.Spec.Pools.Existing, name)
	if err != nil {
		return nil, err
	}
	for _, shape := range shapes {
		pools[shape.Hash] = pool
	}
	return pools, nil
}

func describeShapes(shapes []fleet.Shape) string {
	texts := make([]string, 0, len(shapes))
	for _, shape := range shapes {
		texts = append(texts, shape.Hash+" ("+strings.Join(shape.Nodes, ", ")+")")
	}
	return strings.Join(texts, ", ")
}

// existingPool is a pool that somebody else owns. Its name follows from the labels by which pools are
// known: the one that the machine-config operator puts on its pools, or the role.
func existingPool(existing *v1alpha1.ExistingPool, name string) (rendering.Pool, error) {
	for _, key := range slices.Sorted(maps.Keys(existing.MachineConfigPoolSelector)) {
		if pool, found := strings.CutPrefix(key, poolLabelPrefix); found && name == "" {
			name = pool
		}
	}
	for _, labels := range []v1alpha1.Labels{existing.MachineConfigPoolSelector, existing.MachineConfigLabels} {
		if role := labels[rendering.LabelMachineConfigRole]; name == "" {
			name = string(role)
		}
	}
	if name == "" {
		return rendering.Pool{}, errors.New("spec.pools.existing does not tell the name of the MachineConfigPool; give it with --pool")
	}
	return rendering.Pool{
		Name: name, Management: v1alpha1.PoolsExisting,
		PoolSelector:        plainLabels(existing.MachineConfigPoolSelector),
		MachineConfigLabels: plainLabels(existing.MachineConfigLabels),
	}, nil
}

func plainLabels(labels v1alpha1.Labels) map[string]string {
	plain := make(map[string]string, len(labels))
	for key, value := range labels {
		plain[key] = string(value)
	}
	return plain
}

// writeYAMLObjects writes one document for each object; a comment says which nodes a pool is for.
func writeYAMLObjects(out io.Writer, bundles []bundle) error {
	for _, bundle := range bundles {
		comment := fmt.Sprintf("# pool %s: %s\n", bundle.pool, strings.Join(bundle.nodes, ", "))
		for _, object := range bundle.objects {
			data, err := yaml.Marshal(object.Object)
			if err != nil {
				return fmt.Errorf("writing %s %s: %w", object.GetKind(), object.GetName(), err)
			}
			if _, err := fmt.Fprintf(out, "---\n%s%s", comment, data); err != nil {
				return err
			}
			comment = ""
		}
	}
	return nil
}

// writeJSONObjects writes one List.
func writeJSONObjects(out io.Writer, bundles []bundle) error {
	items := []map[string]any{}
	for _, bundle := range bundles {
		for _, object := range bundle.objects {
			items = append(items, object.Object)
		}
	}
	return writeJSON(out, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}
