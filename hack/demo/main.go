// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command demo runs the operator's main job on this machine: a real etcd and kube-apiserver, the CRDs,
// the operator and a fleet of simulated hosts whose agents run the production code. It tells the story
// of one LowLatencyNodeProfile from creation to proof, with one node that ends up wrong on purpose.
//
// With -oneshot it ends after the story, with exit status 0 only if the final state is as promised, and with 130 when it is interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// interrupted is the exit status of a judgement that somebody has ended: it is none.
const interrupted = 128 + int(syscall.SIGINT)

func main() {
	var o options
	flag.BoolVar(&o.oneshot, "oneshot", false, "end after the story")
	flag.StringVar(&o.platform, "platform", "openshift", "whose nodes are simulated: openshift or kubernetes")
	flag.StringVar(&o.scrapes, "scrapes", "", "a folder for the operator's metrics at the end of each act, with a LatencyTest; none when empty")
	flag.StringVar(&o.metrics, "metrics", "", "the address at which the operator's metrics can be read while the demo runs, such as 127.0.0.1:8080; none when empty")
	verbose := flag.Bool("verbose", false, "print the operator's own log to stderr")
	flag.Parse()
	log := logger(*verbose)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	narrator := newNarrator(os.Stdout)
	err := run(ctx, narrator, &o)
	switch {
	case ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)):
		narrator.say("\nEnded, and everything of the demo is removed.")
		if o.oneshot {
			os.Exit(interrupted) //nolint:gocritic // The deferred stop only restores signal handling, which ends with the process.
		}
	case err != nil:
		narrator.out = os.Stderr
		narrator.say("\nerror: %v", err)
		os.Exit(1)
	}
}

func logger(verbose bool) logr.Logger {
	if !verbose {
		return logr.Discard()
	}
	return funcr.New(func(prefix, args string) { fmt.Fprintln(os.Stderr, prefix, args) }, funcr.Options{})
}

// options are those of the command line.
type options struct {
	oneshot          bool
	platform         string
	scrapes, metrics string
}

// run tells the story of a platform.
func run(ctx context.Context, narrator *narrator, o *options) error {
	switch o.platform {
	case "openshift":
		return runOpenShift(ctx, narrator, o)
	case "kubernetes":
		return runOrdinary(ctx, narrator)
	default:
		return fmt.Errorf("there is no story of the platform %q: openshift or kubernetes", o.platform)
	}
}

// runOpenShift tells the story and, unless oneshot, keeps everything running for the reader to play with.
func runOpenShift(ctx context.Context, narrator *narrator, o *options) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	stage, err := newStage(ctx, narrator)
	if err != nil {
		cancel()
		return err
	}
	defer func() {
		cancel()
		err = errors.Join(err, stage.close())
	}()
	if err := stage.serveMetrics(ctx, o.metrics); err != nil {
		return err
	}
	for number, act := range acts() {
		narrator.heading(act.title, act.text)
		if err := act.play(ctx, stage); err != nil {
			return err
		}
		if o.scrapes == "" && o.metrics == "" {
			continue
		}
		if err := errors.Join(stage.measure(ctx), stage.scrape(o.scrapes, number+1)); err != nil {
			return err
		}
	}
	if o.oneshot {
		narrator.say("\nThe final state is as promised. make demo without ONESHOT=1 keeps everything running.")
		return nil
	}
	narrator.epilogue(stage)
	narrator.say("Everything keeps running. Press Ctrl-C to end and remove it.")
	<-ctx.Done()
	return nil
}
