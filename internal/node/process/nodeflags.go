// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package process

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// NodeFlags say on which node a program works.
type NodeFlags struct {
	// NodeName is the name of the node.
	NodeName string
	// Root is the folder at which the root file system of its host is mounted.
	Root string
	// HostIP are the addresses of the node as text, which Addresses reads.
	HostIP string
}

// Register adds the name of the node and the folder of its host to the flags of a program.
func (f *NodeFlags) Register(flags *pflag.FlagSet) {
	flags.StringVar(&f.NodeName, "node-name", os.Getenv("NODE_NAME"),
		"The name of the node. Defaults to the environment variable NODE_NAME.")
	flags.StringVar(&f.Root, "root", "/host", "The folder at which the root file system of the host is mounted.")
}

// RegisterAddresses adds the addresses of the node to the flags of a program.
func (f *NodeFlags) RegisterAddresses(flags *pflag.FlagSet) {
	flags.StringVar(&f.HostIP, "host-ip", os.Getenv("HOST_IP"),
		"The addresses of the node, with commas between them: the NIC that carries them is never given away. "+
			"Defaults to the environment variable HOST_IP.")
}

// Check returns an error that says what to set when no node is given.
func (f *NodeFlags) Check() error {
	if f.NodeName == "" {
		return errors.New("no node is given: set --node-name or the environment variable NODE_NAME")
	}
	return nil
}

// Addresses are those of the node, as the downward API writes status.hostIPs: with commas between them.
func (f *NodeFlags) Addresses() ([]netip.Addr, error) {
	var addresses []netip.Addr
	for part := range strings.SplitSeq(f.HostIP, ",") {
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
