// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/tunedhost"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// openings tells which of the watched files were opened.
type openings struct {
	t     *testing.T
	fd    int
	files map[int32]string
}

func watchOpenings(t *testing.T) *openings {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return &openings{t, fd, map[int32]string{}}
}

func (o *openings) add(file string) {
	o.t.Helper()
	watch, err := unix.InotifyAddWatch(o.fd, file, unix.IN_OPEN)
	if err != nil {
		o.t.Fatal(err)
	}
	o.files[int32(watch)] = filepath.Base(file)
}

// opened are the names of the files that were opened since the last time.
func (o *openings) opened() []string {
	o.t.Helper()
	var names []string
	buffer := make([]byte, 1<<16)
	for {
		n, err := unix.Read(o.fd, buffer)
		if errors.Is(err, unix.EAGAIN) {
			slices.Sort(names)
			return slices.Compact(names)
		}
		if err != nil {
			o.t.Fatal(err)
		}
		for rest := bytes.NewReader(buffer[:n]); rest.Len() > 0; {
			var event unix.InotifyEvent
			if err := binary.Read(rest, binary.NativeEndian, &event); err != nil {
				o.t.Fatal(err)
			}
			if _, err := rest.Seek(int64(event.Len), 1); err != nil {
				o.t.Fatal(err)
			}
			names = append(names, o.files[event.Wd])
		}
	}
}

// create makes a file and watches it.
func (o *openings) create(file string) {
	o.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		o.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("3100000\n"), 0o600); err != nil {
		o.t.Fatal(err)
	}
	o.add(file)
}

// loudFiles are those for whose content the kernel makes a CPU run code (internal/host, interrupts).
func loudFiles() []string {
	files := make([]string, 0, 16*6)
	for id := range 16 {
		for _, file := range []string{
			"sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", "sys/devices/system/cpu/cpu%d/cpufreq/cpuinfo_cur_freq",
			"sys/devices/system/cpu/cpu%d/cpufreq/cpuinfo_avg_freq", "sys/devices/system/cpu/cpu%d/power/energy_perf_bias",
			"sys/devices/system/cpu/cpu%d/acpi_cppc/feedback_ctrs", "dev/cpu/%d/msr",
		} {
			files = append(files, fmt.Sprintf(file, id))
		}
	}
	return files
}

func TestNoReadMakesAnotherCPURunCode(t *testing.T) {
	h, err := tunedhost.New(t.Context(), t.TempDir(), tunedhost.Small(hosttree.Xeon()), tunedhost.Profile())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Apply(); err != nil {
		t.Fatal(err)
	}
	loud := watchOpenings(t)
	for _, file := range loudFiles() {
		loud.create(filepath.Join(h.Dir, file))
	}
	quiet := watchOpenings(t)
	for _, file := range []string{"proc/interrupts", "proc/cpuinfo", "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor"} {
		quiet.add(filepath.Join(h.Dir, file))
	}

	a := &Agent{Root: h.Dir, plan: plannedState{plan: h.Plan, hash: h.Plan.Hash()}}
	facts, err := a.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(quiet.opened(), " "), "cpuinfo interrupts scaling_governor"; got != want {
		t.Errorf("a full pass opened %s of the files that it needs, want %s", got, want)
	}
	in := verify.Input{Plan: h.Plan, Facts: facts}
	report := verify.Evaluate(in)
	a.latest = latestPass{at: a.clock().Now(), in: in, report: &report}
	if !a.countersTellNothingNew(t.Context()) {
		t.Error("the counters tell something new")
	}
	if got, want := strings.Join(quiet.opened(), " "), "interrupts"; got != want {
		t.Errorf("between two passes %s were opened, want %s", got, want)
	}
	if got := loud.opened(); got != nil {
		t.Errorf("opened: %v", got)
	}
	if err := a.root.close(); err != nil {
		t.Error(err)
	}
}
