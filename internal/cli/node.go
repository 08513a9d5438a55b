// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/page"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/picture"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/probe"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodereport"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/podresources"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

type nodeOptions struct {
	targets
	window    time.Duration
	jitter    string
	namespace string
	agents    string
	report    *usage.Choice
	access    clusterAccess
	format    *usage.Choice
}

func (a *app) nodeCommand() *cobra.Command {
	options := &nodeOptions{
		report: &usage.Choice{Value: askAgent, Allowed: []string{askAgent, "never"}},
		format: &usage.Choice{Value: "text", Allowed: []string{"text", "json", "yaml", "html", "svg"}, Other: parsesTemplate, OtherNames: templateNames()},
	}
	command := &cobra.Command{
		Use:   "node [NAME] [-f FILE [--root [NAME=]PATH]]",
		Short: "Draw a node: CPUs by role, NICs, hugepages, who uses them, and what its kernel says",
		Long: `Draw one node: NUMA nodes as boxes, CPUs with their roles, NICs and hugepages where they are, the containers that own
CPUs or hold NICs, and every check that did not pass beside the CPU or NIC that it names.

Without -f, the node's LowLatencyNode, its plan and the BypassNICPools come from the cluster of the kubeconfig, and
what no status holds from the agent on the node, through a port-forward: which containers own CPUs, hugepages,
interrupts, the kubelet's settings and the checks that passed. With -f, nothing is asked of a cluster: the profile of
the file is planned for a host or its snapshot and held against what its kernel says, as check does. On a live host,
the kubelet is asked who owns CPUs and NICs. LowLatencyNodes in the files are drawn as their agents report them.

-o html writes one page that needs no other file; -o svg the drawing alone.

Exit codes: 0 all conditions are True; 1 one is False, or there is no plan; 2 wrong usage or input; 3 one is Unknown
and none is False.`,
		Example: `  kubectl lowlatency node worker-1
  kubectl lowlatency node worker-1 -o html > worker-1.html
  kubectl lowlatency node -f trading.yaml --root / --window 10s
  kubectl get llnp,lln,bnp -o yaml | kubectl lowlatency node worker-1 -f - --profile trading`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete(func(ctx context.Context) ([]string, error) { return a.nodeNames(ctx, options.files, &options.access) }),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.node(cmd.Context(), strings.Join(args, ""), options)
		},
	}
	options.addFlags(command, a)
	flags := command.Flags()
	flags.DurationVar(&options.window, "window", 0, "read a live host twice, so long apart, such as 10s")
	flags.StringVar(&options.jitter, "jitter", "", "`FILE` that probe jitter -o json wrote on the node, to be shown too")
	flags.StringVarP(&options.namespace, "namespace", "n", defaultNamespace, "`NAMESPACE` of the operator in the cluster, where the plans are")
	flags.StringVar(&options.agents, "agent-namespace", heartbeat.DefaultNamespace, "`NAMESPACE` of the agents in the cluster, where their pods and Leases are")
	flags.Var(options.report, "report", "whether the agent of the node is asked for its full report, through a port-forward")
	options.access.addFlags(flags)
	flags.VarP(options.format, "output", "o", "output format")
	return command
}

func (a *app) node(ctx context.Context, name string, options *nodeOptions) error {
	measured, err := a.readJitter(options.jitter)
	if err != nil {
		return err
	}
	drawn, err := a.nodeView(ctx, name, options)
	if err != nil {
		return err
	}
	drawn.Jitter = measured
	if err := a.printNode(options.format.Value, drawn); err != nil {
		return err
	}
	return verdict(drawn.Status())
}

// printNode prints a node in one of the formats for programs or for people.
func (a *app) printNode(format string, drawn *view.Node) error {
	switch format {
	case "svg":
		_, err := io.WriteString(a.Out, picture.SVG(drawn))
		return err
	case "html":
		written, err := page.HTML(drawn, time.Now())
		if err != nil {
			return err
		}
		_, err = io.WriteString(a.Out, written)
		return err
	default:
		return a.print(format, drawn, func() string { return text.Node(drawn, time.Now(), a.palette(), a.width()) })
	}
}

// readJitter reads the result of a measurement, or nothing when there is no file.
func (a *app) readJitter(file string) (*jitter.Result, error) {
	if file == "" {
		return nil, nil
	}
	data, err := readAll(a.In, file)
	if err != nil {
		return nil, err
	}
	return probe.ParseResult(file, data)
}

func (a *app) nodeView(ctx context.Context, name string, options *nodeOptions) (*view.Node, error) {
	if options.window < 0 {
		return nil, fmt.Errorf("--window %s is negative", options.window)
	}
	if len(options.files) == 0 {
		if len(options.roots) > 0 {
			return nil, errors.New("--root needs -f FILE with the LowLatencyNodeProfile that the host is held against")
		}
		return nodeOfCluster(ctx, name, options)
	}
	all, err := a.readManifests(ctx, options.files)
	if err != nil {
		return nil, err
	}
	wanted, err := all.wanted(options.profile)
	if err != nil {
		return nil, err
	}
	if len(options.roots) == 0 && len(all.nodes) > 0 {
		return reportedOffline(name, wanted, all.nodes)
	}
	return drawHost(ctx, name, wanted, options)
}

// reportedOffline draws one of the LowLatencyNodes of files. Its plan is made anew, and of use only when it is the one
// that the agent was told.
func reportedOffline(name string, wanted wanted, nodes []*v1alpha1.LowLatencyNode) (*view.Node, error) {
	object, err := chooseNode(name, nodes, "the files hold")
	if err != nil {
		return nil, err
	}
	of, err := inventoryNode(object)
	if err != nil {
		return nil, err
	}
	planned := wanted.plan(of)
	in := view.NodeInput{
		Name: of.name, Profile: wanted.profile.Name, Topology: of.topology, Plan: planned.Plan, PlanFindings: planned.Findings,
		Pools: poolsOfNode(object, wanted.pools),
	}
	drawn := view.OfStatus(in, object)
	if planned.Plan != nil && planned.Hash != object.Spec.PlanHash {
		drawn.Problems = append(drawn.Problems, fmt.Sprintf("the files make plan %s, the operator gave the node %s: the roles shown are those of the files",
			planned.Hash, orNone(object.Spec.PlanHash)))
	}
	drawn.Problems = append(drawn.Problems, statusProblems(object)...)
	return &drawn, nil
}

// orNone names a hash, or that there is none.
func orNone(hash string) string {
	if hash == "" {
		return "none"
	}
	return hash
}

// chooseNode returns the node with the name, or the only one when the name is empty.
func chooseNode(name string, nodes []*v1alpha1.LowLatencyNode, where string) (*v1alpha1.LowLatencyNode, error) {
	names := make([]string, 0, len(nodes))
	for _, node := range nodes {
		if node.Name == name || name == "" && len(nodes) == 1 {
			return node, nil
		}
		names = append(names, node.Name)
	}
	if name == "" {
		return nil, fmt.Errorf("name one of the nodes that %s: %s", where, abridged(names))
	}
	return nil, fmt.Errorf("%s no LowLatencyNode %q, but %s", where, name, abridged(names))
}

// abridged lists names, but not thousands of them.
func abridged(names []string) string {
	const enough = 20
	if len(names) <= enough {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:enough], ", "), len(names)-enough)
}

// statusProblems say why what an agent reports is not to be relied on.
func statusProblems(object *v1alpha1.LowLatencyNode) []string {
	var problems []string
	if object.Status.ObservedGeneration < object.Generation {
		problems = append(problems, fmt.Sprintf("the agent has not yet seen generation %d of the LowLatencyNode: what it reports is older", object.Generation))
	}
	if verified := object.Status.VerifiedPlanHash; verified != "" && verified != object.Spec.PlanHash {
		problems = append(problems, fmt.Sprintf("the findings are those about plan %s; plan %s is not yet verified", verified, orNone(object.Spec.PlanHash)))
	}
	if object.Status.Checks == nil {
		problems = append(problems, "the agent has verified nothing yet")
	}
	return problems
}

// drawHost plans a host and holds it against its plan.
func drawHost(ctx context.Context, name string, wanted wanted, options *nodeOptions) (*view.Node, error) {
	if len(options.roots) > 1 {
		return nil, errors.New("node draws one host: give --root once")
	}
	root := strings.Join(options.roots, "")
	if root == "" {
		root = "/"
	}
	addresses, err := parseAddresses(options.hostIPs)
	if err != nil {
		return nil, err
	}
	read, err := readNode(ctx, root, reading{request: poolRequest(wanted.pools), addresses: addresses, more: wanted.checked})
	if err != nil {
		return nil, err
	}
	if name != "" {
		read.name = name
	}
	planned := planNodes(wanted, []node{read})
	before, err := secondReading(ctx, options.window, planned)
	if err != nil {
		return nil, err
	}
	return hostView(ctx, wanted, planned[0], before[0], options.window), nil
}

// hostView draws a host with who uses it, as far as its kubelet tells.
func hostView(ctx context.Context, wanted wanted, on planned, before *host.Facts, window time.Duration) *view.Node {
	_, path := splitRoot(on.root)
	containers := podresources.List(ctx, filepath.Join(path, podresources.Socket))
	// Where the host is mounted is of no interest to who reads about it.
	containers.Source = podresources.Socket
	in := view.NodeInput{
		Name: on.name, Profile: wanted.profile.Name, Topology: on.topology, Plan: on.Plan, PlanFindings: on.Findings,
	}
	owners := nodereport.OwnersOf(containers, on.facts.Kubelet.CPUManagerState, on.topology)
	in.Containers = owners.Containers
	holders := host.Known([]allocation.Holder{}, containers.Source)
	for _, pool := range wanted.pools {
		evaluated := evaluatePool(pool, wanted.pools, []node{on.node})
		found := heldDevices(pool, wanted.pools, on.node, containers)
		holders.Value = append(holders.Value, found...)
		in.Pools = append(in.Pools, evaluated.WithHolders(found, containers.Known))
	}
	if !containers.Known {
		holders = host.Absent[[]allocation.Holder](containers.Source, containers.Reason)
	}
	var report *verify.Report
	if on.Plan != nil {
		evaluated := verify.Evaluate(verify.Input{Plan: on.Plan, Facts: on.facts, Before: before, Holders: holdersOf(wanted.pools, &holders)})
		report = &evaluated
		in.Truth = new(verify.TruthOf(on.Plan, on.facts))
	}
	drawn := view.OfHost(in, report)
	if window > 0 {
		drawn.WindowSeconds = new(window.Seconds())
	}
	if owners.ContainersProblem != "" {
		drawn.Problems = append(drawn.Problems, owners.ContainersProblem)
	}
	return &drawn
}

// holdersOf leaves the holders out where no pool asks for them.
func holdersOf(pools []*v1alpha1.BypassNICPool, holders *host.Fact[[]allocation.Holder]) *host.Fact[[]allocation.Holder] {
	if len(pools) == 0 {
		return nil
	}
	return holders
}

// heldDevices are the containers that hold NICs of a pool on a host.
func heldDevices(pool *v1alpha1.BypassNICPool, all []*v1alpha1.BypassNICPool, on node, containers host.Fact[[]allocation.Container]) []allocation.Holder {
	in := poolInput(pool, all, on, []string{on.name})
	return bypass.Holders(in.Pool, bypass.Devices(in), containers.Value, on.topology)
}

// poolsOfNode are the pools that select a node, with what its agent reports about their NICs.
func poolsOfNode(object *v1alpha1.LowLatencyNode, pools []*v1alpha1.BypassNICPool) []view.Pool {
	var views []view.Pool
	for _, pool := range pools {
		if slices.Contains(object.Spec.BypassPools, pool.Name) {
			of := view.OfPool(pool.Name, &pool.Spec)
			of.Nodes = append(of.Nodes, reportedNode(object, pool))
			views = append(views, of)
		}
	}
	return views
}
