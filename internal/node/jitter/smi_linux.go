// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

// smiCounters are those of the processors of a machine.
type smiCounters struct {
	// root has /proc, /sys and /dev below it.
	root string
	// virtualMachine says why a zero is none; "" where it is one.
	virtualMachine string
	// uncounted is why the processors count none.
	uncounted error
}

// findSMIs asks the processors of a machine, once and before anything is measured: up to Linux 5.17, opening /proc/cpuinfo interrupts all CPUs
// (arch/x86/kernel/cpu/aperfmperf.c, arch_freq_prepare_all).
func findSMIs(root string) *smiCounters {
	found := &smiCounters{root: root}
	proc, err := procfs.NewFS(filepath.Join(root, "proc"))
	if err != nil {
		found.uncounted = fmt.Errorf("reading /proc: %w", err)
		return found
	}
	processors, err := proc.CPUInfo()
	if err != nil {
		found.uncounted = fmt.Errorf("reading /proc/cpuinfo: %w", err)
		return found
	}
	found.virtualMachine, found.uncounted = smiProcessor(processors)
	return found
}

// open opens the counter of a CPU: the event of the kernel's PMU msr, else the register itself. It asks for the event of the CPU and not of a thread: the
// first event of a thread makes the kernel change its own code on all CPUs.
func (s *smiCounters) open(cpu int) *smiCounter {
	if s.uncounted != nil {
		return &smiCounter{uncounted: s.uncounted}
	}
	event, err := openSMIEvent(s.root, cpu)
	if err == nil {
		return &smiCounter{file: event, from: smiEventName, virtualMachine: s.virtualMachine, read: readEvent}
	}
	name := "/dev/cpu/" + strconv.Itoa(cpu) + "/msr"
	file, failed := os.Open(filepath.Join(s.root, name))
	if failed != nil {
		return &smiCounter{uncounted: fmt.Errorf("%w; %s: %w", err, name, cause(failed))}
	}
	return &smiCounter{file: file, from: name, virtualMachine: s.virtualMachine, read: readRegister}
}

// smiCounter counts the system management interrupts of one CPU. The thread that opens and reads it should be on that CPU: the kernel asks the CPU
// itself, and a thread elsewhere makes it run code.
type smiCounter struct {
	file *os.File
	// from names what counts, and virtualMachine says why a zero is none.
	from, virtualMachine string
	read                 func(*os.File) (uint64, error)
	// uncounted is why nothing counts; the other fields are empty then.
	uncounted error
}

func openSMIEvent(root string, cpu int) (*os.File, error) {
	folder := filepath.Join(root, "sys/bus/event_source/devices/msr")
	kind, err := os.ReadFile(filepath.Join(folder, "type"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", smiEventName, cause(err))
	}
	event, err := os.ReadFile(filepath.Join(folder, "events/smi"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", smiEventName, cause(err))
	}
	pmu, config, err := parseSMIEvent(string(kind), string(event))
	if err != nil {
		return nil, err
	}
	attributes := unix.PerfEventAttr{
		Type: pmu, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Config: config,
		Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
	}
	opened, err := unix.PerfEventOpen(&attributes, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return nil, fmt.Errorf("%s: %w (it takes CAP_PERFMON)", smiEventName, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", smiEventName, err)
	}
	return os.NewFile(uintptr(opened), smiEventName), nil
}

// cause is an error without the path, which messages name as people write it.
func cause(err error) error {
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		return failed.Err
	}
	return err
}

// readEvent reads a perf event: its count, for how long it was enabled, and for how long it was counted. One that did not count all the time has
// not seen all.
func readEvent(file *os.File) (uint64, error) {
	const numbers, size = 3, 8
	text := make([]byte, numbers*size)
	if _, err := io.ReadFull(file, text); err != nil {
		return 0, fmt.Errorf("%s: %w", smiEventName, cause(err))
	}
	order := binary.NativeEndian
	if enabled, counting := order.Uint64(text[size:]), order.Uint64(text[2*size:]); enabled != counting {
		return 0, fmt.Errorf("%s: the kernel counted for %d of %d ns", smiEventName, counting, enabled)
	}
	return order.Uint64(text), nil
}

// readRegister reads the register. Its upper half is reserved.
func readRegister(file *os.File) (uint64, error) {
	text := make([]byte, 8)
	if _, err := file.ReadAt(text, msrSMICount); err != nil {
		return 0, fmt.Errorf("%s: %w", file.Name(), cause(err))
	}
	return binary.NativeEndian.Uint64(text) & 0xffffffff, nil
}

// total is how many the CPU has counted so far.
func (c *smiCounter) total() (uint64, error) {
	if c.uncounted != nil {
		return 0, c.uncounted
	}
	return c.read(c.file)
}

func (c *smiCounter) close() {
	if c != nil && c.file != nil {
		_ = c.file.Close()
	}
}

// while counts what came while something ran, in the thread that calls it.
func (c *smiCounter) while(run func()) counted.ManagementInterrupts {
	before, first := c.total()
	run()
	after, last := c.total()
	if err := cmp.Or(first, last); err != nil {
		return counted.ManagementInterrupts{From: c.from, Unknown: err.Error()}
	}
	return counted.ManagementInterruptsBetween(before, after, c.from, c.virtualMachine)
}

// smiEventName is how messages name the event by which the kernel counts system management interrupts (arch/x86/events/msr.c, PERF_MSR_SMI).
const smiEventName = "perf event msr/smi/"

// msrSMICount is the register in which processors of Intel count system management interrupts (MSR_SMI_COUNT of arch/x86/include/asm/msr-index.h).
const msrSMICount = 0x34

// smiProcessor says why a processor counts no system management interrupts, and why its zero is none: "" when it is.
func smiProcessor(all []procfs.CPUInfo) (virtualMachine string, err error) {
	if len(all) == 0 || all[0].VendorID != "GenuineIntel" {
		return "", errors.New("only processors of Intel count them, and this is none")
	}
	if slices.Contains(all[0].Flags, "hypervisor") {
		return "this is a virtual machine, which does not see those of the machine below", nil
	}
	return "", nil
}

// parseSMIEvent reads the files type and events/smi of the kernel's PMU msr, such as 11 and event=0x04.
func parseSMIEvent(kind, event string) (pmu uint32, config uint64, err error) {
	number, err := strconv.ParseUint(strings.TrimSpace(kind), 10, 32)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: its type is %q", smiEventName, strings.TrimSpace(kind))
	}
	hex, found := strings.CutPrefix(strings.TrimSpace(event), "event=0x")
	config, err = strconv.ParseUint(hex, 16, 64)
	if !found || err != nil {
		return 0, 0, fmt.Errorf("%s: it is %q", smiEventName, strings.TrimSpace(event))
	}
	return uint32(number), config, nil
}
