// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command pictures draws the pictures of the documents that need no measurement into a folder: a simulated node on which something is
// wrong, by the command line itself, and how data flows.
//
//	go run ./hack/pictures docs/images
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/tunedhost"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./hack/pictures FOLDER")
		os.Exit(2)
	}
	if err := draw(context.Background(), ".", os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// draw writes every picture into a folder.
func draw(ctx context.Context, repository, folder string) error {
	node, err := nodePicture(ctx, repository)
	if err != nil {
		return err
	}
	for name, picture := range map[string][]byte{"node.svg": node, "dataflow.svg": dataFlow()} {
		if err := os.WriteFile(filepath.Join(folder, name), picture, 0o644); err != nil {
			return fmt.Errorf("writing a picture: %w", err)
		}
	}
	return nil
}

// nodePicture is a node that was tuned as the sample profile says, on which an interrupt then went astray and a NIC lost its link.
func nodePicture(ctx context.Context, repository string) (picture []byte, err error) {
	sample := filepath.Join(repository, "config/samples/trading.yaml")
	text, err := os.ReadFile(sample)
	if err != nil {
		return nil, fmt.Errorf("reading the sample: %w", err)
	}
	profile := &v1alpha1.LowLatencyNodeProfile{}
	if err := yaml.UnmarshalStrict(text, profile); err != nil {
		return nil, fmt.Errorf("reading the sample: %w", err)
	}
	dir, err := os.MkdirTemp("", "pictures-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	machine := hosttree.Xeon()
	machine.Hostname, machine.Onload = "trading-1", hosttree.NewOnload()
	host, err := tunedhost.New(ctx, dir, machine, profile)
	if err != nil {
		return nil, err
	}
	if err := host.Apply(); err != nil {
		return nil, err
	}
	if err := disturb(host); err != nil {
		return nil, err
	}
	var out, said bytes.Buffer
	args := []string{"node", "-f", sample, "-f", filepath.Join(repository, "config/samples/bypass-onload.yaml"), "--root", dir, "--host-ip", hosttree.NodeAddress, "-o", "svg"}
	if code := cli.Run(ctx, "", args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &said}); code != cli.ExitFindings {
		return nil, fmt.Errorf("kubectl lowlatency node ends with exit code %d: %s", code, said.String())
	}
	return out.Bytes(), nil
}

// disturb moves an interrupt of a NIC to an isolated CPU, and unplugs the NIC beside it.
func disturb(host *tunedhost.Host) error {
	irq, err := hosttree.FindIRQ(host.Dir, host.BypassNIC())
	if err != nil {
		return err
	}
	if err := hosttree.MoveIRQ(host.Dir, irq, cpus.Of(host.Plan.CPUs.Isolated.IDs()[3])); err != nil {
		return err
	}
	nics := host.Machine.NICs
	return hosttree.SetCarrier(host.Dir, nics[len(nics)-1].Name, false)
}
