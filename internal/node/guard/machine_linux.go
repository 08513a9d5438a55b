// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/kubelet"
)

// maximumOutput is how much of what a failed program has written is in the error.
const maximumOutput = 2000

// Below is the machine whose root file system is below a folder, "/" for the one that the program runs on.
type Below struct{ Root string }

// Names are the names in a folder, ascending.
func (b Below) Names(folder string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(b.Root, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading a folder: %w", err)
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names, nil
}

// Tool runs a program of the host. Its environment is fixed: no variable of whoever calls changes what it does.
func (b Below) Tool(ctx context.Context, program string, arguments ...string) error {
	_, err := b.output(ctx, program, arguments...)
	return err
}

// output runs a program, and returns what it has written.
func (b Below) output(ctx context.Context, program string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	command.Dir = "/"
	// A terminal signals all processes of a group: Ctrl-C is for the guard, which decides what it ends.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if filepath.Clean(b.Root) != "/" {
		command.SysProcAttr.Chroot = b.Root
		// The host's systemd is spoken to through its sockets, which are below its root, too.
		command.Env = append(command.Env, "SYSTEMD_IGNORE_CHROOT=1")
	}
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		written := strings.TrimSpace(output.String())
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(arguments, " "), err, written[max(0, len(written)-maximumOutput):])
	}
	return output.String(), nil
}

// healthTimeout is how long a healthy kubelet may take to say so.
const healthTimeout = 5 * time.Second

// Health asks a kubelet whether it is healthy. No proxy is asked, and no other address followed.
func (b Below) Health(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", http.NoBody)
	if err != nil {
		return fmt.Errorf("asking the kubelet: %w", err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("http://%s/healthz: %w", address, err)
	}
	if err := response.Body.Close(); err != nil {
		return fmt.Errorf("http://%s/healthz: %w", address, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("http://%s/healthz says %s", address, response.Status)
	}
	return nil
}

// Unit asks systemd for a service. Where no systemd runs, as in an image that is being built, there is none.
func (b Below) Unit(ctx context.Context, name string) (*kubelet.Unit, error) {
	_, err := os.Stat(filepath.Join(b.Root, "run/systemd/system"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // There is no such service, and that is no error.
	}
	if err != nil {
		return nil, fmt.Errorf("looking for systemd: %w", err)
	}
	output, err := b.output(ctx, systemctl, "show", "--property="+strings.Join(kubelet.Properties(), ","), name)
	if err != nil {
		return nil, err
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return nil, fmt.Errorf("reading the clock: %w", err)
	}
	return kubelet.ReadUnit(name, output, time.Duration(now.Nano()))
}

// Get reads a value of the running kernel. The kernel's own links, such as /sys/bus/workqueue/devices, are followed.
func (b Below) Get(name string) (string, error) {
	content, err := b.inRoot(name, os.O_RDONLY, func(file *os.File) ([]byte, error) {
		value := make([]byte, os.Getpagesize())
		n, err := file.Read(value)
		return value[:n], err
	})
	return chosen(strings.TrimSpace(string(content))), err
}

// chosen is the value among those that a file such as transparent_hugepage/enabled offers.
func chosen(value string) string {
	if _, rest, found := strings.Cut(value, "["); found {
		if inside, _, closed := strings.Cut(rest, "]"); closed {
			return inside
		}
	}
	return value
}

// Set writes a value of the running kernel.
func (b Below) Set(name, value string) error {
	_, err := b.inRoot(name, os.O_WRONLY, func(file *os.File) ([]byte, error) {
		_, err := file.WriteString(value)
		return nil, err
	})
	return err
}

func (b Below) inRoot(name string, flags int, do func(*os.File) ([]byte, error)) ([]byte, error) {
	root, err := os.OpenRoot(b.Root)
	if err != nil {
		return nil, fmt.Errorf("opening the root: %w", err)
	}
	defer func() { _ = root.Close() }()
	file, err := root.OpenFile(strings.TrimPrefix(name, "/"), flags, 0)
	if err != nil {
		return nil, fmt.Errorf("opening a setting of the kernel: %w", err)
	}
	content, err := do(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return content, nil
}

// lockWait is how long Lock waits for another guard: longer than it needs for a look at the host.
const lockWait = 30 * time.Second

// Lock keeps others from changing the host until the process ends or the returned function is called.
func (b Below) Lock() (func(), error) {
	name := filepath.Join(b.Root, "run", "lowlatency-guard.lock")
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the host: %w", err)
	}
	for end := time.Now().Add(lockWait); ; time.Sleep(lockWait / 100) {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if time.Now().After(end) {
			return nil, errors.Join(fmt.Errorf("%w, for %s so far: try again: %w", ErrAtWork, lockWait, err), file.Close())
		}
	}
}
