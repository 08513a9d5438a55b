// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package real

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

// endTimeout is how long a process may take to end when it is asked to.
const endTimeout = 20 * time.Second

// process is a program that runs beside the test.
type process struct {
	command *exec.Cmd
	ended   chan struct{}
	asked   atomic.Bool
}

// start starts a program with its output in a file. It ends with the test, at the latest.
func start(t *testing.T, log string, environment []string, program string, arguments ...string) *process {
	t.Helper()
	p, err := launch(log, environment, program, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	return p
}

// launch starts a program with its output in a file, which a program of the same name continues.
func launch(log string, environment []string, program string, arguments ...string) (*process, error) {
	output, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	defer output.Close() //nolint:errcheck // The process has a descriptor of its own.
	p := &process{command: exec.CommandContext(context.Background(), program, arguments...), ended: make(chan struct{})}
	p.command.Stdout, p.command.Stderr, p.command.Env = output, output, environment
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// The kernel kills the process when the thread ends that has started it.
		runtime.LockOSThread()
		started <- p.command.Start()
		_ = p.command.Wait()
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	return p, nil
}

// stop asks the process to end, and waits until it has.
func (p *process) stop() {
	if p.asked.Swap(true) {
		<-p.ended
		return
	}
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(endTimeout):
		_ = p.command.Process.Kill()
		<-p.ended
	}
}

// running reports whether the process has not ended.
func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// tool is a program of the per-user cache, which the target of the test has provided.
func tool(t *testing.T, folder, name string) string {
	t.Helper()
	cache, err := apiserver.CacheFolder()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(cache, "bin", folder, name)
	if _, err := exec.LookPath(path); err != nil {
		t.Fatalf("%v: run the test by its make target, which builds it once for this machine", err)
	}
	return path
}

// version is that of a tool in hack/versions.env.
func version(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile("../../hack/versions.env")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
			return value
		}
	}
	t.Fatalf("hack/versions.env names no %s", name)
	return ""
}

// output runs a program to its end.
func output(t *testing.T, folder, program string, arguments ...string) string {
	t.Helper()
	text, err := run(t.Context(), folder, program, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func run(ctx context.Context, folder, program string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = folder
	text, err := command.Output()
	if err != nil {
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, failed.Stderr)
		}
		return "", fmt.Errorf("running %s %s: %w", program, strings.Join(arguments, " "), err)
	}
	return strings.TrimSpace(string(text)), nil
}

// freePort is a port that nobody listens on.
func freePort() (string, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	defer listener.Close() //nolint:errcheck // Only the number is of interest.
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return "", fmt.Errorf("%s is no TCP address", listener.Addr())
	}
	return strconv.Itoa(address.Port), nil
}

// port is a free port, or the end of the test.
func port(t *testing.T) string {
	t.Helper()
	free, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	return free
}
