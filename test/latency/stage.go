// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/traffic"
)

// The addresses of the server: through a pair of virtual interfaces, and through a link that can be impaired.
const (
	vethNear, vethServer = "10.99.1.1", "10.99.1.2"
	linkNear, linkServer = "10.99.2.1", "10.99.2.2"
	port                 = 2048
)

// stage is two network namespaces, near for clients and far for servers; or this machine and another, when near and far are "".
type stage struct {
	near, far string
	// host is the address of the servers, and device the interface that leads to them; "" where it is not known.
	host, device string
	// client is a program that runs lowlatency-traffic in the near namespace.
	client string
	folder string
	link   *link
	server *exec.Cmd
	rounds int
	// sizes of messages that medians are compared of.
	sizes []int
}

// newStage makes the namespaces and starts the server, or takes what is on another machine. The program is built where none is given.
func newStage(ctx context.Context, o options) (*stage, error) {
	s := &stage{host: vethServer, device: "v0", rounds: o.rounds, sizes: o.sizes}
	program := o.program
	if program == "" {
		built, err := exec.CommandContext(ctx, "hack/traffic.sh").Output()
		if err != nil {
			return s, fmt.Errorf("building lowlatency-traffic, from the folder of the project: %w", err)
		}
		program = strings.TrimSpace(string(built))
	}
	if o.server != "" {
		s.host, s.device, s.client = o.server, o.delayed, program
		return s, nil
	}
	return s, s.setUp(ctx, program)
}

// setUp makes the namespaces and what joins them.
func (s *stage) setUp(ctx context.Context, program string) error {
	name := fmt.Sprintf("lowlat%d", os.Getpid())
	s.near, s.far = name+"n", name+"f"
	var err error
	if s.folder, err = os.MkdirTemp("", "latency"); err != nil {
		return err
	}
	s.client = filepath.Join(s.folder, "client")
	script := fmt.Sprintf("#!/bin/sh\nexec ip netns exec %s %s \"$@\"\n", s.near, program)
	if err := os.WriteFile(s.client, []byte(script), 0o700); err != nil {
		return err
	}
	for _, command := range []string{
		"netns add " + s.near, "netns add " + s.far,
		"link add v0 netns " + s.near + " type veth peer name v1 netns " + s.far,
		"-n " + s.near + " addr add " + vethNear + "/24 dev v0", "-n " + s.far + " addr add " + vethServer + "/24 dev v1",
		"-n " + s.near + " link set v0 up", "-n " + s.far + " link set v1 up", "-n " + s.near + " link set lo up", "-n " + s.far + " link set lo up",
	} {
		if err := ip(ctx, command); err != nil {
			return err
		}
	}
	if s.link, err = newLink(ctx, s.near, s.far); err != nil {
		return err
	}
	return s.serve(ctx, program)
}

// nearby is a program where the clients are.
func (s *stage) nearby(ctx context.Context, program string, arguments ...string) *exec.Cmd {
	if s.near == "" {
		return exec.CommandContext(ctx, program, arguments...)
	}
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", s.near, program}, arguments...)...)
}

// startServer starts a program where the servers are. On another machine it runs already.
func (s *stage) startServer(ctx context.Context, program string, arguments ...string) (end func(), err error) {
	if s.far == "" {
		return func() {}, nil
	}
	server := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", s.far, program}, arguments...)...)
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	return func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}, nil
}

// serve starts the server, and waits for its port.
func (s *stage) serve(ctx context.Context, program string) error {
	s.server = exec.CommandContext(ctx, "ip", "netns", "exec", s.far, program, "server", fmt.Sprintf("port=%d", port), "buffer=16000000")
	out, err := s.server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.server.Start(); err != nil {
		return fmt.Errorf("starting the server: %w", err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return fmt.Errorf("the server says %q: %w", line, err)
	}
	return nil
}

// clear removes everything.
func (s *stage) clear() error {
	var errs []error
	if s.server != nil && s.server.Process != nil {
		_ = s.server.Process.Kill()
		_ = s.server.Wait()
	}
	for _, name := range []string{s.near, s.far} {
		if name == "" {
			continue
		}
		if _, err := os.Stat("/run/netns/" + name); err == nil {
			errs = append(errs, ip(context.Background(), "netns del "+name))
		}
	}
	if s.folder != "" {
		errs = append(errs, os.RemoveAll(s.folder))
	}
	return errors.Join(errs...)
}

// ip runs iproute2.
func ip(ctx context.Context, command string) error {
	if out, err := exec.CommandContext(ctx, "ip", strings.Fields(command)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", command, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// sweep is a request for a stream.
func sweep(host string, bytes int, rates ...uint64) traffic.RateRequest {
	r := traffic.DefaultRateRequest()
	r.Host, r.Port, r.Sizes, r.Waiting, r.Rates, r.Buffer = host, port, []int{bytes}, latency.Block, rates, 16_000_000
	r.WarmUp, r.WarmUpPings, r.Batch, r.MaximumPings, r.MinimumTime = 0, 100, 1000, 1000, 0
	return r
}

// rates measures a sweep whose server must have answered.
func (s *stage) rates(ctx context.Context, r traffic.RateRequest) (*latency.Result, error) {
	result, err := traffic.MeasureRates(ctx, s.client, r, latency.Budget{}, func(traffic.Progress) {})
	if err != nil {
		return nil, err
	}
	if len(result.Rates) != len(r.Rates) {
		return nil, fmt.Errorf("%s: %s", result.Outcome.Reason, result.Outcome.Message)
	}
	return result, nil
}

// pingPong is a measurement of one size whose server must have answered.
func (s *stage) pingPong(ctx context.Context, host string, change func(*traffic.Request)) (*latency.Distribution, error) {
	r := traffic.DefaultRequest()
	r.Host, r.Port, r.Sizes, r.Transport = host, port, []int{64}, latency.UDP
	r.WarmUpPings, r.WarmUp = 1000, 0
	change(&r)
	result, err := traffic.Measure(ctx, traffic.Options{Program: s.client, Request: r, Progress: func(traffic.Progress) {}})
	if err != nil {
		return nil, err
	}
	if result.Outcome.Verdict != latency.Passed {
		return nil, fmt.Errorf("%s: %s", result.Outcome.Reason, result.Outcome.Message)
	}
	return &result.Sizes[0].Distribution, nil
}
