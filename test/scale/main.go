// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command scale measures the operator's manager with large fleets: on a real etcd and kube-apiserver, with simulated nodes,
// agents and machine-config operator in this process, and with the manager in a process of its own, whose requests are those
// that the API server has recorded in its audit log.
//
//	go run ./test/scale -nodes 500,1000,2000,5000
//	go run ./test/scale -nodes 500,1000,2000,5000 -peer CHECKOUT
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	nodes := flag.String("nodes", "500 1000 2000 5000", "the sizes of the fleets, separated by commas or spaces")
	binary := flag.String("manager", "", "an operator to measure instead of that of this tree")
	into := flag.String("results", filepath.Join("dist", "scale.json"), "where the results are written")
	documented := flag.Bool("document", false, "put the figures and curves into docs")
	drawn := flag.Bool("draw", false, "measure nothing, and put the figures and curves of "+recordedResults+" into docs")
	checkout := flag.String("peer", "", "a checkout of OpenShift's Node Tuning Operator, which is measured instead")
	limit := flag.Duration("limit", 15*time.Minute, "how long one phase may take")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	if *drawn {
		return drawRecorded()
	}
	if *checkout != "" {
		return runPeer(ctx, *checkout, *nodes, *limit)
	}
	if *binary == "" {
		*binary = filepath.Join(os.TempDir(), "lowlatency-scale-operator")
		if err := build(ctx, *binary); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.Remove(*binary)) }()
	}
	var results []*result
	var failures []error
	counts, err := sizes(*nodes)
	if err != nil {
		return err
	}
	for _, count := range counts {
		measured, err := measure(ctx, *binary, count, *limit)
		failures = append(failures, err)
		if measured != nil {
			results = append(results, measured)
		}
		// What is measured is kept, whatever becomes of the larger fleets.
		failures = append(failures, save(*into, results))
	}
	fmt.Print(table(results))
	if *documented {
		failures = append(failures, save(recordedResults, results), document(".", results))
	}
	return errors.Join(failures...)
}

// drawRecorded draws again what was measured for the documentation.
func drawRecorded() error {
	results, err := load(recordedResults)
	if err != nil {
		return err
	}
	return document(".", results)
}

// smallest is the size of a fleet of which single nodes can change.
const smallest = 2

// sizes reads the sizes of fleets.
func sizes(text string) (counts []int, err error) {
	for size := range strings.FieldsSeq(strings.ReplaceAll(text, ",", " ")) {
		count, err := strconv.Atoi(size)
		if err != nil {
			return nil, fmt.Errorf("-nodes: %w", err)
		}
		if count < smallest {
			return nil, fmt.Errorf("-nodes: a fleet of %d nodes is too small: have at least %d, of which some change and others do not", count, smallest)
		}
		counts = append(counts, count)
	}
	return counts, nil
}

// runPeer measures the Node Tuning Operator.
func runPeer(ctx context.Context, checkout, nodes string, limit time.Duration) (err error) {
	counts, err := sizes(nodes)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "lowlatency-scale-peer-")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	binary := filepath.Join(folder, "cluster-node-tuning-operator")
	if err := buildPeer(ctx, checkout, binary, folder); err != nil {
		return err
	}
	var results []*peerResult
	var failures []error
	for _, count := range counts {
		measured, err := measurePeer(ctx, checkout, binary, count, limit)
		failures = append(failures, err)
		if measured != nil {
			results = append(results, measured)
		}
	}
	fmt.Print(peerTable(results))
	return errors.Join(failures...)
}

// build builds the operator of this tree.
func build(ctx context.Context, path string) error {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "./cmd/lowlatency-operator")
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("building the operator: %w", err)
	}
	return nil
}
