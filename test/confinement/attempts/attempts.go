// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

// Package attempts has what somebody might try who has taken over one of the operator's pods on a node. Tests try it where the
// mounts of a pod are made by hand, and in pods that a real kubelet has started.
package attempts

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Trial is something to try.
type Trial struct {
	// Way is what is done with the path: read, list, connect, write, make, open, see; or a call of the kernel that needs no path.
	Way string `json:"way"`
	// Path is that of the host.
	Path string `json:"path,omitempty"`
}

// String is the trial in words.
func (t Trial) String() string {
	if t.Path == "" {
		return t.Way
	}
	return t.Way + " " + t.Path
}

// Secrets are files of a node that nobody but their owners may know.
func Secrets() []string {
	return []string{
		"/etc/shadow", "/etc/kubernetes/admin.conf", "/etc/kubernetes/pki/ca.key", "/root/.ssh/id_ed25519",
		"/var/lib/kubelet/pki/kubelet-client-current.pem", "/var/lib/kubelet/pods/0123/volumes/kubernetes.io~secret/token",
		"/etc/ssh/ssh_host_ed25519_key", "/var/lib/etcd/member/snap/db",
	}
}

// Sockets are those by which others are commanded.
func Sockets() []string {
	return []string{
		"/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/systemd/private", "/run/dbus/system_bus_socket",
		"/var/lib/kubelet/device-plugins/kubelet.sock", "/var/lib/kubelet/plugins/csi/csi.sock",
		"/var/lib/kubelet/plugins_registry/csi.sock", "/run/lowlatency/afxdp/0123456789abcdef/afxdp.sock",
	}
}

// Files are the trials with files of the host.
func Files() []Trial {
	var all []Trial
	for _, path := range Secrets() {
		all = append(all, Trial{"read", path})
	}
	for _, path := range Sockets() {
		all = append(all, Trial{"connect", path})
	}
	return append(all,
		Trial{"list", "/var/lib/kubelet/pods"}, Trial{"list", "/etc/kubernetes/pki"}, Trial{"list", "/root"},
		Trial{"write", "/proc/sys/kernel/core_pattern"}, Trial{"write", "/proc/sys/kernel/modprobe"},
		Trial{"write", "/proc/sys/vm/swappiness"}, Trial{"open", "/proc/sysrq-trigger"},
		Trial{"write", "/sys/kernel/mm/ksm/run"}, Trial{"make", "/sys/fs/cgroup/taken-over"},
		Trial{"make", "/var/lib/kubelet/taken-over"}, Trial{"make", "/usr/lib/systemd/system/taken-over"},
		Trial{"make", "/etc/systemd/system/taken-over"}, Trial{"make", "/dev/shm/taken-over"},
	)
}

// Beyond are the trials that only a container runtime can stop: by its control group of devices, by capabilities that are not
// there, by its filter of system calls, and by namespaces.
func Beyond() []Trial {
	return []Trial{
		{"read", "/proc/1/environ"}, {"read", "/proc/1/root/etc/shadow"}, {"see", "/dev/vda"}, {"see", "/dev/mem"},
		{"mount a file system", ""}, {"make namespaces", ""}, {"load a BPF program", ""}, {"make a device file", ""},
		{"trace the first process of the host", ""}, {"set the clock of the host", ""}, {"be scheduled in real time", ""},
	}
}

// Try tries something below a folder that stands for the root of the host, and says what came of it; "" when it worked. What it
// makes it removes again.
func Try(root string, t Trial) string {
	err := do(root, t)
	if err == nil {
		return ""
	}
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		return failed.Err.Error()
	}
	return err.Error()
}

func do(root string, t Trial) error {
	if call, ok := calls()[t.Way]; ok {
		return call(root)
	}
	way, ok := ways()[t.Way]
	if !ok {
		return errors.New("nobody knows how to " + t.Way)
	}
	return way(filepath.Join(root, t.Path))
}

func ways() map[string]func(path string) error {
	return map[string]func(path string) error{
		"read":    func(path string) error { return something(os.ReadFile(path)) },
		"list":    func(path string) error { return something(os.ReadDir(path)) },
		"connect": connect,
		"write":   write,
		"make":    func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Remove(path)) },
		"open":    func(path string) error { return openFor(path, os.O_WRONLY) },
		"see":     func(path string) error { return openFor(path, os.O_RDONLY) },
	}
}

func openFor(path string, flag int) error {
	file, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return err
	}
	return file.Close()
}

// something is an error when nothing was found.
func something[T any](found []T, err error) error {
	if err == nil && len(found) == 0 {
		return errors.New("it is empty")
	}
	return err
}

// connect connects to a socket through its folder: the path may be too long for the kernel.
func connect(path string) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	name := filepath.Join("/proc/self/fd", strconv.Itoa(int(folder.Fd())), filepath.Base(path))
	return unix.Connect(socket, &unix.SockaddrUnix{Name: name})
}

// write writes to a file of the kernel what it already holds.
func write(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}
