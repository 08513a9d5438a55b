// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// node is one host that a command works on.
type node struct {
	name string
	// root is the flag that named the host.
	root string
	// facts are nil for a node of which no more than its hardware is known.
	facts    *host.Facts
	topology *topology.Topology
	// report is the LowLatencyNode that the node was made of; nil for a host.
	report *v1alpha1.LowLatencyNode
	// addresses by which a cluster may know the node.
	addresses []netip.Addr
	// userSpaces are the folders that were looked into for user files of bypass stacks.
	userSpaces []string
	// planned is the outcome of planning, where that was needed to know what to read; nil elsewhere.
	planned *fleet.Planned
}

// reading is what is read of hosts besides the usual.
type reading struct {
	// hardware reports whether the host's hardware is all that is read; there are no facts then.
	hardware bool
	// installation reports whether the host's hardware, configuration and software are all that is read.
	installation bool
	// configuration reports whether no more is read than what plans are made from and compared with.
	configuration bool
	// nics reports whether what NICs are judged by is all that is read; there is no topology then.
	nics    bool
	request host.Request
	// addresses by which a cluster knows the hosts.
	addresses []netip.Addr
	// more says what is to be read of a host besides, now that it is known what it is; nil for nothing.
	more func(*node) host.Request
}

// hostIPHelp explains the flag --host-ip.
const hostIPHelp = "`ADDRESS` by which the cluster knows one of the hosts, whose NIC is then never given away; repeatable"

// parseAddresses reads the values of --host-ip.
func parseAddresses(texts []string) ([]netip.Addr, error) {
	addresses := make([]netip.Addr, 0, len(texts))
	for _, text := range texts {
		address, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("--host-ip %q is no IP address", text)
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}

// rootHelp explains the flag --root.
const rootHelp = "`[NAME=]PATH` of a host: a folder with its /proc and /sys, such as / or an unpacked snapshot, or a snapshot file. " +
	"NAME is the node's name; without it, the host's own name or the file's"

// readNode reads one host. The root is [NAME=]PATH.
func readNode(ctx context.Context, root string, asked reading) (node, error) {
	name, path := splitRoot(root)
	opened, err := host.Open(path)
	if err != nil {
		return node{}, err
	}
	read := node{name: name, root: root, addresses: asked.addresses, userSpaces: asked.request.UserSpaces}
	err = read.look(ctx, opened, path, asked)
	if closing := opened.Close(); err == nil && closing != nil {
		err = closing
	}
	if err != nil {
		return node{}, err
	}
	return read, nil
}

// look fills a node from its host.
func (n *node) look(ctx context.Context, opened *host.Host, path string, asked reading) error {
	facts, err := asked.read(ctx, opened)
	if err != nil {
		return err
	}
	if n.name == "" {
		n.name = nodeName(facts, path)
	}
	if asked.nics {
		n.facts = facts
		return nil
	}
	if n.topology, err = topology.FromFacts(facts); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	topology.MarkManagement(n.topology, &facts.Bypass, asked.addresses)
	if asked.hardware {
		return nil
	}
	n.facts = facts
	if asked.more != nil {
		n.facts, err = opened.ReadMore(ctx, n.facts, asked.more(n))
	}
	return err
}

func (asked reading) read(ctx context.Context, opened *host.Host) (*host.Facts, error) {
	switch {
	case asked.hardware:
		return opened.ReadHardware(ctx)
	case asked.installation:
		return opened.ReadInstallation(ctx)
	case asked.configuration:
		return opened.ReadConfiguration(ctx)
	case asked.nics:
		return opened.ReadNICs(ctx, asked.request)
	default:
		return opened.ReadWith(ctx, asked.request)
	}
}

// readNodes reads several hosts, whose names must differ.
func readNodes(ctx context.Context, roots []string, asked reading) ([]node, error) {
	nodes := make([]node, 0, len(roots))
	for _, root := range roots {
		node, err := readNode(ctx, root, asked)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	return nodes, checkNames(nodes)
}

func checkNames(nodes []node) error {
	seen := map[string]bool{}
	for _, node := range nodes {
		if seen[node.name] {
			return fmt.Errorf("two hosts have the name %q; name them with --root NAME=PATH", node.name)
		}
		seen[node.name] = true
	}
	return nil
}

// splitRoot takes NAME=PATH apart. What is a path as a whole, or does not begin with a node's name, has
// no name.
func splitRoot(root string) (name, path string) {
	name, path, found := strings.Cut(root, "=")
	if !found || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", root
	}
	if _, err := os.Stat(root); err == nil || !errors.Is(err, os.ErrNotExist) {
		return "", root
	}
	return name, path
}

// nodeName is the host's own name, else the name of the folder or file without its endings.
func nodeName(facts *host.Facts, path string) string {
	if name, known := facts.Name.Get(); known && name != "" {
		return name
	}
	name := filepath.Base(path)
	for _, ending := range []string{".gz", ".bz2", ".tgz", ".tar"} {
		name = strings.TrimSuffix(name, ending)
	}
	if name == "/" || name == "." {
		return "localhost"
	}
	return name
}
