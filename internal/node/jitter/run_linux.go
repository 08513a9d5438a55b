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
// CPUs, waits for a line, measures, writes ended, waits for a line before it lets the threads go, whose counters of the kernel
// go with them, and writes the Result.
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
	tell := func(what string, message any) error {
		if err := encoder.Encode(message); err != nil {
			return fmt.Errorf("writing %s: %w", what, err)
		}
		if _, err := lines.ReadBytes('\n'); err != nil {
			return fmt.Errorf("waiting for a line after %s: %w", what, err)
		}
		return nil
	}
	result, err := measureHere(request, func(threads Threads) error { return tell("the threads", threads) }, func() error { return tell("the end", ended{}) })
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
	if err := child.measure(func(done <-chan struct{}) error { return s.watch(ctx, done) }); err != nil {
		return nil, err
	}
	if err := s.take(ctx); err != nil {
		child.dismiss()
		return nil, err
	}
	result, err := child.result()
	if err != nil {
		return nil, err
	}
	attribute(result, s.samples)
	for i := range result.CPUs {
		result.CPUs[i].Isolation = s.isolation.of(result.CPUs[i].CPU)
	}
	return result, nil
}

// ended says that all threads have measured, and still are there.
type ended struct{}

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

// measure lets the process begin, and watches until it has measured. The process is gone when there is an error.
func (c *child) measure(watch func(done <-chan struct{}) error) error {
	if _, err := c.in.Write([]byte("\n")); err != nil {
		return c.failed(err)
	}
	done := make(chan struct{})
	var decoded error
	go func() {
		defer close(done)
		decoded = c.out.Decode(&ended{})
	}()
	watched := watch(done)
	<-done
	switch {
	case decoded != nil:
		return c.failed(decoded)
	case watched != nil:
		c.dismiss()
	}
	return watched
}

// dismiss lets a process end that has measured, without its result.
func (c *child) dismiss() {
	_ = c.in.Close()
	_ = c.command.Wait()
}

// result lets the threads go, and waits for the result and the end of the process.
func (c *child) result() (*Result, error) {
	if _, err := c.in.Write([]byte("\n")); err != nil {
		return nil, c.failed(err)
	}
	result := &Result{}
	if err := c.out.Decode(result); err != nil {
		return nil, c.failed(err)
	}
	_ = c.in.Close()
	if err := c.command.Wait(); err != nil {
		return nil, fmt.Errorf("the process that measures: %w", err)
	}
	return result, nil
}
