// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

// Programs are those of a real cluster with one node, in one folder for each origin.
type Programs struct {
	// folders that hold them.
	folders []string
}

// OpenPrograms returns the programs of a cluster, and has hack/toolchain.sh download or build them first when this
// user's cache does not hold them, which it reports on progress. More are those of people, such as kubectl, by their names in hack/toolchain.sh.
func OpenPrograms(ctx context.Context, progress io.Writer, more ...string) (Programs, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return Programs{}, err
	}
	command := exec.CommandContext(ctx, filepath.Join(root, "hack", "toolchain.sh"), append([]string{"envtest", "node", "kustomize"}, more...)...)
	command.Stdout, command.Stderr = progress, progress
	if err := command.Run(); err != nil {
		return Programs{}, fmt.Errorf("providing the programs of Kubernetes with hack/toolchain.sh: %w", err)
	}
	versions, err := readVersions(filepath.Join(root, "hack", "versions.env"))
	if err != nil {
		return Programs{}, err
	}
	cache, err := apiserver.CacheFolder()
	if err != nil {
		return Programs{}, err
	}
	kubernetes, platform := versions["KUBERNETES_VERSION"], runtime.GOOS+"-"+runtime.GOARCH
	folders := []string{
		filepath.Join(cache, "k8s", kubernetes+"-"+platform),
		filepath.Join(cache, "node", "kubernetes-"+kubernetes+"-containerd-"+versions["CONTAINERD_VERSION"]+"-"+platform),
		filepath.Join(cache, "bin", "kustomize-"+versions["KUSTOMIZE_VERSION"]),
	}
	for _, name := range more {
		folders = append(folders, filepath.Join(cache, "bin", name+"-"+kubernetes))
	}
	return Programs{folders: folders}, nil
}

// File is the path of a program; one that is missing is an error of whoever starts it.
func (p Programs) File(name string) string {
	for _, folder := range p.folders {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return name
}

// readVersions reads lines of NAME=value, as hack/versions.env holds them.
func readVersions(path string) (map[string]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the versions of programs: %w", err)
	}
	defer func() { _ = file.Close() }()
	versions := map[string]string{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if name, value, found := strings.Cut(lines.Text(), "="); found && !strings.HasPrefix(name, "#") {
			versions[name] = value
		}
	}
	return versions, lines.Err()
}

// stopLimit is how long a program may take to end before it is killed.
const stopLimit = 20 * time.Second

// program is a process that runs until it is stopped.
type program struct {
	command *exec.Cmd
	done    chan struct{}
}

// launch starts a program with its output in a file. It is killed with the context, and with this process.
func launch(ctx context.Context, name, log, path string, arguments ...string) (*program, error) {
	output, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &program{command: exec.CommandContext(ctx, path, arguments...), done: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = output, output
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	go func() {
		// The signal comes when the thread that started the program ends, so that thread must wait for it.
		runtime.LockOSThread()
		err := p.command.Start()
		started <- err
		if err == nil {
			// A program that ends early is noticed by what it no longer does; its log says why.
			_ = p.command.Wait()
			close(p.done)
		}
		_ = output.Close()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return p, nil
}

// stop asks the program to end, and kills it when it takes too long.
func (p *program) stop() {
	// A program that has ended already cannot be signalled, which is well.
	if err := p.command.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		return
	}
	select {
	case <-p.done:
	case <-time.After(stopLimit):
		_ = p.command.Process.Kill()
		<-p.done
	}
}
