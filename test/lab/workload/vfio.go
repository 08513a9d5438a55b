// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package main

import (
	"fmt"
	"syscall"
	"unsafe"
)

// groupStatus asks the kernel about an open group of VFIO.
func groupStatus(handle int) string {
	// struct vfio_group_status: its own size, and flags of which the first says that the group is viable.
	status := struct{ size, flags uint32 }{size: 8}
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(handle), vfioGroupGetStatus, uintptr(unsafe.Pointer(&status)))
	switch {
	case errno != 0:
		return fmt.Sprintf("open, but no group of VFIO: %v", errno)
	case status.flags&1 == 0:
		return "open, not viable"
	default:
		return "open, viable"
	}
}
