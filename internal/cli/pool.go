// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

type poolOptions struct {
	files   []string
	roots   []string
	hostIPs []string
	access  clusterAccess
	format  *usage.Choice
	// acceleration tells to ask the containers for the counters of their stacks.
	acceleration bool
}

func (a *app) poolCommand() *cobra.Command {
	options := &poolOptions{format: newFormat()}
	command := &cobra.Command{
		Use:   "pool [NAME] [-f FILE [--root [NAME=]PATH]...]",
		Short: "Show the NICs of BypassNICPools: health, versions, users, and what would fit next",
		Long: `Show the NICs that BypassNICPools select, whether each can be handed out and why not, which versions of the
stack were found, and how many units are free on each NUMA node.

Without -f, the pools and what the agents report come from the cluster of the kubeconfig, with the containers that
hold each NIC. With -f, nothing is asked of a cluster: the pools of the files are evaluated on hosts or their
snapshots, by the same functions as on the nodes, and what a container with each NIC gets is shown.

With --acceleration, onload_stackdump is run in each container that holds a NIC of a pool of Onload, as by kubectl
exec, and its counters show whether the program receives at user level: Onload fails open, to kernel sockets. This
takes the right to create pods/exec, and for some milliseconds the CPUs of the container.

Exit codes: 0 every NIC is healthy; 1 one is not, there is none, or a program is not accelerated; 2 wrong usage or
input; 3 --acceleration found no container to ask, or could not ask one.`,
		Example: `  kubectl lowlatency pool x2
  kubectl lowlatency pool x2 --acceleration
  kubectl lowlatency pool -f pool.yaml --root /
  kubectl lowlatency pool -f pool.yaml --root a.tar.gz --root b=snapshots/b.tar.gz -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete(func(ctx context.Context) ([]string, error) { return a.poolNames(ctx, options.files, &options.access) }),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.pool(cmd.Context(), strings.Join(args, ""), options)
		},
	}
	flags := command.Flags()
	flags.StringArrayVarP(&options.files, "filename", "f", nil, "`FILE` or folder with BypassNICPools; - for the standard input; repeatable")
	flags.StringArrayVar(&options.roots, "root", nil, rootHelp+"; repeatable; / with -f and without --root")
	flags.StringArrayVar(&options.hostIPs, "host-ip", nil, hostIPHelp+"; without it, no NIC with an interface is known to be free")
	flags.BoolVar(&options.acceleration, "acceleration", false, "read in each container whether its program receives at user level; not with -f")
	options.access.addFlags(flags)
	flags.VarP(options.format, "output", "o", "output format")
	return command
}

func (a *app) pool(ctx context.Context, name string, options *poolOptions) error {
	views, err := a.poolViews(ctx, name, options)
	if err != nil {
		return err
	}
	err = a.print(options.format.Value, views, func() string { return text.Pools(views, a.palette(), a.width()) })
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(views, func(pool view.Pool) bool { return !pool.IsHealthy() || pool.IsUnaccelerated() }):
		return errFindings
	case options.acceleration && !slices.ContainsFunc(views, view.Pool.HasUsers):
		a.complain("no container holds a NIC of these pools: --acceleration has nothing to ask")
		return errUnknown
	case slices.ContainsFunc(views, view.Pool.HasUnknownAcceleration):
		return errUnknown
	}
	return nil
}

func (a *app) poolViews(ctx context.Context, name string, options *poolOptions) ([]view.Pool, error) {
	if len(options.files) == 0 {
		if len(options.roots) > 0 {
			return nil, errors.New("--root needs -f FILE with the BypassNICPool that is to be evaluated on the host")
		}
		views, err := poolsOfCluster(ctx, name, &options.access)
		if err != nil || !options.acceleration {
			return views, err
		}
		return withAcceleration(ctx, views, &options.access)
	}
	if options.acceleration {
		return nil, errors.New("--acceleration asks containers of a cluster; give the name of the pool in place of -f FILE")
	}
	all, err := a.readManifests(ctx, options.files)
	if err != nil {
		return nil, err
	}
	pools := all.sortedPools()
	chosen, err := choosePools(pools, name)
	if err != nil {
		return nil, err
	}
	hosts, err := readPoolHosts(ctx, options, pools)
	if err != nil {
		return nil, err
	}
	views := make([]view.Pool, 0, len(chosen))
	for _, pool := range chosen {
		views = append(views, evaluatePool(pool, pools, hosts))
	}
	return views, nil
}

// choosePools returns the pool with the name, or all pools when the name is empty.
func choosePools(pools []*v1alpha1.BypassNICPool, name string) ([]*v1alpha1.BypassNICPool, error) {
	if len(pools) == 0 {
		return nil, errors.New("the files hold no BypassNICPool")
	}
	if name == "" {
		return pools, nil
	}
	names := make([]string, 0, len(pools))
	for _, pool := range pools {
		if pool.Name == name {
			return []*v1alpha1.BypassNICPool{pool}, nil
		}
		names = append(names, pool.Name)
	}
	return nil, fmt.Errorf("the files hold no BypassNICPool %q, but %s", name, strings.Join(names, ", "))
}

// readPoolHosts reads the hosts with the user files that the pools ask for.
func readPoolHosts(ctx context.Context, options *poolOptions, pools []*v1alpha1.BypassNICPool) ([]node, error) {
	asked := reading{nics: true, request: poolRequest(pools)}
	addresses, err := parseAddresses(options.hostIPs)
	if err != nil {
		return nil, err
	}
	asked.addresses = addresses
	if len(options.roots) == 0 {
		options.roots = []string{"/"}
	}
	return readNodes(ctx, options.roots, asked)
}

// poolRequest asks for the user files of pools.
func poolRequest(pools []*v1alpha1.BypassNICPool) host.Request {
	var request host.Request
	for _, pool := range pools {
		request.UserSpaces = append(request.UserSpaces, bypass.UserSpaceFolders(&pool.Spec)...)
	}
	slices.Sort(request.UserSpaces)
	request.UserSpaces = slices.Compact(request.UserSpaces)
	return request
}

// poolInput is what a pool is evaluated on, when all pools select all nodes with the names.
func poolInput(pool *v1alpha1.BypassNICPool, all []*v1alpha1.BypassNICPool, on node, names []string) bypass.Input {
	content := fleet.PoolContent(pool, all, nil, func(*v1alpha1.BypassNICPool) []string { return names })
	return bypass.Input{Pool: content, Node: on.name, HostAddresses: on.addresses, Facts: on.facts}
}

// evaluatePool says what a pool hands out on the hosts, when all pools select all of them.
func evaluatePool(pool *v1alpha1.BypassNICPool, all []*v1alpha1.BypassNICPool, hosts []node) view.Pool {
	names := make([]string, 0, len(hosts))
	for _, host := range hosts {
		names = append(names, host.name)
	}
	evaluated := view.OfPool(pool.Name, &pool.Spec)
	for _, host := range hosts {
		in := poolInput(pool, all, host, names)
		on := view.OfDevices(host.name, bypass.Devices(in), func(device bypass.Device) (bypass.Edits, error) {
			return bypass.ContainerEdits(in, []bypass.Device{device})
		})
		evaluated.Nodes = append(evaluated.Nodes, on.WithHardware(host.facts.NICs))
	}
	return evaluated
}
