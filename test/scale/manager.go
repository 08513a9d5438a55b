// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

const mebibyte = 1 << 20

// manager is an operator's, in a process of its own, so that its memory and processor time are its own.
type manager struct {
	kubeconfig, log string
	// command is the program with its arguments, and its environment, for an address of its metrics.
	command func(address string) (arguments, environment []string)
	address string
	process *exec.Cmd
	ended   chan struct{}
}

// ownCommand starts the program as config/manager does, with the environment of its manifest.
func ownCommand(binary string, environment []string) func(string) ([]string, []string) {
	return func(address string) ([]string, []string) {
		return []string{
			binary, "manager", "--leader-elect", "--namespace=" + namespace, "--image=lowlatency-operator:scale",
			"--metrics-bind-address=" + address, "--metrics-secure=false", "--health-probe-bind-address=127.0.0.1:0",
		}, environment
	}
}

// start starts the process.
func (m *manager) start() (err error) {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the manager's log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	m.address = address
	arguments, environment := m.command(address)
	m.process = exec.Command(arguments[0], arguments[1:]...)
	m.process.Env = append(append(os.Environ(), "KUBECONFIG="+m.kubeconfig), environment...)
	m.process.Stdout, m.process.Stderr = log, log
	if err := m.process.Start(); err != nil {
		return fmt.Errorf("starting the manager: %w", err)
	}
	ended, process := make(chan struct{}), m.process
	m.ended = ended
	go func() {
		defer close(ended)
		if err := process.Wait(); err != nil {
			fmt.Fprintf(os.Stderr, "the manager ended: %v; see %s\n", err, m.log)
		}
	}()
	return nil
}

// stop ends the process as a kubelet does.
func (m *manager) stop() error {
	if m.process == nil {
		return nil
	}
	if err := m.process.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping the manager: %w", err)
	}
	<-m.ended
	m.process = nil
	return nil
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// runtimeSettings are the variables of Go's runtime in the manifest of the manager.
func runtimeSettings() ([]string, error) {
	text, err := os.ReadFile(filepath.Join("config", "manager", "manager.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of the manager: %w", err)
	}
	var deployment appsv1.Deployment
	if err := yaml.Unmarshal(text, &deployment); err != nil {
		return nil, fmt.Errorf("reading the manifest of the manager: %w", err)
	}
	var settings []string
	for _, variable := range deployment.Spec.Template.Spec.Containers[0].Env {
		if strings.HasPrefix(variable.Name, "GO") {
			settings = append(settings, variable.Name+"="+variable.Value)
		}
	}
	return settings, nil
}

// cost is what the process has used.
type cost struct {
	// Processor is the processor time since its start.
	Processor time.Duration
	// Resident and Peak are its memory now and at most, in bytes.
	Resident, Peak int64
	// Passes counts reconciliations by controller.
	Passes map[string]int
}

// minus is what was used since another cost. Memory is not subtracted.
func (c cost) minus(before cost) cost {
	c.Processor -= before.Processor
	passes := map[string]int{}
	for name, n := range c.Passes {
		passes[name] = n - before.Passes[name]
	}
	c.Passes = passes
	return c
}

// cost reads it from the kernel and from the metrics.
func (m *manager) cost(ctx context.Context) (cost, error) {
	used, err := m.used()
	if err != nil {
		return cost{}, err
	}
	used.Passes, err = m.passes(ctx)
	return used, err
}

// used reads from the kernel what the process has used.
func (m *manager) used() (cost, error) {
	folder := filepath.Join("/proc", strconv.Itoa(m.process.Process.Pid))
	text, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return cost{}, fmt.Errorf("reading the manager's processor time: %w", err)
	}
	self, err := parseProcess(string(text))
	if err != nil {
		return cost{}, err
	}
	memory, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		return cost{}, fmt.Errorf("reading the manager's memory: %w", err)
	}
	return cost{
		Processor: self.used, Resident: kibibytes(string(memory), "VmRSS:"), Peak: kibibytes(string(memory), "VmHWM:"),
	}, nil
}

// kibibytes reads a line of /proc/PID/status, in bytes; 0 when it is not there.
func kibibytes(status, name string) int64 {
	_, rest, _ := strings.Cut(status, name)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// passes asks the manager how often each of its controllers has reconciled.
func (m *manager) passes(ctx context.Context) (passes map[string]int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.address+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("asking for metrics: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking for metrics: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	passes = map[string]int{}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, mebibyte)
	for lines.Scan() {
		rest, found := strings.CutPrefix(lines.Text(), `controller_runtime_reconcile_total{controller="`)
		if !found {
			continue
		}
		name, _, _ := strings.Cut(rest, `"`)
		value, err := strconv.ParseFloat(rest[strings.LastIndex(rest, " ")+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("reading metrics: %w", err)
		}
		passes[name] += int(value)
	}
	return passes, lines.Err()
}
