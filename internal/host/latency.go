// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
)

// latencyDevice is where programs ask the kernel for a limit of the latency of all CPUs.
const latencyDevice = "/dev/cpu_dma_latency"

// latencyLimit reads the limit in microseconds, as decimal text. The device gives it as a number of 32 bits, which its reader
// must be root for (Documentation/power/pm_qos_interface.rst). Opening it makes a request of its own for the default, which
// changes the limit neither when it comes nor when it goes, so that no CPU is woken up for it (cpu_latency_qos_apply of
// kernel/power/qos.c wakes them when the limit has changed). A copy of a host holds the number in either notation.
func (r *reader) latencyLimit() Fact[string] {
	content, err := r.latencyContent()
	if err != nil {
		r.taken.file(latencyDevice, "", err)
		return Absent[string](latencyDevice, reasonOf(err))
	}
	text, err := parseLatency(content)
	if err != nil {
		r.taken.file(latencyDevice, content, nil)
		return Absent[string](latencyDevice, err.Error())
	}
	r.taken.file(latencyDevice, text+"\n", nil)
	return Known(text, latencyDevice)
}

// parseLatency reads a number of 32 bits, of which one byte at least is no character of a text, or text.
func parseLatency(content string) (string, error) {
	text := strings.TrimSpace(content)
	if _, err := parseNumber(text); err == nil {
		return text, nil
	}
	if len(content) != binary.Size(int32(0)) {
		return "", errors.New("neither a number of 32 bits nor a text")
	}
	// All architectures that the project knows put the low byte first.
	return strconv.FormatInt(int64(int32(binary.LittleEndian.Uint32([]byte(content)))), 10), nil
}

func (r *reader) latencyContent() (string, error) {
	if err := r.broken(); err != nil {
		return "", err
	}
	if reason, ok := r.unreadable[latencyDevice]; ok {
		return "", unreadableError{reason}
	}
	found, err := r.walk.resolve(relative(latencyDevice))
	if err != nil {
		return "", err
	}
	device, can := r.walk.view.(deviceReader)
	if r.live && can && found.node.kind == kindDevice {
		return device.readDevice(found.name, binary.Size(int32(0)))
	}
	return r.peek(latencyDevice, smallFile)
}

// deviceReader is a view of a running kernel that can read a character device. Only the device above is ever read: opening
// others may act.
type deviceReader interface {
	readDevice(name string, size int) (string, error)
}

// readRequestedHolders looks for the holders of the latency limit for those who ask, for a snapshot, and in a copy.
func readRequestedHolders(requested bool) func(*reader, *Facts) {
	return func(r *reader, f *Facts) {
		if requested || r.taken != nil || !r.live {
			readLatencyHolders(r, f)
		}
	}
}

// readLatencyHolders looks for the programs that hold the device open, which is how long their limits last. Every open file of
// every process is looked at for that, so it is for those who could not read the limit itself. Absent unless all processes
// let us look.
func readLatencyHolders(r *reader, f *Facts) {
	if f.Setting(latencyDevice).Known {
		f.LatencyHolders = Absent[[]Process](procRoot, "not looked for: the limit itself is known")
		return
	}
	names, err := r.peekList(procRoot, isNumbered)
	if err != nil {
		f.LatencyHolders = Absent[[]Process](procRoot, reasonOf(err))
		return
	}
	f.LatencyHolders = r.latencyHolders(numbersIn(names, "", ""))
}

// latencyHolders looks at the open files of processes. Processes come and go, and a copy has few of them.
func (r *reader) latencyHolders(pids []int) Fact[[]Process] {
	var holders []Process
	looked := 0
	for _, pid := range pids {
		folder := procRoot + "/" + strconv.Itoa(pid)
		holds, err := r.holdsLatency(folder + "/fd")
		switch {
		case err == nil:
			looked++
		case isVanished(err):
			continue
		default:
			r.taken.file(folder+"/fd", "", err)
			return Absent[[]Process](folder+"/fd", reasonOf(err))
		}
		if looked == 1 {
			// A snapshot of a host on which nobody holds the device must show that somebody was looked at.
			r.taken.directory(folder + "/fd")
		}
		if holds {
			name, _ := r.peek(folder+"/comm", smallFile)
			holders = append(holders, Process{PID: pid, Name: strings.TrimSpace(strings.ToValidUTF8(name, ""))})
		}
	}
	if looked == 0 {
		return Absent[[]Process](procRoot, "no process shows its open files")
	}
	return Known(holders, procRoot+"/*/fd")
}

// holdsLatency reports whether a process has the device open. Containers may have it under another folder.
func (r *reader) holdsLatency(folder string) (bool, error) {
	names, err := r.peekList(folder, isNumbered)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		target, err := r.readLink(folder + "/" + name)
		if err == nil && strings.HasSuffix(target, "/cpu_dma_latency") {
			r.taken.link(folder+"/"+name, nil)
			return true, nil
		}
	}
	return false, nil
}
