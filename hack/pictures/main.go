// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command pictures draws the pictures of the documents into a folder: a simulated node on which something is wrong, by the command line
// itself, how data flows, and what was recorded of the demo, of the jitter probe and of LatencyTests in hack/pictures/recorded.
//
//	go run ./hack/pictures docs/images
//	go run ./hack/pictures -demo RECORDING docs/images   # with another run of the demo, of which it keeps what is shown
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/hack/pictures/latencypicture"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/tunedhost"
)

func main() {
	recording := flag.String("demo", "", "what a terminal got from make demo; what the picture shows of it is kept")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: go run ./hack/pictures [-demo RECORDING] FOLDER")
		os.Exit(2)
	}
	if err := run(context.Background(), *recording, flag.Arg(0)); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, recording, folder string) error {
	if recording != "" {
		if err := keepDemo(".", recording); err != nil {
			return err
		}
	}
	pictures, err := draw(ctx, ".")
	if err != nil {
		return err
	}
	for name, picture := range pictures {
		if err := os.WriteFile(filepath.Join(folder, name), picture, 0o644); err != nil {
			return fmt.Errorf("writing a picture: %w", err)
		}
	}
	return nil
}

// draw returns every picture by the name of its file.
func draw(ctx context.Context, repository string) (map[string][]byte, error) {
	node, err := nodePicture(ctx, repository)
	if err != nil {
		return nil, err
	}
	demo, err := demoPicture(repository)
	if err != nil {
		return nil, err
	}
	one, pair, err := jitterPictures(repository)
	if err != nil {
		return nil, err
	}
	pictures := map[string][]byte{"node.svg": node, "dataflow.svg": dataFlow(), "demo.svg": demo, "jitter.svg": one, "jitter-pair.svg": pair}
	for _, name := range latencypicture.Samples() {
		recording, err := latencypicture.Read(repository, name)
		if err != nil {
			return nil, err
		}
		pictures[latencypicture.File(name)] = latencypicture.Draw(name, recording)
	}
	return pictures, nil
}

// nodePicture is a node that was tuned as the sample profile says, on which an interrupt then went astray and a NIC lost its link.
func nodePicture(ctx context.Context, repository string) (picture []byte, err error) {
	sample := filepath.Join(repository, "config/samples/tick-to-trade/profile.yaml")
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
	args := []string{"node", "-f", sample, "-f", filepath.Join(repository, "config/samples/tick-to-trade/pool.yaml"), "--root", dir, "--host-ip", hosttree.NodeAddress, "-o", "svg"}
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
