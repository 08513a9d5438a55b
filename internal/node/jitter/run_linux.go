// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/affinity"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/subprocess"
)

// Serve is the process that measures: it reads a Request from in, writes Threads to out when they are on their
// CPUs, waits for a line, measures, and writes the Result.
func Serve(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	text, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	var request Request
	if err := json.Unmarshal(text, &request); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	encoder := json.NewEncoder(out)
	result, err := measureHere(request, func(threads Threads) error {
		if err := encoder.Encode(threads); err != nil {
			return fmt.Errorf("writing the threads: %w", err)
		}
		_, err := lines.ReadBytes('\n')
		return err
	})
	if err != nil {
		return err
	}
	if err := encoder.Encode(result); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// Run keeps this process to the control CPUs, starts the process that measures, reads the counters of the kernel
// meanwhile, and attributes the longest interruptions to them.
func Run(ctx context.Context, options Options) (*Result, error) {
	options.Request.CPUs = options.Placement.Measured.IDs()
	if err := options.Request.Check(); err != nil {
		return nil, err
	}
	if err := affinity.KeepTo(options.Placement.Control); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	smis := findSMIs("/").open(options.Placement.Control.IDs()[0])
	defer smis.close()
	command := options.Command(ctx)
	defer subprocess.EndWithParent(command)()
	child, err := start(ctx, command, options.Request)
	if err != nil {
		return nil, err
	}
	s := &sampler{host: options.Host, child: child.threads, options: options, smis: smis}
	if err := s.take(ctx); err != nil {
		return nil, errors.Join(err, child.abandon(cancel))
	}
	result, err := child.measure(func(done <-chan struct{}) error { return s.watch(ctx, done) })
	if err != nil {
		return nil, err
	}
	if err := s.take(ctx); err != nil {
		return nil, err
	}
	attribute(result, s.samples)
	for i := range result.CPUs {
		result.CPUs[i].Isolation = s.isolation.of(result.CPUs[i].CPU)
	}
	return result, nil
}

// child is the process that measures.
type child struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
	errors  *bytes.Buffer
	threads Threads
}

// start runs the process until its threads are on their CPUs.
func start(ctx context.Context, command *exec.Cmd, request Request) (*child, error) {
	c := &child{command: command, errors: &bytes.Buffer{}}
	command.Stderr = c.errors
	var err error
	if c.in, err = command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	c.out = json.NewDecoder(out)
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the process that measures: %w", err)
	}
	if err := json.NewEncoder(c.in).Encode(request); err != nil {
		return nil, c.failed(err)
	}
	if err := c.out.Decode(&c.threads); err != nil {
		return nil, c.failed(err)
	}
	return c, ctx.Err()
}

// failed waits for a process that went wrong; what it said on its standard error is the reason.
func (c *child) failed(err error) error {
	_ = c.in.Close()
	waited := c.command.Wait()
	if said := strings.TrimSpace(c.errors.String()); said != "" {
		return fmt.Errorf("the process that measures failed: %s", said)
	}
	return errors.Join(fmt.Errorf("talking to the process that measures: %w", err), waited)
}

func (c *child) abandon(cancel context.CancelFunc) error {
	cancel()
	return c.failed(context.Canceled)
}

// measure lets the process begin, watches until it has a result, and waits for its end.
func (c *child) measure(watch func(done <-chan struct{}) error) (*Result, error) {
	if _, err := c.in.Write([]byte("\n")); err != nil {
		return nil, c.failed(err)
	}
	result, done := &Result{}, make(chan struct{})
	var decoded error
	go func() {
		defer close(done)
		decoded = c.out.Decode(result)
	}()
	watched := watch(done)
	<-done
	if decoded != nil {
		return nil, c.failed(decoded)
	}
	_ = c.in.Close()
	if err := c.command.Wait(); err != nil {
		return nil, fmt.Errorf("the process that measures: %w", err)
	}
	return result, watched
}
