// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package confinement

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The test binary runs itself again in a mount namespace of its own, and there once more for what the agent would do.
const (
	stageVariable  = "LOWLATENCY_CONFINEMENT_STAGE"
	stageNamespace = "namespace"
	stageAgent     = "agent"
	folderVariable = "LOWLATENCY_CONFINEMENT_FOLDER"
)

func TestMain(m *testing.M) {
	switch os.Getenv(stageVariable) {
	case stageAgent:
		os.Exit(runAsAgent(os.Args[1:]))
	case stageNamespace:
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	default:
		os.Exit(inNamespace())
	}
}

// inNamespace runs the tests in a new mount namespace, with a folder of their own, which the host never sees filled.
func inNamespace() int {
	folder, err := os.MkdirTemp("", "confinement")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), stageVariable+"="+stageNamespace, folderVariable+"="+folder)
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	err = errors.Join(os.Chmod(folder, 0o755), command.Run())
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return failed.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "this test makes mounts and needs root:", err)
		return 1
	}
	return 0
}

// folderFor is a folder of a test that other users reach, in which mounts end with the namespace.
func folderFor(t *testing.T, name string) string {
	t.Helper()
	folder := filepath.Join(os.Getenv(folderVariable), name)
	if err := errors.Join(os.MkdirAll(folder, 0o755), unix.Mount("tmpfs", folder, "tmpfs", 0, "mode=0755")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// identity is whom a program runs as.
type identity struct {
	user uint32
	// capabilities are all that it has.
	capabilities []uintptr
}

// runAs runs what the agent would do, as somebody, and decodes what it answers.
func runAs[T any](t *testing.T, who identity, arguments ...string) T {
	t.Helper()
	command := exec.Command("/proc/self/exe", arguments...)
	command.Env = []string{stageVariable + "=" + stageAgent, "KEEP=" + capabilityMask(who.capabilities)}
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: who.user, Gid: who.user}}
	if who.user != 0 {
		command.SysProcAttr.AmbientCaps = who.capabilities
	}
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answer T
	if err := json.Unmarshal(output, &answer); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return answer
}

func capabilityMask(capabilities []uintptr) string {
	mask := uint64(0)
	for _, capability := range capabilities {
		mask |= 1 << capability
	}
	return strconv.FormatUint(mask, 10)
}

// keepOnly drops all capabilities of this thread but some, for good.
func keepOnly(mask uint64) error {
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{
		{Effective: uint32(mask), Permitted: uint32(mask)}, {Effective: uint32(mask >> 32), Permitted: uint32(mask >> 32)},
	}
	_, _, errno := syscall.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
