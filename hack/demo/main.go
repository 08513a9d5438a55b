// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command demo runs the operator's main job on this machine: a real etcd and kube-apiserver, the CRDs,
// the operator and a fleet of simulated hosts whose agents run the production code. It tells the story
// of one LowLatencyNodeProfile from creation to proof, with one node that ends up wrong on purpose.
//
// With -oneshot it ends after the story, with exit status 0 only if the final state is as promised.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	oneshot := flag.Bool("oneshot", false, "end after the story")
	verbose := flag.Bool("verbose", false, "print the operator's own log to stderr")
	flag.Parse()
	ctrl.SetLogger(logger(*verbose))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, newNarrator(os.Stdout), *oneshot); err != nil {
		fmt.Fprintf(os.Stderr, "\nerror: %v\n", err)
		os.Exit(1) //nolint:gocritic // The deferred stop only restores signal handling, which ends with the process.
	}
}

func logger(verbose bool) logr.Logger {
	if !verbose {
		return logr.Discard()
	}
	return funcr.New(func(prefix, args string) { fmt.Fprintln(os.Stderr, prefix, args) }, funcr.Options{})
}

// run tells the story and, unless oneshot, keeps everything running for the reader to play with.
func run(ctx context.Context, narrator *narrator, oneshot bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stage, err := newStage(ctx, narrator)
	if err != nil {
		return err
	}
	defer stage.close(cancel)
	for _, act := range acts() {
		narrator.heading(act.title, act.text)
		if err := act.play(ctx, stage); err != nil {
			return err
		}
	}
	if oneshot {
		narrator.say("\nThe final state is as promised. make demo without ONESHOT=1 keeps everything running.")
		return nil
	}
	narrator.epilogue(stage)
	narrator.say("Everything keeps running. Press Ctrl-C to end and remove it.")
	<-ctx.Done()
	return nil
}
