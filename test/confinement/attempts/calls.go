// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package attempts

import (
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// calls are the trials with system calls. Each undoes what it has done, or changes nothing when it works.
func calls() map[string]func(root string) error {
	return map[string]func(root string) error{
		"mount a file system":                 mount,
		"make namespaces":                     makeNamespaces,
		"load a BPF program":                  loadProgram,
		"make a device file":                  makeDevice,
		"trace the first process of the host": trace,
		"set the clock of the host":           setClock,
		"be scheduled in real time":           beRealTime,
	}
}

// onThread runs something on a thread of its own, which ends with it, because what it changes is the thread's.
func onThread(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- do()
	}()
	return <-done
}

func mount(string) error {
	return onThread(func() error {
		folder, err := os.MkdirTemp("/dev/shm", "attempt")
		if err != nil {
			folder = "/proc"
		} else {
			defer func() { _ = os.Remove(folder) }()
		}
		if err := unix.Mount("tmpfs", folder, "tmpfs", 0, ""); err != nil {
			return err
		}
		return unix.Unmount(folder, unix.MNT_DETACH)
	})
}

func makeNamespaces(string) error {
	return onThread(func() error { return unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWNET) })
}

// loadProgram loads a program that returns at once, as one that would be run for each call of the kernel.
func loadProgram(string) error {
	instructions := [2]uint64{0x00000000_000000b7, 0x00000000_00000095}
	licence := []byte("GPL\x00")
	attributes := struct {
		kind, count           uint32
		instructions, licence uint64
		_                     [88]byte
	}{
		kind: unix.BPF_PROG_TYPE_KPROBE, count: uint32(len(instructions)),
		instructions: uint64(uintptr(unsafe.Pointer(&instructions[0]))), licence: uint64(uintptr(unsafe.Pointer(&licence[0]))),
	}
	descriptor, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes))
	runtime.KeepAlive(&instructions)
	runtime.KeepAlive(licence)
	if errno != 0 {
		return errno
	}
	return unix.Close(int(descriptor))
}

func makeDevice(string) error {
	path := filepath.Join("/dev/shm", "attempt-device")
	if err := unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(254, 0))); err != nil {
		return err
	}
	return os.Remove(path)
}

// trace looks for the first process of the host in the host's /proc, and attaches to it as its own namespace numbers it.
func trace(root string) error {
	if _, err := os.Readlink(filepath.Join(root, "proc/1/exe")); err != nil {
		return err
	}
	// The thread does not stop it, and lets go of it when it ends.
	return onThread(func() error { return unix.PtraceSeize(1) })
}

// setClock sets the clock to where it is.
func setClock(string) error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &now); err != nil {
		return err
	}
	return unix.ClockSettime(unix.CLOCK_REALTIME, &now)
}

func beRealTime(string) error {
	return onThread(func() error {
		return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
	})
}
