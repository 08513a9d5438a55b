// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package afxdp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The tests of this package run on the real kernel, in namespaces of their own with a pair of veth interfaces and a BPF
// file system. TestMain runs the test binary again in there; where the kernel or the user does not allow that, the
// tests that need it are skipped and say so, but in CI they fail.
const (
	stageVariable  = "LOWLATENCY_AFXDP_STAGE"
	stageNamespace = "namespace"
	stageClient    = "client"
	folderVariable = "LOWLATENCY_AFXDP_FOLDER"
)

func TestMain(m *testing.M) {
	switch os.Getenv(stageVariable) {
	case stageClient:
		os.Exit(runClient(os.Args[len(os.Args)-4:]))
	case stageNamespace:
		os.Exit(inNamespace(m))
	default:
		os.Exit(reexecute(m))
	}
}

// reexecute runs the tests in new namespaces, or here if that is not allowed.
func reexecute(m *testing.M) int {
	folder, err := os.MkdirTemp("", "afxdp")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	// Clients without privileges use the sockets below.
	if err := os.Chmod(folder, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), stageVariable+"="+stageNamespace, folderVariable+"="+folder)
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	err = command.Run()
	var failed *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &failed):
		return failed.ExitCode()
	default:
		return m.Run()
	}
}

// inNamespace prepares the namespaces and runs the tests.
func inNamespace(m *testing.M) int {
	pins := filepath.Join(os.Getenv(folderVariable), "bpf")
	err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		os.MkdirAll(pins, 0o700),
		unix.Mount("bpf", pins, "bpf", 0, "mode=0700"),
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, "no BPF file system:", err)
		_ = os.Unsetenv(folderVariable)
	}
	return m.Run()
}

// kernelFolder is the folder in which the tests may work; they are skipped without one.
func kernelFolder(t *testing.T) string {
	t.Helper()
	folder := os.Getenv(folderVariable)
	if os.Getenv(stageVariable) != stageNamespace || folder == "" {
		const reason = "the kernel gives this user no network namespace or BPF file system"
		if os.Getenv("CI") != "" {
			t.Fatal(reason + ", and in CI no test is skipped")
		}
		t.Skip(reason)
	}
	return folder
}

// makeVeth makes a pair of interfaces with two queues, nic0 and wire0, in the driver of which XDP runs natively.
func makeVeth(t *testing.T) {
	t.Helper()
	const name, peer = "nic0", "wire0"
	ip(t, "link", "add", name, "numrxqueues", "2", "numtxqueues", "2", "type", "veth", "peer", "name", peer,
		"numrxqueues", "2", "numtxqueues", "2")
	t.Cleanup(func() { ip(t, "link", "delete", name) })
	// The kernel's own frames of IPv6 would be taken for those of the test.
	for _, end := range []string{name, peer} {
		file := filepath.Join("/proc/sys/net/ipv6/conf", end, "disable_ipv6")
		if err := os.WriteFile(file, []byte("1"), 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	ip(t, "link", "set", name, "up")
	ip(t, "link", "set", peer, "up")
}

func ip(t *testing.T, arguments ...string) {
	t.Helper()
	if output, err := exec.Command("ip", arguments...).CombinedOutput(); err != nil {
		t.Fatalf("ip %v: %v\n%s", arguments, err, output)
	}
}
